"""Choose a day to read the conversation from, in a calendar."""

from datetime import date

from PySide6.QtCore import QDate, Qt
from PySide6.QtGui import QTextCharFormat
from PySide6.QtWidgets import QCalendarWidget, QTableView, QToolButton, QWidget

from ui.dialogs.sheet import Sheet
from ui.icons import icon
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_FIRST = date(1970, 1, 2)
"""Clocks of computers know none before, wherever they are."""

_SHOWN_DAYS = 42
"""In six weeks."""
_HEIGHT = 264


class GoToDate(Sheet):
    def __init__(self, day: date, today: date, parent: QWidget | None = None) -> None:
        """``day`` is what is being read now; nothing was said after ``today``."""
        super().__init__(tr("Go to date"), parent=parent)
        self.calendar = QCalendarWidget()
        self.calendar.setAccessibleName(tr("Calendar"))
        self.calendar.setVerticalHeaderFormat(QCalendarWidget.VerticalHeaderFormat.NoVerticalHeader)
        self.calendar.setMinimumDate(_qt_date(_FIRST))
        self.calendar.setMaximumDate(_qt_date(max(day, today)))
        self.calendar.setSelectedDate(_qt_date(day))
        self.calendar.activated.connect(self.accept)
        self._name_parts()
        self.body.addWidget(self.calendar)
        self.footer.addStretch(1)
        self.add_button(tr("Cancel")).clicked.connect(self.reject)
        go = self.add_button(tr("Go"), kind="primary")
        go.clicked.connect(self.accept)
        go.setDefault(True)
        theme_changed.connect(self._dress)
        self._dress()
        self.calendar.setFocus()

    @property
    def day(self) -> date:
        """The chosen one."""
        chosen = self.calendar.selectedDate()
        return date(chosen.year(), chosen.month(), chosen.day())

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
        for weekday in (Qt.DayOfWeek.Saturday, Qt.DayOfWeek.Sunday):
            self.calendar.setWeekdayTextFormat(weekday, plain)
        for part, turned in (("qt_calendar_prevmonth", False), ("qt_calendar_nextmonth", True)):
            button = self.calendar.findChild(QToolButton, part)
            if isinstance(button, QToolButton):
                side = theme.metrics.scaled(16)
                button.setIcon(icon("forward" if turned else "back", theme.ink2, side))


def _qt_date(day: date) -> QDate:
    return QDate(day.year, day.month, day.day)
