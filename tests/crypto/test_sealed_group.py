"""The sealed envelope: what is sealed opens, in every epoch, as it was signed, and padded."""

import os
from dataclasses import replace

import pytest
from msgspec import structs

from engine.codec.envelope import (
    MAX_STATEMENT_BYTES,
    MAX_STATEMENTS,
    MAX_TIME_MS,
    SignedPart,
    decode_envelope,
    decode_header,
    decode_plaintext,
    decode_signed_part,
    encode_envelope,
    encode_header,
    encode_plaintext,
    encode_signed_part,
)
from engine.codec.holdings import MAX_AUTHORS, MAX_CLAIM_BYTES
from engine.codec.padding import MAX_PLAINTEXT_BYTES, pad
from engine.core.entropy import RandomBytes
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import SIGNATURE_BYTES, InstanceId, UnixMs
from engine.core.sds.vocabulary import Claim, Holdings, SequenceRange
from engine.crypto.identity import Identity
from engine.crypto.sealed import (
    MAX_ENVELOPE_BYTES,
    MAX_SIGNED_PART_BYTES,
    SealedGroup,
    content_topic_of,
    epoch_commitment,
    new_group,
)
from proto import envelope_pb2, sds_pb2
from tests.crypto.conftest import SdsBytes
from tests.crypto.sealed_examples import CLAIM, HEAD, LATER, MORE_CLAIMED, NOW, forge, reason_of
from tests.forging import seal_padded

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
    most = SignedPart(
        sender_public_key=alice.public_key,
        epoch_id=group.epoch_id,
        signed_ms=UnixMs(MAX_TIME_MS),
        signature=bytes(SIGNATURE_BYTES),
        original=largest,
        claims=bytes(MAX_CLAIM_BYTES),
    )
    plaintext = encode_plaintext(encode_signed_part(most), statements)
    assert len(plaintext) == MAX_PLAINTEXT_BYTES, "not a byte is given away"
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


def test_old_history_is_repaired_in_its_own_epoch(
    alice: Identity, bob: Identity, group: SealedGroup, later: SealedGroup, sds_bytes: SdsBytes
) -> None:
    """Or whoever was let in without its key could have it sent again in the present one."""
    signed = group.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    newcomer = replace(later, epoch_keys=later.epoch_keys[1:])
    for part in (signed, later.wrap_repair(bob, signed, None, LATER)):
        assert later.epoch_of(part) == group.epoch_id
        payload = later.seal(part, random_bytes=os.urandom, epoch_id=later.epoch_of(part))
        for reader in (later, group):
            opened = reader.open(payload)
            assert (opened.raw, opened.sender_id) == (signed, alice.participant_id)
        with pytest.raises(RemoteProtocolError, match="unknown_epoch"):
            newcomer.precheck(payload)
        assert later.read(part).raw == signed


def test_nothing_is_repaired_whose_epoch_one_has_no_key_of(
    alice: Identity, bob: Identity, group: SealedGroup, later: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = later.sign(alice, sds_bytes(alice.participant_id), CLAIM, NOW)
    with pytest.raises(LocalProtocolError):
        group.wrap_repair(bob, signed, None, LATER)


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
    assert group.open(seal_padded(group, padded)).raw == signed
    hidden = padded[:-1] + b"x"
    longer = len(plaintext).to_bytes(4, "big") + plaintext.ljust(2_044, b"\0")
    for wrong in (hidden, longer, padded[:-1], padded + b"\0", plaintext, b""):
        assert reason_of(group, seal_padded(group, wrong)) == "bad_padding"


def test_a_repair_is_padded_once(
    alice: Identity, bob: Identity, group: SealedGroup, sds_bytes: SdsBytes
) -> None:
    signed = group.sign(alice, sds_bytes(alice.participant_id), None, NOW)
    received = group.open(group.seal(signed, random_bytes=os.urandom)).raw
    assert received == signed
    wrapped = group.wrap_repair(bob, received, None, LATER)
    assert len(wrapped) < len(signed) + 128


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
