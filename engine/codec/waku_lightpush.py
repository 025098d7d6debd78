"""Lightpush requests and responses ↔ bytes: 19/WAKU2-LIGHTPUSH in both versions.

2.0.0-beta1 wraps both in one message and has only success or failure; 3.0.0 has status codes and
lets the service node derive the shard.  One pair of types serves both.  The Waku message inside is
bytes here: it is relayed unchanged.
"""

from enum import IntEnum
from typing import Final

from msgspec import Struct

from engine.codec.waku_rpc import (
    NO_REQUEST_ID,
    checked_request_id,
    checked_topic,
    parsed,
    shown_description,
)
from engine.core.errors import RemoteProtocolError
from engine.core.ids import PubsubTopic
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES
from proto import waku_lightpush_pb2

MAX_PUSH_REQUEST_BYTES: Final = MAX_WAKU_MESSAGE_BYTES + 1_024
MAX_PUSH_RESPONSE_BYTES: Final = 4 * 1024


class PushStatus(IntEnum):
    """``status_code`` of 3.0.0, with the numbers of nwaku and js-waku."""

    SUCCESS = 200
    BAD_REQUEST = 400
    PAYLOAD_TOO_LARGE = 413
    INVALID_MESSAGE = 420
    UNSUPPORTED_TOPIC = 421
    TOO_MANY_REQUESTS = 429
    INTERNAL_ERROR = 500
    UNAVAILABLE = 503
    NO_RLN_PROOF = 504
    NO_PEERS = 505


class PushRequest(Struct, frozen=True, kw_only=True):
    """``pubsub_topic`` None: the node derives it.  ``data`` is an encoded Waku message."""

    request_id: str
    data: bytes
    pubsub_topic: PubsubTopic | None = None


class PushResponse(Struct, frozen=True, kw_only=True):
    """From 2.0.0-beta1, only SUCCESS, TOO_MANY_REQUESTS or INTERNAL_ERROR."""

    request_id: str
    status_code: int
    status_desc: str = ""
    relay_peer_count: int | None = None


# --- 3.0.0 --------------------------------------------------------------------------------------


def encode_push_request(request: PushRequest) -> bytes:
    return waku_lightpush_pb2.LightpushRequest(
        request_id=request.request_id, pubsub_topic=request.pubsub_topic, message=request.data
    ).SerializeToString()


def decode_push_request(data: bytes) -> PushRequest:
    """Raises RemoteProtocolError, for example ``_without_message``."""
    wire = parsed(
        waku_lightpush_pb2.LightpushRequest,
        data,
        max_bytes=MAX_PUSH_REQUEST_BYTES,
        what="push_request",
    )
    if not wire.HasField("message"):
        raise RemoteProtocolError("push_request_without_message")
    return PushRequest(
        request_id=checked_request_id(wire.request_id),
        data=wire.message,
        pubsub_topic=PubsubTopic(checked_topic(wire.pubsub_topic)) if wire.pubsub_topic else None,
    )


def encode_push_response(response: PushResponse) -> bytes:
    return waku_lightpush_pb2.LightpushResponse(
        request_id=response.request_id,
        status_code=response.status_code,
        status_desc=response.status_desc or None,
        relay_peer_count=response.relay_peer_count,
    ).SerializeToString()


def decode_push_response(data: bytes) -> PushResponse:
    """Raises RemoteProtocolError: ``push_response_malformed`` and so on."""
    wire = parsed(
        waku_lightpush_pb2.LightpushResponse,
        data,
        max_bytes=MAX_PUSH_RESPONSE_BYTES,
        what="push_response",
    )
    return PushResponse(
        request_id=checked_request_id(wire.request_id),
        status_code=wire.status_code,
        status_desc=shown_description(wire.status_desc),
        relay_peer_count=wire.relay_peer_count if wire.HasField("relay_peer_count") else None,
    )


# --- 2.0.0-beta1 --------------------------------------------------------------------------------


def encode_legacy_request(request: PushRequest) -> bytes:
    return waku_lightpush_pb2.PushRpc(
        request_id=request.request_id,
        request=waku_lightpush_pb2.PushRequest(
            pubsub_topic=request.pubsub_topic or "", message=request.data
        ),
    ).SerializeToString()


def decode_legacy_request(data: bytes) -> PushRequest:
    """Raises RemoteProtocolError, for example ``_without_message``."""
    wire = parsed(
        waku_lightpush_pb2.PushRpc, data, max_bytes=MAX_PUSH_REQUEST_BYTES, what="push_request"
    )
    if not wire.request.HasField("message"):
        raise RemoteProtocolError("push_request_without_message")
    topic = wire.request.pubsub_topic
    return PushRequest(
        request_id=checked_request_id(wire.request_id),
        data=wire.request.message,
        pubsub_topic=PubsubTopic(checked_topic(topic)) if topic else None,
    )


def encode_legacy_response(response: PushResponse) -> bytes:
    return waku_lightpush_pb2.PushRpc(
        request_id=response.request_id,
        response=waku_lightpush_pb2.PushResponse(
            is_success=response.status_code == PushStatus.SUCCESS,
            info=response.status_desc or None,
        ),
    ).SerializeToString()


def decode_legacy_response(data: bytes) -> PushResponse:
    """Raises RemoteProtocolError, for example ``push_response_missing``."""
    wire = parsed(
        waku_lightpush_pb2.PushRpc, data, max_bytes=MAX_PUSH_RESPONSE_BYTES, what="push_response"
    )
    if not wire.HasField("response"):
        raise RemoteProtocolError("push_response_missing")
    request_id = checked_request_id(wire.request_id)
    if wire.response.is_success:
        status = PushStatus.SUCCESS
    elif request_id == NO_REQUEST_ID:  # the only sign that 2.0.0-beta1 has for it
        status = PushStatus.TOO_MANY_REQUESTS
    else:
        status = PushStatus.INTERNAL_ERROR
    return PushResponse(
        request_id=request_id,
        status_code=status,
        status_desc=shown_description(wire.response.info),
    )
