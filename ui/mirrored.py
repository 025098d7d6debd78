"""Painting from right to left: the whole is mirrored, and text and pictures stand upright in it.

What this program paints itself is laid out from left to right.  In a language that runs the other
way its painter is mirrored, so that sides, corners and bars change places by themselves, and what
must not be seen in a mirror is turned back where it stands.
"""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyleOptionViewItem, QWidget

_DOTS, _RIGHT_TO_LEFT = "\u2026", "\u200f"
_LEFTWARDS = frozenset({"R", "AL"})
_SIDES = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignRight


def mirror(painter: QPainter, box: QRectF) -> None:
    """From here on ``box`` is painted as in a mirror."""
    painter.translate(box.left() + box.right(), 0)
    painter.scale(-1, 1)
    # A name has the direction of its letters, whatever the window's is.
    painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)


def mirror_widget(painter: QPainter, widget: QWidget) -> None:
    """If it stands in a window that runs from right to left."""
    if widget.isRightToLeft():
        mirror(painter, QRectF(widget.rect()))


def mirror_item(painter: QPainter, option: QStyleOptionViewItem) -> None:
    """Likewise, for a row of a list."""
    if option.direction is Qt.LayoutDirection.RightToLeft:
        mirror(painter, QRectF(option.rect))


def mirrored_point(point: QPointF, widget: QWidget) -> QPointF:
    """Where in its own drawing ``widget`` was pointed at."""
    return QPointF(widget.width() - point.x(), point.y()) if widget.isRightToLeft() else point


def is_mirrored(painter: QPainter) -> bool:
    return painter.worldTransform().m11() < 0


@contextmanager
def upright(painter: QPainter, box: QRectF) -> Iterator[None]:
    """Within ``box`` of a mirrored painter nothing is mirrored; of any other, nothing changes."""
    if not is_mirrored(painter):
        yield
        return
    painter.save()
    painter.translate(box.left() + box.right(), 0)
    painter.scale(-1, 1)
    yield
    painter.restore()


def with_its_dots(words: str) -> str:
    """Words that are cut off, with the dots where their letters end: of Arabic ones at the left.

    Only where all letters run that way; dots behind a sentence of both end that at the right.
    """
    if words.isascii() or not words.endswith(_DOTS):
        return words
    kinds = {unicodedata.bidirectional(letter) for letter in words}
    return f"{words}{_RIGHT_TO_LEFT}" if kinds & _LEFTWARDS and "L" not in kinds else words


def draw_text(
    painter: QPainter, box: QRectF, flags: int | Qt.AlignmentFlag | Qt.TextFlag, words: str
) -> None:
    """``AlignLeft`` is where a line begins, on whichever side that is."""
    words = with_its_dots(words)
    if not is_mirrored(painter):
        painter.drawText(box, int(flags), words)
        return
    sides = int(flags) & int(_SIDES)
    if sides and sides != int(_SIDES):
        flags = int(flags) ^ int(_SIDES)
    with upright(painter, box):
        painter.drawText(box, int(flags) | int(Qt.AlignmentFlag.AlignAbsolute), words)
