"""Store queries and their responses ↔ bytes: 13/WAKU2-STORE, /vac/waku/store-query/3.0.0.

A request that cannot be decoded, or with a malformed hash, is refused here; the server checks
whether its fields go together.  The Waku messages of a response are bytes here: the client decodes
them one by one, so that a single bad one does not cost the page.
"""

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError

from engine.codec.waku_rpc import (
    NO_REQUEST_ID,
    checked_request_id,
    checked_topic,
    parsed,
    refuse_many_fields,
    shown_description,
)
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku_store import (
    HASH_BYTES,
    MAX_PAGE_MESSAGES,
    StoreEntry,
    StoreQueryRequest,
    StoreQueryResponse,
)
from proto import waku_store_pb2

MAX_STORE_REQUEST_BYTES: Final = 64 * 1024
MAX_STORE_RESPONSE_BYTES: Final = 8 * 1024 * 1024
MAX_RESPONSE_FIELDS: Final = 1_000
"""A page has a hundred entries; the rest leaves room for other fields, known or not."""


def encode_store_request(request: StoreQueryRequest) -> bytes:
    return waku_store_pb2.StoreQueryRequest(
        request_id=request.request_id,
        include_data=request.include_data,
        pubsub_topic=request.pubsub_topic,
        content_topics=request.content_topics,
        time_start=request.time_start_ns,
        time_end=request.time_end_ns,
        message_hashes=request.message_hashes,
        pagination_cursor=request.pagination_cursor,
        pagination_forward=request.pagination_forward,
        pagination_limit=request.pagination_limit,
    ).SerializeToString()


def decode_store_request(data: bytes) -> StoreQueryRequest:
    """Raises RemoteProtocolError, for example ``store_hash_malformed``."""
    wire = parsed(
        waku_store_pb2.StoreQueryRequest,
        data,
        max_bytes=MAX_STORE_REQUEST_BYTES,
        what="store_request",
    )
    return StoreQueryRequest(
        request_id=checked_request_id(wire.request_id),
        include_data=wire.include_data,
        pubsub_topic=PubsubTopic(checked_topic(wire.pubsub_topic)) if wire.pubsub_topic else None,
        content_topics=tuple(ContentTopic(checked_topic(topic)) for topic in wire.content_topics),
        time_start_ns=wire.time_start if wire.HasField("time_start") else None,
        time_end_ns=wire.time_end if wire.HasField("time_end") else None,
        message_hashes=tuple(_checked_hash(value) for value in wire.message_hashes),
        pagination_cursor=_cursor(wire),
        pagination_forward=wire.pagination_forward,
        pagination_limit=wire.pagination_limit if wire.HasField("pagination_limit") else None,
    )


def request_id_of(data: bytes) -> str:
    """For an error answer, even if the request could not be decoded otherwise."""
    try:
        wire = waku_store_pb2.StoreQueryRequest.FromString(data)
        return checked_request_id(wire.request_id) or NO_REQUEST_ID
    except (DecodeError, RemoteProtocolError):
        return NO_REQUEST_ID


def encode_store_response(response: StoreQueryResponse) -> bytes:
    return waku_store_pb2.StoreQueryResponse(
        request_id=response.request_id,
        status_code=response.status_code,
        status_desc=response.status_desc,
        messages=[
            waku_store_pb2.WakuMessageKeyValue(
                message_hash=entry.message_hash,
                message=entry.data,
                pubsub_topic=entry.pubsub_topic,
            )
            for entry in response.messages
        ],
        pagination_cursor=response.pagination_cursor,
    ).SerializeToString()


def decode_store_response(data: bytes) -> StoreQueryResponse:
    """Raises RemoteProtocolError, for example ``store_page_too_long``."""
    refuse_many_fields(data, most=MAX_RESPONSE_FIELDS, what="store_response")
    wire = parsed(
        waku_store_pb2.StoreQueryResponse,
        data,
        max_bytes=MAX_STORE_RESPONSE_BYTES,
        what="store_response",
    )
    if len(wire.messages) > MAX_PAGE_MESSAGES:
        raise RemoteProtocolError("store_page_too_long")
    return StoreQueryResponse(
        request_id=checked_request_id(wire.request_id),
        status_code=wire.status_code,
        status_desc=shown_description(wire.status_desc),
        messages=tuple(_entries(wire.messages)),
        pagination_cursor=_cursor(wire),
    )


def _entries(wire: Iterable[waku_store_pb2.WakuMessageKeyValue]) -> Iterable[StoreEntry]:
    for entry in wire:
        yield StoreEntry(
            message_hash=_checked_hash(entry.message_hash),
            data=entry.message if entry.HasField("message") else None,
            pubsub_topic=PubsubTopic(checked_topic(entry.pubsub_topic))
            if entry.pubsub_topic
            else None,
        )


def _cursor(
    wire: waku_store_pb2.StoreQueryRequest | waku_store_pb2.StoreQueryResponse,
) -> WakuHash | None:
    """An empty cursor means none, as some libraries write it."""
    return _checked_hash(wire.pagination_cursor) if wire.pagination_cursor else None


def _checked_hash(value: bytes) -> WakuHash:
    if len(value) != HASH_BYTES:
        raise RemoteProtocolError("store_hash_malformed")
    return WakuHash(value)
