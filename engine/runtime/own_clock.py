"""Our clock: the system's time plus one stored offset, which only the user sets.

Timers use steady time, which nobody can set: the system's time at the start plus a counter that
also counts while the machine sleeps.  If the system's time moves against it, the clock was set.
The new time is assumed to be right, so the stored offset is dropped.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.core.errors import InputError, InputFlaw
from engine.core.ids import UnixMs
from engine.core.ports import SaveValue

OFFSET_KEY: Final = "clock.offset"
"""Profile key of a ``StoredOffset``; "" for none."""
JUMP_MS: Final = 5_000
"""If the system's time moves by this much against the counter, it was set."""
TOLD_FROM_MS: Final = 1_000
"""Smaller changes are not reported: synchronised clocks move a little all the time."""
LONGEST_OFFSET_MS: Final = 100 * 365 * 24 * 3_600_000
_NS_PER_MS: Final = 1_000_000
_GOES_ON_ASLEEP: Final = {"linux": "CLOCK_BOOTTIME", "darwin": "CLOCK_MONOTONIC"}
"""A clock that runs while the machine sleeps, for platforms where ``time.monotonic`` does not."""


def boot_time_ms() -> int:
    """Milliseconds on a counter that also runs while the machine sleeps; not a time of day."""
    clock: int | None = getattr(time, _GOES_ON_ASLEEP.get(sys.platform, ""), None)
    counted_ns = time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
    return counted_ns // _NS_PER_MS


class StoredOffset(Struct, frozen=True, kw_only=True):
    """An offset that the user set: added to the system's time since ``since_ms`` by that time."""

    offset_ms: int
    since_ms: UnixMs


def saved(stored: StoredOffset | None) -> SaveValue:
    if stored is None:
        return SaveValue(key=OFFSET_KEY, value="")
    words = {"offset_ms": stored.offset_ms, "since_ms": stored.since_ms}
    return SaveValue(key=OFFSET_KEY, value=json.dumps(words))


def read_offset(value: str | None) -> StoredOffset | None:
    """The inverse of ``saved``."""
    if not value:
        return None
    words = json.loads(value)
    return StoredOffset(offset_ms=words["offset_ms"], since_ms=UnixMs(words["since_ms"]))


class OwnClock:
    """May be read on any thread, but set only on the loop's."""

    def __init__(
        self, system_ms: Callable[[], UnixMs], counted_ms: Callable[[], int] = boot_time_ms
    ) -> None:
        self._system_ms = system_ms
        self._counted_ms = counted_ms
        self._begun_ms = system_ms() - counted_ms()
        self._system_ahead_ms = 0
        """How far the system's time was ahead of steady time at the last check."""
        self._told_ms = 0
        self._dropped: StoredOffset | None = None
        self.stored: StoredOffset | None = None
        self.skew_ms = 0
        """Added on purpose, to try what a wrong clock does; never kept."""

    def steady_ms(self) -> UnixMs:
        """Steady time for timers: it never goes back."""
        return UnixMs(self._begun_ms + self._counted_ms())

    def system_ms(self) -> UnixMs:
        """The system's time of day, whatever the user says of it."""
        return self._system_ms()

    def clock_ms(self) -> UnixMs:
        """The time of day that others see."""
        return UnixMs(max(self._look() + self._stored_ms, 0))

    def offset_ms(self) -> int:
        """How far our clock is ahead of steady time; updated when it moves by at least a second."""
        system_ms = self._look()
        ahead_ms = system_ms - self.steady_ms() + self._stored_ms
        if abs(ahead_ms - self._told_ms) >= TOLD_FROM_MS:
            self._told_ms = ahead_ms
        return self._told_ms

    def restore(self, stored: StoredOffset | None) -> bool:
        """Restore the stored offset.  Returns False if it is dropped.

        It is dropped if the system's time is earlier than when it was set.
        """
        is_old = stored is not None and self._system_ms() < stored.since_ms
        self.stored = None if is_old else stored
        return not is_old

    def set_offset(self, offset_ms: int | None) -> StoredOffset | None:
        """Set the offset; None: the system's time is right.  Raises ConfigError if out of range."""
        system_ms = self._look()
        if offset_ms is not None and (
            abs(offset_ms) > LONGEST_OFFSET_MS or system_ms + offset_ms < 0
        ):
            raise InputError(InputFlaw.OFFSET, given=offset_ms)
        self.stored = StoredOffset(offset_ms=offset_ms, since_ms=system_ms) if offset_ms else None
        return self.stored

    def take_dropped(self) -> StoredOffset | None:
        """Return the offset dropped since the last call because the system's time jumped."""
        dropped, self._dropped = self._dropped, None
        return dropped

    @property
    def _stored_ms(self) -> int:
        stored = self.stored
        return self.skew_ms + (0 if stored is None else stored.offset_ms)

    def _look(self) -> UnixMs:
        system_ms = self._system_ms()
        ahead_ms = system_ms - self.steady_ms()
        if abs(ahead_ms - self._system_ahead_ms) > JUMP_MS:
            self._dropped, self.stored = self.stored or self._dropped, None
        self._system_ahead_ms = ahead_ms
        return system_ms
