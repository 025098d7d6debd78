"""Pictures of the graph's points, kept while nothing of them changes: what is panned is not drawn.

Where ten thousand messages are in sight, each is a point, and to look at all of them for each frame
takes longer than a frame may.  So a stretch of the graph is drawn once, and its picture moved.
"""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPixmap

TILE: Final = 256
"""Pixels."""
MOST: Final = 32
"""More than the widest screen shows."""

DrawStretch = Callable[[QPainter, int, int], None]
"""Draws from one pixel of the graph up to another, the first of them at 0."""


class PointTiles:
    def __init__(self) -> None:
        self._tiles: dict[int, QPixmap] = {}
        self._kind: object = None

    def forget(self, from_x: float = 0.0) -> None:
        """What stands there, or behind it, is not as it was."""
        for number in [each for each in self._tiles if (each + 1) * TILE > from_x]:
            del self._tiles[number]

    def paint(  # noqa: PLR0913 - keyword-only: what part, and how
        self, painter: QPainter, *, left: int, width: int, height: int, kind: object,
        draw: DrawStretch,
    ) -> None:  # fmt: skip
        """From pixel ``left`` of the graph on; the painter's origin is where that is.

        ``kind``: all that makes every tile another one: the scale, the lanes, the colours.
        """
        ratio = painter.device().devicePixelRatio()
        if (kind, height, ratio) != self._kind:
            self._tiles.clear()
            self._kind = (kind, height, ratio)
        numbers = range(left // TILE, (left + width) // TILE + 1)
        for number in numbers:
            tile = self._tiles.pop(number, None)
            if tile is None:
                tile = _drawn(number, height, ratio, draw)
            self._tiles[number] = tile  # The one that was not seen for longest goes first.
            painter.drawPixmap(QPointF(number * TILE - left, 0), tile)
        while len(self._tiles) > max(MOST, len(numbers)):
            del self._tiles[next(iter(self._tiles))]


def _drawn(number: int, height: int, ratio: float, draw: DrawStretch) -> QPixmap:
    tile = QPixmap(round(TILE * ratio), round(height * ratio))
    tile.setDevicePixelRatio(ratio)
    tile.fill(Qt.GlobalColor.transparent)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    draw(painter, number * TILE, (number + 1) * TILE)
    painter.end()
    return tile
