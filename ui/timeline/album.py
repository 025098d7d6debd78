"""Pictures that were sent together, drawn as one grid: where each stands, and how it looks.

Each keeps its own time and state, on its lower edge.  ``together`` says which pictures they are.
"""

from collections.abc import Sequence
from typing import Self

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainterPath, QPen

from engine.events import MessageView
from ui.glyphs import GLYPH_SIZE, Glyph, count_of, draw_glyph, glyph_of
from ui.mirrored import upright
from ui.theme import Theme
from ui.timeline.buttons import advance, strong
from ui.timeline.file_pictures import FilePictures
from ui.timeline.primitives import FADED, Primitives
from ui.timeline.row_words import time_words
from ui.translate import tr

_TWO_COLUMNS = frozenset({2, 4})
_WIDTHS = {2: 340.0, 3: 420.0}
_BETWEEN = 3
TILE_RADIUS = 9
_SHADE = 0.62
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class Tile(Struct, frozen=True, kw_only=True):
    """One picture, and the time and state on its lower edge."""

    message: MessageView
    rect: QRectF
    pill: QRectF
    time: str
    count: str
    glyph: Glyph | None
    leaving: bool = False
    """It is about to be deleted for everybody."""

    def moved(self, right: float) -> Self:
        return replace(
            self, rect=self.rect.translated(right, 0), pill=self.pill.translated(right, 0)
        )


def album_tiles(
    messages: Sequence[MessageView], top: float, room: float, theme: Theme
) -> tuple[Tile, ...]:
    """From the bubble's content on: rows of two or three, the last one as wide as the others."""
    columns = 2 if len(messages) in _TWO_COLUMNS else 3
    width = float(int(min(room, _WIDTHS[columns] * theme.metrics.factor)))
    height = float(int((width - (columns - 1) * _BETWEEN) / columns))
    tiles = []
    for first in range(0, len(messages), columns):
        together = messages[first : first + columns]
        y = top + 2 + first // columns * (height + _BETWEEN)
        side = (width - (len(together) - 1) * _BETWEEN) / len(together)
        for place, message in enumerate(together):
            left = float(int(place * (side + _BETWEEN)))
            right = width if place == len(together) - 1 else float(int(left + side))
            tiles.append(_tile(message, QRectF(left, y, right - left, height), theme))
    return tuple(tiles)


def _tile(message: MessageView, rect: QRectF, theme: Theme) -> Tile:
    micro, gap, delivery = theme.type.micro, theme.metrics.gap(6), message.delivery
    time = time_words(message.sent_ms)
    count = "" if delivery is None else count_of(delivery)
    width = advance(micro.font, time) + 2 * gap
    if delivery is not None:
        width += 4 + GLYPH_SIZE.width() * theme.metrics.factor
    if count:
        width += 4 + advance(strong(micro), count)
    height = micro.line_height + 2
    inset = theme.metrics.gap(5)
    right, bottom = rect.right() - inset, rect.bottom() - inset
    return Tile(
        message=message,
        rect=rect,
        pill=QRectF(right - width, bottom - height, width, height),
        time=time,
        count=count,
        glyph=None if delivery is None else glyph_of(delivery),
    )


class AlbumPainter:
    def __init__(self, draw: Primitives, pictures: FilePictures) -> None:
        self._draw = draw
        self._pictures = pictures

    def paint(self, tiles: Sequence[Tile]) -> None:
        around = self._draw.painter.opacity()  # Less than 1 in a row that is being deleted.
        for tile in tiles:
            self._draw.painter.setOpacity(FADED if tile.leaving else around)
            self._picture(tile)
            self._pill(tile)
        self._draw.painter.setOpacity(around)

    def _picture(self, tile: Tile) -> None:
        p, theme, rect = self._draw.painter, self._draw.theme, tile.rect
        shape = QPainterPath()
        shape.addRoundedRect(rect, TILE_RADIUS, TILE_RADIUS)
        p.setPen(QPen(theme.line, 1))
        p.setBrush(theme.surface2)
        p.drawPath(shape)
        scale = p.device().devicePixelRatioF()
        pixmap = self._pictures.pixmap(tile.message, rect.size(), scale, cover=True)
        if pixmap is None:
            broken = self._pictures.is_broken(tile.message)
            words = tr("Not a picture") if broken else tr("Picture…")
            self._draw.text(rect, words, theme.type.caption.font, theme.ink3)
            return
        size = pixmap.deviceIndependentSize()
        place = QRectF(QPointF(0, 0), size)
        place.moveCenter(rect.center())
        p.save()
        p.setClipPath(shape, Qt.ClipOperation.IntersectClip)
        with upright(p, place):
            p.drawPixmap(place.topLeft(), pixmap)
        p.restore()

    def _pill(self, tile: Tile) -> None:
        """White on a dark shade, whatever the picture: as well to be read in every theme."""
        p, theme = self._draw.painter, self._draw.theme
        white, shade = QColor(Qt.GlobalColor.white), QColor(Qt.GlobalColor.black)
        shade.setAlphaF(_SHADE)
        p.setPen(QPen(white, 1) if theme.is_high_contrast else Qt.PenStyle.NoPen)
        p.setBrush(shade)
        radius = tile.pill.height() / 2
        p.drawRoundedRect(tile.pill, radius, radius)
        micro, gap = theme.type.micro, theme.metrics.gap(6)
        at = tile.pill.adjusted(gap, 0, -gap, 0)
        self._draw.text(at, tile.time, micro.font, white, _LEFT)
        if tile.count:
            at.setLeft(at.left() + advance(micro.font, tile.time) + 4)
            self._draw.text(at, tile.count, strong(micro), white, _LEFT)
        if tile.glyph is not None:
            scale = self._draw.scale
            corner = QPointF(at.right() - 16 * scale, at.center().y() - 6 * scale)
            draw_glyph(p, tile.glyph, corner, white, scale=scale)
