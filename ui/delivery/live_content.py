"""The card "Live": charts of what passes, or all of them as one table, and their exports."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from PySide6.QtCore import QRectF, QSizeF, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from ui.controls import Text
from ui.delivery.buttons import Buttons
from ui.delivery.chart import ChartPainter, ChartWidget
from ui.delivery.export import csv_of, png_of, svg_of
from ui.delivery.figures import Chart
from ui.delivery.table import FigureTable
from ui.own_frame import ms_to_own_frame
from ui.regional import clock_with_seconds
from ui.theme import current_theme
from ui.times import moment
from ui.translate import tr

_CHART_WIDTH: Final = 180
_PICTURE_WIDTH: Final = 520.0
_BETWEEN: Final = 16
_AT_ONCE: Final = 2
"""Charts that are painted in one frame."""


class LiveContent(QWidget):
    export_ready = Signal(str, bytes)
    """The kind of file, and what is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.charts: list[ChartWidget] = []
        self._shown: tuple[Chart, ...] = ()
        self._waiting: list[int] = []
        """The places of charts that are not on the screen as they are by now."""
        self._next = QTimer(self)
        self._next.setSingleShot(True)
        self._next.timeout.connect(self._show_next)
        self._across = 0
        self._pictures = QWidget()
        self._grid = QGridLayout(self._pictures)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(_BETWEEN)
        self._grid.setVerticalSpacing(12)
        self.note = Text(
            tr("Counted while this view is open."), face="caption", colour="ink3", wrap=True
        )
        self.table = FigureTable(tr("Live figures, as a table"))
        self.table.hide()
        self.buttons = Buttons()
        self.buttons.table_wanted.connect(self._show_table)
        self.buttons.export_wanted.connect(self._export)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for part in (self._pictures, self.table, self.note, self.buttons):
            column.addWidget(part)
        column.addStretch(1)

    def show_charts(self, charts: tuple[Chart, ...]) -> None:
        """New ones are there at once, what changed in others comes one after the other."""
        is_new = [each.key for each in charts] != [each.key for each in self._shown]
        if is_new:
            self._make(len(charts))
        self._shown = charts
        self._waiting = [
            place for place, chart in enumerate(charts) if chart != self.charts[place].chart
        ]
        self._show_next(len(charts) if is_new else _AT_ONCE)
        self._fill_table()

    def _show_next(self, number: int = _AT_ONCE) -> None:
        for place in self._waiting[:number]:
            self.charts[place].show_chart(self._shown[place])
        del self._waiting[:number]
        if self._waiting and not self._next.isActive():
            self._next.start(ms_to_own_frame())

    def _make(self, number: int) -> None:
        for widget in self.charts:
            self._grid.removeWidget(widget)
            widget.deleteLater()
        self.charts = [ChartWidget(wide=place == 0) for place in range(number)]
        self._across = 0
        self._arrange()
        in_order: tuple[QWidget, ...] = (self.table, *self.charts)
        for before, following in pairwise(in_order):
            self.setTabOrder(before, following)  # They are younger than what stands below them.

    def _arrange(self) -> None:
        """The first across all, the others side by side as far as there is room."""
        room = self.width() + _BETWEEN
        across = max(1, room // (current_theme().metrics.scaled(_CHART_WIDTH) + _BETWEEN))
        if across == self._across:
            return
        self._across = across
        top = Qt.AlignmentFlag.AlignTop
        for place, widget in enumerate(self.charts):
            if place == 0:
                self._grid.addWidget(widget, 0, 0, 1, across, top)
            else:
                row, column = divmod(place - 1, across)
                self._grid.addWidget(widget, row + 1, column, top)
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < across else 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _show_table(self, on: bool) -> None:
        self.table.setVisible(on)
        self._pictures.setVisible(not on)
        self._fill_table()

    def _fill_table(self) -> None:
        if self.buttons.table.isChecked():
            self.table.show_rows(*live_table(self._shown))

    def _export(self, kind: str) -> None:
        self.export_ready.emit(kind, exported(self._shown, kind))


def live_table(charts: Sequence[Chart]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A row for each stretch of time, the newest first, with words as people read them."""
    if not charts:
        return (tr("Time"),), []
    named = [(chart, row) for chart in charts for row in chart.rows]
    headings = (
        tr("Time"),
        *(
            chart.title if len(chart.rows) == 1 else f"{chart.title}: {row.name}"
            for chart, row in named
        ),
    )
    rows = []
    for place in reversed(range(len(charts[0].starts_ms))):
        values = ((chart, row.values[place]) for chart, row in named)
        words = ("" if value is None else chart.words(value) for chart, value in values)
        rows.append((clock_with_seconds(moment(charts[0].starts_ms[place])), *words))
    return headings, rows


def exported(charts: Sequence[Chart], kind: str) -> bytes:
    if kind == "csv":
        return csv_of(*_numbers(charts))
    painters = [ChartPainter(chart, wide=place == 0) for place, chart in enumerate(charts)]
    heights = [painter.height(_PICTURE_WIDTH) + _BETWEEN for painter in painters]
    size = QSizeF(_PICTURE_WIDTH, sum(heights))

    def paint(painter: QPainter, box: QRectF) -> None:
        y = box.top()
        for drawn, height in zip(painters, heights, strict=True):
            drawn.paint(painter, QRectF(box.left(), y, box.width(), height - _BETWEEN))
            y += height

    return svg_of(size, tr("Live"), paint) if kind == "svg" else png_of(size, paint)


def _numbers(charts: Sequence[Chart]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """For programs: Unix milliseconds and plain numbers; empty where nothing is known."""
    named = [(chart, row) for chart in charts for row in chart.rows]
    headings = ("from_ms", *(f"{chart.key}: {row.name}" for chart, row in named))
    starts = charts[0].starts_ms if charts else ()
    rows = [
        (str(at_ms), *(_number(row.values[place]) for _, row in named))
        for place, at_ms in enumerate(starts)
    ]
    return headings, rows


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}" if value != int(value) else str(int(value))
