"""``proto/content.proto`` ↔ ``engine.core.content``: what people said, bounded both ways.

Decoding raises ``RemoteProtocolError`` with the reason for anything out of bounds.  A kind of body
that this version does not know decodes to ``Unsupported``, so that it is shown and never dropped.
It refuses to know channels, members and signatures; a decoded ``Join`` has not been verified.
"""

from typing import assert_never

from google.protobuf.message import DecodeError

from engine.codec.join import decode_join
from engine.core.content import (
    INSTANCE_ID_BYTES,
    MAX_MENTIONS,
    MAX_MESSAGE_ID_BYTES,
    MAX_SAFE_INTEGER,
    MAX_TEXT_BYTES,
    NONCE_BYTES,
    Body,
    Content,
    Created,
    EphemeralContent,
    Join,
    Leave,
    Text,
    Typing,
    Unsupported,
    clean_name,
)
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.types import AuthorSequence, InstanceId, MessageId, ParticipantId, UnixMs
from proto import content_pb2

MAX_CONTENT_BYTES = 80 * 1024
MAX_EPHEMERAL_BYTES = 1024
_PARTICIPANT_ID_CHARACTERS = 32
_HEX = frozenset("0123456789abcdef")


def encode_content(content: Content) -> bytes:
    """Raises LocalProtocolError for what no receiver would accept."""
    try:
        wire = content_pb2.Content(
            instance_id=content.author.instance_id,
            sequence=content.author.sequence,
            previous_id=content.previous_id or "",
            nonce=content.nonce,
            sent_ms=content.sent_ms,
        )
        _encode_body(wire, content.body)
        encoded = wire.SerializeToString(deterministic=True)
        decode_content(encoded)
    except (DecodeError, RemoteProtocolError, ValueError) as error:
        raise LocalProtocolError(f"content that nobody would accept: {error}") from error
    return encoded


def decode_content(content: bytes) -> Content:
    """Raises RemoteProtocolError."""
    if len(content) > MAX_CONTENT_BYTES:
        raise RemoteProtocolError("content_oversized")
    try:
        wire = content_pb2.Content.FromString(content)
    except DecodeError as error:
        raise RemoteProtocolError("content_malformed") from error
    if len(wire.instance_id) != INSTANCE_ID_BYTES:
        raise RemoteProtocolError("content_bad_instance_id")
    if len(wire.nonce) != NONCE_BYTES:
        raise RemoteProtocolError("content_bad_nonce")
    if not 1 <= wire.sequence <= MAX_SAFE_INTEGER:
        raise RemoteProtocolError("content_bad_sequence")
    if wire.sent_ms > MAX_SAFE_INTEGER:
        raise RemoteProtocolError("content_bad_time")
    return Content(
        author=AuthorSequence(
            instance_id=InstanceId(wire.instance_id),
            sequence=wire.sequence,
        ),
        previous_id=_message_id(wire.previous_id),
        nonce=wire.nonce,
        sent_ms=UnixMs(wire.sent_ms),
        body=_decode_body(wire),
    )


def encode_ephemeral(content: EphemeralContent) -> bytes:
    return content_pb2.Ephemeral(
        typing=content_pb2.Typing(active=content.active)
    ).SerializeToString(deterministic=True)


def decode_ephemeral(content: bytes) -> EphemeralContent:
    """Raises RemoteProtocolError, also for kinds of a newer version: they may be dropped."""
    if len(content) > MAX_EPHEMERAL_BYTES:
        raise RemoteProtocolError("ephemeral_oversized")
    try:
        wire = content_pb2.Ephemeral.FromString(content)
    except DecodeError as error:
        raise RemoteProtocolError("ephemeral_malformed") from error
    if wire.WhichOneof("body") != "typing":
        raise RemoteProtocolError("ephemeral_unsupported")
    return Typing(active=wire.typing.active)


def _encode_body(wire: content_pb2.Content, body: Body) -> None:
    match body:
        case Text():
            wire.text.text = body.text
            wire.text.reply_to = body.reply_to or ""
            wire.text.mentions.extend(body.mentions)
        case Created():
            wire.created.name = clean_name(body.name)
        case Join():
            wire.join.ParseFromString(body.statement)
        case Leave():
            wire.leave.SetInParent()
        case Unsupported():
            raise LocalProtocolError("what we do not understand we cannot say")
        case _:
            assert_never(body)


def _decode_body(wire: content_pb2.Content) -> Body:
    match wire.WhichOneof("body"):
        case "text":
            return _decode_text(wire.text)
        case "created":
            try:
                return Created(name=clean_name(wire.created.name))
            except ValueError as error:
                raise RemoteProtocolError("content_bad_name") from error
        case "join":
            return decode_join(wire.join.SerializeToString(deterministic=True))
        case "leave":
            return Leave()
        case None:
            return Unsupported()
        case known:
            return Unsupported(kind=known)


def _decode_text(wire: content_pb2.Text) -> Text:
    if not wire.text:
        raise RemoteProtocolError("content_empty_text")
    if len(wire.text.encode()) > MAX_TEXT_BYTES:
        raise RemoteProtocolError("content_text_too_long")
    if len(wire.mentions) > MAX_MENTIONS:
        raise RemoteProtocolError("content_too_many_mentions")
    if not all(len(m) == _PARTICIPANT_ID_CHARACTERS and _HEX.issuperset(m) for m in wire.mentions):
        raise RemoteProtocolError("content_bad_mention")
    return Text(
        text=wire.text,
        reply_to=_message_id(wire.reply_to),
        mentions=tuple(ParticipantId(mention) for mention in wire.mentions),
    )


def _message_id(text: str) -> MessageId | None:
    if len(text.encode()) > MAX_MESSAGE_ID_BYTES:
        raise RemoteProtocolError("content_bad_message_id")
    return MessageId(text) if text else None
