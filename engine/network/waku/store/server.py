"""13/WAKU2-STORE, the service node: serves pages of the archive in both versions.

Version 3.0.0 answers every request with a status; 2.0.0-beta4 has only a few errors.  A page ends
at the requested number of messages, at most 100, or at its size limit, which is well below the 4
MiB where some client libraries stop reading.  A cursor is given only if more follows.

Requests and bytes of answers are rationed per peer, the bytes over both versions together.  A peer
that has used up its bytes is refused like one that asks too often, and can try again later.

As the specification requires, lookups by hash and content filters exclude each other, and a filter
must be complete.  ``intake`` fills the archive.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from engine.codec.waku_history import (
    MAX_HISTORY_REQUEST_BYTES,
    decode_history_query,
    encode_history_response,
)
from engine.codec.waku_rpc import NO_REQUEST_ID
from engine.codec.waku_store import (
    MAX_STORE_REQUEST_BYTES,
    decode_store_request,
    encode_store_response,
    request_id_of,
)
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError, StorageError
from engine.core.ids import ContentTopic
from engine.core.waku_archive import (
    ArchivePage,
    ArchiveQuery,
    ArchiveSlowError,
    CursorUnknownError,
)
from engine.core.waku_store import (
    DEFAULT_PAGE_MESSAGES,
    MAX_PAGE_MESSAGES,
    HistoryError,
    HistoryQuery,
    HistoryResponse,
    StoreEntry,
    StoreQueryRequest,
    StoreQueryResponse,
    StoreStatus,
)
from engine.network.libp2p.ports import Host, PeerId
from engine.network.waku.protocols import LEGACY_STORE_PROTOCOL, STORE_QUERY_PROTOCOL
from engine.network.waku.service.gate import GateLimits
from engine.network.waku.service.server import ServiceSettings, serve_requests
from engine.network.waku.token_buckets import TokenBuckets

MAX_CONTENT_TOPICS: Final = 100
MAX_MESSAGE_HASHES: Final = 1_000

QueryArchive = Callable[[ArchiveQuery, PeerId], Awaitable[ArchivePage]]
"""Queries the archive for the given peer."""


def _service(max_request_bytes: int) -> ServiceSettings:
    gate = GateLimits(per_second=20, burst=200, at_once_per_peer=4, at_once=16)
    return ServiceSettings(max_request_bytes=max_request_bytes, gate=gate)


class StoreSettings(Struct, frozen=True, kw_only=True):
    """``gate`` allows few concurrent answers, because each may hold a whole page."""

    max_page_bytes: int = 3 * 1024 * 1024
    answer_bytes: int = 64 * 1024 * 1024
    """For one peer per period, both versions together."""
    answer_period_s: float = 60.0
    service: ServiceSettings = field(default_factory=lambda: _service(MAX_STORE_REQUEST_BYTES))
    legacy_service: ServiceSettings = field(
        default_factory=lambda: _service(MAX_HISTORY_REQUEST_BYTES)
    )


class NoPage(StrEnum):
    """Why the archive gives no page; the name is that of the counter."""

    CURSOR_UNKNOWN = "cursor_unknown"
    TOO_SLOW = "query_too_slow"
    FAILED = "query_failed"


_NO_PAGE: Final = {
    NoPage.CURSOR_UNKNOWN: (StoreStatus.BAD_RESPONSE, "the cursor is unknown"),
    NoPage.TOO_SLOW: (StoreStatus.SERVICE_UNAVAILABLE, "the archive has too much to do"),
    NoPage.FAILED: (StoreStatus.SERVICE_UNAVAILABLE, "the archive cannot be read"),
}
_NO_HISTORY_PAGE: Final = {
    NoPage.CURSOR_UNKNOWN: HistoryError.INVALID_CURSOR,
    NoPage.TOO_SLOW: HistoryError.SERVICE_UNAVAILABLE,
    NoPage.FAILED: HistoryError.SERVICE_UNAVAILABLE,
}


async def _page_of(
    query: QueryArchive, asked: ArchiveQuery, peer_id: PeerId, counters: Counters, area: str
) -> ArchivePage | NoPage:
    try:
        return await query(asked, peer_id)
    except CursorUnknownError:
        reason = NoPage.CURSOR_UNKNOWN
    except ArchiveSlowError:
        reason = NoPage.TOO_SLOW
    except StorageError:
        reason = NoPage.FAILED
    counters.add(f"{area}.{reason}")
    return reason


class StoreServer:
    """Serves /vac/waku/store-query/3.0.0."""

    name = "store"
    protocol = STORE_QUERY_PROTOCOL

    def __init__(
        self,
        query: QueryArchive,
        settings: StoreSettings,
        counters: Counters,
    ) -> None:
        self._query = query
        self._settings = settings
        self._counters = counters

    @property
    def settings(self) -> ServiceSettings:
        return self._settings.service

    async def respond(self, peer_id: PeerId, request: bytes, /) -> bytes:
        try:
            decoded = decode_store_request(request)
            _check(decoded)
        except RemoteProtocolError as error:
            self._counters.add(f"store.{error.reason}")
            return _failed(request_id_of(request), StoreStatus.BAD_REQUEST, str(error))
        asked = _archive_query(decoded, self._settings)
        page = await _page_of(self._query, asked, peer_id, self._counters, self.name)
        if isinstance(page, NoPage):
            status, text = _NO_PAGE[page]
            return _failed(decoded.request_id, status, text)
        return encode_store_response(_response(decoded, page))

    def refuse(self, request: bytes, /) -> bytes:
        request_id = request_id_of(request)
        return _failed(request_id, StoreStatus.TOO_MANY_REQUESTS, "too many requests")


class LegacyStoreServer:
    """Serves /vac/waku/store/2.0.0-beta4."""

    name = "store_legacy"
    protocol = LEGACY_STORE_PROTOCOL

    def __init__(
        self,
        query: QueryArchive,
        settings: StoreSettings,
        counters: Counters,
    ) -> None:
        self._query = query
        self._settings = settings
        self._counters = counters

    @property
    def settings(self) -> ServiceSettings:
        return self._settings.legacy_service

    async def respond(self, peer_id: PeerId, request: bytes, /) -> bytes:
        """A malformed request is refused like an invalid cursor: the version has no other error."""
        try:
            decoded = decode_history_query(request)
            _check_topics(decoded.content_topics)
        except RemoteProtocolError as error:
            self._counters.add(f"store_legacy.{error.reason}")
            return _history_failed(NO_REQUEST_ID, HistoryError.INVALID_CURSOR)
        asked = _legacy_archive_query(decoded, self._settings)
        page = await _page_of(self._query, asked, peer_id, self._counters, self.name)
        if isinstance(page, NoPage):
            return _history_failed(decoded.request_id, _NO_HISTORY_PAGE[page])
        return encode_history_response(_history_response(decoded, page))

    def refuse(self, request: bytes, /) -> bytes:
        try:
            request_id = decode_history_query(request).request_id
        except RemoteProtocolError:
            request_id = NO_REQUEST_ID
        return _history_failed(request_id, HistoryError.TOO_MANY_REQUESTS)


def serve_store(
    host: Host, query: QueryArchive, settings: StoreSettings, counters: Counters
) -> None:
    """Serve both versions.  Call before the host starts."""
    budget = TokenBuckets(
        per_second=settings.answer_bytes / settings.answer_period_s,
        burst=settings.answer_bytes,
        clock_s=lambda: asyncio.get_running_loop().time(),
    )
    serve_requests(host, StoreServer(query, settings, counters), counters, budget)
    serve_requests(host, LegacyStoreServer(query, settings, counters), counters, budget)


# --- version 3 ----------------------------------------------------------------------------------


def _check(request: StoreQueryRequest) -> None:
    """Raises RemoteProtocolError for fields that exclude each other.

    js-waku names the pubsub topic in lookups as well.  The hash covers it, so it is ignored.
    """
    times = request.time_start_ns is not None or request.time_end_ns is not None
    if request.message_hashes:
        if request.content_topics or times:
            raise RemoteProtocolError("hashes_and_filter")
    elif (request.pubsub_topic is None) != (not request.content_topics):
        raise RemoteProtocolError("half_a_content_filter")
    _check_topics(request.content_topics)
    if len(request.message_hashes) > MAX_MESSAGE_HASHES:
        raise RemoteProtocolError("too_many_hashes", f"at most {MAX_MESSAGE_HASHES}")


def _check_topics(content_topics: Sequence[ContentTopic]) -> None:
    """Raises RemoteProtocolError."""
    if len(content_topics) > MAX_CONTENT_TOPICS:
        raise RemoteProtocolError("too_many_content_topics", f"at most {MAX_CONTENT_TOPICS}")


def _archive_query(request: StoreQueryRequest, settings: StoreSettings) -> ArchiveQuery:
    return ArchiveQuery(
        cursor=request.pagination_cursor,
        pubsub_topic=request.pubsub_topic,
        content_topics=request.content_topics,
        time_start_ns=request.time_start_ns,
        time_end_ns=request.time_end_ns,
        message_hashes=request.message_hashes,
        forward=request.pagination_forward,
        limit=_page_size(request.pagination_limit or 0),
        max_bytes=settings.max_page_bytes,
        include_data=request.include_data,
    )


def _response(request: StoreQueryRequest, page: ArchivePage) -> StoreQueryResponse:
    edge = page.rows[-1 if request.pagination_forward else 0] if page.more else None
    return StoreQueryResponse(
        request_id=request.request_id,
        status_desc="OK",
        messages=tuple(
            StoreEntry(
                message_hash=row.message_hash,
                data=row.data,
                pubsub_topic=row.index.pubsub_topic,
            )
            if request.include_data
            else StoreEntry(message_hash=row.message_hash)
            for row in page.rows
        ),
        pagination_cursor=None if edge is None else edge.message_hash,
    )


def _failed(request_id: str, status: StoreStatus, text: str) -> bytes:
    return encode_store_response(
        StoreQueryResponse(request_id=request_id, status_code=status, status_desc=text)
    )


# --- version 2 ----------------------------------------------------------------------------------


def _legacy_archive_query(query: HistoryQuery, settings: StoreSettings) -> ArchiveQuery:
    return ArchiveQuery(
        cursor=query.cursor,
        by_digest=True,
        pubsub_topic=query.pubsub_topic,
        content_topics=query.content_topics,
        time_start_ns=query.start_time_ns,
        time_end_ns=query.end_time_ns,
        forward=query.forward,
        limit=_page_size(query.page_size),
        max_bytes=settings.max_page_bytes,
    )


def _history_response(query: HistoryQuery, page: ArchivePage) -> HistoryResponse:
    edge = page.rows[-1 if query.forward else 0] if page.more else None
    return HistoryResponse(
        request_id=query.request_id,
        messages=tuple(row.data for row in page.rows),
        page_size=len(page.rows),
        cursor=None if edge is None else edge.index,
        forward=query.forward,
    )


def _history_failed(request_id: str, error: HistoryError) -> bytes:
    return encode_history_response(HistoryResponse(request_id=request_id, error=error))


def _page_size(asked: int) -> int:
    return min(asked or DEFAULT_PAGE_MESSAGES, MAX_PAGE_MESSAGES)
