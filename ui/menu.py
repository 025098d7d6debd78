"""Menus that float: rounded, with the one shadow, and opening towards the inside of their window.

A shadow and soft corners need a screen that blends windows.  Every desktop's does but a bare X11,
where the menu is cut out along its corners and has no shadow.
"""

import ctypes
from functools import cache

from PySide6.QtCore import QMarginsF, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import (
    QGuiApplication,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QRegion,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QWidget

from ui.shadow import draw_shadow
from ui.theme import SHADOW_REACH, Radius, current_theme

_SHADOW = QMarginsF(SHADOW_REACH, SHADOW_REACH, SHADOW_REACH, SHADOW_REACH)
_FROM_EDGE = 8
"""Between a menu and the edge of its window."""


@cache
def blends_windows() -> bool:
    """Whether what is transparent shows what lies behind it."""
    if QGuiApplication.platformName() != "xcb":
        return True
    try:
        x11 = ctypes.CDLL("libX11.so.6")
        x11.XOpenDisplay.restype = ctypes.c_void_p
        display = ctypes.c_void_p(x11.XOpenDisplay(None))
        if display.value is None:
            return False
        name = f"_NET_WM_CM_S{x11.XDefaultScreen(display)}".encode()
        owner = x11.XGetSelectionOwner(display, ctypes.c_ulong(x11.XInternAtom(display, name, 0)))
        x11.XCloseDisplay(display)
    except (OSError, AttributeError):
        return False
    return bool(owner)


class Menu(QMenu):
    """Use ``submenu`` for what opens beside it: Qt's own would be square."""

    def __init__(self, parent: QWidget, title: str = "") -> None:
        super().__init__(title, parent)
        self._float()

    def _float(self) -> None:
        flags = Qt.WindowType.FramelessWindowHint | Qt.WindowType.NoDropShadowWindowHint
        self.setWindowFlags(self.windowFlags() | flags)
        if blends_windows():
            self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
            self.setProperty("floats", "yes")

    def submenu(self, title: str) -> "Menu":
        made = Menu(self, title)
        self.addMenu(made)
        return made

    def setVisible(self, visible: bool) -> None:
        if visible and not self.isVisible():
            self.move(self._inside(self.geometry()))
        super().setVisible(visible)

    def _inside(self, place: QRect) -> QPoint:
        """Where it opens inwards: not beyond the right or lower edge of its window.

        Where there is no room below it stands above the place where it was asked for.  Of a window
        that stands beyond an edge of the screen, only what is on the screen counts.
        """
        above: QWidget | None = self
        while isinstance(above, QMenu):
            above = above.parentWidget()
        if above is None or isinstance(self.parentWidget(), QMenu):
            return place.topLeft()
        window = above.window().geometry()
        if not window.contains(place.topLeft()):
            return place.topLeft()  # Of an icon beside the clock, for one.
        seen = window.intersected(above.screen().availableGeometry())
        right = window.right() - _FROM_EDGE
        left = max(seen.left(), right - place.width())
        bottom, top = window.bottom() - _FROM_EDGE, place.top()
        if place.bottom() > bottom and top - place.height() >= seen.top():
            top -= place.height()
        return QPoint(min(place.left(), left), top)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not blends_windows():
            radius = current_theme().metrics.gap(Radius.ROW)
            shape = QPainterPath()
            shape.addRoundedRect(QRectF(self.rect()), radius, radius)
            self.setMask(QRegion(shape.toFillPolygon().toPolygon()))

    def paintEvent(self, event: QPaintEvent) -> None:
        if blends_windows():
            box = QRectF(self.rect()).marginsRemoved(_SHADOW)
            painter = QPainter(self)
            draw_shadow(painter, box, current_theme().metrics.gap(Radius.ROW), current_theme())
            painter.end()
        super().paintEvent(event)
