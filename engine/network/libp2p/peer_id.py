"""Peer ids: a multihash of the encoded public key, written in base58btc.

libp2p "peer-ids" spec: an encoded key of at most 42 bytes is kept whole (identity multihash,
"12D3KooW…" for Ed25519 and "16Uiu2HA…" for secp256k1), a longer one is hashed with sha256 ("Qm…").
The CIDv1 form ("bafz…") is read as well, but never written.  ``keys.py`` handles the keys.
"""

import base64
import binascii
import hashlib

from engine.core.errors import RemoteProtocolError
from engine.network.libp2p.ports import PeerId
from engine.network.libp2p.varint import decode_varint, encode_varint

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES = {character: value for value, character in enumerate(_ALPHABET)}
_IDENTITY, _SHA256 = 0x00, 0x12
_SHA256_BYTES = 32
_CID_VERSION, _LIBP2P_KEY = 1, 0x72
_MAX_WHOLE_KEY_BYTES = 42
_MAX_TEXT = 128


def base58btc_encode(data: bytes) -> str:
    number = int.from_bytes(data, "big")
    digits: list[str] = []
    while number:
        number, digit = divmod(number, 58)
        digits.append(_ALPHABET[digit])
    zeros = len(data) - len(data.lstrip(b"\0"))
    return _ALPHABET[0] * zeros + "".join(reversed(digits))


def base58btc_decode(text: str) -> bytes:
    """Raises RemoteProtocolError("base58_bad_character")."""
    number = 0
    for character in text:
        value = _VALUES.get(character)
        if value is None:
            raise RemoteProtocolError("base58_bad_character")
        number = number * 58 + value
    zeros = len(text) - len(text.lstrip(_ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def peer_id_of_key(encoded_public_key: bytes) -> PeerId:
    """The peer id of a public key in its canonical protobuf encoding."""
    if len(encoded_public_key) <= _MAX_WHOLE_KEY_BYTES:
        code, digest = _IDENTITY, encoded_public_key
    else:
        code, digest = _SHA256, hashlib.sha256(encoded_public_key).digest()
    return PeerId(base58btc_encode(encode_varint(code) + encode_varint(len(digest)) + digest))


def peer_id_to_bytes(peer_id: PeerId) -> bytes:
    """The multihash.  Raises RemoteProtocolError if the text is not a peer id."""
    return _checked_multihash(base58btc_decode(peer_id[:_MAX_TEXT]))


def peer_id_from_bytes(multihash: bytes) -> PeerId:
    """Raises RemoteProtocolError if the bytes are not a multihash of a key."""
    return PeerId(base58btc_encode(_checked_multihash(multihash)))


def parse_peer_id(text: str) -> PeerId:
    """Canonical form of a peer id in either textual form.  Raises RemoteProtocolError."""
    if len(text) > _MAX_TEXT:
        raise RemoteProtocolError("peer_id_too_long")
    if text.startswith(("1", "Qm")):
        return peer_id_from_bytes(base58btc_decode(text))
    if text.startswith("b"):
        return peer_id_from_bytes(_multihash_of_cid(text[1:]))
    raise RemoteProtocolError("peer_id_unknown_form")


def _multihash_of_cid(base32: str) -> bytes:
    try:
        cid = base64.b32decode(base32.upper() + "=" * (-len(base32) % 8))
    except binascii.Error as error:
        raise RemoteProtocolError("peer_id_bad_base32") from error
    except ValueError as error:  # not ASCII
        raise RemoteProtocolError("peer_id_bad_base32") from error
    version, offset = decode_varint(cid)
    codec, offset = decode_varint(cid, offset)
    if (version, codec) != (_CID_VERSION, _LIBP2P_KEY):
        raise RemoteProtocolError("peer_id_foreign_cid")
    return cid[offset:]


def _checked_multihash(multihash: bytes) -> bytes:
    code, offset = decode_varint(multihash)
    length, offset = decode_varint(multihash, offset)
    if length != len(multihash) - offset:
        raise RemoteProtocolError("peer_id_bad_length")
    whole_key = code == _IDENTITY and 0 < length <= _MAX_WHOLE_KEY_BYTES
    if not whole_key and (code, length) != (_SHA256, _SHA256_BYTES):
        raise RemoteProtocolError("peer_id_unknown_hash")
    return multihash
