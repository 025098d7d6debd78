"""French has no gap: each text of the window is there, translated, with the same values in it."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from scripts import translations

ROOT = Path(__file__).resolve().parents[2]
FRENCH = ROOT / translations.FOLDER / "causerie_fr.ts"
FORMS = 2
"""Of French: for none and one, and for more."""
HOW = "run make translations, and translate what is unfinished"
VALUE = re.compile(r"\{[^}]*\}|%L?n|%\d")
ACCELERATOR = re.compile(r"&(?!&)\w")

_PLAIN = re.compile(
    r"[\w…»)] [:;!?](?:\s|$)"  # a space that breaks before a sign
    r"|« | »"
    r"|\d %|\} %"
    r"|\w'\w"
    r"|\.\.\."
)
"""What French does not write with these characters."""


def messages(file: Path) -> list[ET.Element]:
    return list(ET.parse(file).getroot().iter("message"))  # noqa: S314 -- a file of the project


def words(message: ET.Element) -> tuple[str, str, bool]:
    """What it is told apart by: text, comment, and whether it has plural forms."""
    is_plural = message.get("numerus") == "yes"
    return message.findtext("source", ""), message.findtext("comment", ""), is_plural


def french(message: ET.Element) -> list[str]:
    translation = message.find("translation")
    if translation is None:
        return []
    if message.get("numerus") != "yes":
        return [translation.text or ""]
    return [form.text or "" for form in translation.findall("numerusform")]


def values(text: str) -> Counter[str]:
    return Counter(VALUE.findall(text))


def faults(message: ET.Element) -> Iterator[str]:
    """What is wrong with a translation, in a few words each."""
    source, comment, is_plural = words(message)
    translation, forms = message.find("translation"), french(message)
    kind = None if translation is None else translation.get("type")
    if kind is not None or not forms or not all(forms):
        yield kind or "empty"
        return
    if is_plural and len(forms) != FORMS:
        yield f"{len(forms)} plural forms"
    singular = comment if is_plural else source
    for form, original in zip(forms, (singular, source), strict=False):
        if values(form) != values(original):
            yield "other values than in English"
        if len(ACCELERATOR.findall(form)) > 1:
            yield "two accelerators"
        if _PLAIN.search(form):
            yield "typography"
        if form[-1:].isspace() != source[-1:].isspace():
            yield "a space at its end"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str, bool]]:
    """All texts of the window, as the translators' tool finds them now."""
    made = tmp_path_factory.mktemp("french") / "causerie_fr.ts"
    translations.update(ROOT, Path(sys.executable).parent, made)
    return {words(message) for message in messages(made)}


def test_every_text_is_there_and_none_is_left_over(
    sources: set[tuple[str, str, bool]],
) -> None:
    there = [words(message) for message in messages(FRENCH)]
    assert sources - set(there) == set(), HOW
    assert set(there) - sources == set(), HOW
    assert len(there) == len(set(there))
    assert len(there) > 1000


def test_nothing_is_wrong_with_any_translation() -> None:
    wrong = [
        f"{fault}: {words(message)[0]!r}"
        for message in messages(FRENCH)
        for fault in faults(message)
    ]
    assert wrong == [], HOW


def a_message(source: str, *forms: str, comment: str = "", kind: str = "") -> ET.Element:
    made = ET.Element("message")
    ET.SubElement(made, "source").text = source
    translation = ET.SubElement(made, "translation")
    if kind:
        translation.set("type", kind)
    if not comment:
        translation.text = forms[0]
        return made
    made.set("numerus", "yes")
    ET.SubElement(made, "comment").text = comment
    for form in forms:
        ET.SubElement(translation, "numerusform").text = form
    return made


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (a_message("Leave {name}?", "Quitter {name}\u202f?"), []),
        (a_message("Leave {name}?", "Quitter\u202f?"), ["other values than in English"]),
        (a_message("Leave {name}?", ""), ["empty"]),
        (a_message("Leave", "Quitter", kind="unfinished"), ["unfinished"]),
        (a_message("Leave", "Quitter", kind="vanished"), ["vanished"]),
        (a_message("&Open", "&Ou&vrir"), ["two accelerators"]),
        (a_message("Why?", "Pourquoi ?"), ["typography"]),
        (a_message("It is", "C'est"), ["typography"]),
        (a_message("Draft: ", "Brouillon\u00a0:"), ["a space at its end"]),
        (a_message("%n days", "%n jour", "%n jours", comment="%n day"), []),
        (a_message("%n days", "%n jour", comment="%n day"), ["1 plural forms"]),
        (a_message("%n days", "jour", "%n jours", comment="a day"), []),
        (
            a_message("%n days", "%n jour", "jours", comment="%n day"),
            ["other values than in English"],
        ),
    ],
)
def test_a_fault_is_found(message: ET.Element, found: list[str]) -> None:
    assert list(faults(message)) == found
