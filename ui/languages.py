"""The language of the window: its texts, its numbers and dates, and which way it runs.

English is what the source says; another language is a file in ``ui/translations`` that
``make translations`` builds.  Qt's own texts (the buttons of a file dialog) come from Qt's file.
A language without a file of ours has English words, and may be asked for all the same: that is how
the window is looked at from right to left.
"""

import logging
from pathlib import Path
from typing import Final

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator
from PySide6.QtGui import QGuiApplication

from ui.settings import Language

TRANSLATIONS: Final = Path(__file__).with_name("translations")
_OF_QT: Final = "qtbase"
_OURS: Final = "causerie"

_log = logging.getLogger(__name__)


_SPOKEN: Final = frozenset({Language.ENGLISH.value, Language.FRENCH.value})
_HABITS: Final = {Language.ENGLISH.value: "en_GB", Language.FRENCH.value: "fr_FR"}
"""Whose dates and numbers, where the system has another language."""


def speak(choice: str) -> None:
    """Put ``choice`` into force: a ``Language``, or the code of any other.

    Windows that exist keep their words, so this comes before the first.
    """
    app = QCoreApplication.instance()
    if app is None:
        raise TypeError("a language needs a QApplication")
    language = system_language() if choice == Language.SYSTEM else choice
    for installed in app.findChildren(QTranslator, _OURS):
        QCoreApplication.removeTranslator(installed)
        installed.deleteLater()
    if language in _SPOKEN - {Language.ENGLISH}:
        folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        _install(app, f"{_OF_QT}_{language}", folder)
        _install(app, f"{_OURS}_{language}", str(TRANSLATIONS))
    locale = _locale_of(language)
    QLocale.setDefault(locale)
    QGuiApplication.setLayoutDirection(locale.textDirection())


def _install(app: QCoreApplication, name: str, folder: str) -> None:
    translator = QTranslator(app)
    translator.setObjectName(_OURS)
    if translator.load(name, folder):
        QCoreApplication.installTranslator(translator)
    else:
        _log.warning("A translation is missing.", extra={"reason": name})


def system_language() -> str:
    """The first of the user's languages that the window speaks."""
    wanted = (tag.partition("-")[0] for tag in QLocale.system().uiLanguages())
    return next((tag for tag in wanted if tag in _SPOKEN), Language.ENGLISH.value)


def _locale_of(language: str) -> QLocale:
    """That of the system if it speaks the language, because it knows the user's country."""
    system = QLocale.system()
    if system.name().partition("_")[0] == language:
        return system
    return QLocale(_HABITS.get(language, language))
