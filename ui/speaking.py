"""What a screen reader is told beyond what Qt tells it of widgets and of the focus.

Where the keys stay in a field while something else moves, as in a search, the words are announced.
A list that gets the focus says so to Qt's own satisfaction, but not on which of its rows one is.
A widget that Qt does not know is a "filler" to it, which a reader may pass over: ``told_as``.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from PySide6.QtCore import QTimer
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAccessibleEvent,
    QAccessibleInterface,
)
from PySide6.QtWidgets import QAccessibleWidget, QListView, QWidget
from shiboken6 import isValid

W = TypeVar("W", bound=QWidget)


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


# --- what a painted widget is ---------------------------------------------------------------------


_roles: Final[dict[type[QWidget], QAccessible.Role]] = {}
_told: Final[list[QAccessibleWidget]] = []
"""What Qt has: it deletes them after their widget, and would find them freed by then."""


def told_as(role: QAccessible.Role) -> Callable[[type[W]], type[W]]:
    """To a screen reader widgets of the class are this, and not a filler."""

    def noted(kind: type[W]) -> type[W]:
        if not _roles:
            QAccessible.installFactory(_interface_for)
        _roles[kind] = role
        return kind

    return noted


def _interface_for(_name: str, target: object) -> QAccessibleInterface | None:
    """Qt's factory.  A new one each time, since Qt deletes each that it got."""
    role = _roles.get(type(target)) if isinstance(target, QWidget) else None
    if role is None or not isinstance(target, QWidget):
        return None
    _told[:] = [one for one in _told if isValid(one)]
    _told.append(QAccessibleWidget(target, role))
    return _told[-1]
