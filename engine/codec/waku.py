"""WakuMessage ↔ bytes: 14/WAKU2-MESSAGE.

The 150 KiB limit counts the encoded message, as every relay counts it.  A ``rate_limit_proof`` and
unknown fields are ignored: relays forward the bytes as received, never a re-encoding.  Content
topics are checked in ``engine.network.waku.topics``; payloads are opaque.
"""

from google.protobuf.message import DecodeError

from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import ContentTopic
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES, WakuMessage
from proto import waku_pb2

MAX_META_BYTES = 64
MAX_CONTENT_TOPIC_BYTES = 256


def encode_waku_message(message: WakuMessage) -> bytes:
    """Raises LocalProtocolError for a message that relays would refuse."""
    try:
        encoded = waku_pb2.WakuMessage(
            payload=message.payload,
            content_topic=message.content_topic,
            version=message.version,
            timestamp=message.timestamp_ns,
            meta=message.meta,
            ephemeral=message.ephemeral,
        ).SerializeToString()
    except ValueError as error:
        raise LocalProtocolError(f"a field of the Waku message is out of range: {error}") from error
    if len(encoded) > MAX_WAKU_MESSAGE_BYTES:
        raise LocalProtocolError(
            f"the Waku message has {len(encoded)} bytes; at most {MAX_WAKU_MESSAGE_BYTES} travel"
        )
    if message.meta is not None and len(message.meta) > MAX_META_BYTES:
        raise LocalProtocolError(f"meta has more than {MAX_META_BYTES} bytes")
    if len(message.content_topic.encode()) > MAX_CONTENT_TOPIC_BYTES:
        raise LocalProtocolError(f"the content topic has more than {MAX_CONTENT_TOPIC_BYTES} bytes")
    return encoded


def decode_waku_message(data: bytes) -> WakuMessage:
    """Raises RemoteProtocolError: ``message_oversized``, ``message_malformed`` and so on."""
    if len(data) > MAX_WAKU_MESSAGE_BYTES:
        raise RemoteProtocolError("message_oversized", f"{len(data)} bytes")
    try:
        decoded = waku_pb2.WakuMessage.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError("message_malformed") from error
    if not decoded.content_topic:
        raise RemoteProtocolError("content_topic_missing")
    if len(decoded.content_topic.encode()) > MAX_CONTENT_TOPIC_BYTES:
        raise RemoteProtocolError("content_topic_oversized")
    if len(decoded.meta) > MAX_META_BYTES:
        raise RemoteProtocolError("meta_oversized")
    return WakuMessage(
        payload=decoded.payload,
        content_topic=ContentTopic(decoded.content_topic),
        version=decoded.version if decoded.HasField("version") else None,
        timestamp_ns=decoded.timestamp if decoded.HasField("timestamp") else None,
        meta=decoded.meta if decoded.HasField("meta") else None,
        ephemeral=decoded.ephemeral if decoded.HasField("ephemeral") else None,
    )
