"""Pictures and other files that came with messages, in a table of their own.

A page asks once for the names and sizes of all its files.  The bytes are the last column, on pages
that only ``read_data`` touches.  A file goes with its message, or when its author retracts that.

A blob has no bytes here: ``transfer`` says how to find it and what becomes of it.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from engine.core.blobs.manifest import ChunkName, Manifest
from engine.core.ids import ConversationId, ParticipantId
from engine.core.records import FileRecord, TransferRecord, TransferState
from engine.core.stored import StoredTransfer
from engine.persistence.many_rows import by_the_dozen, with_ids
from engine.persistence.muted_members import DELETED
from engine.persistence.stored_ids import StoredId, message_id_of

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

TRANSFER_TABLES: Final = (
    """
    CREATE TABLE transfer (
      file_key INTEGER PRIMARY KEY REFERENCES file ON DELETE CASCADE,
      key BLOB NOT NULL, root BLOB NOT NULL, state TEXT NOT NULL, fault TEXT NOT NULL,
      thumbnail BLOB NOT NULL
    ) STRICT
    """,
)

HOLDER_TABLES: Final = (
    """
    CREATE TABLE file_holder (
      file_key INTEGER NOT NULL REFERENCES transfer ON DELETE CASCADE,
      participant_id TEXT NOT NULL,
      PRIMARY KEY (file_key, participant_id)
    ) STRICT, WITHOUT ROWID
    """,
)

TAKEN_BACK_COLUMNS: Final = (
    "ALTER TABLE file_holder ADD COLUMN held INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE file_holder ADD COLUMN as_of INTEGER NOT NULL DEFAULT 0",
)

_PUT: Final = """
INSERT INTO file (conversation_key, message_id, name, media_type, size, width, height, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, message_id) DO UPDATE SET
  name = excluded.name, media_type = excluded.media_type, size = excluded.size,
  width = excluded.width, height = excluded.height, data = excluded.data
"""
_PUT_TRANSFER: Final = """
INSERT INTO transfer (file_key, key, root, state, fault, thumbnail)
SELECT file_key, ?, ?, ?, ?, ? FROM file WHERE conversation_key = ? AND message_id = ?
ON CONFLICT (file_key) DO NOTHING
"""
_PUT_HOLDER: Final = """
INSERT INTO file_holder (file_key, participant_id, held, as_of)
SELECT t.file_key, ?, ?, ? FROM file AS f JOIN transfer AS t ON t.file_key = f.file_key
WHERE f.conversation_key = ? AND f.message_id = ?
ON CONFLICT DO UPDATE SET held = excluded.held, as_of = excluded.as_of
WHERE (excluded.as_of, -excluded.held) > (as_of, -held)
"""
_HOLDERS: Final = with_ids(
    "SELECT f.message_id, h.participant_id "
    "FROM file AS f JOIN file_holder AS h ON h.file_key = f.file_key "
    "WHERE h.held AND f.conversation_key = ? AND f.message_id IN",
    order="ORDER BY h.participant_id",
)
FILES: Final = with_ids(
    "SELECT f.message_id, f.name, f.media_type, f.size, f.width, f.height, "
    "t.key, t.root, t.state, t.fault, t.thumbnail "
    "FROM file AS f LEFT JOIN transfer AS t ON t.file_key = f.file_key "
    "WHERE f.conversation_key = ? AND f.message_id IN"
)


class _FileRow(NamedTuple):
    stored: StoredId
    name: str
    media_type: str
    size: int
    width: int
    height: int
    key: bytes | None
    root: bytes | None
    state: str | None
    fault: str | None
    thumbnail: bytes | None

    def transfer(self, holders: Sequence[ParticipantId]) -> TransferRecord | None:
        if self.key is None or self.root is None or self.state is None:
            return None
        return TransferRecord(
            manifest=Manifest(
                key=self.key,
                root=ChunkName(self.root),
                size=self.size,
                thumbnail=self.thumbnail or b"",
            ),
            state=TransferState(self.state),
            fault=self.fault or "",
            holders=tuple(holders),
        )


_TRANSFERS: Final = """
SELECT c.conversation_id, f.message_id, m.is_own, f.size, t.key, t.root, t.state, t.fault
FROM transfer AS t
  JOIN file AS f ON f.file_key = t.file_key
  JOIN conversation AS c ON c.conversation_key = f.conversation_key
  JOIN message AS m
    ON m.conversation_key = f.conversation_key AND m.message_id = f.message_id
WHERE m.hidden <> ? AND m.retracted = 0
  AND f.conversation_key NOT IN (SELECT conversation_key FROM removed_conversation)
ORDER BY t.file_key
"""
_TransferRow: TypeAlias = tuple[str, StoredId, int, int, bytes, bytes, str, str]


def put_file(
    connection: sqlite3.Connection,
    conversation: int,
    message_id: StoredId,
    file: FileRecord,
    data: bytes,
) -> None:
    described = (file.name, file.media_type, file.size, file.width, file.height)
    connection.execute(_PUT, (conversation, message_id, *described, data))
    if (transfer := file.transfer) is not None:
        manifest = transfer.manifest
        parts = (manifest.key, manifest.root, transfer.state, transfer.fault, manifest.thumbnail)
        connection.execute(_PUT_TRANSFER, (*parts, conversation, message_id))


def put_transfer(
    connection: sqlite3.Connection,
    conversation: int,
    message_id: StoredId,
    state: TransferState,
    fault: str,
) -> None:
    """Nothing happens if there is no such blob."""
    connection.execute(
        "UPDATE transfer SET state = ?, fault = ? WHERE file_key = "
        "(SELECT file_key FROM file WHERE conversation_key = ? AND message_id = ?)",
        (state, fault, conversation, message_id),
    )


def forget_file(connection: sqlite3.Connection, conversation: int, message_id: StoredId) -> None:
    """Nothing happens if there is none."""
    connection.execute(
        "DELETE FROM file WHERE conversation_key = ? AND message_id = ?",
        (conversation, message_id),
    )


def read_files(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[StoredId]
) -> Mapping[StoredId, FileRecord]:
    rows = [
        _FileRow._make(row)
        for asked in by_the_dozen(message_ids)
        for row in connection.execute(FILES[len(asked)], (conversation, *asked))
    ]
    holders = _read_holders(connection, conversation, [row.stored for row in rows if row.key])
    return {
        row.stored: FileRecord(
            name=row.name,
            media_type=row.media_type,
            size=row.size,
            width=row.width,
            height=row.height,
            transfer=row.transfer(holders.get(row.stored, ())),
        )
        for row in rows
    }


def _read_holders(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[StoredId]
) -> Mapping[StoredId, Sequence[ParticipantId]]:
    found: dict[StoredId, list[ParticipantId]] = {}
    for asked in by_the_dozen([*dict.fromkeys(message_ids)]):
        rows: list[tuple[StoredId, str]] = connection.execute(
            _HOLDERS[len(asked)], (conversation, *asked)
        ).fetchall()
        for stored, participant_id in rows:
            found.setdefault(stored, []).append(ParticipantId(participant_id))
    return found


def put_holder(  # noqa: PLR0913 - keyword-only: what was said
    connection: sqlite3.Connection,
    conversation: int,
    message_id: StoredId,
    participant_id: ParticipantId,
    *,
    held: bool,
    as_of: int,
) -> None:
    """Nothing happens if there is no such blob, or if a later statement is known."""
    said = (participant_id, held, as_of)
    connection.execute(_PUT_HOLDER, (*said, conversation, message_id))


def read_transfers(connection: sqlite3.Connection) -> list[StoredTransfer]:
    rows: list[_TransferRow] = connection.execute(_TRANSFERS, (DELETED,)).fetchall()
    return [
        StoredTransfer(
            conversation_id=ConversationId(conversation_id),
            message_id=message_id_of(stored),
            is_own=bool(is_own),
            transfer=TransferRecord(
                manifest=Manifest(key=key, root=ChunkName(root), size=size),
                state=TransferState(state),
                fault=fault,
            ),
        )
        for conversation_id, stored, is_own, size, key, root, state, fault in rows
    ]


def read_data(
    connection: sqlite3.Connection, conversation: int, message_id: StoredId
) -> bytes | None:
    row: tuple[bytes] | None = connection.execute(
        "SELECT f.data FROM file AS f JOIN message AS m USING (conversation_key, message_id) "
        "WHERE f.conversation_key = ? AND f.message_id = ? AND m.retracted = 0",
        (conversation, message_id),
    ).fetchone()
    return None if row is None else row[0]
