"""A Store's archive: Waku messages of others in a SQLite file of its own, unencrypted.

Its content is available to any peer and sealed by its authors, so it needs no key.  The file is
private to the user like all of a profile.  There is one row per message hash; topics have their own
table so that their text is not repeated.  This is the only writer; pages are read on a separate
connection (``archive_pages``).

The archive never exceeds its size limit: the transaction that adds messages removes the excess, the
oldest of the largest share (``archive_shares``).  Expired messages are removed in slices.  The
caller decides which messages to keep.
"""

import os
import sqlite3
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from msgspec import Struct
from sqlcipher3 import dbapi2

from engine.core.errors import StorageError
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku_archive import Appended, ArchivedMessage, ArchiveStatistics, Source
from engine.persistence.archive_shares import SHARE_TABLES, Shares, Standing
from engine.persistence.errors import DatabaseTooNewError, translated

SCHEMA_VERSION: Final = 1
MAX_REMOVED_AT_ONCE: Final = 500
MAX_LOG_BYTES: Final = 16 * 1024 * 1024
"""Limit of the write-ahead log.  Readers can delay its reset; beyond this the next append waits for
them."""
ROW_BYTES: Final = 500
"""Cost of a message besides its data."""
DAY_NS: Final = 24 * 3_600 * 10**9

_PRAGMAS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA synchronous = FULL",
    f"PRAGMA journal_size_limit = {MAX_LOG_BYTES}",
)
_TABLES: Final = (
    """
    CREATE TABLE pubsub (
      pubsub_key INTEGER PRIMARY KEY, pubsub_topic TEXT NOT NULL UNIQUE
    ) STRICT
    """,
    """
    CREATE TABLE topic (
      topic_key INTEGER PRIMARY KEY, pubsub_key INTEGER NOT NULL, content_topic TEXT NOT NULL,
      since_ns INTEGER NOT NULL, established INTEGER NOT NULL,
      UNIQUE (content_topic, pubsub_key)
    ) STRICT
    """,
    "CREATE INDEX topic_by_age ON topic (since_ns) WHERE NOT established",
    """
    CREATE TABLE message (
      message_key INTEGER PRIMARY KEY, pubsub_key INTEGER NOT NULL, topic_key INTEGER NOT NULL,
      share_key INTEGER NOT NULL, timestamp_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL,
      hash BLOB NOT NULL UNIQUE, digest BLOB NOT NULL, data BLOB NOT NULL
    ) STRICT
    """,
    "CREATE INDEX message_by_share ON message (share_key)",
    "CREATE INDEX message_by_hash_order ON message (timestamp_ns, hash)",
    """
    CREATE INDEX pubsub_by_digest_order ON message (pubsub_key, timestamp_ns, digest, received_ns)
    """,
    "CREATE INDEX topic_by_hash_order ON message (topic_key, timestamp_ns, hash)",
    "CREATE INDEX topic_by_digest_order ON message (topic_key, timestamp_ns, digest, received_ns)",
    *SHARE_TABLES,
)
_REMEMBERED_TOPICS: Final = 1_024
_REMOVED_TOGETHER: Final = 20
"""Removed from one share before the largest share is determined again."""


class _Topic(Struct, frozen=True):
    pubsub_key: int
    topic_key: int
    standing: Standing


class _Row(Struct, frozen=True):
    """What is needed to remove a message."""

    message_key: int
    topic_key: int
    share_key: int
    data_bytes: int

    @property
    def cost(self) -> int:
        return self.data_bytes + ROW_BYTES


class Retention(Struct, frozen=True, kw_only=True):
    """Zero means no limit."""

    max_age_ns: int = 30 * 24 * 3_600 * 10**9
    max_bytes: int = 1024 * 1024 * 1024


class SqliteArchive:
    """The writer.  Bound to the thread that opened it.  Every method may raise StorageError."""

    def __init__(self, connection: sqlite3.Connection, path: Path, retention: Retention) -> None:
        self._connection = connection
        self._retention = retention
        self._path = path
        self._shares = Shares(connection)
        self._topics: dict[tuple[str, str], _Topic] = {}
        self._count: int = connection.execute("SELECT count(*) FROM message").fetchone()[0]
        last = connection.execute(
            "SELECT received_ns FROM message ORDER BY message_key DESC LIMIT 1"
        ).fetchone()
        self._last_received_ns: int = 0 if last is None else last[0]

    @classmethod
    def open(cls, path: Path, retention: Retention | None = None) -> Self:
        """Open or create.  Raises DatabaseTooNewError for a newer version's file, unchanged."""
        _create_private(path)
        with translated(f"open {path}"):
            connection = dbapi2.connect(str(path), timeout=5, isolation_level=None)
            try:
                _prepare(connection, path)
                return cls(connection, path, retention or Retention())
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        with translated("close the archive"):
            self._connection.close()

    # --- writing --------------------------------------------------------------------------------

    def append(self, messages: Sequence[ArchivedMessage], *, now_ns: int) -> Appended:
        """In one transaction, durable on return, never exceeding the archive's size limit."""
        added, received_ns = 0, max(now_ns, self._last_received_ns + 1)
        costs: Counter[int] = Counter()
        with translated("archive messages"):
            self._keep_log_short()
            with self._transaction():
                for message in messages:
                    share_key = self._insert(message, received_ns + added)
                    if share_key is not None:
                        costs[share_key] += len(message.data) + ROW_BYTES
                        added += 1
                self._shares.change(costs)
                evicted = self._make_room()
        if added:
            self._last_received_ns = received_ns + added - 1
        self._count += added - evicted
        return Appended(added=added, evicted=evicted)

    def retain(self, *, now_ns: int) -> int:
        """Remove a slice of the expired messages; return 0 once none are left."""
        if not self._retention.max_age_ns:
            return 0
        with translated("remove old messages from the archive"):
            rows = self._rows(
                "WHERE timestamp_ns < ? ORDER BY timestamp_ns, hash LIMIT ?",
                (now_ns - self._retention.max_age_ns, MAX_REMOVED_AT_ONCE),
            )
            with self._transaction():
                self._remove(rows)
            if rows:
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
        self._count -= len(rows)
        return len(rows)

    def age_topics(self, *, now_ns: int) -> int:
        """Establish a slice of the topics that are a day old; return how many."""
        with translated("note the topics of the archive"), self._transaction():
            aged = self._connection.execute(
                "SELECT topic_key FROM topic WHERE NOT established AND since_ns <= ? LIMIT ?",
                (now_ns - DAY_NS, MAX_REMOVED_AT_ONCE),
            ).fetchall()
            for (topic_key,) in aged:
                self._shares.age(topic_key)
                self._set_standing(topic_key, Standing.AGED)
        return len(aged)

    def ask_for(self, asked_for: Iterable[tuple[int, Source]]) -> None:
        """Record topics that were queried by name, and by which source."""
        with translated("note the topics of the archive"), self._transaction():
            for topic_key, asker in asked_for:
                if self._shares.ask_for(topic_key, asker):
                    self._set_standing(topic_key, Standing.ASKED_FOR)

    def _set_standing(self, topic_key: int, standing: Standing) -> None:
        self._connection.execute(
            "UPDATE topic SET established = ? WHERE topic_key = ?", (standing, topic_key)
        )
        self._topics.clear()

    # --- putting in -----------------------------------------------------------------------------

    def _insert(self, message: ArchivedMessage, received_ns: int) -> int | None:
        """Return the key of the message's share, or None if the message is already there."""
        known = self._connection.execute(
            "SELECT 1 FROM message WHERE hash = ?", (message.message_hash,)
        ).fetchone()
        if known is not None:
            return None
        topic = self._topic(message.pubsub_topic, message.content_topic, received_ns)
        share_key = self._shares.of(message.source, topic.topic_key, topic.standing)
        self._connection.execute(
            "INSERT INTO message (pubsub_key, topic_key, share_key, timestamp_ns, received_ns, "
            "hash, digest, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                topic.pubsub_key,
                topic.topic_key,
                share_key,
                message.timestamp_ns,
                received_ns,
                message.message_hash,
                message.digest,
                message.data,
            ),
        )
        return share_key

    def _topic(self, pubsub_topic: PubsubTopic, content_topic: ContentTopic, now_ns: int) -> _Topic:
        pair = (pubsub_topic, content_topic)
        if (known := self._topics.get(pair)) is not None:
            return known
        self._connection.execute(
            "INSERT OR IGNORE INTO pubsub (pubsub_topic) VALUES (?)", (pubsub_topic,)
        )
        self._connection.execute(
            "INSERT OR IGNORE INTO topic (pubsub_key, content_topic, since_ns, established) "
            "SELECT pubsub_key, ?, ?, 0 FROM pubsub WHERE pubsub_topic = ?",
            (content_topic, now_ns, pubsub_topic),
        )
        row: tuple[int, int, int] = self._connection.execute(
            "SELECT pubsub_key, topic_key, established FROM topic JOIN pubsub USING (pubsub_key) "
            "WHERE content_topic = ? AND pubsub_topic = ?",
            (content_topic, pubsub_topic),
        ).fetchone()
        if len(self._topics) >= _REMEMBERED_TOPICS:
            self._topics.clear()
        found = self._topics[pair] = _Topic(row[0], row[1], Standing(row[2]))
        return found

    # --- making room ----------------------------------------------------------------------------

    def _make_room(self) -> int:
        """Remove the excess; return how many messages."""
        removed = 0
        while (excess := self._excess_bytes()) > 0:
            share_key = self._shares.first_to_give_way()
            if share_key is None:
                break
            rows = self._rows(
                "WHERE share_key = ? ORDER BY message_key LIMIT ?", (share_key, _REMOVED_TOGETHER)
            )
            enough = 0
            while enough < len(rows) and excess > 0:
                excess -= rows[enough].cost
                enough += 1
            self._remove(rows[:enough])
            removed += enough
        return removed

    def _excess_bytes(self) -> int:
        limit = self._retention.max_bytes
        return self._used_bytes() - limit if limit else 0

    def _rows(self, where: str, values: tuple[int, int]) -> list[_Row]:
        found = self._connection.execute(
            f"SELECT message_key, topic_key, share_key, length(data) FROM message {where}",  # noqa: S608 - ours
            values,
        )
        return [_Row(*row) for row in found]

    def _remove(self, rows: Sequence[_Row]) -> None:
        self._connection.executemany(
            "DELETE FROM message WHERE message_key = ?", [(row.message_key,) for row in rows]
        )
        self._connection.executemany(
            "DELETE FROM topic WHERE topic_key = ? AND NOT EXISTS "
            "(SELECT 1 FROM message WHERE message.topic_key = topic.topic_key)",
            [(topic_key,) for topic_key in {row.topic_key for row in rows}],
        )
        costs: Counter[int] = Counter()
        for row in rows:
            costs[row.share_key] -= row.cost
        self._shares.change(costs)
        self._topics.clear()

    def _keep_log_short(self) -> None:
        """Without this, the log would grow for as long as readers keep it from being reset."""
        log = self._path.with_name(f"{self._path.name}-wal")
        if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        try:
            with _transaction(self._connection):
                yield
        except BaseException:
            self._topics.clear()  # Keys created in this transaction are gone with it.
            raise
        finally:
            self._shares.forget()

    # --- how much there is ----------------------------------------------------------------------

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
    if version[0] and not _has(connection, "share_by_topic"):
        raise StorageError(
            f"The archive {path} was written by an earlier test version.  Move it away: what is in "
            "it others may have, and nothing of yours is."
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


def _has(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the table or index exists."""
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    return found is not None


def _create_private(path: Path) -> None:
    """Mode 0600 whatever the umask; SQLite gives its log the mode of the database."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"Cannot open {path}: {reason}.") from error
