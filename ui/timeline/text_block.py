"""The part of a message between two blocks of code: one ``QTextLayout`` with styles and indents.

Marks stay in the laid-out text as characters without width, so every character keeps its index and
selecting, copying and links need no second counting.  Quotes and entries of lists are lines of the
same layout that begin further in.  Shaping is the dear part; breaking into lines again is cheap.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt, QTextBoundaryFinder
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QTextCharFormat,
    QTextFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from engine.events import MessageKind, MessageView
from engine.text_spans import SpanKind, TextSpan
from ui.marked_text import BULLET, Range, in_units, utf16_slice
from ui.theme import Theme

LARGE_FACTOR = 2.4
TAB_SPACES = 4
_INDENT = 16
"""Of an entry of a list for each level, and of a quote for each depth."""
_BAR = 3
_PILL_EDGE = 2
"""The pill reaches this far beyond its words, half a space."""
_TOUCHING = 0.01
_NO_WIDTH = "\u200c"
"""Has no width, and breaks no line: the line breaks as if it were not there."""
_NARROW_SPACE = "\u202f"
"""The outermost mark of code in a line becomes its padding."""
_DISPLAYED = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "\ufffd")
_DISPLAYED |= {ord("\n"): "\u2028", ord("\r"): "\u200b", ord("\t"): "\t"}
"""Qt breaks one paragraph at line separators; other control characters are made visible."""
_BULLETS = frozenset("-*")
_LINE_END = re.compile("\n|\\Z")


def displayed(text: str) -> str:
    """The text for one paragraph of Qt's; every character keeps its index."""
    if text.isprintable():
        return text
    return text.translate(_DISPLAYED)


class Indent(Struct, frozen=True):
    """How the lines from ``start`` on begin, up to the next one."""

    start: int
    depth: int = 0
    """Of quoting: so many bars stand beside them."""
    level: float = 0
    hang: float = 0
    """Width of the marker: the second line of an entry stands below the first one's text."""


class TextShape(Struct, frozen=True):
    """Shaped text.  ``start`` and ``end``: where it stands in the message."""

    start: int
    end: int
    layout: QTextLayout
    indents: tuple[Indent, ...]
    own_mentions: tuple[Range, ...]
    """Where we are mentioned, from the text's beginning."""
    step: float
    line_height: float


class TextBlock(Struct, frozen=True):
    """Text in lines, at ``y`` of the body."""

    shape: TextShape
    y: float
    width: float
    height: float
    lines: int
    last_line_width: float
    right_to_left: bool
    complete: bool
    bars: tuple[QRectF, ...]
    """Beside quotes, from the block's top."""
    pills: tuple[QRectF, ...]
    """Behind mentions of ourselves, from the block's top."""

    def line_at(self, y: float) -> QTextLine | None:
        layout = self.shape.layout
        line = None
        for index in range(layout.lineCount()):
            line = layout.lineAt(index)
            if y < line.y() + line.height():
                break
        return line

    def index_at(self, point: QPointF) -> int:
        """In the message; ``point`` from the block's top."""
        line = self.line_at(point.y())
        if line is None or point.y() < 0:
            return self.shape.start
        if point.y() > self.height:
            return self.shape.start + line.textStart() + line.textLength()
        return self.shape.start + line.xToCursor(point.x())

    def character_at(self, point: QPointF) -> int | None:
        """Index in the message of the character under ``point``; None beside the text."""
        line = self.line_at(point.y())
        if line is None or not line.naturalTextRect().contains(point):
            return None
        where = QTextLine.CursorPosition.CursorOnCharacter
        return self.shape.start + line.xToCursor(point.x(), where)


def word_in(text: str, index: int) -> Range:
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Word, text)
    finder.setPosition(index)
    end = finder.toNextBoundary()
    begin = finder.toPreviousBoundary()
    return max(begin, 0), max(end, index)


# shaping ----------------------------------------------------------------------------------------


def shape_text(
    message: MessageView, text: str, start: int, theme: Theme, *, own_id: str = ""
) -> TextShape:
    """Shape ``text``, which stands at ``start`` of what ``message`` says.

    ``own_id``: the participant whose mentions stand out.
    """
    units = in_units(text)
    end = start + len(units)
    spans = [s for s in message.spans if s.start < end and s.start + s.length > start]
    font = _font(message, spans, theme)
    shown = displayed(_with_marks_hidden(text, spans, start))
    layout = QTextLayout(shown, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
    if starts_right_to_left(shown):
        option.setAlignment(Qt.AlignmentFlag.AlignRight)
    option.setTabStopDistance(TAB_SPACES * QFontMetricsF(font).horizontalAdvance(" "))
    layout.setTextOption(option)
    layout.setCacheEnabled(True)
    part = (start, end)
    layout.setFormats(list(_formats(message, spans, part, theme, own_id=own_id)))
    return TextShape(
        start=start,
        end=end,
        layout=layout,
        indents=tuple(_indents(units, shown, spans, start, theme)),
        own_mentions=tuple(
            (max(s.start, start) - start, min(s.start + s.length, end) - start)
            for s in spans
            if _is_own_mention(s, own_id)
        ),
        step=theme.metrics.gap(_INDENT),
        line_height=theme.type.body.line_height,
    )


def _font(message: MessageView, spans: list[TextSpan], theme: Theme) -> QFont:
    font = theme.type.body.font
    if message.kind is MessageKind.UNSUPPORTED or message.retracted:
        font = QFont(font)
        font.setItalic(True)
    elif any(span.kind is SpanKind.LARGE for span in spans):
        font = QFont(font)
        font.setPixelSize(int(font.pixelSize() * LARGE_FACTOR))
    return font


def _with_marks_hidden(text: str, spans: list[TextSpan], start: int) -> str:
    """Marks are of ASCII, so replacing them changes no index."""
    instead: list[tuple[int, int, str]] = []
    code_edges: set[int] = set()
    for span in spans:
        begin, end = span.start - start, span.start + span.length - start
        if span.kind is SpanKind.CODE:
            code_edges |= {begin, end - 1}
        elif span.kind is SpanKind.ITEM:
            if utf16_slice(text, begin, begin + 1) in _BULLETS:
                instead.append((begin, begin + 1, BULLET))
        elif span.kind is SpanKind.HIDDEN:
            marks = (_NARROW_SPACE if n in code_edges else _NO_WIDTH for n in range(begin, end))
            instead.append((begin, end, "".join(marks)))
    parts: list[str] = []
    at = 0
    for begin, end, words in instead:
        if begin >= at:
            parts += [utf16_slice(text, at, begin), words]
            at = end
    return "".join([*parts, utf16_slice(text, at, len(in_units(text)))]) if parts else text


def _formats(
    message: MessageView, spans: list[TextSpan], part: Range, theme: Theme, *, own_id: str
) -> Iterator[QTextLayout.FormatRange]:
    start, end = part
    for span in spans:
        mine = _is_own_mention(span, own_id)
        form = _own_mention(theme) if mine else _format(span.kind, theme, is_own=message.is_own)
        if form is not None:
            first, last = max(span.start, start) - start, min(span.start + span.length, end) - start
            yield _styled(first, last, form)
            if mine:
                yield _styled(max(0, first - 1), first, _beside_pill())
                yield _styled(last, last + 1, _beside_pill())
            if span.kind is SpanKind.CODE:
                for edge in (first, last - 1):
                    yield _styled(edge, edge + 1, _padding(theme))
    for first, last in _bold_and_italic(spans, part):
        yield _styled(first - start, last - start, _slanted_bold())


def _bold_and_italic(spans: list[TextSpan], part: Range) -> Iterator[Range]:
    """Spans are in the order of their beginnings."""
    bold = [span for span in spans if span.kind in {SpanKind.BOLD, SpanKind.MENTION}]
    for italic in (span for span in spans if span.kind is SpanKind.ITALIC):
        end = min(italic.start + italic.length, part[1])
        for other in bold:
            if other.start >= end:
                break
            first = max(italic.start, other.start, part[0])
            last = min(end, other.start + other.length)
            if first < last:
                yield first, last


def _slanted_bold() -> QTextCharFormat:
    """No face is both; from this weight on Qt makes the slanted one bolder by itself."""
    form = QTextCharFormat()
    form.setFontWeight(QFont.Weight.Bold)
    return form


def _styled(start: int, end: int, form: QTextCharFormat) -> QTextLayout.FormatRange:
    styled = QTextLayout.FormatRange()
    styled.start, styled.length, styled.format = start, end - start, form
    return styled


def _padding(theme: Theme) -> QTextCharFormat:
    """A narrow space is narrow only in a font whose characters differ in width."""
    form = QTextCharFormat()
    form.setFontFamilies(theme.type.body.font.families())
    return form


def _is_own_mention(span: TextSpan, own_id: str) -> bool:
    return span.kind is SpanKind.MENTION and span.target == own_id


def _own_mention(theme: Theme) -> QTextCharFormat:
    """Its pill is painted behind it."""
    form = QTextCharFormat()
    form.setForeground(theme.onAccent)
    form.setFontWeight(QFont.Weight.DemiBold)
    return form


def _beside_pill() -> QTextCharFormat:
    """The pill takes room of the characters beside it, which are spaces mostly: they get more."""
    form = QTextCharFormat()
    form.setFontLetterSpacingType(QFont.SpacingType.AbsoluteSpacing)
    form.setFontLetterSpacing(_PILL_EDGE)
    return form


def _format(kind: SpanKind, theme: Theme, *, is_own: bool) -> QTextCharFormat | None:
    form = QTextCharFormat()
    match kind:
        case SpanKind.LINK:
            form.setForeground(theme.accentInk)
            form.setFontUnderline(True)
        case SpanKind.MENTION:
            form.setForeground(theme.accentInk)
            form.setFontWeight(QFont.Weight.DemiBold)
        case SpanKind.BOLD:
            form.setFontWeight(QFont.Weight.DemiBold)  # No face here is bolder; Qt would smear it.
        case SpanKind.ITALIC:
            form.setFontItalic(True)
        case SpanKind.STRIKE:
            form.setFontStrikeOut(True)
        case SpanKind.QUOTE:
            form.setForeground(theme.ownMeta if is_own else theme.ink2)
        case SpanKind.CODE:
            font = theme.type.code.font
            form.setFontFamilies(font.families())
            form.setProperty(QTextFormat.Property.FontPixelSize, font.pixelSize())
            form.setBackground(theme.code)
            form.setForeground(theme.ink)
        case SpanKind.CODE_BLOCK | SpanKind.ITEM | SpanKind.LARGE | SpanKind.HIDDEN:
            return None
        case _:
            assert_never(kind)
    return form


def _indents(
    units: str, shown: str, spans: list[TextSpan], start: int, theme: Theme
) -> Iterator[Indent]:
    """For each line that begins further in, and for the one after it."""
    depths: dict[int, int] = {}
    markers: dict[int, TextSpan] = {}
    for span in spans:
        begin = max(0, span.start - start)
        if span.kind is SpanKind.QUOTE:
            stop = min(len(units), span.start + span.length - start)
            while begin < stop:
                depths[begin] = int(span.target)
                begin = units.find("\n", begin, stop) + 1 or stop
        elif span.kind is SpanKind.ITEM:
            markers[units.rfind("\n", 0, begin) + 1] = span
    metrics, step = QFontMetricsF(theme.type.body.font), theme.metrics.gap(_INDENT)
    for line in sorted({*depths, *markers}):
        marker = markers.get(line)
        level = hang = 0.0
        if marker is not None:
            begin = marker.start - start
            words = utf16_slice(shown, begin, begin + marker.length)
            hang = metrics.horizontalAdvance(words)
            level = int(marker.target) * step
        yield Indent(line, depth=depths.get(line, 0), level=level, hang=hang)
        after = _LINE_END.search(units, line)
        below = len(units) if after is None else after.end()
        if below < len(units) and below not in depths and below not in markers:
            yield Indent(below)


# lines ------------------------------------------------------------------------------------------


def break_text(shape: TextShape, width: float, *, y: float, most: int) -> TextBlock:
    """Break ``shape`` into at most ``most`` lines."""
    right_to_left = starts_right_to_left(shape.layout.text())
    block = _broken(shape, width, y=y, most=most, right_to_left=right_to_left)
    if right_to_left:  # Lines hang on the right edge, so the edge must be where the text ends.
        block = _broken(shape, block.width + 1, y=y, most=most, right_to_left=True)
    return block


def hung(block: TextBlock, width: float) -> TextBlock:
    """What runs from right to left hangs on the right edge of the whole body, ``width`` away."""
    if not block.right_to_left or block.width + 1 >= width:
        return block
    return _broken(block.shape, width, y=block.y, most=block.lines, right_to_left=True)


def _broken(
    shape: TextShape, width: float, *, y: float, most: int, right_to_left: bool
) -> TextBlock:
    layout, starts = shape.layout, [indent.start for indent in shape.indents]
    natural, top, last, count, complete = 0.0, 0.0, 0.0, 0, False
    bars: list[QRectF] = []
    pills: list[QRectF] = []
    layout.beginLayout()
    while count < most:
        line = layout.createLine()
        if not line.isValid():
            complete = True
            break
        at = bisect_right(starts, line.textStart()) - 1 if starts else -1
        indent = shape.indents[at] if at >= 0 else Indent(0)
        inset = indent.depth * shape.step + indent.level
        if line.textStart() != indent.start:
            inset += indent.hang
        line.setLineWidth(max(width - inset, shape.step))
        taken = max(shape.line_height, line.height())
        x = 0.0 if right_to_left else inset
        line.setPosition(QPointF(x, top + (taken - line.height()) / 2))
        for depth in range(indent.depth):
            bar_x = width - depth * shape.step - _BAR if right_to_left else depth * shape.step
            _add_bar(bars, QRectF(bar_x, top, _BAR, taken))
        pills += _pills(line, shape.own_mentions)
        last = inset + line.naturalTextWidth()
        natural = max(natural, last)
        top += taken
        count += 1
    layout.endLayout()
    if not complete and count:
        line = layout.lineAt(count - 1)
        complete = line.textStart() + line.textLength() >= shape.end - shape.start
    return TextBlock(
        shape=shape,
        y=y,
        width=natural,
        height=max(top, shape.line_height),
        lines=count,
        last_line_width=last,
        right_to_left=right_to_left,
        complete=complete,
        bars=tuple(bars),
        pills=tuple(pills),
    )


def _pills(line: QTextLine, own_mentions: tuple[Range, ...]) -> Iterator[QRectF]:
    first, end = line.textStart(), line.textStart() + line.textLength()
    for mention in own_mentions:
        begin, stop = max(mention[0], first), min(mention[1], end)
        if begin < stop:
            edges = (_x_of(line, begin), _x_of(line, stop))
            pill = QRectF(min(edges), line.y(), abs(edges[1] - edges[0]), line.height())
            yield pill.adjusted(-_PILL_EDGE, 0, _PILL_EDGE, 0)


def _x_of(line: QTextLine, index: int) -> float:
    found = line.cursorToX(index)
    x = found[0] if isinstance(found, tuple) else found
    return float(x) if isinstance(x, float | int) else 0.0


def _add_bar(bars: list[QRectF], bar: QRectF) -> None:
    """Bars of lines that follow each other are one."""
    for index in range(len(bars) - 1, max(-1, len(bars) - 4), -1):
        above = bars[index]
        if above.x() == bar.x() and abs(above.bottom() - bar.top()) < _TOUCHING:
            bars[index] = above.united(bar)
            return
    bars.append(bar)


def starts_right_to_left(text: str) -> bool:
    """Whether the first strong character says so, as Qt's automatic direction decides."""
    for character in text[:256]:
        direction = unicodedata.bidirectional(character)
        if direction in {"R", "AL"}:
            return True
        if direction == "L":
            return False
    return False
