"""The buttons in rows, and how wide words are: what all who measure and paint need."""

from enum import Enum, auto
from functools import lru_cache

from PySide6.QtGui import QFont, QFontMetricsF

from ui.theme import Typeface

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


BUTTON_WORDS = {
    RowButton.RESEND: "Resend",
    RowButton.DISCARD: "Discard",
    RowButton.FETCH: "Fetch again",
    RowButton.TRY_AGAIN: "Try again",
    RowButton.GAP_DETAILS: "Details",
    RowButton.EARLIER: "Fetch earlier messages",
    RowButton.STORES: "Stores…",
    RowButton.UNFOLD: "Show all",
    RowButton.HELD_ALL: "Show all",
    RowButton.HELD_FEWER: "Show fewer",
}

WITH_SIGN = frozenset({RowButton.RESEND, RowButton.FETCH, RowButton.TRY_AGAIN, RowButton.EARLIER})


@lru_cache(maxsize=64)
def strong(face: Typeface) -> QFont:
    """One font object for each size: making them anew costs more than drawing with them."""
    return face.strong()


def advance(font: QFont, words: str) -> float:
    return QFontMetricsF(font).horizontalAdvance(words)
