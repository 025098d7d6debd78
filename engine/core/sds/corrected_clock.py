"""Corrected now: our own clock plus the median offset of what other members' clocks say.

A message from the future is judged by this clock, so that a device whose own clock is wrong neither
holds everybody's messages aside nor takes what is far ahead.  Each member counts once, with its
newest live message, and fewer than three members correct nothing: one or two could be those who
are wrong.  What is signed by nobody proves no clock; the caller leaves it out.
"""

from statistics import median_low

from engine.core.sds.config import SdsConfig
from engine.core.types import ParticipantId, UnixMs


class CorrectedClock:
    """Offsets of other members' clocks from ours, newest last."""

    __slots__ = ("_config", "_heard", "is_ours")

    def __init__(self, config: SdsConfig) -> None:
        self._config = config
        self._heard: dict[ParticipantId, tuple[UnixMs, int]] = {}
        self.is_ours = config.clock_senders_min > 0
        """Too few were heard to correct our own."""

    def hear(self, participant_id: ParticipantId, sent_ms: UnixMs, now_ms: UnixMs) -> None:
        """A member has just sent something, at this time by its clock."""
        self._heard.pop(participant_id, None)
        self._heard[participant_id] = now_ms, sent_ms - now_ms
        if len(self._heard) > self._config.clock_senders_max:
            del self._heard[next(iter(self._heard))]
        self.is_ours = len(self._heard) < self._config.clock_senders_min

    def retain(self, members: frozenset[ParticipantId]) -> None:
        """Forget who is no member."""
        for participant_id in self._heard.keys() - members:
            del self._heard[participant_id]
        self.is_ours = len(self._heard) < self._config.clock_senders_min

    def offset_ms(self, now_ms: UnixMs) -> int:
        """What must be added to our clock; 0 while too few were heard lately."""
        if self.is_ours:
            return 0
        oldest_ms = now_ms - self._config.clock_memory_ms
        offsets = [
            offset for heard_ms, offset in self._heard.values() if oldest_ms <= heard_ms <= now_ms
        ]
        return median_low(offsets) if len(offsets) >= self._config.clock_senders_min else 0

    def now(self, now_ms: UnixMs) -> UnixMs:
        return now_ms if self.is_ours else UnixMs(now_ms + self.offset_ms(now_ms))
