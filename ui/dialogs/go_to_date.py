"""Choose a day to read the conversation from, in a calendar that marks the days with messages.

Which ones they are is read for the month that is shown, beside everything else; meanwhile and for
the others any day can be chosen.  The line below says it of the chosen day, also to screen readers.
"""

import math
from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from typing import TYPE_CHECKING, TypeAlias

from PySide6.QtCore import QDate, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QPainter, QTextCharFormat
from PySide6.QtWidgets import QCalendarWidget, QTableView, QToolButton, QWidget

from ui.controls import Text
from ui.dialogs.sheet import Sheet
from ui.icons import icon
from ui.speaking import announce
from ui.tasks import Tasks
from ui.theme import current_theme, theme_changed
from ui.times import date_words
from ui.translate import tr

if TYPE_CHECKING:
    import asyncio

TalkedOn: TypeAlias = Callable[[date, date], Awaitable[frozenset[date]]]
"""Which days have messages, of those from the first to the last given."""

_FIRST = date(1970, 1, 2)
"""Clocks of computers know none before, wherever they are."""

_SHOWN_DAYS = 42
"""In six weeks."""
_WEEK = timedelta(days=7)
_HEIGHT = 264
_DOT = 2
"""Half as wide."""


class _Calendar(QCalendarWidget):
    def __init__(self) -> None:
        super().__init__()
        self.marked: frozenset[date] = frozenset()

    def mark(self, days: frozenset[date]) -> None:
        self.marked = days
        self.updateCells()

    def paintCell(self, painter: QPainter, rect: QRect, day: QDate) -> None:
        super().paintCell(painter, rect, day)
        if _date(day) in self.marked:
            theme = current_theme()
            radius = theme.metrics.scaled(_DOT)
            below = QPoint(rect.center().x(), rect.bottom() - 2 * radius)
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.onAccent if day == self.selectedDate() else theme.accent)
            painter.drawEllipse(QPointF(below), radius, radius)
            painter.restore()


class GoToDate(Sheet):
    def __init__(
        self,
        day: date,
        today: date,
        talked_on: TalkedOn,
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        """``day`` is what is being read now; nothing was said after ``today``."""
        super().__init__(tr("Go to date"), parent=parent)
        self._talked_on = talked_on
        self._tasks = tasks
        self._looking: asyncio.Task[None] | None = None
        self._looked_at = (date.max, date.min)
        """The first and the last of the days of which it is known."""
        self.calendar = _Calendar()
        self.about = Text(face="label", colour="ink2", wrap=True)
        """Of the chosen day: whether it has messages."""
        self.about.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.calendar.setAccessibleName(tr("Calendar"))
        self.calendar.setVerticalHeaderFormat(QCalendarWidget.VerticalHeaderFormat.NoVerticalHeader)
        self.calendar.setMinimumDate(_qt_date(_FIRST))
        self.calendar.setMaximumDate(_qt_date(max(day, today)))
        self.calendar.setSelectedDate(_qt_date(day))
        self.calendar.activated.connect(self.accept)
        self._name_parts()
        self.calendar.selectionChanged.connect(self._tell_of_day)
        self.calendar.currentPageChanged.connect(self._look)
        self.body.addWidget(self.calendar)
        self.body.addSpacing(8)
        self.body.addWidget(self.about)
        self.footer.addStretch(1)
        self.add_button(tr("Cancel")).clicked.connect(self.reject)
        go = self.add_button(tr("Go"), kind="primary")
        go.clicked.connect(self.accept)
        go.setDefault(True)
        theme_changed.connect(self._dress)
        self._dress()
        self._tell_of_day()
        self._look()
        self.calendar.setFocus()

    @property
    def day(self) -> date:
        """The chosen one."""
        return _date(self.calendar.selectedDate())

    # --- days with messages -----------------------------------------------------------------------

    def _look(self) -> None:
        """At the month that is shown, with what is seen of those before and after."""
        self._stop_looking()
        self._looking = self._tasks.spawn(
            self._mark, purpose=tr("find the days with messages"), retry=False
        )

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _mark(self) -> None:
        begin = date(self.calendar.yearShown(), self.calendar.monthShown(), 1)
        first = max(begin - _WEEK, _FIRST)
        last = min(begin + timedelta(days=_SHOWN_DAYS), _date(self.calendar.maximumDate()))
        found = await self._talked_on(first, last)
        self._looked_at = first, last
        self.calendar.mark(found)
        self._tell_of_day()

    def _tell_of_day(self) -> None:
        first, last = self._looked_at
        if not first <= self.day <= last:
            words = date_words(self.day)
        elif self.day in self.calendar.marked:
            words = tr("{date}: there are messages.")
        else:
            words = tr("{date}: no messages. The next ones after it are shown.")
        words = words.format(date=date_words(self.day))
        if words != self.about.text():
            self.about.setText(words)
            announce(self.calendar, words)

    def done(self, result: int) -> None:
        self._stop_looking()
        super().done(result)

    # --- how it looks -----------------------------------------------------------------------------

    def _name_parts(self) -> None:
        for part, name in (
            ("qt_calendar_prevmonth", tr("Month before")),
            ("qt_calendar_nextmonth", tr("Month after")),
        ):
            button = self.calendar.findChild(QToolButton, part)
            if isinstance(button, QToolButton):
                button.setAccessibleName(name)
                button.setToolTip(name)
        days = self.calendar.findChild(QTableView, "qt_calendar_calendarview")
        if isinstance(days, QTableView):
            days.setAccessibleName(tr("Days"))
            self.calendar.setFocusProxy(days)

    def _dress(self) -> None:
        """Weekends are days like others; Qt's own arrows are black in every theme.

        Days to come are quieter; they cannot be chosen.
        """
        theme = current_theme()
        plain, to_come = QTextCharFormat(), QTextCharFormat()
        plain.setForeground(theme.ink)
        to_come.setForeground(theme.ink3)
        self.calendar.setHeaderTextFormat(plain)
        for days in range(1, _SHOWN_DAYS):
            self.calendar.setDateTextFormat(self.calendar.maximumDate().addDays(days), to_come)
        self.calendar.setMinimumHeight(theme.metrics.scaled(_HEIGHT))
        # Its longest words take two lines, and the sheet keeps its size while one chooses.
        self.about.setMinimumHeight(math.ceil(2 * theme.type.label.line_height))
        for weekday in (Qt.DayOfWeek.Saturday, Qt.DayOfWeek.Sunday):
            self.calendar.setWeekdayTextFormat(weekday, plain)
        for part, turned in (("qt_calendar_prevmonth", False), ("qt_calendar_nextmonth", True)):
            button = self.calendar.findChild(QToolButton, part)
            if isinstance(button, QToolButton):
                side = theme.metrics.scaled(16)
                button.setIcon(icon("forward" if turned else "back", theme.ink2, side))


def _date(day: QDate) -> date:
    return date(day.year(), day.month(), day.day())


def _qt_date(day: date) -> QDate:
    return QDate(day.year, day.month, day.day)
