"""A Store's archive: Waku messages of others in a SQLite file of its own, plain and not encrypted.

What lies in it is what any peer may ask for, and sealed by whoever wrote it, so it has no key; it
is private to the user like every file of a profile.  One row per message hash; topics are kept
apart so that their text is not repeated.  How pages are read is ``archive_pages``.

Retention removes the oldest first, by age and by bytes used, a slice at a time.  Refuses to know
who asks, and what a message must be to be kept: that was judged before.
"""

import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from sqlcipher3 import dbapi2

from engine.core.errors import StorageError
from engine.core.types import ContentTopic, PubsubTopic
from engine.core.waku_archive import (
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
)
from engine.persistence.archive_pages import read_page
from engine.persistence.errors import DatabaseTooNewError, translated

SCHEMA_VERSION: Final = 1
MAX_REMOVED_AT_ONCE: Final = 500

_PRAGMAS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA journal_size_limit = 16777216",
)
_TABLES: Final = (
    """
    CREATE TABLE topic (
      topic_key INTEGER PRIMARY KEY, pubsub_topic TEXT NOT NULL, content_topic TEXT NOT NULL,
      UNIQUE (pubsub_topic, content_topic)
    ) STRICT
    """,
    "CREATE INDEX topic_by_content ON topic (content_topic)",
    """
    CREATE TABLE message (
      message_key INTEGER PRIMARY KEY, topic_key INTEGER NOT NULL, timestamp_ns INTEGER NOT NULL,
      received_ns INTEGER NOT NULL, hash BLOB NOT NULL UNIQUE, digest BLOB NOT NULL,
      data BLOB NOT NULL
    ) STRICT
    """,
    "CREATE INDEX message_by_hash_order ON message (timestamp_ns, hash)",
    "CREATE INDEX message_by_digest_order ON message (timestamp_ns, digest, received_ns)",
    "CREATE INDEX topic_by_hash_order ON message (topic_key, timestamp_ns, hash)",
    "CREATE INDEX topic_by_digest_order ON message (topic_key, timestamp_ns, digest, received_ns)",
)
_REMEMBERED_TOPICS: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Zero: without this limit."""

    max_age_ns: int = 30 * 24 * 3_600 * 10**9
    max_bytes: int = 1024 * 1024 * 1024


class SqliteArchive:
    """Bound to the thread that opened it.  Every method may raise StorageError."""

    def __init__(self, connection: sqlite3.Connection, retention: Retention) -> None:
        self._connection = connection
        self._retention = retention
        self._topics: dict[tuple[str, str], int] = {}
        self._count: int = connection.execute("SELECT count(*) FROM message").fetchone()[0]
        last = connection.execute(
            "SELECT received_ns FROM message ORDER BY message_key DESC LIMIT 1"
        ).fetchone()
        self._last_received_ns: int = 0 if last is None else last[0]

    @classmethod
    def open(cls, path: Path, retention: Retention | None = None) -> Self:
        """Open or create.  A newer version's file is left untouched: DatabaseTooNewError."""
        _create_private(path)
        with translated(f"open {path}"):
            connection = dbapi2.connect(str(path), timeout=5, isolation_level=None)
            try:
                _prepare(connection, path)
                return cls(connection, retention or Retention())
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        with translated("close the archive"):
            self._connection.close()

    # --- writing --------------------------------------------------------------------------------

    def append(self, messages: Sequence[ArchivedMessage], *, now_ns: int) -> int:
        """In one transaction, durable on return; how many were new."""
        added, received_ns = 0, max(now_ns, self._last_received_ns + 1)
        with translated("archive messages"):
            try:
                with _transaction(self._connection):
                    for message in messages:
                        added += self._insert(message, received_ns + added)
            except BaseException:
                self._topics.clear()  # Those made in this transaction are gone with it.
                raise
        if added:
            self._last_received_ns = received_ns + added - 1
            self._count += added
        return added

    def retain(self, *, now_ns: int) -> int:
        """Remove the oldest that are too old or too much; 0 once nothing is."""
        with translated("remove old messages from the archive"):
            limit = self._slice_to_remove()
            before_ns = now_ns - self._retention.max_age_ns if self._retention.max_age_ns else None
            where, values = ("", [])
            if not limit:
                if before_ns is None:
                    return 0
                where, values, limit = "WHERE timestamp_ns < ?", [before_ns], MAX_REMOVED_AT_ONCE
            rows = self._connection.execute(
                f"SELECT message_key, topic_key FROM message {where} "  # noqa: S608 - ours
                "ORDER BY timestamp_ns, hash LIMIT ?",
                [*values, limit],
            ).fetchall()
            with _transaction(self._connection):
                self._remove(rows)
            if rows:
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
        self._count -= len(rows)
        return len(rows)

    def _insert(self, message: ArchivedMessage, received_ns: int) -> int:
        cursor = self._connection.execute(
            "INSERT OR IGNORE INTO message "
            "(topic_key, timestamp_ns, received_ns, hash, digest, data) VALUES (?, ?, ?, ?, ?, ?)",
            (
                self._topic_key(message.pubsub_topic, message.content_topic),
                message.timestamp_ns,
                received_ns,
                message.message_hash,
                message.digest,
                message.data,
            ),
        )
        return cursor.rowcount

    def _topic_key(self, pubsub_topic: PubsubTopic, content_topic: ContentTopic) -> int:
        pair = (pubsub_topic, content_topic)
        if (known := self._topics.get(pair)) is not None:
            return known
        self._connection.execute(
            "INSERT OR IGNORE INTO topic (pubsub_topic, content_topic) VALUES (?, ?)", pair
        )
        row: tuple[int] = self._connection.execute(
            "SELECT topic_key FROM topic WHERE pubsub_topic = ? AND content_topic = ?", pair
        ).fetchone()
        if len(self._topics) >= _REMEMBERED_TOPICS:
            self._topics.clear()
        self._topics[pair] = row[0]
        return row[0]

    def _slice_to_remove(self) -> int:
        """How many messages to remove for the bytes' sake, by the mean size of one."""
        if not self._retention.max_bytes or not self._count:
            return 0
        used = self._used_bytes()
        excess = used - self._retention.max_bytes
        if excess <= 0:
            return 0
        share = excess * self._count // used + 1
        return min(MAX_REMOVED_AT_ONCE, share)

    def _remove(self, rows: Sequence[tuple[int, int]]) -> None:
        self._connection.executemany(
            "DELETE FROM message WHERE message_key = ?", [(key,) for key, _ in rows]
        )
        self._connection.executemany(
            "DELETE FROM topic WHERE topic_key = ? AND NOT EXISTS "
            "(SELECT 1 FROM message WHERE message.topic_key = topic.topic_key)",
            [(topic_key,) for topic_key in {topic_key for _, topic_key in rows}],
        )
        self._topics.clear()

    # --- reading --------------------------------------------------------------------------------

    def query(self, query: ArchiveQuery) -> ArchivePage:
        """One page.  Raises CursorUnknownError if the cursor is nothing that is here."""
        with translated("read the archive"):
            return read_page(self._connection, query)

    def statistics(self) -> ArchiveStatistics:
        with translated("read the archive"):
            return ArchiveStatistics(messages=self._count, used_bytes=self._used_bytes())

    def _used_bytes(self) -> int:
        pages, free, size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        used: int = (pages - free) * size
        return used


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
    if version[0] > SCHEMA_VERSION:
        raise DatabaseTooNewError(
            f"The archive {path} was written by a newer version of Causerie; nothing was changed."
        )
    for pragma in _PRAGMAS:
        connection.execute(pragma).fetchall()
    mode: tuple[str] = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode[0] != "wal":
        raise StorageError(f"Cannot open {path}: its disk has no write-ahead logging.")
    if version[0] == 0:
        with _transaction(connection):
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _create_private(path: Path) -> None:
    """Mode 0600 whatever the umask; SQLite gives its log the mode of the database."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"Cannot open {path}: {reason}.") from error
