"""Rules that both stores share, where the port's description leaves room.

A write of data to a missing conversation is refused, because the data would be lost.  Writes of the
user's settings (mark, draft, muted, hidden) to a missing conversation are ignored, because the user
may just have left it.  Reads of an unknown conversation are empty, except for its channel's state.
In a page, delivery and holders are those of own messages.

A conversation stays a group, an open channel or a pair.  All have timeline, delivery, own sequence,
draft and mark.  Only a group has members; it and an open channel have an SDS channel.  Only a pair
has the clock, authors, waiting and given-up messages, and MVDS.  Writes of another kind are
refused, and a pair has no channel to read.

The contract suite compares the memory store with the SQLite store; only these rules are shared
code.
"""

from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from engine.core import emoji
from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.errors import LocalProtocolError, StorageError
from engine.core.governed import (
    AddEpochKey,
    BecomeGoverned,
    GovernedWrite,
    NameGroup,
    PutDeed,
    PutDeletion,
    PutEntry,
    PutPrekey,
    RemoveRow,
    SaveOwnPrekeys,
)
from engine.core.ids import ConversationId
from engine.core.ports import (
    AddCounters,
    ApplyChannel,
    ApplyHistory,
    ApplyMvds,
    HideMessage,
    PutAnnotation,
    PutDelivery,
    PutFileHolder,
    PutGroup,
    PutLost,
    PutMember,
    PutMessage,
    PutNodeAddress,
    PutOpenChannel,
    PutStore,
    PutTransfer,
    PutWaiting,
    RemoveLost,
    RemoveStore,
    RemoveWaiting,
    SaveDraft,
    SaveMemberMuted,
    SaveMuted,
    SaveOwnSequence,
    SavePairAuthor,
    SavePairClock,
    SavePicture,
    SaveProfile,
    SaveReadMark,
    SaveValue,
)
from engine.core.ratchet import SaveRatchet
from engine.core.records import ContactRecord, GroupRecord, OpenChannelRecord
from engine.core.sds.vocabulary import ChannelState
from engine.core.stored import ConversationSummary, StoredMessage, StoredPage

MAX_PAGE_ROWS: Final = 1_000
MAX_NODE_ADDRESSES: Final = 50
MAX_LOADED_RECORDS: Final = 1_000_000
MAX_COVERED_STORES: Final = 64
"""Per conversation, the latest: Stores on a local network come and go."""
FILE_KIND: Final = "file"
SAID_KINDS: Final = frozenset(("text", FILE_KIND))
"""The kinds of row that count as unread, as waiting to be sent, and as failed.

They are quoted, edited and retracted.
"""


MAX_EMOJI_EACH: Final = emoji.MAX_EMOJI_EACH
"""Also those taken back; the newest count."""
MAX_VERSIONS: Final = 256
"""Edits kept of one message and member, the newest, beside the original."""
MAX_REACTIONS_SHOWN: Final = 32
MAX_REACTORS_NAMED: Final = 8
MAX_MUTED_AMONG_NAMED: Final = 8
"""Members looked at beyond MAX_REACTORS_NAMED, as some may be muted."""
MAX_QUOTING: Final = 64
QUOTED_CHARACTERS: Final = 280
"""Of a text that is quoted; a mention in it may have a shorter name now, so more is read."""
MAX_LATE_LOOKED_AT: Final = 64
"""Annotations looked at for the newest that counts."""


def page_limit(limit: int) -> int:
    """At most MAX_PAGE_ROWS, whatever was requested."""
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


def initial_clock(write: PutGroup | PutOpenChannel) -> int:
    """A new group or channel starts with only a clock; messages come with ApplyChannel."""
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


ProfileWrite: TypeAlias = (
    SaveProfile | SavePicture | PutNodeAddress | SaveValue | AddCounters | PutStore | RemoveStore
)
UserWrite: TypeAlias = (
    SaveReadMark
    | SaveDraft
    | SaveMuted
    | SaveMemberMuted
    | HideMessage
    | PutTransfer
    | PutFileHolder
    | ApplyHistory
)
"""Ignored for a missing conversation."""
GroupWrite: TypeAlias = PutMember | ApplyChannel | GovernedWrite
PairWrite: TypeAlias = (
    ApplyMvds
    | SavePairClock
    | SavePairAuthor
    | PutWaiting
    | RemoveWaiting
    | PutLost
    | RemoveLost
    | SaveRatchet
)
DataWrite: TypeAlias = (
    GroupWrite | PairWrite | PutMessage | PutAnnotation | PutDelivery | SaveOwnSequence
)
"""Writes that must not be lost: refused for a missing conversation."""


class ConversationKind(StrEnum):
    GROUP = "group"
    OPEN = "open"
    PAIR = "pair"


_WITH_CHANNEL: Final = frozenset((ConversationKind.GROUP, ConversationKind.OPEN))
"""The kinds that have an SDS channel."""

ConversationRow: TypeAlias = GroupRecord | OpenChannelRecord | ContactRecord


def kind_of(record: ConversationRow) -> ConversationKind:
    match record:
        case GroupRecord():
            return ConversationKind.GROUP
        case OpenChannelRecord():
            return ConversationKind.OPEN
        case ContactRecord():
            return ConversationKind.PAIR


def conversation_of(write: DataWrite) -> ConversationId:
    match write:
        case PutMember(member=member):
            return member.conversation_id
        case PutMessage(message=message):
            return message.conversation_id
        case PutAnnotation(annotation=annotation):
            return annotation.conversation_id
        case _:
            return write.conversation_id


def check_kind(write: DataWrite, kind: ConversationKind) -> None:
    match write:
        case ApplyChannel():
            require_channel(kind)
        case PutMessage() | PutAnnotation() | PutDelivery() | SaveOwnSequence():
            pass
        case (
            PutMember() | PutEntry() | AddEpochKey() | SaveOwnPrekeys() | PutPrekey() | RemoveRow()
            | BecomeGoverned() | PutDeed() | NameGroup() | PutDeletion()
        ):  # fmt: skip
            require_kind(kind, ConversationKind.GROUP)
        case ApplyMvds() | SavePairClock() | SavePairAuthor() | PutWaiting() | RemoveWaiting():
            require_kind(kind, ConversationKind.PAIR)
        case PutLost() | RemoveLost() | SaveRatchet():
            require_kind(kind, ConversationKind.PAIR)
        case _:
            assert_never(write)


def require_kind(kind: ConversationKind, needed: ConversationKind) -> None:
    if kind is not needed:
        raise StorageError(f"This conversation is a {kind}, not a {needed}.")


def require_channel(kind: ConversationKind) -> None:
    if kind not in _WITH_CHANNEL:
        raise StorageError(f"This conversation is a {kind}, which has no channel.")


def check_picture(picture: bytes) -> None:
    if len(picture) > MAX_PICTURE_BYTES:
        raise LocalProtocolError(f"a picture of {len(picture)} bytes")


# --- MVDS ---------------------------------------------------------------------------------------


def record_limit(limit: int) -> int:
    if limit < 1:
        raise LocalProtocolError(f"{limit} records")
    return min(limit, MAX_LOADED_RECORDS)
