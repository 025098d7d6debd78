"""Filter requests, responses and pushes ↔ bytes: 12/WAKU2-FILTER.

A pushed Waku message has the bytes that the relay received.  This module limits the topics of one
request; the server limits those of one peer.
"""

from enum import IntEnum
from typing import Final

from msgspec import Struct

from engine.codec.waku_rpc import checked_request_id, checked_topic, parsed, shown_description
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES
from proto import waku_filter_pb2

MAX_FILTER_REQUEST_BYTES: Final = 32 * 1024
MAX_FILTER_RESPONSE_BYTES: Final = 4 * 1024
MAX_PUSH_BYTES: Final = MAX_WAKU_MESSAGE_BYTES + 1_024
MAX_TOPICS_PER_REQUEST: Final = 100

_WireType = waku_filter_pb2.FilterSubscribeRequest.FilterSubscribeType


class FilterSubscribeType(IntEnum):
    SUBSCRIBER_PING = 0
    SUBSCRIBE = 1
    UNSUBSCRIBE = 2
    UNSUBSCRIBE_ALL = 3


class FilterSubscribeRequest(Struct, frozen=True, kw_only=True):
    request_id: str
    filter_subscribe_type: FilterSubscribeType
    pubsub_topic: PubsubTopic | None = None
    content_topics: tuple[ContentTopic, ...] = ()


class FilterSubscribeResponse(Struct, frozen=True, kw_only=True):
    request_id: str
    status_code: int
    status_desc: str = ""


class MessagePush(Struct, frozen=True, kw_only=True):
    """``data`` is an encoded Waku message."""

    data: bytes
    pubsub_topic: PubsubTopic | None = None


def encode_filter_request(request: FilterSubscribeRequest) -> bytes:
    return waku_filter_pb2.FilterSubscribeRequest(
        request_id=request.request_id,
        filter_subscribe_type=_WireType.ValueType(request.filter_subscribe_type),
        pubsub_topic=request.pubsub_topic,
        content_topics=request.content_topics,
    ).SerializeToString()


def decode_filter_request(data: bytes) -> FilterSubscribeRequest:
    """Raises RemoteProtocolError, for example ``filter_type_unknown``."""
    wire = parsed(
        waku_filter_pb2.FilterSubscribeRequest,
        data,
        max_bytes=MAX_FILTER_REQUEST_BYTES,
        what="filter_request",
    )
    try:
        kind = FilterSubscribeType(wire.filter_subscribe_type)
    except ValueError as error:
        raise RemoteProtocolError("filter_type_unknown") from error
    return FilterSubscribeRequest(
        request_id=checked_request_id(wire.request_id),
        filter_subscribe_type=kind,
        pubsub_topic=PubsubTopic(checked_topic(wire.pubsub_topic)) if wire.pubsub_topic else None,
        content_topics=tuple(ContentTopic(checked_topic(topic)) for topic in wire.content_topics),
    )


def encode_filter_response(response: FilterSubscribeResponse) -> bytes:
    return waku_filter_pb2.FilterSubscribeResponse(
        request_id=response.request_id,
        status_code=response.status_code,
        status_desc=response.status_desc or None,
    ).SerializeToString()


def decode_filter_response(data: bytes) -> FilterSubscribeResponse:
    """Raises RemoteProtocolError: ``filter_response_malformed`` and so on."""
    wire = parsed(
        waku_filter_pb2.FilterSubscribeResponse,
        data,
        max_bytes=MAX_FILTER_RESPONSE_BYTES,
        what="filter_response",
    )
    return FilterSubscribeResponse(
        request_id=checked_request_id(wire.request_id),
        status_code=wire.status_code,
        status_desc=shown_description(wire.status_desc),
    )


def encode_message_push(push: MessagePush) -> bytes:
    return waku_filter_pb2.MessagePush(
        waku_message=push.data, pubsub_topic=push.pubsub_topic
    ).SerializeToString()


def decode_message_push(data: bytes) -> MessagePush:
    """Raises RemoteProtocolError, for example ``push_without_message``."""
    wire = parsed(waku_filter_pb2.MessagePush, data, max_bytes=MAX_PUSH_BYTES, what="push")
    if not wire.HasField("waku_message"):
        raise RemoteProtocolError("push_without_message")
    return MessagePush(
        data=wire.waku_message,
        pubsub_topic=PubsubTopic(checked_topic(wire.pubsub_topic)) if wire.pubsub_topic else None,
    )
