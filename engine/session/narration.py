"""The channel's events → what to write and what to tell: rows, delivery, gaps, typing.

It turns the state machine's words into the window's: decoded content becomes a row, the outgoing
buffer's state becomes "saved", "sent" or "failed", and "held" once everybody holds it.  It knows
nothing of bytes on the wire, and of membership only who the others are.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import assert_never

from engine.codec.content import decode_content, decode_ephemeral
from engine.core.content import Content
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ports import DeliveryRecord, PutDelivery, PutMessage
from engine.core.sds.types import (
    ChannelState,
    DependencyLost,
    EphemeralReceived,
    Event,
    GapChanged,
    HeldAsideChanged,
    HeldByChanged,
    Message,
    MessageDelivered,
    MessageShownWaiting,
    MissingEntry,
    MissingState,
    OutgoingChanged,
    OutgoingState,
    PutMissing,
    RemoveMissing,
    RepairRequested,
    Write,
)
from engine.core.types import (
    ConversationId,
    DeliveryState,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.events import GapView
from engine.history_views import LostView
from engine.session.batch import Batch
from engine.session.held_messages import HeldMessages
from engine.session.rows import TEXT, row_of
from engine.session.types import (
    GapNoted,
    HeldAside,
    HeldAsideNoted,
    RowAdded,
    RowChanged,
    TypingNoted,
)
from engine.session.typing import TypingBoard

MAX_LOST_TOLD = 64
GIVEN_UP = "Nobody took it after many tries. It is safe on this device."


class Narrator:
    """Starts from the saved state: which rows stand below a gap, and what is missing."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        conversation_id: ConversationId,
        *,
        others: Callable[[], frozenset[ParticipantId]],
        name_of: Callable[[ParticipantId], str],
        typing: TypingBoard,
        state: ChannelState,
        counters: Counters,
    ) -> None:
        self._conversation_id = conversation_id
        self._others = others
        self._name_of = name_of
        self._typing = typing
        self._shown_waiting = {e.message.message_id for e in state.incoming if e.shown}
        self._missing = tuple(m for m in state.missing if m.state is MissingState.WANTED)
        self._missing_total = len(self._missing)
        self._lost = {m.entry.message_id: m for m in state.missing if m.state is MissingState.LOST}
        self._waiting = len(state.incoming)
        self._counters = counters
        self._held_aside = HeldMessages(conversation_id)

    def tell(self, event: Event, batch: Batch, *, now_ms: UnixMs) -> Content | None:
        """Note one event; gives back what was said if it was a delivery."""
        match event:
            case MessageDelivered():
                return self._delivered(event, batch, now_ms=now_ms)
            case MessageShownWaiting():
                self._shown(event, batch, now_ms=now_ms)
            case EphemeralReceived():
                self._ephemeral(event.message, batch, now_ms=now_ms)
            case GapChanged():
                self._missing, self._missing_total = event.missing, event.missing_total
                self._waiting = event.waiting
                batch.notes.append(GapNoted())
            case DependencyLost() | RepairRequested():
                batch.notes.append(GapNoted())
            case HeldAsideChanged():
                self._held_aside.tell(event, now_ms=now_ms)
                batch.notes.append(HeldAsideNoted())
            case HeldByChanged():
                self._held(event, batch)
                batch.notes.append(RowChanged(message_id=event.message_id))
            case OutgoingChanged():
                self._outgoing_changed(event, batch)
            case _:
                assert_never(event)
        return None

    def hear_writes(self, writes: Sequence[Write]) -> None:
        """Keep count of how often what is missing was asked for, and of what is lost."""
        for write in writes:
            if isinstance(write, PutMissing) and write.entry.state is MissingState.LOST:
                self._lost[write.entry.entry.message_id] = write.entry
            elif isinstance(write, RemoveMissing):
                self._lost.pop(write.message_id, None)
        asked = {
            write.entry.entry.message_id: write.entry
            for write in writes
            if isinstance(write, PutMissing) and write.entry.state is MissingState.WANTED
        }
        if asked:
            self._missing = tuple(asked.get(m.entry.message_id, m) for m in self._missing)

    def gap(self) -> GapView | None:
        wanted = self._missing
        if not self._missing_total and not self._waiting and not self._lost:
            return None
        latest = islice(reversed(self._lost.values()), MAX_LOST_TOLD)
        return GapView(
            conversation_id=self._conversation_id,
            missing=self._missing_total,
            waiting=self._waiting,
            since_ms=min((m.since_ms for m in wanted), default=UnixMs(0)),
            requests=max((m.requests for m in wanted), default=0),
            next_request_ms=min((m.request_at_ms for m in wanted), default=None),
            before=min((m.before for m in wanted if m.before is not None), default=None),
            lost=tuple(map(self._lost_view, latest)),
            lost_total=len(self._lost),
        )

    def _lost_view(self, missing: MissingEntry) -> LostView:
        sender_id = missing.entry.sender_id
        return LostView(
            message_id=missing.entry.message_id,
            sender_id=sender_id,
            sender_name="" if sender_id is None else self._name_of(sender_id),
            before=missing.before,
            since_ms=missing.since_ms,
        )

    def held_aside(self) -> HeldAside:
        return self._held_aside.aside

    def note_clock(self, clock_offset_ms: int, batch: Batch) -> None:
        """Tell that our own clock is wrong, or right again, also while nothing is held aside."""
        if self._held_aside.is_news(clock_offset_ms):
            self._held_aside.correct(clock_offset_ms)
            batch.notes.append(HeldAsideNoted())

    def _delivered(self, event: MessageDelivered, batch: Batch, *, now_ms: UnixMs) -> Content:
        message = event.message
        content = decode_content(message.content or b"")
        record = row_of(
            self._conversation_id,
            content,
            position=event.position,
            sender_id=message.sender_id,
            is_own=event.is_own,
            now_ms=now_ms,
            late=event.late,
            sender_name=self._name_of(message.sender_id),
        )
        batch.writes.append(PutMessage(message=record))
        if event.is_own:
            batch.writes.append(self._delivery(message.message_id, DeliveryState.SAVED))
        if message.message_id in self._shown_waiting:
            self._shown_waiting.discard(message.message_id)
            batch.notes.append(RowChanged(message_id=message.message_id))
        else:
            batch.notes.append(
                RowAdded(
                    message_id=message.message_id,
                    is_own=event.is_own,
                    notify=not event.is_own and record.kind == TEXT,
                )
            )
        if self._typing.heard(message.sender_id, active=False, now_ms=now_ms):
            batch.notes.append(TypingNoted())
        return content

    def _shown(self, event: MessageShownWaiting, batch: Batch, *, now_ms: UnixMs) -> None:
        message = event.message
        record = row_of(
            self._conversation_id,
            decode_content(message.content or b""),
            position=Position(
                lamport_timestamp=message.lamport_timestamp or 0, message_id=message.message_id
            ),
            sender_id=message.sender_id,
            is_own=False,
            now_ms=now_ms,
            waiting=True,
            sender_name=self._name_of(message.sender_id),
        )
        self._shown_waiting.add(message.message_id)
        batch.writes.append(PutMessage(message=record))
        batch.notes.append(
            RowAdded(message_id=message.message_id, is_own=False, notify=record.kind == TEXT)
        )

    def _ephemeral(self, message: Message, batch: Batch, *, now_ms: UnixMs) -> None:
        try:
            said = decode_ephemeral(message.content or b"")
        except RemoteProtocolError as error:
            self._counters.add(f"group.{error.reason}")
            return
        if self._typing.heard(message.sender_id, active=said.active, now_ms=now_ms):
            batch.notes.append(TypingNoted())

    def _held(self, event: HeldByChanged, batch: Batch) -> None:
        """That all held it stays true, whoever comes or goes afterwards."""
        others = self._others()
        if others and others <= {entry.participant_id for entry in event.certain}:
            batch.writes.append(self._delivery(event.message_id, DeliveryState.HELD))

    def _outgoing_changed(self, event: OutgoingChanged, batch: Batch) -> None:
        if event.state is OutgoingState.FAILED:
            state = DeliveryState.FAILED
        elif event.accepted or event.state is OutgoingState.ACKNOWLEDGED:
            state = DeliveryState.SENT
        else:
            state = DeliveryState.SAVED
        batch.writes.append(self._delivery(event.message_id, state))
        batch.notes.append(RowChanged(message_id=event.message_id))

    def _delivery(self, message_id: MessageId, state: DeliveryState) -> PutDelivery:
        failed = state is DeliveryState.FAILED
        return PutDelivery(
            conversation_id=self._conversation_id,
            message_id=message_id,
            delivery=DeliveryRecord(
                state=state,
                failure=GIVEN_UP if failed else None,
            ),
        )
