"""Figures as a table: what a chart or the matrix shows, for the keys and a screen reader.

Texts are made only for the cells that are asked for, so a long table costs nothing until one looks.
"""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from ui.theme import current_theme, theme_changed

_MOST_HEIGHT: Final = 260
_Index = QModelIndex | QPersistentModelIndex
_ROOT: Final = QModelIndex()


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
        words = self.rows[index.row()][index.column()]
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{self.headings[index.column()]}: {words}"
        return words if role == Qt.ItemDataRole.DisplayRole else None

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
    def __init__(self, name: str) -> None:
        super().__init__()
        self._model = _Model()
        self.setModel(self._model)
        self.setAccessibleName(name)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        theme_changed.connect(self._dress)
        self._dress()

    def show_rows(self, headings: tuple[str, ...], rows: Sequence[Sequence[str]]) -> None:
        """Where one is in the table stays."""
        model = self._model
        if headings == model.headings and len(rows) == len(model.rows):
            model.rows = rows
            if rows:
                last = model.index(len(rows) - 1, len(headings) - 1)
                model.dataChanged.emit(model.index(0, 0), last)
            return
        current = self.currentIndex()
        place = current.row(), current.column()
        model.beginResetModel()
        widths_matter = headings != model.headings
        model.headings, model.rows = headings, rows
        model.endResetModel()
        if widths_matter:
            self.resizeColumnsToContents()
        if 0 <= place[0] < len(rows) and 0 <= place[1] < len(headings):
            self.setCurrentIndex(model.index(*place))

    def texts(self) -> list[list[str]]:
        """Headings and rows, as shown."""
        return [list(self._model.headings), *(list(row) for row in self._model.rows)]

    def _dress(self) -> None:
        theme = current_theme()
        self.setFont(theme.type.caption.font)
        self.horizontalHeader().setFont(theme.type.caption.strong())
        line = int(theme.type.caption.line_height) + 6
        self.verticalHeader().setDefaultSectionSize(line)
        self.setFixedHeight(theme.metrics.scaled(_MOST_HEIGHT))
