"""SDS-R: who asks for a missing message, who answers, and when.

The times are js-waku's.  A hash spreads the requests of different members, and the answers of those
who hold the message, so that usually one asks and one answers.  The original sender answers at
once, and a member that hears an answer first stays silent.  Beyond js-waku, a member whose signed
holdings are missing a message is sent it unasked after the same kind of wait, because it cannot
name what it never heard of.  Loading and sealing a message again is left to the runner and session.
"""

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from typing import Final

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.vocabulary import Hash64

_GIVEN_KEPT: Final = 10_000
_SHARES: Final = 8
_CROWDED_SHARES: Final = 64


class RepairTimes:
    """T_req, T_resp and response groups of one participant."""

    def __init__(self, participant_id: ParticipantId, *, config: SdsConfig, hash64: Hash64) -> None:
        self._me = participant_id
        self._config = config
        self._hash64 = hash64

    def request_delay_ms(self, message_id: MessageId) -> int:
        """T_req from now: H(me‖id) mod (t_max - t_min) + t_min."""
        span = self._config.repair_t_max_ms - self._config.repair_t_min_ms
        offset = self._hash64(self._me + message_id) % span if span > 0 else 0
        return self._config.repair_t_min_ms + offset

    def response_delay_ms(self, message_id: MessageId, sender_id: ParticipantId) -> int:
        """T_resp from now: ((H(me) xor H(sender))·H(id)) mod t_max; the original sender at once."""
        distance = self._hash64(self._me) ^ self._hash64(sender_id)
        return distance * self._hash64(message_id) % self._config.repair_t_max_ms

    def in_response_group(
        self, message_id: MessageId, sender_id: ParticipantId, *, members: int
    ) -> bool:
        """Whether we are among those who answer for this message."""
        groups = self.response_groups(members)
        if groups == 1 or sender_id == self._me:
            return True
        mine = self._hash64(self._me + message_id) % groups
        return mine == self._hash64(sender_id + message_id) % groups

    def response_groups(self, members: int) -> int:
        """G = max(1, n // 128)."""
        return max(1, members // self._config.repair_group_size)


class RepairAnswers:
    """Planned repairs: messages to send again for others, by due time.

    Each is planned for the members that asked for it or whose holdings are missing it.  It is
    dropped if none is missing it when due.  A member that is sent the same again waits twice as
    long each time, and no member takes all the room.
    """

    def __init__(self, config: SdsConfig) -> None:
        self._config = config
        self.planned: dict[MessageId, tuple[UnixMs, dict[ParticipantId, None]]] = {}
        """The due time, and the members it is for, in order of asking."""
        self._shares: dict[ParticipantId, int] = {}
        """How many repairs each member was the first to need."""
        self._given: dict[tuple[ParticipantId, MessageId], tuple[int, UnixMs]] = {}
        """How often a member was sent a message, and when last; oldest first."""
        self._due: list[tuple[UnixMs, int, MessageId]] = []
        self._serial = 0
        """Breaks ties: first planned, first sent."""
        self._sent: dict[MessageId, UnixMs] = {}
        """When a copy last went out, ours or another member's; oldest first."""
        self._slice_ms = UnixMs(0)
        self._left_of_slice = config.repair_answers_per_sweep

    def __len__(self) -> int:
        return len(self.planned)

    def plan(
        self, message_id: MessageId, at_ms: UnixMs, asker: ParticipantId, *, now_ms: UnixMs
    ) -> bool:
        """Answer a request at ``at_ms``; False if it was sent just now or there is no room."""
        least_ms = self._config.repair_t_min_ms // 2
        if self._sent_within(least_ms, message_id, now_ms):
            return False
        longest_ms = self._config.answer_again_longest_ms
        if self._had_lately(asker, message_id, now_ms, first_ms=least_ms, longest_ms=longest_ms):
            return False
        return self._plan(message_id, at_ms, asker)

    def plan_push(
        self, message_id: MessageId, at_ms: UnixMs, lacking: ParticipantId, *, now_ms: UnixMs
    ) -> bool:
        """Send to a member whose claim is missing it, unless a copy crossed with the claim."""
        if self.is_too_soon(message_id, lacking, now_ms):
            return False
        return self._plan(message_id, at_ms, lacking)

    def is_too_soon(self, message_id: MessageId, lacking: ParticipantId, now_ms: UnixMs) -> bool:
        """Whether a copy was on its way when a claim that arrives now was made.

        Also true if it was sent so often that a claim or two do not suffice.
        """
        config, again_ms = self._config, self._config.push_again_ms
        return self._sent_within(again_ms, message_id, now_ms) or self._had_lately(
            lacking,
            message_id,
            now_ms,
            first_ms=again_ms,
            longest_ms=config.push_again_longest_ms,
        )

    def heard(self, message_id: MessageId, now_ms: UnixMs) -> None:
        """Another member sent it again."""
        self.drop(message_id)
        self._note_sent(message_id, now_ms)

    def drop(self, message_id: MessageId) -> None:
        """Cancel the repair, if one is planned."""
        planned = self.planned.pop(message_id, None)
        if planned is not None:
            self._leave_share(planned[1])

    def bring_forward(self, now_ms: UnixMs) -> None:
        """The clock was set back: no answer is later than if it had been planned just now."""
        self._sent.clear()  # The times are unknown now.
        self._given.clear()
        self._slice_ms = min(self._slice_ms, now_ms)
        latest_ms = UnixMs(now_ms + self._config.repair_t_max_ms)
        for message_id, (at_ms, lacking) in self.planned.items():
            if at_ms > latest_ms:
                self.planned[message_id] = latest_ms, lacking
                self._serial += 1
                heappush(self._due, (latest_ms, self._serial, message_id))

    def next_deadline(self) -> UnixMs | None:
        while self._due:
            at_ms, _, message_id = self._due[0]
            planned = self.planned.get(message_id)
            if planned is not None and planned[0] == at_ms:
                if self._left_of_slice:
                    return at_ms
                return max(at_ms, UnixMs(self._slice_ms + self._config.sweep_spacing_ms))
            heappop(self._due)
        return None

    def take_due(self, now_ms: UnixMs) -> Iterable[tuple[MessageId, Collection[ParticipantId]]]:
        """Remove and yield what is due, each with the members that need it."""
        if not self._slice_ms <= now_ms < self._slice_ms + self._config.sweep_spacing_ms:
            self._slice_ms, self._left_of_slice = now_ms, self._config.repair_answers_per_sweep
        while self._left_of_slice:
            at = self.next_deadline()
            if at is None or at > now_ms:
                return
            self._left_of_slice -= 1
            message_id = heappop(self._due)[2]
            lacking = self.planned.pop(message_id)[1]
            self._leave_share(lacking)
            yield message_id, lacking

    def put_off(
        self, message_id: MessageId, lacking: Iterable[ParticipantId], until_ms: UnixMs
    ) -> None:
        """Postpone a due repair that cannot be sent yet."""
        self._left_of_slice += 1
        self._put(message_id, until_ms, dict.fromkeys(lacking))

    def answered(
        self, message_id: MessageId, lacking: Iterable[ParticipantId], now_ms: UnixMs
    ) -> None:
        """Remember that these members were sent it now."""
        self._note_sent(message_id, now_ms)
        for participant_id in lacking:
            key = participant_id, message_id
            times, _ = self._given.pop(key, (0, now_ms))
            self._given[key] = times + 1, now_ms
        while len(self._given) > _GIVEN_KEPT:
            del self._given[next(iter(self._given))]

    def _note_sent(self, message_id: MessageId, now_ms: UnixMs) -> None:
        self._sent.pop(message_id, None)
        self._sent[message_id] = now_ms
        while len(self._sent) > self._config.repair_buffer:
            del self._sent[next(iter(self._sent))]

    def _sent_within(self, age_ms: int, message_id: MessageId, now_ms: UnixMs) -> bool:
        sent_ms = self._sent.get(message_id)
        return sent_ms is not None and now_ms < sent_ms + age_ms

    def _had_lately(
        self,
        participant_id: ParticipantId,
        message_id: MessageId,
        now_ms: UnixMs,
        *,
        first_ms: int,
        longest_ms: int,
    ) -> bool:
        """Whether it was sent to a member too recently; the limit doubles each time."""
        given = self._given.get((participant_id, message_id))
        if given is None:
            return False
        times, at_ms = given
        wait_ms = min(first_ms << min(times - 1, 20), max(longest_ms, first_ms))
        return now_ms < at_ms + wait_ms

    def _plan(self, message_id: MessageId, at_ms: UnixMs, lacking: ParticipantId) -> bool:
        planned = self.planned.get(message_id)
        if planned is None:
            if not self._room_for(lacking):
                return False
            self._put(message_id, at_ms, {lacking: None})
            return True
        planned[1][lacking] = None
        if planned[0] > at_ms:
            self.planned[message_id] = at_ms, planned[1]
            self._serial += 1
            heappush(self._due, (at_ms, self._serial, message_id))
        return True

    def _room_for(self, participant_id: ParticipantId) -> bool:
        """Each member gets an eighth, and less once half is taken, so that others find room."""
        room, planned = self._config.repair_buffer, len(self.planned)
        share = room // (_CROWDED_SHARES if 2 * planned >= room else _SHARES)
        return planned < room and self._shares.get(participant_id, 0) < max(share, 1)

    def _put(
        self, message_id: MessageId, at_ms: UnixMs, lacking: dict[ParticipantId, None]
    ) -> None:
        self.planned[message_id] = at_ms, lacking
        first = next(iter(lacking))
        self._shares[first] = self._shares.get(first, 0) + 1
        self._serial += 1
        heappush(self._due, (at_ms, self._serial, message_id))

    def _leave_share(self, lacking: Iterable[ParticipantId]) -> None:
        first = next(iter(lacking))
        self._shares[first] -= 1
        if not self._shares[first]:
            del self._shares[first]
