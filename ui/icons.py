"""Icons: SVG outlines coloured by the theme and sharp at every scale of the screen."""

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from assets import app_icon_path, app_icon_pictures, icon_path
from ui.mirrored import mirror, upright

_SCREEN_SCALES = (1.0, 2.0, 3.0)
_KEPT_PIXMAPS = 512
_DIRECTED = frozenset({"back", "forward", "leave", "next", "quit", "reply", "send"})
"""They point along the line, whichever way it runs."""


@lru_cache(maxsize=64)
def _outline(name: str) -> str:
    return icon_path(name).read_text(encoding="utf-8")


@lru_cache(maxsize=_KEPT_PIXMAPS)
def _pixmap(name: str, colour: str, size: int, scale: float, mirrored: bool) -> QPixmap:
    svg = _outline(name).replace("currentColor", colour)
    renderer = QSvgRenderer(QByteArray(svg.encode()))
    pixmap = QPixmap(QSize(round(size * scale), round(size * scale)))
    pixmap.fill(Qt.GlobalColor.transparent)
    pixmap.setDevicePixelRatio(scale)
    painter = QPainter(pixmap)
    box = QRectF(0, 0, size, size)
    if mirrored:
        mirror(painter, box)
    renderer.render(painter, box)
    painter.end()
    return pixmap


def pixmap(name: str, colour: QColor, size: int, scale: float) -> QPixmap:
    """``size`` in logical pixels, ``scale`` the device pixel ratio."""
    mirrored = name in _DIRECTED and QGuiApplication.isRightToLeft()
    return _pixmap(name, colour.name(), size, scale, mirrored)


def icon(name: str, colour: QColor, size: int) -> QIcon:
    result = QIcon()
    for scale in _SCREEN_SCALES:
        result.addPixmap(pixmap(name, colour, size, scale))
    return result


def app_icon() -> QIcon:
    """The program's sign, for the window, the task bar and the tray."""
    result = QIcon()
    for picture in app_icon_pictures():
        result.addFile(str(picture))
    return result


def draw_app_icon(painter: QPainter, rect: QRectF) -> None:
    QSvgRenderer(str(app_icon_path())).render(painter, rect)


def draw_icon(painter: QPainter, name: str, rect: QRectF, colour: QColor) -> None:
    """At the size of ``rect``, for delegates and hand-painted widgets."""
    scale = painter.device().devicePixelRatioF()
    with upright(painter, rect):
        picture = pixmap(name, colour, round(rect.width()), scale)
        painter.drawPixmap(rect.topLeft(), picture)
