"""Small integers for the participants and author instances that a conversation's rows repeat.

A conversation has few of them and a million rows that name one.  Rows hold the key; the identifier
itself is stored once per conversation and goes with it.  Nothing refers to these rows by a foreign
key, because deleting one would then search a million rows for it.
"""

import sqlite3
from collections.abc import Iterable
from typing import Final, TypeVar

from engine.core.ids import InstanceId, ParticipantId

_FIND_PARTICIPANT: Final = (
    "SELECT participant_key FROM participant WHERE conversation_key = ? AND participant_id = ?"
)
_ADD_PARTICIPANT: Final = (
    "INSERT INTO participant (conversation_key, participant_id) VALUES (?, ?) "
    "RETURNING participant_key"
)
_FIND_INSTANCE: Final = (
    "SELECT instance_key FROM instance WHERE conversation_key = ? AND instance_id = ?"
)
_ADD_INSTANCE: Final = (
    "INSERT INTO instance (conversation_key, instance_id) VALUES (?, ?) RETURNING instance_key"
)

_Named = TypeVar("_Named", ParticipantId, InstanceId)


def participant_keys(
    connection: sqlite3.Connection, conversation: int, participants: Iterable[ParticipantId]
) -> dict[ParticipantId, int]:
    """The key of each; those that have none get one."""
    return _keys(connection, conversation, participants, _FIND_PARTICIPANT, _ADD_PARTICIPANT)


def instance_keys(
    connection: sqlite3.Connection, conversation: int, instances: Iterable[InstanceId]
) -> dict[InstanceId, int]:
    """The key of each; those that have none get one."""
    return _keys(connection, conversation, instances, _FIND_INSTANCE, _ADD_INSTANCE)


def _keys(
    connection: sqlite3.Connection,
    conversation: int,
    named: Iterable[_Named],
    find: str,
    add: str,
) -> dict[_Named, int]:
    keys: dict[_Named, int] = {}
    for each in named:
        if each in keys:
            continue
        rows: list[tuple[int]] = connection.execute(find, (conversation, each)).fetchall()
        if not rows:
            rows = connection.execute(add, (conversation, each)).fetchall()
        ((keys[each],),) = rows
    return keys
