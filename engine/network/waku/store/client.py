"""13/WAKU2-STORE, the client: sends one request to one Store and checks its answer.

In version 3 the hash of every message is computed again.  Entries with a wrong hash, or that cannot
be decoded, are left out and reported with a reason, so a Store can neither forge an entry nor hide
a page behind a bad one.  The order within a page is not verified.

Paging, merging several Stores and choosing the next one happen in ``engine.core.history``, which
needs only ``query`` and ``query_history`` from here.  A refusal by the Store is an answer, not an
error.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.codec.waku import decode_waku_message
from engine.codec.waku_history import (
    MAX_HISTORY_RESPONSE_BYTES,
    decode_history_response,
    encode_history_query,
)
from engine.codec.waku_store import (
    MAX_STORE_RESPONSE_BYTES,
    decode_store_response,
    encode_store_request,
)
from engine.core.errors import RemoteProtocolError
from engine.core.ids import PubsubTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.core.waku_store import (
    HistoryError,
    HistoryIndex,
    HistoryQuery,
    StoreEntry,
    StoreQueryRequest,
    StoreStatus,
)
from engine.network.libp2p.ports import Host, PeerId
from engine.network.waku.message_hash import message_hash
from engine.network.waku.protocols import LEGACY_STORE_PROTOCOL, STORE_QUERY_PROTOCOL
from engine.network.waku.service.exchange import ExchangeLimits, ask

CHECKED_TOGETHER: Final = 25
"""Messages checked before other tasks get a turn: about half a millisecond of work."""


class StoredMessage(Struct, frozen=True, kw_only=True, gc=False):
    """``message`` and ``pubsub_topic`` are None if only hashes were requested."""

    message_hash: WakuHash
    message: WakuMessage | None = None
    pubsub_topic: PubsubTopic | None = None


class StorePage(Struct, frozen=True, kw_only=True):
    """``refused``: one reason for each entry that was left out.  ``size``: bytes of the answer."""

    status_code: int
    status_desc: str = ""
    messages: tuple[StoredMessage, ...] = ()
    cursor: WakuHash | None = None
    refused: tuple[str, ...] = ()
    size: int = 0

    @property
    def succeeded(self) -> bool:
        return self.status_code == StoreStatus.SUCCESS


class HistoryPage(Struct, frozen=True, kw_only=True):
    error: int
    messages: tuple[WakuMessage, ...] = ()
    cursor: HistoryIndex | None = None
    refused: tuple[str, ...] = ()
    size: int = 0

    @property
    def succeeded(self) -> bool:
        return self.error == HistoryError.NONE


class StoreClient:
    def __init__(self, host: Host, *, limits: ExchangeLimits | None = None) -> None:
        self._host = host
        self._limits = limits or ExchangeLimits(
            max_response_bytes=max(MAX_STORE_RESPONSE_BYTES, MAX_HISTORY_RESPONSE_BYTES)
        )

    async def query(self, peer_id: PeerId, request: StoreQueryRequest) -> StorePage:
        """Version 3.  Raises TransportError, or RemoteProtocolError for a malformed answer."""
        encoded = encode_store_request(request)
        answer = await ask(self._host, peer_id, STORE_QUERY_PROTOCOL, encoded, self._limits)
        response = decode_store_response(answer)
        if response.status_code != StoreStatus.SUCCESS:
            return StorePage(status_code=response.status_code, status_desc=response.status_desc)
        if response.request_id != request.request_id:
            raise RemoteProtocolError("store_response_other_request")
        if response.pagination_cursor is not None and (
            response.pagination_cursor == request.pagination_cursor
        ):
            raise RemoteProtocolError("store_cursor_stuck")
        messages, refused = await _checked(response.messages, request)
        return StorePage(
            status_code=response.status_code,
            status_desc=response.status_desc,
            messages=messages,
            cursor=response.pagination_cursor,
            refused=refused,
            size=len(answer),
        )

    async def query_history(self, peer_id: PeerId, query: HistoryQuery) -> HistoryPage:
        """2.0.0-beta4.  Raises TransportError, or RemoteProtocolError for a malformed answer."""
        encoded = encode_history_query(query)
        answer = await ask(self._host, peer_id, LEGACY_STORE_PROTOCOL, encoded, self._limits)
        response = decode_history_response(answer)
        if response.error != HistoryError.NONE:
            return HistoryPage(error=response.error)
        if response.request_id != query.request_id:
            raise RemoteProtocolError("history_response_other_request")
        if response.cursor is not None and response.cursor == query.cursor:
            raise RemoteProtocolError("store_cursor_stuck")
        messages: list[WakuMessage] = []
        refused: list[str] = []
        for number, data in enumerate(response.messages, 1):
            try:
                messages.append(_checked_history(data, query))
            except RemoteProtocolError as error:
                refused.append(error.reason)
            if number % CHECKED_TOGETHER == 0:
                await asyncio.sleep(0)
        return HistoryPage(
            error=response.error,
            messages=tuple(messages),
            cursor=response.cursor,
            refused=tuple(refused),
            size=len(answer),
        )


async def _checked(
    entries: Sequence[StoreEntry], request: StoreQueryRequest
) -> tuple[tuple[StoredMessage, ...], tuple[str, ...]]:
    """Check the entries in slices, giving other tasks a turn in between."""
    messages: list[StoredMessage] = []
    refused: list[str] = []
    for number, entry in enumerate(entries, 1):
        try:
            messages.append(_checked_entry(entry, request))
        except RemoteProtocolError as error:
            refused.append(error.reason)
        if number % CHECKED_TOGETHER == 0:
            await asyncio.sleep(0)
    return tuple(messages), tuple(refused)


def _checked_entry(entry: StoreEntry, request: StoreQueryRequest) -> StoredMessage:
    """Raises RemoteProtocolError if the entry is not what it claims, or was not requested."""
    if request.message_hashes and entry.message_hash not in request.message_hashes:
        raise RemoteProtocolError("store_entry_unasked")
    if not request.include_data:
        return StoredMessage(message_hash=entry.message_hash)
    topic = entry.pubsub_topic or request.pubsub_topic
    if entry.data is None or topic is None:
        raise RemoteProtocolError("store_entry_without_data")
    message = decode_waku_message(entry.data)
    if message_hash(topic, message) != entry.message_hash:
        raise RemoteProtocolError("store_hash_mismatch")
    if request.content_topics and message.content_topic not in request.content_topics:
        raise RemoteProtocolError("store_entry_unasked")
    return StoredMessage(message_hash=entry.message_hash, message=message, pubsub_topic=topic)


def _checked_history(data: bytes, query: HistoryQuery) -> WakuMessage:
    message = decode_waku_message(data)
    if query.content_topics and message.content_topic not in query.content_topics:
        raise RemoteProtocolError("store_entry_unasked")
    return message
