"""Where the timeline's columns are: one frozen answer for a viewport's width and a theme.

Side padding, avatar, gap and thread come from the design tokens; what grows with the text size
grows here.  On a wide window the column stays about 880 wide and stands in the middle.
"""

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF

from ui.theme import Radius, Spacing, Theme

MAX_COLUMN = 880
NARROW_WINDOW = 720
_MAX_BUBBLE = 620
_MAX_BUBBLE_SHARE = 0.72
_NARROW_BUBBLE = 330


class Geometry(Struct, frozen=True, kw_only=True):
    width: float
    narrow: bool
    left: float
    """Where avatars begin."""
    right: float
    """Where own bubbles and cards end."""
    avatar: float
    bubble_left: float
    thread_x: float
    max_bubble: float
    pad_x: float
    pad_y: float
    bead: float
    """Radius of a full bead."""
    radius: float
    tight: float
    grouped: float
    mirrored: bool = False
    """Whether the window runs from right to left; all places here are as if it did not."""

    def seen(self, rect: QRectF) -> QRectF:
        """Where in the viewport a place is."""
        return (
            rect.translated(self.width - rect.left() - rect.right(), 0) if self.mirrored else rect
        )

    def meant(self, point: QPointF) -> QPointF:
        """The place at a point of the viewport."""
        return QPointF(self.width - point.x(), point.y()) if self.mirrored else point

    @property
    def centre(self) -> float:
        return self.width / 2

    def card(self, y: float, height: float) -> QRectF:
        return QRectF(self.bubble_left, y, self.right - self.bubble_left, height)


def column_edge(width: float, *, narrow: bool, theme: Theme) -> float:
    """How far the column stands from each side: what is above and below it does the same."""
    side = theme.metrics.gap(Spacing.MEDIUM if narrow else Spacing.EDGE)
    return float(int((width - min(width, MAX_COLUMN + 2 * side)) / 2))


def geometry_for(width: float, *, narrow: bool, theme: Theme, mirrored: bool = False) -> Geometry:
    metrics = theme.metrics
    side = metrics.gap(Spacing.MEDIUM if narrow else Spacing.EDGE)
    column = min(width, MAX_COLUMN + 2 * side)
    edge = column_edge(width, narrow=narrow, theme=theme)
    avatar = metrics.scaled(metrics.dense(28 if narrow else 36, 24))
    gap = metrics.gap(Spacing.SNUG if narrow else Spacing.MEDIUM)
    left, right = edge + side, edge + column - side
    bubble_left = left + avatar + gap
    widest = min(_MAX_BUBBLE, max(_NARROW_BUBBLE, column * _MAX_BUBBLE_SHARE))
    return Geometry(
        width=width,
        narrow=narrow,
        left=left,
        right=right,
        avatar=avatar,
        bubble_left=bubble_left,
        thread_x=left + avatar / 2,
        max_bubble=max(80.0, min(widest, right - bubble_left)),
        pad_x=metrics.gap(metrics.dense(Spacing.MEDIUM, 10)),
        pad_y=metrics.gap(metrics.dense(Spacing.SMALL, 4)),
        bead=metrics.scaled(10) / 2,
        radius=metrics.gap(Radius.BUBBLE),
        tight=metrics.gap(Radius.TIGHT),
        grouped=metrics.gap(Radius.GROUPED),
        mirrored=mirrored,
    )
