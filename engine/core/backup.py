"""What a backup file says of itself, and how strong its passphrase is.

The header is readable without the passphrase, so it says nothing about a person: the pseudonym only
tells two backups of one profile from those of another.  What the passphrase costs is read from the
file, and therefore bounded.  The bytes are in ``engine.codec.backup``.
"""

from collections.abc import Callable
from enum import IntEnum, StrEnum
from math import log2
from typing import Final

from msgspec import Struct

from engine.core.ids import UnixMs

SALT_BYTES: Final = 16
FILE_SALT_BYTES: Final = 32
PSEUDONYM_BYTES: Final = 8
KEY_BYTES: Final = 32
COMMITMENT_BYTES: Final = 32
MAX_APP_VERSION_BYTES: Final = 32

MIN_PASSPHRASE_CHARACTERS: Final = 8
MAX_PASSPHRASE_CHARACTERS: Final = 1_024
_FAIR_BITS: Final = 45.0
_STRONG_BITS: Final = 70.0

MAX_MEMORY_KIB: Final = 256 * 1024
"""Four times what ours take: a file of a stranger cannot make a small device run out of memory."""
MAX_ITERATIONS: Final = 64
MAX_LANES: Final = 16
MAX_WORK_KIB: Final = 4 * 1024 * 1024
"""Memory times iterations."""
_LEAST_KIB_PER_LANE: Final = 8


class Cost(Struct, frozen=True, kw_only=True):
    """Of Argon2id; as the second recommendation of RFC 9106, section 4."""

    memory_kib: int = 64 * 1024
    iterations: int = 3
    lanes: int = 4

    @property
    def is_allowed(self) -> bool:
        return (
            1 <= self.lanes <= MAX_LANES
            and 1 <= self.iterations <= MAX_ITERATIONS
            and _LEAST_KIB_PER_LANE * self.lanes <= self.memory_kib <= MAX_MEMORY_KIB
            and self.memory_kib * self.iterations <= MAX_WORK_KIB
        )


class BackupHeader(Struct, frozen=True, kw_only=True):
    cost: Cost
    salt: bytes
    """Of the passphrase."""
    file_salt: bytes
    """Of this file: no two files have one key."""
    schema_version: int
    app_version: str
    """ASCII, at most MAX_APP_VERSION_BYTES."""
    created_ms: UnixMs
    pseudonym: bytes


class EntryKind(IntEnum):
    """What follows; exactly one END, and a DATABASE after its DATABASE_KEY."""

    END = 0
    """Its size is the number of entries before it."""
    DATABASE_KEY = 1
    DATABASE = 2
    SETTINGS = 3
    WINDOW = 4
    """What the window remembers: marks of conversations, sizes."""
    CHUNK = 5
    """A sealed chunk of a file, named by its hash."""


class Entry(Struct, frozen=True, kw_only=True):
    kind: EntryKind
    size: int
    name: bytes = b""
    """32 bytes for a chunk, else empty."""


class Strength(StrEnum):
    TOO_SHORT = "too_short"
    WEAK = "weak"
    FAIR = "fair"
    STRONG = "strong"


def strength_of(passphrase: str) -> Strength:
    """A rough guess that knows no dictionary, and therefore trusts no letter within a word."""
    if len(passphrase) < MIN_PASSPHRASE_CHARACTERS:
        return Strength.TOO_SHORT
    bits = _guessed_bits(passphrase)
    if bits < _FAIR_BITS:
        return Strength.WEAK
    return Strength.FAIR if bits < _STRONG_BITS else Strength.STRONG


def _guessed_bits(passphrase: str) -> float:
    pool = sum(size for size, belongs in _KINDS if any(map(belongs, passphrase)))
    of_one = log2(max(pool, 2))
    bits, before = 0.0, ""
    seen: dict[str, int] = {}
    for character in passphrase:
        seen[character] = seen.get(character, 0) + 1
        if before and abs(ord(character) - ord(before)) <= 1:
            bits += _IN_A_RUN_BITS  # aaa, 123, cba
        elif before.isalpha() and character.isalpha() and before.islower() == character.islower():
            bits += min(_IN_A_WORD_BITS, of_one / seen[character] ** 0.5)
        else:
            bits += of_one / seen[character] ** 0.5
        before = character
    return bits


def _is_symbol(character: str) -> bool:
    return not (character.isalnum() or character.isspace())


_IN_A_RUN_BITS: Final = 0.5
_IN_A_WORD_BITS: Final = 2.3
_KINDS: Final[tuple[tuple[int, Callable[[str], bool]], ...]] = (
    (26, str.islower),
    (26, str.isupper),
    (10, str.isdigit),
    (4, str.isspace),
    (33, _is_symbol),
)
"""How many there are, about, to choose from."""
