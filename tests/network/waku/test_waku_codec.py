from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.waku import MAX_META_BYTES, decode_waku_message, encode_waku_message
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import ContentTopic
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES, WakuMessage

messages = st.builds(
    WakuMessage,
    payload=st.binary(max_size=300),
    content_topic=st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).map(ContentTopic),
    version=st.none() | st.integers(0, 2**32 - 1),
    timestamp_ns=st.none() | st.integers(-(2**63), 2**63 - 1),
    meta=st.none() | st.binary(max_size=MAX_META_BYTES),
    ephemeral=st.none() | st.booleans(),
)


@given(messages)
def test_what_is_encoded_is_decoded(message: WakuMessage) -> None:
    assert decode_waku_message(encode_waku_message(message)) == message


@given(st.binary(max_size=400))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    with suppress(RemoteProtocolError):
        assert decode_waku_message(data).content_topic


def test_the_fields_of_14_waku2_message() -> None:
    encoded = encode_waku_message(
        WakuMessage(
            payload=b"hi",
            content_topic=ContentTopic("/a/1/b/c"),
            version=0,
            timestamp_ns=-1,
            meta=b"m",
            ephemeral=True,
        )
    )
    assert encoded.hex() == "0a02686912082f612f312f622f63180050015a016df80101"


def test_a_rate_limit_proof_and_unknown_fields_are_read_over() -> None:
    plain = encode_waku_message(WakuMessage(payload=b"x", content_topic=ContentTopic("/a/1/b/c")))
    with_more = plain + bytes.fromhex("aa0103010203c23e0101")
    assert decode_waku_message(with_more) == decode_waku_message(plain)


def message_of(payload_bytes: int) -> WakuMessage:
    return WakuMessage(payload=b"x" * payload_bytes, content_topic=ContentTopic("/a/1/b/c"))


def test_the_limit_counts_encoded_bytes() -> None:
    overhead = len(encode_waku_message(message_of(140_000))) - 140_000
    largest = message_of(MAX_WAKU_MESSAGE_BYTES - overhead)
    encoded = encode_waku_message(largest)
    assert len(encoded) == MAX_WAKU_MESSAGE_BYTES
    assert decode_waku_message(encoded) == largest
    with pytest.raises(LocalProtocolError, match="at most 153600"):
        encode_waku_message(message_of(MAX_WAKU_MESSAGE_BYTES - overhead + 1))
    with pytest.raises(RemoteProtocolError, match="message_oversized"):
        decode_waku_message(encoded + b"\x00")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff", "message_malformed"),
        (b"\x0a\x05hi", "message_malformed"),
        (b"\x12\x02\xff\xfe", "message_malformed"),
        (b"\x0a\x02hi", "content_topic_missing"),
        (b"\x12\x82\x02" + b"a" * 258, "content_topic_oversized"),
        (b"\x12\x01a\x5a\x41" + b"m" * 65, "meta_oversized"),
    ],
)
def test_each_refusal_has_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError) as refusal:
        decode_waku_message(data)
    assert refusal.value.reason == reason


@pytest.mark.parametrize(
    "message",
    [
        WakuMessage(payload=b"", content_topic=ContentTopic("/a/1/b/c"), version=-1),
        WakuMessage(payload=b"", content_topic=ContentTopic("/a/1/b/c"), timestamp_ns=2**63),
        WakuMessage(payload=b"", content_topic=ContentTopic("/a/1/b/c"), meta=b"m" * 65),
        WakuMessage(payload=b"", content_topic=ContentTopic("/a/1/b/" + "c" * 300)),
    ],
)
def test_our_own_mistakes_are_local(message: WakuMessage) -> None:
    with pytest.raises(LocalProtocolError):
        encode_waku_message(message)
