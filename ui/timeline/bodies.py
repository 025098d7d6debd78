"""Laid-out message texts: an LRU of 2 000 ``QTextLayout``s, keyed by message.

Laying out is the dear part of a frame, so a text is shaped once and only broken into lines again
when the width changes.  Texts are foreign: what is very long is folded, and line count is bounded
even when unfolded, so that no single message can make a frame slow.
"""

import re
import unicodedata
from collections import OrderedDict
from typing import TYPE_CHECKING

from msgspec import Struct
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QTextCharFormat, QTextLayout, QTextOption

from engine.events import MessageKind, MessageView, SpanKind
from ui.theme import Theme
from ui.timeline.row_words import body_words

if TYPE_CHECKING:
    from engine.core.ids import MessageId

MAX_LAYOUTS = 2000
FOLDED_UNITS = 4000
FOLDED_LINES = 40
UNFOLDED_LINES = 2000
_TAB_SPACES = 4
_STACK = re.compile(
    r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4}"
)
_DISPLAYED = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "\ufffd")
_DISPLAYED |= {ord("\n"): "\u2028", ord("\r"): "\u200b", ord("\t"): "\t"}
"""Qt breaks one paragraph at line separators; other control characters are made visible."""


class Body(Struct, frozen=True):
    """One text in lines.  Widths and heights are logical pixels; indexes are UTF-16 units."""

    layout: QTextLayout
    width: float
    height: float
    last_line_width: float
    right_to_left: bool
    stacked: bool
    """Marks are piled up on a letter, higher than a line."""
    folded: bool
    """There is more text than is laid out."""


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def utf16_slice(text: str, start: int, end: int) -> str:
    """``text`` between two UTF-16 indexes, as Qt counts."""
    return utf16(text)[start * 2 : end * 2].decode("utf-16-le", "replace")


def displayed(text: str) -> str:
    """The text for one paragraph of Qt's; every character keeps its index."""
    if text.isprintable():
        return text
    return text.translate(_DISPLAYED)


class BodyLayouts:
    """The cache.  ``forget_all`` when fonts or colours changed."""

    def __init__(self, limit: int = MAX_LAYOUTS) -> None:
        self._limit = limit
        self._bodies: OrderedDict[MessageId, tuple[str, float, bool, Body]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._bodies)

    def forget_all(self) -> None:
        self._bodies.clear()

    def body(self, message: MessageView, *, width: float, unfolded: bool, theme: Theme) -> Body:
        """``message``'s text within ``width``."""
        message_id = message.message_id
        cached = self._bodies.get(message_id)
        if cached is not None:
            text, at_width, was_unfolded, body = cached
            if text == message.text and was_unfolded == unfolded:
                if at_width != width:
                    body = _broken(body.layout, width, unfolded=unfolded, theme=theme)
                    self._bodies[message_id] = (text, width, unfolded, body)
                self._bodies.move_to_end(message_id)
                return body
        layout = _shaped(message, unfolded=unfolded, theme=theme)
        body = _broken(layout, width, unfolded=unfolded, theme=theme)
        self._bodies[message_id] = (message.text, width, unfolded, body)
        self._bodies.move_to_end(message_id)
        while len(self._bodies) > self._limit:
            self._bodies.popitem(last=False)
        return body


def _shaped(message: MessageView, *, unfolded: bool, theme: Theme) -> QTextLayout:
    text = body_words(message)
    if not unfolded and len(text) > FOLDED_UNITS // 2:
        text = utf16_slice(text, 0, FOLDED_UNITS)
    font = theme.type.body.font
    if message.kind is MessageKind.UNSUPPORTED:
        font = QFont(font)
        font.setItalic(True)
    shown = displayed(text)
    layout = QTextLayout(shown, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
    option.setTabStopDistance(_TAB_SPACES * QFontMetricsF(font).horizontalAdvance(" "))
    layout.setTextOption(option)
    layout.setCacheEnabled(True)
    layout.setFormats(_formats(message, len(utf16(shown)) // 2, theme))
    return layout


def _formats(message: MessageView, units: int, theme: Theme) -> list[QTextLayout.FormatRange]:
    ranges = []
    for span in message.spans:
        if span.kind is SpanKind.LINK and 0 <= span.start < span.start + span.length <= units:
            link = QTextLayout.FormatRange()
            link.start, link.length = span.start, span.length
            form = QTextCharFormat()
            form.setForeground(theme.accentInk)
            form.setFontUnderline(True)
            link.format = form
            ranges.append(link)
    return ranges


def _broken(layout: QTextLayout, width: float, *, unfolded: bool, theme: Theme) -> Body:
    most = UNFOLDED_LINES if unfolded else FOLDED_LINES
    right_to_left = starts_right_to_left(layout.text())
    natural, height, last, complete = _break_into(layout, width, most, theme)
    if right_to_left:  # Lines hang on the right edge, so the edge must be where the text ends.
        natural, height, last, complete = _break_into(layout, natural + 1, most, theme)
    return Body(
        layout=layout,
        width=natural,
        height=height,
        last_line_width=last,
        right_to_left=right_to_left,
        stacked=_STACK.search(layout.text()) is not None,
        folded=not complete,
    )


def _break_into(
    layout: QTextLayout, width: float, most: int, theme: Theme
) -> tuple[float, float, float, bool]:
    line_height = theme.type.body.line_height
    natural, y, last, count, complete = 0.0, 0.0, 0.0, 0, False
    layout.beginLayout()
    while count < most:
        line = layout.createLine()
        if not line.isValid():
            complete = True
            break
        line.setLineWidth(width)
        taken = max(line_height, line.height())
        line.setPosition(QPointF(0, y + (taken - line.height()) / 2))
        last = line.naturalTextWidth()
        natural = max(natural, last)
        y += taken
        count += 1
    layout.endLayout()
    laid = layout.lineAt(count - 1) if count else None
    if not complete and laid is not None:
        complete = laid.textStart() + laid.textLength() >= len(utf16(layout.text())) // 2
    return natural, max(y, line_height), last, complete


def starts_right_to_left(text: str) -> bool:
    """Whether the first strong character says so, as Qt's automatic direction decides."""
    for character in text[:256]:
        direction = unicodedata.bidirectional(character)
        if direction in {"R", "AL"}:
            return True
        if direction == "L":
            return False
    return False
