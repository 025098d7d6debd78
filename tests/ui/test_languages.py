"""The window's language: which one, what comes with it, and that it leaves nothing behind."""

import logging
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, Qt, QTranslator
from PySide6.QtWidgets import QApplication

from scripts import translations
from ui import languages, regional
from ui.languages import speak
from ui.settings import Language, UiSettings
from ui.times import day_words, list_time, moment_words
from ui.translate import tr

ROOT = Path(__file__).resolve().parents[2]
AT = datetime(2026, 11, 3, 14, 8, 31).astimezone()
OLD_MS = int(datetime(2024, 11, 3, 14, 8).astimezone().timestamp()) * 1_000


def built_translations() -> None:
    """As set-up does it, for who edits and runs the tests alone."""
    translations.build(ROOT, Path(sys.executable).parent)


@pytest.fixture(autouse=True)
def built(qapp: QApplication) -> Iterator[None]:
    del qapp
    built_translations()
    yield
    speak("en")


def test_french_has_its_own_dates_numbers_and_texts_of_qt() -> None:
    speak("fr")
    assert moment_words(AT).startswith("3 novembre 2026")
    assert list_time(OLD_MS, AT) == "3 nov. 2024"
    assert day_words(AT.date().replace(day=2), AT.date().replace(day=4)) == "Lundi"
    assert regional.grouped(3_240) == "3\u202f240"
    assert regional.decimal(2.5) == "2,5"
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Annuler"


def test_english_has_no_translator_and_writes_as_its_country_does() -> None:
    speak("fr")
    speak("en")
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Cancel"
    assert moment_words(AT) == "3 November 2026, 14:08"
    assert regional.grouped(3_240) == "3,240"
    QLocale.setDefault(QLocale("en_US"))
    assert regional.day_of_year(AT, with_year=False) == "November 3"
    assert regional.clock(AT) == "2:08\u202fPM"
    assert regional.clock_with_seconds(AT) == "2:08:31\u202fPM"


@pytest.mark.parametrize(
    ("language", "direction"),
    [("fr", Qt.LayoutDirection.LeftToRight), ("he", Qt.LayoutDirection.RightToLeft)],
)
def test_the_window_runs_as_its_language_does(language: str, direction: Qt.LayoutDirection) -> None:
    speak(language)
    assert QApplication.layoutDirection() is direction


def test_names_are_sorted_as_people_sort_them() -> None:
    speak("fr")
    names = ["Zoé", "eve", "Éric", "Anna", "Ömer", "Eric"]
    found = regional.in_order(names, key=str)
    assert found == ["Anna", "Eric", "Éric", "eve", "Ömer", "Zoé"]


@pytest.mark.parametrize(
    ("wanted", "spoken"),
    [
        (["fr-Latn-CA", "fr-CA", "fr", "en"], "fr"),
        (["de-DE", "de", "fr-FR", "en"], "fr"),
        (["de-DE", "de"], "en"),
        (["C"], "en"),
    ],
)
def test_the_system_has_the_first_word(
    monkeypatch: pytest.MonkeyPatch, wanted: list[str], spoken: str
) -> None:
    monkeypatch.setattr(QLocale, "uiLanguages", lambda _: wanted)
    assert languages.system_language() == spoken


def test_a_translation_that_is_missing_leaves_english(
    qapp: QApplication,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(languages, "TRANSLATIONS", tmp_path)
    with caplog.at_level(logging.WARNING, logger="ui"):
        speak("fr")
    assert [record.message for record in caplog.records] == ["A translation is missing."]
    assert qapp.findChildren(QTranslator)


@pytest.mark.parametrize(("stored", "meant"), [("fr", Language.FRENCH), ("xx", Language.SYSTEM)])
def test_the_setting_is_read(stored: str, meant: Language) -> None:
    assert UiSettings(load=lambda _: stored).language is meant


def test_a_file_that_changed_is_built_again(tmp_path: Path) -> None:
    folder = tmp_path / translations.FOLDER
    folder.mkdir(parents=True)
    source = folder / "causerie_fr.ts"
    source.write_bytes((ROOT / translations.FOLDER / "causerie_fr.ts").read_bytes())
    tools = Path(sys.executable).parent
    assert [built.name for _, built in translations.stale(tmp_path)] == ["causerie_fr.qm"]
    translations.build(tmp_path, tools)
    assert list(translations.stale(tmp_path)) == []
    source.touch()
    assert len(list(translations.stale(tmp_path))) == 1


def test_french_chooses_its_plural_by_the_number() -> None:
    speak("fr")
    said = [tr("%n messages lost", "%n message lost", number) for number in (0, 1, 2)]
    assert said == ["0 message perdu", "1 message perdu", "2 messages perdus"]
