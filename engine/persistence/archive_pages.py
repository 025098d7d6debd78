"""Pages of the archive: from a cursor along an index, never by an offset.

One range per topic, merged here, so that a page of a quiet topic costs no scan of a busy one; where
very many topics fit, one range over all messages that is filtered.  Keys come first and messages
after, and only those of the page.  A page ends at its number of messages or of bytes.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from engine.core.types import PubsubTopic, WakuHash
from engine.core.waku_archive import ArchivedRow, ArchivePage, ArchiveQuery, CursorUnknownError
from engine.core.waku_store import HistoryIndex

_MANY_TOPICS: Final = 128
_Value: TypeAlias = str | int | bytes


@dataclass(frozen=True, slots=True)
class _Key:
    """``place`` is the row's in the order that was asked for."""

    place: tuple[int, bytes] | tuple[int, bytes, int]
    message_key: int


@dataclass(frozen=True, slots=True)
class _Condition:
    sql: str
    values: tuple[_Value, ...] = ()


def read_page(connection: sqlite3.Connection, query: ArchiveQuery) -> ArchivePage:
    """Raises CursorUnknownError."""
    after = _find_cursor(connection, query)
    found: list[_Key] = []
    for condition in _ranges(connection, query):
        found += _read_range(connection, query, after, condition)
    found.sort(key=lambda key: key.place, reverse=not query.forward)
    rows = _read_rows(connection, found[: query.limit], query)
    return ArchivePage(
        rows=tuple(rows if query.forward else reversed(rows)), more=len(found) > len(rows)
    )


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

    Of several that fit such a cursor it means the one that leaves nothing out.
    """
    found: list[tuple[int, int]] = connection.execute(
        "SELECT received_ns, message_key FROM message JOIN topic USING (topic_key) "
        "WHERE timestamp_ns = ? AND digest = ? AND pubsub_topic = ? ORDER BY received_ns",
        (index.sender_time_ns, index.digest, index.pubsub_topic),
    ).fetchall()
    if not found:
        raise CursorUnknownError
    exact = [pair for pair in found if pair[0] == index.receiver_time_ns]
    received_ns, message_key = exact[0] if exact else found[0 if forward else -1]
    return _Key((index.sender_time_ns, index.digest, received_ns), message_key)


# --- what is asked for --------------------------------------------------------------------------


def _ranges(connection: sqlite3.Connection, query: ArchiveQuery) -> list[_Condition]:
    """Conditions that exclude each other; each is one range of an index, or nearly so."""
    if query.message_hashes:
        hashes = tuple(dict.fromkeys(query.message_hashes))
        return [_Condition(f"hash IN ({_marks(len(hashes))})", hashes)]
    topics = _topics(query)
    if topics is None:
        return [_Condition("TRUE")]
    found = connection.execute(f"{topics.sql} LIMIT {_MANY_TOPICS + 1}", topics.values).fetchall()
    if len(found) > _MANY_TOPICS:
        return [_Condition(f"+topic_key IN ({topics.sql})", topics.values)]
    return [_Condition("topic_key = ?", (topic_key,)) for (topic_key,) in found]


def _topics(query: ArchiveQuery) -> _Condition | None:
    """Selects the topics asked for; None: all of them."""
    conditions: list[str] = []
    values: list[str] = []
    if query.pubsub_topic is not None:
        conditions.append("pubsub_topic = ?")
        values.append(query.pubsub_topic)
    if query.content_topics:
        wanted = dict.fromkeys(query.content_topics)
        conditions.append(f"content_topic IN ({_marks(len(wanted))})")
        values.extend(wanted)
    if not conditions:
        return None
    where = " AND ".join(conditions)
    return _Condition(f"SELECT topic_key FROM topic WHERE {where}", tuple(values))  # noqa: S608 - no outside text


def _bounds(query: ArchiveQuery, after: _Key | None, columns: str) -> list[_Condition]:
    bounds: list[_Condition] = []
    if query.time_start_ns is not None:
        bounds.append(_Condition("timestamp_ns >= ?", (query.time_start_ns,)))
    if query.time_end_ns is not None:
        bounds.append(_Condition("timestamp_ns <= ?", (query.time_end_ns,)))
    if after is not None:
        beyond = ">" if query.forward else "<"
        bounds.append(_Condition(f"({columns}) {beyond} ({_marks(len(after.place))})", after.place))
    return bounds


# --- reading ------------------------------------------------------------------------------------


def _read_range(
    connection: sqlite3.Connection, query: ArchiveQuery, after: _Key | None, condition: _Condition
) -> list[_Key]:
    """One more than a page may hold, in the direction of paging."""
    columns = "timestamp_ns, digest, received_ns" if query.by_digest else "timestamp_ns, hash"
    conditions = [condition, *_bounds(query, after, columns)]
    where = " AND ".join(part.sql for part in conditions)
    way = "ASC" if query.forward else "DESC"
    order = ", ".join(f"{column} {way}" for column in columns.split(", "))
    found = connection.execute(
        f"SELECT {columns}, message_key FROM message WHERE {where} ORDER BY {order} LIMIT ?",  # noqa: S608 - as above
        [*(value for part in conditions for value in part.values), query.limit + 1],
    )
    return [_Key(tuple(row[:-1]), row[-1]) for row in found]


def _read_rows(
    connection: sqlite3.Connection, keys: Sequence[_Key], query: ArchiveQuery
) -> list[ArchivedRow]:
    """In the order of ``keys``, until the page is full of bytes."""
    rows: list[ArchivedRow] = []
    size = 0
    data = "data" if query.include_data else "x''"
    for key in keys:
        message_hash, digest, timestamp_ns, received_ns, pubsub_topic, content = connection.execute(
            f"SELECT hash, digest, timestamp_ns, received_ns, pubsub_topic, {data} "  # noqa: S608 - as above
            "FROM message JOIN topic USING (topic_key) WHERE message_key = ?",
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


def _marks(count: int) -> str:
    return ", ".join("?" * count)
