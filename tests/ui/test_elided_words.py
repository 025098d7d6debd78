"""Words on one line that somebody's name begins, in a window that runs from left to right."""

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QImage, QPainter
from PySide6.QtWidgets import QApplication

from ui.controls import ElidedText
from ui.conversation_words import typing_line
from ui.mirrored import draw_text, with_its_dots

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


def test_the_dots_of_a_name_that_is_cut_stand_where_its_letters_end() -> None:
    image = QImage(200, 30, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    font = QFont()
    font.setPixelSize(18)
    painter.setFont(font)
    painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # As on a widget.
    draw_text(painter, QRectF(image.rect()), Qt.AlignmentFlag.AlignLeft, "\u05d0\u05d0\u05d0\u2026")
    painter.end()
    rows = [
        [y for y in range(image.height()) if image.pixelColor(x, y).lightness() < 128]
        for x in range(image.width())
    ]
    inked = [each for each in rows if each]
    lowest = max(max(each) for each in inked)
    assert min(inked[0]) > lowest - 4, "the dots are at the left, where this name ends"
    assert min(inked[-1]) < lowest - 4


@pytest.mark.parametrize("words", ["Maya\u2026", f"Maya, {ARABIC}\u2026", ARABIC, "\u2026"])
def test_other_words_are_left_as_they_are(words: str) -> None:
    assert with_its_dots(words) == words
