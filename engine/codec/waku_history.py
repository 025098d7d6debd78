"""History queries and their responses ↔ bytes: 13/WAKU2-STORE, /vac/waku/store/2.0.0-beta4.

Beyond the specification: ``start_time`` and ``end_time`` of a query (fields 5 and 6), and unknown
error numbers, which are kept.  An empty cursor means none; the digest of any other has 32 bytes.
The Waku messages of a response are bytes here.
"""

from typing import Final

from engine.codec.waku_rpc import checked_request_id, checked_topic, parsed, refuse_many_fields
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku_store import (
    HASH_BYTES,
    MAX_PAGE_MESSAGES,
    HistoryError,
    HistoryIndex,
    HistoryQuery,
    HistoryResponse,
)
from proto import waku_history_pb2

MAX_HISTORY_REQUEST_BYTES: Final = 64 * 1024
MAX_HISTORY_RESPONSE_BYTES: Final = 8 * 1024 * 1024
MAX_RESPONSE_FIELDS: Final = 1_000
"""A page has a hundred messages; the rest leaves room for other fields, known or not."""
_QUERY_FIELD, _RESPONSE_FIELD = 2, 3

_Direction = waku_history_pb2.PagingInfo.Direction


def encode_history_query(query: HistoryQuery) -> bytes:
    return waku_history_pb2.HistoryRpc(
        request_id=query.request_id,
        query=waku_history_pb2.HistoryQuery(
            pubsub_topic=query.pubsub_topic or "",
            content_filters=[
                waku_history_pb2.ContentFilter(content_topic=topic)
                for topic in query.content_topics
            ],
            paging_info=_encode_paging(
                query.page_size or None, query.cursor, forward=query.forward
            ),
            start_time=query.start_time_ns,
            end_time=query.end_time_ns,
        ),
    ).SerializeToString()


def decode_history_query(data: bytes) -> HistoryQuery:
    """Raises RemoteProtocolError, for example ``history_cursor_malformed``."""
    rpc = parsed(
        waku_history_pb2.HistoryRpc,
        data,
        max_bytes=MAX_HISTORY_REQUEST_BYTES,
        what="history_query",
    )
    if not rpc.HasField("query"):
        raise RemoteProtocolError("history_query_missing")
    query = rpc.query
    topics = (checked_topic(item.content_topic) for item in query.content_filters)
    return HistoryQuery(
        request_id=checked_request_id(rpc.request_id),
        pubsub_topic=PubsubTopic(checked_topic(query.pubsub_topic)) if query.pubsub_topic else None,
        content_topics=tuple(ContentTopic(topic) for topic in topics if topic),
        page_size=query.paging_info.page_size,
        cursor=_decode_cursor(query.paging_info),
        forward=query.paging_info.direction == _Direction.FORWARD,
        start_time_ns=query.start_time if query.HasField("start_time") else None,
        end_time_ns=query.end_time if query.HasField("end_time") else None,
    )


def encode_history_response(response: HistoryResponse) -> bytes:
    """An error is sent alone."""
    failed = response.error != HistoryError.NONE
    wire = waku_history_pb2.HistoryResponse(messages=response.messages)
    if not failed:
        wire.paging_info.CopyFrom(
            _encode_paging(response.page_size, response.cursor, forward=response.forward)
        )
    wire.error = waku_history_pb2.HistoryResponse.Error.ValueType(response.error)
    return waku_history_pb2.HistoryRpc(
        request_id=response.request_id, response=wire
    ).SerializeToString()


def decode_history_response(data: bytes) -> HistoryResponse:
    """Raises RemoteProtocolError, for example ``history_page_too_long``."""
    refuse_many_fields(
        data,
        most=MAX_RESPONSE_FIELDS,
        what="history_response",
        inside=(_QUERY_FIELD, _RESPONSE_FIELD),
    )
    rpc = parsed(
        waku_history_pb2.HistoryRpc,
        data,
        max_bytes=MAX_HISTORY_RESPONSE_BYTES,
        what="history_response",
    )
    if not rpc.HasField("response"):
        raise RemoteProtocolError("history_response_missing")
    response = rpc.response
    if len(response.messages) > MAX_PAGE_MESSAGES:
        raise RemoteProtocolError("history_page_too_long")
    return HistoryResponse(
        request_id=checked_request_id(rpc.request_id),
        messages=tuple(response.messages),
        page_size=response.paging_info.page_size,
        cursor=_decode_cursor(response.paging_info),
        forward=response.paging_info.direction == _Direction.FORWARD,
        error=response.error,
    )


def _encode_paging(
    page_size: int | None, cursor: HistoryIndex | None, *, forward: bool
) -> waku_history_pb2.PagingInfo:
    return waku_history_pb2.PagingInfo(
        page_size=page_size,
        cursor=None if cursor is None else _encode_index(cursor),
        direction=_Direction.FORWARD if forward else _Direction.BACKWARD,
    )


def _encode_index(index: HistoryIndex) -> waku_history_pb2.Index:
    return waku_history_pb2.Index(
        digest=index.digest,
        receiver_time=index.receiver_time_ns,
        sender_time=index.sender_time_ns,
        pubsub_topic=index.pubsub_topic,
    )


def _decode_cursor(paging: waku_history_pb2.PagingInfo) -> HistoryIndex | None:
    index = paging.cursor
    if not (index.digest or index.receiver_time or index.sender_time or index.pubsub_topic):
        return None
    if len(index.digest) != HASH_BYTES:
        raise RemoteProtocolError("history_cursor_malformed")
    return HistoryIndex(
        digest=index.digest,
        receiver_time_ns=index.receiver_time,
        sender_time_ns=index.sender_time,
        pubsub_topic=PubsubTopic(checked_topic(index.pubsub_topic)),
    )
