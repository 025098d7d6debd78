"""The causal graph as a table, for screen readers and for whoever would rather read.

A row for each message, newest last; Enter looks into it.  Rows are made as they are seen, so that
ten thousand of them cost no more than a few.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from engine.core.ids import MessageId
from engine.delivery_views import DeliveryMessage
from ui.delivery.words import held_by_words, mark_words, time_words, who_words
from ui.regional import grouped
from ui.translate import tr

_Index = QModelIndex | QPersistentModelIndex
_SHOWN_ROWS: Final = 10


class _Model(QAbstractTableModel):
    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now
        self.messages: Sequence[DeliveryMessage] = ()
        self.titles = (
            tr("Lamport timestamp"),
            tr("Sender"),
            tr("Time"),
            tr("State"),
            tr("Held by"),
            tr("It names"),
        )

    def show_messages(self, messages: Sequence[DeliveryMessage]) -> None:
        if len(messages) == len(self.messages):
            self.messages = messages
            last = self.index(max(0, len(messages) - 1), len(self.titles) - 1)
            self.dataChanged.emit(self.index(0, 0), last)
            return
        self.beginResetModel()
        self.messages = messages
        self.endResetModel()

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.messages)

    def columnCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.titles)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> str | None:
        is_title = orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return self.titles[section] if is_title else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        if role not in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}:
            return None
        message, now = self.messages[index.row()], self._now()
        lamport = message.lamport_timestamp
        words = (
            tr("not known") if lamport is None else grouped(lamport),
            who_words(message),
            time_words(message, now),
            mark_words(message),
            held_by_words(message),
            grouped(len(message.names)),
        )[index.column()]
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{self.titles[index.column()]}: {words}"
        return words


class DeliveryTable(QTableView):
    chosen = Signal(str)

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self.setAccessibleName(tr("Causal order as a table"))
        self._model = _Model(now)
        self.setModel(self._model)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.verticalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setHighlightSections(False)
        self.setMinimumHeight(self.fontMetrics().height() * 2 * _SHOWN_ROWS)
        self.doubleClicked.connect(self._open)

    def show_messages(self, messages: Sequence[DeliveryMessage]) -> None:
        """The row that the keys are on stays at its message."""
        current = self._current_id()
        bar = self.verticalScrollBar()
        was_at_end = bar.value() >= bar.maximum()
        self._model.show_messages(messages)
        if current is not None:
            for row in range(len(messages) - 1, -1, -1):
                if messages[row].message_id == current:
                    self.setCurrentIndex(self._model.index(row, self.currentIndex().column()))
                    break
        elif was_at_end:
            self.scrollToBottom()

    def _current_id(self) -> MessageId | None:
        row = self.currentIndex().row()
        return self._model.messages[row].message_id if row >= 0 else None

    def _open(self, index: QModelIndex) -> None:
        self.chosen.emit(self._model.messages[index.row()].message_id)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self.currentIndex().isValid():
            self._open(self.currentIndex())
        else:
            super().keyPressEvent(event)
