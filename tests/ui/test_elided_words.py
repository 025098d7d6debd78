"""Words on one line that somebody's name begins, in a window that runs from left to right."""

import pytest
from PySide6.QtWidgets import QApplication

from ui.controls import ElidedText
from ui.conversation_words import typing_line

pytestmark = pytest.mark.usefixtures("qapp")
ARABIC = "\u0645\u0631\u064a\u0645"
END = "\u2588"
"""A full block: nothing is as high as that."""


def dark_columns(label: ElidedText) -> list[int]:
    """How many pixels of ink there are in each column."""
    label.resize(400, 24)
    label.show()
    QApplication.processEvents()
    image = label.grab().toImage()
    ground = image.pixelColor(image.width() - 1, 0).lightness()
    return [
        sum(abs(image.pixelColor(x, y).lightness() - ground) > 60 for y in range(image.height()))
        for x in range(image.width())
    ]


@pytest.mark.parametrize("name", ["Maya", ARABIC])
def test_a_sentence_begins_at_the_left_whatever_the_letters_of_a_name_are(name: str) -> None:
    ink = dark_columns(ElidedText(typing_line((name,))))
    assert any(ink[:8])
    assert not any(ink[200:])


def test_what_is_said_of_a_name_stays_behind_it() -> None:
    ink = dark_columns(ElidedText(f"{ARABIC} is here {END}"))
    highest = ink.index(max(ink))
    assert not any(ink[highest + 20 :])
    assert any(ink[: highest - 20])


def test_a_name_that_is_whole_has_no_tip_and_is_read_as_it_is() -> None:
    label = ElidedText(ARABIC)
    dark_columns(label)
    assert label.accessibleName() == ARABIC
    assert label.whole_text() == ARABIC
