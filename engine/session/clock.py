"""Our clock, as a session is told it.

Sessions are given a time that only ever goes on, and their timers go by it.  What others see (Waku
timestamps, signed times, Lamport timestamps) goes by our clock: the system's, and what a person
added to it.
"""

from dataclasses import dataclass

from engine.core.ids import UnixMs


@dataclass(slots=True)
class SessionClock:
    offset_ms: int = 0
    """How far our clock is ahead of the time that a session is given."""

    def at(self, now_ms: UnixMs) -> UnixMs:
        return UnixMs(now_ms + self.offset_ms)
