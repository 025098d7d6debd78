"""A block of code in a message: lines of one height that do not wrap and scroll sideways.

Where a line stands follows from its number, so only lines in view are ever laid out and coloured,
and a block of thousands costs no more than one that fills the view.  A line of more than
``LONGEST_LINE`` units goes on in the next one.
"""

from array import array
from collections import OrderedDict
from itertools import islice

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QTextCharFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from ui.marked_text import LOW_UNIT, in_units, utf16
from ui.theme import Theme
from ui.theme.colours import Colours
from ui.timeline.code_colours import CodeRole, coloured
from ui.timeline.text_block import TAB_SPACES, displayed

LONGEST_LINE = 500
MAX_LINES_LAID_OUT = 1000
"""In all blocks of code together."""
_MOST_COLOURED = 40
"""Parts of a line: what has more is data, and dear to draw."""
_PAD_X, _PAD_Y = 10, 8
_BUTTON = 26
_BUTTON_INSET = 4
_BAR_REACH = 12
"""Of the bar, from the lower edge of the box."""
_MEASURED = 3
"""The longest lines, one of which is the widest."""


class CodeShape:
    """The lines of a block, and how far it is scrolled.  ``start``: where it stands in the message.

    Hashable by identity: its lines are kept by it.
    """

    def __init__(self, code: str, start: int, language: str, theme: Theme) -> None:
        self.start = start
        self.language = language
        self.theme = theme
        self.line_height = theme.type.code.line_height
        self.scrolled = 0.0
        self._units = utf16(code)
        self._starts = _line_starts(in_units(code))
        self.rows = len(self._starts) - 1
        self.content_width = self._widest()

    @property
    def end(self) -> int:
        return self.start + len(self._units) // 2

    @property
    def text(self) -> str:
        return self._units.decode("utf-16-le", "replace")

    def line_start(self, row: int) -> int:
        """In the message."""
        return self.start + self._starts[row]

    def line(self, row: int) -> str:
        units = self._units[2 * self._starts[row] : 2 * self._starts[row + 1]]
        return units.decode("utf-16-le", "replace").rstrip("\n")

    def _widest(self) -> float:
        lengths = sorted(
            (self._starts[row + 1] - self._starts[row], row) for row in range(self.rows)
        )
        metrics = QFontMetricsF(self.theme.type.code.font)
        lines = (self.line(row).expandtabs(TAB_SPACES) for _, row in lengths[-_MEASURED:])
        return max(metrics.horizontalAdvance(displayed(line)) for line in lines)


def _line_starts(units: str) -> "array[int]":
    """Where each line begins, and as the last one where the code ends."""
    starts = array("I", [0])
    at = 0
    while at < len(units):
        end = units.find("\n", at)
        end = len(units) if end < 0 else end + 1
        while end - at > LONGEST_LINE:
            at += LONGEST_LINE + (units[at + LONGEST_LINE] == LOW_UNIT)
            starts.append(at)
        at = end
        starts.append(at)
    if units.endswith("\n"):
        starts.append(at)
    return starts


class CodeLines:
    """An LRU of laid-out lines, shared by all blocks."""

    def __init__(self, limit: int = MAX_LINES_LAID_OUT) -> None:
        self._limit = limit
        self._lines: OrderedDict[tuple[CodeShape, int], QTextLayout] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lines)

    def clear(self) -> None:
        self._lines.clear()

    def line(self, shape: CodeShape, row: int) -> QTextLayout:
        key = (shape, row)
        layout = self._lines.get(key)
        if layout is None:
            layout = self._lines[key] = _laid_out(shape, row)
            while len(self._lines) > self._limit:
                self._lines.popitem(last=False)
        else:
            self._lines.move_to_end(key)
        return layout


def _laid_out(shape: CodeShape, row: int) -> QTextLayout:
    text, theme = shape.line(row), shape.theme
    font = theme.type.code.font
    layout = QTextLayout(displayed(text), font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    option.setTextDirection(Qt.LayoutDirection.LeftToRight)
    option.setTabStopDistance(TAB_SPACES * QFontMetricsF(font).horizontalAdvance(" "))
    layout.setTextOption(option)
    layout.setCacheEnabled(True)
    units, ranges = in_units(text), []
    if units == text:  # Beyond the first plane indexes differ: such a line has one colour.
        for part in islice(coloured(text, shape.language), _MOST_COLOURED):
            styled = QTextLayout.FormatRange()
            styled.start, styled.length = part.start, part.end - part.start
            form = QTextCharFormat()
            form.setForeground(code_colour(part.role, theme))
            styled.format = form
            ranges.append(styled)
    layout.setFormats(ranges)
    layout.beginLayout()
    line = layout.createLine()
    if line.isValid():
        line.setLineWidth(LONGEST_LINE * font.pixelSize() * 4.0)
        line.setPosition(QPointF(0, (shape.line_height - line.height()) / 2))
    layout.endLayout()
    return layout


def code_colour(role: CodeRole, colours: Colours) -> QColor:
    """Of the colours for names: they can be told apart and read in every theme."""
    _rust, _ochre, _olive, pine, _petrol, _azure, indigo, _violet, plum, _rose = colours.names
    match role:
        case CodeRole.QUIET:
            return colours.ink3
        case CodeRole.TEXT:
            return plum
        case CodeRole.NUMBER:
            return pine
        case CodeRole.NAME:
            return indigo


class CodeBlock(Struct, frozen=True):
    """``rows`` lines of code in a box, at ``y`` of the body."""

    shape: CodeShape
    y: float
    width: float
    height: float
    rows: int

    @property
    def rect(self) -> QRectF:
        return QRectF(0, self.y, self.width, self.height)

    @property
    def inner(self) -> QRectF:
        """Where lines are seen, in the body."""
        pad_x, pad_y = _pads(self.shape.theme)
        return self.rect.adjusted(pad_x, pad_y, -pad_x, -pad_y)

    @property
    def copy_rect(self) -> QRectF:
        side = self.shape.theme.metrics.scaled(_BUTTON)
        rect = self.rect
        return QRectF(rect.right() - side - _BUTTON_INSET, rect.top() + _BUTTON_INSET, side, side)

    @property
    def overflow(self) -> float:
        """How much wider the lines are than the room for them."""
        free = self.copy_rect.width() + _BUTTON_INSET
        return max(0.0, self.shape.content_width + free - self.inner.width())

    @property
    def scrolled(self) -> float:
        return min(self.shape.scrolled, self.overflow)

    def scroll_by(self, pixels: float) -> bool:
        """Whether it moved."""
        before = self.scrolled
        self.shape.scrolled = max(0.0, min(self.overflow, before + pixels))
        return self.shape.scrolled != before

    @property
    def bar(self) -> QRectF | None:
        """The mark below the lines that shows which part of them is seen; None if it is all."""
        if not self.overflow:
            return None
        inner, rect = self.inner, self.rect
        share = inner.width() / (inner.width() + self.overflow)
        width = max(24.0, inner.width() * share)
        x = inner.left() + (inner.width() - width) * self.scrolled / self.overflow
        return QRectF(x, rect.bottom() - 6, width, 3)

    def is_over_bar(self, point: QPointF) -> bool:
        rect = self.rect
        rect.setTop(rect.bottom() - _BAR_REACH)
        return self.overflow > 0 and rect.contains(point)

    def drag_by(self, pixels: float) -> None:
        """Move the bar."""
        bar = self.bar
        if bar is not None:
            self.scroll_by(pixels * self.overflow / max(1.0, self.inner.width() - bar.width()))

    def rows_between(self, top: float, bottom: float) -> range:
        """Rows that are seen between two heights of the body."""
        inner, line = self.inner, self.shape.line_height
        first = max(0, int((top - inner.top()) // line))
        last = min(self.rows, int((bottom - inner.top()) // line) + 1)
        return range(first, max(first, last))

    def row_top(self, row: int) -> float:
        return self.inner.top() + row * self.shape.line_height

    def place_at(self, point: QPointF) -> tuple[int, float]:
        """Row and x within its line; ``point`` in the body."""
        row = int((point.y() - self.inner.top()) // self.shape.line_height)
        row = max(0, min(self.rows - 1, row))
        return row, point.x() - self.inner.left() + self.scrolled

    def index_at(self, point: QPointF, lines: CodeLines) -> int:
        """In the message; ``point`` in the body."""
        row, x = self.place_at(point)
        line: QTextLine = lines.line(self.shape, row).lineAt(0)
        return self.shape.line_start(row) + line.xToCursor(x)


def _pads(theme: Theme) -> tuple[float, float]:
    return theme.metrics.gap(_PAD_X), theme.metrics.gap(_PAD_Y)


def wanted_width(shape: CodeShape) -> float:
    pad_x, _ = _pads(shape.theme)
    button = shape.theme.metrics.scaled(_BUTTON) + _BUTTON_INSET
    return shape.content_width + 2 * pad_x + button


def code_height(shape: CodeShape, rows: int, width: float) -> float:
    """Of a box of ``rows`` lines; higher by a little if it scrolls."""
    _, pad_y = _pads(shape.theme)
    scrolls = wanted_width(shape) > width
    return rows * shape.line_height + 2 * pad_y + (2 if scrolls else 0)
