"""SDS messages as bytes: the specification's Wire protocol, as js-waku writes it.

Encoding is byte-identical to js-waku: ascending fields, empty singular strings left out, optional
fields written whenever they are set.  Decoding takes what js-waku takes (fields in any order,
unknown fields skipped), and refuses with a reason what is undecodable or beyond a bound.  Whether
a decoded message makes sense in a channel (ids, Lamport range, membership) is not known here.

One difference is deliberate: a known field with a foreign wire type is an unknown field, as
Protocol Buffers define it; js-waku reads on as if the type were right.
"""

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError

from engine.core.errors import RemoteProtocolError
from engine.core.sds.types import HistoryEntry, Message
from engine.core.types import ChannelId, MessageId, ParticipantId
from proto import sds_pb2

MAX_MESSAGE_BYTES: Final = 150 * 1024
MAX_HISTORY_ENTRIES: Final = 256
MAX_REPAIR_REQUESTS: Final = 64
MAX_ID_BYTES: Final = 128
MAX_HINT_BYTES: Final = 64


def encode_message(message: Message) -> bytes:
    """The SDS bytes of a message; equal messages give equal bytes."""
    wire = sds_pb2.Message(
        sender_id=message.sender_id,
        message_id=message.message_id,
        channel_id=message.channel_id,
        lamport_timestamp=message.lamport_timestamp,
        causal_history=map(_entry_to_wire, message.causal_history),
        bloom_filter=message.bloom_filter,
        repair_request=map(_entry_to_wire, message.repair_request),
        content=message.content,
    )
    return wire.SerializeToString(deterministic=True)


def decode_message(data: bytes) -> Message:
    """Read SDS bytes.

    Raises RemoteProtocolError: ``sds_oversized``, ``sds_undecodable``, ``sds_no_kind`` (neither
    Lamport timestamp nor content), ``sds_history_too_long``, ``sds_too_many_repair_requests``,
    ``sds_id_too_long``, ``sds_hint_too_long``.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise RemoteProtocolError("sds_oversized")
    wire = sds_pb2.Message()
    try:
        wire.ParseFromString(data)
    except DecodeError as error:
        raise RemoteProtocolError("sds_undecodable") from error
    lamport_timestamp = wire.lamport_timestamp if wire.HasField("lamport_timestamp") else None
    content = wire.content or None
    if lamport_timestamp is None and content is None:
        raise RemoteProtocolError("sds_no_kind")
    if len(wire.causal_history) > MAX_HISTORY_ENTRIES:
        raise RemoteProtocolError("sds_history_too_long")
    if len(wire.repair_request) > MAX_REPAIR_REQUESTS:
        raise RemoteProtocolError("sds_too_many_repair_requests")
    return Message(
        sender_id=ParticipantId(_bounded_id(wire.sender_id)),
        message_id=MessageId(_bounded_id(wire.message_id)),
        channel_id=ChannelId(_bounded_id(wire.channel_id)),
        lamport_timestamp=lamport_timestamp,
        causal_history=_entries_from_wire(wire.causal_history),
        bloom_filter=wire.bloom_filter if wire.HasField("bloom_filter") else None,
        repair_request=_entries_from_wire(wire.repair_request),
        content=content,
    )


def _entry_to_wire(entry: HistoryEntry) -> sds_pb2.HistoryEntry:
    return sds_pb2.HistoryEntry(
        message_id=entry.message_id,
        retrieval_hint=entry.retrieval_hint,
        sender_id=entry.sender_id,
    )


def _entries_from_wire(entries: Iterable[sds_pb2.HistoryEntry]) -> tuple[HistoryEntry, ...]:
    return tuple(
        HistoryEntry(
            message_id=MessageId(_bounded_id(entry.message_id)),
            retrieval_hint=(
                _bounded_hint(entry.retrieval_hint) if entry.HasField("retrieval_hint") else None
            ),
            sender_id=(
                ParticipantId(_bounded_id(entry.sender_id)) if entry.HasField("sender_id") else None
            ),
        )
        for entry in entries
    )


def _bounded_id(text: str) -> str:
    # The cheap test first: most ids are short, and UTF-8 takes at most 4 bytes a character.
    if len(text) * 4 > MAX_ID_BYTES and len(text.encode()) > MAX_ID_BYTES:
        raise RemoteProtocolError("sds_id_too_long")
    return text


def _bounded_hint(hint: bytes) -> bytes:
    if len(hint) > MAX_HINT_BYTES:
        raise RemoteProtocolError("sds_hint_too_long")
    return hint
