"""The sealed envelope under attack: outsiders, other groups, other epochs, lying members."""

import os
from collections.abc import Callable
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from engine.codec.envelope import (
    MAX_STATEMENT_BYTES,
    MAX_STATEMENTS,
    SALT_BYTES,
    EnvelopeHeader,
    SignedPart,
    decode_envelope,
    decode_header,
    decode_plaintext,
    decode_signed_part,
    encode_envelope,
    encode_header,
    encode_signed_part,
)
from engine.codec.holdings import MAX_AUTHORS, MAX_CLAIM_BYTES
from engine.codec.padding import MAX_PLAINTEXT_BYTES, pad
from engine.core.entropy import RandomBytes
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.core.ids import InstanceId, ParticipantId, UnixMs
from engine.core.sds.vocabulary import Claim, Holdings, SequenceRange
from engine.crypto.identity import Identity
from engine.crypto.sealed import (
    MAX_ENVELOPE_BYTES,
    MAX_SIGNED_PART_BYTES,
    SealedGroup,
    _largest_repair_of,
    _message_keys,
    content_topic_of,
    epoch_commitment,
    new_group,
)
from proto import envelope_pb2, sds_pb2

SdsBytes = Callable[[ParticipantId], bytes]
NOW = UnixMs(1_700_000_000_000)
LATER = UnixMs(1_700_000_060_000)
HEAD = b"the last"
CLAIM = Claim({InstanceId(bytes(range(16))): (SequenceRange(first=1, last=7, head=HEAD),)})
MORE_CLAIMED = Claim({InstanceId(bytes(range(16))): (SequenceRange(first=1, last=9, head=HEAD),)})


def reason_of(group: SealedGroup, payload: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        group.open(payload)
    return refusal.value.reason


def forge(group: SealedGroup, part: SignedPart) -> bytes:
    """What a member, who has the epoch key, can make of any signed part."""
    return group.seal(encode_signed_part(part), random_bytes=os.urandom)


# --- what must work -----------------------------------------------------------------------------


def test_a_sealed_message_opens_to_what_was_signed(
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes, random_bytes: RandomBytes
) -> None:
    sds = sds_bytes(alice.participant_id)
    signed = group.sign(alice, sds, CLAIM, NOW)
    opened = group.open(group.seal(signed, random_bytes=random_bytes))
    assert opened.sender_id == alice.participant_id
    assert opened.sender_public_key == alice.public_key
    assert opened.sds_bytes == sds
    assert opened.claim == CLAIM
    assert opened.signed_ms == NOW
    assert opened.raw == signed
    assert opened.repaired_by is None


def test_a_retransmission_has_the_same_signed_part_under_another_seal(
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes, random_bytes: RandomBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    payloads = [group.seal(signed, random_bytes=random_bytes) for _ in range(3)]
    assert len(set(payloads)) == 3
    ciphertexts = [decode_envelope(payload)[1] for payload in payloads]
    assert len({ciphertext[:16] for ciphertext in ciphertexts}) == 3
    assert {group.open(payload).raw for payload in payloads} == {signed}


def test_a_repair_proves_both_the_sender_and_the_responder(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    wrapped = group.wrap_repair(bob, signed, MORE_CLAIMED, LATER)
    opened = group.open(group.seal(wrapped, random_bytes=os.urandom))
    assert opened == replace(
        group.read(signed),
        repaired_by=bob.participant_id,
    )
    assert opened.sender_id == alice.participant_id
    assert opened.raw == signed


def test_the_largest_message_with_the_largest_holdings_can_still_be_repaired(
    alice: Identity, bob: Identity, group: SealedGroup
) -> None:
    def signed_part(content_bytes: int) -> bytes:
        sds = sds_pb2.Message(
            sender_id=alice.participant_id, lamport_timestamp=1, content=bytes(content_bytes)
        ).SerializeToString()
        return group.sign(alice, sds, None, NOW)

    room = MAX_SIGNED_PART_BYTES - len(signed_part(100_000))
    largest = signed_part(100_000 + room)
    assert len(largest) == MAX_SIGNED_PART_BYTES
    with pytest.raises(LocalProtocolError, match="too large"):
        signed_part(100_001 + room)
    everything: Holdings = {
        InstanceId(number.to_bytes(16, "big")): (SequenceRange(first=1, last=2**53 - 1, head=HEAD),)
        for number in range(1, MAX_AUTHORS)
    }
    wrapped = group.wrap_repair(bob, largest, Claim(everything), LATER)
    assert len(wrapped) > len(largest) + 0.9 * MAX_CLAIM_BYTES
    statements = (bytes(MAX_STATEMENT_BYTES),) * MAX_STATEMENTS
    payload = group.seal(wrapped, random_bytes=os.urandom, statements=statements)
    assert len(payload) <= MAX_ENVELOPE_BYTES
    assert group.open(payload).raw == largest
    assert len(_largest_repair_of(largest)) == MAX_PLAINTEXT_BYTES, "not a byte is given away"
    with pytest.raises(LocalProtocolError, match="too large"):
        group.seal(bytes(MAX_PLAINTEXT_BYTES), random_bytes=os.urandom)


def test_nobody_signs_in_somebody_elses_name_by_mistake(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    with pytest.raises(LocalProtocolError):
        group.sign(alice, sds_bytes(bob.participant_id), None, NOW)


def test_a_repair_of_a_repair_or_of_nothing_is_never_made(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    wrapped = group.wrap_repair(bob, signed, None, LATER)
    for original in (wrapped, b"", b"garbage"):
        with pytest.raises(LocalProtocolError):
            group.wrap_repair(alice, original, None, LATER)


def test_groups_are_new_and_their_topics_tell_nothing(random_bytes: RandomBytes) -> None:
    first, second = new_group(random_bytes), new_group(random_bytes)
    assert first.group_id != second.group_id
    assert first.epoch_keys != second.epoch_keys
    keys = [*first.epoch_keys, *second.epoch_keys]
    topics = {content_topic_of(key) for key in keys}
    assert len(topics) == 2
    for topic in topics:
        application, version, name, encoding = topic.removeprefix("/").split("/")
        assert (application, version, encoding) == ("causerie", "1", "proto")
        assert len(name) == 32
        assert name not in b"".join(keys).hex()


def test_secrets_and_text_appear_in_no_representation(
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    opened = group.read(group.sign(alice, sds_bytes(alice.participant_id), None, NOW))
    assert "Bonjour" not in repr(opened)
    assert repr(group.epoch_keys[0]) not in repr(group)


@pytest.mark.parametrize(
    ("group_id", "keys"),
    [(31, (32,)), (32, (31,)), (32, (33,)), (32, ()), (32, (32, 31)), (32, (32, 32))],
)
def test_a_group_with_a_wrong_length_no_epoch_or_one_twice_does_not_exist(
    group_id: int, keys: tuple[int, ...]
) -> None:
    with pytest.raises(LocalProtocolError):
        SealedGroup(group_id=bytes(group_id), epoch_keys=tuple(map(bytes, keys)))


# --- outsiders ----------------------------------------------------------------------------------


@pytest.fixture
def payload(alice: Identity, group: SealedGroup, sds_bytes: SdsBytes) -> bytes:
    signed = group.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    return group.seal(signed, random_bytes=os.urandom)


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


# --- epochs -------------------------------------------------------------------------------------


@pytest.fixture
def later(group: SealedGroup) -> SealedGroup:
    """The same group, one epoch on."""
    return replace(group, epoch_keys=(*group.epoch_keys, b"2" * 32))


def test_we_seal_and_sign_in_the_newest_epoch_and_open_both(
    alice: Identity, group: SealedGroup, later: SealedGroup, sds_bytes: SdsBytes, payload: bytes
) -> None:
    signed = later.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    assert decode_signed_part(signed).epoch_id == later.epoch_id != group.epoch_id
    newer = later.seal(signed, random_bytes=os.urandom)
    assert decode_header(decode_envelope(newer)[0]).epoch_id == later.epoch_id
    assert later.open(newer).raw == signed
    assert later.open_checked(later.precheck(newer)).raw == signed
    assert later.open(payload) == group.open(payload)
    assert reason_of(group, newer) == "unknown_epoch", "whoever was not told the key"


def test_old_history_is_repaired_in_a_later_epoch(
    alice: Identity, bob: Identity, group: SealedGroup, later: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    for part in (signed, later.wrap_repair(bob, signed, None, LATER)):
        opened = later.open(later.seal(part, random_bytes=os.urandom))
        assert (opened.raw, opened.sender_id) == (signed, alice.participant_id)
        assert later.read(part).raw == signed


def test_who_knows_the_newest_epoch_only_takes_nothing_that_was_signed_before(
    alice: Identity, bob: Identity, group: SealedGroup, later: SealedGroup, sds_bytes: SdsBytes
) -> None:
    newcomer = replace(later, epoch_keys=later.epoch_keys[1:])
    signed = group.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    for part in (signed, later.wrap_repair(bob, signed, None, LATER)):
        assert reason_of(newcomer, later.seal(part, random_bytes=os.urandom)) == "unknown_epoch"


def test_what_was_signed_in_one_epoch_is_not_true_in_another(
    alice: Identity, group: SealedGroup, later: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = decode_signed_part(group.sign(alice, sds_bytes(alice.participant_id), None, NOW))
    moved = structs.replace(signed, epoch_id=later.epoch_id)
    assert reason_of(later, forge(later, moved)) == "bad_signature"
    assert (
        reason_of(later, forge(later, structs.replace(signed, epoch_id=bytes(8))))
        == "unknown_epoch"
    )


def test_a_seal_does_not_pass_for_one_of_another_epoch(later: SealedGroup, payload: bytes) -> None:
    encoded, ciphertext = decode_envelope(payload)
    moved = structs.replace(decode_header(encoded), epoch_id=later.epoch_id)
    assert reason_of(later, encode_envelope(encode_header(moved), ciphertext)) == "bad_commitment"


def test_the_id_of_an_epoch_follows_from_its_key_and_group(group: SealedGroup) -> None:
    (key,) = group.epoch_keys
    assert group.epoch_id == epoch_commitment(group.group_id, key)[:8]
    others = {
        epoch_commitment(bytes(32), key),
        epoch_commitment(group.group_id, bytes(32)),
        epoch_commitment(group.group_id, key),
    }
    assert len(others) == 3
    assert all(len(commitment) == 32 for commitment in others)
    with pytest.raises(TypeError):
        replace(group, epoch_id=bytes(8))  # type: ignore[call-arg]


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
    twice = signed_repair_of(group, bob, encode_signed_part(once))
    assert reason_of(group, forge(group, twice)) == "nested_repair"
    # A signature under a message does not pass for one under a repair of the same bytes.
    as_message = structs.replace(once, sds_message=once.original, original=b"")
    assert reason_of(group, forge(group, as_message)) == "bad_signature"
    both = structs.replace(once, sds_message=part.sds_message)
    assert reason_of(group, forge(group, both)) == "malformed"
    assert reason_of(group, forge(group, structs.replace(once, original=b""))) == "malformed"


def signed_repair_of(group: SealedGroup, identity: Identity, original: bytes) -> SignedPart:
    """A correctly signed repair of anything, which ``wrap_repair`` refuses to make."""
    return decode_signed_part(group._signed(identity, "causerie/2/repair", original, None, LATER))


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
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.crypto.sealed.encode_claim", lambda _: b"\xff\xff")
    signed = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    assert reason_of(group, group.seal(signed, random_bytes=os.urandom)) == "bad_holdings"


def test_sds_bytes_that_are_none_are_refused(alice: Identity, group: SealedGroup) -> None:
    part = decode_signed_part(group._signed(alice, "causerie/2/message", b"\xff", None, NOW))
    assert reason_of(group, forge(group, part)) == "malformed"


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


def seal_raw(group: SealedGroup, padded: bytes) -> bytes:
    """What a member can seal: anything."""
    salt = os.urandom(SALT_BYTES)
    keys = _message_keys(group._newest, salt)
    header = encode_header(
        EnvelopeHeader(
            group_tag=group.group_tag,
            epoch_id=group.epoch_id,
            salt=salt,
            commitment=keys.commitment,
        )
    )
    return encode_envelope(header, AESGCM(keys.key).encrypt(keys.nonce, padded, header))


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
        repair = group._signed(alice, "causerie/2/repair", other, None, LATER)
        assert reason_of(group, group.seal(repair, random_bytes=os.urandom)) == "not_canonical"
    wrapped = group.wrap_repair(alice, signed, MORE_CLAIMED, LATER)
    for other in other_forms(wrapped):
        assert reason_of(group, group.seal(other, random_bytes=os.urandom)) == "not_canonical"


def test_every_layer_of_an_envelope_has_one_form(
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes, payload: bytes
) -> None:
    small = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    inside = envelope_pb2.SealedPlaintext(statements=[b"s"], signed_part=small).SerializeToString()
    assert group.open(seal_raw(group, pad(inside))).raw == small
    reordered = envelope_pb2.SealedPlaintext(statements=[b"s"]).SerializeToString() + (
        envelope_pb2.SealedPlaintext(signed_part=small).SerializeToString()
    )
    for plaintext in (reordered, inside + b"\x7a\x01x", b"\x0a\x01x" + inside):
        assert reason_of(group, seal_raw(group, pad(plaintext))) == "not_canonical"
    for other in other_forms(payload):
        assert envelope_pb2.SealedEnvelope.FromString(other).ciphertext
        assert reason_of(group, other) == "not_canonical"
    encoded, ciphertext = decode_envelope(payload)
    for header in (encoded + b"\x7a\x01x", b"\x08\x02" + encoded, encoded[2:] + encoded[:2]):
        assert reason_of(group, encode_envelope(header, ciphertext)) == "not_canonical"


# --- padding ------------------------------------------------------------------------------------


def test_length_tells_little_of_what_is_sealed(
    alice: Identity, group: SealedGroup, random_bytes: RandomBytes
) -> None:
    def sealed_size(words: str) -> int:
        sds = sds_pb2.Message(sender_id=alice.participant_id, content=words.encode())
        signed = group.sign(alice, sds.SerializeToString(), None, NOW)
        return len(group.seal(signed, random_bytes=random_bytes))

    assert {sealed_size("x" * size) for size in range(30)} == {sealed_size("")}
    assert len({sealed_size("x" * size) for size in range(1_000)}) < 40


def test_padding_is_checked_under_the_seal(
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    plaintext = envelope_pb2.SealedPlaintext(signed_part=signed).SerializeToString()
    padded = pad(plaintext)
    assert group.open(seal_raw(group, padded)).raw == signed
    hidden = padded[:-1] + b"x"
    longer = len(plaintext).to_bytes(4, "big") + plaintext.ljust(2_044, b"\0")
    for wrong in (hidden, longer, padded[:-1], padded + b"\0", plaintext, b""):
        assert reason_of(group, seal_raw(group, wrong)) == "bad_padding"


def test_a_repair_is_padded_once(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    received = group.open(group.seal(signed, random_bytes=os.urandom)).raw
    assert received == signed
    wrapped = group.wrap_repair(bob, received, None, LATER)
    assert len(wrapped) < len(signed) + 128


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


def test_statements_come_along_under_the_seal_and_are_bounded(
    alice: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    statements = (b"a statement", bytes(MAX_STATEMENT_BYTES))
    payload = group.seal(signed, random_bytes=os.urandom, statements=statements)
    assert group.open(payload).statements == statements
    assert group.open(payload).raw == signed
    for surplus in ([b"1", b"2", b"3"], [bytes(MAX_STATEMENT_BYTES + 1)]):
        with pytest.raises(LocalProtocolError):
            group.seal(signed, random_bytes=os.urandom, statements=surplus)
        plaintext = envelope_pb2.SealedPlaintext(signed_part=signed, statements=surplus)
        with pytest.raises(RemoteProtocolError, match="malformed"):
            decode_plaintext(plaintext.SerializeToString())
