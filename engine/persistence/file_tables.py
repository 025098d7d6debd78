"""Pictures and other files that came with messages, in a table of their own.

A page asks once for the names and sizes of all its files.  The bytes are the last column, on pages
that only ``read_data`` touches.  A file goes with its message, or when its author retracts that.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from engine.core.records import FileRecord
from engine.persistence.many_rows import by_the_dozen, with_ids
from engine.persistence.stored_ids import StoredId

FILE_TABLES: Final = (
    # The bytes are last: what is before them is read without touching their pages.
    """
    CREATE TABLE file (
      file_key INTEGER PRIMARY KEY,
      conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
      message_id ANY NOT NULL,
      name TEXT NOT NULL, media_type TEXT NOT NULL, size INTEGER NOT NULL,
      width INTEGER NOT NULL, height INTEGER NOT NULL, data BLOB NOT NULL,
      UNIQUE (conversation_key, message_id)
    ) STRICT
    """,
    # Files count as unread, too.
    "DROP INDEX unread_order",
    """
    CREATE INDEX unread_order
    ON message (conversation_key, waiting, lamport_timestamp, message_id)
    WHERE hidden = 0 AND is_own = 0 AND kind IN ('text', 'file')
    """,
    "DROP INDEX mention_order",
    """
    CREATE INDEX mention_order
    ON message (conversation_key, waiting, lamport_timestamp, message_id)
    WHERE hidden = 0 AND is_own = 0 AND kind IN ('text', 'file') AND mentions_me = 1
    """,
)

_PUT: Final = """
INSERT INTO file (conversation_key, message_id, name, media_type, size, width, height, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, message_id) DO UPDATE SET
  name = excluded.name, media_type = excluded.media_type, size = excluded.size,
  width = excluded.width, height = excluded.height, data = excluded.data
"""
FILES: Final = with_ids(
    "SELECT message_id, name, media_type, size, width, height FROM file "
    "WHERE conversation_key = ? AND message_id IN"
)
_FileRow: TypeAlias = tuple[StoredId, str, str, int, int, int]


def put_file(
    connection: sqlite3.Connection,
    conversation: int,
    message_id: StoredId,
    file: FileRecord,
    data: bytes,
) -> None:
    described = (file.name, file.media_type, file.size, file.width, file.height)
    connection.execute(_PUT, (conversation, message_id, *described, data))


def forget_file(connection: sqlite3.Connection, conversation: int, message_id: StoredId) -> None:
    """Nothing happens if there is none."""
    connection.execute(
        "DELETE FROM file WHERE conversation_key = ? AND message_id = ?",
        (conversation, message_id),
    )


def read_files(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[StoredId]
) -> Mapping[StoredId, FileRecord]:
    found: dict[StoredId, FileRecord] = {}
    for asked in by_the_dozen(message_ids):
        rows: list[_FileRow] = connection.execute(
            FILES[len(asked)], (conversation, *asked)
        ).fetchall()
        for stored, name, media_type, size, width, height in rows:
            found[stored] = FileRecord(
                name=name, media_type=media_type, size=size, width=width, height=height
            )
    return found


def read_data(
    connection: sqlite3.Connection, conversation: int, message_id: StoredId
) -> bytes | None:
    row: tuple[bytes] | None = connection.execute(
        "SELECT data FROM file WHERE conversation_key = ? AND message_id = ?",
        (conversation, message_id),
    ).fetchone()
    return None if row is None else row[0]
