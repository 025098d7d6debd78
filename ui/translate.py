"""Every text that a person sees goes through ``tr``, so that a ``QTranslator`` can replace it.

The argument is a literal, because ``pyside6-lupdate`` reads it from the source; values are put in
afterwards, by ``tr("Hello {name}").format(name=name)``.  ``tr`` is called when the text is shown
and never while a module is imported: no translator is installed yet then.
"""

from collections.abc import Callable

_Translate = Callable[[str, str, str | None, int], str]


def _english(_context: str, text: str, _comment: str | None, n: int) -> str:
    return text.replace("%n", str(n))


try:
    from PySide6.QtCore import QCoreApplication
except ImportError:  # a server without Qt's libraries, where only ``causerie doctor`` has words
    _translate: _Translate = _english
else:
    _translate = QCoreApplication.translate

_CONTEXT = ""
"""That of ``pyside6-lupdate`` for a function that is no method."""


def tr(text: str, one: str | None = None, n: int = -1, /) -> str:
    """``text`` in the user's language, or as it is without a translator.

    What is counted has its number as the third argument, which takes the place of ``%n``:
    ``tr("%n messages", "%n message", n)``.  A translator chooses the plural form by its language;
    ``one`` is the English form for 1.  Without a number it is a note to the translator, which tells
    two meanings of one text apart.
    """
    translated = _translate(_CONTEXT, text, one, n)
    if one is not None and n == 1 and translated == _english(_CONTEXT, text, one, n):
        return _english(_CONTEXT, one, None, n)
    return translated
