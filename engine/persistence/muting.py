"""Muting a member: all their rows are hidden, or come back, in small slices, newest first.

A long-standing member has hundreds of thousands of rows, and each change updates an index and the
counts: that takes seconds, in which nothing else could be saved.  So the disk records who is muted
and how far their rows have been processed, and only the newest, which are on screen, are marked
immediately.  New rows are marked as they arrive.  Runs inside the store's transaction.
"""

import sqlite3
from typing import Final, TypeAlias

from engine.core.ids import MessageId, ParticipantId
from engine.persistence.muted_members import OF_MUTED, read_muted_members
from engine.persistence.short_keys import participant_keys
from engine.persistence.stored_ids import StoredId, message_id_of, position_of, stored_id
from engine.persistence.timeline_tables import CountedRow, recount

SLICE_ROWS: Final = 500
"""Rows examined per slice when muting, changed per slice when unmuting.  Some ten milliseconds."""
_AFTER_ALL: Final = (2**63 - 1, "")
_COLUMNS: Final = "message_key, lamport_timestamp, message_id, waiting, is_own, kind, sender_key"
_PLACED: Final = f"""
SELECT {_COLUMNS} FROM message INDEXED BY timeline_order
WHERE conversation_key = ? AND waiting = 0 AND hidden = 0
  AND (lamport_timestamp, message_id) < (?, ?)
ORDER BY lamport_timestamp DESC, message_id DESC LIMIT ?
"""  # noqa: S608 - our own numbers and columns
_WAITING: Final = f"""
SELECT {_COLUMNS} FROM message INDEXED BY timeline_order
WHERE conversation_key = ? AND waiting = 1 AND hidden = 0
"""  # noqa: S608 - our own numbers and columns
_HIDDEN: Final = f"""
SELECT {_COLUMNS} FROM message INDEXED BY muted_order
WHERE conversation_key = ? AND sender_key = ? AND hidden = {OF_MUTED}
ORDER BY lamport_timestamp DESC, message_id DESC LIMIT ?
"""  # noqa: S608 - our own numbers and columns
_Row: TypeAlias = tuple[int, int, StoredId, int, int, str, int]


def save_member_muted(
    connection: sqlite3.Connection,
    conversation: int,
    participant_id: ParticipantId,
    *,
    muted: bool,
) -> None:
    """Effective immediately for new rows and for the newest existing ones."""
    sender = participant_keys(connection, conversation, (participant_id,))[participant_id]
    if muted:
        statement = "INSERT OR IGNORE INTO muted_member VALUES (?, ?)"
        rows = connection.execute(_WAITING, (conversation,)).fetchall()  # These are few.
        _mark(connection, conversation, [row for row in rows if row[-1] == sender], muted)
    else:
        statement = "DELETE FROM muted_member WHERE conversation_key = ? AND participant_id = ?"
    connection.execute(statement, (conversation, participant_id))
    connection.execute(
        "INSERT OR REPLACE INTO muting VALUES (?, ?, ?, ?)",
        (conversation, participant_id, *_AFTER_ALL),
    )
    _go_on(connection, conversation, participant_id, _AFTER_ALL)


def mark_muted(connection: sqlite3.Connection) -> bool:
    """Hide or bring back one slice; return whether there was any."""
    found: tuple[int, ParticipantId, int, MessageId] | None = connection.execute(
        "SELECT conversation_key, participant_id, before_lamport, before_message_id FROM muting "
        "LIMIT 1"
    ).fetchone()
    if found is None:
        return False
    conversation, participant_id, lamport, message_id = found
    before = (lamport, stored_id(message_id))
    _go_on(connection, conversation, participant_id, before)
    return True


def _go_on(
    connection: sqlite3.Connection,
    conversation: int,
    participant_id: ParticipantId,
    before: tuple[int, StoredId],
) -> None:
    sender = participant_keys(connection, conversation, (participant_id,))[participant_id]
    muted = participant_id in read_muted_members(connection, conversation)
    rows: list[_Row]
    if muted:
        rows = connection.execute(_PLACED, (conversation, *before, SLICE_ROWS)).fetchall()
    else:
        rows = connection.execute(_HIDDEN, (conversation, sender, SLICE_ROWS)).fetchall()
    _mark(connection, conversation, [row for row in rows if row[-1] == sender], muted)
    if len(rows) < SLICE_ROWS:
        connection.execute(
            "DELETE FROM muting WHERE conversation_key = ? AND participant_id = ?",
            (conversation, participant_id),
        )
        return
    _, lamport, stored, *_ = rows[-1]
    connection.execute(
        "UPDATE muting SET before_lamport = ?, before_message_id = ? "
        "WHERE conversation_key = ? AND participant_id = ?",
        (lamport, message_id_of(stored), conversation, participant_id),
    )


def _mark(connection: sqlite3.Connection, conversation: int, rows: list[_Row], muted: bool) -> None:
    hidden = OF_MUTED if muted else 0
    connection.executemany(
        "UPDATE message SET hidden = ? WHERE message_key = ?", [(hidden, row[0]) for row in rows]
    )
    changes = []
    for _, lamport, stored, waiting, is_own, kind, _ in rows:
        position = position_of(lamport, stored)
        counted = CountedRow(position, bool(waiting), 0, bool(is_own), kind)
        changes.append((counted, None) if muted else (None, counted))
    recount(connection, conversation, changes)
