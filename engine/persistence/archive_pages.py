"""Pages of the archive, read from a cursor along an index and never by an offset.

Each query is one index range per topic.  The ranges are merged only as far as the page goes, so a
page costs the same however large the archive is.  Keys are read first, then the messages of the
page only.  A page ends at its limit of messages or of bytes.

The reader has its own connection and a deadline for each page, so that queries never delay
archiving.
"""

import heapq
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self, TypeAlias

from msgspec import Struct
from sqlcipher3 import dbapi2

from engine.core.ids import PubsubTopic, WakuHash
from engine.core.waku_archive import (
    ArchivedRow,
    ArchivePage,
    ArchiveQuery,
    ArchiveSlowError,
    CursorUnknownError,
)
from engine.core.waku_store import HistoryIndex
from engine.persistence.errors import translated

_STEPS_BETWEEN_LOOKS: Final = 1_000
"""SQLite instructions between two checks of the clock: some 10 microseconds."""
_Value: TypeAlias = str | int | bytes


class Found(Struct, frozen=True, kw_only=True):
    """``topics`` were queried by name."""

    page: ArchivePage
    topics: tuple[int, ...]


class ArchiveReader:
    """Bound to the thread that opened it.  Every method may raise StorageError."""

    def __init__(self, connection: sqlite3.Connection, clock_s: Callable[[], float]) -> None:
        self._connection = connection
        self._clock_s = clock_s
        self._deadline_s = 0.0
        connection.set_progress_handler(self._is_late, _STEPS_BETWEEN_LOOKS)

    @classmethod
    def open(cls, path: Path, *, clock_s: Callable[[], float] = time.monotonic) -> Self:
        """Open an archive that was opened for writing before."""
        with translated(f"open {path}"):
            connection = dbapi2.connect(str(path), timeout=5, isolation_level=None)
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
        return cls(connection, clock_s)

    def close(self) -> None:
        with translated("close the archive"):
            self._connection.close()

    def query(self, query: ArchiveQuery, *, deadline_s: float) -> Found:
        """One page.

        Raises CursorUnknownError if the cursor is unknown, ArchiveSlowError if ``deadline_s``, by
        the reader's clock, passes first.
        """
        self._deadline_s = deadline_s
        if self._is_late():
            raise ArchiveSlowError("The archive is asked too much.")
        with translated("read the archive"):
            self._connection.execute("BEGIN")  # one snapshot for the whole page
            try:
                return _read_page(self._connection, query)
            except dbapi2.OperationalError as error:
                if self._is_late():
                    raise ArchiveSlowError("The archive took too long for a page.") from error
                raise
            finally:
                self._deadline_s = float("inf")
                self._connection.execute("ROLLBACK")

    def _is_late(self) -> bool:
        return self._clock_s() >= self._deadline_s


class _Key(Struct, frozen=True):
    """``place`` is the row's place in the requested order."""

    place: tuple[int, bytes] | tuple[int, bytes, int]
    message_key: int


class _Range(Struct, frozen=True):
    """A range of the index whose leading columns ``sql`` fixes."""

    index: str
    sql: str = "TRUE"
    values: tuple[_Value, ...] = ()


def _read_page(connection: sqlite3.Connection, query: ArchiveQuery) -> Found:
    """Raises CursorUnknownError."""
    after = _find_cursor(connection, query)
    topics: tuple[int, ...] = ()
    if query.message_hashes:
        found = _look_up(connection, query, after)
    else:
        topics = _topics(connection, query)
        ranges = _ranges(connection, query, topics)
        found = _merged([_keys(connection, query, after, each) for each in ranges], query)
    rows = _read_rows(connection, found[: query.limit], query)
    page = ArchivePage(
        rows=tuple(rows if query.forward else reversed(rows)), more=len(found) > len(rows)
    )
    return Found(page=page, topics=topics)


# --- the cursor ---------------------------------------------------------------------------------


def _find_cursor(connection: sqlite3.Connection, query: ArchiveQuery) -> _Key | None:
    match query.cursor:
        case None:
            return None
        case HistoryIndex() as index:
            return _find_index(connection, index, forward=query.forward)
        case message_hash:
            found = connection.execute(
                "SELECT timestamp_ns, hash, message_key FROM message WHERE hash = ?",
                (message_hash,),
            ).fetchone()
    if found is None:
        raise CursorUnknownError
    return _Key((found[0], found[1]), found[2])


def _find_index(connection: sqlite3.Connection, index: HistoryIndex, *, forward: bool) -> _Key:
    """The time of receipt tells equal digests apart; some clients make up a cursor without it.

    If several rows fit such a cursor, the one that skips nothing is used.
    """
    alike = (
        "SELECT received_ns, message_key FROM message INDEXED BY pubsub_by_digest_order "
        "WHERE pubsub_key = (SELECT pubsub_key FROM pubsub WHERE pubsub_topic = ?) "
        "AND timestamp_ns = ? AND digest = ?"
    )
    values = (index.pubsub_topic, index.sender_time_ns, index.digest)
    found: tuple[int, int] | None = connection.execute(
        f"{alike} AND received_ns = ?", (*values, index.receiver_time_ns)
    ).fetchone()
    if found is None:
        way = "ASC" if forward else "DESC"
        found = connection.execute(f"{alike} ORDER BY received_ns {way} LIMIT 1", values).fetchone()
    if found is None:
        raise CursorUnknownError
    return _Key((index.sender_time_ns, index.digest, found[0]), found[1])


# --- what is asked for --------------------------------------------------------------------------


def _ranges(
    connection: sqlite3.Connection, query: ArchiveQuery, topics: Sequence[int]
) -> list[_Range]:
    """The ranges to read; they are disjoint."""
    if query.content_topics:
        index = "topic_by_digest_order" if query.by_digest else "topic_by_hash_order"
        return [_Range(index, "topic_key = ?", (key,)) for key in topics]
    if query.pubsub_topic is None and not query.by_digest:
        return [_Range("message_by_hash_order")]
    return [
        _Range("pubsub_by_digest_order", "pubsub_key = ?", (key,))
        for key, pubsub_topic in connection.execute("SELECT pubsub_key, pubsub_topic FROM pubsub")
        if query.pubsub_topic in {None, pubsub_topic}
    ]


def _topics(connection: sqlite3.Connection, query: ArchiveQuery) -> tuple[int, ...]:
    """Keys of the named topics that exist."""
    on_topic = "" if query.pubsub_topic is None else " AND pubsub_topic = ?"
    found: list[int] = []
    for content_topic in dict.fromkeys(query.content_topics):
        values = (content_topic, *([query.pubsub_topic] if query.pubsub_topic else []))
        rows = connection.execute(
            "SELECT topic_key FROM topic JOIN pubsub USING (pubsub_key) "  # noqa: S608 - as below
            f"WHERE content_topic = ?{on_topic}",
            values,
        )
        found += [key for (key,) in rows]
    return tuple(found)


# --- reading ------------------------------------------------------------------------------------


def _keys(
    connection: sqlite3.Connection, query: ArchiveQuery, after: _Key | None, range_: _Range
) -> Iterator[_Key]:
    """Keys in the direction of paging, read lazily.

    A bound behind the cursor is redundant and left out; SQLite might begin the range at either.
    """
    columns = "timestamp_ns, digest, received_ns" if query.by_digest else "timestamp_ns, hash"
    conditions, values = [range_.sql], [*range_.values]
    begins, ends = (">", "<") if query.forward else ("<", ">")
    first_ns, last_ns = query.time_start_ns, query.time_end_ns
    if not query.forward:
        first_ns, last_ns = last_ns, first_ns
    if after is not None and (
        first_ns is None
        or after.place[0] == first_ns
        or (after.place[0] > first_ns) == query.forward
    ):
        marks = ", ".join("?" * len(after.place))
        conditions.append(f"({columns}) {begins} ({marks})")
        values += after.place
    elif first_ns is not None:
        conditions.append(f"timestamp_ns {begins}= ?")
        values.append(first_ns)
    if last_ns is not None:
        conditions.append(f"timestamp_ns {ends}= ?")
        values.append(last_ns)
    way = "ASC" if query.forward else "DESC"
    order = ", ".join(f"{column} {way}" for column in columns.split(", "))
    found = connection.execute(
        f"SELECT {columns}, message_key FROM message INDEXED BY {range_.index} "  # noqa: S608 - no outside text
        f"WHERE {' AND '.join(conditions)} ORDER BY {order}",
        values,
    )
    return (_Key(tuple(row[:-1]), row[-1]) for row in found)


def _merged(ranges: Sequence[Iterator[_Key]], query: ArchiveQuery) -> list[_Key]:
    """Up to one key more than a page may hold."""
    merged = heapq.merge(*ranges, key=lambda key: key.place, reverse=not query.forward)
    return [key for key, _ in zip(merged, range(query.limit + 1), strict=False)]


def _look_up(connection: sqlite3.Connection, query: ArchiveQuery, after: _Key | None) -> list[_Key]:
    """The requested hashes, up to one more than a page may hold."""
    found: list[_Key] = []
    for message_hash in dict.fromkeys(query.message_hashes):
        row = connection.execute(
            "SELECT timestamp_ns, message_key FROM message WHERE hash = ?", (message_hash,)
        ).fetchone()
        if row is not None:
            found.append(_Key((row[0], message_hash), row[1]))
    found.sort(key=lambda key: key.place, reverse=not query.forward)
    if after is not None:
        found = [
            key
            for key in found
            if key.place != after.place and (key.place > after.place) == query.forward
        ]
    return found[: query.limit + 1]


def _read_rows(
    connection: sqlite3.Connection, keys: Sequence[_Key], query: ArchiveQuery
) -> list[ArchivedRow]:
    """In the order of ``keys``, until the page's bytes are full."""
    rows: list[ArchivedRow] = []
    size = 0
    data = "data" if query.include_data else "x''"
    for key in keys:
        message_hash, digest, timestamp_ns, received_ns, pubsub_topic, content = connection.execute(
            f"SELECT hash, digest, timestamp_ns, received_ns, pubsub_topic, {data} "  # noqa: S608 - as above
            "FROM message JOIN pubsub USING (pubsub_key) WHERE message_key = ?",
            (key.message_key,),
        ).fetchone()
        size += len(content)
        if rows and size > query.max_bytes:
            break
        index = HistoryIndex(
            digest=digest,
            receiver_time_ns=received_ns,
            sender_time_ns=timestamp_ns,
            pubsub_topic=PubsubTopic(pubsub_topic),
        )
        rows.append(ArchivedRow(message_hash=WakuHash(message_hash), index=index, data=content))
    return rows
