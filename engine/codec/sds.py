"""SDS messages as bytes: the specification's Wire protocol, as js-waku writes it.

Encoding is byte-identical to js-waku: ascending fields, empty singular strings left out, optional
fields written whenever they are set.  Decoding accepts what js-waku accepts (fields in any order,
unknown fields skipped), and refuses with a reason what is undecodable or beyond a bound.  The
channel judges ids, Lamport range and membership.

A causal history names nearly the same messages as the one before it, whoever sent that.  So entries
are framed as bytes first, and bounded caches map bytes to entries and back; that leaves one lookup
per entry.  The fields around them are written by hand, and the tests compare the result with
Protocol Buffers.

One difference is deliberate: a known field with a foreign wire type is an unknown field, as
Protocol Buffers define it; js-waku reads on as if the type were right.
"""

from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from engine.core.errors import RemoteProtocolError
from engine.core.ids import ChannelId, MessageId, ParticipantId
from engine.core.sds.vocabulary import HistoryEntry, Message, history_entry
from proto import sds_pb2

MAX_MESSAGE_BYTES: Final = 150 * 1024
MAX_HISTORY_ENTRIES: Final = 256
MAX_REPAIR_REQUESTS: Final = 64
MAX_ID_BYTES: Final = 128
MAX_HINT_BYTES: Final = 64
REMEMBERED_ENTRIES: Final = 4_096
REMEMBERED_NAMES: Final = 256
REMEMBERED_SIZES: Final = 1_024

_LAST_UINT64: Final = 2**64 - 1
_SHORT: Final = MAX_ID_BYTES // 4
"""Texts of this many characters are always within the bound: UTF-8 takes 4 bytes at most."""
_TWO_SEVENS: Final = 2**14
_THREE_SEVENS: Final = 2**21
_MORE: Final = 0x80
_ONE_BYTE: Final = tuple(bytes((number,)) for number in range(_MORE))
# Field numbers with their wire types, in the order in which they are written.
_SENDER_ID: Final = b"\x0a"
_MESSAGE_ID: Final = b"\x12"
_CHANNEL_ID: Final = b"\x1a"
_LAMPORT_TIMESTAMP: Final = b"\x50"
_CAUSAL_HISTORY: Final = b"\x5a"
_BLOOM_FILTER: Final = b"\x62"
_REPAIR_REQUEST: Final = b"\x6a"
_CONTENT: Final = b"\xa2\x01"
_ENTRY_MESSAGE_ID: Final = b"\x0a"
_ENTRY_HINT: Final = b"\x12"
_ENTRY_SENDER_ID: Final = b"\x1a"
_USUAL_ENTRY: Final = _ENTRY_MESSAGE_ID + b"%c%b" + _ENTRY_HINT + b"%c%b%b"
_ID_TAG: Final = _ENTRY_MESSAGE_ID[0]
_HINT_TAG: Final = _ENTRY_HINT[0]
_SENDER_TAG: Final = _ENTRY_SENDER_ID[0]


class _Decoded(dict[bytes, HistoryEntry]):
    """Entries by their bytes; missing ones are decoded."""

    def __missing__(self, data: bytes) -> HistoryEntry:
        entry = _decode_entry(data)
        self.remember(data, entry)
        return entry

    def remember(self, data: bytes, entry: HistoryEntry) -> None:
        if len(self) >= REMEMBERED_ENTRIES:
            self.clear()
        self[data] = entry


class _Encoded(dict[HistoryEntry, bytes]):
    """Bytes by entry, as a field of the causal history; missing ones are encoded."""

    def __missing__(self, entry: HistoryEntry) -> bytes:
        data = _encode_usual_entry(entry)
        if data is None:
            data = _encode_entry(entry)
            if not _is_within_bounds(entry):
                return self.remember(data, entry)
        _decoded.remember(data, entry)  # Other members will soon name it too.
        return self.remember(data, entry)

    def remember(self, data: bytes, entry: HistoryEntry) -> bytes:
        field = _head(_CAUSAL_HISTORY, len(data)) + data
        if len(self) >= REMEMBERED_ENTRIES:
            self.clear()
        self[entry] = field
        return field


_decoded: Final = _Decoded()
_encoded: Final = _Encoded()


def encode_message(message: Message) -> bytes:
    """The SDS bytes of a message; equal messages give equal bytes."""
    lamport_timestamp = message.lamport_timestamp
    bloom_filter, content = message.bloom_filter, message.content
    fields = [
        _same_text(_SENDER_ID, message.sender_id),
        _text(_MESSAGE_ID, message.message_id),
        _same_text(_CHANNEL_ID, message.channel_id),
        b"" if lamport_timestamp is None else _LAMPORT_TIMESTAMP + _varint(lamport_timestamp),
        *map(_encoded.__getitem__, message.causal_history),
    ]
    if bloom_filter is not None:
        fields += (_head(_BLOOM_FILTER, len(bloom_filter)), bloom_filter)
    for entry in message.repair_request:
        fields.append(_field(_REPAIR_REQUEST, _encode_entry(entry)))
    if content is not None:
        fields += (_head(_CONTENT, len(content)), content)
    return b"".join(fields)


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
    # Presence is checked only where the value could also be the default.
    lamport_timestamp: int | None = wire.lamport_timestamp
    if not lamport_timestamp and not wire.HasField("lamport_timestamp"):
        lamport_timestamp = None
    bloom_filter: bytes | None = wire.bloom_filter
    if not bloom_filter and not wire.HasField("bloom_filter"):
        bloom_filter = None
    content = wire.content or None
    if lamport_timestamp is None and content is None:
        raise RemoteProtocolError("sds_no_kind")
    sender_id, message_id, channel_id = wire.sender_id, wire.message_id, wire.channel_id
    if len(sender_id) > _SHORT or len(message_id) > _SHORT or len(channel_id) > _SHORT:
        _check_ids(sender_id, message_id, channel_id)
    return Message(
        ParticipantId(sender_id),
        MessageId(message_id),
        ChannelId(channel_id),
        lamport_timestamp,
        tuple(map(_decoded.__getitem__, history[:])),  # A list is read faster than its source.
        bloom_filter,
        tuple(map(_decoded.__getitem__, requests)) if requests else (),
        content,
    )


# --- entries ------------------------------------------------------------------------------------


def _encode_usual_entry(entry: HistoryEntry) -> bytes | None:
    """An entry of the usual form: all three fields, each far within its bound; else None."""
    message_id, retrieval_hint, sender_id = entry
    if retrieval_hint is None or sender_id is None or len(sender_id) > _SHORT:
        return None
    text, hint_size = message_id.encode(), len(retrieval_hint)
    if not 0 < len(text) < _MORE or hint_size > MAX_HINT_BYTES:
        return None
    sender = _same_field(_ENTRY_SENDER_ID, sender_id)
    return _USUAL_ENTRY % (len(text), text, hint_size, retrieval_hint, sender)


def _encode_entry(entry: HistoryEntry) -> bytes:
    message_id, retrieval_hint, sender_id = entry
    data = _text(_ENTRY_MESSAGE_ID, message_id)
    if retrieval_hint is not None:
        data += _field(_ENTRY_HINT, retrieval_hint)
    return data if sender_id is None else data + _same_field(_ENTRY_SENDER_ID, sender_id)


def _decode_entry(data: bytes) -> HistoryEntry:
    try:
        entry = _decode_usual_entry(data)
    except (IndexError, UnicodeDecodeError):
        entry = None
    if entry is None:
        return _decode_any_entry(data)
    if entry.message_id:  # These bytes are then the ones that we would write.
        _encoded.remember(data, entry)
    return entry


def _decode_usual_entry(data: bytes) -> HistoryEntry | None:
    """An entry of the usual form: its three fields in order, short and once each.

    None, IndexError or UnicodeDecodeError: the form is another one, or invalid.
    """
    id_size = data[1]
    hint_at = 2 + id_size
    hint_size = data[hint_at + 1]
    sender_at = hint_at + 2 + hint_size
    sender_size = data[sender_at + 1]
    if sender_at + 2 + sender_size != len(data) or hint_size > MAX_HINT_BYTES:
        return None
    if id_size >= _MORE or sender_size >= _MORE:
        return None
    if data[0] != _ID_TAG or data[hint_at] != _HINT_TAG or data[sender_at] != _SENDER_TAG:
        return None
    return history_entry(
        MessageId(data[2:hint_at].decode()),
        data[hint_at + 2 : sender_at],
        ParticipantId(data[sender_at + 2 :].decode()),
    )


def _decode_any_entry(data: bytes) -> HistoryEntry:
    wire = sds_pb2.HistoryEntry()
    try:
        wire.ParseFromString(data)
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
    if not all(map(_is_short_enough, ids)):
        raise RemoteProtocolError("sds_id_too_long")


def _is_short_enough(text: str) -> bool:
    return len(text) <= _SHORT or len(text.encode()) <= MAX_ID_BYTES


def _is_within_bounds(entry: HistoryEntry) -> bool:
    """Whether it would be accepted from a peer."""
    message_id, retrieval_hint, sender_id = entry
    return (
        (len(message_id) <= _SHORT or _is_short_enough(message_id))
        and (retrieval_hint is None or len(retrieval_hint) <= MAX_HINT_BYTES)
        and (sender_id is None or len(sender_id) <= _SHORT or _is_short_enough(sender_id))
    )


# --- fields -------------------------------------------------------------------------------------


def _text(tag: bytes, text: str) -> bytes:
    if not text:
        return b""
    data = text.encode()
    return _head(tag, len(data)) + data


@lru_cache(maxsize=REMEMBERED_NAMES)
def _same_text(tag: bytes, text: str) -> bytes:
    """For a channel or participant id, which occurs in many messages."""
    return _text(tag, text)


@lru_cache(maxsize=REMEMBERED_NAMES)
def _same_field(tag: bytes, text: str) -> bytes:
    return _field(tag, text.encode())


def _field(tag: bytes, data: bytes) -> bytes:
    return _head(tag, len(data)) + data


@lru_cache(maxsize=REMEMBERED_SIZES)
def _head(tag: bytes, size: int) -> bytes:
    """Tag and size of a text or bytes; few sizes occur."""
    return tag + _varint(size)


def _varint(number: int) -> bytes:
    """Seven bits a byte, lowest first; the highest bit means that more follow."""
    if _THREE_SEVENS <= number <= _LAST_UINT64:  # As in times in milliseconds.
        sevens = number & 0x7F | number << 1 & 0x7F00 | number << 2 & 0x7F_0000 | 0x80_8080
        return sevens.to_bytes(3, "little") + _rest_of_varint(number >> 21)
    if 0 <= number < _MORE:
        return _ONE_BYTE[number]
    if 0 < number < _TWO_SEVENS:
        return bytes((number & 0x7F | _MORE, number >> 7))
    if not 0 <= number <= _LAST_UINT64:
        raise ValueError(f"{number} is no uint64")
    return bytes((number & 0x7F | _MORE, number >> 7 & 0x7F | _MORE, number >> 14))


@lru_cache(maxsize=REMEMBERED_SIZES)
def _rest_of_varint(number: int) -> bytes:
    """For times in milliseconds the same for half an hour."""
    return _varint(number)
