"""The buttons in rows, and the width of words: shared by measuring and painting."""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from PySide6.QtGui import QFont, QFontMetricsF

from ui.theme import Typeface
from ui.translate import tr

ICON = 14
"""Side of the sign before a button's words."""


class RowButton(Enum):
    RESEND = auto()
    DISCARD = auto()
    KEEP = auto()
    FETCH = auto()
    TRY_AGAIN = auto()
    GAP_DETAILS = auto()
    EARLIER = auto()
    STORES = auto()
    UNFOLD = auto()
    HELD_ALL = auto()
    HELD_FEWER = auto()
    JOIN_GROUP = auto()
    ADD_PERSON = auto()
    FILE_FETCH = auto()
    FILE_PAUSE = auto()
    FILE_GO_ON = auto()
    FILE_CANCEL = auto()
    FILE_AGAIN = auto()
    FILE_SAVE = auto()
    FILE_OPEN = auto()


WITH_SIGN = frozenset({RowButton.RESEND, RowButton.FETCH, RowButton.TRY_AGAIN, RowButton.EARLIER})
_FILE_WORDS: Final[Mapping[RowButton, Callable[[], str]]] = {
    RowButton.FILE_FETCH: lambda: tr("Fetch"),
    RowButton.FILE_PAUSE: lambda: tr("Pause"),
    RowButton.FILE_GO_ON: lambda: tr("Continue"),
    RowButton.FILE_CANCEL: lambda: tr("Cancel"),
    RowButton.FILE_AGAIN: lambda: tr("Try again"),
    RowButton.FILE_SAVE: lambda: tr("Save as…"),
    RowButton.FILE_OPEN: lambda: tr("Open"),
}
_CARD_WORDS: Final[Mapping[RowButton, Callable[[], str]]] = {
    RowButton.JOIN_GROUP: lambda: tr("Join…"),
    RowButton.ADD_PERSON: lambda: tr("Add…"),
}
_WORDS: Final[Mapping[RowButton, Callable[[], str]]] = {
    RowButton.RESEND: lambda: tr("Resend"),
    RowButton.DISCARD: lambda: tr("Discard"),
    RowButton.KEEP: lambda: tr("Undo"),
    **_FILE_WORDS,
    **_CARD_WORDS,
}
FileButton: TypeAlias = Literal[
    RowButton.FILE_FETCH,
    RowButton.FILE_PAUSE,
    RowButton.FILE_GO_ON,
    RowButton.FILE_CANCEL,
    RowButton.FILE_AGAIN,
    RowButton.FILE_SAVE,
    RowButton.FILE_OPEN,
]
ON_CARDS = frozenset(_CARD_WORDS)
"""They stand on the card of an invitation or a person."""
OF_FILES = frozenset(_FILE_WORDS)
"""They speak of a message's larger file."""


def button_words(button: RowButton) -> str:
    match button:
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
            words = _WORDS[button]()
    return words


@lru_cache(maxsize=64)
def strong(face: Typeface) -> QFont:
    """One font object for each size: making them anew costs more than drawing with them."""
    return face.strong()


def advance(font: QFont, words: str) -> float:
    return QFontMetricsF(font).horizontalAdvance(words)
