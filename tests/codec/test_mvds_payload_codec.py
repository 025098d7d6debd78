"""MVDS bytes: both generations as the references write them, bounded and tolerant where we read."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.mvds import MAX_BODY_BYTES, MAX_RECEIVED_BYTES, decode_payload, encode_payload
from engine.codec.mvds_id import mvds_id_of
from engine.core.errors import RemoteProtocolError
from engine.core.mvds.packing import ID_ENTRY_BYTES, MESSAGE_FRAME_BYTES
from engine.core.mvds.vocabulary import GroupId, MvdsId, MvdsMessage, Payload, WireGeneration
from proto import mvds_pb2

VECTORS = Path(__file__).parents[1] / "vectors" / "mvds"
RFC, DRAFT = WireGeneration.RFC, WireGeneration.DRAFT


def _cases(name: str) -> list[dict[str, Any]]:
    return cast(
        "list[dict[str, Any]]",
        json.loads((VECTORS / name).read_text(encoding="utf-8"))["cases"],
    )


ACK, OFFER, REQUEST = (MvdsId(bytes([number]) * 32) for number in (0x11, 0x22, 0x33))
GROUP = GroupId(bytes(range(32)))
HELLO = MvdsMessage(GROUP, 1_700_000_000, b"hello")
LATER = MvdsMessage(GROUP, 1_700_000_000_000, b"hello")
# What each vector says; both files name what they share alike.
SAID = {
    "empty": Payload(),
    "ack1": Payload(acks=(ACK,)),
    "request1": Payload(requests=(REQUEST,)),
    "message1": Payload(messages=(HELLO,)),
    "message_negative_ts_empty_body": Payload(messages=(MvdsMessage(GROUP, -1, b""),)),
    "message_zero_group_ts0_empty_body": Payload(
        messages=(MvdsMessage(GroupId(bytes(32)), 0, b""),)
    ),
}
ALL_RFC = Payload((ACK,), (OFFER,), (REQUEST,), (HELLO, LATER))
# 4/MVDS-META (parents, ephemeral) and the fork's group offers are unknown fields to us: what is
# left when they are skipped.
WITHOUT_UNKNOWN = {
    "message_parents2": Payload(messages=(HELLO,)),
    "message_ephemeral": Payload(messages=(HELLO,)),
    "all": Payload((ACK,), (OFFER,), (REQUEST,), (HELLO, HELLO)),
    "status_group_offers (field 5005, status-im extension, absent from 2/MVDS)": Payload(),
}


@pytest.mark.parametrize(
    "case", _cases("payloads_wire_5001_rfc.json"), ids=lambda case: case["name"].split()[0]
)
def test_the_specifications_generation(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    assert len(data) == case["len"]
    known = SAID | {"all": ALL_RFC}
    if case["name"] in known:
        said = known[case["name"]]
        assert encode_payload(said, RFC) == data
    else:
        said = WITHOUT_UNKNOWN[case["name"]]
    assert decode_payload(data) == (said, RFC)


@pytest.mark.parametrize(
    "case", _cases("payloads_wire_1to4_vacp2p.json"), ids=lambda case: case["name"]
)
def test_the_drafts_generation(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    assert len(data) == case["len"]
    if case["name"] in SAID:
        said = SAID[case["name"]]
        assert encode_payload(said, DRAFT) == data
    else:
        said = WITHOUT_UNKNOWN[case["name"]]
    assert decode_payload(data) == (said, DRAFT if data else RFC)


@pytest.mark.parametrize("case", _cases("message_ids.json"), ids=lambda case: case["note"])
def test_message_ids(case: dict[str, Any]) -> None:
    group_id = GroupId(bytes.fromhex(case["group_id"]))
    message = MvdsMessage(group_id, case["timestamp"], bytes.fromhex(case["body"]))
    if len(group_id) == 32:
        assert mvds_id_of(message).hex() == case["message_id"]
        return
    with pytest.raises(RemoteProtocolError) as caught:
        mvds_id_of(message)
    assert caught.value.reason == "mvds_bad_group_id"


def test_r11_group_ids_of_other_lengths_cannot_make_two_messages_share_an_id() -> None:
    """The references take both of a colliding pair; here only one of the two has an id at all."""
    first, second = (case for case in _cases("message_ids.json") if "COLLISION" in case["note"])
    assert first["message_id"] == second["message_id"]
    for generation in (RFC, DRAFT):
        wire = encode_payload(
            Payload(messages=(MvdsMessage(GroupId(bytes.fromhex(second["group_id"])), 1, b"x"),)),
            generation,
        )
        with pytest.raises(RemoteProtocolError) as caught:
            decode_payload(wire)
        assert caught.value.reason == "mvds_bad_group_id"


# --- bounds -------------------------------------------------------------------------------------


def _with_body(size: int, generation: WireGeneration) -> bytes:
    return encode_payload(Payload(messages=(MvdsMessage(GROUP, 1, bytes(size)),)), generation)


@pytest.mark.parametrize("generation", list(WireGeneration))
@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_ids_of_a_wrong_length_are_refused(
    place: int, length: int, generation: WireGeneration
) -> None:
    acks, offers, requests = (
        (ACK, MvdsId(bytes(length))) if place == number else () for number in range(3)
    )
    with pytest.raises(RemoteProtocolError) as caught:
        decode_payload(encode_payload(Payload(acks, offers, requests), generation))
    assert caught.value.reason == "mvds_bad_id"


@pytest.mark.parametrize("generation", list(WireGeneration))
def test_what_is_too_large_is_refused(generation: WireGeneration) -> None:
    assert decode_payload(_with_body(MAX_BODY_BYTES, generation))[1] is generation
    for data, reason in (
        (_with_body(MAX_BODY_BYTES + 1, generation), "mvds_body_too_large"),
        (_with_body(MAX_RECEIVED_BYTES, generation), "mvds_oversized"),
    ):
        with pytest.raises(RemoteProtocolError) as caught:
            decode_payload(data)
        assert caught.value.reason == reason


@pytest.mark.parametrize(
    "data", [b"\xff", b"\x0a", b"\xca\xb8\x02\x20\x00", b"\x22\x02\x0a\x05", b"\x08" + b"\xff" * 11]
)
def test_what_is_no_protocol_buffer_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode_payload(data)
    assert caught.value.reason == "mvds_undecodable"


def test_fields_of_both_generations_are_one_of_the_specification_with_unknown_fields() -> None:
    mixed = encode_payload(Payload(acks=(ACK,)), RFC) + encode_payload(HELLO_DRAFT, DRAFT)
    assert decode_payload(mixed) == (Payload(acks=(ACK,)), RFC)


HELLO_DRAFT = Payload(offers=(OFFER,), messages=(HELLO,))

# --- properties ---------------------------------------------------------------------------------

IDS = st.lists(st.binary(min_size=32, max_size=32).map(MvdsId), max_size=8).map(tuple)
MESSAGES = st.builds(
    MvdsMessage,
    st.binary(min_size=32, max_size=32).map(GroupId),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(max_size=300),
)
PAYLOADS = st.builds(Payload, IDS, IDS, IDS, st.lists(MESSAGES, max_size=4).map(tuple))
GENERATIONS = st.sampled_from(list(WireGeneration))


@given(PAYLOADS, GENERATIONS)
def test_round_trip(payload: Payload, generation: WireGeneration) -> None:
    data = encode_payload(payload, generation)
    assert decode_payload(data) == (payload, generation if data else RFC)


@given(PAYLOADS, GENERATIONS)
def test_the_node_never_counts_too_few_bytes(payload: Payload, generation: WireGeneration) -> None:
    """Payloads are filled by these sizes before anything is encoded."""
    ids = len(payload.acks) + len(payload.offers) + len(payload.requests)
    bodies = sum(MESSAGE_FRAME_BYTES + len(message.body) for message in payload.messages)
    assert len(encode_payload(payload, generation)) <= ids * ID_ENTRY_BYTES + bodies


def test_the_largest_message_is_counted_right() -> None:
    message = MvdsMessage(GROUP, -1, bytes(96 * 1_024))
    encoded = encode_payload(Payload(messages=(message,)), RFC)
    assert len(encoded) == MESSAGE_FRAME_BYTES + len(message.body)


@given(PAYLOADS, GENERATIONS, st.binary(min_size=1, max_size=30))
def test_unknown_fields_are_skipped(
    payload: Payload, generation: WireGeneration, junk: bytes
) -> None:
    """Field 9 000 in the payload, in front and behind."""
    field = b"\xc2\xb2\x04" + bytes([len(junk)]) + junk
    data = encode_payload(payload, generation)
    assert decode_payload(field + data + field) == (payload, generation if data else RFC)


def test_unknown_fields_of_a_message_are_skipped() -> None:
    wire = mvds_pb2.Payload(messages=[mvds_pb2.Message(group_id=GROUP, timestamp=7, body=b"x")])
    meta = b"\xa2\xf7\x02\x02\x10\x01"  # 4/MVDS-META, field 6004: ephemeral.
    inner = wire.messages[0].SerializeToString() + meta
    data = b"\xe2\xb8\x02" + bytes([len(inner)]) + inner
    assert decode_payload(data) == (Payload(messages=(MvdsMessage(GROUP, 7, b"x"),)), RFC)


@given(
    st.binary(max_size=400) | st.builds(encode_payload, PAYLOADS, GENERATIONS),
    st.integers(0, 400),
    st.binary(max_size=20),
)
def test_any_bytes_are_read_or_refused(start: bytes, at: int, patch: bytes) -> None:
    data = start[:at] + patch + start[at + len(patch) :]
    try:
        payload, _ = decode_payload(data)
    except RemoteProtocolError:
        return
    for message_id in (*payload.acks, *payload.offers, *payload.requests):
        assert len(message_id) == 32
    for message in payload.messages:
        assert len(mvds_id_of(message)) == 32
