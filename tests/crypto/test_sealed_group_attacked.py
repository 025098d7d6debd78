"""The sealed envelope under attack: outsiders, other groups, lying members, other forms."""

import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from engine.codec.envelope import (
    SignedPart,
    decode_envelope,
    decode_header,
    decode_signed_part,
    encode_envelope,
    encode_header,
    encode_signed_part,
)
from engine.codec.padding import pad
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.core.ids import ParticipantId
from engine.crypto.identity import Identity
from engine.crypto.sealed import (
    SealedGroup,
)
from proto import envelope_pb2, sds_pb2
from tests.crypto.conftest import SdsBytes
from tests.crypto.sealed_examples import CLAIM, LATER, MORE_CLAIMED, NOW, forge, reason_of
from tests.forging import seal_padded, signed_message, signed_repair

# --- outsiders ----------------------------------------------------------------------------------


def test_every_single_changed_bit_is_refused(group: SealedGroup, payload: bytes) -> None:
    group.open(payload)
    for position in range(len(payload)):
        for bit in range(8):
            changed = bytearray(payload)
            changed[position] ^= 1 << bit
            reason_of(group, bytes(changed))


def test_every_single_changed_bit_of_a_signed_part_is_refused(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    """A member could change what is inside the seal: the signatures still tell."""
    signed = group.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    wrapped = group.wrap_repair(bob, signed, MORE_CLAIMED, LATER)
    for original in (signed, wrapped):
        for position in range(len(original)):
            changed = bytearray(original)
            changed[position] ^= 1 << (position % 8)
            with pytest.raises(RemoteProtocolError):
                group.read(bytes(changed))


def test_every_truncation_and_extension_is_refused(group: SealedGroup, payload: bytes) -> None:
    for length in range(len(payload)):
        reason_of(group, payload[:length])
    assert reason_of(group, payload + b"\0") == "malformed"


def test_each_layer_refuses_with_its_own_reason(group: SealedGroup, payload: bytes) -> None:
    encoded, ciphertext = decode_envelope(payload)
    header = decode_header(encoded)

    def with_header(**changes: bytes) -> bytes:
        return encode_envelope(encode_header(structs.replace(header, **changes)), ciphertext)

    newer = envelope_pb2.EnvelopeHeader.FromString(encoded)
    newer.version = 3
    reasons = {
        "oversized": bytes(150 * 1024 + 1),
        "malformed": b"\xff" * 100,
        "unsupported_version": encode_envelope(newer.SerializeToString(), ciphertext),
        "wrong_group": with_header(group_tag=bytes(8)),
        "unknown_epoch": with_header(epoch_id=bytes(8)),
        "bad_commitment": with_header(commitment=bytes(32)),
        "bad_seal": encode_envelope(encoded, ciphertext[:-1] + bytes([ciphertext[-1] ^ 1])),
    }
    assert {reason: reason_of(group, sent) for reason, sent in reasons.items()} == {
        reason: reason for reason in reasons
    }
    assert reason_of(group, with_header(salt=bytes(24))) == "bad_commitment"


def test_the_header_is_authenticated_even_where_its_meaning_stays(
    group: SealedGroup, payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded, ciphertext = decode_envelope(payload)
    reordered = encoded[2:] + encoded[:2]  # the version field last: the same header to protobuf
    assert envelope_pb2.EnvelopeHeader.FromString(reordered) == (
        envelope_pb2.EnvelopeHeader.FromString(encoded)
    )
    assert reason_of(group, encode_envelope(reordered, ciphertext)) == "not_canonical"
    whole = encode_envelope(reordered, ciphertext)
    forms = iter((whole, reordered))  # Of the envelope, then of its header.
    monkeypatch.setattr("engine.codec.envelope.one_form", lambda _: next(forms))
    with pytest.raises(CryptoError, match="bad_seal"):
        group.open(whole)


def test_other_groups_and_epochs_open_nothing(group: SealedGroup, payload: bytes) -> None:
    other_epoch = replace(group, epoch_keys=(bytes(32),))
    other_group = replace(group, group_id=bytes(32))
    assert reason_of(other_epoch, payload) == "unknown_epoch"
    assert reason_of(other_group, payload) == "wrong_group"


def test_one_key_in_two_groups_still_seals_differently(group: SealedGroup, payload: bytes) -> None:
    """Relabelling an envelope for a sibling that shares the epoch key does not open it."""
    encoded, ciphertext = decode_envelope(payload)
    header = decode_header(encoded)
    sibling = replace(group, group_id=bytes(32))
    assert sibling.epoch_id != group.epoch_id
    relabelled = structs.replace(header, group_tag=sibling.group_tag, epoch_id=sibling.epoch_id)
    sent = encode_envelope(encode_header(relabelled), ciphertext)
    assert reason_of(sibling, sent) == "bad_commitment"


# --- members who lie ----------------------------------------------------------------------------


def test_a_member_cannot_speak_as_somebody_else(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    """Bob signs honestly, with his key, an SDS message that bears Alice's sender_id."""
    theirs = replace(bob)
    theirs.__dict__["participant_id"] = alice.participant_id
    signed = group.sign(theirs, sds_bytes(alice.participant_id), None, NOW)
    payload = group.seal(signed, random_bytes=os.urandom)
    with pytest.raises(CryptoError) as refusal:
        group.open(payload)
    assert refusal.value.reason == "forged_sender"
    repair = group.seal(group.wrap_repair(bob, signed, None, NOW), random_bytes=os.urandom)
    assert reason_of(group, repair) == "forged_sender"


def test_the_last_of_several_sender_ids_counts_for_the_check_too(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    second = sds_pb2.Message(sender_id=alice.participant_id).SerializeToString()
    both = sds_bytes(bob.participant_id) + second
    assert sds_pb2.Message.FromString(both).sender_id == alice.participant_id
    with pytest.raises(LocalProtocolError):
        group.sign(bob, both, None, NOW)
    theirs = replace(bob)
    theirs.__dict__["participant_id"] = alice.participant_id
    payload = group.seal(group.sign(theirs, both, None, NOW), random_bytes=os.urandom)
    assert reason_of(group, payload) == "forged_sender"


def test_a_member_cannot_change_anything_that_somebody_signed(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    part = decode_signed_part(signed)
    other = decode_signed_part(group.sign(alice, part.sds_message, MORE_CLAIMED, NOW))
    changed = [
        structs.replace(part, sender_public_key=bob.public_key),
        structs.replace(part, signed_ms=LATER),
        structs.replace(part, claims=b""),
        structs.replace(part, claims=other.claims),
        structs.replace(part, sds_message=part.sds_message + b"\xa2\x01\x02hi"),
        structs.replace(part, signature=other.signature),
        structs.replace(part, signature=bytes(64)),
    ]
    for lie in changed:
        assert reason_of(group, forge(group, lie)) == "bad_signature"
    assert group.open(forge(group, part)).raw == signed


def test_signed_in_another_group_is_refused_under_this_seal(
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    """A member of both carries a signed part over, and seals it properly."""
    sds = sds_bytes(alice.participant_id)
    elsewhere = replace(group, group_id=bytes(32)).sign(alice, sds, None, NOW)
    assert reason_of(group, group.seal(elsewhere, random_bytes=os.urandom)) == "unknown_epoch"
    relabelled = structs.replace(decode_signed_part(elsewhere), epoch_id=group.epoch_id)
    assert reason_of(group, forge(group, relabelled)) == "bad_signature"


def test_a_repair_cannot_hide_a_forgery_or_another_repair(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    part = decode_signed_part(signed)
    tampered = encode_signed_part(structs.replace(part, signed_ms=LATER))
    wrapped = group.wrap_repair(bob, tampered, None, LATER)
    assert reason_of(group, group.seal(wrapped, random_bytes=os.urandom)) == "bad_signature"

    once = decode_signed_part(group.wrap_repair(bob, signed, None, LATER))
    not_bobs = structs.replace(once, sender_public_key=alice.public_key)
    assert reason_of(group, forge(group, not_bobs)) == "bad_signature"
    nested = signed_repair(group, bob, encode_signed_part(once), signed_ms=LATER)
    twice = decode_signed_part(nested)
    assert reason_of(group, forge(group, twice)) == "nested_repair"
    # A signature under a message does not pass for one under a repair of the same bytes.
    as_message = structs.replace(once, sds_message=once.original, original=b"")
    assert reason_of(group, forge(group, as_message)) == "bad_signature"
    both = structs.replace(once, sds_message=part.sds_message)
    assert reason_of(group, forge(group, both)) == "malformed"
    assert reason_of(group, forge(group, structs.replace(once, original=b""))) == "malformed"


def test_a_small_order_key_speaks_for_nobody(group: SealedGroup, sds_bytes: SdsBytes) -> None:
    identity_element = (1).to_bytes(32, "little")
    part = SignedPart(
        sender_public_key=identity_element,
        epoch_id=group.epoch_id,
        signed_ms=NOW,
        signature=identity_element + bytes(32),
        sds_message=sds_bytes(ParticipantId("0" * 32)),
    )
    assert reason_of(group, forge(group, part)) == "small_order_key"


def test_bad_claims_under_a_good_signature_are_refused(
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    sds = sds_bytes(alice.participant_id)
    signed = signed_message(group, alice, sds, claim=b"\xff\xff", signed_ms=NOW)
    assert reason_of(group, group.seal(signed, random_bytes=os.urandom)) == "bad_holdings"


def test_sds_bytes_that_are_none_are_refused(alice: Identity, group: SealedGroup) -> None:
    signed = signed_message(group, alice, b"\xff", signed_ms=NOW)
    assert reason_of(group, group.seal(signed, random_bytes=os.urandom)) == "malformed"


# --- one form only ------------------------------------------------------------------------------


def other_forms(encoded: bytes) -> list[bytes]:
    """What Protocol Buffers read as the same; the first field is bytes, shorter than 128."""
    length = 2 + encoded[1]
    return [
        encoded + b"\x7a\x01x",  # an unknown field
        encoded + b"\x7a\xa0\x8d\x06" + bytes(100_000),  # a large one
        b"\x7a\x01x" + encoded,
        encoded[length:] + encoded[:length],  # in another order
        encoded[:length] + encoded,  # one field twice
        encoded[:1] + bytes([encoded[1] | 128, 0]) + encoded[2:],  # a longer varint
    ]


def test_nothing_can_be_hung_on_to_what_somebody_signed(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    """1 KB of Bob's was kept and repaired onward as 114 KB: no signature covers unknown fields."""
    signed = group.sign(bob, sds_bytes(bob.participant_id), CLAIM, NOW)
    assert group.open(group.seal(signed, random_bytes=os.urandom)).raw == signed
    for other in other_forms(signed):
        assert envelope_pb2.SignedPart.FromString(other).signature
        assert reason_of(group, group.seal(other, random_bytes=os.urandom)) == "not_canonical"
        with pytest.raises(RemoteProtocolError, match="not_canonical"):
            group.read(other)
        repair = signed_repair(group, alice, other, signed_ms=LATER)
        assert reason_of(group, group.seal(repair, random_bytes=os.urandom)) == "not_canonical"
    wrapped = group.wrap_repair(alice, signed, MORE_CLAIMED, LATER)
    for other in other_forms(wrapped):
        assert reason_of(group, group.seal(other, random_bytes=os.urandom)) == "not_canonical"


def test_every_layer_of_an_envelope_has_one_form(
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes, payload: bytes
) -> None:
    small = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    inside = envelope_pb2.SealedPlaintext(statements=[b"s"], signed_part=small).SerializeToString()
    assert group.open(seal_padded(group, pad(inside))).raw == small
    reordered = envelope_pb2.SealedPlaintext(statements=[b"s"]).SerializeToString() + (
        envelope_pb2.SealedPlaintext(signed_part=small).SerializeToString()
    )
    for plaintext in (reordered, inside + b"\x7a\x01x", b"\x0a\x01x" + inside):
        assert reason_of(group, seal_padded(group, pad(plaintext))) == "not_canonical"
    for other in other_forms(payload):
        assert envelope_pb2.SealedEnvelope.FromString(other).ciphertext
        assert reason_of(group, other) == "not_canonical"
    encoded, ciphertext = decode_envelope(payload)
    for header in (encoded + b"\x7a\x01x", b"\x08\x02" + encoded, encoded[2:] + encoded[:2]):
        assert reason_of(group, encode_envelope(header, ciphertext)) == "not_canonical"


# --- garbage ------------------------------------------------------------------------------------

FIXED = SealedGroup(group_id=bytes(range(32)), epoch_keys=(b"k" * 32,))


@given(st.binary(max_size=400))
def test_garbage_is_refused(garbage: bytes) -> None:
    for attempt in (garbage, encode_envelope(garbage, garbage)):
        with pytest.raises(RemoteProtocolError):
            FIXED.open(attempt)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.builds(
        envelope_pb2.SignedPart,
        sender_public_key=st.binary(max_size=33) | st.binary(min_size=32, max_size=32),
        sds_message=st.binary(max_size=50),
        claims=st.binary(max_size=50),
        signed_ms=st.integers(0, 2**64 - 1),
        signature=st.binary(max_size=65) | st.binary(min_size=64, max_size=64),
        original=st.binary(max_size=50),
        epoch_id=st.just(FIXED.epoch_id) | st.binary(max_size=9),
    )
)
def test_garbage_from_somebody_with_the_key_is_refused(part: envelope_pb2.SignedPart) -> None:
    payload = FIXED.seal(part.SerializeToString(), random_bytes=os.urandom)
    with pytest.raises(RemoteProtocolError):
        FIXED.open(payload)
