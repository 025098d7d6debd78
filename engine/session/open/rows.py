"""Rows and names of an open channel, made of what strangers sent.

Nobody's name is proved.  A row bears the name that its message gives: the nick of 22/TOY-CHAT, or
else the sender_id, without anything that could turn or hide other words.  Its time is the Lamport
timestamp, which js-waku takes from a clock, unless that cannot be the time.
"""

from typing import Final

from engine.codec.open_content import OpenContent
from engine.core.content import MAX_NAME_CHARACTERS, Content, clean_name
from engine.core.ids import (
    AuthorSequence,
    ConversationId,
    InstanceId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.records import MessageRecord
from engine.core.sds.vocabulary import Message
from engine.session.rows import UNKNOWN_WAY, Way, row_of

NAMELESS: Final = ParticipantId("?")
MAX_AHEAD_MS: Final = 300_000
_FIRST_PLAUSIBLE_MS: Final = 1_000_000_000_000
"""September 2001.  A smaller Lamport timestamp counts messages, or nothing."""
_NO_AUTHOR: Final = AuthorSequence(instance_id=InstanceId(b""), sequence=0)


def stranger_name(text: str) -> ParticipantId:
    """A name that a stranger chose, as it may be shown, and as a row's sender."""
    try:
        return ParticipantId(clean_name(text[:MAX_NAME_CHARACTERS]))
    except ValueError:
        return NAMELESS


def open_row(  # noqa: PLR0913 - one keyword per fact of the row
    conversation_id: ConversationId,
    message: Message,
    said: OpenContent,
    *,
    is_own: bool,
    clock_ms: UnixMs,
    now_ms: UnixMs,
    waiting: bool = False,
    late: bool = False,
    way: Way = UNKNOWN_WAY,
) -> MessageRecord:
    lamport = message.lamport_timestamp or 0
    is_plausible = _FIRST_PLAUSIBLE_MS <= lamport <= clock_ms + MAX_AHEAD_MS
    sent_ms = UnixMs(lamport) if is_plausible else clock_ms
    content = Content(
        author=_NO_AUTHOR, previous_id=None, nonce=b"", sent_ms=sent_ms, body=said.body
    )
    return row_of(
        conversation_id,
        content,
        position=Position(lamport_timestamp=lamport, message_id=message.message_id),
        sender_id=stranger_name(said.nick or message.sender_id),
        is_own=is_own,
        now_ms=now_ms,
        waiting=waiting,
        late=late,
        way=way,
    )
