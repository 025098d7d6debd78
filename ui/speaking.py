"""What a screen reader is told beyond what Qt tells it of widgets and of the focus.

Where the keys stay in a field while something else moves, as in a search, the words are announced.
A list that gets the focus says so to Qt's own satisfaction, but not on which of its rows one is.
"""

from functools import partial

from PySide6.QtCore import QTimer
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleEvent
from PySide6.QtWidgets import QListView, QWidget


def announce(widget: QWidget, words: str) -> None:
    """After what is being said."""
    if words:
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, words))


def tell_row(rows: QListView) -> None:
    """For ``focusInEvent``: Qt tells of the list once that is over, and of the row comes after."""
    QTimer.singleShot(0, rows, partial(_tell_row, rows))


def _tell_row(rows: QListView) -> None:
    row = rows.currentIndex().row()
    if row >= 0 and rows.hasFocus():
        event = QAccessibleEvent(rows, QAccessible.Event.Focus)
        event.setChild(row)
        QAccessible.updateAccessibility(event)
