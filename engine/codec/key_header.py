"""Bytes of the key header: which ways there are to a database's key.

Layout (docs/storage.md), integers big-endian: magic (16), version (2), number of ways (1), the
ways, their MAC (32), and SHA-256 of all of that (32), which every version has at its end: damage
looks different from a wrong passphrase and from a newer version.  Each header has one form.
"""

import hashlib
import struct
from typing import Final

from engine.core.backup import Cost
from engine.core.errors import LocalProtocolError, StorageError, StorageFault
from engine.core.key_header import (
    MAC_BYTES,
    NAME_BYTES,
    SEALED_KEY_BYTES,
    WAY_SALT_BYTES,
    KeyHeader,
    Way,
    WayKind,
)

VERSION: Final = 1
MAX_HEADER_BYTES: Final = 4_096
"""More is not even read; a newer version may need more than this one."""

_MAGIC: Final = b"causerie-dbkeys\n"
_START: Final = struct.Struct(f">{len(_MAGIC)}sHB")
_WAY: Final = struct.Struct(f">B{NAME_BYTES}sIIB{WAY_SALT_BYTES}s{SEALED_KEY_BYTES}s")
_CHECK_BYTES: Final = 32
_NO_COST: Final = (0, 0, 0)


def way_fields(way: Way) -> bytes:
    """All but what is sealed, which depends on them."""
    return _packed(way)[:-SEALED_KEY_BYTES]


def header_fields(ways: tuple[Way, ...]) -> bytes:
    """What the MAC is of.  Raises LocalProtocolError for ways that nobody would read."""
    if not _may_stand_together(ways):
        raise LocalProtocolError("ways that nobody would read")
    return _START.pack(_MAGIC, VERSION, len(ways)) + b"".join(map(_packed, ways))


def encode_key_header(header: KeyHeader) -> bytes:
    covered = header_fields(header.ways) + header.mac
    return covered + _check_of(covered)


def decode_key_header(data: bytes) -> KeyHeader:
    """Raises StorageError: of a newer version, foreign, or damaged."""
    covered, check = data[:-_CHECK_BYTES], data[-_CHECK_BYTES:]
    is_whole = check == _check_of(covered) and len(covered) >= _START.size
    if not is_whole:
        raise _damaged() if data.startswith(_MAGIC) else _foreign()
    magic, version, number = _START.unpack_from(covered)
    if magic != _MAGIC:
        raise _foreign()
    if version > VERSION:
        text = "The key header was written by a newer version of Causerie."
        raise StorageError(text, StorageFault.KEYS_TOO_NEW)
    if version != VERSION or len(covered) != _START.size + number * _WAY.size + MAC_BYTES:
        raise _damaged()
    ways = tuple(
        _unpacked(covered[at : at + _WAY.size])
        for at in range(_START.size, len(covered) - MAC_BYTES, _WAY.size)
    )
    if not _may_stand_together(ways):
        raise _damaged()
    return KeyHeader(ways=ways, mac=covered[-MAC_BYTES:])


def _may_stand_together(ways: tuple[Way, ...]) -> bool:
    """At least one; a place before the passphrase."""
    passphrases = [way.kind is WayKind.PASSPHRASE for way in ways]
    return passphrases in ([False], [True], [False, True])


def _packed(way: Way) -> bytes:
    cost = way.cost
    is_right = (cost is not None and cost.is_allowed) == (way.kind is WayKind.PASSPHRASE)
    if not is_right or (way.kind is WayKind.PASSPHRASE and any(way.name)):
        raise LocalProtocolError("a way that nobody would read")
    numbers = _NO_COST if cost is None else (cost.memory_kib, cost.iterations, cost.lanes)
    return _WAY.pack(way.kind, way.name, *numbers, way.salt, way.sealed)


def _unpacked(data: bytes) -> Way:
    number, name, memory_kib, iterations, lanes, salt, sealed = _WAY.unpack(data)
    try:
        kind = WayKind(number)
    except ValueError:
        raise _damaged() from None
    if kind is not WayKind.PASSPHRASE:
        if (memory_kib, iterations, lanes) != _NO_COST:
            raise _damaged()
        return Way(kind=kind, name=name, salt=salt, sealed=sealed)
    cost = Cost(memory_kib=memory_kib, iterations=iterations, lanes=lanes)
    if any(name) or not cost.is_allowed:  # Bounded before it is paid.
        raise _damaged()
    return Way(kind=kind, cost=cost, salt=salt, sealed=sealed)


def _check_of(covered: bytes) -> bytes:
    return hashlib.sha256(covered).digest()


def _damaged() -> StorageError:
    return StorageError("The key header is damaged.", StorageFault.KEYS_DAMAGED)


def _foreign() -> StorageError:
    text = "The key header is no file of Causerie, or its beginning is damaged."
    return StorageError(text, StorageFault.KEYS_FOREIGN)
