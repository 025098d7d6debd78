"""Join statements: only the newcomer can make one, for one group, and nobody can bend it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.content import decode_content, encode_content
from engine.codec.join import decode_join
from engine.codec.tuples import tuple_bytes
from engine.core.content import Content, Join
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import AuthorSequence, InstanceId, UnixMs
from engine.crypto.identity import Identity
from engine.crypto.join import build_join, verify_join
from proto import content_pb2

GROUP, OTHER_GROUP = bytes(range(32)), bytes(32)
NOW = UnixMs(1_700_000_000_000)
BOB = Identity(signing_key=bytes([2] * 32), encryption_key=bytes([3] * 32))
EVE = Identity(signing_key=bytes([4] * 32), encryption_key=bytes([5] * 32))
JOIN = build_join(BOB, group_id=GROUP, name="Bob", joined_ms=NOW)


def changed(**changes: object) -> bytes:
    wire = content_pb2.Join.FromString(JOIN.statement)
    for name, value in changes.items():
        setattr(wire, name, value)
    return wire.SerializeToString()


def reason_of(action: Callable[[], object]) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        action()
    return refusal.value.reason


def test_a_join_says_who_joined() -> None:
    assert verify_join(JOIN, group_id=GROUP) == BOB.participant_id
    assert (JOIN.public_key, JOIN.encryption_key) == (BOB.public_key, BOB.encryption_public_key)
    assert (JOIN.name, JOIN.joined_ms) == ("Bob", NOW)


def test_it_survives_the_message_that_carries_it() -> None:
    content = Content(
        author=AuthorSequence(instance_id=InstanceId(bytes(16)), sequence=1),
        previous_id=None,
        nonce=bytes(16),
        sent_ms=NOW,
        body=JOIN,
    )
    body = decode_content(encode_content(content)).body
    assert body == JOIN
    assert isinstance(body, Join)
    assert verify_join(decode_join(body.statement), group_id=GROUP) == BOB.participant_id


def test_it_counts_in_one_group_only() -> None:
    assert reason_of(lambda: verify_join(JOIN, group_id=OTHER_GROUP)) == "bad_signature"


@pytest.mark.parametrize(
    "changes",
    [
        {"public_key": EVE.public_key},
        {"encryption_key": EVE.encryption_public_key},
        {"name": "Eve"},
        {"joined_ms": NOW + 1},
        {"signature": bytes(64)},
    ],
)
def test_whatever_is_changed_breaks_it(changes: dict[str, object]) -> None:
    join = decode_join(changed(**changes))
    assert reason_of(lambda: verify_join(join, group_id=GROUP)) == "bad_signature"


def test_every_changed_bit_is_refused() -> None:
    for position in range(len(JOIN.statement)):
        statement = bytearray(JOIN.statement)
        statement[position] ^= 1 << (position % 8)
        with pytest.raises(RemoteProtocolError):
            verify_join(decode_join(bytes(statement)), group_id=GROUP)


def test_fields_that_do_not_say_what_was_signed_are_refused() -> None:
    lie = replace(JOIN, name="Eve")
    assert reason_of(lambda: verify_join(lie, group_id=GROUP)) == "join_malformed"


def test_the_name_is_signed_as_written_and_shown_clean() -> None:
    wire = content_pb2.Join(
        public_key=BOB.public_key,
        encryption_key=BOB.encryption_public_key,
        name="Bob\u202e",
        joined_ms=NOW,
    )
    wire.signature = BOB.sign(
        tuple_bytes(
            "causerie/2/join",
            GROUP,
            wire.public_key,
            wire.encryption_key,
            wire.name,
            wire.joined_ms,
        )
    )
    join = decode_join(wire.SerializeToString())
    assert join.name == "Bob"
    assert verify_join(join, group_id=GROUP) == BOB.participant_id


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("join_bad_key", {"public_key": bytes(31)}),
        ("join_bad_key", {"encryption_key": b""}),
        ("join_bad_signature", {"signature": bytes(63)}),
        ("join_bad_time", {"joined_ms": 0}),
        ("join_bad_time", {"joined_ms": 2**53}),
        ("join_bad_name", {"name": ""}),
        ("join_bad_name", {"name": "x" * 65}),
        ("join_oversized", {"name": "x" * 1024}),
    ],
)
def test_shapes_out_of_bounds_are_refused(reason: str, changes: dict[str, object]) -> None:
    assert reason_of(lambda: decode_join(changed(**changes))) == reason


def test_keys_that_protect_nothing_are_refused() -> None:
    zero_secret = decode_join(changed(encryption_key=bytes(32)))
    assert reason_of(lambda: verify_join(zero_secret, group_id=GROUP)) == "small_order_key"
    identity_element = (1).to_bytes(32, "little")
    anybody = decode_join(
        changed(public_key=identity_element, signature=identity_element + bytes(32))
    )
    assert reason_of(lambda: verify_join(anybody, group_id=GROUP)) == "small_order_key"


@pytest.mark.parametrize(("name", "joined_ms"), [("", 1), ("\u202e", 1), ("B", 0), ("B", -1)])
def test_we_never_make_one_that_nobody_would_accept(name: str, joined_ms: int) -> None:
    with pytest.raises(LocalProtocolError):
        build_join(BOB, group_id=GROUP, name=name, joined_ms=UnixMs(joined_ms))


@pytest.mark.parametrize(
    "other",
    [
        JOIN.statement + b"\x7a\x01x",
        JOIN.statement[34:] + JOIN.statement[:34],
        JOIN.statement[:34] + JOIN.statement,
        JOIN.statement[:1] + b"\xa0\x00" + JOIN.statement[2:],
    ],
    ids=["unknown", "reordered", "twice", "long"],
)
def test_a_statement_has_one_form(other: bytes) -> None:
    """It is kept and shown to others: nobody can make it longer on the way."""
    assert content_pb2.Join.FromString(other).public_key == BOB.public_key
    assert reason_of(lambda: decode_join(other)) == "not_canonical"


@given(st.binary(max_size=300))
def test_garbage_is_refused(garbage: bytes) -> None:
    reason = reason_of(lambda: verify_join(decode_join(garbage), group_id=GROUP))
    assert reason == "not_canonical" or reason.startswith("join_")
