"""What a session holds aside → the section of the timeline and the notice that tell of it.

The section carries the messages themselves; the notice says whose clock is wrong, also while the
conversation is not open, and also when it is our own and nothing has to be held because of it.
"""

from collections.abc import Mapping
from dataclasses import replace

from engine.core.duration import duration_words
from engine.core.ports import MemberRecord, MessageRecord, StoredMessage
from engine.core.types import ConversationId, ParticipantId, UnixMs
from engine.events import ClockView, HeldView, MessageView, NoticeCleared, NoticeLevel, NoticeRaised
from engine.runtime.views import message_view, shown_name
from engine.session.session import ConversationRecord
from engine.session.types import HeldAside

NAMES_IN_A_NOTICE = 3

Members = Mapping[ParticipantId, MemberRecord]


def held_view(
    conversation_id: ConversationId, aside: HeldAside, members: Members, own_id: ParticipantId
) -> HeldView | None:
    if not aside.rows:
        return None

    def view(record: MessageRecord) -> MessageView:
        # Our own come from before a restore; nobody's holding counts before it has its place.
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
                name=_name(who, members),
                is_self=who == own_id,
                ahead_ms=ahead_ms,
            )
            for who, ahead_ms in aside.ahead_ms
        ),
        own_behind_ms=aside.clock_offset_ms,
    )


def clock_notice(
    aside: HeldAside, members: Members, record: ConversationRecord
) -> NoticeRaised | NoticeCleared:
    """Whose clock is wrong, in words; cleared once nothing is held and ours is right."""
    key = f"clock/{record.conversation_id}"
    sentences = [*_held_sentences(aside, members), *_own_sentences(aside.clock_offset_ms)]
    if not sentences:
        return NoticeCleared(key=key)
    text = f"{shown_name(record)}: {' '.join(sentences)}"
    return NoticeRaised(key=key, level=NoticeLevel.WARNING, text=text)


def _held_sentences(aside: HeldAside, members: Members) -> list[str]:
    if not aside.rows:
        return []
    names = [_name(who, members) for who, _ in aside.ahead_ms]
    shown = ", ".join(names[:NAMES_IN_A_NOTICE]) + " and others" * (len(names) > NAMES_IN_A_NOTICE)
    messages = "1 message is" if aside.total == 1 else f"{aside.total} messages are"
    furthest_ms = max((ahead_ms for _, ahead_ms in aside.ahead_ms), default=0)
    return [
        f"{messages} held, because the clock of {shown} is {duration_words(furthest_ms)} ahead.",
        "They take their place when their time has come, or when the clocks agree.",
    ]


def _own_sentences(clock_offset_ms: int) -> list[str]:
    if not clock_offset_ms:
        return []
    where = "behind" if clock_offset_ms > 0 else "ahead of"
    return [
        f"The clock of this device is {duration_words(abs(clock_offset_ms))} {where} the others'.",
        "Please set it right.",
    ]


def _name(who: ParticipantId, members: Members) -> str:
    member = members.get(who)
    return member.name if member else who[:8]
