"""SDS bytes: identical to js-waku's where we write, as tolerant where we read, bounded always."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.sds import (
    MAX_HINT_BYTES,
    MAX_ID_BYTES,
    MAX_MESSAGE_BYTES,
    REMEMBERED_ENTRIES,
    decode_message,
    encode_message,
)
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ChannelId, MessageId, ParticipantId
from engine.core.sds.vocabulary import HistoryEntry, Message
from proto import sds_pb2

Vector = dict[str, Any]
VECTORS = cast(
    "dict[str, list[Vector]]",
    json.loads(
        (Path(__file__).parents[2] / "vectors" / "sds" / "wire.json").read_text(encoding="utf-8")
    ),
)
# js-waku reads on as if the wire type were right; we follow Protocol Buffers (see docs/sds.md).
FOREIGN_WIRE_TYPE = "wrong-wire-type-lamport-bytes"


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else bytes.fromhex(value)


def _entries(values: list[Vector]) -> tuple[HistoryEntry, ...]:
    return tuple(
        HistoryEntry(
            message_id=MessageId(value["messageId"]),
            retrieval_hint=_bytes(value["retrievalHint"]),
            sender_id=value["senderId"],
        )
        for value in values
    )


def _message(value: Vector) -> Message:
    lamport = value["lamportTimestamp"]
    return Message(
        sender_id=ParticipantId(value["senderId"]),
        message_id=MessageId(value["messageId"]),
        channel_id=ChannelId(value["channelId"]),
        lamport_timestamp=None if lamport is None else int(lamport),
        causal_history=_entries(value["causalHistory"]),
        bloom_filter=_bytes(value["bloomFilter"]),
        repair_request=_entries(value["repairRequest"]),
        content=_bytes(value["content"]) or None,
    )


def _kind(message: Message) -> str:
    if message.is_ephemeral:
        return "ephemeral"
    return "sync" if message.is_sync else "content"


@pytest.mark.parametrize("vector", VECTORS["encode"], ids=lambda vector: vector["name"])
def test_encoding_is_byte_identical(vector: Vector) -> None:
    message = _message(vector["message"])
    assert encode_message(message).hex() == vector["encoded"]
    decoded = decode_message(bytes.fromhex(vector["encoded"]))
    assert decoded == _message(vector["decodedBack"])
    assert _kind(decoded) == vector["message"]["kind"]


@pytest.mark.parametrize(
    "vector",
    [item for item in VECTORS["decodeOnly"] if item["name"] != FOREIGN_WIRE_TYPE],
    ids=lambda vector: vector["name"],
)
def test_decoding_tolerates_and_refuses_alike(vector: Vector) -> None:
    data = bytes.fromhex(vector["encoded"])
    if vector["decoded"] is None:
        with pytest.raises(RemoteProtocolError):
            decode_message(data)
        return
    decoded = decode_message(data)
    assert decoded == _message(vector["decoded"])
    assert _kind(decoded) == vector["decoded"]["kind"]


def test_a_foreign_wire_type_is_an_unknown_field() -> None:
    """js-waku reads a sync, we an ephemeral message: either way of no channel, so dropped."""
    vector = next(item for item in VECTORS["decodeOnly"] if item["name"] == FOREIGN_WIRE_TYPE)
    decoded = decode_message(bytes.fromhex(vector["encoded"]))
    assert decoded.lamport_timestamp is None
    assert decoded.channel_id == vector["decoded"]["channelId"] == ""


def _with(**changes: object) -> bytes:
    fields: dict[str, object] = {
        "sender_id": "a",
        "message_id": "m",
        "channel_id": "0",
        "lamport_timestamp": 1,
        "content": b"x",
    }
    return encode_message(Message(**(fields | changes)))  # type: ignore[arg-type]


def _many(count: int) -> tuple[HistoryEntry, ...]:
    return tuple(HistoryEntry(message_id=MessageId(str(number))) for number in range(count))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "sds_no_kind"),
        (b"\xff", "sds_undecodable"),
        (b"\x0a\x01\xff\x50\x01", "sds_undecodable"),
        (_with(content=b"x" * MAX_MESSAGE_BYTES), "sds_oversized"),
        (_with(causal_history=_many(257)), "sds_history_too_long"),
        (_with(repair_request=_many(65)), "sds_too_many_repair_requests"),
        (_with(sender_id="a" * 129), "sds_id_too_long"),
        (_with(message_id="é" * 65), "sds_id_too_long"),
        (_with(channel_id="a" * 129), "sds_id_too_long"),
        (
            _with(causal_history=(HistoryEntry(message_id=MessageId("a" * 129)),)),
            "sds_id_too_long",
        ),
        (
            _with(
                causal_history=(HistoryEntry(message_id=MessageId("a"), retrieval_hint=b"h" * 65),)
            ),
            "sds_hint_too_long",
        ),
    ],
)
def test_bounds_are_refused_by_name(data: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode_message(data)
    assert caught.value.reason == reason


def test_what_is_just_within_the_bounds_is_taken() -> None:
    data = _with(
        causal_history=tuple(
            HistoryEntry(
                message_id=MessageId(f"{number:0128}"),
                retrieval_hint=b"h" * 64,
                sender_id=ParticipantId("é" * 64),
            )
            for number in range(256)
        )
    )
    assert len(decode_message(data).causal_history) == 256


IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=32)
ENTRIES = st.lists(
    st.builds(
        HistoryEntry,
        message_id=IDS,
        retrieval_hint=st.none() | st.binary(max_size=64),
        sender_id=st.none() | IDS,
    ),
    max_size=20,
).map(tuple)
MESSAGES = st.builds(
    Message,
    sender_id=IDS,
    message_id=IDS,
    channel_id=IDS,
    lamport_timestamp=st.integers(0, 2**64 - 1),
    causal_history=ENTRIES,
    bloom_filter=st.none() | st.binary(max_size=100),
    repair_request=ENTRIES,
    content=st.none() | st.binary(min_size=1, max_size=100),
)


def _by_protocol_buffers(message: Message) -> bytes:
    def entries(items: tuple[HistoryEntry, ...]) -> list[sds_pb2.HistoryEntry]:
        return [
            sds_pb2.HistoryEntry(
                message_id=item.message_id,
                retrieval_hint=item.retrieval_hint,
                sender_id=item.sender_id,
            )
            for item in items
        ]

    wire = sds_pb2.Message(
        sender_id=message.sender_id,
        message_id=message.message_id,
        channel_id=message.channel_id,
        lamport_timestamp=message.lamport_timestamp,
        causal_history=entries(message.causal_history),
        bloom_filter=message.bloom_filter,
        repair_request=entries(message.repair_request),
        content=message.content,
    )
    return wire.SerializeToString(deterministic=True)


@given(MESSAGES)
def test_bytes_are_those_of_protocol_buffers(message: Message) -> None:
    assert encode_message(message) == _by_protocol_buffers(message)


@given(st.binary(max_size=300) | MESSAGES.map(encode_message), st.integers(0, 400), st.binary())
def test_what_protocol_buffers_cannot_read_is_refused(start: bytes, at: int, patch: bytes) -> None:
    """Entries are read apart from the rest; together the same bytes are taken as by one reader."""
    data = start[:at] + patch + start[at + len(patch) :]
    whole = sds_pb2.Message()
    message, refused = None, ""
    try:
        message = decode_message(data)
    except RemoteProtocolError as error:
        refused = error.reason
    try:
        whole.ParseFromString(data)
    except DecodeError:
        assert refused == "sds_undecodable"
        return
    if message is not None:
        whole.DiscardUnknownFields()
        if not whole.content:
            whole.ClearField("content")
        assert encode_message(message) == whole.SerializeToString(deterministic=True)
    else:
        assert refused in {"sds_no_kind", "sds_id_too_long", "sds_hint_too_long"}


SHORT_ENTRY = st.tuples(
    st.text(max_size=9).map(MessageId),
    st.none() | st.binary(max_size=66),
    st.none() | st.text(max_size=9).map(ParticipantId),
).map(lambda fields: HistoryEntry(*fields))


@given(
    SHORT_ENTRY | st.just(HistoryEntry(MessageId("e" * 129), b"", ParticipantId("p" * 130))),
    st.integers(0, 90),
    st.binary(max_size=3),
    st.integers(0, 9),
)
def test_an_entry_is_read_as_by_protocol_buffers(
    entry: HistoryEntry, at: int, patch: bytes, cut: int
) -> None:
    """Each by itself, as bytes of the frame around it."""
    whole = sds_pb2.HistoryEntry(
        message_id=entry.message_id, retrieval_hint=entry.retrieval_hint, sender_id=entry.sender_id
    )
    data = whole.SerializeToString()
    data = data[:at] + patch + data[at + len(patch) :]
    data = data[: len(data) - cut]
    frame = sds_pb2.MessageFrame(lamport_timestamp=1, causal_history=[data])
    read, refused = None, ""
    try:
        (read,) = decode_message(frame.SerializeToString()).causal_history
    except RemoteProtocolError as error:
        refused = error.reason
    try:
        whole.ParseFromString(data)
    except DecodeError:
        assert refused == "sds_undecodable"
        return
    if read is None:
        longest = max(len(whole.message_id.encode()), len(whole.sender_id.encode()))
        assert refused in {"sds_id_too_long", "sds_hint_too_long"}
        assert longest > MAX_ID_BYTES or len(whole.retrieval_hint) > MAX_HINT_BYTES
        return
    assert read == HistoryEntry(
        MessageId(whole.message_id),
        whole.retrieval_hint if whole.HasField("retrieval_hint") else None,
        ParticipantId(whole.sender_id) if whole.HasField("sender_id") else None,
    )


def test_more_entries_than_are_remembered_are_read_and_written_alike() -> None:
    for number in range(2 * REMEMBERED_ENTRIES // 200):
        history = tuple(
            HistoryEntry(message_id=MessageId(f"{number}-{index}")) for index in range(200)
        )
        data = _with(causal_history=history)
        assert decode_message(data).causal_history == history


@pytest.mark.parametrize("lamport", [-1, 2**64])
def test_a_number_that_is_no_uint64_is_not_written(lamport: int) -> None:
    with pytest.raises(ValueError, match="uint64"):
        _with(lamport_timestamp=lamport)


@given(MESSAGES)
def test_round_trip(message: Message) -> None:
    assert decode_message(encode_message(message)) == message


@given(st.binary(max_size=300))
def test_garbage_is_read_or_refused(data: bytes) -> None:
    try:
        message = decode_message(data)
    except RemoteProtocolError:
        return
    assert decode_message(encode_message(message)) == message


@given(MESSAGES, st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_message_is_read_or_refused(message: Message, at: int, value: int) -> None:
    data = bytearray(encode_message(message))
    if data:
        data[at % len(data)] = value
    with suppress(RemoteProtocolError):
        decode_message(bytes(data))
