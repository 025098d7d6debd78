"""Queries to a Store and its answers: 13/WAKU2-STORE, both versions, without their encoding.

Version 3 (``StoreQuery…``) names a message by its deterministic hash; 2.0.0-beta4 (``History…``) by
an ``Index`` of digest and times.  In both, a page is ascending whatever the direction of paging.  A
cursor is exclusive and belongs to the node that gave it; no cursor means the end.

Clients, servers and the paging of histories share these types.  They involve no streams, databases
or clocks.
"""

from enum import IntEnum
from typing import Final

from msgspec import Struct

from engine.core.ids import ContentTopic, PubsubTopic, WakuHash

MAX_PAGE_MESSAGES: Final = 100
DEFAULT_PAGE_MESSAGES: Final = 20
HASH_BYTES: Final = 32


class StoreStatus(IntEnum):
    """``status_code`` of version 3; any other number is an error too."""

    SUCCESS = 200
    BAD_RESPONSE = 300
    """Also the answer to an unknown cursor."""
    BAD_REQUEST = 400
    TOO_MANY_REQUESTS = 429
    INTERNAL_ERROR = 500
    SERVICE_UNAVAILABLE = 503


class StoreQueryRequest(Struct, frozen=True, kw_only=True):
    """Either a content filter, topics and times, or a look-up by hashes; times are inclusive."""

    request_id: str
    include_data: bool = False
    pubsub_topic: PubsubTopic | None = None
    content_topics: tuple[ContentTopic, ...] = ()
    time_start_ns: int | None = None
    time_end_ns: int | None = None
    message_hashes: tuple[WakuHash, ...] = ()
    pagination_cursor: WakuHash | None = None
    pagination_forward: bool = False
    pagination_limit: int | None = None


class StoreEntry(Struct, frozen=True, kw_only=True):
    """``data`` is the encoded Waku message; it and the topic are both present or both absent."""

    message_hash: WakuHash
    data: bytes | None = None
    pubsub_topic: PubsubTopic | None = None


class StoreQueryResponse(Struct, frozen=True, kw_only=True):
    request_id: str
    status_code: int = StoreStatus.SUCCESS
    status_desc: str = ""
    messages: tuple[StoreEntry, ...] = ()
    pagination_cursor: WakuHash | None = None


class HistoryError(IntEnum):
    """``error`` of 2.0.0-beta4; the last two are not in the specification."""

    NONE = 0
    INVALID_CURSOR = 1
    TOO_MANY_REQUESTS = 429
    SERVICE_UNAVAILABLE = 503


class HistoryIndex(Struct, frozen=True, kw_only=True):
    """``digest`` is sha256(content topic ‖ payload); times are Unix nanoseconds."""

    digest: bytes
    receiver_time_ns: int
    sender_time_ns: int
    pubsub_topic: PubsubTopic


class HistoryQuery(Struct, frozen=True, kw_only=True):
    """Absent topics filter nothing; ``page_size`` 0 leaves it to the node."""

    request_id: str
    pubsub_topic: PubsubTopic | None = None
    content_topics: tuple[ContentTopic, ...] = ()
    page_size: int = 0
    cursor: HistoryIndex | None = None
    forward: bool = False
    start_time_ns: int | None = None
    end_time_ns: int | None = None


class HistoryResponse(Struct, frozen=True, kw_only=True):
    """``messages`` are encoded Waku messages; ``error`` may be an unknown number."""

    request_id: str
    messages: tuple[bytes, ...] = ()
    page_size: int = 0
    cursor: HistoryIndex | None = None
    forward: bool = False
    error: int = HistoryError.NONE
