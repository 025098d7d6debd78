"""Builds the read models of messages held aside and of forks.

The held messages appear in a section of the timeline.  A notice says whose clock is ahead, even
while the conversation is not open.
"""

from collections.abc import Collection

from msgspec.structs import replace

from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.records import MessageRecord
from engine.core.sds.forks import Fork
from engine.core.stored import StoredMessage
from engine.events import (
    ClocksAhead,
    ClockView,
    ForkView,
    HeldView,
    MessageView,
    NoticeCleared,
    NoticeLevel,
    NoticeRaised,
)
from engine.runtime.views import Members, message_view, name_of, shown_name
from engine.session.contract import ConversationRecord
from engine.session.transitions import HeldAside


def held_view(
    conversation_id: ConversationId, aside: HeldAside, members: Members, own_id: ParticipantId
) -> HeldView | None:
    if not aside.rows:
        return None

    def view(record: MessageRecord) -> MessageView:
        # Our own come from before a restore.  Holders do not count until a message has its place.
        row = StoredMessage(record=record, delivery=None, holders=())
        own = record.sender_id == own_id
        return replace(message_view(row, members, own_id), held=True, is_own=own)

    return HeldView(
        conversation_id=conversation_id,
        messages=tuple(map(view, aside.rows)),
        total=aside.total,
        next_due_ms=aside.next_due_ms or UnixMs(0),
        clocks=tuple(
            ClockView(
                participant_id=who,
                name=name_of(who, members),
                is_self=who == own_id,
                ahead_ms=ahead_ms,
            )
            for who, ahead_ms in aside.ahead_ms
        ),
    )


def without(aside: HeldAside, muted: Collection[ParticipantId]) -> HeldAside:
    """``aside`` without the muted members."""
    if not any(who in muted for who, _ in aside.ahead_ms):
        return aside
    rows = tuple(row for row in aside.rows if row.sender_id not in muted)
    return replace(
        aside,
        rows=rows,
        total=aside.total - (len(aside.rows) - len(rows)),
        ahead_ms=tuple(one for one in aside.ahead_ms if one[0] not in muted),
    )


def fork_view(
    conversation_id: ConversationId, fork: Fork, members: Members, own_id: ParticipantId
) -> ForkView:
    return ForkView(
        conversation_id=conversation_id,
        sender_id=fork.sender_id,
        sender_name=name_of(fork.sender_id, members),
        is_self=fork.sender_id == own_id,
        sequence=fork.sequence,
        first_id=fork.first_id,
        second_id=fork.second_id,
    )


def held_notice(
    aside: HeldAside, members: Members, record: ConversationRecord
) -> NoticeRaised | NoticeCleared:
    """A notice saying whose clock is ahead; cleared once nothing is held aside."""
    key = f"clock/{record.conversation_id}"
    if not aside.rows:
        return NoticeCleared(key=key)
    content = ClocksAhead(
        conversation_name=shown_name(record),
        messages=aside.total,
        names=tuple(name_of(who, members) for who, _ in aside.ahead_ms),
        ahead_ms=max((ahead_ms for _, ahead_ms in aside.ahead_ms), default=0),
    )
    return NoticeRaised(key=key, level=NoticeLevel.WARNING, content=content)
