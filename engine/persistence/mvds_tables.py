"""The rows of a pair's MVDS node: records, own bodies, acknowledgements, ids held.

``mvds_record`` is clustered by the epoch in which a record is due, so that a start reads the next
ones from a few neighbouring pages, whether there are a thousand others or a million.  Writes run
inside the store's transaction.
"""

import sqlite3
from itertools import chain
from typing import Final, assert_never

from engine.core.ids import ParticipantId
from engine.core.mvds.vocabulary import (
    DropMessage,
    Epoch,
    GroupId,
    KeepMessage,
    MvdsId,
    MvdsMessage,
    MvdsState,
    MvdsWrite,
    NoteHeld,
    PutPendingAck,
    PutRecord,
    Record,
    RecordType,
    RemovePendingAck,
    RemoveRecord,
)

_OF_CONVERSATION: Final = (
    "conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE"
)
MVDS_TABLES: Final = (
    # The table is clustered by the order in which records are due: those of the next epochs are
    # neighbours on a few pages, however many others there are.
    f"""
    CREATE TABLE mvds_record (
      {_OF_CONVERSATION}, send_epoch INTEGER NOT NULL, created_ms INTEGER NOT NULL,
      peer_id TEXT NOT NULL, message_id BLOB NOT NULL, type TEXT NOT NULL,
      send_count INTEGER NOT NULL, body_bytes INTEGER NOT NULL, waited_epochs INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, send_epoch, created_ms, peer_id, message_id)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE UNIQUE INDEX mvds_record_of_message
    ON mvds_record (conversation_key, message_id, peer_id)
    """,
    f"""
    CREATE TABLE mvds_message (
      message_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, message_id BLOB NOT NULL,
      group_id BLOB NOT NULL, timestamp INTEGER NOT NULL, body BLOB NOT NULL,
      UNIQUE (conversation_key, message_id)
    ) STRICT
    """,
    f"""
    CREATE TABLE mvds_held (
      {_OF_CONVERSATION}, message_id BLOB NOT NULL, PRIMARY KEY (conversation_key, message_id)
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TABLE mvds_pending_ack (
      ack_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, peer_id TEXT NOT NULL,
      message_id BLOB NOT NULL, UNIQUE (conversation_key, message_id, peer_id)
    ) STRICT
    """,
)

# Columns in the order of Record's own fields.
_RECORDS: Final = """
SELECT peer_id, message_id, type, send_count, send_epoch, body_bytes, created_ms, waited_epochs
FROM mvds_record WHERE conversation_key = ?
"""
_DUE_ORDER: Final = "ORDER BY send_epoch, created_ms, peer_id, message_id"
RECORDS_FROM: Final = f"{_RECORDS} AND send_epoch >= ? {_DUE_ORDER} LIMIT ?"
RECORDS_OF_EPOCH: Final = f"{_RECORDS} AND send_epoch = ? {_DUE_ORDER}"
ONE_RECORD: Final = f"{_RECORDS} AND message_id = ? AND peer_id = ?"
NEXT_EPOCH: Final = (
    "SELECT min(send_epoch) FROM mvds_record WHERE conversation_key = ? AND send_epoch > ?"
)
# REPLACE removes any row of this message and peer, in whichever epoch.
_PUT_RECORD: Final = """
INSERT OR REPLACE INTO mvds_record (conversation_key, peer_id, message_id, type, send_count,
                                    send_epoch, body_bytes, created_ms, waited_epochs)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_KEEP_MESSAGE: Final = """
INSERT INTO mvds_message (conversation_key, message_id, group_id, timestamp, body)
VALUES (?, ?, ?, ?, ?) ON CONFLICT (conversation_key, message_id) DO NOTHING
"""
# A node that has not loaded all its records cannot know whether one of another peer needs the body.
# A REQUEST does not: it asks for the peer's.
_DROP_MESSAGE: Final = """
DELETE FROM mvds_message WHERE conversation_key = ?1 AND message_id = ?2 AND NOT EXISTS (
  SELECT 1 FROM mvds_record
  WHERE conversation_key = ?1 AND message_id = ?2 AND type != 'request'
)
"""
_PUT_PENDING_ACK: Final = """
INSERT INTO mvds_pending_ack (conversation_key, peer_id, message_id) VALUES (?, ?, ?)
ON CONFLICT (conversation_key, message_id, peer_id) DO NOTHING
"""
_EARLIEST: Final = Epoch(-(2**63))
# Takes a tenth of the time of RecordType(…), which dominates a start with many records.
_TYPES: Final = {type_.value: type_ for type_ in RecordType}


def apply_mvds_write(connection: sqlite3.Connection, conversation: int, write: MvdsWrite) -> None:
    execute = connection.execute
    match write:
        case PutRecord(record=record):
            _put_record(connection, conversation, record)
        case RemoveRecord(peer_id=peer_id, message_id=message_id):
            execute(
                "DELETE FROM mvds_record "
                "WHERE conversation_key = ? AND message_id = ? AND peer_id = ?",
                (conversation, message_id, peer_id),
            )
        case NoteHeld(message_id=message_id):
            execute("INSERT OR IGNORE INTO mvds_held VALUES (?, ?)", (conversation, message_id))
        case PutPendingAck(peer_id=peer_id, message_id=message_id):
            execute(_PUT_PENDING_ACK, (conversation, peer_id, message_id))
        case RemovePendingAck(peer_id=peer_id, message_id=message_id):
            execute(
                "DELETE FROM mvds_pending_ack "
                "WHERE conversation_key = ? AND message_id = ? AND peer_id = ?",
                (conversation, message_id, peer_id),
            )
        case KeepMessage(message_id=message_id, message=kept):
            execute(
                _KEEP_MESSAGE,
                (conversation, message_id, kept.group_id, kept.timestamp, kept.body),
            )
        case DropMessage(message_id=message_id):
            execute(_DROP_MESSAGE, (conversation, message_id))
        case _:
            assert_never(write)


def read_mvds_state(connection: sqlite3.Connection, conversation: int, limit: int) -> MvdsState:
    records = _records(connection, RECORDS_FROM, (conversation, _EARLIEST, limit + 1))
    return MvdsState(
        records=tuple(records[:limit]),
        loaded_before=records[limit].send_epoch if len(records) > limit else None,
        pending_acks=_read_pending_acks(connection, conversation),
        held=frozenset(
            chain.from_iterable(
                connection.execute(
                    "SELECT message_id FROM mvds_held WHERE conversation_key = ?", (conversation,)
                )
            )
        ),
    )


def read_mvds_records(
    connection: sqlite3.Connection, conversation: int, from_epoch: Epoch, limit: int
) -> tuple[tuple[Record, ...], Epoch | None]:
    """Whole epochs, as many as fit in ``limit``, but at least the first one."""
    records = _records(connection, RECORDS_FROM, (conversation, from_epoch, limit + 1))
    if len(records) <= limit:
        return tuple(records), None
    first, broken_off = records[0].send_epoch, records[limit].send_epoch
    if first < broken_off:
        return tuple(record for record in records if record.send_epoch < broken_off), broken_off
    whole = _records(connection, RECORDS_OF_EPOCH, (conversation, first))
    later: tuple[int | None] = connection.execute(NEXT_EPOCH, (conversation, first)).fetchone()
    return tuple(whole), None if later[0] is None else Epoch(later[0])


def read_mvds_record(
    connection: sqlite3.Connection, conversation: int, peer_id: ParticipantId, message_id: MvdsId
) -> Record | None:
    found = _records(connection, ONE_RECORD, (conversation, message_id, peer_id))
    return found[0] if found else None


def read_mvds_message(
    connection: sqlite3.Connection, conversation: int, message_id: MvdsId
) -> MvdsMessage | None:
    row: tuple[bytes, int, bytes] | None = connection.execute(
        "SELECT group_id, timestamp, body FROM mvds_message "
        "WHERE conversation_key = ? AND message_id = ?",
        (conversation, message_id),
    ).fetchone()
    return None if row is None else MvdsMessage(GroupId(row[0]), row[1], row[2])


def _put_record(connection: sqlite3.Connection, conversation: int, record: Record) -> None:
    connection.execute(
        _PUT_RECORD,
        (
            conversation,
            record.peer_id,
            record.message_id,
            record.type,
            record.send_count,
            record.send_epoch,
            record.body_bytes,
            record.created_ms,
            record.waited_epochs,
        ),
    )


def _records(
    connection: sqlite3.Connection, sql: str, parameters: tuple[int | str | bytes, ...]
) -> list[Record]:
    return [
        Record(
            peer_id, message_id, _TYPES[type_], send_count, send_epoch, body_bytes, created_ms,
            waited_epochs,
        )
        for (
            peer_id, message_id, type_, send_count, send_epoch, body_bytes, created_ms,
            waited_epochs,
        ) in connection.execute(sql, parameters)
    ]  # fmt: skip


def _read_pending_acks(
    connection: sqlite3.Connection, conversation: int
) -> tuple[tuple[ParticipantId, MvdsId], ...]:
    cursor = connection.execute(
        "SELECT peer_id, message_id FROM mvds_pending_ack "
        "WHERE conversation_key = ? ORDER BY ack_key",
        (conversation,),
    )
    return tuple((ParticipantId(peer_id), MvdsId(message_id)) for peer_id, message_id in cursor)
