"""Counts what passes in the conversations that somebody watches; the others cost a look-up.

A tap hears the steps of a session, as the delivery log does, and the copies that are handed to the
network.  It keeps sums, and what is needed to follow the newest messages of ours until everyone
holds them; all of it is bounded, and gone when the watch is closed.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, assert_never

from msgspec import Struct

from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.core.mvds.vocabulary import AppendMessage, MvdsDelivered, PayloadReceived
from engine.core.ports import ProfileStore
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import (
    Buffers,
    MessageDelivered,
    PutIncoming,
    RepairRequested,
    SendPurpose,
)
from engine.core.stored import StoredMessage
from engine.delivery.steps import Arrived, MvdsStep, Refused, SdsStep, Step
from engine.live_views import (
    FOLLOWED,
    BufferView,
    OwnMessage,
    SkewView,
    Traffic,
    TrafficKind,
)
from engine.runtime.inspection.figures import LOOKED_AT, held_after_ms
from engine.runtime.inspection.message_bytes import filter_view
from engine.session.transitions import Publish

READ_AGAIN: Final = 100
"""Messages of ours that are read again for one sample: the newest that not everyone holds."""

_PURPOSES: Final = {
    SendPurpose.CONTENT: TrafficKind.CONTENT,
    SendPurpose.RETRANSMISSION: TrafficKind.AGAIN,
    SendPurpose.SYNC: TrafficKind.SYNC,
    SendPurpose.EPHEMERAL: TrafficKind.EPHEMERAL,
}


class Sums:
    """Copies and bytes by kind."""

    def __init__(self) -> None:
        self._sums: dict[TrafficKind, tuple[int, int]] = {}

    def add(self, kind: TrafficKind, size: int) -> None:
        copies, sizes = self._sums.get(kind, (0, 0))
        self._sums[kind] = copies + 1, sizes + size

    def view(self) -> dict[TrafficKind, Traffic]:
        return {kind: Traffic(copies=n, size=size) for kind, (n, size) in self._sums.items()}


class Tap:
    """What passes in one conversation from now on."""

    def __init__(self, since_ms: UnixMs) -> None:
        self.since_ms = since_ms
        self.sent = Sums()
        self.received = Sums()
        self.placed = 0
        self.repairs_asked = 0
        self.anything = True
        """Whether a sample may say something new of our messages."""
        self.placed_before = 0
        """``placed`` at the last sample."""
        self._arrived: Arrived | None = None
        """The last copy, until it is known what it led to."""
        self._skews: tuple[int, int] | None = None

    def handed_over(self, publish: Publish) -> None:
        kind = TrafficKind.REPAIR if publish.repairs is not None else _PURPOSES[publish.purpose]
        self.sent.add(kind, len(publish.message.payload))
        self.anything = True

    def took(self, steps: Iterable[Step], *, clock_offset_ms: int) -> None:
        for step in steps:
            match step:
                case Arrived():
                    self._settle(TrafficKind.AGAIN)
                    self._arrived = step
                case Refused():
                    self._settle(TrafficKind.REFUSED)
                case SdsStep():
                    self._took_sds(step, clock_offset_ms)
                case MvdsStep():
                    self._took_mvds(step)
                case _:
                    assert_never(step)
        self._settle(TrafficKind.AGAIN)
        self.anything = True

    def take_skew(self) -> SkewView | None:
        """Since it was last asked for."""
        skews, self._skews = self._skews, None
        return SkewView(lowest_ms=skews[0], highest_ms=skews[1]) if skews else None

    def _settle(self, kind: TrafficKind) -> None:
        """It is known now what the last copy was; nothing of it stands for one seen before."""
        arrived, self._arrived = self._arrived, None
        if arrived is not None:
            is_history = arrived.from_store and kind is not TrafficKind.REFUSED
            self.received.add(TrafficKind.HISTORY if is_history else kind, arrived.wire_bytes)

    def _took_sds(self, step: SdsStep, clock_offset_ms: int) -> None:
        input_, transition = step.input, step.transition
        for event in transition.events:
            if isinstance(event, MessageDelivered):
                self.placed += 1
            elif isinstance(event, RepairRequested):
                self.repairs_asked += len(event.message_ids)
        if not isinstance(input_, MessageReceived) or self._arrived is None:
            return
        kind, message = _kind_of(step, input_), input_.message
        lamport = message.lamport_timestamp
        if kind is TrafficKind.CONTENT and lamport is not None and not input_.stored:
            skew = lamport - (step.at_ms + clock_offset_ms)
            low, high = self._skews or (skew, skew)
            self._skews = min(low, skew), max(high, skew)
        self._settle(kind)

    def _took_mvds(self, step: MvdsStep) -> None:
        input_ = step.input
        new = sum(isinstance(event, MvdsDelivered) for event in step.transition.events)
        self.placed += new + isinstance(input_, AppendMessage)
        if not isinstance(input_, PayloadReceived):
            return
        if not input_.payload.messages:
            self._settle(TrafficKind.SYNC)
        else:
            self._settle(TrafficKind.CONTENT if new else TrafficKind.AGAIN)


def _kind_of(step: SdsStep, received: MessageReceived) -> TrafficKind:
    message, transition = received.message, step.transition
    if message.is_ephemeral:
        return TrafficKind.EPHEMERAL
    if message.content is None:
        return TrafficKind.SYNC
    if received.repaired_by is not None:
        return TrafficKind.REPAIR
    is_new = any(
        isinstance(event, MessageDelivered) and event.message.message_id == message.message_id
        for event in transition.events
    ) or any(
        isinstance(write, PutIncoming) and write.entry.message.message_id == message.message_id
        for write in transition.writes
    )
    return TrafficKind.CONTENT if is_new else TrafficKind.AGAIN


class Taps:
    """Of all conversations that are watched."""

    def __init__(self) -> None:
        self._of: dict[ConversationId, tuple[Tap, ...]] = {}

    def open(self, conversation_id: ConversationId, since_ms: UnixMs) -> Tap:
        tap = Tap(since_ms)
        self._of[conversation_id] = (*self.of(conversation_id), tap)
        return tap

    def close(self, conversation_id: ConversationId, tap: Tap) -> None:
        left = tuple(each for each in self.of(conversation_id) if each is not tap)
        if left:
            self._of[conversation_id] = left
        else:
            self._of.pop(conversation_id, None)

    def of(self, conversation_id: ConversationId) -> Sequence[Tap]:
        return self._of.get(conversation_id, ())

    def handed_over(self, conversation_id: ConversationId, publish: Publish) -> None:
        for tap in self.of(conversation_id):
            tap.handed_over(publish)


class ReadRows(Struct, frozen=True, kw_only=True):
    """What a sample reads, on the storage thread."""

    newest: Sequence[StoredMessage]
    again: Sequence[StoredMessage]


def read_rows(
    store: ProfileStore, conversation_id: ConversationId, unsettled: Sequence[MessageId], new: int
) -> ReadRows:
    """The newest ``new`` rows, at most LOOKED_AT, and again those of which more may be known."""
    limit = min(new, LOOKED_AT)
    page = store.latest_page(conversation_id, limit=limit).messages if limit else ()
    again = store.messages(conversation_id, list(unsettled)) if unsettled else {}
    return ReadRows(newest=tuple(page), again=tuple(again.values()))


class Followed:
    """The newest messages of ours, until every other member is known to hold them."""

    def __init__(self) -> None:
        self._own: dict[MessageId, OwnMessage] = {}

    def unsettled(self) -> list[MessageId]:
        waiting = [each.message_id for each in self._own.values() if each.held_after_ms is None]
        return waiting[-READ_AGAIN:]

    def learn(self, read: ReadRows, others: Collection[ParticipantId]) -> None:
        who = frozenset(others)
        rows = [row for row in read.newest if row.record.is_own and row.shown_id is None]
        for row in [*rows, *read.again]:
            message_id = row.record.position.message_id
            self._own[message_id] = OwnMessage(
                message_id=message_id,
                saved_ms=row.record.received_ms,
                held_after_ms=held_after_ms(row, who),
                copies=0,
            )
        if len(self._own) > FOLLOWED:
            newest = sorted(self._own.values(), key=lambda each: each.saved_ms)[-FOLLOWED:]
            self._own = {each.message_id: each for each in newest}

    def views(self, copies: Callable[[MessageId], int]) -> tuple[OwnMessage, ...]:
        views = (
            OwnMessage(
                message_id=each.message_id,
                saved_ms=each.saved_ms,
                held_after_ms=each.held_after_ms,
                copies=copies(each.message_id),
            )
            for each in self._own.values()
        )
        return tuple(sorted(views, key=lambda each: each.saved_ms))


def buffer_view(
    buffers: Buffers | int | None, *, to_send: int, to_handle: int, clock_ms: UnixMs
) -> BufferView | None:
    if buffers is None:
        return None
    if isinstance(buffers, int):
        return BufferView(outgoing=buffers, to_send=to_send, to_handle=to_handle)
    bloom = filter_view(buffers.filter_bytes)
    return BufferView(
        outgoing=buffers.outgoing,
        incoming=buffers.incoming,
        held_aside=buffers.held,
        missing=buffers.missing,
        to_send=to_send,
        to_handle=to_handle,
        filter_fill=bloom.fill,
        filter_false_probability=bloom.false_probability,
        lamport_ahead_ms=buffers.lamport_timestamp - clock_ms,
    )
