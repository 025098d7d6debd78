"""Seals a database's key for each way that leads to it, and vouches for all ways together.

A place's secret is 32 random bytes; a passphrase's is made of it by Argon2id.  HKDF-SHA256 makes of
the secret and the way's own random salt the key that seals, for this one way only; what else the
way says is authenticated with it (ChaCha20-Poly1305; the key is used once, so its nonce is zero).
"""

import hmac
import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from engine.codec.key_header import header_fields, way_fields
from engine.core.backup import Cost
from engine.core.errors import BackupError
from engine.core.key_header import (
    KEY_BYTES,
    SEALED_KEY_BYTES,
    WAY_SALT_BYTES,
    KeyHeader,
    Way,
    WayKind,
)
from engine.crypto.backup import derive_secret

_SEAL_DOMAIN: Final = b"causerie/1/key-header/seal"
_MAC_DOMAIN: Final = b"causerie/1/key-header/mac"
_NONCE: Final = bytes(12)
_UNSEALED: Final = bytes(SEALED_KEY_BYTES)


def place_way(kind: WayKind, name: bytes, secret: bytes, key: bytes) -> Way:
    salt = secrets.token_bytes(WAY_SALT_BYTES)
    return _sealed(Way(kind=kind, name=name, salt=salt, sealed=_UNSEALED), secret, key)


def passphrase_way(passphrase: str, key: bytes, cost: Cost | None = None) -> Way:
    """Takes what a passphrase costs.  Raises BackupError if it is too short."""
    salt, chosen = secrets.token_bytes(WAY_SALT_BYTES), cost or Cost()
    secret = derive_secret(passphrase, salt=salt, cost=chosen).secret
    way = Way(kind=WayKind.PASSPHRASE, cost=chosen, salt=salt, sealed=_UNSEALED)
    return _sealed(way, secret, key)


def open_place(way: Way, secret: bytes) -> bytes | None:
    """The database's key; None if it is another secret."""
    try:
        return _cipher(way, secret).decrypt(_NONCE, way.sealed, way_fields(way))
    except InvalidTag:
        return None


def open_passphrase(way: Way, passphrase: str) -> bytes | None:
    """Likewise; takes what the passphrase costs."""
    if way.cost is None:
        return None
    try:
        derived = derive_secret(passphrase, salt=way.salt, cost=way.cost)
    except BackupError:  # None so short was ever taken.
        return None
    return open_place(way, derived.secret)


def header_of(ways: tuple[Way, ...], key: bytes) -> KeyHeader:
    return KeyHeader(ways=ways, mac=_mac(ways, key))


def is_vouched_for(header: KeyHeader, key: bytes) -> bool:
    return hmac.compare_digest(header.mac, _mac(header.ways, key))


def _sealed(way: Way, secret: bytes, key: bytes) -> Way:
    sealed = _cipher(way, secret).encrypt(_NONCE, key, way_fields(way))
    return Way(kind=way.kind, name=way.name, cost=way.cost, salt=way.salt, sealed=sealed)


def _cipher(way: Way, secret: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(_derived(secret, way.salt, _SEAL_DOMAIN))


def _mac(ways: tuple[Way, ...], key: bytes) -> bytes:
    return hmac.digest(_derived(key, b"", _MAC_DOMAIN), header_fields(ways), "sha256")


def _derived(secret: bytes, salt: bytes, domain: bytes) -> bytes:
    kdf = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt or None, info=domain)
    return kdf.derive(secret)
