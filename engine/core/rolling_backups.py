"""Which of the backups that are made by themselves stay, and when the next one is due.

One a day is made.  Of each of the last days the newest stays, and of each of the last weeks; the
others may go.  "Last" and "newest" go by the order in which they were made and never by a date: a
clock that was set ahead or back for a while costs no backup that was made by the right time.
Making and deleting are in ``engine.persistence.rolling_backups``.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

MAX_DAILY: Final = 60
MAX_WEEKLY: Final = 52
MAX_REMEMBERED: Final = 256
"""Backups in all folders together; whichever is forgotten is never deleted."""
REMIND_AFTER_MS: Final = 30 * 24 * 3_600 * 1_000


class RollingBackup(Struct, frozen=True, kw_only=True):
    """A file that was made by itself, checked, and was not deleted since."""

    path: str
    mark: str
    """What is random in its header: another file that took its name has another one."""
    day: str
    """The user's date when it was made, such as "2026-11-26"."""
    week: str
    """Likewise, such as "2026-W48"."""


class Kept(Struct, frozen=True, kw_only=True):
    """How many stay: of so many days and of so many weeks the newest."""

    daily: int = 7
    weekly: int = 4


def is_due(made: Sequence[RollingBackup], today: str) -> bool:
    """``made``: in one folder, in the order of making.  Also if the clock was set back."""
    return not made or made[-1].day != today


def to_let_go(made: Sequence[RollingBackup], kept: Kept) -> list[RollingBackup]:
    """Those of ``made`` that may be deleted now; never the newest."""
    days: set[str] = set()
    weeks: set[str] = set()
    going: list[RollingBackup] = []
    for number, backup in enumerate(reversed(made)):
        is_of_day = backup.day not in days and len(days) < kept.daily
        is_of_week = backup.week not in weeks and len(weeks) < kept.weekly
        if is_of_day:
            days.add(backup.day)
        if is_of_week:
            weeks.add(backup.week)
        if number and not is_of_day and not is_of_week:
            going.append(backup)
    return going


def is_reminder_due(last_good_ms: int, now_ms: int) -> bool:
    return now_ms - last_good_ms > REMIND_AFTER_MS
