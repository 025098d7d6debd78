"""What a governed group keeps: its admin log, the keys of its epochs, and prekeys.

Entries are kept as they came and read whole when the group is loaded.  Runs inside the store's
transaction.
"""

import sqlite3
from typing import Final, assert_never

from engine.core.admin_log.acts import EntryId
from engine.core.governed import (
    AddEpochKey,
    BecomeGoverned,
    DeedPlace,
    GovernedState,
    GovernedWrite,
    NameGroup,
    PutDeed,
    PutDeletion,
    PutEntry,
    PutPrekey,
    RemoveRow,
    SaveOwnPrekeys,
)
from engine.core.ids import MessageId, Position, UnixMs
from engine.core.prekeys import OwnPrekey
from engine.persistence.annotation_tables import put_deletion, read_deletions, remove_annotation
from engine.persistence.timeline_tables import remove_message

_OF_CONVERSATION: Final = (
    "conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE"
)
GOVERNED_TABLES: Final = (
    """
    CREATE TABLE governed (
      conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE,
      first_entry TEXT NOT NULL
    ) STRICT
    """,
    f"""
    CREATE TABLE admin_entry (
      entry_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, data BLOB NOT NULL
    ) STRICT
    """,
    "CREATE INDEX admin_entry_of ON admin_entry (conversation_key)",
    f"""
    CREATE TABLE own_prekey (
      {_OF_CONVERSATION}, number INTEGER NOT NULL, private_key BLOB NOT NULL,
      made_ms INTEGER NOT NULL, PRIMARY KEY (conversation_key, number)
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TABLE prekey (
      prekey_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, participant_id TEXT NOT NULL,
      data BLOB NOT NULL, UNIQUE (conversation_key, participant_id)
    ) STRICT
    """,
    "ALTER TABLE epoch ADD COLUMN known_ms INTEGER NOT NULL DEFAULT 0",
)
# In which message an entry came, and whether that has a row.
DEED_TABLE: Final = (
    f"""
    CREATE TABLE deed (
      {_OF_CONVERSATION}, entry_id TEXT NOT NULL, lamport_timestamp INTEGER NOT NULL,
      message_id TEXT NOT NULL, is_shown INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, entry_id)
    ) STRICT, WITHOUT ROWID
    """,
)
# Of groups that began with a link.
TOPIC_NAME_COLUMN: Final = ("ALTER TABLE governed ADD COLUMN topic_name BLOB NOT NULL DEFAULT x''",)
_ADD_KEY: Final = """
INSERT INTO epoch (conversation_key, place, epoch_key, known_ms)
SELECT ?1, coalesce(max(place) + 1, 0), ?2, ?3 FROM epoch WHERE conversation_key = ?1
HAVING NOT EXISTS (SELECT 1 FROM epoch WHERE conversation_key = ?1 AND epoch_key = ?2)
"""
_PUT_PREKEY: Final = """
INSERT INTO prekey (conversation_key, participant_id, data) VALUES (?, ?, ?)
ON CONFLICT (conversation_key, participant_id) DO UPDATE SET data = excluded.data
"""


def put_first(
    connection: sqlite3.Connection, key: int, first_entry: EntryId, topic_name: bytes
) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO governed VALUES (?, ?, ?)", (key, first_entry, topic_name)
    )


def apply_write(connection: sqlite3.Connection, key: int, write: GovernedWrite) -> None:
    match write:
        case PutEntry(data=data):
            connection.execute(
                "INSERT INTO admin_entry (conversation_key, data) VALUES (?, ?)", (key, data)
            )
        case AddEpochKey(key=epoch_key, known_ms=known_ms):
            connection.execute(_ADD_KEY, (key, epoch_key, known_ms))
        case SaveOwnPrekeys(prekeys=prekeys):
            connection.execute("DELETE FROM own_prekey WHERE conversation_key = ?", (key,))
            connection.executemany(
                "INSERT INTO own_prekey VALUES (?, ?, ?, ?)",
                [(key, one.number, one.private_key, one.made_ms) for one in prekeys],
            )
        case PutPrekey(participant_id=participant_id, data=data):
            connection.execute(_PUT_PREKEY, (key, participant_id, data))
        case PutDeed(deed=deed):
            connection.execute(
                "INSERT OR REPLACE INTO deed VALUES (?, ?, ?, ?, ?)",
                (
                    key, deed.entry_id, deed.position.lamport_timestamp,
                    deed.position.message_id, deed.is_shown,
                ),
            )  # fmt: skip
        case BecomeGoverned(first_entry=first_entry, topic_name=topic_name):
            put_first(connection, key, first_entry, topic_name)
        case NameGroup(name=name):
            connection.execute(
                "UPDATE conversation SET name = ? WHERE conversation_key = ?", (name, key)
            )
        case PutDeletion():
            put_deletion(connection, key, write.deletion, write.deleted_by)
        case RemoveRow(position=position):
            remove_message(connection, key, position.message_id)
            remove_annotation(connection, key, position)
        case _:
            assert_never(write)


def read(connection: sqlite3.Connection, key: int) -> GovernedState:
    entries = connection.execute(
        "SELECT data FROM admin_entry WHERE conversation_key = ? ORDER BY entry_key", (key,)
    )
    known = connection.execute(
        "SELECT epoch_key, known_ms FROM epoch WHERE conversation_key = ? ORDER BY place", (key,)
    )
    own = connection.execute(
        "SELECT number, private_key, made_ms FROM own_prekey WHERE conversation_key = ? "
        "ORDER BY number",
        (key,),
    )
    prekeys = connection.execute(
        "SELECT data FROM prekey WHERE conversation_key = ? ORDER BY participant_id", (key,)
    )
    deeds = connection.execute(
        "SELECT entry_id, lamport_timestamp, message_id, is_shown FROM deed "
        "WHERE conversation_key = ? ORDER BY entry_id",
        (key,),
    )
    return GovernedState(
        entries=tuple(data for (data,) in entries),
        known_ms={epoch_key: UnixMs(known_ms) for epoch_key, known_ms in known},
        own_prekeys=tuple(
            OwnPrekey(number=number, private_key=private_key, made_ms=UnixMs(made_ms))
            for number, private_key, made_ms in own
        ),
        prekeys=tuple(data for (data,) in prekeys),
        deeds=tuple(
            DeedPlace(
                entry_id=EntryId(entry_id),
                position=Position(lamport, MessageId(message_id)),
                is_shown=bool(is_shown),
            )
            for entry_id, lamport, message_id, is_shown in deeds
        ),
        deleted=read_deletions(connection, key),
    )
