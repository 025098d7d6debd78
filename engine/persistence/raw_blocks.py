"""The signed bytes of a log: plain while they are new, then packed together and compressed.

Most of a message is its causal history, which names ten messages by id, hint and sender; its
neighbours name nearly the same.  One message alone hardly gets smaller; of 64 together, a fifth is
left.  So the newest messages of a conversation are rows of ``log_raw``, and as soon as there are
enough of them they become one row of ``raw_block``, in the transaction that brought the last one.

A message is found by its key, which counts arrivals: its block is the first whose own key, that of
the block's last message, is not less.  A message that leaves the log leaves its block, which is
written anew without it.  Runs inside the store's transaction.
"""

import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from engine.core.errors import StorageError, StorageFault
from engine.persistence.many_rows import insert, with_rows

BLOCK_ROWS: Final = 64
"""More would hardly be smaller, and each costs time when one message of a block is read."""
BLOCK_BYTES: Final = 96 * 1024
"""Before compression.  A block is complete with either; packing takes about a millisecond."""

Keyed: TypeAlias = tuple[int, bytes]
"""A message's key and its bytes."""

INSERT_RAW: Final = with_rows(
    "INSERT INTO log_raw (raw_key, conversation_key, size, raw)", columns=4
)
_NEXT_KEY: Final = """
SELECT max((SELECT coalesce(max(raw_key), 0) FROM log_raw),
           (SELECT coalesce(max(block_key), 0) FROM raw_block)) + 1
"""
_PLAIN_OF_KEY: Final = "SELECT raw FROM log_raw WHERE raw_key = ?"
_SIZE_OF_PLAIN: Final = """
SELECT count(*), coalesce(sum(size), 0) FROM log_raw WHERE conversation_key = ?
"""
_PLAIN: Final = "SELECT raw_key, raw FROM log_raw WHERE conversation_key = ? ORDER BY raw_key"
_ADD_BLOCK: Final = "INSERT INTO raw_block (block_key, conversation_key, data) VALUES (?, ?, ?)"
_BLOCK_OF: Final = """
SELECT block_key, data FROM raw_block WHERE conversation_key = ? AND block_key >= ?
ORDER BY block_key LIMIT 1
"""
_COUNT: Final = struct.Struct(">I")
_ITEM: Final = struct.Struct(">II")
"""How far a message's key is below its block's, and how many bytes it has."""
_LEVEL: Final = 6
"""A higher one takes longer and gains nothing here."""


def next_raw_key(connection: sqlite3.Connection) -> int:
    """The key of the next message; known beforehand, so that all its rows are written at once."""
    row: tuple[int] = connection.execute(_NEXT_KEY).fetchone()
    return row[0]


def put_raw(connection: sqlite3.Connection, conversation: int, keyed: Sequence[Keyed]) -> None:
    """Add messages whose keys ascend and are higher than all before."""
    plain: tuple[int, int] = connection.execute(_SIZE_OF_PLAIN, (conversation,)).fetchone()
    size = plain[1] + sum(len(raw) for _, raw in keyed)
    left = keyed
    if is_complete(plain[0] + len(keyed), size):
        left = _pack(connection, conversation, keyed)
    insert(connection, INSERT_RAW, [(key, conversation, len(raw), raw) for key, raw in left])


def read_raw_of_key(connection: sqlite3.Connection, conversation: int, key: int) -> bytes:
    """The bytes of a message that is in the log.  Raises StorageError if they are not there."""
    plain: tuple[bytes] | None = connection.execute(_PLAIN_OF_KEY, (key,)).fetchone()
    if plain is not None:
        return plain[0]
    _, block = _read_block(connection, conversation, key)
    return block[key]


def read_raws(
    connection: sqlite3.Connection, conversation: int, keys: Sequence[int]
) -> dict[int, bytes]:
    """As ``read_raw_of_key`` of several; a block that many of them share is unpacked once."""
    found: dict[int, bytes] = {}
    for key in sorted(keys, reverse=True):
        if key in found:
            continue
        plain: tuple[bytes] | None = connection.execute(_PLAIN_OF_KEY, (key,)).fetchone()
        if plain is None:
            found |= _read_block(connection, conversation, key)[1]
        else:
            found[key] = plain[0]
    return found


def remove_raw(connection: sqlite3.Connection, conversation: int, key: int) -> None:
    """Remove the bytes of a message; nothing on disk keeps them."""
    if connection.execute("DELETE FROM log_raw WHERE raw_key = ?", (key,)).rowcount:
        return
    block_key, block = _read_block(connection, conversation, key)
    del block[key]
    if block:
        connection.execute(
            "UPDATE raw_block SET data = ? WHERE block_key = ?",
            (packed(block_key, [*block.items()]), block_key),
        )
    else:
        connection.execute("DELETE FROM raw_block WHERE block_key = ?", (block_key,))


def in_blocks(keyed: Iterable[Keyed]) -> Iterator[list[Keyed]]:
    """The same messages, as many at a time as one block takes; the last may be incomplete."""
    some: list[Keyed] = []
    size = 0
    for key, raw in keyed:
        some.append((key, raw))
        size += len(raw)
        if is_complete(len(some), size):
            yield some
            some, size = [], 0
    if some:
        yield some


def is_complete(rows: int, size: int) -> bool:
    return rows >= BLOCK_ROWS or size >= BLOCK_BYTES


def add_block(connection: sqlite3.Connection, conversation: int, keyed: Sequence[Keyed]) -> None:
    """Write one block; keys ascend."""
    block_key = keyed[-1][0]
    connection.execute(_ADD_BLOCK, (block_key, conversation, packed(block_key, keyed)))


def packed(block_key: int, keyed: Sequence[Keyed]) -> bytes:
    """The data of a block, with a checksum (zlib's own)."""
    head = [_COUNT.pack(len(keyed))]
    head += [_ITEM.pack(block_key - key, len(raw)) for key, raw in keyed]
    return zlib.compress(b"".join([*head, *(raw for _, raw in keyed)]), _LEVEL)


def unpacked(block_key: int, data: bytes) -> dict[int, bytes]:
    """The messages of a block by key.  Raises StorageError if its data is damaged."""
    try:
        plain = zlib.decompress(data)
        (count,) = _COUNT.unpack_from(plain)
        begin = _COUNT.size + count * _ITEM.size
        items = [*_ITEM.iter_unpack(plain[_COUNT.size : begin])]
    except (zlib.error, struct.error) as error:
        raise _damaged() from error
    ends = [*accumulate((length for _, length in items), initial=begin)]
    if len(items) != count or ends[-1] != len(plain):
        raise _damaged()
    return {
        block_key - below: plain[start : start + length]
        for (below, length), start in zip(items, ends, strict=False)
    }


def _pack(
    connection: sqlite3.Connection, conversation: int, keyed: Sequence[Keyed]
) -> Sequence[Keyed]:
    """Pack the plain messages with those that follow; returns what does not fill a block."""
    plain: list[Keyed] = connection.execute(_PLAIN, (conversation,)).fetchall()
    connection.execute("DELETE FROM log_raw WHERE conversation_key = ?", (conversation,))
    left: Sequence[Keyed] = ()
    for left in in_blocks([*plain, *keyed]):
        if not is_complete(len(left), sum(len(raw) for _, raw in left)):
            return left
        add_block(connection, conversation, left)
    return ()


def _read_block(
    connection: sqlite3.Connection, conversation: int, key: int
) -> tuple[int, dict[int, bytes]]:
    row: tuple[int, bytes] | None = connection.execute(_BLOCK_OF, (conversation, key)).fetchone()
    block = {} if row is None else unpacked(*row)
    if row is None or key not in block:
        raise _damaged()
    return row[0], block


def _damaged() -> StorageError:
    return StorageError(
        "The signed bytes of some messages in the database are unreadable.", StorageFault.DAMAGED
    )
