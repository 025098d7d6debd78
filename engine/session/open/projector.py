"""Turns an open channel's events into rows, delivery states and notes.

Of an own message the window learns "saved", "sent" or "failed", and who perhaps holds it.  Nobody
is ever known to hold it for certain, because anyone can say so in anyone's name.
"""

from typing import assert_never

from engine.codec.open_content import OpenContent, decode_open_content
from engine.core.counters import Counters
from engine.core.ids import ConversationId, DeliveryState, UnixMs
from engine.core.sds.floods import SetAsideChanged
from engine.core.sds.forks import ForkFound
from engine.core.sds.vocabulary import (
    ChannelState,
    DependencyLost,
    EphemeralReceived,
    GapChanged,
    HeldAsideChanged,
    HeldByChanged,
    MessageDelivered,
    MessageReplaced,
    MessageShownWaiting,
    OtherEvent,
    OutgoingChanged,
    OwnFromFuture,
    RepairRequested,
)
from engine.session.arrivals import Arrivals
from engine.session.clock import SessionClock
from engine.session.deliveries import delivery_write, tell_outgoing
from engine.session.gap_book import GapBook
from engine.session.open.rows import open_row, stranger_name
from engine.session.rows import TEXT, WRITTEN, put_row
from engine.session.transitions import (
    GapNoted,
    RowAdded,
    RowChanged,
    SetAsideNoted,
    TransitionBuilder,
)


class OpenProjector:
    def __init__(
        self,
        conversation_id: ConversationId,
        *,
        clock: SessionClock,
        state: ChannelState,
        counters: Counters,
    ) -> None:
        self._conversation_id = conversation_id
        self._clock = clock
        self._counters = counters
        self._shown_waiting = {e.message.message_id for e in state.incoming if e.shown}
        self.arrivals = Arrivals()
        self.gaps = GapBook(conversation_id, name_of=stranger_name, state=state)

    def tell(self, event: OtherEvent, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Note one event other than a delivery, which ``tell_delivered`` notes."""
        match event:
            case MessageShownWaiting():
                self._shown(event, builder, now_ms=now_ms)
            case EphemeralReceived():
                self._counters.add("open.ephemeral_unsupported")
            case GapChanged():
                self.gaps.waiting = event.waiting
                builder.notes.append(GapNoted())
            case DependencyLost() | RepairRequested():
                builder.notes.append(GapNoted())
            case SetAsideChanged():
                builder.notes.append(SetAsideNoted())
            case HeldByChanged():
                builder.notes.append(RowChanged(message_id=event.message_id))
            case OutgoingChanged():
                tell_outgoing(self._conversation_id, event, builder)
            case HeldAsideChanged() | MessageReplaced() | OwnFromFuture() | ForkFound():
                pass  # Nothing is held for its time, replaced or signed here.
            case _:
                assert_never(event)

    def tell_delivered(
        self, event: MessageDelivered, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> OpenContent:
        """Note a delivery; returns the decoded content."""
        message, message_id = event.message, event.message.message_id
        said = decode_open_content(message.content or b"")
        record = open_row(
            self._conversation_id,
            message,
            said,
            is_own=event.is_own,
            clock_ms=self._clock.at(now_ms),
            now_ms=now_ms,
            late=event.late,
            way=WRITTEN if event.is_own else self.arrivals.take(message_id),
        )
        builder.writes.append(put_row(record, said.body, came_ms=event.came_ms))
        if event.is_own:
            saved = delivery_write(self._conversation_id, message_id, DeliveryState.SAVED)
            builder.writes.append(saved)
        if message_id in self._shown_waiting:
            self._shown_waiting.discard(message_id)
            builder.notes.append(RowChanged(message_id=message_id))
        else:
            notify = not event.is_own and record.kind == TEXT
            added = RowAdded(message_id=message_id, is_own=event.is_own, notify=notify)
            builder.notes.append(added)
        return said

    def _shown(
        self, event: MessageShownWaiting, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        message = event.message
        said = decode_open_content(message.content or b"")
        record = open_row(
            self._conversation_id,
            message,
            said,
            is_own=False,
            clock_ms=self._clock.at(now_ms),
            now_ms=now_ms,
            waiting=True,
            way=self.arrivals.look(message.message_id),
        )
        self._shown_waiting.add(message.message_id)
        builder.writes.append(put_row(record, said.body, came_ms=event.came_ms))
        builder.notes.append(
            RowAdded(message_id=message.message_id, is_own=False, notify=record.kind == TEXT)
        )
