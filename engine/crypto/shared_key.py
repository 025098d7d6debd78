"""Payloads that everybody with one key can read and write: 26/WAKU2-PAYLOAD, symmetric.

AES-256-GCM with a random nonce, which follows the ciphertext and its tag; nothing is authenticated
besides.  The key says that whoever wrote a message had the key, and no more: not who it was, when
it was, or in which channel.  A random nonce is good for 2^32 messages under one key.
"""

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.codec.waku_payload import decode_waku_payload, encode_waku_payload
from engine.core.entropy import RandomBytes
from engine.core.errors import CryptoError

WAKU_VERSION: Final = 1
"""``version`` of a Waku message with such a payload."""
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16


def seal_payload(key: bytes, payload: bytes, random_bytes: RandomBytes) -> bytes:
    nonce = random_bytes(_NONCE_BYTES)
    plain = encode_waku_payload(payload, random_bytes)
    return AESGCM(key).encrypt(nonce, plain, None) + nonce


def open_payload(key: bytes, sealed: bytes) -> bytes:
    """Raises CryptoError ``other_key``, or RemoteProtocolError if our key opens it to nonsense."""
    at = len(sealed) - _NONCE_BYTES
    if at < _TAG_BYTES:
        raise CryptoError("other_key", f"{len(sealed)} bytes")
    try:
        plain = AESGCM(key).decrypt(sealed[at:], sealed[:at], None)
    except InvalidTag as error:
        raise CryptoError("other_key") from error
    return decode_waku_payload(plain)
