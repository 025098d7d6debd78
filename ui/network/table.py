"""A table of facts: read with the arrows and by screen readers, never edited.

Only cells whose words have changed are written, so that a refresh moves neither the chosen row nor
what is being read, and costs little.
"""

from collections.abc import Sequence

from msgspec import Struct
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableWidget, QTableWidgetItem

from ui.theme import current_theme, theme_changed

MOST_SHOWN = 8
"""Rows without scrolling."""


class Row(Struct, frozen=True, kw_only=True):
    key: str
    cells: tuple[str, ...]
    tip: str = ""


class FactTable(QTableWidget):
    chosen = Signal(str)
    """The key of the row that one is on."""

    def __init__(self, name: str, columns: Sequence[str], *, wide: int = 0) -> None:
        """``wide``: the column that takes what room is left."""
        super().__init__(0, len(columns))
        self._rows: tuple[Row, ...] = ()
        self._wide = wide
        self._needed: dict[int, int] = {}
        """How wide the table must be for each column that is left out at times."""
        self.setAccessibleName(name)
        self.setHorizontalHeaderLabels(list(columns))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setProperty("kind", "facts")
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsClickable(False)
        side = Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter
        header.setDefaultAlignment(side)
        for column in range(len(columns)):
            # Not by Qt's own measure of contents: it measures every row at every changed cell.
            mode = (
                QHeaderView.ResizeMode.Stretch if column == wide else QHeaderView.ResizeMode.Fixed
            )
            header.setSectionResizeMode(column, mode)
        self.currentCellChanged.connect(self._tell)
        theme_changed.connect(self._dress)
        self._dress()

    def leave_out(self, columns: Sequence[int], *, below: int) -> None:
        """Where there is no room, what else is said of the chosen row has these."""
        self._needed |= dict.fromkeys(columns, below)
        self._fit_columns()

    def show_rows(self, rows: Sequence[Row]) -> None:
        """In this order; the row that one is on stays it, wherever it is now."""
        if tuple(rows) == self._rows:
            return
        before = self.key()
        self._rows = tuple(rows)
        blocked = self.blockSignals(True)
        self.setRowCount(len(rows))
        self.model().blockSignals(True)  # One repaint for all cells, below.
        for number, row in enumerate(rows):
            for column, words in enumerate(row.cells):
                item = self.item(number, column)
                if item is None:
                    item = QTableWidgetItem()
                    self.setItem(number, column, item)
                if item.text() != words:
                    item.setText(words)
                if item.toolTip() != row.tip:
                    item.setToolTip(row.tip)
        self.model().blockSignals(False)
        self.viewport().update()
        self._fit_widths()
        keys = [row.key for row in rows]
        if before in keys and self.currentRow() != keys.index(before):
            self.setCurrentCell(keys.index(before), max(0, self.currentColumn()))
        self.blockSignals(blocked)
        if self.key() != before:
            self._tell()
        self._fit_height()

    def key(self) -> str:
        """Of the row that one is on; "" if there is none."""
        row = self.currentRow()
        return self._rows[row].key if 0 <= row < len(self._rows) else ""

    def _tell(self, *_cells: int) -> None:
        self.chosen.emit(self.key())

    def focusInEvent(self, event: QFocusEvent) -> None:
        if self.currentRow() < 0 and self.rowCount():
            self.setCurrentCell(0, 0)
        super().focusInEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
        for column, below in self._needed.items():
            narrow = self.width() < current_theme().metrics.scaled(below)
            if self.isColumnHidden(column) is not narrow:
                self.setColumnHidden(column, narrow)

    def _fit_widths(self) -> None:
        """As wide as the longest words; by the number of letters, so that only one is measured."""
        room = current_theme().metrics.gap(22)
        for column in range(self.columnCount()):
            heading = self.horizontalHeaderItem(column)
            if column == self._wide or heading is None:
                continue
            longest = max((row.cells[column] for row in self._rows), key=len, default="")
            metrics = self.fontMetrics()
            words = (longest, heading.text())
            width = max(metrics.horizontalAdvance(each) for each in words) + room
            if width != self.columnWidth(column):
                self.setColumnWidth(column, width)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.height())

    def _fit_height(self) -> None:
        rows = min(max(len(self._rows), 1), MOST_SHOWN)
        line = self.verticalHeader().defaultSectionSize()
        height = self.horizontalHeader().sizeHint().height() + rows * line + 4
        if height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(height)

    def _dress(self) -> None:
        theme = current_theme()
        self.setFont(theme.type.small.font)
        self.horizontalHeader().setFont(theme.type.caption.font)
        line = int(theme.type.small.line_height + theme.metrics.gap(8))
        self.verticalHeader().setMinimumSectionSize(line)
        self.verticalHeader().setDefaultSectionSize(line)
        self._fit_height()
        self._fit_columns()
        self._fit_widths()
