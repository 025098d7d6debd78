"""A table of the delivery view: what the graph, the matrix or the charts show, for whoever reads.

The keys go through it, and Enter looks into the message of a row, if it has one.  Rows are made as
they are seen, so that ten thousand of them cost no more than a few.
"""

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar, overload

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from engine.core.ids import MessageId
from ui.theme import current_theme, theme_changed

_HEIGHT: Final = 260
_MOST_MADE: Final = 256
_Index = QModelIndex | QPersistentModelIndex
_ROOT: Final = QModelIndex()
T = TypeVar("T")


class MadeRows(Sequence[Sequence[str]], Generic[T]):
    """The words of each item, made when they are asked for."""

    def __init__(self, items: Sequence[T], words: Callable[[T], Sequence[str]]) -> None:
        self._items = items
        self._words = words
        self._made: dict[int, Sequence[str]] = {}

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Sequence[str]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Sequence[str]]: ...
    def __getitem__(self, at: int | slice) -> Sequence[str] | Sequence[Sequence[str]]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        made = self._made.get(at)
        if made is None:
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            made = self._made[at] = self._words(self._items[at])
        return made


class _Model(QAbstractTableModel):
    def __init__(self) -> None:
        super().__init__()
        self.headings: tuple[str, ...] = ()
        self.rows: Sequence[Sequence[str]] = ()

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.headings)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        if role not in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}:
            return None
        words = self.rows[index.row()][index.column()]
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{self.headings[index.column()]}: {words}"
        return words

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> str | None:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self.headings[section]
        return None


class FigureTable(QTableView):
    message_chosen = Signal(str)
    """The id of the message of a row."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._ids: Sequence[MessageId] = ()
        self._is_fitted = False
        self._model = _Model()
        self.setModel(self._model)
        self.setAccessibleName(name)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setShowGrid(False)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        across = self.horizontalHeader()
        across.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        across.setResizeContentsPrecision(0)  # By the rows in view, not by a thousand.
        across.setStretchLastSection(True)
        across.setHighlightSections(False)
        across.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.doubleClicked.connect(self._open)
        theme_changed.connect(self._dress)
        self._dress()

    def show_rows(
        self,
        headings: tuple[str, ...],
        rows: Sequence[Sequence[str]],
        ids: Sequence[MessageId] = (),
    ) -> None:
        """Where one is in the table stays; ``ids``: of the rows' messages, if they are of any."""
        model, current = self._model, self.currentIndex()
        place = self._place_of_current(ids)
        bar = self.verticalScrollBar()
        follows = bool(ids) and not current.isValid() and bar.value() >= bar.maximum()
        self._ids = ids
        if headings == model.headings and len(rows) == len(model.rows):
            model.rows = rows
            if rows:
                last = model.index(len(rows) - 1, len(headings) - 1)
                model.dataChanged.emit(model.index(0, 0), last)
        else:
            is_new = headings != model.headings or not model.rows
            column = current.column()
            model.beginResetModel()
            model.headings, model.rows = headings, rows
            model.endResetModel()
            if is_new:
                self._fit_columns()
            current = model.index(-1, column)
            self._fit_height()
        if 0 <= place < len(rows) and place != current.row():
            column = min(max(current.column(), 0), len(headings) - 1)
            self.setCurrentIndex(model.index(place, column))
        elif follows:
            self.scrollToBottom()

    def _fit_columns(self) -> None:
        """Once there is something in view: what is not shown yet would be measured as a whole."""
        self._is_fitted = self.isVisible()
        if self._is_fitted:
            self.resizeColumnsToContents()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._is_fitted:
            self._fit_columns()

    def _place_of_current(self, ids: Sequence[MessageId]) -> int:
        """The row at which one will be: that of the same message, if rows are of messages."""
        row = self.currentIndex().row()
        if not 0 <= row < len(self._ids):
            return row
        message_id = self._ids[row]
        return next((at for at in range(len(ids) - 1, -1, -1) if ids[at] == message_id), -1)

    def texts(self) -> list[list[str]]:
        """Headings and rows, as shown."""
        return [list(self._model.headings), *(list(row) for row in self._model.rows)]

    def _open(self, index: QModelIndex) -> None:
        if 0 <= index.row() < len(self._ids):
            self.message_chosen.emit(self._ids[index.row()])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self.currentIndex().isValid():
            self._open(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _dress(self) -> None:
        theme = current_theme()
        self.setFont(theme.type.caption.font)
        self.horizontalHeader().setFont(theme.type.caption.strong())
        line = int(theme.type.caption.line_height) + 6
        self.verticalHeader().setDefaultSectionSize(line)
        self._fit_height()

    def _fit_height(self) -> None:
        """As high as its rows, up to a bound, with room for the bar at its foot."""
        rows = max(len(self._model.rows), 1) * self.verticalHeader().defaultSectionSize()
        head, bar = self.horizontalHeader(), self.horizontalScrollBar()
        needed = head.sizeHint().height() + rows + bar.sizeHint().height() + 4
        self.setFixedHeight(min(needed, current_theme().metrics.scaled(_HEIGHT)))
