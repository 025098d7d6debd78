"""Shares the main area's width: the conversation, and beside it or over it one side panel.

Beside it where both have room; else the panel takes the whole area and the conversation is hidden,
so that what is not seen is not marked as read.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from ui.motion import Movement
from ui.theme import current_theme, theme_changed

SIDE_WIDTH = 340
_MAIN_LEAST = 440
_SLIDE = 28


class Dock(QWidget):
    covering_changed = Signal()

    def __init__(self, main: QWidget) -> None:
        super().__init__()
        self._main = main
        self._side: QWidget | None = None
        self._covers = False
        self._slide = Movement(self)
        self._slide.changed.connect(self._move_side)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addWidget(main, 1)
        theme_changed.connect(self._fit)

    @property
    def side(self) -> QWidget | None:
        return self._side

    @property
    def covers(self) -> bool:
        """Whether a panel hides the conversation."""
        return self._covers

    def show_side(self, side: QWidget | None) -> None:
        """None: no panel.  One that is not shown any more is deleted."""
        before = self._side
        if side is before:
            return
        self._slide.rest()
        if self._side is not None:
            self._row.removeWidget(self._side)
            self._side.hide()
            self._side.deleteLater()
        self._side = side
        if side is not None:
            self._row.addWidget(side)
        self._fit()
        if side is not None:
            side.show()
        if side is not None and before is None:
            self._slide.appear()

    def _move_side(self) -> None:
        """Its place and size are the layout's; only on the way in it stands beside its place."""
        side = self._side
        if side is None:
            return
        if self._slide.value >= 1:
            self._row.invalidate()
            self._row.activate()
            return
        away = round((1 - self._slide.value) * current_theme().metrics.scaled(_SLIDE))
        mirrored = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        side.move(-away if mirrored else self.width() - side.width() + away, side.y())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        metrics = current_theme().metrics
        wanted, side = metrics.scaled(SIDE_WIDTH), self._side
        covers = side is not None and self.width() < wanted + metrics.scaled(_MAIN_LEAST)
        self._main.setVisible(not covers)
        if side is not None:
            if covers:
                side.setMinimumWidth(0)
                side.setMaximumWidth(16_777_215)
            else:
                side.setFixedWidth(wanted)
            self._row.setStretchFactor(side, int(covers))
        if covers != self._covers:
            self._covers = covers
            self.covering_changed.emit()
