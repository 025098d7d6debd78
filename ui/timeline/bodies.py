"""Laid-out message texts: an LRU of at most 2 000, keyed by message.

Laying out is the dear part of a frame, so a text is shaped once and only broken into lines again
when the width changes.  A body is a column of blocks, text (``text_block``) and code
(``code_block``).  Texts are foreign: what is very long is folded, and line count is bounded even
when unfolded, so that no single message can make a frame slow.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from PySide6.QtCore import QPointF

from engine.events import MessageView
from engine.text_spans import TextSpan
from ui.marked_text import Range, code_blocks, in_units, utf16_slice
from ui.theme import Theme
from ui.timeline.code_block import (
    CodeBlock,
    CodeLines,
    CodeShape,
    code_height,
    wanted_width,
)
from ui.timeline.row_words import body_words
from ui.timeline.text_block import TextBlock, TextShape, break_text, hung, shape_text, word_in

if TYPE_CHECKING:
    from engine.core.ids import MessageId

MAX_LAYOUTS = 2000
MAX_UNITS = 1_000_000
"""Of all texts together; the last one stays in any case."""
FOLDED_UNITS = 4000
FOLDED_LINES = 40
UNFOLDED_LINES = 2000
_BETWEEN = 5
"""Above and below a block of code."""
_STACK = re.compile(
    r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4}"
)

Shape: TypeAlias = TextShape | CodeShape
Block: TypeAlias = TextBlock | CodeBlock


class Body(Struct, frozen=True):
    """One message in blocks.  Widths and heights are logical pixels; indexes are UTF-16 units."""

    blocks: tuple[Block, ...]
    lines: CodeLines
    width: float
    height: float
    last_line_width: float
    right_to_left: bool
    ends_in_code: bool
    """Nothing can stand beside its last line."""
    stacked: bool
    """Marks are piled up on a letter, higher than a line."""
    folded: bool
    """There is more text than is laid out."""

    @property
    def code_blocks(self) -> tuple[CodeBlock, ...]:
        return tuple(block for block in self.blocks if isinstance(block, CodeBlock))

    def code_at(self, point: QPointF) -> CodeBlock | None:
        return next((code for code in self.code_blocks if code.rect.contains(point)), None)

    def index_at(self, point: QPointF) -> int:
        """The place in the text nearest to ``point``."""
        block = self._block_at(point.y())
        if point.y() < 0:
            return 0
        if isinstance(block, CodeBlock):
            if point.y() > self.height:
                return block.shape.end
            return block.index_at(point, self.lines)
        return block.index_at(point - QPointF(0, block.y))

    def character_at(self, point: QPointF) -> int | None:
        """The character under ``point``, where text wraps; None beside it and in blocks of code."""
        block = self._block_at(point.y())
        if isinstance(block, CodeBlock):
            return None
        return block.character_at(point - QPointF(0, block.y))

    def word_at(self, index: int) -> Range:
        """Begin and end of the word around an index."""
        block = self.blocks[0]
        for block in self.blocks:
            if index <= block.shape.end:
                break
        if isinstance(block, TextBlock):
            start, text = block.shape.start, block.shape.layout.text()
        else:
            start, text = block.shape.start, block.shape.text
        begin, end = word_in(text, index - start)
        return start + begin, start + end

    def _block_at(self, y: float) -> Block:
        found = self.blocks[0]
        for block in self.blocks:
            if block.y > y:
                break
            found = block
        return found


class _Cached(Struct, frozen=True):
    text: str
    spans: tuple[TextSpan, ...]
    unfolded: bool
    width: float
    shapes: tuple[Shape, ...]
    cut: bool
    units: int
    body: Body


class BodyLayouts:
    """The cache.  ``forget_all`` when fonts or colours changed."""

    def __init__(self, limit: int = MAX_LAYOUTS, *, max_units: int = MAX_UNITS) -> None:
        self._limit = limit
        self._max_units = max_units
        self._units = 0
        self._bodies: OrderedDict[MessageId, _Cached] = OrderedDict()
        self.code_lines = CodeLines()
        self.own_id = ""
        """The participant whose mentions stand out."""

    def __len__(self) -> int:
        return len(self._bodies)

    def forget_all(self) -> None:
        self._bodies.clear()
        self._units = 0
        self.code_lines.clear()

    def body(self, message: MessageView, *, width: float, unfolded: bool, theme: Theme) -> Body:
        """``message``'s text within ``width``."""
        message_id = message.message_id
        cached = self._bodies.get(message_id)
        if cached is None or not _is_of(cached, message, unfolded=unfolded):
            shapes, cut = _shaped(message, unfolded=unfolded, theme=theme, own_id=self.own_id)
            _scroll_as(() if cached is None else cached.shapes, shapes)
        elif cached.width == width:
            self._bodies.move_to_end(message_id)
            return cached.body
        else:
            shapes, cut = cached.shapes, cached.cut
        body = self._broken(shapes, width, unfolded=unfolded, cut=cut, theme=theme)
        if cached is not None:
            self._units -= cached.units
        units = sum(shape.end - shape.start for shape in shapes)
        self._units += units
        self._bodies[message_id] = _Cached(
            body_words(message), message.spans, unfolded, width, shapes, cut, units, body
        )
        self._bodies.move_to_end(message_id)
        while len(self._bodies) > max(self._limit, 1) or (
            self._units > self._max_units and len(self._bodies) > 1
        ):
            _, oldest = self._bodies.popitem(last=False)
            self._units -= oldest.units
        return body

    def _broken(
        self, shapes: tuple[Shape, ...], width: float, *, unfolded: bool, cut: bool, theme: Theme
    ) -> Body:
        most, between = UNFOLDED_LINES if unfolded else FOLDED_LINES, theme.metrics.gap(_BETWEEN)
        blocks: list[Block] = []
        y, natural, complete = 0.0, 0.0, not cut
        for shape in shapes:
            if most <= 0:
                complete = False
                break
            if blocks:
                y += between
            if isinstance(shape, TextShape):
                text = break_text(shape, width, y=y, most=most)
                blocks.append(text)
                most -= text.lines
                natural, complete = max(natural, text.width), complete and text.complete
            else:
                rows = shape.rows if unfolded else min(shape.rows, most)
                height = code_height(shape, rows, width)
                blocks.append(CodeBlock(shape, y, width, height, rows))
                most -= rows
                natural = max(natural, min(width, wanted_width(shape)))
                complete = complete and rows == shape.rows
            y += blocks[-1].height
        return _body(blocks, self.code_lines, natural, folded=not complete)


def _body(blocks: list[Block], lines: CodeLines, width: float, *, folded: bool) -> Body:
    texts = [block for block in blocks if isinstance(block, TextBlock)]
    last = blocks[-1]
    fitted = tuple(
        CodeBlock(block.shape, block.y, width, block.height, block.rows)
        if isinstance(block, CodeBlock)
        else hung(block, width)
        for block in blocks
    )
    return Body(
        blocks=fitted,
        lines=lines,
        width=width,
        height=last.y + last.height,
        last_line_width=last.last_line_width if isinstance(last, TextBlock) else width,
        right_to_left=isinstance(last, TextBlock) and last.right_to_left,
        ends_in_code=isinstance(last, CodeBlock),
        stacked=any(_STACK.search(text.shape.layout.text()) is not None for text in texts),
        folded=folded,
    )


def _scroll_as(before: Sequence[Shape], after: Sequence[Shape]) -> None:
    """Code stays scrolled as it was when more of a message is shown, or a name in it changes."""
    blocks = [shape for shape in before if isinstance(shape, CodeShape)]
    again = [shape for shape in after if isinstance(shape, CodeShape)]
    for old, new in zip(blocks, again, strict=False):
        new.scrolled = old.scrolled


def _is_of(cached: _Cached, message: MessageView, *, unfolded: bool) -> bool:
    said = (body_words(message), message.spans, unfolded)
    return (cached.text, cached.spans, cached.unfolded) == said


def _shaped(
    message: MessageView, *, unfolded: bool, theme: Theme, own_id: str
) -> tuple[tuple[Shape, ...], bool]:
    """The shapes, and whether there is more text than is shaped."""
    text = body_words(message)
    units = in_units(text)
    cut = not unfolded and len(units) > FOLDED_UNITS
    end = FOLDED_UNITS if cut else len(units)
    shapes: list[Shape] = []
    for code, begin, stop in _parts(message, units):
        if begin >= end:
            break
        words = utf16_slice(text, begin, min(stop, end))
        if code is None:
            shapes.append(shape_text(message, words, begin, theme, own_id=own_id))
        else:
            shapes.append(CodeShape(words, begin, code.target, theme))
    return tuple(shapes) or (shape_text(message, "", 0, theme),), cut


def _parts(message: MessageView, units: str) -> Iterator[tuple[TextSpan | None, int, int]]:
    """Blocks of code, and the text between them without the line ends that part them."""
    at = 0
    for span, begin, end in code_blocks(message):
        yield from _text_part(units, at, span.start, before_code=True)
        at = span.start + span.length
        yield span, begin, end
    yield from _text_part(units, at, len(units), before_code=False)


def _text_part(
    units: str, start: int, end: int, *, before_code: bool
) -> Iterator[tuple[None, int, int]]:
    if start and units[start : start + 2] == "\r\n":
        start += 2
    elif start and units[start : start + 1] == "\n":
        start += 1
    if before_code and units[start:end].endswith("\n"):
        end -= 1
    if units[start:end].strip() or (start == 0 and end == len(units)):
        yield None, start, end
