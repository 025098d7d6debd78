"""How the window shares its width: list and conversation, rail and conversation, or one of them.

Thresholds are logical pixels at 100 % text size; larger text needs more room for the same thing,
so they grow with it.  Where the window stood and how wide its list was is kept from one start to
the next.
"""

import base64
from enum import Enum, auto

from PySide6.QtCore import QByteArray, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMainWindow, QSplitter, QWidget

from ui.list.panel import LeftPanel
from ui.settings import UiSettings
from ui.theme import current_theme

LIST_WIDTH = 312
_LIST_LEAST, _LIST_MOST = 240, 400
_RAIL = 68
_NARROW_BELOW = 720
_RAIL_BELOW = 980
_UNBOUNDED = 16_777_215
_FRAME = QSize(0, 40)
"""What a window manager puts around a window, about."""


class Mode(Enum):
    WIDE = auto()
    RAIL = auto()
    NARROW = auto()


def mode_for(width: float, factor: float) -> Mode:
    room = width / factor
    if room < _NARROW_BELOW:
        return Mode.NARROW
    return Mode.RAIL if room < _RAIL_BELOW else Mode.WIDE


class Body(QSplitter):
    """Left panel and main area."""

    mode_changed = Signal()
    list_width_changed = Signal(int)

    def __init__(self, parent: QWidget, panel: LeftPanel, main: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._panel = panel
        self._main = main
        self._mode: Mode | None = None
        self._list_width = LIST_WIDTH
        self._peeking = False
        self._shows_main = False
        self.setChildrenCollapsible(False)
        self.setHandleWidth(1)
        self.addWidget(panel)
        self.addWidget(main)
        self.setStretchFactor(0, 0)
        self.setStretchFactor(1, 1)
        self.splitterMoved.connect(self._moved)

    @property
    def mode(self) -> Mode:
        return self._mode or Mode.WIDE

    def set_list_width(self, width: int) -> None:
        self._list_width = max(_LIST_LEAST, min(_LIST_MOST, width))
        self._apply()

    def show_main(self, shown: bool) -> None:
        """In a narrow window: the conversation rather than the list."""
        self._shows_main = shown
        self._peeking = False
        self._apply()

    def peek(self) -> None:
        """Instead of the rail, the whole list until something was chosen."""
        self._peeking = True
        self._apply()

    def refit(self) -> None:
        """The text size changed."""
        self._apply()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._apply()

    def _apply(self) -> None:
        metrics = current_theme().metrics
        mode = mode_for(self.width(), metrics.factor)
        changed, self._mode = mode is not self._mode, mode
        rail = mode is Mode.RAIL and not self._peeking
        self._panel.set_rail(rail)
        self._panel.set_alone(mode is Mode.NARROW)
        self._panel.setVisible(mode is not Mode.NARROW or not self._shows_main)
        self._main.setVisible(mode is not Mode.NARROW or self._shows_main)
        if rail:
            self._panel.setFixedWidth(metrics.scaled(_RAIL))
            self.setSizes([metrics.scaled(_RAIL), max(1, self.width() - metrics.scaled(_RAIL))])
        elif mode is Mode.NARROW:
            self._panel.setMinimumWidth(0)
            self._panel.setMaximumWidth(_UNBOUNDED)
        else:
            self._panel.setMinimumWidth(metrics.scaled(_LIST_LEAST))
            self._panel.setMaximumWidth(metrics.scaled(_LIST_MOST))
            wanted = metrics.scaled(self._list_width)
            self.setSizes([wanted, max(1, self.width() - wanted)])
        if changed:
            self.mode_changed.emit()

    def _moved(self, position: int, index: int) -> None:
        del index
        if self.mode is Mode.WIDE:
            self._list_width = int(position / current_theme().metrics.factor + 0.5)
            self.list_width_changed.emit(self._list_width)


def restore_place(window: QMainWindow, body: Body, settings: UiSettings) -> None:
    stored = settings.get("geometry") or ""
    try:
        geometry = base64.b64decode(stored, validate=True)
    except ValueError:
        geometry = b""
    if geometry:
        window.restoreGeometry(QByteArray(geometry))
    else:
        room = window.screen().availableSize() - _FRAME
        window.resize(window.size().boundedTo(room).expandedTo(window.minimumSize()))
    width = settings.get("list_width") or ""
    body.set_list_width(int(width) if width.isdecimal() else LIST_WIDTH)


def keep_place(window: QMainWindow, settings: UiSettings) -> None:
    packed = base64.b64encode(window.saveGeometry().data()).decode("ascii")
    settings.put("geometry", packed)
