"""The cells of the picker: emoji side by side, of which only those in view are drawn.

Drawing a coloured glyph for the first time costs up to a millisecond, so a paint draws new ones
only as long as its budget lasts and leaves the others to the next; meanwhile they are blank.
Without a font for emoji a cell shows the name.  Some cells may stand above the others, in rows of
their own; what is left of these rows stays free.
"""

import math
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from ui.emoji.fonts import draw_emoji, has_emoji_font, is_drawn
from ui.emoji.table import Emoji
from ui.speaking import tell_row
from ui.theme import Radius, current_theme, theme_changed
from ui.tips import plain_tip
from ui.translate import tr

CELL: Final = 38
_SIGN: Final = 28
_NAMED_COLUMNS: Final = 2
_PAINT_BUDGET_S: Final = 0.006
_CELL_ROLE = int(Qt.ItemDataRole.UserRole)
_Index = QModelIndex | QPersistentModelIndex
_Keys = Qt.Key


class Cell(Struct, frozen=True):
    """``text`` is what is picked: the emoji in the chosen skin tone."""

    text: str
    name: str
    code: str = ""


_FREE: Final = Cell("", "")
"""A place at the end of a row where no emoji is."""


def cell_of(emoji: Emoji, text: str) -> Cell:
    return Cell(text, emoji.name, emoji.codes[0])


class _Model(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self.cells: Sequence[Cell] = ()

    def show(self, cells: Sequence[Cell]) -> None:
        self.beginResetModel()
        self.cells = cells
        self.endResetModel()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else len(self.cells)

    def flags(self, index: _Index) -> Qt.ItemFlag:
        is_free = index.isValid() and not self.cells[index.row()].text
        return Qt.ItemFlag.NoItemFlags if is_free else super().flags(index)

    def data(self, index: _Index, role: int = 0) -> object:
        cell = self.cells[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return cell.name
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(cell.name)
            case _ if role == _CELL_ROLE:
                return cell
            case _:
                return None


class _Delegate(QStyledItemDelegate):
    def __init__(self, grid: "EmojiGrid") -> None:
        super().__init__(grid)
        self._grid = grid

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return self._grid.gridSize()

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        cell = index.data(_CELL_ROLE)
        if not isinstance(cell, Cell):
            return
        theme = current_theme()
        box = QRectF(option.rect)
        painter.save()
        if self._grid.ends_above(index.row()):
            painter.fillRect(QRectF(box.left(), box.bottom() - 1, box.width(), 1), theme.line)
        if not cell.text:
            painter.restore()
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = theme.metrics.gap(Radius.GROUPED)
        current = bool(option.state & QStyle.StateFlag.State_Selected)
        if current or option.state & QStyle.StateFlag.State_MouseOver:
            focused = current and self._grid.hasFocus()
            painter.setPen(
                QPen(theme.focus, theme.focus_width) if focused else QPen(Qt.PenStyle.NoPen)
            )
            painter.setBrush(theme.selected if current else theme.hover)
            painter.drawRoundedRect(box.adjusted(2, 2, -2, -2), radius, radius)
        if has_emoji_font():
            side = theme.metrics.scaled(_SIGN)
            centre = box.center()
            square = QRectF(centre.x() - side / 2, centre.y() - side / 2, side, side)
            if self._grid.may_draw(cell.text, side):
                draw_emoji(painter, square, cell.text)
        else:
            self._name(painter, box, cell.name)
        painter.restore()

    def _name(self, painter: QPainter, box: QRectF, name: str) -> None:
        theme = current_theme()
        font = theme.type.caption.font
        room = box.adjusted(6, 0, -6, 0)
        elided = QFontMetricsF(font).elidedText(name, Qt.TextElideMode.ElideRight, room.width())
        painter.setFont(font)
        painter.setPen(theme.ink)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, elided)


class EmojiGrid(QListView):
    chosen = Signal(str)
    current_changed = Signal()
    left_upward = Signal()
    left_downward = Signal()
    typed = Signal(str)
    """Letters: the search is meant."""

    def __init__(self) -> None:
        super().__init__()
        self._model = _Model()
        self._above: Sequence[Cell] = ()
        self._others: Sequence[Cell] = ()
        self._begin = 0
        """The row of the first of the others."""
        self._paint_until = 0.0
        self._postponed = False
        self.setModel(self._model)
        self.setItemDelegate(_Delegate(self))
        self.setAccessibleName(tr("Emoji"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setMovement(QListView.Movement.Static)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.viewport().setAutoFillBackground(False)
        self.clicked.connect(lambda index: self._choose(index.row()))
        self.entered.connect(lambda _index: self.current_changed.emit())
        self.selectionModel().currentChanged.connect(lambda *_: self.current_changed.emit())
        theme_changed.connect(self._fit)
        self._fit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        tell_row(self)

    # --- what it shows ----------------------------------------------------------------------------

    def show_cells(self, cells: Sequence[Cell], above: Sequence[Cell] = ()) -> None:
        """``above``: cells before them, in rows of their own."""
        self._above, self._others = above, cells
        self._fill()
        self.scrollToTop()

    def _fill(self) -> None:
        free = -len(self._above) % self.columns()
        self._begin = len(self._above) + free
        self._model.show((*self._above, *(_FREE,) * free, *self._others))

    def ends_above(self, row: int) -> bool:
        """Whether it is in the last row above the others."""
        return self._begin - self.columns() <= row < self._begin

    @property
    def cells(self) -> Sequence[Cell]:
        return self._model.cells

    def cell_in_question(self) -> Cell | None:
        """Under the pointer, or else the current one."""
        pointed = self.indexAt(self.viewport().mapFromGlobal(self.cursor().pos()))
        is_pointed = bool(pointed.flags()) and self.underMouse()
        index = pointed if is_pointed else self.currentIndex()
        return self._model.cells[index.row()] if index.isValid() else None

    def go_to(self, row: int) -> None:
        """Make it the current one; counted from the end if negative."""
        count = len(self._model.cells)
        if count:
            self.setCurrentIndex(self._model.index(row % count))

    def columns(self) -> int:
        return max(1, self._width() // self.gridSize().width())

    def _width(self) -> int:
        """Qt breaks the row before a cell that would end at the very edge."""
        return self.viewport().width() - 1

    def _fit(self) -> None:
        """As many columns as fit, over the whole width."""
        least = current_theme().metrics.scaled(CELL)
        width = self._width()
        columns = max(1, width // least) if has_emoji_font() else _NAMED_COLUMNS
        size = QSize(max(1, width // columns), least)
        if size != self.gridSize():
            self.setGridSize(size)
        if self._above and self._begin != math.ceil(len(self._above) / columns) * columns:
            self._fill()
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()
        super().resizeEvent(event)

    # --- painting within a budget -----------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        self._paint_until = time.perf_counter() + _PAINT_BUDGET_S
        self._postponed = False
        super().paintEvent(event)
        if self._postponed:
            QTimer.singleShot(0, self.viewport().update)

    def may_draw(self, text: str, side: int) -> bool:
        if is_drawn(text, side, self.devicePixelRatioF()):
            return True
        in_time = time.perf_counter() < self._paint_until
        self._postponed = self._postponed or not in_time
        return in_time

    # --- keys -------------------------------------------------------------------------------------

    def _after(self, row: int) -> int:
        return self._begin if row + 1 == len(self._above) else row + 1

    def _taken(self, row: int) -> int:
        """The last row up to this one that is not free."""
        return row if row < 0 or row >= self._begin else min(row, len(self._above) - 1)

    def _choose(self, row: int) -> None:
        if 0 <= row < len(self._model.cells) and self._model.cells[row].text:
            self.chosen.emit(self._model.cells[row].text)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row, count, columns = self.currentIndex().row(), len(self._model.cells), self.columns()
        match event.key():
            case _Keys.Key_Return | _Keys.Key_Enter | _Keys.Key_Space:
                self._choose(row)
            case _Keys.Key_Up if row < columns:
                self.left_upward.emit()
            case _Keys.Key_Down if row // columns == math.ceil(count / columns) - 1:
                self.left_downward.emit()
            case _Keys.Key_Down:
                self.go_to(self._taken(min(row + columns, count - 1)))
            case _Keys.Key_Up:
                self.go_to(self._taken(row - columns))
            case _Keys.Key_Left if row > 0:
                self.go_to(self._taken(row - 1))
            case _Keys.Key_Right if row < count - 1:
                self.go_to(self._after(row))
            case _Keys.Key_Left | _Keys.Key_Right:
                pass
            case _ if event.text().isalnum() and not event.modifiers() & _HELD:
                self.typed.emit(event.text())
            case _:
                super().keyPressEvent(event)


_HELD = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
