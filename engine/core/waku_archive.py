"""What a Store keeps, in which order, and what it must not keep: 13/WAKU2-STORE.

There is one row per deterministic message hash.  Version 3 orders by (timestamp, hash). 2.0.0-beta4
orders by (timestamp, digest, received), where the time of receipt, unique within one archive, tells
messages with equal digests apart.  This module reads no clock or disk.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.core.errors import RemoteProtocolError, StorageError
from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.core.waku_store import HistoryIndex

MAX_CLOCK_OFFSET_NS: Final = 20 * 10**9


class Source(Struct, frozen=True):
    """Who brought a message or asks for some: a peer, and its network, which may have many peers.

    The names are only compared, so they may be pseudonyms.
    """

    network: str
    peer: str


OURSELVES: Final = Source("", "")


class ArchivedMessage(Struct, frozen=True, kw_only=True):
    """``data`` are the bytes as received.  ``timestamp_ns``: the receiver's, if it had none."""

    message_hash: WakuHash
    pubsub_topic: PubsubTopic
    content_topic: ContentTopic
    timestamp_ns: int
    digest: bytes
    data: bytes
    source: Source = OURSELVES


class Appended(Struct, frozen=True, kw_only=True):
    """``added`` were new; ``evicted`` were removed to make room, perhaps some of the new ones."""

    added: int
    evicted: int = 0


class ArchiveQuery(Struct, frozen=True, kw_only=True):
    """Without topics, times or hashes these filter nothing.  Times are inclusive."""

    cursor: WakuHash | HistoryIndex | None = None
    by_digest: bool = False
    """Whether to use the order of 2.0.0-beta4."""
    pubsub_topic: PubsubTopic | None = None
    content_topics: tuple[ContentTopic, ...] = ()
    time_start_ns: int | None = None
    time_end_ns: int | None = None
    message_hashes: tuple[WakuHash, ...] = ()
    forward: bool = False
    limit: int
    max_bytes: int
    """Limit on the data of a page, which has at least one message if any matches."""
    include_data: bool = True
    asker: Source = OURSELVES


class ArchivedRow(Struct, frozen=True, kw_only=True):
    message_hash: WakuHash
    index: HistoryIndex
    data: bytes


class ArchivePage(Struct, frozen=True, kw_only=True):
    """Ascending.  ``more``: there are further matches in the direction of paging."""

    rows: tuple[ArchivedRow, ...] = ()
    more: bool = False


class ArchiveStatistics(Struct, frozen=True, kw_only=True):
    messages: int
    used_bytes: int
    """On disk, without free pages of the file."""


class CursorUnknownError(RemoteProtocolError):
    """No archived message has this cursor."""

    def __init__(self) -> None:
        super().__init__("store_cursor_unknown")


class ArchiveSlowError(StorageError):
    """The deadline passed before there was a page."""


class Ineligible(StrEnum):
    """Why a message is relayed but not archived."""

    EPHEMERAL = "ephemeral"
    CLOCK = "clock"


def ineligibility(message: WakuMessage, *, now_ns: int) -> Ineligible | None:
    """Why a Store does not keep this message; None if it does.

    A time far in the future would stay at the top of every answer, as the specification itself
    warns.  So anything more than 20 s off, either way, is refused.  A message without a time is
    kept by that of its receipt.
    """
    if message.ephemeral:
        return Ineligible.EPHEMERAL
    if message.timestamp_ns and abs(message.timestamp_ns - now_ns) > MAX_CLOCK_OFFSET_NS:
        return Ineligible.CLOCK
    return None
