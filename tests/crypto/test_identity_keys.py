"""Identities: stable ids, comparable fingerprints, signatures that only their owner makes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.entropy import RandomBytes
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.crypto.identity import Identity, fingerprint_of, participant_id_of, verify


def test_an_identity_comes_back_from_its_two_private_keys(alice: Identity) -> None:
    again = Identity(signing_key=alice.signing_key, encryption_key=alice.encryption_key)
    assert again == alice
    assert again.public_key == alice.public_key
    assert again.encryption_public_key == alice.encryption_public_key
    assert again.participant_id == alice.participant_id


def test_generated_identities_draw_each_key_afresh(random_bytes: RandomBytes) -> None:
    first, second = Identity.generate(random_bytes), Identity.generate(random_bytes)
    drawn = {
        first.signing_key,
        first.encryption_key,
        second.signing_key,
        second.encryption_key,
    }
    assert len(drawn) == 4


def test_private_keys_appear_in_no_representation(alice: Identity) -> None:
    shown = repr(alice) + str(alice)
    for secret in (alice.signing_key, alice.encryption_key):
        assert secret.hex() not in shown
        assert repr(secret) not in shown


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_private_keys_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(LocalProtocolError):
        Identity(signing_key=bytes(length), encryption_key=bytes(32))
    with pytest.raises(LocalProtocolError):
        Identity(signing_key=bytes(32), encryption_key=bytes(length))


def test_ids_and_fingerprints_have_their_documented_shape(alice: Identity, bob: Identity) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{21}[AQgw]", alice.participant_id)
    assert re.fullmatch(r"[0-9]{5}( [0-9]{5}){5}", alice.fingerprint)
    assert participant_id_of(alice.public_key) == alice.participant_id
    assert fingerprint_of(alice.public_key) == alice.fingerprint
    assert alice.participant_id != bob.participant_id
    assert alice.fingerprint != bob.fingerprint


def test_a_signature_holds_for_its_message_and_key_only(alice: Identity, bob: Identity) -> None:
    signature = alice.sign(b"message")
    verify(alice.public_key, signature, b"message")
    for key, signed, message in (
        (bob.public_key, signature, b"message"),
        (alice.public_key, signature, b"massage"),
        (alice.public_key, bob.sign(b"message"), b"message"),
        (alice.public_key, signature[:63], b"message"),
        (alice.public_key, signature + b"\0", b"message"),
        (alice.public_key, b"", b"message"),
    ):
        with pytest.raises(CryptoError) as refusal:
            verify(key, signed, message)
        assert refusal.value.reason == "bad_signature"


def test_a_signature_has_no_second_form(alice: Identity) -> None:
    """S + L would verify too if S were not required to be below the group's order."""
    order = 2**252 + 27742317777372353535851937790883648493
    signature = alice.sign(b"message")
    s = int.from_bytes(signature[32:], "little") + order
    assert s < 2**256
    with pytest.raises(CryptoError):
        verify(alice.public_key, signature[:32] + s.to_bytes(32, "little"), b"message")


@given(st.binary(max_size=40), st.binary(max_size=70), st.binary(max_size=40))
def test_verifying_garbage_only_ever_refuses(key: bytes, signature: bytes, message: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        verify(key, signature, message)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=64, max_size=64))
def test_verifying_keys_of_the_right_length_only_ever_refuses(key: bytes, signature: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        verify(key, signature, b"message")
