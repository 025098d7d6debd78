"""The answer budget: how many bytes each member may make us send per minute.

A request or a claim of a few hundred bytes can ask for megabytes.  So in any minute a member is
sent at most ``answer_bytes_factor`` times the bytes that came from it, or
``answer_bytes_per_minute`` if that is more; the rest waits for later minutes.  A member that is
missing a lot gets all of it this way, and one that asks only to make us send gets no more.  What is
requested, and whether it is really missing, is decided elsewhere.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from engine.core.ids import ParticipantId, UnixMs
from engine.core.sds.config import SdsConfig

SLOT_MS: Final = 10_000
_SLOTS: Final = 6
"""Slots per minute.  The current slot counts besides, so no minute has more than allowed."""
_MAX_ACCOUNTS: Final = 2_048
"""More than any group has; where senders are not verified there may be any number."""


class AnswerBudget:
    """The accounts of all members."""

    def __init__(self, config: SdsConfig) -> None:
        self._config = config
        self._accounts: dict[ParticipantId, _Account] = {}

    def took(self, participant_id: ParticipantId, size: int, now_ms: UnixMs) -> None:
        """Credit ``size`` bytes that came from a member."""
        account, slot = self._accounts.get(participant_id), now_ms // SLOT_MS
        if account is None:
            account = self._open(participant_id)
        if account.slot != slot:
            account.turn_to(slot)
        account.taken += size

    def charge(self, askers: Iterable[ParticipantId], size: int, now_ms: UnixMs) -> UnixMs | None:
        """Charge an answer of ``size`` bytes to the first of the askers who can pay for it.

        None: it can be sent.  Otherwise: when to try again.
        """
        again_slot: int | None = None
        cost = self._cost(size)
        for participant_id in askers:
            account = self._accounts.get(participant_id) or self._open(participant_id)
            account.turn_to(now_ms // SLOT_MS)
            free_slot = account.free_slot(cost, self._config)
            if free_slot == account.slot:
                account.given += cost
                return None
            again_slot = free_slot if again_slot is None else min(again_slot, free_slot)
        return UnixMs((again_slot or 0) * SLOT_MS)

    def forget(self) -> None:
        """The clock was set back, so the accounts start over."""
        self._accounts.clear()

    def _cost(self, size: int) -> int:
        """The size with padding, an eighth at most, and what is wrapped around a repair."""
        return size + size // 8 + self._config.answer_overhead_bytes

    def _open(self, participant_id: ParticipantId) -> "_Account":
        if len(self._accounts) >= _MAX_ACCOUNTS:
            del self._accounts[next(iter(self._accounts))]
        account = self._accounts[participant_id] = _Account()
        return account


class _Account:
    __slots__ = ("_past", "_past_given", "_past_taken", "given", "slot", "taken")

    def __init__(self) -> None:
        self.slot = 0
        self.taken = self.given = 0
        """Bytes in the current slot."""
        self._past: deque[tuple[int, int, int]] = deque()
        """Past slots of the last minute: slot, bytes taken, bytes given."""
        self._past_taken = self._past_given = 0

    def turn_to(self, slot: int) -> None:
        if slot == self.slot:
            return
        if self.taken or self.given:
            self._past.append((self.slot, self.taken, self.given))
            self._past_taken += self.taken
            self._past_given += self.given
            self.taken = self.given = 0
        self.slot = slot
        while self._past and self._past[0][0] < slot - _SLOTS:
            _, taken, given = self._past.popleft()
            self._past_taken -= taken
            self._past_given -= given

    def free_slot(self, cost: int, config: SdsConfig) -> int:
        """The first slot with room for ``cost`` bytes, if nothing is taken until then."""
        taken, given = self._past_taken + self.taken, self._past_given + self.given
        if _is_within(taken, given, cost, config):
            return self.slot
        for slot, past_taken, past_given in self._past:
            taken, given = taken - past_taken, given - past_given
            if _is_within(taken, given, cost, config):
                return slot + _SLOTS + 1
        return self.slot + _SLOTS + 1


def _is_within(taken: int, given: int, cost: int, config: SdsConfig) -> bool:
    """The first answer is always allowed, however large."""
    allowed = max(config.answer_bytes_factor * taken, config.answer_bytes_per_minute)
    return not given or given + cost <= allowed
