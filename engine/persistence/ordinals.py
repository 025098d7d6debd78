"""Counts the visible rows before a place, without counting a million of them.

The scrollbar needs ordinals.  A timeline's placed, visible rows are partitioned into blocks of at
most ``BLOCK_ROWS`` consecutive rows; ``ordinal_block`` keeps each block's first position and its
size.  A rank is the sum of the sizes before a block plus a count, over a covering index, inside it:
about a thousand narrow rows each for a million messages.

A block that overflows is split.  At the end of the timeline, where nearly all rows are added, a new
one is begun instead, so that blocks are full.  Rows added together are counted together, block by
block.

Waiting rows are few (the protocol bounds them) and are counted directly.  Callers change a block in
the same transaction as the message, the message first.
"""

import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from engine.core.ids import Position
from engine.persistence.stored_ids import StoredId, position_of, stored_order, stored_place

BLOCK_ROWS: Final = 1_024

_Block: TypeAlias = tuple[int, StoredId, int]
"""Where it begins, and how many visible rows it has."""

_BLOCK_OF: Final = """
SELECT first_lamport, first_message_id, visible FROM ordinal_block
WHERE conversation_key = ? AND (first_lamport, first_message_id) <= (?, ?)
ORDER BY first_lamport DESC, first_message_id DESC LIMIT 1
"""
_NEXT_BLOCK: Final = """
SELECT first_lamport, first_message_id FROM ordinal_block
WHERE conversation_key = ? AND (first_lamport, first_message_id) > (?, ?)
ORDER BY first_lamport, first_message_id LIMIT 1
"""
_SET_VISIBLE: Final = """
UPDATE ordinal_block SET visible = ?
WHERE conversation_key = ? AND first_lamport = ? AND first_message_id = ?
"""
_ANY_PLACED_AFTER: Final = """
SELECT 1 FROM message
WHERE conversation_key = ? AND waiting = 0 AND hidden = 0
  AND (lamport_timestamp, message_id) > (?, ?) LIMIT 1
"""
_NTH_OF_BLOCK: Final = """
SELECT lamport_timestamp, message_id FROM message
WHERE conversation_key = ? AND waiting = 0 AND hidden = 0
  AND (lamport_timestamp, message_id) >= (?, ?)
ORDER BY waiting, lamport_timestamp, message_id LIMIT 1 OFFSET ?
"""
_BEFORE_BLOCK: Final = """
SELECT coalesce(sum(visible), 0) FROM ordinal_block
WHERE conversation_key = ? AND (first_lamport, first_message_id) < (?, ?)
"""
_IN_BLOCK_BEFORE: Final = """
SELECT count(*) FROM message
WHERE conversation_key = ? AND waiting = 0 AND hidden = 0
  AND (lamport_timestamp, message_id) >= (?, ?) AND (lamport_timestamp, message_id) < (?, ?)
"""

_BEFORE_ALL: Final = (-1, "")
"""Where the first block begins; no Lamport timestamp is negative."""


def count_in(
    connection: sqlite3.Connection, conversation: int, positions: Iterable[Position]
) -> None:
    """Placed rows, all in the table by now, have become visible at ``positions``."""
    for block, together in _by_block(connection, conversation, positions):
        first_lamport, first_id, visible = block
        visible += len(together)
        connection.execute(_SET_VISIBLE, (visible, conversation, first_lamport, first_id))
        if visible > BLOCK_ROWS:
            _split(connection, conversation, (first_lamport, first_id, visible), together[-1])


def count_out(
    connection: sqlite3.Connection, conversation: int, positions: Iterable[Position]
) -> None:
    """Placed, visible rows at ``positions`` have been hidden or removed."""
    for (first_lamport, first_id, visible), together in _by_block(
        connection, conversation, positions
    ):
        left = visible - len(together)
        connection.execute(_SET_VISIBLE, (left, conversation, first_lamport, first_id))


def placed_before(
    connection: sqlite3.Connection, conversation: int, place: tuple[int, StoredId]
) -> int:
    """The number of placed, visible rows strictly before ``place``."""
    block: _Block | None = connection.execute(_BLOCK_OF, (conversation, *place)).fetchone()
    if block is None:
        return 0
    first_lamport, first_id, _ = block
    before_block: tuple[int] = connection.execute(
        _BEFORE_BLOCK, (conversation, first_lamport, first_id)
    ).fetchone()
    in_block: tuple[int] = connection.execute(
        _IN_BLOCK_BEFORE, (conversation, first_lamport, first_id, *place)
    ).fetchone()
    return before_block[0] + in_block[0]


def _by_block(
    connection: sqlite3.Connection, conversation: int, positions: Iterable[Position]
) -> Iterator[tuple[_Block, list[Position]]]:
    """Yield each block, read when its turn comes, with its part of ``positions``."""
    ordered = sorted(positions, key=stored_order)
    start = 0
    while start < len(ordered):
        block = _block_of(connection, conversation, ordered[start])
        following: tuple[int, StoredId] | None = connection.execute(
            _NEXT_BLOCK, (conversation, *block[:2])
        ).fetchone()
        end = len(ordered)
        if following is not None:
            end = bisect_left(
                ordered, stored_order(position_of(*following)), start, key=stored_order
            )
        yield block, ordered[start:end]
        start = end


def _block_of(connection: sqlite3.Connection, conversation: int, position: Position) -> _Block:
    row: _Block | None = connection.execute(
        _BLOCK_OF, (conversation, *stored_place(position))
    ).fetchone()
    if row is not None:
        return row
    connection.execute(
        "INSERT INTO ordinal_block VALUES (?, ?, ?, 0)", (conversation, *_BEFORE_ALL)
    )
    return (*_BEFORE_ALL, 0)


def _split(
    connection: sqlite3.Connection,
    conversation: int,
    block: _Block,
    newest: Position,
) -> None:
    first_lamport, first_id, visible = block
    later = connection.execute(_ANY_PLACED_AFTER, (conversation, *stored_place(newest))).fetchone()
    while visible > BLOCK_ROWS:
        kept = BLOCK_ROWS if later is None else visible // 2
        split_at: tuple[int, StoredId] = connection.execute(
            _NTH_OF_BLOCK, (conversation, first_lamport, first_id, kept)
        ).fetchone()
        connection.execute(_SET_VISIBLE, (kept, conversation, first_lamport, first_id))
        visible -= kept
        connection.execute(
            "INSERT INTO ordinal_block VALUES (?, ?, ?, ?)", (conversation, *split_at, visible)
        )
        first_lamport, first_id = split_at
