"""Draws the causal graph: lanes, edges, beads with their marks, Lamport timestamps below.

The same for the window and for files.  Only the columns that are to be seen are looked at; where
they stand close, a bead becomes a point, and edges are left out.  Colours are never alone: each
mark has a shape of its own.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPen

from engine.core.ids import MessageId
from engine.delivery_views import DeliveryMark, DeliveryMessage
from ui.avatar import AvatarImages, draw_avatar
from ui.delivery.layout import GraphLayout
from ui.delivery.tiles_of_points import PointTiles
from ui.delivery.words import mark_words
from ui.regional import clock_with_seconds, grouped
from ui.theme import Theme
from ui.times import moment
from ui.translate import tr

LANE: Final = 43
HEAD: Final = 28
AXIS: Final = 26
NAMES: Final = 128
_BEAD: Final = 7.5
_SMALL_BELOW: Final = 18
"""Columns narrower than this have small beads, no words and no numbers of their own."""
_POINTS_BELOW: Final = 12
"""And narrower than this only points, without edges."""
_EARLIEST_MS, _LATEST_MS = 1_000_000_000_000, 10_000_000_000_000
"""A Lamport timestamp between these is a time: of 2001 to 2286."""
POINT: Final = 9
"""Pixels of the largest one."""
_TOP, _WHOLE = 90 * 16, 360 * 16
"""Angles, in sixteenths of a degree."""
_REACH: Final = 40
"""Columns beside the visible ones whose edges are drawn, too."""


class Sight(Struct, frozen=True, kw_only=True):
    """What part of the graph is seen."""

    left: float
    """The column at the left edge, as a fraction."""
    step: float
    """Pixels from one column to the next."""
    width: float
    """Of all, with the names at the left."""
    names: float
    """How much of it the names take."""

    def x(self, column: float) -> float:
        return self.names + (column - self.left + 0.5) * self.step

    def column(self, x: float) -> float:
        return (x - self.names) / self.step + self.left - 0.5

    @property
    def shown(self) -> float:
        """How many columns there is room for."""
        return max(1.0, (self.width - self.names) / self.step)


class GraphImages:
    """What is drawn once and shown in many frames."""

    def __init__(self) -> None:
        self.points = PointTiles()
        self.avatars = AvatarImages()


def lane_height(theme: Theme) -> float:
    return theme.metrics.scaled(LANE)


def lane_y(lane: float, theme: Theme) -> float:
    return theme.metrics.scaled(HEAD) + lane * lane_height(theme)


def height_of(layout: GraphLayout, theme: Theme) -> float:
    lanes = max(1, layout.lane_count)
    return lane_y(lanes - 1, theme) + lane_height(theme) / 2 + theme.metrics.scaled(AXIS)


def draw_graph(  # noqa: PLR0913 - keyword-only: what is drawn, and how
    painter: QPainter,
    layout: GraphLayout,
    sight: Sight,
    theme: Theme,
    *,
    chosen: MessageId | None = None,
    images: GraphImages | None = None,
) -> None:
    """``images``: what was drawn before, on the screen; None: all is drawn, as for a file."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    seen = layout.between(sight.left - 1, sight.left + sight.shown + 1)
    paint_avatar = images.avatars.paint if images else draw_avatar
    _draw_lanes(painter, layout, sight, theme, paint_avatar)
    painter.save()
    painter.setClipRect(QRectF(sight.names, 0, sight.width - sight.names, height_of(layout, theme)))
    if sight.step < _POINTS_BELOW:
        _paint_points(painter, layout, sight, theme, images.points if images else PointTiles())
        if chosen is not None and chosen in layout.index:
            _draw_bead(painter, layout, sight, theme, layout.index[chosen], is_chosen=True)
    else:
        near = layout.between(sight.left - 1, sight.left + sight.shown + _REACH)
        _draw_edges(painter, layout, sight, theme, near, chosen=chosen)
        for at in seen:
            is_chosen = layout.messages[at].message_id == chosen
            _draw_bead(painter, layout, sight, theme, at, is_chosen=is_chosen)
        if sight.step >= _SMALL_BELOW:
            _draw_late(painter, layout, sight, theme, seen)
    _draw_axis(painter, layout, sight, theme, seen)
    painter.restore()


def _draw_lanes(
    painter: QPainter,
    layout: GraphLayout,
    sight: Sight,
    theme: Theme,
    paint_avatar: Callable[..., None],
) -> None:
    inset = theme.metrics.scaled(22)
    words_left = theme.metrics.scaled(32)
    half = lane_height(theme) / 2
    for number, lane in enumerate(layout.lanes):
        y = lane_y(number, theme)
        painter.setPen(QPen(theme.line, 1.5))
        painter.drawLine(QLineF(sight.names, y, sight.width, y))
        side = inset
        box = QRectF(4, y - side / 2, side, side)
        known_as = lane.known_as or lane.name
        paint_avatar(painter, box, stable_id=lane.sender_id, name=known_as, is_group=False)
        painter.setFont(theme.type.label.font)
        painter.setPen(theme.ink)
        room = sight.names - words_left - 8
        _draw_name(painter, QRectF(words_left, y - half, room, 2 * half), lane.name)
    if layout.has_absent:
        _draw_absent_lane(painter, layout, sight, theme)


def _draw_absent_lane(painter: QPainter, layout: GraphLayout, sight: Sight, theme: Theme) -> None:
    y = lane_y(len(layout.lanes), theme)
    half = theme.metrics.scaled(18)
    painter.setPen(QPen(theme.warnLine, 1) if theme.is_high_contrast else Qt.PenStyle.NoPen)
    painter.setBrush(theme.warnBg)
    painter.drawRoundedRect(QRectF(0.5, y - half, sight.width - 1, 2 * half), 9, 9)
    painter.setPen(QPen(theme.warnDot, 1.3, Qt.PenStyle.DashLine))
    painter.drawLine(QLineF(sight.names, y, sight.width, y))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(theme.warnDot, 1.8))
    painter.drawEllipse(QPointF(4 + theme.metrics.scaled(11), y), 5.5, 5.5)
    painter.setFont(theme.type.label.strong())
    painter.setPen(theme.warn)
    left = theme.metrics.scaled(32)
    room = sight.names - left - 4
    _draw_name(painter, QRectF(left, y - half, room, 2 * half), tr("Not yet here"))


def _draw_name(painter: QPainter, box: QRectF, name: str) -> None:
    """On two lines if one has no room for it and there is a space between."""
    metrics = QFontMetricsF(painter.font())
    first, rest = name, ""
    while " " in first and metrics.horizontalAdvance(first) > box.width():
        first, _, last = first.rpartition(" ")
        rest = f"{last} {rest}".rstrip()
    if 2 * metrics.height() > box.height():
        first, rest = name, ""
    lines = [
        metrics.elidedText(line, Qt.TextElideMode.ElideRight, box.width())
        for line in (first, rest)
        if line
    ]
    painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, "\n".join(lines))


def _centre(layout: GraphLayout, sight: Sight, theme: Theme, at: int) -> QPointF:
    return QPointF(sight.x(layout.columns[at]), lane_y(layout.lane(at), theme))


def _draw_edges(  # noqa: PLR0913 - what is drawn, where, and how
    painter: QPainter,
    layout: GraphLayout,
    sight: Sight,
    theme: Theme,
    seen: Iterable[int],
    *,
    chosen: MessageId | None,
) -> None:
    plain, absent, strong = QPainterPath(), QPainterPath(), QPainterPath()
    for at in seen:
        end = _centre(layout, sight, theme, at)
        is_chosen = layout.messages[at].message_id == chosen
        for parent in layout.parents(at):
            begin_at = layout.index[parent]
            begin = _centre(layout, sight, theme, begin_at)
            if begin.x() > sight.width:
                continue
            path = plain
            if layout.lane(begin_at) == len(layout.lanes):
                path = absent
            elif is_chosen or parent == chosen:
                path = strong
            middle = (begin.x() + end.x()) / 2
            path.moveTo(begin)
            path.cubicTo(QPointF(middle, begin.y()), QPointF(middle, end.y()), end)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for path, pen in (
        (plain, QPen(theme.line2, 1.2)),
        (absent, QPen(theme.warnDot, 1.3, Qt.PenStyle.DashLine)),
        (strong, QPen(theme.accent, 2)),
    ):
        painter.setPen(pen)
        painter.drawPath(path)


def _paint_points(
    painter: QPainter, layout: GraphLayout, sight: Sight, theme: Theme, tiles: PointTiles
) -> None:
    """At whole pixels of the graph, so that panning changes none of them."""
    left = round(sight.left * sight.step)

    def draw(on_tile: QPainter, begin: int, end: int) -> None:
        _draw_points(on_tile, layout, theme, begin, end, step=sight.step)

    painter.save()
    painter.translate(sight.names, 0)
    tiles.paint(
        painter,
        left=left,
        width=int(sight.width - sight.names),
        height=int(height_of(layout, theme)),
        kind=(sight.step, tuple(layout.lanes), layout.has_absent, theme),
        draw=draw,
    )
    painter.restore()


def _draw_points(  # noqa: PLR0913 - what is drawn, where, and how
    painter: QPainter, layout: GraphLayout, theme: Theme, begin: int, end: int, *, step: float
) -> None:
    """One for each pixel and lane, in the colour of the mark that needs care most."""
    found: dict[tuple[int, int], DeliveryMark] = {}
    urgent = {mark: place for place, mark in enumerate(DeliveryMark)}
    columns, messages, lane = layout.columns, layout.messages, layout.lane
    for at in layout.between((begin - POINT) / step - 1, (end + POINT) / step):
        mark = messages[at].mark
        key = int((columns[at] + 0.5) * step) - begin, lane(at)
        before = found.get(key)
        if before is None or urgent[mark] < urgent[before]:
            found[key] = mark
    by_mark: dict[tuple[DeliveryMark, int], list[QPointF]] = {}
    for (x, number), mark in found.items():
        group = mark, number if mark is DeliveryMark.HERE else -1
        by_mark.setdefault(group, []).append(QPointF(x + 0.5, lane_y(number, theme)))
    for (mark, number), points in by_mark.items():
        colour = colour_of(mark, theme)
        if mark is DeliveryMark.HERE and number < len(layout.lanes):
            colour = theme.sender_colour(layout.lanes[number].sender_id)
        # What needs care stands out by its height, too.
        size = 5 if mark is DeliveryMark.HERE else POINT
        painter.setPen(QPen(colour, size, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawPoints(points)


def colour_of(mark: DeliveryMark, theme: Theme) -> QColor:
    return {
        DeliveryMark.MISSING: theme.warnDot,
        DeliveryMark.LOST: theme.warnDot,
        DeliveryMark.WAITING: theme.warnDot,
        DeliveryMark.FAILED: theme.danger,
        DeliveryMark.ONLY_HERE: theme.accent,
        DeliveryMark.LATE: theme.late,
        DeliveryMark.HERE: theme.accent,
    }[mark]


def _draw_bead(  # noqa: PLR0913 - what is drawn, where, and how
    painter: QPainter,
    layout: GraphLayout,
    sight: Sight,
    theme: Theme,
    at: int,
    *,
    is_chosen: bool,
) -> None:
    message, centre = layout.messages[at], _centre(layout, sight, theme, at)
    radius = float(theme.metrics.scaled(_BEAD))
    if sight.step < _SMALL_BELOW:
        radius = min(radius, max(2.0, sight.step * 0.34))
    if is_chosen:
        radius = max(radius, 6)
        painter.setPen(QPen(theme.focus, theme.focus_width))
        painter.setBrush(theme.accentSoft)
        painter.drawEllipse(centre, radius + 5, radius + 5)
    draw_mark(painter, message, centre, radius, theme)


def draw_mark(
    painter: QPainter, message: DeliveryMessage, centre: QPointF, radius: float, theme: Theme
) -> None:
    """A bead: filled is here; hollow is not here, or only here.

    Of ours it is filled as far as the others are known to hold it, like the second tick.
    """
    mark, colour = message.mark, colour_of(message.mark, theme)
    sender = theme.ink2 if message.sender_id is None else theme.sender_colour(message.sender_id)
    if mark in {DeliveryMark.HERE, DeliveryMark.LATE, DeliveryMark.WAITING}:
        if mark is not DeliveryMark.HERE:
            style = Qt.PenStyle.SolidLine if mark is DeliveryMark.LATE else Qt.PenStyle.DotLine
            painter.setPen(QPen(colour, 2, style))
            painter.setBrush(theme.surface)
            ring = radius + min(3, radius * 0.7)
            painter.drawEllipse(centre, ring, ring)
        painter.setPen(QPen(theme.surface, 1.5))
        painter.setBrush(sender)
        if is_partly_held(message):
            _draw_share(painter, centre, radius, (sender, theme.surface), message)
        else:
            painter.drawEllipse(centre, radius, radius)
        return
    dashed = mark is DeliveryMark.MISSING
    pen = QPen(colour, 2)
    if dashed:
        pen.setDashPattern([1.4, 1.1])
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.setPen(pen)
    painter.setBrush(theme.surface)
    painter.drawEllipse(centre, radius - 0.5, radius - 0.5)
    half = radius * 0.42
    painter.setPen(QPen(colour, 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    if mark is DeliveryMark.LOST:
        painter.drawLine(centre + QPointF(-half, -half), centre + QPointF(half, half))
        painter.drawLine(centre + QPointF(-half, half), centre + QPointF(half, -half))
    elif mark is DeliveryMark.FAILED:
        painter.drawLine(centre + QPointF(0, -half), centre + QPointF(0, half * 0.2))
        painter.drawPoint(centre + QPointF(0, half))


def is_partly_held(message: DeliveryMessage) -> bool:
    """Ours, and on its way: not all others are known to hold it."""
    return message.is_own and message.mark is DeliveryMark.HERE and message.held_by < message.of


def _draw_share(
    painter: QPainter,
    centre: QPointF,
    radius: float,
    colours: tuple[QColor, QColor],
    message: DeliveryMessage,
) -> None:
    """A piece of a hollow bead, from the top on; of one that nobody is known to hold a dot."""
    colour, surface = colours
    share = message.held_by / message.of
    box = QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(surface)
    painter.drawEllipse(centre, radius + 0.75, radius + 0.75)
    painter.setPen(QPen(colour, 1.6))
    painter.drawEllipse(centre, radius - 1, radius - 1)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    if share:
        painter.drawPie(box.adjusted(1, 1, -1, -1), _TOP, round(-_WHOLE * share))
    else:
        painter.drawEllipse(centre, radius * 0.25, radius * 0.25)


def _free(lane: Sequence[int]) -> Iterable[tuple[int, int | None, int | None]]:
    """Each bead of a lane with those before and behind it, beside which its words have room."""
    return zip(lane, (None, *lane[:-1]), (*lane[1:], None), strict=True)


def _draw_late(
    painter: QPainter, layout: GraphLayout, sight: Sight, theme: Theme, seen: Iterable[int]
) -> None:
    font = theme.type.micro.strong()
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    beads: dict[int, list[int]] = {}
    for at in seen:
        beads.setdefault(layout.lane(at), []).append(at)
    for at, free_from, free_to in (each for lane in beads.values() for each in _free(lane)):
        message = layout.messages[at]
        if message.mark is not DeliveryMark.LATE or message.late_by_ms is None:
            continue
        words = mark_words(message)
        centre = _centre(layout, sight, theme, at)
        width = metrics.horizontalAdvance(words) + 14
        right = sight.width if free_to is None else sight.x(layout.columns[free_to]) - 14
        left = sight.names if free_from is None else sight.x(layout.columns[free_from]) + 14 + width
        x = centre.x() + 14
        if x + width > right:
            x = centre.x() - 14 - width
            if x < left or free_to is not None:
                continue  # Its ring says it, and by how much is said of the one that is chosen.
        box = QRectF(x, centre.y() - metrics.height() - 5, width, metrics.height() + 3)
        painter.setPen(QPen(theme.lateLine, 1) if theme.is_high_contrast else Qt.PenStyle.NoPen)
        painter.setBrush(theme.lateBg)
        painter.drawRoundedRect(box, 7, 7)
        painter.setPen(theme.late)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)


def _draw_axis(
    painter: QPainter, layout: GraphLayout, sight: Sight, theme: Theme, seen: range
) -> None:
    """When messages were written, as many times as have room; without one, their Lamport timestamp.

    A Lamport timestamp of ours is a time; one that cannot be a time is a number.
    """
    font = theme.type.caption.font
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    painter.setPen(theme.ink3)
    top = height_of(layout, theme) - theme.metrics.scaled(AXIS) + 4
    free_from, at = sight.names, seen.start
    while at < seen.stop:
        lamport = layout.messages[at].lamport_timestamp
        x = sight.x(layout.columns[at])
        words = "" if lamport is None else axis_words(lamport)
        half = metrics.horizontalAdvance(words) / 2
        if not words or x - half < free_from or x + half > sight.width:
            at += 1
            continue
        painter.drawText(QPointF(x - half, top + metrics.ascent()), words)
        free_from = x + half + 18
        # Nothing nearer has room, and to look at each of ten thousand takes too long.
        at = max(at + 1, layout.between(sight.column(free_from), layout.column_count).start)


def axis_words(lamport: int) -> str:
    """`"14:03:10"` of a timestamp in milliseconds, as ours are; else the number."""
    if _EARLIEST_MS <= lamport < _LATEST_MS:
        return clock_with_seconds(moment(lamport))
    return grouped(lamport) if lamport < 10**9 else str(lamport)
