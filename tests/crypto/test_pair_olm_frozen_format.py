"""The formats around Olm, frozen: bundle, plaintext, envelope with its proof, what bypasses MVDS.

A second implementation of proof and seal without a ratchet reads the same vectors.  Olm's
own messages are vodozemac's, whose randomness cannot be given.
"""

import hmac
import json
from hashlib import sha256
from pathlib import Path
from typing import TypedDict

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.key_bundle import decode_key_bundle, encode_key_bundle
from engine.codec.olm import (
    NORMAL,
    OlmPlaintext,
    decode_olm_envelope,
    decode_olm_plaintext,
    encode_olm_envelope,
    encode_olm_plaintext,
)
from engine.codec.pair import OLM_VERSION, decode_any_pair_envelope, encode_pair_envelope
from engine.core.errors import RemoteProtocolError
from engine.core.ids import UnixMs
from engine.core.ratchet import MAX_ONE_TIME_KEYS, KeyBundle
from engine.crypto.identity import Identity
from engine.crypto.pair import KeysPart, PairSeal, pair_group_id
from engine.crypto.pair_proof import StaticProof

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "crypto"


class OlmVector(TypedDict):
    number: int
    bundle: str
    known: int
    payload: str
    plaintext: str
    sent_ms: int
    generation: int
    ciphertext: str
    envelope: str
    pair_envelope: str
    salt: str
    content: str
    unheld: str


OLM: OlmVector = json.loads((VECTORS / "pair_olm.json").read_text(encoding="utf-8"))
ALICE, BOB = (
    Identity(
        signing_key=bytes.fromhex(each["signing_key"]),
        encryption_key=bytes.fromhex(each["encryption_key"]),
    )
    for each in json.loads((VECTORS / "identities.json").read_text(encoding="utf-8"))
)
BUNDLE = KeyBundle(
    number=OLM["number"],
    identity_key=b"i" * 32,
    one_time_keys=(b"1" * 32, b"2" * 32),
    fallback_key=b"f" * 32,
)
SENT_MS = UnixMs(OLM["sent_ms"])


def proof(mine: Identity, theirs: Identity) -> StaticProof:
    return StaticProof(
        mine, peer_public_key=theirs.public_key, peer_encryption_key=theirs.encryption_public_key
    )


def test_all_is_written_and_read_as_frozen() -> None:
    assert encode_key_bundle(BUNDLE).hex() == OLM["bundle"]
    assert decode_key_bundle(bytes.fromhex(OLM["bundle"])) == BUNDLE
    plaintext = OlmPlaintext(known=OLM["known"], payload=bytes.fromhex(OLM["payload"]))
    assert encode_olm_plaintext(plaintext).hex() == OLM["plaintext"]
    assert decode_olm_plaintext(bytes.fromhex(OLM["plaintext"])) == plaintext
    ciphertext = bytes.fromhex(OLM["ciphertext"])
    made = proof(ALICE, BOB).prove(NORMAL, OLM["generation"], ciphertext, sent_ms=SENT_MS)
    assert encode_olm_envelope(made).hex() == OLM["envelope"]
    assert (
        encode_pair_envelope(bytes.fromhex(OLM["envelope"]), OLM_VERSION).hex()
        == (OLM["pair_envelope"])
    )
    read = decode_any_pair_envelope(bytes.fromhex(OLM["pair_envelope"]))
    assert read.version == OLM_VERSION
    envelope = decode_olm_envelope(read.sealed)
    assert envelope == made
    proof(BOB, ALICE).check(envelope)


def test_what_bypasses_mvds_is_written_and_read_as_frozen() -> None:
    content, salt = bytes.fromhex(OLM["content"]), bytes.fromhex(OLM["salt"])
    made = proof(ALICE, BOB).seal_unheld(content, salt=salt, sent_ms=SENT_MS)
    assert encode_olm_envelope(made).hex() == OLM["unheld"]
    proof(BOB, ALICE).check(made)
    assert proof(BOB, ALICE).open_unheld(made) == content


# --- a second implementation ----------------------------------------------------------------------


def hkdf(secret: bytes, length: int, info: bytes) -> bytes:
    key, output, block = hmac.digest(bytes(32), secret, "sha256"), b"", b""
    while len(output) < length:
        block = hmac.digest(key, block + info + bytes([len(output) // 32 + 1]), "sha256")
        output += block
    return output[:length]


def tuple_of(domain: str, *parts: bytes | int) -> bytes:
    """Each part with its type and length; a domain is text."""
    encoded = b"s" + len(domain).to_bytes(4, "big") + domain.encode()
    for part in parts:
        kind, raw = (b"b", part) if isinstance(part, bytes) else (b"i", part.to_bytes(8, "big"))
        encoded += kind + len(raw).to_bytes(4, "big") + raw
    return encoded


def shared() -> bytes:
    private = X25519PrivateKey.from_private_bytes(BOB.encryption_key)
    return private.exchange(X25519PublicKey.from_public_bytes(ALICE.encryption_public_key))


def derived(domain: str) -> bytes:
    group_id = pair_group_id(ALICE.public_key, BOB.public_key)
    return hkdf(shared(), 32, tuple_of(domain, bytes(group_id)))


def test_the_proof_by_the_book() -> None:
    envelope = bytes.fromhex(OLM["envelope"])
    ciphertext = bytes.fromhex(OLM["ciphertext"])
    head = bytes((1, NORMAL)) + OLM["generation"].to_bytes(4, "big") + SENT_MS.to_bytes(8, "big")
    proved = tuple_of(
        "causerie/1/olm-proof", ALICE.public_key, NORMAL, OLM["generation"], SENT_MS, ciphertext
    )
    made = hmac.digest(derived("causerie/1/olm-proof-key"), proved, sha256)
    assert envelope == head + made + ciphertext


def test_the_seal_without_a_ratchet_by_the_book() -> None:
    ciphertext = decode_olm_envelope(bytes.fromhex(OLM["unheld"])).ciphertext
    salt, sealed = ciphertext[:24], ciphertext[24:]
    info = tuple_of("causerie/1/unheld", ALICE.public_key, salt)
    once = hkdf(derived("causerie/1/unheld-key"), 44, info)
    padded = AESGCM(once[:32]).decrypt(once[32:], sealed, None)
    content = bytes.fromhex(OLM["content"])
    assert padded == (len(content).to_bytes(4, "big") + content).ljust(256, b"\0")


# --- bundles from outside -------------------------------------------------------------------------


@given(
    number=st.integers(-1, 2**54),
    sizes=st.lists(st.sampled_from([32, 32, 32, 31, 0]), min_size=2, max_size=14),
)
def test_a_bundle_has_one_form_and_its_bounds(number: int, sizes: list[int]) -> None:
    first, *others, last = (b"k" * size for size in sizes)
    if number < 0:
        return
    made = KeyBundle(
        number=number, identity_key=first, one_time_keys=tuple(others), fallback_key=last
    )
    encoded = encode_key_bundle(made)
    fits = set(sizes) == {32} and len(others) <= MAX_ONE_TIME_KEYS and 1 <= number < 2**53
    try:
        read = decode_key_bundle(encoded)
    except RemoteProtocolError:
        assert not fits
        return
    assert fits
    assert read == made
    for longer in (encoded + b"\x30\x01", encoded + encoded):
        try:
            decode_key_bundle(longer)
        except RemoteProtocolError:
            continue
        raise AssertionError("another form was read")


def test_a_signed_bundle_is_the_others_for_us_and_of_this_kind() -> None:
    keys = KeysPart(keys=bytes.fromhex(OLM["bundle"]))
    seals = [
        PairSeal(
            mine,
            peer_public_key=theirs.public_key,
            peer_encryption_key=theirs.encryption_public_key,
        )
        for mine, theirs in ((ALICE, BOB), (BOB, ALICE))
    ]
    assert seals[1].open(seals[0].seal(keys, signed_ms=SENT_MS)).body == keys
