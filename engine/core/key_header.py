"""What the key header beside a database says: the ways that lead to the database's key.

The key is random and never changes.  Each way holds it sealed: under a secret in the system keyring
or in a file (a place), or under a passphrase.  There is at most one of either kind, and at least
one of both.  The bytes are in ``engine.codec.key_header``, the seals in
``engine.crypto.key_header``.
"""

from enum import IntEnum
from typing import Final

from msgspec import Struct

from engine.core.backup import Cost

KEY_BYTES: Final = 32
NAME_BYTES: Final = 16
WAY_SALT_BYTES: Final = 16
SEALED_KEY_BYTES: Final = KEY_BYTES + 16
MAC_BYTES: Final = 32


class WayKind(IntEnum):
    KEYRING = 1
    KEY_FILE = 2
    PASSPHRASE = 3


class Way(Struct, frozen=True, kw_only=True):
    kind: WayKind
    salt: bytes
    sealed: bytes
    """The database's key, SEALED_KEY_BYTES."""
    name: bytes = bytes(NAME_BYTES)
    """Of a place's secret: of the keyring's entry, or which one is in the file."""
    cost: Cost | None = None
    """Of a passphrase."""


class KeyHeader(Struct, frozen=True, kw_only=True):
    ways: tuple[Way, ...]
    mac: bytes
    """Under the database's key, of all ways: none was added or put back."""

    @property
    def place(self) -> Way | None:
        return next((way for way in self.ways if way.kind is not WayKind.PASSPHRASE), None)

    @property
    def passphrase(self) -> Way | None:
        return next((way for way in self.ways if way.kind is WayKind.PASSPHRASE), None)
