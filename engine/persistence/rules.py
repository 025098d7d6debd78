"""What both stores mean by the port's words, where a sentence of the port leaves room.

A write of data into a conversation that is not there is refused (it would be lost).  What only the
user's window says of one (mark, draft, muted, hidden) has nothing to say about a conversation that
was left a moment ago, and is ignored.  Reads of an unknown conversation are empty, but for its
channel's state.  In a page, delivery and holders are those of own messages.

The memory store and the SQLite store agree because the contract suite compares them; these few
rules are the ones worth writing down once.  Nothing here knows how rows are kept.
"""

from typing import Final, TypeAlias

from engine.core.errors import LocalProtocolError
from engine.core.ports import (
    ApplyChannel,
    ConversationSummary,
    PutDelivery,
    PutGroup,
    PutMember,
    PutMessage,
    SaveOwnSequence,
    StoredMessage,
    StoredPage,
)
from engine.core.sds.types import ChannelState
from engine.core.types import ConversationId

MAX_PAGE_ROWS: Final = 1_000
MAX_NODE_ADDRESSES: Final = 50
TEXT_KIND: Final = "text"
"""The kind of row that counts: as unread, as waiting to be sent, as failed."""


def page_limit(limit: int) -> int:
    """A page never holds more than MAX_PAGE_ROWS, whatever was asked for."""
    if limit < 1:
        raise LocalProtocolError(f"a page of {limit} rows")
    return min(limit, MAX_PAGE_ROWS)


def page(rows: tuple[StoredMessage, ...], *, older_count: int, total: int) -> StoredPage:
    return StoredPage(
        messages=rows,
        has_older=older_count > 0,
        has_newer=older_count + len(rows) < total,
        older_count=older_count,
        total=total,
    )


def initial_clock(write: PutGroup) -> int:
    """A new group starts with a clock and nothing else: messages come with ApplyChannel."""
    state = write.initial_state
    if state is None:
        return 0
    if state != ChannelState(lamport_timestamp=state.lamport_timestamp):
        raise LocalProtocolError("a new group's state holds more than its clock")
    return state.lamport_timestamp


EMPTY_PAGE: Final = page((), older_count=0, total=0)
EMPTY_SUMMARY: Final = ConversationSummary(
    unread=0, first_unread=None, last_message=None, waiting_to_send=0, failed=0
)

DataWrite: TypeAlias = PutMember | ApplyChannel | PutMessage | PutDelivery | SaveOwnSequence
"""Writes that must not be lost: refused for a conversation that is not there."""


def conversation_of(write: DataWrite) -> ConversationId:
    match write:
        case PutMember(member=member):
            return member.conversation_id
        case PutMessage(message=message):
            return message.conversation_id
        case _:
            return write.conversation_id
