"""Whether our clock is wrong, by signed echoes of what we said ourselves.

Somebody who names a message of ours signed that after we first sent it, so their clock can be held
against ours, however long their words took; what is merely heard may be a recording.  The majority
of members who have been known for a day counts: identities cost nothing, a day does.  Where nobody
is known so long, one person's word is shown as that.  Nothing here sets a clock; a person does.
"""

from dataclasses import dataclass
from statistics import median_high, median_low
from typing import Final

from engine.core.ids import ParticipantId, UnixMs

NOTICE_MS: Final = 15_000
"""A Store refuses what is 20 s off its clock."""
CLEAR_MS: Final = 10_000
"""What was told stands until it is less than this, so that it does not come and go."""
MEMORY_MS: Final = 3_600_000
KNOWN_LONG_MS: Final = 24 * 3_600_000
MAX_PEOPLE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """What one person's signed words say of our clock."""

    participant_id: ParticipantId
    offset_ms: int
    """What would have to be added to our clock at least; 0: they agree, as far as can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockVerdict:
    """Our clock is wrong."""

    offset_ms: int
    """What is to be added to it."""
    by: tuple[ParticipantId, ...]
    """Who says so."""
    heard: int
    """How many of whom were heard, those who say otherwise included."""
    known_long: bool
    """They are the majority of those who have been known for a day; else one person's word."""


@dataclass(frozen=True, slots=True)
class _Said:
    at_ms: UnixMs
    offset_ms: int
    known_long: bool


class ClockEvidence:
    """The newest echo of each person.  Times are those of inputs, which nobody can set."""

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
        """Our clock was set: what was said of it is past."""
        self._said.clear()

    def verdict(self, now_ms: UnixMs, *, least_ms: int = NOTICE_MS) -> ClockVerdict | None:
        """None: nothing says that our clock is wrong by ``least_ms`` or more."""
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
    """The middle of all, not of those who agree: a minority of liars moves it by nothing.

    Of an even number the one nearer to no offset: it is reached if more than half lie beyond.
    """
    offsets = [one.offset_ms for one in said.values()]
    for sign, middle in ((1, median_low(offsets)), (-1, median_high(offsets))):
        if sign * middle >= least_ms:
            by = tuple(who for who, one in said.items() if sign * one.offset_ms >= least_ms)
            return ClockVerdict(offset_ms=middle, by=by, heard=len(said), known_long=True)
    return None
