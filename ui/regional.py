"""Numbers, sizes and dates as the user's language and country write them.

Qt's default locale decides, which ``ui/languages.py`` sets.  A server without Qt's libraries, where
only ``causerie doctor`` has words, writes them as English does.
"""

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from functools import cmp_to_key, lru_cache
from typing import Final, TypeVar

try:
    from PySide6.QtCore import QCollator, QDate, QLocale, QTime
except ImportError:
    _HAS_QT = False
else:
    _HAS_QT = True

T = TypeVar("T")

_WEEKDAY: Final = re.compile(r"d{3,4}[,،]?\s*|[,،]?\s*d{3,4}$")
_YEAR: Final = re.compile(r"[,،]?\s*y+")


def grouped(value: int) -> str:
    """`"3,240"`, in French `"3 240"` with a space that never breaks."""
    return QLocale().toString(value) if _HAS_QT else f"{value:,}"


def decimal(value: float, digits: int = 1) -> str:
    """`"2.5"`, in French `"2,5"`."""
    return QLocale().toString(value, "f", digits) if _HAS_QT else f"{value:,.{digits}f}"


def clock(at: datetime) -> str:
    """`"14:08"`; in American English `"2:08 PM"`."""
    if not _HAS_QT:
        return f"{at:%H:%M}"
    return QLocale().toString(QTime(at.hour, at.minute), QLocale.FormatType.ShortFormat)


def clock_with_seconds(at: datetime) -> str:
    """`"14:08:31"`."""
    if not _HAS_QT:
        return f"{at:%H:%M:%S}"
    locale = QLocale()
    pattern = locale.timeFormat(QLocale.FormatType.LongFormat)
    return locale.toString(
        QTime(at.hour, at.minute, at.second), re.sub(r"\s*\(?t+\)?", "", pattern)
    )


def day_of_year(at: date, *, with_year: bool = True, short: bool = False) -> str:
    """`"3 November 2026"`, `"3 November"`, `"3 Nov"`; in French `"3 novembre 2026"`."""
    if not _HAS_QT:
        return f"{at.day} {at:{'%b' if short else '%B'}}" + (f" {at.year}" if with_year else "")
    locale = QLocale()
    pattern = _date_pattern(locale.dateFormat(QLocale.FormatType.LongFormat), with_year, short)
    return locale.toString(QDate(at.year, at.month, at.day), pattern)


@lru_cache(maxsize=16)
def _date_pattern(long: str, with_year: bool, short: bool) -> str:
    """A locale knows its order of day, month and year only with a weekday and all of them."""
    pattern = _WEEKDAY.sub("", long).strip()
    if not with_year:
        pattern = _YEAR.sub("", pattern).strip()
    return pattern.replace("MMMM", "MMM") if short else pattern


def weekday(at: date, *, short: bool = False) -> str:
    """`"Monday"`, `"Mon"`."""
    if not _HAS_QT:
        return f"{at:{'%a' if short else '%A'}}"
    form = QLocale.FormatType.ShortFormat if short else QLocale.FormatType.LongFormat
    return QLocale().standaloneDayName(at.isoweekday(), form)


def in_order(things: Iterable[T], *, key: Callable[[T], str]) -> list[T]:
    """Sorted for people: accents and case matter only between texts that are otherwise equal."""
    if not _HAS_QT:
        return sorted(things, key=lambda thing: key(thing).casefold())
    collator = QCollator(QLocale())
    compared = cmp_to_key(collator.compare)
    return sorted(things, key=lambda thing: compared(key(thing)))
