"""Our clock: the system's time plus one stored offset, which only a person sets.

Timers go by another time, which nobody can set: the system's at the start plus what a counter has
counted since, also while the machine slept.  Their difference tells when the system's time jumped:
then whoever set it meant it to be right, and the stored offset is dropped.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.core.errors import ConfigError
from engine.core.ids import UnixMs
from engine.core.ports import SaveValue

OFFSET_KEY: Final = "clock.offset"
"""In the profile: a ``StoredOffset``, "" for none."""
JUMP_MS: Final = 5_000
"""The system's time moved by so much against the counter: somebody or something set it."""
TOLD_FROM_MS: Final = 1_000
"""Less is no news: a clock that is kept right is moved by a little all the time."""
LONGEST_OFFSET_MS: Final = 100 * 365 * 24 * 3_600_000
_NS_PER_MS: Final = 1_000_000
_GOES_ON_ASLEEP: Final = {"linux": "CLOCK_BOOTTIME", "darwin": "CLOCK_MONOTONIC"}
"""Where the counter behind ``time.monotonic`` stops while the machine sleeps."""


def boot_time_ms() -> int:
    """Counts also while the machine sleeps, and does not know what time it is."""
    clock: int | None = getattr(time, _GOES_ON_ASLEEP.get(sys.platform, ""), None)
    counted_ns = time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
    return counted_ns // _NS_PER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOffset:
    """What a person set: so much is added to the system's time, since then by the system's."""

    offset_ms: int
    since_ms: UnixMs


def saved(stored: StoredOffset | None) -> SaveValue:
    if stored is None:
        return SaveValue(key=OFFSET_KEY, value="")
    words = {"offset_ms": stored.offset_ms, "since_ms": stored.since_ms}
    return SaveValue(key=OFFSET_KEY, value=json.dumps(words))


def read_offset(value: str | None) -> StoredOffset | None:
    """What ``saved`` wrote."""
    if not value:
        return None
    words = json.loads(value)
    return StoredOffset(offset_ms=words["offset_ms"], since_ms=UnixMs(words["since_ms"]))


class OwnClock:
    """May be asked on any thread; set on the loop's."""

    def __init__(
        self, system_ms: Callable[[], UnixMs], counted_ms: Callable[[], int] = boot_time_ms
    ) -> None:
        self._system_ms = system_ms
        self._counted_ms = counted_ms
        self._begun_ms = system_ms() - counted_ms()
        self._system_ahead_ms = 0
        """Of steady time, at the last look."""
        self._told_ms = 0
        self._dropped: StoredOffset | None = None
        self.stored: StoredOffset | None = None
        self.jumps = 0
        """How often the system's time was set."""

    def steady_ms(self) -> UnixMs:
        """For timers: it only ever goes on."""
        return UnixMs(self._begun_ms + self._counted_ms())

    def clock_ms(self) -> UnixMs:
        """What time it is, for all that others see."""
        return UnixMs(max(self._look() + self._stored_ms, 0))

    def offset_ms(self) -> int:
        """What our clock is ahead of steady time; another one only if it moved by a second."""
        system_ms = self._look()
        ahead_ms = system_ms - self.steady_ms() + self._stored_ms
        if abs(ahead_ms - self._told_ms) >= TOLD_FROM_MS:
            self._told_ms = ahead_ms
        return self._told_ms

    def restore(self, stored: StoredOffset | None) -> bool:
        """What was saved.  False: the system's time is earlier than when it was set, so it goes."""
        is_old = stored is not None and self._system_ms() < stored.since_ms
        self.stored = None if is_old else stored
        return not is_old

    def set_offset(self, offset_ms: int | None) -> StoredOffset | None:
        """None: the system's time is right.  Raises ConfigError for what leads out of time."""
        system_ms = self._look()
        if offset_ms is not None and (
            abs(offset_ms) > LONGEST_OFFSET_MS or system_ms + offset_ms < 0
        ):
            raise ConfigError("A clock can be set by a hundred years at most.")
        self.stored = StoredOffset(offset_ms=offset_ms, since_ms=system_ms) if offset_ms else None
        return self.stored

    def take_dropped(self) -> StoredOffset | None:
        """What was dropped since this was last asked, because the system's time jumped."""
        dropped, self._dropped = self._dropped, None
        return dropped

    @property
    def _stored_ms(self) -> int:
        stored = self.stored
        return 0 if stored is None else stored.offset_ms

    def _look(self) -> UnixMs:
        system_ms = self._system_ms()
        ahead_ms = system_ms - self.steady_ms()
        if abs(ahead_ms - self._system_ahead_ms) > JUMP_MS:
            self.jumps += 1
            self._dropped, self.stored = self.stored or self._dropped, None
        self._system_ahead_ms = ahead_ms
        return system_ms
