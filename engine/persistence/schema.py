"""The tables of a profile, their migrations, and the check of a file's origin.

The first tables are made in one transaction, together with ``application_id`` and the version
(``user_version``); migrations bring a database of an earlier version to the present one, and a new
one, into which the rows of a very early version are copied.
One with a higher version belongs to a newer version of the application, one without our
``application_id`` to a test version from before this schema.  Both are left untouched.  The schema
freezes at the first tagged release: afterwards only migrations change it.

Ids are compared bytewise (BINARY, SQLite's default): the order of a log is (Lamport timestamp,
message id by byte).  A conversation has a small integer key, so that indexes of a million rows do
not repeat its 43 characters.  All tables are STRICT; deleting a conversation deletes all its rows.
"""

import sqlite3
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.core.errors import StorageError
from engine.persistence.annotation_tables import ANNOTATION_TABLES
from engine.persistence.errors import DatabaseFromBeforeError, DatabaseTooNewError
from engine.persistence.file_tables import (
    FILE_TABLES,
    HOLDER_TABLES,
    TAKEN_BACK_COLUMNS,
    TRANSFER_TABLES,
)
from engine.persistence.governed_tables import DEED_TABLE, GOVERNED_TABLES, TOPIC_NAME_COLUMN
from engine.persistence.joining_tables import JOINING_TABLES
from engine.persistence.mvds_tables import MVDS_TABLES
from engine.persistence.open_tables import OPEN_CHANNEL
from engine.persistence.ratchet_tables import RATCHET_TABLES
from engine.persistence.reaction_counts import REACTION_COUNT_TABLES, count_all
from engine.persistence.saved_log import INDEX_TABLES
from engine.persistence.search_tables import SEARCH_TABLES
from engine.persistence.stored_ids import message_id_of
from engine.persistence.timeline_tables import WAITED

if TYPE_CHECKING:
    from sqlite_utils import Database, Migrations

SCHEMA_VERSION: Final = 18
APPLICATION_ID: Final = int.from_bytes(b"Caus")
"""In the header of all our databases."""

LAST_TO_COPY: Final = 2
"""Up to this version a database is copied into a new file (``carry_over``): version 3 adds columns
to rows of every message, for each of which SQLite would check all of them."""

_MIGRATION_SET: Final = "causerie"

_OF_CONVERSATION: Final = (
    "conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE"
)

_PROFILE_TABLES: Final = (
    """
    CREATE TABLE profile (
      profile_key INTEGER PRIMARY KEY CHECK (profile_key = 1), name TEXT NOT NULL,
      signing_key BLOB NOT NULL, encryption_key BLOB NOT NULL, network_key BLOB NOT NULL,
      instance_id BLOB NOT NULL, created_ms INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE picture (
      picture_key INTEGER PRIMARY KEY CHECK (picture_key = 1), picture BLOB NOT NULL
    ) STRICT
    """,
    "CREATE TABLE value (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE counter (name TEXT PRIMARY KEY, amount INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    """
    CREATE TABLE node_address (multiaddr TEXT PRIMARY KEY, seen_ms INTEGER NOT NULL)
    STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE conversation (
      conversation_key INTEGER PRIMARY KEY, conversation_id TEXT NOT NULL UNIQUE,
      kind TEXT NOT NULL CHECK (kind IN ('group', 'pair')), name TEXT NOT NULL,
      admin_public_key BLOB NOT NULL, created_ms INTEGER NOT NULL, service_nodes TEXT NOT NULL,
      muted INTEGER NOT NULL, draft TEXT NOT NULL
    ) STRICT
    """,
    # A group's epochs, from place 0, the oldest, to the newest.
    f"""
    CREATE TABLE epoch (
      {_OF_CONVERSATION}, place INTEGER NOT NULL, epoch_key BLOB NOT NULL,
      PRIMARY KEY (conversation_key, place)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE removed_conversation (
      conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE
    ) STRICT
    """,
    f"""
    CREATE TABLE member (
      member_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, participant_id TEXT NOT NULL,
      public_key BLOB NOT NULL, encryption_key BLOB NOT NULL, name TEXT NOT NULL,
      is_admin INTEGER NOT NULL, joined_ms INTEGER NOT NULL, left_ms INTEGER,
      join_statement BLOB NOT NULL, named_ms INTEGER NOT NULL, known_ms INTEGER NOT NULL,
      UNIQUE (conversation_key, participant_id)
    ) STRICT
    """,
)

# Data that changes with every message is in narrow tables, away from drafts and raw bytes.
_CHANNEL_TABLES: Final = (
    """
    CREATE TABLE channel (
      conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE,
      lamport_timestamp INTEGER NOT NULL, store_queried_ms INTEGER,
      holders_put INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """,
    f"""
    CREATE TABLE outgoing (
      outgoing_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, message_id TEXT NOT NULL,
      raw BLOB NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL,
      next_send_ms INTEGER NOT NULL, accepted INTEGER NOT NULL, created_ms INTEGER NOT NULL,
      UNIQUE (conversation_key, message_id)
    ) STRICT
    """,
    f"""
    CREATE TABLE incoming (
      incoming_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, message_id TEXT NOT NULL,
      sender_id TEXT NOT NULL, channel_id TEXT NOT NULL, lamport_timestamp INTEGER,
      causal_history TEXT NOT NULL, bloom_filter BLOB, repair_request TEXT NOT NULL, content BLOB,
      raw BLOB NOT NULL, instance_id BLOB, sequence INTEGER, previous_id TEXT, replaces TEXT,
      retrieval_hint BLOB, received_ms INTEGER NOT NULL, shown INTEGER NOT NULL,
      UNIQUE (conversation_key, message_id)
    ) STRICT
    """,
    f"""
    CREATE TABLE missing (
      missing_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, message_id TEXT NOT NULL,
      retrieval_hint BLOB, sender_id TEXT, state TEXT NOT NULL, since_ms INTEGER NOT NULL,
      online_ms INTEGER NOT NULL, request_at_ms INTEGER NOT NULL, requests INTEGER NOT NULL,
      before_lamport INTEGER, before_message_id TEXT, stores_ms INTEGER,
      stores_lacked INTEGER NOT NULL, stores_silent TEXT NOT NULL,
      stores_kept_back INTEGER NOT NULL, UNIQUE (conversation_key, message_id)
    ) STRICT
    """,
    f"""
    CREATE TABLE replacement (
      replacement_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, message_id TEXT NOT NULL,
      sender_id TEXT NOT NULL, lamport_timestamp INTEGER NOT NULL, by_id TEXT NOT NULL,
      UNIQUE (conversation_key, by_id)
    ) STRICT
    """,
    f"""
    CREATE TABLE fork (
      fork_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, instance_id BLOB NOT NULL,
      sender_id TEXT NOT NULL, sequence INTEGER NOT NULL, first_id TEXT NOT NULL,
      second_id TEXT NOT NULL, UNIQUE (conversation_key, instance_id)
    ) STRICT
    """,
    # For senders beyond their quota.  The raw bytes are empty where only the id is kept.
    f"""
    CREATE TABLE set_aside (
      set_aside_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, message_id TEXT NOT NULL,
      sender_id TEXT NOT NULL, lamport_timestamp INTEGER NOT NULL, retrieval_hint BLOB,
      raw BLOB NOT NULL, UNIQUE (conversation_key, message_id)
    ) STRICT
    """,
    """
    CREATE INDEX set_aside_order
    ON set_aside (conversation_key, sender_id, lamport_timestamp, message_id)
    """,
    f"""
    CREATE TABLE spent (
      {_OF_CONVERSATION}, sender_id TEXT NOT NULL, day INTEGER NOT NULL, fetched INTEGER NOT NULL,
      messages INTEGER NOT NULL, size INTEGER NOT NULL, lifted INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, sender_id, day, fetched)
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TABLE newest_claim (
      claim_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, participant_id TEXT NOT NULL,
      lamport_timestamp INTEGER NOT NULL, UNIQUE (conversation_key, participant_id)
    ) STRICT
    """,
    f"""
    CREATE TABLE own_sequence (
      {_OF_CONVERSATION}, stay BLOB NOT NULL, instance_id BLOB NOT NULL, sequence INTEGER NOT NULL,
      previous_id TEXT NOT NULL, PRIMARY KEY (conversation_key, stay)
    ) STRICT, WITHOUT ROWID
    """,
)

# Tables with rows for every message.  Their ids have the type ANY (``stored_ids``).
_MESSAGE_TABLES: Final = (
    # Rows name these by their keys, which are integers (``short_keys``).
    f"""
    CREATE TABLE participant (
      participant_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, participant_id TEXT NOT NULL,
      UNIQUE (conversation_key, participant_id)
    ) STRICT
    """,
    f"""
    CREATE TABLE instance (
      instance_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, instance_id BLOB NOT NULL,
      UNIQUE (conversation_key, instance_id)
    ) STRICT
    """,
    # Clustered by the log's order, in which a start reads all of it and nothing else.
    f"""
    CREATE TABLE log_entry (
      {_OF_CONVERSATION}, lamport_timestamp INTEGER NOT NULL, message_id ANY NOT NULL,
      sender_key INTEGER NOT NULL, retrieval_hint BLOB, instance_key INTEGER, sequence INTEGER,
      previous_id TEXT, size INTEGER NOT NULL, raw_key INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, lamport_timestamp, message_id),
      UNIQUE (conversation_key, message_id)
    ) STRICT, WITHOUT ROWID
    """,
    # The signed bytes: the newest as they are, the others many together (``raw_blocks``).
    f"""
    CREATE TABLE log_raw (
      raw_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, size INTEGER NOT NULL, raw BLOB NOT NULL
    ) STRICT
    """,
    "CREATE INDEX log_raw_sizes ON log_raw (conversation_key, size)",
    f"""
    CREATE TABLE raw_block (
      block_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, data BLOB NOT NULL
    ) STRICT
    """,
    "CREATE INDEX raw_block_of_conversation ON raw_block (conversation_key)",
    # ``place`` keeps the order in which the rows of a channel were first put.
    f"""
    CREATE TABLE holder (
      {_OF_CONVERSATION}, message_id ANY NOT NULL, participant_key INTEGER NOT NULL,
      place INTEGER NOT NULL, source TEXT NOT NULL, since_ms INTEGER NOT NULL,
      false_probability REAL, PRIMARY KEY (conversation_key, message_id, participant_key)
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TABLE message (
      message_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, message_id ANY NOT NULL,
      lamport_timestamp INTEGER NOT NULL, waiting INTEGER NOT NULL, hidden INTEGER NOT NULL,
      is_own INTEGER NOT NULL, late INTEGER NOT NULL, kind TEXT NOT NULL,
      sender_key INTEGER NOT NULL, sent_ms INTEGER NOT NULL, received_ms INTEGER NOT NULL,
      text TEXT NOT NULL, spans TEXT NOT NULL, UNIQUE (conversation_key, message_id)
    ) STRICT
    """,
    # Hidden: 1 if deleted here, 2 if its sender is muted.
    """
    CREATE INDEX timeline_order
    ON message (conversation_key, waiting, lamport_timestamp, message_id) WHERE hidden = 0
    """,
    """
    CREATE INDEX unread_order
    ON message (conversation_key, waiting, lamport_timestamp, message_id)
    WHERE hidden = 0 AND is_own = 0 AND kind = 'text'
    """,
    """
    CREATE INDEX muted_order
    ON message (conversation_key, sender_key, lamport_timestamp, message_id) WHERE hidden = 2
    """,
    # Ordinals: the number of placed, visible rows from this position to the next block's.
    f"""
    CREATE TABLE ordinal_block (
      {_OF_CONVERSATION}, first_lamport INTEGER NOT NULL, first_message_id ANY NOT NULL,
      visible INTEGER NOT NULL, PRIMARY KEY (conversation_key, first_lamport, first_message_id)
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TABLE delivery (
      {_OF_CONVERSATION}, message_id ANY NOT NULL, state TEXT NOT NULL,
      attempts INTEGER NOT NULL, failure TEXT, PRIMARY KEY (conversation_key, message_id)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE INDEX delivery_unsettled ON delivery (conversation_key, state)
    WHERE state IN ('saved', 'failed')
    """,
)

_TIMELINE_TABLES: Final = (
    """
    CREATE TABLE timeline (
      conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE,
      read_lamport INTEGER, read_message_id TEXT, placed INTEGER NOT NULL,
      waiting INTEGER NOT NULL, unread INTEGER NOT NULL
    ) STRICT
    """,
    f"""
    CREATE TABLE muted_member (
      {_OF_CONVERSATION}, participant_id TEXT NOT NULL,
      PRIMARY KEY (conversation_key, participant_id)
    ) STRICT, WITHOUT ROWID
    """,
    # Members whose rows are being hidden or brought back, and the row before which to continue.
    f"""
    CREATE TABLE muting (
      {_OF_CONVERSATION}, participant_id TEXT NOT NULL, before_lamport INTEGER NOT NULL,
      before_message_id TEXT NOT NULL, PRIMARY KEY (conversation_key, participant_id)
    ) STRICT, WITHOUT ROWID
    """,
)

# A pair's conversation row has no epoch; ``contact`` holds what a group does not have.
_PAIR_TABLES: Final = (
    # The picture is last: the columns before it change once a minute without touching its pages.
    """
    CREATE TABLE contact (
      conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE,
      participant_id TEXT NOT NULL, public_key BLOB NOT NULL, encryption_key BLOB NOT NULL,
      state TEXT NOT NULL, local_name TEXT NOT NULL, last_seen_ms INTEGER, picture BLOB NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE pair_clock (
      conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE,
      lamport_timestamp INTEGER NOT NULL
    ) STRICT
    """,
    f"""
    CREATE TABLE pair_author (
      {_OF_CONVERSATION}, instance_id BLOB NOT NULL, sequence INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, instance_id)
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TABLE pair_waiting (
      waiting_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, message_id TEXT NOT NULL,
      sender_id TEXT NOT NULL, content BLOB NOT NULL, received_ms INTEGER NOT NULL,
      shown INTEGER NOT NULL, UNIQUE (conversation_key, message_id)
    ) STRICT
    """,
    f"""
    CREATE TABLE pair_lost (
      {_OF_CONVERSATION}, instance_id BLOB NOT NULL, first_sequence INTEGER NOT NULL,
      last_sequence INTEGER NOT NULL, before_lamport INTEGER NOT NULL,
      before_message_id TEXT NOT NULL, since_ms INTEGER NOT NULL, given_up_ms INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, instance_id, first_sequence)
    ) STRICT, WITHOUT ROWID
    """,
)

_HISTORY_TABLES: Final = (
    """
    CREATE TABLE store (
      multiaddr TEXT PRIMARY KEY, place INTEGER NOT NULL, enabled INTEGER NOT NULL,
      queries INTEGER NOT NULL, complete INTEGER NOT NULL, messages INTEGER NOT NULL,
      new INTEGER NOT NULL, omitted INTEGER NOT NULL, asked_ms INTEGER
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TABLE history_progress (
      {_OF_CONVERSATION}, purpose TEXT NOT NULL, start_ns INTEGER NOT NULL,
      end_ns INTEGER NOT NULL, through_ns INTEGER NOT NULL, reached_ns INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, purpose)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE history_reach (
      conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE,
      since_ms INTEGER, through_ms INTEGER
    ) STRICT
    """,
    f"""
    CREATE TABLE store_covered (
      {_OF_CONVERSATION}, store TEXT NOT NULL, through_ms INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, store)
    ) STRICT, WITHOUT ROWID
    """,
)


def create_first_tables(connection: sqlite3.Connection) -> None:
    for statement in (
        *_PROFILE_TABLES,
        *_CHANNEL_TABLES,
        *_MESSAGE_TABLES,
        *_TIMELINE_TABLES,
        *_PAIR_TABLES,
        *MVDS_TABLES,
        *_HISTORY_TABLES,
    ):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 2")


def _make(connection: sqlite3.Connection, statements: Iterable[str], *, version: int) -> None:
    for statement in statements:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")


def add_annotations(connection: sqlite3.Connection) -> None:
    _make(connection, ANNOTATION_TABLES, version=3)


def add_open_channels(connection: sqlite3.Connection) -> None:
    connection.execute(OPEN_CHANNEL)
    connection.execute("PRAGMA user_version = 4")


def keep_indexes(connection: sqlite3.Connection) -> None:
    """The tables are filled by the next start."""
    _make(connection, INDEX_TABLES, version=5)


def add_files(connection: sqlite3.Connection) -> None:
    _make(connection, FILE_TABLES, version=6)


def add_transfers(connection: sqlite3.Connection) -> None:
    _make(connection, TRANSFER_TABLES, version=7)


def add_file_holders(connection: sqlite3.Connection) -> None:
    _make(connection, HOLDER_TABLES, version=8)


def add_search(connection: sqlite3.Connection) -> None:
    """Add the search's tables; existing messages are indexed later, bit by bit."""
    _make(connection, SEARCH_TABLES, version=9)


def count_reactions(connection: sqlite3.Connection) -> None:
    for statement in REACTION_COUNT_TABLES:
        connection.execute(statement)
    count_all(connection)
    connection.execute("PRAGMA user_version = 10")


def settle_what_came_back(connection: sqlite3.Connection) -> None:
    """Own messages in groups that others gave back once were taken for ones that wait to be sent.

    What really waits is in the outgoing buffer; what is in the log without that is with others.
    The format stays as it is, and so does the version.
    """
    saved = connection.execute(
        "SELECT conversation_key, message_id FROM delivery JOIN channel USING (conversation_key) "
        "JOIN log_entry USING (conversation_key, message_id) WHERE state = 'saved' "
        "AND conversation_key NOT IN (SELECT conversation_key FROM open_channel)"
    ).fetchall()
    waiting = set(connection.execute("SELECT conversation_key, message_id FROM outgoing"))
    came_back = [each for each in saved if (each[0], message_id_of(each[1])) not in waiting]
    connection.executemany(
        "UPDATE delivery SET state = 'sent' WHERE conversation_key = ? AND message_id = ?",
        came_back,
    )


def let_files_go(connection: sqlite3.Connection) -> None:
    """A member's statement that it has a file can be taken back, and has its time."""
    _make(connection, TAKEN_BACK_COLUMNS, version=11)


def add_shared_keys(connection: sqlite3.Connection) -> None:
    """Those of channels with a shared key; an open channel has none."""
    connection.execute("ALTER TABLE open_channel ADD COLUMN shared_key BLOB NOT NULL DEFAULT x''")
    connection.execute("PRAGMA user_version = 12")


def note_what_waited(connection: sqlite3.Connection) -> None:
    """When messages came that had to wait for others; of earlier ones that is not known."""
    connection.execute(WAITED)
    connection.execute("PRAGMA user_version = 13")


def add_governed_groups(connection: sqlite3.Connection) -> None:
    """Groups with an admin log, and keys that change."""
    _make(connection, GOVERNED_TABLES, version=14)


def add_ratchets(connection: sqlite3.Connection) -> None:
    _make(connection, RATCHET_TABLES, version=15)


def add_joining(connection: sqlite3.Connection) -> None:
    """Invitations to governed groups, and asking to be let into them."""
    _make(connection, JOINING_TABLES, version=16)


def place_deeds(connection: sqlite3.Connection) -> None:
    """What was done in a governed group has rows; nobody had such a group before."""
    _make(connection, DEED_TABLE, version=17)


def let_links_end(connection: sqlite3.Connection) -> None:
    """A group that anyone with the link was in can become a governed one, at its topic."""
    _make(connection, TOPIC_NAME_COLUMN, version=18)


class Migration(Struct, frozen=True):
    """The database remembers it by the function's name."""

    function: Callable[[sqlite3.Connection], None]

    @property
    def name(self) -> str:
        return self.function.__name__


MIGRATIONS: Final = (
    Migration(create_first_tables),
    Migration(add_annotations),
    Migration(add_open_channels),
    Migration(keep_indexes),
    Migration(add_files),
    Migration(add_transfers),
    Migration(add_file_holders),
    Migration(add_search),
    Migration(count_reactions),
    Migration(settle_what_came_back),
    Migration(let_files_go),
    Migration(add_shared_keys),
    Migration(note_what_waited),
    Migration(add_governed_groups),
    Migration(add_ratchets),
    Migration(add_joining),
    Migration(place_deeds),
    Migration(let_links_end),
)


def migrate(connection: sqlite3.Connection) -> None:
    """Apply pending migrations, each in a transaction of its own.

    sqlite-utils is imported only if there are any: it takes 40 ms, and a second where pandas is
    installed.
    """
    if _has_applied_all(connection):
        return
    from sqlite_utils import Database, Migrations  # noqa: PLC0415 - see above

    migrations = Migrations(_MIGRATION_SET)
    for migration in MIGRATIONS:
        _register(migrations, migration)
    migrations.apply(Database(connection, execute_plugins=False))


def is_to_be_copied(connection: sqlite3.Connection) -> bool:
    """Whether it is of a version that migrations do not change in place."""
    return 0 < _version(connection) <= LAST_TO_COPY


def _has_applied_all(connection: sqlite3.Connection) -> bool:
    if not _version(connection):  # without tables
        return False
    applied = connection.execute(
        "SELECT name FROM _sqlite_migrations WHERE migration_set = ?", (_MIGRATION_SET,)
    )
    return {name for (name,) in applied} >= {migration.name for migration in MIGRATIONS}


def _register(migrations: "Migrations", migration: Migration) -> None:
    @migrations(name=migration.name)
    def apply(db: "Database") -> None:
        migration.function(db.conn)


def _version(connection: sqlite3.Connection) -> int:
    row: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
    return row[0]


def check_version(connection: sqlite3.Connection, *, must_be_current: bool = False) -> None:
    """Check whose database it is and its version.  A new one without tables passes.

    Raises DatabaseFromBeforeError, DatabaseTooNewError, or StorageError if it must be current and
    is older.
    """
    version, application_id = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("user_version", "application_id")
    )
    if version and application_id != APPLICATION_ID:
        raise DatabaseFromBeforeError(
            "This profile was written by a test version whose format is not used any more. Start "
            "the application once: it keeps it in a file of its own and begins a new one."
        )
    if version > SCHEMA_VERSION:
        raise DatabaseTooNewError(
            f"The profile was written by a newer version of Causerie (its database has version "
            f"{version}, this program knows {SCHEMA_VERSION}). Install the newer version; nothing "
            "was changed."
        )
    if must_be_current and version < SCHEMA_VERSION:
        raise StorageError(
            f"The database has version {version}, this program needs {SCHEMA_VERSION}: "
            "start the application once to bring it up to date."
        )
