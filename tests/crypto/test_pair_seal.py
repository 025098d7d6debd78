"""The sealed envelope of a pair under attack: strangers, other pairs, and the other one of the two.

What an attacker can do is done here for real: Mallory has keys of her own, may open what is sent to
her, and seals whatever she likes to whomever she likes.
"""

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec.padding import MAX_PLAINTEXT_BYTES, pad, unpad
from engine.codec.pair import (
    PairPlaintext,
    decode_pair_envelope,
    decode_pair_plaintext,
    encode_pair_envelope,
    encode_pair_plaintext,
)
from engine.codec.tuples import tuple_bytes
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.core.ids import UnixMs
from engine.core.invite import conversation_id_of, group_id_of
from engine.core.mvds.config import MvdsConfig
from engine.crypto.identity import Identity
from engine.crypto.pair import (
    EphemeralPart,
    MvdsPart,
    OpenedPair,
    PairBody,
    PairSeal,
    inbox_topic_of,
    open_from_anybody,
    pair_group_id,
    safety_number,
)
from engine.crypto.sealed import MAX_ENVELOPE_BYTES
from proto import pair_pb2

NOW = UnixMs(1_700_000_000_000)
HELLO = MvdsPart(payload=b"an MVDS payload")
TYPING = EphemeralPart(content=b"\x0a\x02\x08\x01")
ALICE, BOB, MALLORY = (
    Identity(signing_key=bytes([n]) * 32, encryption_key=bytes([n + 1]) * 32) for n in (1, 3, 5)
)
SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
SMALL_ORDER = [bytes(32), (1).to_bytes(32, "little"), (2**255 - 20).to_bytes(32, "little")]
REASONS = {
    "oversized",
    "malformed",
    "unsupported_version",
    "empty",
    "ephemeral_oversized",
    "bad_seal",
    "bad_public_key",
    "bad_encryption_key",
    "small_order_key",
    "mixed_order_key",
    "bad_padding",
    "not_canonical",
    "bad_signature",
    "forged_sender",
}


def pair(mine: Identity, theirs: Identity) -> PairSeal:
    return PairSeal(
        mine,
        peer_public_key=theirs.public_key,
        peer_encryption_key=theirs.encryption_public_key,
    )


def reason_of(at: PairSeal, payload: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        at.open(payload)
    return refusal.value.reason


def inbox_reason_of(identity: Identity, payload: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        open_from_anybody(identity, payload)
    return refusal.value.reason


def seal_raw(plaintext: bytes, to: Identity) -> bytes:
    """What anybody can do who knows somebody's public keys."""
    key = X25519PublicKey.from_public_bytes(to.encryption_public_key)
    info = tuple_bytes("causerie/2/pair-seal", 2, to.public_key)
    return encode_pair_envelope(SUITE.encrypt(pad(plaintext), key, info))


def written_by(author: Identity, to: Identity, body: PairBody = HELLO) -> PairPlaintext:
    """The signed inside of a message, as its recipient has it in hand."""
    sealed = decode_pair_envelope(pair(author, to).seal(body, signed_ms=NOW))
    info = tuple_bytes("causerie/2/pair-seal", 2, to.public_key)
    return decode_pair_plaintext(unpad(SUITE.decrypt(sealed, to.decryption_key, info)))


# --- what must work -----------------------------------------------------------------------------


@pytest.mark.parametrize("body", [HELLO, TYPING])
def test_what_is_sealed_opens_for_the_other_with_the_sender_proved(body: PairBody) -> None:
    payload = pair(ALICE, BOB).seal(body, signed_ms=NOW)
    opened = pair(BOB, ALICE).open(payload)
    assert opened == OpenedPair(
        sender_public_key=ALICE.public_key,
        sender_encryption_key=ALICE.encryption_public_key,
        signed_ms=NOW,
        body=body,
    )
    assert opened.sender_id == ALICE.participant_id
    assert open_from_anybody(BOB, payload) == opened


def test_no_two_copies_are_the_same_bytes() -> None:
    copies = {pair(ALICE, BOB).seal(HELLO, signed_ms=NOW) for _ in range(5)}
    assert len(copies) == 5
    assert len({decode_pair_envelope(copy)[:32] for copy in copies}) == 5


def test_both_sides_agree_on_group_topic_and_safety_number() -> None:
    ours, theirs = pair(ALICE, BOB), pair(BOB, ALICE)
    assert ours.group_id == theirs.group_id == pair_group_id(BOB.public_key, ALICE.public_key)
    assert ours.conversation_id == theirs.conversation_id == conversation_id_of(ours.group_id)
    assert group_id_of(ours.conversation_id) == ours.group_id
    assert ours.content_topic == theirs.content_topic
    number = safety_number(ALICE.public_key, BOB.public_key)
    assert number == safety_number(BOB.public_key, ALICE.public_key)
    groups = number.split(" ")
    assert len(groups) == 12
    assert all(len(group) == 5 and group.isdecimal() for group in groups)


def test_every_pair_has_its_own() -> None:
    pairs = [(ALICE, BOB), (ALICE, MALLORY), (BOB, MALLORY)]
    keys = [(a.public_key, b.public_key) for a, b in pairs]
    assert len({pair(a, b).content_topic for a, b in pairs}) == 3
    assert len({pair_group_id(*two) for two in keys}) == 3
    assert len({safety_number(*two) for two in keys}) == 3
    assert len({inbox_topic_of(who.public_key) for who in (ALICE, BOB, MALLORY)}) == 3


def test_topics_are_shaped_as_all_topics_and_tell_no_key() -> None:
    for topic in (pair(ALICE, BOB).content_topic, inbox_topic_of(BOB.public_key)):
        empty, application, version, name, encoding = topic.split("/")
        assert (empty, application, version, encoding) == ("", "causerie", "1", "proto")
        assert len(bytes.fromhex(name)) == 16
        assert name not in BOB.public_key.hex() + BOB.encryption_public_key.hex()


def test_a_copied_encryption_key_gives_nobody_anothers_topic() -> None:
    posing = PairSeal(
        ALICE,
        peer_public_key=MALLORY.public_key,
        peer_encryption_key=BOB.encryption_public_key,
    )
    assert posing.content_topic != pair(ALICE, BOB).content_topic
    meant_for_mallory = posing.seal(HELLO, signed_ms=NOW)
    assert reason_of(pair(BOB, ALICE), meant_for_mallory) == "bad_seal"


def test_payload_and_keys_appear_in_no_representation() -> None:
    seal = pair(ALICE, BOB)
    opened = pair(BOB, ALICE).open(seal.seal(HELLO, signed_ms=NOW))
    assert "an MVDS payload" not in repr(opened)
    assert "an MVDS payload" not in repr(written_by(ALICE, BOB))
    assert "x01" not in repr(seal)


# --- who may not ---------------------------------------------------------------------------------


def test_nobody_else_can_open_it() -> None:
    payload = pair(ALICE, BOB).seal(HELLO, signed_ms=NOW)
    assert reason_of(pair(MALLORY, ALICE), payload) == "bad_seal"
    assert inbox_reason_of(MALLORY, payload) == "bad_seal"


def test_our_own_message_reflected_to_us_is_refused() -> None:
    payload = pair(ALICE, BOB).seal(HELLO, signed_ms=NOW)
    assert reason_of(pair(ALICE, BOB), payload) == "bad_seal"
    assert inbox_reason_of(ALICE, payload) == "bad_seal"


def test_our_own_message_sealed_back_to_us_by_the_peer_is_refused() -> None:
    ours = encode_pair_plaintext(written_by(ALICE, BOB))
    assert reason_of(pair(ALICE, BOB), seal_raw(ours, ALICE)) == "forged_sender"
    assert inbox_reason_of(ALICE, seal_raw(ours, ALICE)) == "forged_sender"


def test_a_message_of_the_right_form_from_a_third_person_is_refused_in_the_pair() -> None:
    payload = pair(MALLORY, BOB).seal(HELLO, signed_ms=NOW)
    assert reason_of(pair(BOB, ALICE), payload) == "forged_sender"
    assert open_from_anybody(BOB, payload).sender_public_key == MALLORY.public_key


def test_somebody_elses_name_on_ones_own_signature_is_refused() -> None:
    hers = written_by(MALLORY, BOB)
    forged = replace(
        hers,
        sender_public_key=ALICE.public_key,
        sender_encryption_key=ALICE.encryption_public_key,
    )
    payload = seal_raw(encode_pair_plaintext(forged), BOB)
    assert reason_of(pair(BOB, ALICE), payload) == "bad_signature"
    assert inbox_reason_of(BOB, payload) == "bad_signature"


def test_a_recipient_cannot_pass_a_message_on_as_if_it_were_meant_for_another() -> None:
    """Mallory opens what Alice wrote to her, and seals it for Bob."""
    from_alice = written_by(ALICE, MALLORY)
    payload = seal_raw(encode_pair_plaintext(from_alice), BOB)
    assert reason_of(pair(BOB, ALICE), payload) == "bad_signature"
    assert inbox_reason_of(BOB, payload) == "bad_signature"


@pytest.mark.parametrize(
    ("domain", "group", "accepted"),
    [
        ("causerie/2/pair", pair_group_id(ALICE.public_key, BOB.public_key), True),
        ("causerie/2/pair", pair_group_id(ALICE.public_key, MALLORY.public_key), False),
        ("causerie/2/pair", bytes(32), False),
        ("causerie/2/message", pair_group_id(ALICE.public_key, BOB.public_key), False),
    ],
)
def test_what_alice_signed_for_another_group_or_purpose_is_refused(
    domain: str, group: bytes, *, accepted: bool
) -> None:
    to_sign = tuple_bytes(
        domain,
        ALICE.public_key,
        ALICE.encryption_public_key,
        BOB.public_key,
        group,
        NOW,
        "mvds",
        HELLO.payload,
    )
    plaintext = PairPlaintext(
        sender_public_key=ALICE.public_key,
        sender_encryption_key=ALICE.encryption_public_key,
        signed_ms=NOW,
        signature=ALICE.sign(to_sign),
        body=HELLO,
    )
    payload = seal_raw(encode_pair_plaintext(plaintext), BOB)
    if accepted:
        assert pair(BOB, ALICE).open(payload).body == HELLO
    else:
        assert reason_of(pair(BOB, ALICE), payload) == "bad_signature"


@pytest.mark.parametrize(
    ("body", "swapped"),
    [
        (HELLO, EphemeralPart(content=HELLO.payload)),
        (TYPING, MvdsPart(payload=TYPING.content)),
    ],
)
def test_a_payload_taken_for_the_other_kind_is_refused(body: PairBody, swapped: PairBody) -> None:
    forged = replace(written_by(ALICE, BOB, body), body=swapped)
    assert reason_of(pair(BOB, ALICE), seal_raw(encode_pair_plaintext(forged), BOB)) == (
        "bad_signature"
    )


def test_a_second_body_is_refused() -> None:
    first = encode_pair_plaintext(written_by(ALICE, BOB))
    second = pair_pb2.PairPlaintext(ephemeral=b"smuggled").SerializeToString()
    assert pair_pb2.PairPlaintext.FromString(first + second).ephemeral == b"smuggled"
    assert reason_of(pair(BOB, ALICE), seal_raw(first + second, BOB)) == "not_canonical"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"signed_ms": NOW + 1}, "bad_signature"),
        ({"body": MvdsPart(payload=b"an MVDS payloae")}, "bad_signature"),
        ({"signature": bytes(64)}, "bad_signature"),
        ({"sender_encryption_key": MALLORY.encryption_public_key}, "bad_signature"),
        ({"sender_encryption_key": b"\xff" * 32}, "bad_encryption_key"),
        ({"sender_public_key": MALLORY.public_key}, "bad_signature"),
        ({"sender_public_key": b"\xff" * 32}, "bad_public_key"),
        ({"sender_public_key": b"short"}, "malformed"),
        ({"sender_encryption_key": bytes(33)}, "malformed"),
        ({"signature": bytes(63)}, "malformed"),
        ({"signed_ms": 2**53}, "malformed"),
        ({"body": MvdsPart(payload=b"")}, "empty"),
        ({"body": EphemeralPart(content=bytes(1025))}, "ephemeral_oversized"),
    ],
)
def test_every_field_under_the_seal_is_checked(change: dict[str, object], reason: str) -> None:
    changed = replace(written_by(ALICE, BOB), **change)  # type: ignore[arg-type]
    payload = seal_raw(encode_pair_plaintext(changed), BOB)
    assert inbox_reason_of(BOB, payload) == reason
    assert reason_of(pair(BOB, ALICE), payload) in {reason, "forged_sender"}


def test_the_peer_has_one_encryption_key() -> None:
    """A signature of the peer's for another key is a change that this version does not know."""
    other = Identity(signing_key=ALICE.signing_key, encryption_key=bytes([9]) * 32)
    payload = pair(other, BOB).seal(HELLO, signed_ms=NOW)
    assert reason_of(pair(BOB, ALICE), payload) == "forged_sender"
    assert open_from_anybody(BOB, payload).sender_encryption_key == other.encryption_public_key


@pytest.mark.parametrize("key", SMALL_ORDER)
def test_small_order_keys_get_in_nowhere(key: bytes) -> None:
    with pytest.raises(CryptoError, match="small_order_key"):
        PairSeal(ALICE, peer_public_key=key, peer_encryption_key=BOB.encryption_public_key)
    with pytest.raises(CryptoError, match="small_order_key"):
        PairSeal(ALICE, peer_public_key=BOB.public_key, peer_encryption_key=key)
    inside = written_by(ALICE, BOB)
    for forged in (
        replace(inside, sender_public_key=key, signature=key + bytes(32)),
        replace(inside, sender_encryption_key=key),
    ):
        payload = seal_raw(encode_pair_plaintext(forged), BOB)
        assert inbox_reason_of(BOB, payload) == "small_order_key"
    sealed = decode_pair_envelope(pair(ALICE, BOB).seal(HELLO, signed_ms=NOW))
    assert inbox_reason_of(BOB, encode_pair_envelope(key + sealed[32:])) == "bad_seal"


@pytest.mark.parametrize("key", [b"", bytes(31), b"\xff" * 32, bytes(33)])
def test_keys_that_cannot_be_genuine_make_no_pair(key: bytes) -> None:
    with pytest.raises(CryptoError):
        PairSeal(ALICE, peer_public_key=key, peer_encryption_key=BOB.encryption_public_key)
    with pytest.raises(CryptoError):
        PairSeal(ALICE, peer_public_key=BOB.public_key, peer_encryption_key=key)


def test_nobody_is_a_pair_with_themselves() -> None:
    with pytest.raises(LocalProtocolError):
        pair(ALICE, ALICE)
    with pytest.raises(LocalProtocolError):
        safety_number(ALICE.public_key, ALICE.public_key)
    with pytest.raises(LocalProtocolError):
        pair_group_id(ALICE.public_key, ALICE.public_key)


# --- shape ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 3, 2**32 - 1])
def test_other_versions_are_called_so(version: int) -> None:
    sealed = decode_pair_envelope(pair(ALICE, BOB).seal(HELLO, signed_ms=NOW))
    other = pair_pb2.PairEnvelope(version=version, sealed=sealed).SerializeToString()
    assert reason_of(pair(BOB, ALICE), other) == "unsupported_version"


def test_the_version_is_part_of_what_is_sealed() -> None:
    key = X25519PublicKey.from_public_bytes(BOB.encryption_public_key)
    info = tuple_bytes("causerie/2/pair-seal", 1, BOB.public_key)
    inside = encode_pair_plaintext(written_by(ALICE, BOB))
    payload = encode_pair_envelope(SUITE.encrypt(pad(inside), key, info))
    assert reason_of(pair(BOB, ALICE), payload) == "bad_seal"


def test_sizes_are_bounded_both_ways() -> None:
    around = len(encode_pair_plaintext(written_by(ALICE, BOB, MvdsPart(payload=bytes(100_000)))))
    room = MAX_PLAINTEXT_BYTES - (around - 100_000)
    largest = MvdsPart(payload=bytes(room))
    payload = pair(ALICE, BOB).seal(largest, signed_ms=NOW)
    assert len(payload) <= MAX_ENVELOPE_BYTES
    assert pair(BOB, ALICE).open(payload).body == largest
    assert room > MvdsConfig().max_payload_bytes
    too_large = MvdsPart(payload=bytes(room + 1))
    with pytest.raises(LocalProtocolError, match="too large"):
        pair(ALICE, BOB).seal(too_large, signed_ms=NOW)
    assert reason_of(pair(BOB, ALICE), bytes(150 * 1024 + 1)) == "oversized"


@pytest.mark.parametrize(
    "body",
    [MvdsPart(payload=b""), EphemeralPart(content=b""), EphemeralPart(content=bytes(1025))],
)
def test_what_nobody_would_accept_is_never_sealed(body: PairBody) -> None:
    with pytest.raises(LocalProtocolError):
        pair(ALICE, BOB).seal(body, signed_ms=NOW)


@pytest.mark.parametrize("signed_ms", [-1, 2**53, 2**64])
def test_times_out_of_bounds_are_never_signed(signed_ms: int) -> None:
    with pytest.raises(LocalProtocolError, match="time"):
        pair(ALICE, BOB).seal(HELLO, signed_ms=UnixMs(signed_ms))


def test_every_cut_and_every_extension_is_refused() -> None:
    payload = pair(ALICE, BOB).seal(TYPING, signed_ms=NOW)
    for length in range(len(payload)):
        assert reason_of(pair(BOB, ALICE), payload[:length]) in REASONS
    sealed = decode_pair_envelope(payload)
    for length in (*range(1, 49), len(sealed) - 1):
        assert reason_of(pair(BOB, ALICE), encode_pair_envelope(sealed[:length])) == "bad_seal"
    assert reason_of(pair(BOB, ALICE), encode_pair_envelope(sealed + b"\0")) == "bad_seal"
    assert reason_of(pair(BOB, ALICE), payload + b"\xff") == "malformed"


def test_nobody_can_make_a_second_form_of_a_sealed_message() -> None:
    """Else each could be replayed without end as something that was never seen before."""
    payload = pair(ALICE, BOB).seal(TYPING, signed_ms=NOW)
    sealed = decode_pair_envelope(payload)
    length = len(payload) - len(sealed)
    for other in (
        payload + b"\x1a\x01x",  # an unknown field
        payload + b"\x08\x02",  # the version once more
        payload[2:] + payload[:2],  # in another order
        b"\x08\x82\x00" + payload[2:],  # a longer varint
        b"\x12\x01x" + payload,  # an earlier field of the same number
    ):
        assert pair_pb2.PairEnvelope.FromString(other).sealed == sealed
        assert reason_of(pair(BOB, ALICE), other) == "not_canonical"
    assert payload[length:] == sealed


def test_nothing_can_be_hung_on_to_what_is_under_the_seal() -> None:
    inside = encode_pair_plaintext(written_by(ALICE, BOB))
    assert pair(BOB, ALICE).open(seal_raw(inside, BOB)).body == HELLO
    for other in (
        inside + b"\x7a\x01x",
        b"\x7a\x01x" + inside,
        inside[34:] + inside[:34],
        inside[:34] + inside,
        inside[:1] + b"\xa0\x00" + inside[2:],
    ):
        assert pair_pb2.PairPlaintext.FromString(other).mvds_payload == HELLO.payload
        assert reason_of(pair(BOB, ALICE), seal_raw(other, BOB)) == "not_canonical"


def test_padding_is_checked_under_the_seal() -> None:
    key = X25519PublicKey.from_public_bytes(BOB.encryption_public_key)
    info = tuple_bytes("causerie/2/pair-seal", 2, BOB.public_key)
    inside = encode_pair_plaintext(written_by(ALICE, BOB))
    padded = pad(inside)
    for wrong in (padded[:-1] + b"x", padded[:-1], padded + b"\0", inside, b""):
        payload = encode_pair_envelope(SUITE.encrypt(wrong, key, info))
        assert reason_of(pair(BOB, ALICE), payload) == "bad_padding"


def test_length_tells_little_of_what_is_sealed() -> None:
    sizes = {
        len(pair(ALICE, BOB).seal(MvdsPart(payload=bytes(size)), signed_ms=NOW))
        for size in range(1, 60)
    }
    typing = pair(ALICE, BOB).seal(TYPING, signed_ms=NOW)
    assert sizes == {len(typing)}


def test_every_changed_byte_of_the_seal_is_noticed() -> None:
    sealed = decode_pair_envelope(pair(ALICE, BOB).seal(TYPING, signed_ms=NOW))
    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 0x80
        assert reason_of(pair(BOB, ALICE), encode_pair_envelope(bytes(changed))) == "bad_seal"


# --- fuzz -----------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_garbage_is_refused_with_a_reason(garbage: bytes) -> None:
    assert reason_of(pair(BOB, ALICE), garbage) in REASONS
    assert inbox_reason_of(BOB, garbage) in REASONS


@given(st.binary(max_size=300))
def test_garbage_that_was_properly_sealed_is_refused_with_a_reason(garbage: bytes) -> None:
    payload = seal_raw(garbage, BOB)
    assert inbox_reason_of(BOB, payload) in REASONS


@settings(max_examples=200)
@given(
    st.builds(
        pair_pb2.PairPlaintext,
        sender_public_key=st.just(ALICE.public_key) | st.binary(min_size=32, max_size=32),
        sender_encryption_key=st.just(ALICE.encryption_public_key)
        | st.binary(min_size=32, max_size=32),
        signed_ms=st.integers(0, 2**64 - 1),
        signature=st.binary(min_size=64, max_size=64),
        mvds_payload=st.binary(max_size=20),
    )
)
def test_nothing_that_alice_did_not_sign_opens_as_hers(wire: pair_pb2.PairPlaintext) -> None:
    payload = seal_raw(wire.SerializeToString(), BOB)
    assert reason_of(pair(BOB, ALICE), payload) in REASONS
    assert inbox_reason_of(BOB, payload) in REASONS


@given(st.data())
def test_a_damaged_inside_never_opens_as_something_else(data: st.DataObject) -> None:
    plaintext = bytearray(encode_pair_plaintext(written_by(ALICE, BOB)))
    position = data.draw(st.integers(0, len(plaintext) - 1))
    plaintext[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        opened = pair(BOB, ALICE).open(seal_raw(bytes(plaintext), BOB))
    except RemoteProtocolError as error:
        refused = error.reason
    else:
        assert (opened.body, opened.signed_ms) == (HELLO, NOW)
        return
    assert refused in REASONS


@given(
    st.builds(
        PairPlaintext,
        sender_public_key=st.binary(min_size=32, max_size=32),
        sender_encryption_key=st.binary(min_size=32, max_size=32),
        signed_ms=st.integers(0, 2**53 - 1).map(UnixMs),
        signature=st.binary(min_size=64, max_size=64),
        body=st.builds(MvdsPart, payload=st.binary(min_size=1, max_size=99))
        | st.builds(EphemeralPart, content=st.binary(min_size=1, max_size=99)),
    )
)
def test_what_is_encoded_is_decoded(plaintext: PairPlaintext) -> None:
    assert decode_pair_plaintext(encode_pair_plaintext(plaintext)) == plaintext
