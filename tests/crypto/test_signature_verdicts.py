"""Which signatures count: as RFC 8032 and OpenSSL say, and nothing that has a twin."""

from hashlib import sha512

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import CryptoError
from engine.crypto.identity import verify

ORDER = 2**252 + 27742317777372353535851937790883648493

# RFC 8032, 7.1: public key, message, signature.
RFC_8032 = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
            "d25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
            "387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
            "4a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
]


def accepts(public_key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        verify(public_key, signature, message)
    except CryptoError as error:
        return error.reason != "bad_signature"  # Any other reason is a failure of the test.
    return True


def openssl_accepts(public_key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


@pytest.mark.parametrize(("public_key", "message", "signature"), RFC_8032)
def test_the_vectors_of_rfc_8032(public_key: str, message: str, signature: str) -> None:
    assert accepts(*map(bytes.fromhex, (public_key, signature, message)))


@given(
    seed=st.binary(min_size=32, max_size=32),
    message=st.binary(max_size=300),
    flip=st.integers(min_value=0, max_value=64 * 8),
)
def test_whole_and_damaged_signatures_are_judged_as_by_openssl(
    seed: bytes, message: bytes, flip: int
) -> None:
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public_key, signature = key.public_key().public_bytes_raw(), bytearray(key.sign(message))
    if flip < 64 * 8:
        signature[flip // 8] ^= 1 << flip % 8
    verdict = accepts(public_key, bytes(signature), message)
    assert verdict == openssl_accepts(public_key, bytes(signature), message) == (flip == 64 * 8)
    assert not accepts(public_key, bytes(signature), message + b"x")


@pytest.mark.parametrize("length", [0, 1, 63, 65, 128])
def test_a_signature_has_64_bytes(length: int) -> None:
    """Bytes that are cut off the signature must not be taken from the message instead."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    public_key, signed = key.public_key().public_bytes_raw(), key.sign(b"message") + b"message"
    whole = (signed + bytes(128))[: 64 + 128]
    assert not accepts(public_key, whole[:length], whole[length:])


def test_a_signature_has_no_twin() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    public_key, signature = key.public_key().public_bytes_raw(), key.sign(b"message")
    twin = int.from_bytes(signature[32:], "little") + ORDER
    assert not accepts(public_key, signature[:32] + twin.to_bytes(32, "little"), b"message")


def test_r_of_small_order_is_refused_where_openssl_takes_it() -> None:
    """Only the owner of a key can make one, and gives the key away by it."""
    seed, message = bytes(32), b"message"
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public_key = key.public_key().public_bytes_raw()
    scalar = bytearray(sha512(seed).digest()[:32])
    scalar[0] &= 248
    scalar[31] = scalar[31] & 127 | 64
    neutral = (1).to_bytes(32, "little")
    challenge = int.from_bytes(sha512(neutral + public_key + message).digest(), "little")
    s = challenge * int.from_bytes(scalar, "little") % ORDER
    signature = neutral + s.to_bytes(32, "little")
    assert openssl_accepts(public_key, signature, message)
    assert not accepts(public_key, signature, message)
