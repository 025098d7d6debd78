"""Our clock, as a session uses it.

A session receives a time that never goes back, and runs its timers by it.  What others see (Waku
timestamps, signed times, Lamport timestamps) uses our clock: the system's time plus the correction
that the user set.
"""

from dataclasses import dataclass

from engine.core.ids import UnixMs


@dataclass(slots=True)
class SessionClock:
    offset_ms: int = 0
    """How far our clock is ahead of the time that the session receives."""

    def at(self, now_ms: UnixMs) -> UnixMs:
        return UnixMs(now_ms + self.offset_ms)
