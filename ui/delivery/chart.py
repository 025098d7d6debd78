"""One chart: painted, read by the keys, and the same in an exported picture.

Left and Right go from one stretch of time to the next, and its figures take the place of the newest
ones; a screen reader is told them.  Rows differ in their strokes, not only in their colours.
"""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QBrush,
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.delivery.figures import Chart, Ink, Look, Row
from ui.mirrored import draw_text, mirror_widget, mirrored_point
from ui.regional import clock, clock_with_seconds
from ui.speaking import told_as
from ui.theme import current_theme, theme_changed
from ui.times import moment
from ui.tips import set_tip
from ui.translate import tr

_LINES: Final = {Look.LINE, Look.DASHED}
_STEPS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_PLOT: Final = 66
_WIDE_PLOT: Final = 104
_LEAST_WIDTH: Final = 190
_SAMPLE: Final = 14
_GAP: Final = 4


def nice_top(highest: float) -> float:
    """The end of an axis: the next round number."""
    if highest <= 0:
        return 1.0
    power = 1.0
    while power * _STEPS[-1] < highest:
        power *= 10
    while power > highest:
        power /= 10
    return next(power * step for step in _STEPS if power * step >= highest)


class Extent:
    """Between which values a chart is drawn, and where they are in a box."""

    def __init__(self, chart: Chart) -> None:
        values = _column_sums(chart) if chart.is_stacked else _all_values(chart)
        self.top = chart.top if chart.top is not None else nice_top(max(values, default=0.0))
        lowest = min(values, default=0.0)
        self.bottom = -nice_top(-lowest) if lowest < 0 else 0.0
        if self.bottom < 0 and chart.top is None and max(values) <= 0:
            self.top = 0.0

    def y(self, value: float, box: QRectF) -> float:
        return box.bottom() - (value - self.bottom) / (self.top - self.bottom) * box.height()


class ChartPainter:
    """Draws a chart into a box; what it measures is kept until the theme changes."""

    def __init__(self, chart: Chart, *, wide: bool) -> None:
        self._chart = chart
        self._wide = wide
        self._extent = Extent(chart)
        self._axis = self._axis_width()
        self._legends: dict[float, list[list[tuple[Row, float]]]] = {}

    def height(self, width: float) -> float:
        theme = current_theme()
        plot = theme.metrics.scaled(_WIDE_PLOT if self._wide else _PLOT)
        lines = len(self._legend_lines(width)) * theme.type.micro.line_height
        return theme.type.small.line_height + lines + plot + theme.type.micro.line_height + 12

    def plot(self, box: QRectF) -> QRectF:
        """Where the values are, within ``box``."""
        theme = current_theme()
        legend = len(self._legend_lines(box.width())) * theme.type.micro.line_height
        top = box.top() + theme.type.small.line_height + legend + 6
        bottom = box.bottom() - theme.type.micro.line_height - 3
        return QRectF(box.left(), top, box.width() - self._axis, bottom - top)

    def paint(self, painter: QPainter, box: QRectF, chosen: int | None = None) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_head(painter, box, chosen)
        plot = self.plot(box)
        extent = self._extent
        self._paint_axes(painter, box, plot, extent)
        if not self._chart.has_any:
            self._paint_nothing(painter, plot)
            return
        if chosen is not None:
            self._paint_cursor(painter, plot, chosen)
        if self._chart.is_stacked:
            self._paint_bars(painter, plot, extent)
        else:
            for row in reversed(self._chart.rows):  # The first one is on top.
                self._paint_line(painter, plot, extent, row)

    # --- parts ------------------------------------------------------------------------------------

    def _paint_head(self, painter: QPainter, box: QRectF, chosen: int | None) -> None:
        theme, chart = current_theme(), self._chart
        line = theme.type.small.line_height
        now = chart.now if chosen is None else moment_words(chart, chosen)
        painter.setFont(theme.type.small.strong())
        room = QFontMetricsF(painter.font()).horizontalAdvance(now) + 8
        painter.setPen(theme.ink)
        right = QRectF(box.left(), box.top(), box.width(), line)
        draw_text(painter, right, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, now)
        painter.setFont(theme.type.small.font)
        painter.setPen(theme.ink2)
        left = QRectF(box.left(), box.top(), max(box.width() - room, 0.0), line)
        words = QFontMetricsF(painter.font()).elidedText(
            chart.title, Qt.TextElideMode.ElideRight, left.width()
        )
        draw_text(painter, left, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
        painter.setFont(theme.type.micro.font)
        painter.setPen(theme.ink3)
        y = box.top() + line
        for legend in self._legend_lines(box.width()):
            x = box.left()
            for row, width in legend:
                _paint_sample(painter, row, QRectF(x, y, _SAMPLE, theme.type.micro.line_height))
                painter.setPen(theme.ink3)
                words_box = QRectF(x + _SAMPLE + _GAP, y, width, theme.type.micro.line_height)
                draw_text(
                    painter,
                    words_box,
                    Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
                    row.name,
                )
                x += _SAMPLE + _GAP + width + 10
            y += theme.type.micro.line_height

    def _legend_lines(self, width: float) -> list[list[tuple[Row, float]]]:
        """Each row's name with its width, in as many lines as they need; none of one row."""
        known = self._legends.get(width)
        if known is None:
            known = self._legends[width] = self._made_legend(width)
        return known

    def _made_legend(self, width: float) -> list[list[tuple[Row, float]]]:
        rows = self._chart.rows
        if len(rows) < 2:  # noqa: PLR2004 - the title says what one row is
            return []
        metrics = QFontMetricsF(current_theme().type.micro.font)
        lines: list[list[tuple[Row, float]]] = [[]]
        used = 0.0
        for row in rows:
            words = metrics.horizontalAdvance(row.name) + 2
            needed = _SAMPLE + _GAP + words + 10
            if lines[-1] and used + needed - 10 > width:
                lines.append([])
                used = 0.0
            lines[-1].append((row, words))
            used += needed
        return lines

    def _axis_width(self) -> float:
        metrics = QFontMetricsF(current_theme().type.micro.font)
        extent = self._extent
        return 6 + max(
            metrics.horizontalAdvance(self._chart.words(value))
            for value in (extent.top, extent.bottom)
        )

    def _paint_axes(self, painter: QPainter, box: QRectF, plot: QRectF, extent: Extent) -> None:
        theme, chart = current_theme(), self._chart
        painter.setFont(theme.type.micro.font)
        line = theme.type.micro.line_height
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        ends = (extent.top, extent.bottom)
        for value in dict.fromkeys((*ends, 0.0)):
            y = round(extent.y(value, plot)) + 0.5
            painter.setPen(QPen(theme.line, 1))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            if value not in ends and min(y - plot.top(), plot.bottom() - y) < line:
                continue  # Its words would lie over those of an end.
            painter.setPen(theme.ink3)
            words = QRectF(plot.right() + 6, y - line / 2, box.right() - plot.right() - 6, line)
            draw_text(painter, words, left, chart.words(value))
        if chart.starts_ms:
            painter.setPen(theme.ink3)
            below = QRectF(plot.left(), plot.bottom() + 3, plot.width(), line)
            draw_text(painter, below, left, clock(moment(chart.starts_ms[0])))
            end_ms = chart.starts_ms[-1] + chart.column_ms
            draw_text(painter, below, right, clock(moment(end_ms)))

    def _paint_nothing(self, painter: QPainter, plot: QRectF) -> None:
        theme = current_theme()
        painter.setFont(theme.type.micro.font)
        painter.setPen(theme.ink3)
        draw_text(painter, plot, Qt.AlignmentFlag.AlignCenter, tr("Nothing yet"))

    def _paint_cursor(self, painter: QPainter, plot: QRectF, chosen: int) -> None:
        step = plot.width() / max(len(self._chart.starts_ms), 1)
        band = QRectF(plot.left() + chosen * step, plot.top(), step, plot.height())
        theme = current_theme()
        painter.fillRect(band, theme.accentSoft)
        painter.setPen(QPen(theme.focus, 1))
        x = band.center().x()
        painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))

    def _paint_bars(self, painter: QPainter, plot: QRectF, extent: Extent) -> None:
        rows = self._chart.rows
        step = plot.width() / max(len(self._chart.starts_ms), 1)
        gap = 1.0 if step > 3 else 0.0  # noqa: PLR2004 - else nothing were left of a bar
        for place in range(len(self._chart.starts_ms)):
            base = 0.0
            for row in rows:
                value = row.values[place]
                if not value:
                    continue
                top, bottom = extent.y(base + value, plot), extent.y(base, plot)
                bar = QRectF(plot.left() + place * step + gap / 2, top, step - gap, bottom - top)
                if bar.height() < 1:
                    bar.setTop(bottom - 1)
                _fill_bar(painter, bar, row)
                base += value

    def _paint_line(self, painter: QPainter, plot: QRectF, extent: Extent, row: Row) -> None:
        step = plot.width() / max(len(row.values), 1)
        colour = _ink(row.ink)
        dashed = row.look is Look.DASHED
        pen = QPen(colour, 1.5, Qt.PenStyle.CustomDashLine if dashed else Qt.PenStyle.SolidLine)
        if dashed:
            pen.setDashPattern([2.5, 2])
        for run in _runs(row.values):
            points = [
                QPointF(plot.left() + (place + 0.5) * step, extent.y(value, plot))
                for place, value in run
            ]
            if dashed and row.ink is Ink.ACCENT:
                floor = extent.y(0.0, plot)
                area = [QPointF(points[0].x(), floor), *points, QPointF(points[-1].x(), floor)]
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(current_theme().accentSoft)
                painter.drawPolygon(QPolygonF(area))
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPolyline(QPolygonF(points))
            painter.setPen(QPen(colour, 1.5))
            painter.setBrush(current_theme().surface if dashed else colour)
            for point in points if len(points) * 3 < len(row.values) else ():
                painter.drawEllipse(point, 2, 2)


def moment_words(chart: Chart, place: int) -> str:
    """`"14:03:10: half 1.4 s, slowest 5 % 4.4 s"`."""
    at = clock_with_seconds(moment(chart.starts_ms[place]))
    if len(chart.rows) == 1:
        value = chart.rows[0].values[place]
        return f"{at}: {tr('nothing') if value is None else chart.words(value)}"
    said = [
        f"{row.name} {chart.words(value)}"
        for row in chart.rows
        if (value := row.values[place]) is not None
    ]
    return f"{at}: {', '.join(said) if said else tr('nothing')}"


@told_as(QAccessible.Role.Chart)
class ChartWidget(QWidget):
    def __init__(self, *, wide: bool = False) -> None:
        super().__init__()
        self._chart: Chart | None = None
        self._painter: ChartPainter | None = None
        self._wide = wide
        self._chosen: int | None = None
        """A column, counted from the newest, so that it stays while time goes on."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme_changed.connect(self._dress)

    @property
    def chart(self) -> Chart | None:
        return self._chart

    @property
    def chosen(self) -> int | None:
        """The column that the keys or the pointer are at."""
        if self._chart is None or self._chosen is None:
            return None
        return len(self._chart.starts_ms) - 1 - self._chosen

    def show_chart(self, chart: Chart) -> None:
        if chart == self._chart:
            return
        legend_changed = self._chart is None or len(self._chart.rows) != len(chart.rows)
        self._chart = chart
        self._painter = ChartPainter(chart, wide=self._wide)
        if chart.note != self.accessibleDescription():
            set_tip(self, chart.note)
            self.setAccessibleDescription(chart.note)
        self._say()
        if legend_changed:
            self.updateGeometry()
        self.update()

    def _dress(self) -> None:
        if self._chart is not None:
            self._painter = ChartPainter(self._chart, wide=self._wide)
        self.updateGeometry()

    def _say(self) -> None:
        chart, chosen = self._chart, self.chosen
        if chart is None:
            return
        said = chart.now if chosen is None else moment_words(chart, chosen)
        name = f"{chart.title}: {said or tr('Nothing yet')}"
        if name != self.accessibleName():
            self.setAccessibleName(name)

    def _choose(self, column: int | None) -> None:
        if self._chart is None:
            return
        last = len(self._chart.starts_ms) - 1
        self._chosen = None if column is None else last - max(0, min(column, last))
        self._say()
        if self.hasFocus():
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.NameChanged))
        self.update()

    # --- Qt ---------------------------------------------------------------------------------------

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if self._painter is None:
            return int(current_theme().metrics.scaled(_WIDE_PLOT if self._wide else _PLOT))
        return int(self._painter.height(width - 4) + 4.5)

    def sizeHint(self) -> QSize:
        width = current_theme().metrics.scaled(_LEAST_WIDTH)
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.heightForWidth(current_theme().metrics.scaled(_LEAST_WIDTH)))

    def _box(self) -> QRectF:
        return QRectF(self.rect()).adjusted(2, 2, -2, -2)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._painter is None:
            return
        painter = QPainter(self)
        mirror_widget(painter, self)
        self._painter.paint(painter, self._box(), self.chosen)
        if self.hasFocus():
            theme = current_theme()
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._chart is None:
            return
        last = len(self._chart.starts_ms) - 1
        at = self.chosen
        places = {
            Qt.Key.Key_Left: last if at is None else at - 1,
            Qt.Key.Key_Right: last if at is None else at + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        key = Qt.Key(event.key())
        if key in places:
            self._choose(places[key])
        elif key is Qt.Key.Key_Escape and at is not None:
            self._choose(None)
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._choose(None)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._chart is None or self._painter is None:
            return
        plot = self._painter.plot(self._box())
        x = mirrored_point(event.position(), self).x()
        inside = plot.left() <= x < plot.right()
        step = plot.width() / max(len(self._chart.starts_ms), 1)
        self._choose(int((x - plot.left()) / step) if inside else None)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._choose(None)


# --- strokes --------------------------------------------------------------------------------------


def _ink(ink: Ink) -> QColor:
    colour: QColor = getattr(current_theme(), ink.value)
    return colour


def _fill_bar(painter: QPainter, bar: QRectF, row: Row) -> None:
    colour = _ink(row.ink)
    if row.look is Look.SOLID:
        painter.fillRect(bar, colour)
        return
    styles = {Look.HATCHED: Qt.BrushStyle.BDiagPattern, Look.DOTTED: Qt.BrushStyle.Dense5Pattern}
    if row.look in styles:
        painter.fillRect(bar, QBrush(colour, styles[row.look]))
    inner = bar.adjusted(0.5, 0.5, -0.5, -0.5)
    if inner.width() < 1 or inner.height() < 1:
        painter.fillRect(bar, colour)
        return
    painter.setPen(QPen(colour, 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(inner)


def _paint_sample(painter: QPainter, row: Row, box: QRectF) -> None:
    if row.look not in _LINES:
        side = min(box.width(), 9.0)
        _fill_bar(painter, QRectF(box.left(), box.center().y() - side / 2, side, side), row)
        return
    pen = QPen(_ink(row.ink), 1.5)
    if row.look is Look.DASHED:
        pen.setDashPattern([2.5, 2])
    painter.setPen(pen)
    path = QPainterPath(QPointF(box.left(), box.center().y()))
    path.lineTo(QPointF(box.right(), box.center().y()))
    painter.drawPath(path)


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Stretches without a hole, of (place, value)."""
    runs: list[list[tuple[int, float]]] = []
    before = -2
    for place, value in enumerate(values):
        if value is None:
            continue
        if place != before + 1:
            runs.append([])
        runs[-1].append((place, value))
        before = place
    return runs


def _all_values(chart: Chart) -> list[float]:
    return [value for row in chart.rows for value in row.values if value is not None]


def _column_sums(chart: Chart) -> list[float]:
    columns = zip(*(row.values for row in chart.rows), strict=True)
    return [sum(value for value in column if value is not None) for column in columns]
