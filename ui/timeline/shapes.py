"""Shapes that repeat on every row: drawn or built once, then kept in bounded caches."""

from collections.abc import Mapping
from functools import lru_cache
from math import ceil

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPixmap

from engine.core.ids import ParticipantId
from engine.events import MessageView
from ui.avatar import draw_avatar
from ui.pictures import FACES
from ui.theme import Theme


@lru_cache(maxsize=512)
def rounded(  # noqa: PLR0913, PLR0917 - a rectangle has four corners
    width: float,
    height: float,
    top_left: float,
    top_right: float,
    bottom_right: float,
    bottom_left: float,
) -> QPainterPath:
    """A rectangle at the origin with a radius for each corner."""
    path = QPainterPath(QPointF(top_left, 0))
    path.lineTo(width - top_right, 0)
    path.arcTo(width - 2 * top_right, 0, 2 * top_right, 2 * top_right, 90, -90)
    path.lineTo(width, height - bottom_right)
    side = 2 * bottom_right
    path.arcTo(width - side, height - side, side, side, 0, -90)
    path.lineTo(bottom_left, height)
    path.arcTo(0, height - 2 * bottom_left, 2 * bottom_left, 2 * bottom_left, 270, -90)
    path.lineTo(0, top_left)
    path.arcTo(0, 0, 2 * top_left, 2 * top_left, 180, -90)
    path.closeSubpath()
    return path


Faces = Mapping[ParticipantId, bytes]
"""Pictures of senders, as far as they are known."""


def avatar_of(
    message: MessageView, faces: Faces, theme: Theme, side: float, scale: float
) -> QPixmap:
    """Of a message's sender: their picture once it has been decoded, until then initials."""
    face = faces.get(message.sender_id, b"")
    ready = face if FACES.face(face) is not None else b""
    return _avatar(theme, message.sender_id, message.sender_name, side, scale, ready)


@lru_cache(maxsize=256)
def _avatar(  # noqa: PLR0913, PLR0917 - all that tells two pictures apart
    theme: Theme, stable_id: str, name: str, side: float, scale: float, face: bytes
) -> QPixmap:
    """Avatars repeat, so each is drawn once for a theme, size and screen."""
    del theme  # It is read from where it is current; here it only tells pictures apart.
    picture = QPixmap(QSize(ceil(side * scale), ceil(side * scale)))
    picture.setDevicePixelRatio(scale)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    box = QRectF(0, 0, side, side)
    draw_avatar(painter, box, stable_id=stable_id, name=name, is_group=False, picture=face)
    painter.end()
    return picture
