"""Identity keys and peer ids against the vectors of libp2p's peer-ids spec."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.libp2p import KeyType, PublicKey, decode_public_key, encode_public_key
from engine.core.errors import ConfigError, CryptoError, RemoteProtocolError
from engine.network.libp2p.keys import IdentityKey, verify
from engine.network.libp2p.peer_id import (
    base58btc_decode,
    base58btc_encode,
    parse_peer_id,
    peer_id_from_bytes,
    peer_id_of_key,
    peer_id_to_bytes,
)

VECTORS = Path(__file__).parents[2] / "vectors" / "noise" / "libp2p_identity_keys.json"
KEYS = json.loads(VECTORS.read_text())
ED25519_PEER = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"
SHA256_PEER = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"


def test_our_key_encodes_to_the_published_public_key() -> None:
    private = bytes.fromhex(KEYS["ed25519"]["private"])[4:36]
    assert encode_public_key(IdentityKey(private).public_key).hex() == KEYS["ed25519"]["public"]


def test_published_keys_decode_and_verify_signatures() -> None:
    ed25519 = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(KEYS["ed25519"]["private"])[4:36])
    key = decode_public_key(bytes.fromhex(KEYS["ed25519"]["public"]))
    verify(key, ed25519.sign(b"message"), b"message")
    with pytest.raises(CryptoError, match="identity_bad_signature"):
        verify(key, ed25519.sign(b"message"), b"another message")

    secret = int(KEYS["secp256k1"]["private"][8:], 16)
    secp256k1 = ec.derive_private_key(secret, ec.SECP256K1())
    key = decode_public_key(bytes.fromhex(KEYS["secp256k1"]["public"]))
    signature = secp256k1.sign(b"message", ec.ECDSA(SHA256()))
    verify(key, signature, b"message")
    for wrong in (signature[:-1], signature + b"\0", b"", bytes(70)):
        with pytest.raises(CryptoError, match="identity_bad_signature"):
            verify(key, wrong, b"message")


@pytest.mark.parametrize(
    ("key_type", "data", "reason"),
    [
        (KeyType.ED25519, bytes(31), "identity_bad_key"),
        (KeyType.ED25519, bytes(32), "identity_small_order_key"),
        (KeyType.ED25519, bytes([1]) + bytes(31), "identity_small_order_key"),
        (KeyType.ED25519, bytes([1]) + bytes(30) + b"\x80", "identity_small_order_key"),
        (KeyType.ED25519, b"\xee" + b"\xff" * 30 + b"\x7f", "identity_small_order_key"),
        (KeyType.SECP256K1, bytes(33), "identity_bad_key"),
        (KeyType.SECP256K1, bytes(32), "identity_bad_key"),
        (KeyType.RSA, bytes(300), "identity_key_type_unsupported"),
        (KeyType.ECDSA, bytes(91), "identity_key_type_unsupported"),
    ],
)
def test_unusable_keys_are_refused(key_type: KeyType, data: bytes, reason: str) -> None:
    with pytest.raises(CryptoError, match=reason):
        verify(PublicKey(key_type=key_type, data=data), bytes(64), b"message")


def test_own_key_of_another_length_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="32 bytes"):
        IdentityKey(bytes(31))


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        ("", "public_key_incomplete"),
        ("0801", "public_key_incomplete"),
        ("080912201ed1", "public_key_undecodable"),
        ("08091201ff", "public_key_unknown_type"),
        ("1201ff0801", "public_key_not_canonical"),
        ("08011201ff1a00", "public_key_not_canonical"),
        ("0881001201ff", "public_key_not_canonical"),
        ("00" * 3000, "public_key_too_long"),
    ],
)
def test_only_the_one_encoding_of_a_public_key_is_taken(encoded: str, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        decode_public_key(bytes.fromhex(encoded))


@given(st.binary(max_size=80))
def test_public_key_decoder_lets_nothing_else_out(data: bytes) -> None:
    try:
        key = decode_public_key(data)
    except RemoteProtocolError:
        return
    assert encode_public_key(key) == data


def test_peer_ids_of_the_published_keys() -> None:
    ed25519 = peer_id_of_key(bytes.fromhex(KEYS["ed25519"]["public"]))
    secp256k1 = peer_id_of_key(bytes.fromhex(KEYS["secp256k1"]["public"]))
    assert ed25519.startswith("12D3KooW")
    assert secp256k1.startswith("16Uiu2HA")
    assert peer_id_to_bytes(ed25519).hex() == "0024" + KEYS["ed25519"]["public"]
    assert peer_id_of_key(bytes(43)).startswith("Qm")


# --- what passes for a signature of secp256k1, and what for a key ---------------------------------

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
FIELD = 2**256 - 2**32 - 977
PRIVATE = ec.derive_private_key(5, ec.SECP256K1())
POINT = PRIVATE.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
R, S = decode_dss_signature(PRIVATE.sign(b"message", ec.ECDSA(SHA256())))


def integer(value: int, *, padding: int = 0) -> bytes:
    """In DER, which has one leading zero if the first bit would be set, and none otherwise."""
    content = bytes(padding) + value.to_bytes(value.bit_length() // 8 + 1, "big")
    return b"\x02" + bytes([len(content)]) + content


def sequence(*parts: bytes) -> bytes:
    content = b"".join(parts)
    return b"\x30" + bytes([len(content)]) + content


@pytest.mark.parametrize("s", [min(S, ORDER - S), max(S, ORDER - S)], ids=["low", "high"])
def test_either_value_of_s_is_taken_as_by_go_libp2p(s: int) -> None:
    key = PublicKey(key_type=KeyType.SECP256K1, data=POINT)
    verify(key, sequence(integer(R), integer(s)), b"message")


@pytest.mark.parametrize(
    "signature",
    [
        sequence(integer(R), integer(S)) + b"\0",
        sequence(integer(R), integer(S), b"\x05\0"),
        b"\x30\x81" + sequence(integer(R), integer(S))[1:],
        b"\x30\x80" + integer(R) + integer(S) + b"\0\0",
        sequence(integer(R, padding=1), integer(S)),
        sequence(integer(R), b"\x02\x20" + (S | 1 << 255).to_bytes(32, "big")),
        sequence(integer(0), integer(S)),
        sequence(integer(R), integer(0)),
        sequence(integer(R + ORDER), integer(S)),
        sequence(integer(R), integer(S + ORDER)),
        R.to_bytes(32, "big") + S.to_bytes(32, "big"),
        b"",
    ],
    ids=[
        "trailing", "third part", "long length", "no length", "padded", "negative", "r is 0",
        "s is 0", "r too large", "s too large", "not DER", "empty",
    ],
)  # fmt: skip
def test_a_signature_has_one_encoding(signature: bytes) -> None:
    with pytest.raises(CryptoError, match="identity_bad_signature"):
        verify(PublicKey(key_type=KeyType.SECP256K1, data=POINT), signature, b"message")


@pytest.mark.parametrize(
    "point",
    [
        PRIVATE.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint),
        b"\x04" + POINT[1:],
        b"\x06" + POINT[1:],
        b"\x02" + (FIELD + 1).to_bytes(32, "big"),
        b"\x02" + (5).to_bytes(32, "big"),
        bytes(33),
        b"\0",
        b"",
    ],
    ids=["whole", "cut", "hybrid", "x too large", "not on the curve", "zero", "infinity", "empty"],
)
def test_a_key_is_a_compressed_point_in_its_one_encoding(point: bytes) -> None:
    key = PublicKey(key_type=KeyType.SECP256K1, data=point)
    with pytest.raises(CryptoError, match="identity_bad_key"):
        verify(key, sequence(integer(R), integer(S)), b"message")


def test_an_ed25519_signature_has_no_twin() -> None:
    order = 2**252 + 27742317777372353535851937790883648493
    own = IdentityKey(b"q" * 32)
    signature = own.sign(b"message")
    verify(own.public_key, signature, b"message")
    twin = int.from_bytes(signature[32:], "little") + order
    for other in (signature[:32] + twin.to_bytes(32, "little"), signature + b"\0", signature[:63]):
        with pytest.raises(CryptoError, match="identity_bad_signature"):
            verify(own.public_key, other, b"message")


def test_spec_examples_in_both_forms() -> None:
    assert parse_peer_id(ED25519_PEER) == ED25519_PEER
    assert parse_peer_id(SHA256_PEER) == SHA256_PEER
    as_cid = "bafzbeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqxe"
    assert parse_peer_id(as_cid) == SHA256_PEER


@pytest.mark.parametrize(
    "text",
    ["", "1", "Qm", "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5", "12D3KooW0", "zQm", "b", "b!",
     "bafy", "1" * 200, "ümlaut", "bü", ED25519_PEER + "1"],
)  # fmt: skip
def test_what_is_no_peer_id(text: str) -> None:
    with pytest.raises(RemoteProtocolError):
        parse_peer_id(text)


@given(st.binary(max_size=60))
def test_base58_round_trip(data: bytes) -> None:
    assert base58btc_decode(base58btc_encode(data)) == data


@given(st.text(max_size=140))
def test_peer_id_parser_is_canonical_or_refuses(text: str) -> None:
    try:
        peer_id = parse_peer_id(text)
    except RemoteProtocolError:
        return
    assert parse_peer_id(peer_id) == peer_id
    assert peer_id_from_bytes(peer_id_to_bytes(peer_id)) == peer_id


@given(st.binary(max_size=60))
def test_peer_id_bytes_are_taken_whole_or_refused(data: bytes) -> None:
    try:
        peer_id = peer_id_from_bytes(data)
    except RemoteProtocolError:
        return
    assert peer_id_to_bytes(peer_id) == data
