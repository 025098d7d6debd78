"""Turns the channel's events into writes and notes: rows, delivery states, gaps, typing.

Decoded content becomes a row.  The state of the outgoing buffer becomes "saved", "sent" or
"failed", and "held" once every other member holds the message.  The projector handles no bytes on
the wire; of membership it knows only who the others are.
"""

from collections.abc import Callable
from typing import assert_never

from engine.codec.content import decode_content, decode_ephemeral
from engine.core.content import (
    Body,
    Content,
    Governing,
    Join,
    Leave,
    Profile,
    Reaction,
    Unsupported,
)
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ids import (
    ConversationId,
    DeliveryState,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.ports import PutAnnotation
from engine.core.sds.floods import SetAsideChanged
from engine.core.sds.forks import ForkFound
from engine.core.sds.vocabulary import (
    ChannelState,
    DependencyLost,
    EphemeralReceived,
    GapChanged,
    HeldAsideChanged,
    HeldByChanged,
    Message,
    MessageDelivered,
    MessageReplaced,
    MessageShownWaiting,
    OtherEvent,
    OutgoingChanged,
    OwnFromFuture,
    RepairRequested,
)
from engine.session.arrivals import Arrivals
from engine.session.deliveries import delivery_write, tell_outgoing
from engine.session.gap_book import GapBook
from engine.session.group.held_messages import HeldMessages
from engine.session.group.wire import Verified
from engine.session.rows import (
    LIVE,
    REPAIR,
    SAID,
    STORE,
    UNKNOWN_WAY,
    WRITTEN,
    Way,
    annotation_of,
    makes_row,
    put_row,
    row_of,
)
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
        is_governed: bool,
    ) -> None:
        """``is_governed``: the admin log says who came and went, and has rows of its own."""
        self.is_governed = is_governed
        self._conversation_id = conversation_id
        self._own_id = own_id
        self._others = others
        self._name_of = name_of
        self._typing = typing
        self._shown_waiting = {e.message.message_id for e in state.incoming if e.shown}
        self.gaps = GapBook(conversation_id, name_of=name_of, state=state)
        self._counters = counters
        self._held_aside = HeldMessages(conversation_id)
        self._arrivals = Arrivals()

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
                self.gaps.waiting = event.waiting
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
                tell_outgoing(self._conversation_id, event, builder)
            case _:
                assert_never(event)

    def _makes_no_row(self, who: ParticipantId, body: Body) -> bool:
        """The rows of a governed group's deeds say the same, or a name is said again."""
        if isinstance(body, Profile):
            return self.is_governed and body.name == self._name_of(who)
        return isinstance(body, Governing) or (self.is_governed and isinstance(body, Join | Leave))

    def held_aside(self) -> HeldAside:
        return self._held_aside.aside

    def tell_delivered(
        self,
        event: MessageDelivered,
        came: Verified | None,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
    ) -> Content:
        """Note a delivery, and return what was said; ``came``: the message, if it just did."""
        message = event.message
        content = came.content if came is not None else None
        if content is None:
            content = decode_content(message.content or b"")
        way = self._arrivals.take(
            message.message_id, UNKNOWN_WAY if came is None else _way_of(came)
        )
        if event.is_own:
            state = DeliveryState.SENT if event.came_back else DeliveryState.SAVED
            builder.writes.append(delivery_write(self._conversation_id, message.message_id, state))
        is_waiting = message.message_id in self._shown_waiting
        if isinstance(content.body, Governing):  # Nor had it any while it waited, whoever says so.
            self._shown_waiting.discard(message.message_id)
            return content
        if self._makes_no_row(message.sender_id, content.body) and not is_waiting:
            return content
        if not makes_row(content.body):
            self._tell_annotation(message, content, builder, is_own=event.is_own, now_ms=now_ms)
            return content
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
            spans=None if came is None else came.spans,
        )
        builder.writes.append(put_row(record, content.body, came_ms=event.came_ms))
        builder.notes.append(self._placed(event, record.kind))
        if self._typing.heard(message.sender_id, active=False, now_ms=now_ms):
            builder.notes.append(TypingNoted())
        return content

    def _placed(self, event: MessageDelivered, kind: str) -> RowAdded | RowChanged:
        """Its row is new, unless it was shown while it waited."""
        message_id = event.message.message_id
        if message_id in self._shown_waiting:
            self._shown_waiting.discard(message_id)
            return RowChanged(message_id=message_id)
        notify = not event.is_own and kind in SAID
        return RowAdded(message_id=message_id, is_own=event.is_own, notify=notify)

    def show_again(
        self, message: Message, position: Position, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        """A logged message that was void counts after all."""
        is_own = message.sender_id == self._own_id
        event = MessageDelivered(message, position, None, is_own, late=True, came_back=True)
        self.tell_delivered(event, None, builder, now_ms=now_ms)

    def note_arrival(self, came: Verified) -> None:
        """Remember how a message came that has no place yet."""
        self._arrivals.note(came.message.message_id, _way_of(came))

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
            self._counters.add("group.bad_annotation")
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
        if self._makes_no_row(message.sender_id, content.body):
            return
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
            way=self._arrivals.look(message.message_id),
        )
        self._shown_waiting.add(message.message_id)
        builder.writes.append(put_row(record, content.body, came_ms=event.came_ms))
        builder.notes.append(
            RowAdded(message_id=message.message_id, is_own=False, notify=record.kind in SAID)
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
        """Once all members hold a message it stays "held", even if others join afterwards."""
        others = self._others()
        if others and others <= {entry.participant_id for entry in event.certain}:
            builder.writes.append(
                delivery_write(self._conversation_id, event.message_id, DeliveryState.HELD)
            )


def _place_of(message: Message) -> Position:
    return Position(message.lamport_timestamp or 0, message.message_id)


def _way_of(came: Verified) -> Way:
    if came.opened.repaired_by is not None:
        return Way(REPAIR, came.opened.repaired_by)
    return Way(STORE if came.stored else LIVE)
