"""Olm and the proof around it: what opens, what does not, and the bounds of what was skipped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.olm import NORMAL, PRE_KEY, decode_olm_envelope, encode_olm_envelope
from engine.core.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from engine.core.ids import UnixMs
from engine.crypto.identity import Identity
from engine.crypto.olm import (
    MAX_GAP,
    SKIPPED_KEYS,
    OlmAccount,
    OlmSession,
    olm_message,
)
from engine.crypto.pair_proof import StaticProof

ANN, BOB, EVE = (
    Identity(signing_key=bytes([number]) * 32, encryption_key=bytes([number + 9]) * 32)
    for number in (1, 2, 3)
)
KEY = bytes(range(32))
NOW = UnixMs(1_790_000_000_000)


def proof(mine: Identity, theirs: Identity) -> StaticProof:
    return StaticProof(
        mine,
        peer_public_key=theirs.public_key,
        peer_encryption_key=theirs.encryption_public_key,
    )


def talking() -> tuple[OlmSession, OlmSession]:
    """Two sides of a session, of which both have heard the other."""
    ann, bob = OlmAccount(), OlmAccount()
    keys = bob.new_bundle(1, number=1)
    first = ann.begin(keys.identity_key, keys.one_time_keys[0])
    kind, ciphertext = first.encrypt(b"hello")
    assert kind == PRE_KEY
    own = ann.new_bundle(1, number=1).identity_key
    second, plaintext = bob.answer(own, olm_message(kind, ciphertext))
    assert plaintext == b"hello"
    assert first.session_id == second.session_id
    assert first.decrypt(olm_message(*second.encrypt(b"and you"))) == b"and you"
    assert first.encrypt(b"")[0] == NORMAL
    return first, second


def test_forty_skipped_messages_can_still_be_read_and_no_more() -> None:
    ann, bob = talking()
    sent = [olm_message(*ann.encrypt(b"%d" % number)) for number in range(SKIPPED_KEYS + 20)]
    assert bob.decrypt(sent[-1]) == b"%d" % (len(sent) - 1)
    read = []
    for number, message in enumerate(sent[:-1]):
        try:
            assert bob.decrypt(message) == b"%d" % number
        except CryptoError as error:
            assert error.reason == "not_decrypted"  # noqa: PT017 - of the first ones, below
        else:
            read.append(number)
    assert read == list(range(len(sent) - 1 - SKIPPED_KEYS, len(sent) - 1))


def test_a_gap_has_a_limit_and_leaves_the_session_as_it_was() -> None:
    ann, bob = talking()
    sent = [olm_message(*ann.encrypt(b"x")) for _ in range(MAX_GAP + 3)]
    before = OlmSession.from_pickle(bob.pickle(KEY), KEY)
    with pytest.raises(CryptoError):
        bob.decrypt(sent[-1])
    assert bob.decrypt(sent[0]) == before.decrypt(sent[0]) == b"x"


def test_a_one_time_key_serves_once_and_a_fallback_key_again() -> None:
    ann, bob = OlmAccount(), OlmAccount()
    own, keys = ann.new_bundle(0, number=1).identity_key, bob.new_bundle(1, number=1)
    once = [
        olm_message(*ann.begin(keys.identity_key, keys.one_time_keys[0]).encrypt(b"1"))
        for _ in range(2)
    ]
    assert bob.answer(own, once[0])[1] == b"1"
    with pytest.raises(CryptoError):
        bob.answer(own, once[1])
    for _ in range(2):
        message = olm_message(*ann.begin(keys.identity_key, keys.fallback_key).encrypt(b"2"))
        assert bob.answer(own, message)[1] == b"2"


def test_a_session_of_somebody_else_under_this_name_does_not_begin() -> None:
    ann, bob, eve = OlmAccount(), OlmAccount(), OlmAccount()
    own, keys = ann.new_bundle(0, number=1).identity_key, bob.new_bundle(1, number=1)
    message = olm_message(*eve.begin(keys.identity_key, keys.fallback_key).encrypt(b"I am Ann"))
    with pytest.raises(CryptoError):
        bob.answer(own, message)


def test_a_pickle_opens_with_its_key_only() -> None:
    ann, _ = talking()
    account = OlmAccount()
    for pickle, read in (
        (ann.pickle(KEY), OlmSession.from_pickle),
        (account.pickle(KEY), OlmAccount.from_pickle),
    ):
        read(pickle, KEY)
        with pytest.raises(LocalProtocolError):
            read(pickle, bytes(32))
        with pytest.raises(LocalProtocolError):
            read(pickle[:-4], KEY)


@pytest.mark.parametrize("key", [bytes(32), (1).to_bytes(32, "little"), b"short"])
def test_keys_that_are_none_begin_nothing(key: bytes) -> None:
    keys = OlmAccount().new_bundle(1, number=1)
    for bundle in (replace(keys, identity_key=key), replace(keys, fallback_key=key)):
        with pytest.raises(CryptoError) as error:
            OlmAccount().begin(bundle.identity_key, bundle.fallback_key)
        assert error.value.reason == "bad_olm_key"


def test_an_envelope_is_proved_to_the_other_and_to_nobody_else() -> None:
    envelope = proof(ANN, BOB).prove(NORMAL, 7, b"ciphertext", sent_ms=NOW)
    sent = encode_olm_envelope(envelope)
    assert decode_olm_envelope(sent) == envelope
    proof(BOB, ANN).check(envelope)
    for wrong in (
        proof(ANN, BOB),  # sent back to its author
        proof(EVE, ANN),
        proof(BOB, EVE),
    ):
        with pytest.raises(CryptoError) as error:
            wrong.check(envelope)
        assert error.value.reason == "bad_proof"
    for changed in (
        replace(envelope, kind=PRE_KEY),
        replace(envelope, generation=8),
        replace(envelope, sent_ms=UnixMs(NOW + 1)),
        replace(envelope, ciphertext=b"ciphertexT"),
        replace(envelope, proof=bytes(32)),
    ):
        with pytest.raises(CryptoError):
            proof(BOB, ANN).check(changed)


def test_either_could_have_made_the_proof() -> None:
    """So it shows a third person nothing: whoever receives can make the very same bytes."""
    made = proof(ANN, BOB).prove(NORMAL, 1, b"x", sent_ms=NOW)
    forger = StaticProof(
        Identity(signing_key=ANN.signing_key, encryption_key=BOB.encryption_key),
        peer_public_key=BOB.public_key,
        peer_encryption_key=ANN.encryption_public_key,
    )
    assert forger.prove(NORMAL, 1, b"x", sent_ms=NOW) == made


@given(data=st.binary(max_size=120))
def test_any_bytes_are_an_envelope_in_one_form_or_refused(data: bytes) -> None:
    try:
        envelope = decode_olm_envelope(data)
    except RemoteProtocolError:
        return
    assert encode_olm_envelope(envelope) == data


@given(kind=st.sampled_from([PRE_KEY, NORMAL]), ciphertext=st.binary(max_size=200))
def test_any_ciphertext_is_refused_by_its_reason(kind: int, ciphertext: bytes) -> None:
    with pytest.raises(CryptoError):
        OlmAccount().answer(bytes(31) + b"\x09", olm_message(kind, ciphertext))
