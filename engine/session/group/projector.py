"""Turns the channel's events into writes and notes: rows, delivery states, gaps, typing.

Decoded content becomes a row.  The state of the outgoing buffer becomes "saved", "sent" or
"failed", and "held" once every other member holds the message.  The projector handles no bytes on
the wire; of membership it knows only who the others are.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import assert_never

from engine.codec.content import decode_content, decode_ephemeral
from engine.core.content import Content, Reaction, Unsupported
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ids import (
    ConversationId,
    DeliveryState,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.ports import PutAnnotation, PutDelivery, PutMessage
from engine.core.problems import FailureReason
from engine.core.records import DeliveryRecord
from engine.core.sds.floods import SetAsideChanged
from engine.core.sds.forks import ForkFound
from engine.core.sds.vocabulary import (
    ChannelState,
    DependencyLost,
    EphemeralReceived,
    Gap,
    GapChanged,
    HeldAsideChanged,
    HeldByChanged,
    Message,
    MessageDelivered,
    MessageReplaced,
    MessageShownWaiting,
    MissingEntry,
    MissingState,
    OtherEvent,
    OutgoingChanged,
    OutgoingState,
    OwnFromFuture,
    PutMissing,
    RemoveMissing,
    RepairRequested,
    Write,
)
from engine.events import GapPlace, GapView
from engine.history_views import LostView
from engine.session.group.held_messages import HeldMessages
from engine.session.rows import TEXT, UNKNOWN_WAY, WRITTEN, annotation_of, makes_row, row_of
from engine.session.transitions import (
    AnnotationAdded,
    ForkNoted,
    GapNoted,
    HeldAside,
    HeldAsideNoted,
    LoadToSayAgain,
    RowAdded,
    RowChanged,
    RowRemoved,
    SetAsideNoted,
    TransitionBuilder,
    TypingNoted,
)
from engine.session.typing_board import TypingBoard
from engine.session.ways import Ways

MAX_LOST_TOLD = 64


class GroupProjector:
    """Starts from the saved state: the rows shown below a gap, and what is missing."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        conversation_id: ConversationId,
        *,
        own_id: ParticipantId,
        others: Callable[[], frozenset[ParticipantId]],
        name_of: Callable[[ParticipantId], str],
        typing: TypingBoard,
        state: ChannelState,
        counters: Counters,
    ) -> None:
        self._conversation_id = conversation_id
        self._own_id = own_id
        self._others = others
        self._name_of = name_of
        self._typing = typing
        self._shown_waiting = {e.message.message_id for e in state.incoming if e.shown}
        self._lost: dict[MessageId, MissingEntry] = {}
        self._kept_back: dict[MessageId, None] = {}
        """Also given up, but only because they are older than what the user wants; a Store has
        them."""
        for missing in state.missing:
            if missing.state is MissingState.LOST:
                self._note_lost(missing)
        self._asked_again: dict[MessageId, UnixMs] = {}
        """When the user last asked again for a lost message, since the program started."""
        self._waiting = len(state.incoming)
        self._counters = counters
        self._held_aside = HeldMessages(conversation_id)
        self.ways = Ways()

    def tell(  # noqa: C901 - one case per kind of event
        self, event: OtherEvent, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        """Note one event other than a delivery, which ``tell_delivered`` notes."""
        match event:
            case MessageShownWaiting():
                self._shown(event, builder, now_ms=now_ms)
            case EphemeralReceived():
                self._ephemeral(event.message, builder, now_ms=now_ms)
            case GapChanged():
                self._waiting = event.waiting
                builder.notes.append(GapNoted())
            case DependencyLost() | RepairRequested():
                builder.notes.append(GapNoted())
            case HeldAsideChanged():
                self._held_aside.tell(event, now_ms=now_ms)
                builder.notes.append(HeldAsideNoted())
            case SetAsideChanged():
                builder.notes.append(SetAsideNoted())
            case MessageReplaced():
                self._shown_waiting.discard(event.message_id)
                builder.notes.append(RowRemoved(message_id=event.message_id))
            case OwnFromFuture():
                builder.sends += [LoadToSayAgain(message_id=each) for each in event.message_ids]
            case ForkFound():
                builder.notes.append(ForkNoted(participant_id=event.fork.sender_id))
            case HeldByChanged():
                self._held(event, builder)
                builder.notes.append(RowChanged(message_id=event.message_id))
            case OutgoingChanged():
                self._outgoing_changed(event, builder)
            case _:
                assert_never(event)

    def hear_writes(self, writes: Sequence[Write]) -> None:
        """Keep track of what is lost."""
        for write in writes:
            if isinstance(write, PutMissing) and write.entry.state is MissingState.LOST:
                self._note_lost(write.entry)
            elif isinstance(write, RemoveMissing):
                self._lost.pop(write.message_id, None)
                self._kept_back.pop(write.message_id, None)
                self._asked_again.pop(write.message_id, None)

    def _note_lost(self, missing: MissingEntry) -> None:
        message_id = missing.entry.message_id
        if missing.stores is not None and missing.stores.kept_back:
            self._lost.pop(message_id, None)
            self._kept_back[message_id] = None
        else:
            self._kept_back.pop(message_id, None)
            self._lost[message_id] = missing

    def asked_again(self, message_ids: Sequence[MessageId], now_ms: UnixMs) -> None:
        self._asked_again |= {each: now_ms for each in message_ids if each in self._lost}

    def kept_back(self) -> tuple[MessageId, ...]:
        """What Stores have from before the time that the user wants to see."""
        return tuple(self._kept_back)

    def gap(self, gaps: Sequence[Gap]) -> GapView | None:
        """``gaps``: what the channel is looking for."""
        if not gaps and not self._waiting and not self._lost:
            return None
        latest = islice(reversed(self._lost.values()), MAX_LOST_TOLD)
        places = tuple(map(_gap_place, gaps))
        if not places and self._waiting:
            places = (GapPlace(missing=0, waiting=self._waiting, since_ms=UnixMs(0)),)
        return GapView(
            conversation_id=self._conversation_id,
            missing=sum(gap.missing for gap in gaps),
            waiting=self._waiting,
            places=places,
            lost=tuple(map(self._lost_view, latest)),
            lost_total=len(self._lost),
        )

    def _lost_view(self, missing: MissingEntry) -> LostView:
        sender_id, said = missing.entry.sender_id, missing.stores
        return LostView(
            message_id=missing.entry.message_id,
            sender_id=sender_id,
            sender_name="" if sender_id is None else self._name_of(sender_id),
            before=missing.before,
            since_ms=missing.since_ms,
            stores_ms=None if said is None else said.at_ms,
            lacked_by=0 if said is None else said.lacked,
            silent_stores=() if said is None else said.silent,
            asked_again_ms=self._asked_again.get(missing.entry.message_id),
        )

    def held_aside(self) -> HeldAside:
        return self._held_aside.aside

    def tell_delivered(
        self,
        event: MessageDelivered,
        content: Content,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
    ) -> None:
        """Note a delivery; ``content`` is the decoded message."""
        message = event.message
        way = self.ways.take(message.message_id)
        if event.is_own:
            builder.writes.append(self._delivery(message.message_id, DeliveryState.SAVED))
        if not makes_row(content.body):
            self._tell_annotation(message, content, builder, is_own=event.is_own, now_ms=now_ms)
            return
        record = row_of(
            self._conversation_id,
            content,
            position=event.position,
            sender_id=message.sender_id,
            is_own=event.is_own,
            now_ms=now_ms,
            late=event.late,
            sender_name=self._name_of(message.sender_id),
            own_id=self._own_id,
            way=WRITTEN if event.is_own and way is UNKNOWN_WAY else way,
        )
        builder.writes.append(PutMessage(message=record))
        if message.message_id in self._shown_waiting:
            self._shown_waiting.discard(message.message_id)
            builder.notes.append(RowChanged(message_id=message.message_id))
        else:
            builder.notes.append(
                RowAdded(
                    message_id=message.message_id,
                    is_own=event.is_own,
                    notify=not event.is_own and record.kind == TEXT,
                )
            )
        if self._typing.heard(message.sender_id, active=False, now_ms=now_ms):
            builder.notes.append(TypingNoted())

    def _tell_annotation(
        self,
        message: Message,
        content: Content,
        builder: TransitionBuilder,
        *,
        is_own: bool,
        now_ms: UnixMs,
    ) -> None:
        """Note what was said about another message, whether that is here or not."""
        if isinstance(content.body, Unsupported):
            self._counters.add(f"group.bad_{content.body.kind}")
            return
        annotation = annotation_of(
            self._conversation_id,
            content,
            position=_place_of(message),
            sender_id=message.sender_id,
            is_own=is_own,
            now_ms=now_ms,
            own_id=self._own_id,
        )
        builder.writes.append(PutAnnotation(annotation=annotation))
        if message.message_id in self._shown_waiting:
            self._shown_waiting.discard(message.message_id)
            return
        builder.notes.append(AnnotationAdded(annotation=annotation, notify=not is_own))
        typed = not isinstance(content.body, Reaction)
        if typed and self._typing.heard(message.sender_id, active=False, now_ms=now_ms):
            builder.notes.append(TypingNoted())

    def _shown(
        self, event: MessageShownWaiting, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        message = event.message
        content = decode_content(message.content or b"")
        if not makes_row(content.body):
            self._tell_annotation(message, content, builder, is_own=False, now_ms=now_ms)
            self._shown_waiting.add(message.message_id)
            return
        record = row_of(
            self._conversation_id,
            content,
            position=_place_of(message),
            sender_id=message.sender_id,
            is_own=False,
            now_ms=now_ms,
            waiting=True,
            sender_name=self._name_of(message.sender_id),
            own_id=self._own_id,
            way=self.ways.look(message.message_id),
        )
        self._shown_waiting.add(message.message_id)
        builder.writes.append(PutMessage(message=record))
        builder.notes.append(
            RowAdded(message_id=message.message_id, is_own=False, notify=record.kind == TEXT)
        )

    def _ephemeral(self, message: Message, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        try:
            said = decode_ephemeral(message.content or b"")
        except RemoteProtocolError as error:
            self._counters.add(f"group.{error.reason}")
            return
        if self._typing.heard(message.sender_id, active=said.active, now_ms=now_ms):
            builder.notes.append(TypingNoted())

    def _held(self, event: HeldByChanged, builder: TransitionBuilder) -> None:
        """Once all members hold a message it stays "held", whoever joins or leaves afterwards."""
        others = self._others()
        if others and others <= {entry.participant_id for entry in event.certain}:
            builder.writes.append(self._delivery(event.message_id, DeliveryState.HELD))

    def _outgoing_changed(self, event: OutgoingChanged, builder: TransitionBuilder) -> None:
        if event.state is OutgoingState.FAILED:
            state = DeliveryState.FAILED
        elif event.accepted or event.state is OutgoingState.ACKNOWLEDGED:
            state = DeliveryState.SENT
        else:
            state = DeliveryState.SAVED
        failed = state is DeliveryState.FAILED
        attempts = event.attempts if failed else 0
        builder.writes.append(self._delivery(event.message_id, state, attempts=attempts))
        builder.notes.append(RowChanged(message_id=event.message_id))

    def _delivery(
        self, message_id: MessageId, state: DeliveryState, *, attempts: int = 0
    ) -> PutDelivery:
        failed = state is DeliveryState.FAILED
        return PutDelivery(
            conversation_id=self._conversation_id,
            message_id=message_id,
            delivery=DeliveryRecord(
                state=state,
                attempts=attempts,
                failure=FailureReason.NOBODY_TOOK_IT if failed else None,
            ),
        )


def _place_of(message: Message) -> Position:
    return Position(message.lamport_timestamp or 0, message.message_id)


def _gap_place(gap: Gap) -> GapPlace:
    return GapPlace(
        missing=gap.missing,
        waiting=gap.waiting,
        since_ms=gap.since_ms,
        requests=gap.requests,
        next_request_ms=gap.next_request_ms,
        before=gap.before,
    )
