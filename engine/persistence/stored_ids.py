"""Message ids as columns hold them: 16 bytes if they have the shape of a group's, else texts.

A million ids lie in half a dozen tables and indexes, so that six characters less are many
megabytes.  Columns of ids that come with messages have the type ANY; tables of a few rows keep
texts.  All ids of one conversation have one shape.  If they ever had not, the texts would come
first within one Lamport timestamp, as SQLite sorts them; ``stored_order`` sorts in the same way.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from engine.core.ids import MessageId, Position
from engine.core.packed_ids import pack_id, unpack_id

StoredId: TypeAlias = bytes | str

_REMEMBERED: Final = 4_096
"""Ids.  One that is written has half a dozen columns, and the same pages are read again."""


@lru_cache(_REMEMBERED)
def stored_id(message_id: MessageId) -> StoredId:
    """The value of a column."""
    packed = pack_id(message_id)
    return message_id if packed is None else packed


def stored_ids(message_ids: Iterable[MessageId]) -> list[StoredId]:
    return [stored_id(message_id) for message_id in message_ids]


@lru_cache(_REMEMBERED)
def message_id_of(stored: StoredId) -> MessageId:
    """The id that a column holds."""
    return unpack_id(stored) if isinstance(stored, bytes) else MessageId(stored)


def stored_place(position: Position) -> tuple[int, StoredId]:
    """The values of two columns, Lamport timestamp and id."""
    return position.lamport_timestamp, stored_id(position.message_id)


def position_of(lamport_timestamp: int, stored: StoredId) -> Position:
    """The position that two columns hold."""
    return Position(lamport_timestamp=lamport_timestamp, message_id=message_id_of(stored))


def mark_of(lamport_timestamp: int | None, message_id: MessageId | None) -> Position | None:
    """The read mark that two columns of ``timeline`` hold, if there is one."""
    if lamport_timestamp is None or message_id is None:
        return None
    return Position(lamport_timestamp=lamport_timestamp, message_id=message_id)


def stored_order(position: Position) -> tuple[int, bool, MessageId]:
    """A key that sorts positions as their columns do."""
    message_id = position.message_id
    return position.lamport_timestamp, isinstance(stored_id(message_id), bytes), message_id
