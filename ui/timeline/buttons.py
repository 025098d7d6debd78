"""The buttons in rows, and how wide words are: what all who measure and paint need."""

from enum import Enum, auto
from functools import lru_cache
from typing import assert_never

from PySide6.QtGui import QFont, QFontMetricsF

from ui.theme import Typeface
from ui.translate import tr

ICON = 14
"""Side of the sign before a button's words."""


class RowButton(Enum):
    RESEND = auto()
    DISCARD = auto()
    FETCH = auto()
    TRY_AGAIN = auto()
    GAP_DETAILS = auto()
    EARLIER = auto()
    STORES = auto()
    UNFOLD = auto()
    HELD_ALL = auto()
    HELD_FEWER = auto()


WITH_SIGN = frozenset({RowButton.RESEND, RowButton.FETCH, RowButton.TRY_AGAIN, RowButton.EARLIER})


def button_words(button: RowButton) -> str:
    match button:
        case RowButton.RESEND:
            words = tr("Resend")
        case RowButton.DISCARD:
            words = tr("Discard")
        case RowButton.FETCH:
            words = tr("Fetch again")
        case RowButton.TRY_AGAIN:
            words = tr("Try again")
        case RowButton.GAP_DETAILS:
            words = tr("Details")
        case RowButton.EARLIER:
            words = tr("Fetch earlier messages")
        case RowButton.STORES:
            words = tr("Stores…")
        case RowButton.UNFOLD | RowButton.HELD_ALL:
            words = tr("Show all")
        case RowButton.HELD_FEWER:
            words = tr("Show fewer")
        case _:
            assert_never(button)
    return words


@lru_cache(maxsize=64)
def strong(face: Typeface) -> QFont:
    """One font object for each size: making them anew costs more than drawing with them."""
    return face.strong()


def advance(font: QFont, words: str) -> float:
    return QFontMetricsF(font).horizontalAdvance(words)
