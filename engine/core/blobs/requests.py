"""What peers ask each other over ``/causerie/blob/1``, and how they answer (proto/blob.proto)."""

from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct

from engine.core.blobs.manifest import ChunkName

MAX_GET_NAMES: Final = 16
MAX_HAVE_NAMES: Final = 4096
MAX_KEEP_DAYS: Final = 3_650


class GetChunks(Struct, frozen=True):
    """1 to MAX_GET_NAMES names; each is answered by itself, in their order."""

    names: tuple[ChunkName, ...]


class PutChunk(Struct, frozen=True, kw_only=True):
    sealed: bytes
    keep_days: int
    """What is asked for; the node may keep it for less."""


class AskHoldings(Struct, frozen=True):
    """Up to MAX_HAVE_NAMES names."""

    names: tuple[ChunkName, ...]


BlobRequest: TypeAlias = GetChunks | PutChunk | AskHoldings


class ChunkStatus(IntEnum):
    HERE = 0
    MISSING = 1
    BUSY = 2
    TOO_MUCH = 3
    """The peer has had what it may have for now."""


class ChunkAnswer(Struct, frozen=True):
    """``sealed`` is the chunk if it is HERE, else b""."""

    status: ChunkStatus
    sealed: bytes = b""


class PutStatus(IntEnum):
    TAKEN = 0
    NO_KEEPER = 1
    """The peer keeps nothing for others."""
    FULL = 2
    """It has no room for what comes from us."""
    BUSY = 3
    TOO_MUCH = 4
    FAILED = 5
    """Its disk refused."""


class Holdings(Struct, frozen=True, kw_only=True):
    """Which of the names that were asked for a peer has, in their order."""

    held: tuple[bool, ...]
    is_keeper: bool
    """It takes chunks of others and keeps them for a while."""
