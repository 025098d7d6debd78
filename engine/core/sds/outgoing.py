"""The buffer of unacknowledged outgoing messages and its sweep.

This is participant state and Periodic Outgoing Buffer Sweep of the specification: three states with
distinct resend periods; the first certain evidence removes a message.  Beyond it, periods double up
to a bound, and attempts count only while online.  A message that no relay, service node or Store
ever took is given up (FAILED) until the user asks again.  Sealing and publishing are handled
elsewhere.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Final

from msgspec.structs import replace

from engine.core.entropy import RandomUnit
from engine.core.ids import MessageId, UnixMs
from engine.core.sds.bloom import base_hashes
from engine.core.sds.config import SdsConfig
from engine.core.sds.step import Step
from engine.core.sds.vocabulary import (
    Broadcast,
    MarkAccepted,
    OutgoingChanged,
    OutgoingEntry,
    OutgoingState,
    PutOutgoing,
    RemoveOutgoing,
    SendPurpose,
)

# Looking a member up in its enumeration costs a call.
_UNACKNOWLEDGED: Final = OutgoingState.UNACKNOWLEDGED
_POSSIBLY_ACKNOWLEDGED: Final = OutgoingState.POSSIBLY_ACKNOWLEDGED
_ACKNOWLEDGED: Final = OutgoingState.ACKNOWLEDGED
_FAILED: Final = OutgoingState.FAILED
_CONTENT: Final = SendPurpose.CONTENT


class OutgoingBuffer:
    """Our messages that no one is known to hold yet, by id and by due time."""

    def __init__(
        self, entries: Iterable[OutgoingEntry], *, config: SdsConfig, random_unit: RandomUnit
    ) -> None:
        self._config = config
        self._random = random_unit
        self._waiting: dict[MessageId, OutgoingEntry] = {}
        self.unhinted: dict[MessageId, tuple[int, int]] = {}
        """Messages that no one is known to hold even perhaps, with their bloom hashes."""
        self._due: list[tuple[UnixMs, MessageId]] = []
        self._gate_ms = UnixMs(0)
        for entry in entries:
            self._keep(entry)

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def entries(self) -> Iterator[OutgoingEntry]:
        return iter(self._waiting.values())

    def is_untaken(self, message_id: MessageId) -> bool:
        entry = self._waiting.get(message_id)
        return entry is not None and not entry.accepted

    def among(self, message_ids: Iterable[MessageId]) -> list[MessageId]:
        """Those of these messages that are in the buffer."""
        return [*filter(self._waiting.__contains__, message_ids)]

    def next_deadline(self) -> UnixMs | None:
        """When the sweep next has something to rebroadcast, if we are online."""
        due = self._due
        while due and not self._is_current(due[0]):
            heappop(due)
        return max(due[0][0], self._gate_ms) if due else None

    def add(self, message_id: MessageId, raw: bytes, *, online: bool, step: Step) -> None:
        """Add a message just written; it is sent now if online, otherwise on coming online."""
        now_ms, accepted = step.now_ms, False
        attempts, next_send_ms = 0, now_ms
        if online:
            period_ms = self._about(self._config.resend_unacknowledged_ms[0])
            attempts, next_send_ms = 1, UnixMs(now_ms + period_ms)
            step.sends.append(Broadcast(message_id, raw, _CONTENT))
        entry = OutgoingEntry(
            message_id, raw, _UNACKNOWLEDGED, attempts, next_send_ms, accepted, now_ms
        )
        self._waiting[message_id] = entry
        self.unhinted[message_id] = base_hashes(message_id)
        heappush(self._due, (next_send_ms, message_id))
        step.writes.append(PutOutgoing(entry))

    def acknowledge(self, message_id: MessageId, step: Step) -> None:
        """Certain evidence: remove the message, so rebroadcasts end."""
        entry = self._waiting.pop(message_id, None)
        if entry is None:
            return
        self.unhinted.pop(message_id, None)
        step.writes.append(RemoveOutgoing(message_id))
        step.events.append(OutgoingChanged(message_id, _ACKNOWLEDGED, entry.accepted))

    def remove(self, message_id: MessageId, step: Step) -> None:
        """Remove a message that another one replaces, or that was sent often enough."""
        if self._waiting.pop(message_id, None) is not None:
            self.unhinted.pop(message_id, None)
            step.writes.append(RemoveOutgoing(message_id))

    def possibly_acknowledge(self, message_id: MessageId, step: Step) -> None:
        """Uncertain evidence: rebroadcasts continue more slowly."""
        entry = self._waiting.get(message_id)
        if entry is None or entry.state is _POSSIBLY_ACKNOWLEDGED:
            return
        state = _POSSIBLY_ACKNOWLEDGED
        attempts = max(entry.attempts, 1)
        next_send_ms = UnixMs(step.now_ms + self._period_ms(state, 1))
        entry = replace(entry, state=state, attempts=attempts, next_send_ms=next_send_ms)
        self._put(entry, step)
        self._changed(entry, step)

    def accept(self, message_id: MessageId, step: Step) -> None:
        """The network took a copy."""
        entry = self._waiting.get(message_id)
        if entry is None or entry.accepted:
            return
        state, attempts, accepted = entry.state, entry.attempts, True
        if state is _FAILED:
            state = _UNACKNOWLEDGED
            next_send_ms = UnixMs(step.now_ms + self._period_ms(state, attempts))
            again = replace(entry, state=state, next_send_ms=next_send_ms, accepted=accepted)
            self._put(again, step)
        else:
            self._waiting[message_id] = replace(entry, accepted=accepted)
            step.writes.append(MarkAccepted(message_id))
        step.events.append(OutgoingChanged(message_id, state, accepted))

    def sign_anew(self, message_id: MessageId, raw: bytes, step: Step) -> bool:
        """Send these bytes, as if just written; False if somebody took the others already."""
        entry = self._waiting.get(message_id)
        if entry is None or entry.accepted:
            return False
        self._put(replace(entry, raw=raw, attempts=0, next_send_ms=step.now_ms), step)
        return True

    def resend(self, message_id: MessageId, *, online: bool, step: Step) -> None:
        """The user wants the message sent again now; its attempts start over."""
        entry = self._waiting[message_id]
        failed = entry.state is _FAILED
        state = _UNACKNOWLEDGED if failed else entry.state
        entry = replace(entry, state=state, attempts=0, next_send_ms=step.now_ms)
        if failed:
            self._changed(entry, step)
        if online:
            self._send(entry, step)
        else:
            self._put(entry, step)

    def bring_forward(self, now_ms: UnixMs) -> None:
        """The clock was set back: nothing waits longer than if it had been sent just now."""
        config = self._config
        self._gate_ms = min(self._gate_ms, UnixMs(now_ms + config.online_jitter_ms))
        for entry in list(self._waiting.values()):
            period_ms = self._mean_period_ms(entry.state, entry.attempts)
            latest_ms = UnixMs(now_ms + int(period_ms * (1 + config.resend_jitter)))
            if entry.next_send_ms > latest_ms:
                self._keep(replace(entry, next_send_ms=latest_ms))

    def came_online(self, now_ms: UnixMs) -> None:
        """Send what is due soon, but not all members at the same instant."""
        self._gate_ms = UnixMs(now_ms + int(self._random() * self._config.online_jitter_ms))

    def sweep(self, step: Step) -> None:
        """Rebroadcast what is due, a bounded number at a time."""
        config = self._config
        for _ in range(self._config.sweep_batch):
            deadline_ms = self.next_deadline()
            if deadline_ms is None or deadline_ms > step.now_ms:
                return
            entry = self._waiting[self._due[0][1]]
            if not entry.accepted and entry.attempts >= config.fail_after_attempts:
                entry = replace(entry, state=_FAILED)
                self._put(entry, step)
                self._changed(entry, step)
            elif entry.attempts >= (config.resend_attempts or entry.attempts + 1):
                self.remove(entry.message_id, step)
            else:
                self._send(entry, step)
        self._gate_ms = UnixMs(step.now_ms + self._config.sweep_spacing_ms)

    def _send(self, entry: OutgoingEntry, step: Step) -> None:
        first = entry.attempts == 0
        attempts = entry.attempts + 1
        next_send_ms = UnixMs(step.now_ms + self._period_ms(entry.state, attempts))
        self._put(replace(entry, attempts=attempts, next_send_ms=next_send_ms), step)
        step.sends.append(
            Broadcast(
                message_id=entry.message_id,
                raw=entry.raw,
                purpose=_CONTENT if first else SendPurpose.RETRANSMISSION,
            )
        )

    def _period_ms(self, state: OutgoingState, attempts: int) -> int:
        return self._about(self._mean_period_ms(state, attempts))

    def _about(self, period_ms: int) -> int:
        return int(period_ms * (1 + self._config.resend_jitter * (2 * self._random() - 1)))

    def _mean_period_ms(self, state: OutgoingState, attempts: int) -> int:
        config = self._config
        possibly = state is _POSSIBLY_ACKNOWLEDGED
        first, longest = config.resend_possibly_ms if possibly else config.resend_unacknowledged_ms
        return min(first << min(attempts - 1, 30), longest) if attempts > 1 else first

    def _put(self, entry: OutgoingEntry, step: Step) -> None:
        self._keep(entry)
        step.writes.append(PutOutgoing(entry))

    def _keep(self, entry: OutgoingEntry) -> None:
        message_id, state, next_send_ms = entry.message_id, entry.state, entry.next_send_ms
        known = self._waiting.get(message_id)
        self._waiting[message_id] = entry
        if state is _POSSIBLY_ACKNOWLEDGED:
            self.unhinted.pop(message_id, None)
        elif message_id not in self.unhinted:
            self.unhinted[message_id] = base_hashes(message_id)
        if state is _FAILED:
            return
        if known is None or known.state is _FAILED or known.next_send_ms != next_send_ms:
            heappush(self._due, (next_send_ms, message_id))

    def _is_current(self, due: tuple[UnixMs, MessageId]) -> bool:
        entry = self._waiting.get(due[1])
        return entry is not None and entry.next_send_ms == due[0] and entry.state is not _FAILED

    @staticmethod
    def _changed(entry: OutgoingEntry, step: Step) -> None:
        step.events.append(
            OutgoingChanged(entry.message_id, entry.state, entry.accepted, entry.attempts)
        )
