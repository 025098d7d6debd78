"""What can be pressed in a row, and how wide words are: what all who measure and paint need.

A part is named here once, so that pointer, keyboard, tooltips and painting mean the same button.
"""

from enum import Enum, auto
from functools import lru_cache

from PySide6.QtGui import QFont, QFontMetricsF

from ui.theme import Typeface

ICON = 14
"""Side of the sign before a button's words."""


class Part(Enum):
    """What can be pressed."""

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


PART_WORDS = {
    Part.RESEND: "Resend",
    Part.DISCARD: "Discard",
    Part.FETCH: "Fetch again",
    Part.TRY_AGAIN: "Try again",
    Part.GAP_DETAILS: "Details",
    Part.EARLIER: "Fetch earlier messages",
    Part.STORES: "Stores…",
    Part.UNFOLD: "Show all",
    Part.HELD_ALL: "Show all",
    Part.HELD_FEWER: "Show fewer",
}

WITH_SIGN = frozenset({Part.RESEND, Part.FETCH, Part.TRY_AGAIN, Part.EARLIER})


@lru_cache(maxsize=64)
def strong(face: Typeface) -> QFont:
    """One font object for each size: making them anew costs more than drawing with them."""
    return face.strong()


def advance(font: QFont, words: str) -> float:
    return QFontMetricsF(font).horizontalAdvance(words)
