"""Keeps the index of a group's log on disk, so that a start need not make it from a million rows.

A start that has read rows of the log keeps them as memory has them: in pages (``LogTable``), many
together in a row of ``log_pages``, and, whenever these have grown by an eighth, their look-up by id
(``log_buckets``).  The next start reads those, and as rows only what is newer.

Triggers note whatever contradicts the pages, in every connection.  A message that comes late,
before their end, goes to ``log_late`` and is read after them; if there are many of those, or if a
message leaves the log, the pages from there on are made again.  The rows alone count: pages that
are damaged, or do not fit them, are made again, and the log's reader is told
(``LogTable.distrusted``).  Runs inside the store's transaction.
"""

import secrets
import sqlite3
import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Struct

from engine.core.ids import InstanceId, MessageId, ParticipantId
from engine.core.packed_ids import PACKED_BYTES
from engine.core.sds.log_ids import Buckets
from engine.core.sds.log_table import Author, LogPage, LogTable
from engine.persistence.short_keys import instance_keys, participant_keys
from engine.persistence.stored_ids import StoredId, stored_id, stored_place

TOGETHER: Final = 16
"""Pages in one row: some 200 KB, which are read in a few milliseconds."""
LIGHTER: Final = 8
"""Rows of pages take less than a tenth of what reading a row takes: so many times as many are read
in one go."""
BUCKETS_TOGETHER: Final = 1_024
MOST_LATE: Final = 1_024
"""Messages that came late; more cost a start more than the pages that are made again."""
FORM: Final = 2 if sys.byteorder == "little" else -2
"""Counts changes of what is kept."""
_KEY_BYTES: Final = 16

_OF_CONVERSATION: Final = (
    "conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE"
)
INDEX_TABLES: Final = (
    """
    CREATE TABLE log_index (
      conversation_key INTEGER PRIMARY KEY REFERENCES conversation ON DELETE CASCADE,
      rows INTEGER NOT NULL, last_lamport INTEGER NOT NULL, last_message_id ANY NOT NULL,
      removed_from INTEGER, hash_key BLOB NOT NULL, rows_found INTEGER NOT NULL,
      form INTEGER NOT NULL
    ) STRICT
    """,
    f"""
    CREATE TABLE log_pages (
      pages_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, number INTEGER NOT NULL,
      last_lamport INTEGER NOT NULL, last_message_id ANY NOT NULL, checksum INTEGER NOT NULL,
      data BLOB NOT NULL, UNIQUE (conversation_key, number)
    ) STRICT
    """,
    f"""
    CREATE TABLE log_buckets (
      buckets_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, number INTEGER NOT NULL,
      checksum INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (conversation_key, number)
    ) STRICT
    """,
    f"""
    CREATE TABLE log_author (
      {_OF_CONVERSATION}, number INTEGER NOT NULL, sender_key INTEGER NOT NULL,
      instance_key INTEGER, PRIMARY KEY (conversation_key, number)
    ) STRICT, WITHOUT ROWID
    """,
    f"""
    CREATE TABLE log_late (
      {_OF_CONVERSATION}, lamport_timestamp INTEGER NOT NULL, message_id ANY NOT NULL,
      PRIMARY KEY (conversation_key, lamport_timestamp, message_id)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TRIGGER log_entry_came_late AFTER INSERT ON log_entry
    WHEN EXISTS (
      SELECT 1 FROM log_index AS i WHERE i.conversation_key = NEW.conversation_key
      AND (NEW.lamport_timestamp, NEW.message_id) <= (i.last_lamport, i.last_message_id)
    )
    BEGIN
      INSERT INTO log_late VALUES (NEW.conversation_key, NEW.lamport_timestamp, NEW.message_id);
    END
    """,
    """
    CREATE TRIGGER log_entry_left AFTER DELETE ON log_entry
    WHEN EXISTS (
      SELECT 1 FROM log_index AS i WHERE i.conversation_key = OLD.conversation_key
      AND (OLD.lamport_timestamp, OLD.message_id) <= (i.last_lamport, i.last_message_id)
    )
    BEGIN
      UPDATE log_index
      SET removed_from = min(coalesce(removed_from, OLD.lamport_timestamp), OLD.lamport_timestamp)
      WHERE conversation_key = OLD.conversation_key;
      DELETE FROM log_late
      WHERE conversation_key = OLD.conversation_key
        AND lamport_timestamp = OLD.lamport_timestamp AND message_id = OLD.message_id;
    END
    """,
)
"""Statements that make the tables, and the triggers."""
_TRIGGERS: Final = ("log_entry_came_late", "log_entry_left")
_NOTES: Final = ("SELECT * FROM log_index", "SELECT * FROM log_late")
"""What the triggers read and write: few rows."""

_HEAD: Final = (
    "SELECT rows, last_lamport, last_message_id, removed_from, hash_key, rows_found, form "
    "FROM log_index WHERE conversation_key = ?"
)
_PUT_HEAD: Final = """
INSERT INTO log_index (conversation_key, rows, last_lamport, last_message_id, removed_from,
                       hash_key, rows_found, form)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key) DO UPDATE SET
  rows = excluded.rows, last_lamport = excluded.last_lamport,
  last_message_id = excluded.last_message_id, removed_from = excluded.removed_from,
  hash_key = excluded.hash_key, rows_found = excluded.rows_found, form = excluded.form
"""
_PUT_PAGES: Final = """
INSERT INTO log_pages (conversation_key, number, last_lamport, last_message_id, checksum, data)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, number) DO UPDATE SET
  last_lamport = excluded.last_lamport, last_message_id = excluded.last_message_id,
  checksum = excluded.checksum, data = excluded.data
"""
_PUT_BUCKETS: Final = """
INSERT INTO log_buckets (conversation_key, number, checksum, data) VALUES (?, ?, ?, ?)
ON CONFLICT (conversation_key, number) DO UPDATE SET
  checksum = excluded.checksum, data = excluded.data
"""
_AUTHORS: Final = """
SELECT number, participant_id, instance_id
FROM log_author AS a
  JOIN participant AS p ON p.participant_key = a.sender_key
  LEFT JOIN instance AS i ON i.instance_key = a.instance_key
WHERE a.conversation_key = ? ORDER BY number
"""
_COLUMNS: Final = """
SELECT l.lamport_timestamp, l.message_id, participant_id, retrieval_hint, instance_id, sequence,
       previous_id, size
"""
_NAMES: Final = """
  CROSS JOIN participant ON participant_key = sender_key
  LEFT JOIN instance ON instance.instance_key = l.instance_key
"""
_ROWS: Final = f"""{_COLUMNS} FROM log_entry AS l {_NAMES}
WHERE l.conversation_key = ? AND (l.lamport_timestamp, l.message_id) > (?, ?)
ORDER BY l.lamport_timestamp, l.message_id LIMIT ?
"""
_LATE: Final = f"""{_COLUMNS}
FROM log_late AS late CROSS JOIN log_entry AS l
  ON l.conversation_key = late.conversation_key
  AND l.lamport_timestamp = late.lamport_timestamp AND l.message_id = late.message_id
{_NAMES}
WHERE late.conversation_key = ? AND (l.lamport_timestamp, l.message_id) < (?, ?)
ORDER BY l.lamport_timestamp, l.message_id
"""
_LATE_COUNT: Final = "SELECT count(*) FROM log_late WHERE conversation_key = ?"


class _DamagedError(Exception):
    """What was kept cannot be used."""


class _Head(Struct):
    """What is kept of one log."""

    rows: int = 0
    """In pages; all that are in the log up to the last one, but for those that came late."""
    last_lamport: int = -1
    last_message_id: StoredId = b""
    removed_from: int | None = None
    """The first Lamport timestamp from which a message has left the log since."""
    hash_key: bytes = b""
    rows_found: int = 0
    """In the look-up by id."""
    form: int = FORM


class _Column(Struct, frozen=True, array_like=True):
    code: str
    data: bytes


class _Page(Struct, frozen=True, array_like=True):
    ids: bytes
    first_lamport: int
    columns: tuple[_Column, _Column, _Column, _Column]
    """Lamport timestamps, authors, sequence numbers and sizes."""


class _Pages(Struct, frozen=True, array_like=True):
    authors: int
    """So many authors were known: the pages have no others."""
    authors_checksum: int
    pages: list[_Page]
    previous: dict[int, MessageId]
    """By row: ``LogTable.previous``."""


def read_rows(connection: sqlite3.Connection, conversation: int, log: LogTable, limit: int) -> bool:
    """Add up to ``limit`` entries that follow those in ``log`` (-1: all); False if none is left."""
    before = len(log)
    last = stored_place(log[before - 1].position) if before else (-1, "")
    log.add_rows(connection.execute(_ROWS, (conversation, *last, limit)))
    return limit >= 0 and len(log) - before == limit


def read_log(connection: sqlite3.Connection, conversation: int, log: LogTable, limit: int) -> bool:
    """As ``read_rows``, with what was kept of the log, which is read faster; keeps what was not."""
    if not _is_kept_up(connection):
        log.distrusted = log.rows_only = True
        return True
    head = _read_head(connection, conversation)
    if head.form != FORM:  # Kept by another version of the program; nothing is wrong with it.
        _cut(connection, conversation, head, log, 0)
    try:
        if not len(log):
            _make_fit(connection, conversation, head, log)
        if len(log) < head.rows:
            _restore_pages(connection, conversation, log, LIGHTER * limit, head)
            return True
        if head.rows_found and not log.pages_found:
            _restore_buckets(connection, conversation, log, head)
        more = read_rows(connection, conversation, log, limit)
        _save_pages(connection, conversation, log, head, more=more)
        if not more:
            _save_buckets(connection, conversation, log, head)
            _read_late(connection, conversation, log, head)
    except _DamagedError:
        log.clear()
        log.distrusted = True
        _cut(connection, conversation, head, log, 0)
        return True
    return more


def read_notes(connection: sqlite3.Connection) -> None:
    """Read all that the triggers may touch, to see whether it is readable."""
    for sql in _NOTES:
        connection.execute(sql).fetchall()


def give_up(connection: sqlite3.Connection) -> None:
    """Keep no index up from now on: the triggers would fail, and with them every message."""
    for name in _TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")


def _is_kept_up(connection: sqlite3.Connection) -> bool:
    found: tuple[int] = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND name IN (?, ?)", _TRIGGERS
    ).fetchone()
    return found[0] == len(_TRIGGERS)


def _read_late(
    connection: sqlite3.Connection, conversation: int, log: LogTable, head: _Head
) -> None:
    """Add what came late: messages before the last one in pages, and not in them."""
    late: tuple[int] = connection.execute(_LATE_COUNT, (conversation,)).fetchone()
    before = len(log)
    log.add_rows(connection.execute(_LATE, (conversation, head.last_lamport, head.last_message_id)))
    if len(log) - before != late[0]:
        raise _DamagedError
    for row in range(before, len(log)):
        place = log.place(row)
        if log.place(bisect_left(range(head.rows), place, key=log.place)) == place:
            raise _DamagedError


def _read_head(connection: sqlite3.Connection, conversation: int) -> _Head:
    row = connection.execute(_HEAD, (conversation,)).fetchone()
    return _Head(*row) if row else _Head()


def _put_head(connection: sqlite3.Connection, conversation: int, head: _Head) -> None:
    connection.execute(_PUT_HEAD, (conversation, *msgspec.structs.astuple(head)))


def _make_fit(
    connection: sqlite3.Connection, conversation: int, head: _Head, log: LogTable
) -> None:
    """Leave the pages from where a message left the log, or where too many came late."""
    if head.rows % log.page_rows or not 0 <= head.rows_found <= head.rows:
        raise _DamagedError
    if head.rows:
        groups = -(-head.rows // (TOGETHER * log.page_rows))
        usable = _fitting(connection, conversation, head, groups)
        if usable < groups:
            _cut(connection, conversation, head, log, usable)
        last = (conversation, head.last_lamport, head.last_message_id)
        there = connection.execute(
            "SELECT 1 FROM log_entry "
            "WHERE conversation_key = ? AND lamport_timestamp = ? AND message_id = ?",
            last,
        ).fetchone()
        if head.rows and there is None:
            raise _DamagedError
    authors: list[tuple[int, ParticipantId, InstanceId | None]]
    authors = connection.execute(_AUTHORS, (conversation,)).fetchall()
    if [number for number, _, _ in authors] != [*range(len(authors))]:
        raise _DamagedError
    log.restore_authors([(sender_id, instance_id) for _, sender_id, instance_id in authors])


def _fitting(connection: sqlite3.Connection, conversation: int, head: _Head, groups: int) -> int:
    """How many of the first ``groups`` rows of ``log_pages`` are before what contradicts them."""
    before = head.last_lamport + 1
    if head.removed_from is not None:
        before = min(before, head.removed_from)
    late: tuple[int] = connection.execute(_LATE_COUNT, (conversation,)).fetchone()
    if late[0] > MOST_LATE:
        row = connection.execute(
            "SELECT lamport_timestamp FROM log_late WHERE conversation_key = ? "
            "ORDER BY lamport_timestamp, message_id LIMIT 1 OFFSET ?",
            (conversation, MOST_LATE // 2),
        ).fetchone()
        before = min(before, row[0])
    row = connection.execute(
        "SELECT number FROM log_pages "
        "WHERE conversation_key = ? AND number < ? AND last_lamport >= ? ORDER BY number LIMIT 1",
        (conversation, groups, before),
    ).fetchone()
    return row[0] if row else groups


def _cut(
    connection: sqlite3.Connection, conversation: int, head: _Head, log: LogTable, groups: int
) -> None:
    """Go on with only the first ``groups`` rows of ``log_pages``; others are written anew."""
    head.rows = groups * TOGETHER * log.page_rows
    row = connection.execute(
        "SELECT last_lamport, last_message_id FROM log_pages "
        "WHERE conversation_key = ? AND number = ?",
        (conversation, groups - 1),
    ).fetchone()
    head.last_lamport, head.last_message_id = row or (-1, b"")
    head.removed_from = None
    head.form = FORM
    if not 0 <= head.rows_found <= head.rows:
        head.rows_found = 0
    if not groups:
        connection.execute("DELETE FROM log_author WHERE conversation_key = ?", (conversation,))
    connection.execute(
        "DELETE FROM log_late WHERE conversation_key = ? "
        "AND (? = 0 OR (lamport_timestamp, message_id) > (?, ?))",
        (conversation, groups, head.last_lamport, head.last_message_id),
    )
    _put_head(connection, conversation, head)


# --- pages --------------------------------------------------------------------------------------


def _restore_pages(
    connection: sqlite3.Connection, conversation: int, log: LogTable, limit: int, head: _Head
) -> None:
    before = len(log)
    while len(log) < head.rows and (limit < 0 or len(log) - before < limit):
        number = len(log.pages) // TOGETHER
        row: tuple[int, StoredId, int, bytes] | None = connection.execute(
            "SELECT last_lamport, last_message_id, checksum, data FROM log_pages "
            "WHERE conversation_key = ? AND number = ?",
            (conversation, number),
        ).fetchone()
        if row is None:
            raise _DamagedError
        lamport, message_id, checksum, data = row
        try:
            kept = msgspec.msgpack.decode(
                _checked(data, checksum, number, lamport, message_id), type=_Pages
            )
            pages = [_unpacked(page, log.page_rows) for page in kept.pages]
        except ValueError as error:  # Also msgspec's.
            raise _DamagedError from error
        if (
            not 0 < len(pages) <= TOGETHER
            or len(log) + len(pages) * log.page_rows > head.rows
            or any(max(page.authors) >= kept.authors for page in pages)
            or _authors_checksum(log.authors[: kept.authors]) != kept.authors_checksum
        ):
            raise _DamagedError
        log.add_pages(pages, kept.previous)
    last = head.last_lamport, head.last_message_id
    if len(log) == head.rows and stored_place(log[-1].position) != last:
        raise _DamagedError  # Messages may have come late, and nobody noted it.


def _save_pages(
    connection: sqlite3.Connection, conversation: int, log: LogTable, head: _Head, *, more: bool
) -> None:
    """Keep all pages, except those with ids of another shape and what follows them."""
    saved = head.rows // log.page_rows
    odd = (number for number in range(saved, len(log.pages)) if log.pages[number].texts)
    count = next(odd, len(log.pages))
    if more:
        count -= count % TOGETHER  # The last ones will have company.
    if count <= saved:
        return
    _save_authors(connection, conversation, log)
    authors, authors_checksum = len(log.authors), _authors_checksum(log.authors)
    for number in range(saved // TOGETHER, -(-count // TOGETHER)):
        pages = log.pages[number * TOGETHER : min((number + 1) * TOGETHER, count)]
        first = number * TOGETHER * log.page_rows
        rows = range(first, first + len(pages) * log.page_rows)
        previous = {row: item for row, item in log.previous.items() if row in rows}
        kept = _Pages(authors, authors_checksum, [*map(_packed, pages)], previous)
        data = msgspec.msgpack.encode(kept)
        lamport, message_id = pages[-1].last_place
        place = lamport, stored_id(message_id)
        checksum = _checksum(data, number, *place)
        connection.execute(_PUT_PAGES, (conversation, number, *place, checksum, data))
        head.last_lamport, head.last_message_id = place
    head.rows = count * log.page_rows
    head.hash_key = head.hash_key or secrets.token_bytes(_KEY_BYTES)
    _put_head(connection, conversation, head)


def _save_authors(connection: sqlite3.Connection, conversation: int, log: LogTable) -> None:
    known: tuple[int] = connection.execute(
        "SELECT count(*) FROM log_author WHERE conversation_key = ?", (conversation,)
    ).fetchone()
    new = log.authors[known[0] :]
    senders = participant_keys(connection, conversation, [sender_id for sender_id, _ in new])
    named = [instance_id for _, instance_id in new if instance_id is not None]
    instances = instance_keys(connection, conversation, named)
    connection.executemany(
        "INSERT INTO log_author (conversation_key, number, sender_key, instance_key) "
        "VALUES (?, ?, ?, ?)",
        [
            (conversation, number, senders[who], None if which is None else instances[which])
            for number, (who, which) in enumerate(new, known[0])
        ],
    )


def _authors_checksum(authors: Sequence[Author]) -> int:
    return crc32(msgspec.msgpack.encode(authors))


def _packed(page: LogPage) -> _Page:
    lamports, authors, sequences, sizes = (
        _Column(column.typecode, column.tobytes())
        for column in (page.lamports, page.authors, page.sequences, page.sizes)
    )
    return _Page(page.ids, page.first_lamport, (lamports, authors, sequences, sizes))


def _unpacked(page: _Page, rows: int) -> LogPage:
    """Raises ValueError if a column has another length."""
    columns = [array(column.code, column.data) for column in page.columns]
    if len(page.ids) != rows * PACKED_BYTES or any(len(column) != rows for column in columns):
        raise ValueError("a page of a saved index has another length")
    lamports, authors, sequences, sizes = columns
    return LogPage(
        ids=page.ids,
        first_lamport=page.first_lamport,
        lamports=lamports,
        authors=authors,
        sequences=sequences,
        sizes=sizes,
    )


# --- the look-up by id --------------------------------------------------------------------------


def _restore_buckets(
    connection: sqlite3.Connection, conversation: int, log: LogTable, head: _Head
) -> None:
    """Take over the look-up; one that is damaged is left."""
    cursor = connection.execute(
        "SELECT data, checksum, number FROM log_buckets WHERE conversation_key = ? ORDER BY number",
        (conversation,),
    )
    try:
        buckets = [
            msgspec.msgpack.decode(_checked(*row, head.hash_key), type=Buckets) for row in cursor
        ]
        log.restore_old(buckets, head.rows_found, key=_odd(head.hash_key))
    except (_DamagedError, ValueError):
        log.distrusted = True
        head.rows_found = 0
        _put_head(connection, conversation, head)


def _save_buckets(
    connection: sqlite3.Connection, conversation: int, log: LogTable, head: _Head
) -> None:
    """Keep the look-up if it has grown by an eighth since it was kept last."""
    if head.rows - head.rows_found <= max(log.page_rows, head.rows_found // 8):
        return
    log.find_pages(key=_odd(head.hash_key))
    kept = log.old.saved(BUCKETS_TOGETHER)
    for number, buckets in enumerate(kept):
        data = msgspec.msgpack.encode(buckets)
        checksum = _checksum(data, number, head.hash_key)
        connection.execute(_PUT_BUCKETS, (conversation, number, checksum, data))
    connection.execute(
        "DELETE FROM log_buckets WHERE conversation_key = ? AND number >= ?",
        (conversation, len(kept)),
    )
    head.rows_found = log.pages_found * log.page_rows
    _put_head(connection, conversation, head)


def _odd(key: bytes) -> int:
    return int.from_bytes(key) | 1


def _checksum(data: bytes, *what: int | StoredId) -> int:
    """``what``: where the data belong, and what they mean nothing without."""
    return crc32(data, crc32(msgspec.msgpack.encode(what)))


def _checked(data: bytes, checksum: int, *what: int | StoredId) -> bytes:
    if _checksum(data, *what) != checksum:
        raise _DamagedError
    return data
