"""Turns the events of a pair into rows, delivery states and notes.

An own message is *saved*, then *sent* once a relay or service node took a copy, *held* once the
peer acknowledged it, or *failed* once it was given up.  A state never moves backwards, so the
projector remembers recent states in case an earlier one is reported late.
"""

from collections import OrderedDict

from msgspec.structs import replace

from engine.core.content import Annotation, Content, Unsupported
from engine.core.counters import Counters
from engine.core.ids import (
    ConversationId,
    DeliveryState,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.ports import HideMessage, PutAnnotation, PutDelivery
from engine.core.problems import FailureReason
from engine.core.records import DeliveryRecord
from engine.session.arrivals import Arrivals
from engine.session.pair.order import AHEAD_MS, Placed, Shown
from engine.session.rows import (
    ACCEPTED,
    ASKED,
    SAID,
    WRITTEN,
    annotation_of,
    makes_row,
    put_row,
    row_of,
)
from engine.session.transitions import AnnotationAdded, RowAdded, RowChanged, TransitionBuilder

MAX_REMEMBERED = 4_096
_WORTH_A_NOTIFICATION = SAID | {ASKED, ACCEPTED}


class PairProjector:
    def __init__(
        self,
        conversation_id: ConversationId,
        *,
        own_id: ParticipantId,
        peer_id: ParticipantId,
        counters: Counters,
    ) -> None:
        self._conversation_id = conversation_id
        self._own_id = own_id
        self._peer_id = peer_id
        self._counters = counters
        self.arrivals = Arrivals()
        self._known: OrderedDict[MessageId, DeliveryState] = OrderedDict()
        self._without_row: set[MessageId] = set()

    # --- rows ---------------------------------------------------------------------------------

    def said(
        self,
        content: Content,
        position: Position,
        builder: TransitionBuilder,
        *,
        shown: bool,
    ) -> None:
        """Record a message of ours."""
        if isinstance(content.body, Annotation):
            self._annotated(content, position, builder, is_own=True, now_ms=content.sent_ms)
            builder.writes.append(self._delivery(position.message_id, DeliveryState.SAVED))
            return
        if not (shown and makes_row(content.body)):
            self._without_row.add(position.message_id)
            return
        record = row_of(
            self._conversation_id,
            content,
            position=position,
            sender_id=self._own_id,
            is_own=True,
            now_ms=content.sent_ms,
            way=WRITTEN,
        )
        builder.writes.append(put_row(record, content.body))
        builder.writes.append(self._delivery(position.message_id, DeliveryState.SAVED))
        builder.notes.append(RowAdded(message_id=position.message_id, is_own=True, notify=False))

    def placed(self, placed: Placed, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Record a message of theirs that has its place."""
        content = _by_our_clock(placed.content, now_ms)
        way = self.arrivals.take(placed.message_id)
        if not makes_row(content.body):
            self._annotated(content, placed.position, builder, is_own=False, now_ms=now_ms)
            return
        record = row_of(
            self._conversation_id,
            content,
            position=placed.position,
            sender_id=self._peer_id,
            is_own=False,
            now_ms=now_ms,
            late=placed.late,
            own_id=self._own_id,
            way=way,
        )
        builder.writes.append(put_row(record, content.body, came_ms=placed.came_ms))
        if placed.was_shown:
            builder.notes.append(RowChanged(message_id=placed.message_id))
        else:
            self._added(placed.message_id, record.kind, builder)

    def shown(self, shown: Shown, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Show a message of theirs below a gap while it still waits."""
        content = _by_our_clock(shown.content, now_ms)
        if not makes_row(content.body):
            return  # It has no place yet that counts against others.
        position = Position(lamport_timestamp=shown.lamport_timestamp, message_id=shown.message_id)
        record = row_of(
            self._conversation_id,
            content,
            position=position,
            sender_id=self._peer_id,
            is_own=False,
            now_ms=now_ms,
            waiting=True,
            own_id=self._own_id,
            way=self.arrivals.look(shown.message_id),
        )
        builder.writes.append(put_row(record, content.body, came_ms=shown.came_ms))
        self._added(shown.message_id, record.kind, builder)

    def refused(self, placed: Placed, builder: TransitionBuilder) -> None:
        """Remove the row of a refused message, if it was shown while it waited."""
        if placed.was_shown and makes_row(placed.content.body):
            builder.writes.append(
                HideMessage(conversation_id=self._conversation_id, message_id=placed.message_id)
            )

    def _annotated(
        self,
        content: Content,
        position: Position,
        builder: TransitionBuilder,
        *,
        is_own: bool,
        now_ms: UnixMs,
    ) -> None:
        """Record what was said about another message; nothing if ``content`` says no such thing."""
        if isinstance(content.body, Unsupported):
            self._counters.add("pair.bad_annotation")
        if not isinstance(content.body, Annotation):
            return
        annotation = annotation_of(
            self._conversation_id,
            content,
            position=position,
            sender_id=self._own_id if is_own else self._peer_id,
            is_own=is_own,
            now_ms=now_ms,
            own_id=self._own_id,
        )
        builder.writes.append(PutAnnotation(annotation=annotation))
        builder.notes.append(AnnotationAdded(annotation=annotation, notify=not is_own))

    def _added(self, message_id: MessageId, kind: str, builder: TransitionBuilder) -> None:
        notify = kind in _WORTH_A_NOTIFICATION
        builder.notes.append(RowAdded(message_id=message_id, is_own=False, notify=notify))

    # --- delivery -----------------------------------------------------------------------------

    def sent(self, message_id: MessageId, builder: TransitionBuilder) -> None:
        if message_id not in self._known:
            self._came_to(DeliveryState.SENT, message_id, builder)

    def held(self, message_id: MessageId, builder: TransitionBuilder) -> None:
        self._came_to(DeliveryState.HELD, message_id, builder)
        self._without_row.discard(message_id)

    def failed(self, message_id: MessageId, builder: TransitionBuilder) -> None:
        self._came_to(DeliveryState.FAILED, message_id, builder)

    def tried_again(self, message_id: MessageId, builder: TransitionBuilder) -> None:
        self._came_to(DeliveryState.SAVED, message_id, builder)
        self._known.pop(message_id, None)

    def _came_to(
        self, state: DeliveryState, message_id: MessageId, builder: TransitionBuilder
    ) -> None:
        if self._known.get(message_id) is state or message_id in self._without_row:
            return
        self._known[message_id] = state
        self._known.move_to_end(message_id)
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        builder.writes.append(self._delivery(message_id, state))
        builder.notes.append(RowChanged(message_id=message_id))

    def _delivery(self, message_id: MessageId, state: DeliveryState) -> PutDelivery:
        failure = FailureReason.NOT_REACHED if state is DeliveryState.FAILED else None
        return PutDelivery(
            conversation_id=self._conversation_id,
            message_id=message_id,
            delivery=DeliveryRecord(state=state, failure=failure),
        )


def _by_our_clock(content: Content, now_ms: UnixMs) -> Content:
    """Date a message now if their clock is too far ahead, so that it does not lead every list."""
    if content.sent_ms <= now_ms + AHEAD_MS:
        return content
    return replace(content, sent_ms=now_ms)
