"""SDS messages as bytes: the specification's Wire protocol, as js-waku writes it.

Encoding is byte-identical to js-waku: ascending fields, empty singular strings left out, optional
fields written whenever they are set.  Decoding accepts what js-waku accepts (fields in any order,
unknown fields skipped), and refuses with a reason what is undecodable or beyond a bound.  The
channel judges ids, Lamport range and membership.

A causal history names nearly the same messages as the one before it, whichever member sent that.
So entries are bytes in ``MessageFrame``, and two bounded caches map entries to bytes and bytes to
entries.  Without them a message with a full history takes four times as long (decision 15).

One difference is deliberate: a known field with a foreign wire type is an unknown field, as
Protocol Buffers define it; js-waku reads on as if the type were right.
"""

from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import structs

from engine.core.errors import RemoteProtocolError
from engine.core.ids import ChannelId, MessageId, ParticipantId
from engine.core.sds.vocabulary import HistoryEntry, Message
from proto import sds_pb2

MAX_MESSAGE_BYTES: Final = 150 * 1024
MAX_HISTORY_ENTRIES: Final = 256
MAX_REPAIR_REQUESTS: Final = 64
MAX_ID_BYTES: Final = 128
MAX_HINT_BYTES: Final = 64
REMEMBERED_ENTRIES: Final = 4_096
_REMEMBERED_BYTES: Final = 512
"""An entry with unknown fields may be nearly as long as a message; such are not remembered."""

_LAST_UINT64: Final = 2**64 - 1
_NOTHING: Final[dict[str, object]] = {
    "sender_id": "",
    "message_id": "",
    "channel_id": "",
    "lamport_timestamp": None,
    "causal_history": (),
    "bloom_filter": None,
    "repair_request": (),
    "content": None,
}


def encode_message(message: Message) -> bytes:
    """The SDS bytes of a message; equal messages give equal bytes."""
    lamport_timestamp = message.lamport_timestamp
    if lamport_timestamp is not None and not 0 <= lamport_timestamp <= _LAST_UINT64:
        raise ValueError(f"{lamport_timestamp} is no uint64")
    return sds_pb2.MessageFrame(
        sender_id=message.sender_id,
        message_id=message.message_id,
        channel_id=message.channel_id,
        lamport_timestamp=lamport_timestamp,
        causal_history=map(_encode_entry, message.causal_history),
        bloom_filter=message.bloom_filter,
        repair_request=map(_encode_entry, message.repair_request),
        content=message.content,
    ).SerializeToString(deterministic=True)


def part_sizes(message: Message) -> dict[str, int]:
    """How many bytes each field takes in ``encode_message``, by the specification's names."""
    whole = len(encode_message(message))
    return {
        name: whole - len(encode_message(structs.replace(message, **{name: nothing})))
        for name, nothing in _NOTHING.items()
    }


def decode_message(data: bytes) -> Message:
    """Decode SDS bytes.

    Raises RemoteProtocolError: ``sds_oversized``, ``sds_undecodable``, ``sds_no_kind`` (neither
    Lamport timestamp nor content), ``sds_history_too_long``, ``sds_too_many_repair_requests``,
    ``sds_id_too_long``, ``sds_hint_too_long``.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise RemoteProtocolError("sds_oversized")
    try:
        wire = sds_pb2.MessageFrame.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError("sds_undecodable") from error
    history, requests = wire.causal_history, wire.repair_request
    if len(history) > MAX_HISTORY_ENTRIES:
        raise RemoteProtocolError("sds_history_too_long")
    if len(requests) > MAX_REPAIR_REQUESTS:
        raise RemoteProtocolError("sds_too_many_repair_requests")
    lamport_timestamp = wire.lamport_timestamp if wire.HasField("lamport_timestamp") else None
    content = wire.content or None
    if lamport_timestamp is None and content is None:
        raise RemoteProtocolError("sds_no_kind")
    _check_ids(wire.sender_id, wire.message_id, wire.channel_id)
    return Message(
        ParticipantId(wire.sender_id),
        MessageId(wire.message_id),
        ChannelId(wire.channel_id),
        lamport_timestamp,
        tuple(map(_entry_of, history)),
        wire.bloom_filter if wire.HasField("bloom_filter") else None,
        tuple(map(_entry_of, requests)),
        content,
    )


@lru_cache(maxsize=REMEMBERED_ENTRIES)
def _encode_entry(entry: HistoryEntry) -> bytes:
    return sds_pb2.HistoryEntry(
        message_id=entry.message_id, retrieval_hint=entry.retrieval_hint, sender_id=entry.sender_id
    ).SerializeToString(deterministic=True)


def _entry_of(data: bytes) -> HistoryEntry:
    return _remembered_entry(data) if len(data) <= _REMEMBERED_BYTES else _decode_entry(data)


@lru_cache(maxsize=REMEMBERED_ENTRIES)
def _remembered_entry(data: bytes) -> HistoryEntry:
    return _decode_entry(data)


def _decode_entry(data: bytes) -> HistoryEntry:
    try:
        wire = sds_pb2.HistoryEntry.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError("sds_undecodable") from error
    _check_ids(wire.message_id)
    if len(wire.retrieval_hint) > MAX_HINT_BYTES:
        raise RemoteProtocolError("sds_hint_too_long")
    _check_ids(wire.sender_id)
    return HistoryEntry(
        message_id=MessageId(wire.message_id),
        retrieval_hint=wire.retrieval_hint if wire.HasField("retrieval_hint") else None,
        sender_id=ParticipantId(wire.sender_id) if wire.HasField("sender_id") else None,
    )


def _check_ids(*ids: str) -> None:
    for text in ids:
        if len(text.encode()) > MAX_ID_BYTES:
            raise RemoteProtocolError("sds_id_too_long")
