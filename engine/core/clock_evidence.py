"""Detects a wrong clock of ours from signed echoes of our own messages.

A member who names our message signed that after we first sent it.  So their clock can be compared
with ours, however long the message took; a message without an echo may be a recording.  The verdict
is the majority of members known for a day: identities cost nothing, but a day does.  If no one is
known that long, one person's echo is reported as just that.  This module sets no clock; the user
does.
"""

from statistics import median_high, median_low
from typing import Final

from msgspec import Struct

from engine.core.ids import ParticipantId, UnixMs

NOTICE_MS: Final = 15_000
"""A Store refuses what is 20 s off its clock."""
CLEAR_MS: Final = 10_000
"""A verdict stands until the offset is below this, so that it does not flicker."""
MEMORY_MS: Final = 3_600_000
KNOWN_LONG_MS: Final = 24 * 3_600_000
MAX_PEOPLE: Final = 256


class Echo(Struct, frozen=True, kw_only=True):
    """What one person's signed message shows about our clock."""

    participant_id: ParticipantId
    offset_ms: int
    """The least correction to our clock; 0 if the clocks agree as far as can be known."""


class ClockVerdict(Struct, frozen=True, kw_only=True):
    """Our clock is wrong."""

    offset_ms: int
    """The correction to add."""
    by: tuple[ParticipantId, ...]
    """The people whose echoes show it."""
    heard: int
    """How many people's echoes were considered, including those who disagree."""
    known_long: bool
    """True: the majority of those known for a day.  False: one person's echo."""


class _Said(Struct, frozen=True):
    at_ms: UnixMs
    offset_ms: int
    known_long: bool


class ClockEvidence:
    """The newest echo of each person.  Times are those of inputs, which no one can set."""

    def __init__(self) -> None:
        self._said: dict[ParticipantId, _Said] = {}

    def hear(self, echo: Echo, *, known_for_ms: int, now_ms: UnixMs) -> None:
        self._said.pop(echo.participant_id, None)
        known_long = known_for_ms >= KNOWN_LONG_MS
        self._said[echo.participant_id] = _Said(now_ms, echo.offset_ms, known_long)
        if len(self._said) > MAX_PEOPLE:
            strangers = (who for who, said in self._said.items() if not said.known_long)
            del self._said[next(strangers, next(iter(self._said)))]

    def forget(self) -> None:
        """Our clock was set, so earlier echoes no longer count."""
        self._said.clear()

    def verdict(self, now_ms: UnixMs, *, least_ms: int = NOTICE_MS) -> ClockVerdict | None:
        """The verdict; None if nothing shows an error of ``least_ms`` or more."""
        fresh = {who: said for who, said in self._said.items() if now_ms - said.at_ms <= MEMORY_MS}
        known_long = {who: said for who, said in fresh.items() if said.known_long}
        if known_long:
            return _majority(known_long, least_ms)
        for who, said in reversed(fresh.items()):
            if abs(said.offset_ms) >= least_ms:
                return ClockVerdict(
                    offset_ms=said.offset_ms, by=(who,), heard=len(fresh), known_long=False
                )
        return None


def _majority(said: dict[ParticipantId, _Said], least_ms: int) -> ClockVerdict | None:
    """The median of all, not only of those who agree, so a minority of liars cannot move it.

    For an even number it is the middle value nearer to 0, so more than half must lie beyond it.
    """
    offsets = [one.offset_ms for one in said.values()]
    for sign, middle in ((1, median_low(offsets)), (-1, median_high(offsets))):
        if sign * middle >= least_ms:
            by = tuple(who for who, one in said.items() if sign * one.offset_ms >= least_ms)
            return ClockVerdict(offset_ms=middle, by=by, heard=len(said), known_long=True)
    return None
