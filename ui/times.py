"""Times, dates and durations in words, as near to now as people say them.

How a date is written is the user's country's matter (``ui/regional.py``).  A time that somebody's
clock said may be any number; it is shown as near as a calendar can.
"""

from datetime import date, datetime, timedelta
from typing import Final

from ui import regional
from ui.translate import tr

LATEST_MS: Final = 253_370_764_800_000
"""The year 9999: a foreign clock beyond it is shown as that, because no calendar goes further."""
_WEEK_DAYS: Final = 7
_SECONDS_SAID: Final = 120
_MINUTES_SAID: Final = 2 * 60
_HOURS_SAID: Final = 48
_DAYS_SAID: Final = 2 * 365


def moment(at_ms: int) -> datetime:
    """A time that somebody's clock said, in local time, as near as a calendar can show it."""
    return datetime.fromtimestamp(min(max(at_ms, 0), LATEST_MS) / 1000).astimezone()


def clock_time(at: datetime) -> str:
    """`"14:08"`."""
    return regional.clock(at)


def date_words(at: date) -> str:
    """`"3 November 2026"`."""
    return regional.day_of_year(at)


def moment_words(at: datetime) -> str:
    """Date and time in full: `"20 November 2026, 14:08"`."""
    return tr("{date}, {time}").format(date=date_words(at), time=clock_time(at))


def list_time(sent_ms: int, now: datetime) -> str:
    """Today "14:08", this week "Wed", this year "3 Nov", else "3 Nov 2024"."""
    sent = moment(sent_ms).astimezone(now.tzinfo)
    if sent.date() == now.date():
        return clock_time(sent)
    days = (now.date() - sent.date()).days
    if 0 < days < _WEEK_DAYS:
        return regional.weekday(sent, short=True)
    return regional.day_of_year(sent, with_year=sent.year != now.year, short=True)


def spoken_time(sent_ms: int, now: datetime) -> str:
    sent = moment(sent_ms).astimezone(now.tzinfo)
    if sent.date() == now.date():
        return clock_time(sent)
    if sent.date() == now.date() - timedelta(days=1):
        return tr("yesterday {time}").format(time=clock_time(sent))
    return moment_words(sent)


def day_words(day: date, today: date) -> str:
    """`"Today"`, `"Yesterday"`, `"Monday"`, `"3 November"`, `"3 November 2024"`."""
    if day == today:
        return tr("Today")
    if day == today - timedelta(days=1):
        return tr("Yesterday")
    if timedelta(0) < today - day < timedelta(days=_WEEK_DAYS):
        name = regional.weekday(day)
        return name[:1].upper() + name[1:]
    return short_date(day, today)


def short_date(day: date, today: date) -> str:
    """`"3 November"`, with the year if that is another one."""
    return regional.day_of_year(day, with_year=day.year != today.year)


def time_and_date(at: datetime, today: date) -> str:
    """`"14:08"` today, else `"3 November, 14:08"`."""
    if at.date() == today:
        return clock_time(at)
    return tr("{date}, {time}").format(date=short_date(at.date(), today), time=clock_time(at))


def duration_words(length_ms: int) -> str:
    """One number and one unit, rounded down: `"12 min"`, `"3 h"`, `"4 days"`, `"5 years"`."""
    minutes = max(1, length_ms // 60_000)
    if minutes < _MINUTES_SAID:
        return tr("{number} min").format(number=minutes)
    if minutes // 60 < _HOURS_SAID:
        return tr("{number} h").format(number=minutes // 60)
    return days_words(minutes // (24 * 60))


def off_words(off_ms: int) -> str:
    """A difference of clocks: `"20 s"`, `"12 min"`, `"1 h 2 min"`, `"3 days"`, `"5 years"`."""
    seconds = abs(off_ms) // 1_000
    if seconds < _SECONDS_SAID:
        return tr("{number} s").format(number=seconds)
    hours, minutes = divmod(seconds // 60, 60)
    if hours < 1:
        return tr("{number} min").format(number=minutes)
    if hours < _HOURS_SAID:
        if not minutes:
            return tr("{number} h").format(number=hours)
        return tr("{hours} h {minutes} min").format(hours=hours, minutes=minutes)
    return days_words(hours // 24)


def days_words(days: int) -> str:
    """`"4 days"`, and from two years on `"5 years"`."""
    if days < _DAYS_SAID:
        return tr("%n days", "%n day", days)
    years = days // 365
    return tr("%n years", "%n year", years)
