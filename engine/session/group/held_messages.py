"""What a channel holds aside, as rows without a place, and whose clock is ahead.

The channel reports everything held whenever it changes; each message is decoded only once.  Nothing
here is stored: the channel saves what it holds and reports it again after a start.  Why a clock is
wrong is not known here, only by how much.
"""

from engine.codec.content import decode_content
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.records import MessageRecord
from engine.core.sds.vocabulary import HeldAsideChanged, HeldMessage
from engine.session.rows import makes_row, row_of
from engine.session.transitions import HeldAside


class HeldMessages:
    """What the channel last reported."""

    def __init__(self, conversation_id: ConversationId) -> None:
        self._conversation_id = conversation_id
        self._rows: dict[MessageId, MessageRecord | None] = {}
        """None for what makes no row, such as a reaction."""
        self.aside = HeldAside()

    def tell(self, event: HeldAsideChanged, *, now_ms: UnixMs) -> None:
        known = self._rows
        self._rows = {
            one.message_id: known[one.message_id]
            if one.message_id in known
            else self._row(one, now_ms)
            for one in event.held
        }
        ahead: dict[ParticipantId, int] = {}
        for one in event.held:
            ahead[one.sender_id] = max(one.ahead_ms, ahead.get(one.sender_id, 0))
        self.aside = HeldAside(
            rows=tuple(row for row in self._rows.values() if row is not None),
            total=event.held_total,
            next_due_ms=min((one.due_ms for one in event.held), default=None),
            ahead_ms=tuple(sorted(ahead.items(), key=lambda item: (-item[1], item[0]))),
        )

    def _row(self, held: HeldMessage, now_ms: UnixMs) -> MessageRecord | None:
        message = held.message
        content = decode_content(message.content or b"")
        if not makes_row(content.body):
            return None
        return row_of(
            self._conversation_id,
            content,
            position=Position(
                lamport_timestamp=message.lamport_timestamp or 0, message_id=message.message_id
            ),
            sender_id=message.sender_id,
            is_own=False,
            now_ms=now_ms,
        )
