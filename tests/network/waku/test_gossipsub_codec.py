from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.gossipsub import (
    MAX_CONTROLS,
    MAX_MESSAGE_IDS,
    MAX_PUBLISHED,
    MAX_RPC_BYTES,
    MAX_SUBSCRIPTIONS,
    IHave,
    Prune,
    PublishedMessage,
    Rpc,
    Subscription,
    decode_rpc,
    encode_rpc,
)
from engine.core.errors import RemoteProtocolError
from engine.core.ids import PubsubTopic
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES

T = PubsubTopic("/waku/2/rs/42/4")
topics = st.sampled_from([T, PubsubTopic("/waku/2/rs/42/5"), PubsubTopic("ü")])
ids = st.lists(st.binary(min_size=32, max_size=32), max_size=5).map(tuple)
rpcs = st.builds(
    Rpc,
    subscriptions=st.lists(
        st.builds(Subscription, topic=topics, subscribe=st.booleans()), max_size=4
    ).map(tuple),
    publish=st.lists(
        st.builds(PublishedMessage, topic=topics, data=st.binary(max_size=50)), max_size=4
    ).map(tuple),
    graft=st.lists(topics, max_size=3).map(tuple),
    prune=st.lists(
        st.builds(Prune, topic=topics, backoff_s=st.none() | st.integers(0, 2**64 - 1)), max_size=3
    ).map(tuple),
    ihave=st.lists(st.builds(IHave, topic=topics, message_ids=ids), max_size=3).map(tuple),
    iwant=ids,
    idontwant=ids,
)


def field(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field; lengths below 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def published(*fields: bytes) -> bytes:
    return field(2, b"".join(fields))


DATA, TOPIC = field(2, b"data"), field(4, T.encode())


@given(rpcs)
def test_what_is_encoded_is_decoded(rpc: Rpc) -> None:
    decoded = decode_rpc(encode_rpc(rpc))
    assert decoded.rpc == rpc
    assert decoded.refused == ()


@given(st.binary(max_size=300))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    with suppress(RemoteProtocolError):
        decoded = decode_rpc(data)
        assert all(len(message_id) == 32 for message_id in decoded.rpc.iwant)


def test_a_message_on_the_wire_has_data_and_topic_only() -> None:
    encoded = encode_rpc(Rpc(publish=(PublishedMessage(topic=T, data=b"data"),)))
    assert encoded == published(DATA, TOPIC)


@pytest.mark.parametrize(
    "signature_field", [field(1, b"from"), field(3, b"7"), field(5, b"sig"), field(6, b"key")]
)
def test_strict_no_sign_refuses_the_message_and_keeps_its_neighbours(
    signature_field: bytes,
) -> None:
    decoded = decode_rpc(published(DATA, TOPIC, signature_field) + published(DATA, TOPIC))
    assert decoded.rpc.publish == (PublishedMessage(topic=T, data=b"data"),)
    assert decoded.refused == ("message_signed",)


def test_an_empty_signature_is_one_too() -> None:
    assert decode_rpc(published(DATA, TOPIC, field(5, b""))).refused == ("message_signed",)


def test_peers_offered_with_a_prune_are_read_over() -> None:
    prune = field(1, T.encode()) + field(2, field(1, b"peer")) + b"\x18\x3c"
    decoded = decode_rpc(field(3, field(4, prune)))
    assert decoded.rpc.prune == (Prune(topic=T, backoff_s=60),)
    assert decoded.refused == ()


def test_every_list_is_bounded() -> None:
    short = PubsubTopic("t")
    subscription = Subscription(topic=short, subscribe=True)
    decoded = decode_rpc(
        encode_rpc(
            Rpc(
                subscriptions=(subscription,) * (MAX_SUBSCRIPTIONS + 1),
                publish=(PublishedMessage(topic=short, data=b""),) * (MAX_PUBLISHED + 1),
                graft=(short,) * (MAX_CONTROLS + 1),
                prune=(Prune(topic=short),) * (MAX_CONTROLS + 1),
                ihave=(IHave(topic=short, message_ids=(b"i" * 32,) * 2_501),) * 2,
                iwant=(b"i" * 32,) * (MAX_MESSAGE_IDS + 1),
            )
        )
    )
    assert len(decoded.rpc.subscriptions) == MAX_SUBSCRIPTIONS
    assert len(decoded.rpc.publish) == MAX_PUBLISHED
    assert len(decoded.rpc.graft) == len(decoded.rpc.prune) == MAX_CONTROLS
    assert sum(len(ihave.message_ids) for ihave in decoded.rpc.ihave) == MAX_MESSAGE_IDS
    assert len(decoded.rpc.iwant) == MAX_MESSAGE_IDS
    assert sorted(decoded.refused) == [
        "too_many_controls",
        "too_many_message_ids",
        "too_many_message_ids",
        "too_many_messages",
        "too_many_subscriptions",
    ]


def test_topics_ids_and_messages_of_the_wrong_size_are_left_out() -> None:
    too_big = PublishedMessage(topic=T, data=b"x" * (MAX_WAKU_MESSAGE_BYTES + 1))
    decoded = decode_rpc(
        encode_rpc(
            Rpc(
                graft=(PubsubTopic("t" * 257), PubsubTopic(""), T),
                iwant=(b"short", b"i" * 32, b"l" * 33),
                publish=(too_big,),
            )
        )
    )
    assert decoded.rpc == Rpc(graft=(T,), iwant=(b"i" * 32,))
    assert set(decoded.refused) == {"topic_malformed", "message_id_malformed", "message_oversized"}


def test_an_rpc_beyond_the_limit_is_not_even_parsed() -> None:
    with pytest.raises(RemoteProtocolError, match="rpc_oversized"):
        decode_rpc(bytes(MAX_RPC_BYTES + 1))


def test_half_a_mebibyte_of_the_smallest_parts_is_cut_down() -> None:
    decoded = decode_rpc(published() * (MAX_RPC_BYTES // 2))
    assert decoded.rpc == Rpc()
    assert decoded.refused.count("topic_malformed") == MAX_PUBLISHED
