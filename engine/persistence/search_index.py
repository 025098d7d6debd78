"""Keeps the index of the search up: new, changed and removed messages, and those of an old profile.

Each call takes a slice of what is due and is one transaction with it, so nothing is indexed twice
or forgotten, also when the process is killed.  Buckets are cut where that moves least: messages
that come in order, forwards or backwards, move nothing, and in any other order each message is
moved about once.  Runs on the storage thread, inside the store's transaction.
"""

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct

from engine.core.ids import ParticipantId
from engine.core.search import Indexed
from engine.core.search_text import terms
from engine.persistence.muted_members import DELETED
from engine.persistence.rules import FILE_KIND, SAID_KINDS
from engine.persistence.search_pairs import Kinds, all_kinds, epoch_of, learn_kinds
from engine.persistence.search_tables import (
    FORM,
    HAS_RUNS,
    IN_CONVERSATION,
    LINK_SPAN,
    WITH_FILE,
    WITH_LINK,
    SearchState,
    begin_anew,
    code_of,
    conversation_term,
    newest_key,
    read_state,
    sender_term,
    write_state,
)

BUCKET_ROWS: Final = 8_192
SLICE_ROWS: Final = 1_024
"""About 15 ms."""
SLICE_CHARACTERS: Final = 128 * 1024
"""Of texts in a slice; the row that exceeds it is the last one."""
MOST_BEHIND: Final = 16_384
"""Of more new messages the newest are indexed first, as those of an old profile."""
_FIRST_OF_ALL: Final = -1
_NEVER: Final = 2**63

_ROWS: Final = """
SELECT m.message_key, m.conversation_key, m.lamport_timestamp, m.sent_ms, p.participant_id, m.kind,
       m.hidden, m.retracted, m.text, m.spans,
       CASE m.kind WHEN 'file' THEN (
         SELECT f.name FROM file AS f
         WHERE f.conversation_key = m.conversation_key AND f.message_id = m.message_id) END
FROM message AS m CROSS JOIN participant AS p ON p.participant_key = m.sender_key
"""
_NEW_ROWS: Final = f"{_ROWS} WHERE m.message_key > ? ORDER BY m.message_key LIMIT ?"
_OLD_ROWS: Final = f"""
{_ROWS} WHERE m.message_key > ? AND m.message_key <= ? ORDER BY m.message_key DESC LIMIT ?
"""
_DUE: Final = "SELECT message_key FROM search_due ORDER BY message_key LIMIT ?"
_PUT: Final = "INSERT OR REPLACE INTO {table} (rowid, terms) VALUES (?, ?)"
_REMOVE: Final = "DELETE FROM {table} WHERE rowid = ?"
_MEMBERS: Final = """
SELECT m.lamport_timestamp, m.message_key, m.sent_ms
FROM {table} CROSS JOIN message AS m ON m.message_key = {table}.rowid
WHERE {table} MATCH ? ORDER BY m.lamport_timestamp, m.message_key
"""
_ONE_ROW: Final = f"{_ROWS} WHERE m.message_key = ?"


class _Row(NamedTuple):
    key: int
    conversation: int
    lamport: int
    sent_ms: int
    sender_id: ParticipantId
    kind: str
    hidden: int
    retracted: int
    text: str
    spans: str
    file_name: str | None

    @property
    def is_found(self) -> bool:
        return self.kind in SAID_KINDS and self.hidden != DELETED and not self.retracted

    def terms(self, code: str, kinds: Callable[[], Kinds]) -> str:
        text = f"{self.text}\n{self.file_name}" if self.file_name else self.text
        found, pairs = terms(text)
        found.add(conversation_term(self.conversation))
        found.add(sender_term(self.sender_id))
        if self.kind == FILE_KIND:
            found.add(WITH_FILE)
        if LINK_SPAN in self.spans:
            found.add(WITH_LINK)
        if pairs:
            found.add(HAS_RUNS)
        coded = [code + term for term in found]
        if pairs:
            coded += set(kinds().terms(pairs))
        return " ".join(coded)


class _Bucket(Struct):
    key: int
    first_lamport: int
    rows: int
    least_lamport: int
    most_lamport: int
    least_sent_ms: int
    most_sent_ms: int

    def take(self, lamport: int, sent_ms: int) -> None:
        if not self.rows:
            self.least_lamport = self.most_lamport = lamport
            self.least_sent_ms = self.most_sent_ms = sent_ms
        self.rows += 1
        self.least_lamport = min(self.least_lamport, lamport)
        self.most_lamport = max(self.most_lamport, lamport)
        self.least_sent_ms = min(self.least_sent_ms, sent_ms)
        self.most_sent_ms = max(self.most_sent_ms, sent_ms)


def index_some(connection: sqlite3.Connection, *, old: bool) -> Indexed:
    state = read_state(connection)
    if state.form != FORM:
        begin_anew(connection, drop=True)
        state = read_state(connection)
    newest = newest_key(connection)
    if newest - state.indexed_to > MOST_BEHIND and not state.old_left:
        state.old_after, state.old_from = state.indexed_to, newest
        state.old_total = newest - state.indexed_to
        state.indexed_to = newest
        write_state(connection, state)
    is_due = _is_due(connection)
    if not (is_due or newest > state.indexed_to or (old and state.old_left)):
        return _so_far(state, is_more=False)
    writer = _IndexWriter(connection, state.table)
    if newest > state.indexed_to:
        rows = _slice(connection.execute(_NEW_ROWS, (state.indexed_to, SLICE_ROWS)))
        writer.add(rows)
        state.indexed_to = rows[-1].key
    elif is_due:
        _index_due(connection, writer, state)
    else:
        span = (state.old_after, state.old_from, SLICE_ROWS)
        rows = _slice(connection.execute(_OLD_ROWS, span))[::-1]
        writer.add(rows)
        state.old_from = rows[0].key - 1 if rows else state.old_after
    writer.close()
    write_state(connection, state)
    return _so_far(state, is_more=newest > state.indexed_to or _is_due(connection))


def _so_far(state: SearchState, *, is_more: bool) -> Indexed:
    return Indexed(is_more=is_more, old_left=state.old_left, old_total=state.old_total)


def _is_due(connection: sqlite3.Connection) -> bool:
    row: tuple[int] = connection.execute("SELECT EXISTS (SELECT 1 FROM search_due)").fetchone()
    return bool(row[0])


def _index_due(connection: sqlite3.Connection, writer: "_IndexWriter", state: SearchState) -> None:
    due: list[tuple[int]] = connection.execute(_DUE, (SLICE_ROWS,)).fetchall()
    characters, last = 0, 0
    for (key,) in due:
        last = key
        if state.old_after < key <= state.old_from:
            continue  # Its turn comes.
        rows = _rows(connection.execute(_ONE_ROW, (key,)))
        if rows and rows[0].is_found:
            writer.add(rows)
            characters += len(rows[0].text)
        else:
            writer.remove(key)
        if characters > SLICE_CHARACTERS:
            break
    connection.execute("DELETE FROM search_due WHERE message_key <= ?", (last,))


def _rows(found: Iterable[tuple[object, ...]]) -> list[_Row]:
    return [_Row._make(row) for row in found]


def _slice(found: sqlite3.Cursor) -> list[_Row]:
    rows: list[_Row] = []
    characters = 0
    for values in found:
        rows.append(_Row._make(values))
        characters += len(rows[-1].text)
        if characters > SLICE_CHARACTERS:
            break
    found.close()
    return rows


class _IndexWriter:
    """Adds messages in the order of their keys, in which FTS5 takes them together."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection = connection
        self._table = table
        self._kinds: dict[int, Kinds] = {}
        self._put = _PUT.format(table=table)
        self._remove = _REMOVE.format(table=table)
        self._members = _MEMBERS.format(table=table)
        self._pending: list[tuple[int, str]] = []
        found = connection.execute(
            "SELECT bucket_key, first_lamport, rows, least_lamport, most_lamport, least_sent_ms, "
            "most_sent_ms FROM search_bucket ORDER BY first_lamport"
        )
        self._buckets = [_Bucket(*row) for row in found]
        self._touched: dict[int, _Bucket] = {}
        self._undivided: set[int] = set()
        """Buckets that are full of one Lamport timestamp."""

    def add(self, rows: Sequence[_Row]) -> None:
        found = [row for row in rows if row.is_found]
        if found:
            self._make_room_below(found)
        for row in found:
            self._add(row, self._room_for(row.lamport))

    def _make_room_below(self, rows: Sequence[_Row]) -> None:
        """Of an old profile earlier and earlier slices come, each of them forwards.

        One that does not fit as a whole begins a bucket, which else would be divided within it.
        """
        lamports = [row.lamport for row in rows]
        bucket = self._bucket_of(max(lamports)) if self._buckets else None
        if (
            bucket is not None
            and bucket.rows + len(rows) > BUCKET_ROWS
            and bucket.first_lamport <= min(lamports)
            and max(lamports) < bucket.least_lamport
        ):
            self._begin_below(bucket)

    def _begin_below(self, bucket: _Bucket) -> _Bucket:
        first, bucket.first_lamport = bucket.first_lamport, bucket.least_lamport
        self._touched[bucket.key] = bucket
        return self._begin(first)

    def remove(self, key: int) -> None:
        self._write()
        self._connection.execute(self._remove, (key,))

    def close(self) -> None:
        self._write()
        self._connection.executemany(
            "INSERT OR REPLACE INTO search_bucket (bucket_key, first_lamport, rows, least_lamport, "
            "most_lamport, least_sent_ms, most_sent_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    one.key, one.first_lamport, one.rows, one.least_lamport, one.most_lamport,
                    one.least_sent_ms, one.most_sent_ms,
                )
                for one in self._touched.values()
            ],
        )  # fmt: skip

    def _add(self, row: _Row, bucket: _Bucket) -> None:
        bucket.take(row.lamport, row.sent_ms)
        self._touched[bucket.key] = bucket
        terms_ = row.terms(code_of(bucket.key), lambda: self._kinds_in(bucket, row.key))
        self._pending.append((row.key, terms_))

    def _kinds_in(self, bucket: _Bucket, newest: int) -> Kinds:
        epoch = epoch_of(bucket.key)
        if epoch not in self._kinds:
            self._kinds[epoch] = all_kinds(self._connection, self._table, epoch) or learn_kinds(
                self._connection, self._table, epoch, bucket_rows=BUCKET_ROWS, newest=newest
            )
        return self._kinds[epoch]

    def _write(self) -> None:
        self._connection.executemany(self._put, self._pending)
        self._pending.clear()

    def _room_for(self, lamport: int) -> _Bucket:
        """The bucket of this place, after it was divided if it is full."""
        if not self._buckets:
            return self._begin(_FIRST_OF_ALL)
        bucket = self._bucket_of(lamport)
        if bucket.rows < BUCKET_ROWS or bucket.key in self._undivided:
            return bucket
        if lamport > bucket.most_lamport:
            return self._begin(lamport)
        if lamport < bucket.least_lamport:
            return self._begin_below(bucket)
        self._divide(bucket, lamport)
        return self._bucket_of(lamport)

    def _bucket_of(self, lamport: int) -> _Bucket:
        at = bisect_right(self._buckets, lamport, key=lambda one: one.first_lamport) - 1
        return self._buckets[max(at, 0)]

    def _begin(self, first_lamport: int) -> _Bucket:
        key = 1 + max((one.key for one in self._buckets), default=0)
        bucket = _Bucket(key, first_lamport, 0, 0, 0, 0, 0)
        at = bisect_left(self._buckets, first_lamport, key=lambda one: one.first_lamport)
        self._buckets.insert(at, bucket)
        self._touched[key] = bucket
        return bucket

    def _divide(self, bucket: _Bucket, lamport: int) -> None:
        """Move the later rows into a bucket of their own; those after ``lamport``, if few."""
        self._write()
        match = f'"{code_of(bucket.key)}{IN_CONVERSATION}"*'
        at = self._buckets.index(bucket)
        ends = self._buckets[at + 1].first_lamport if at + 1 < len(self._buckets) else _NEVER
        # One whose place has changed meanwhile is due, and leaves for its bucket by itself.
        members: list[tuple[int, int, int]] = [
            member
            for member in self._connection.execute(self._members, (match,))
            if bucket.first_lamport <= member[0] < ends
        ]
        bucket.rows = 0
        if len(members) < BUCKET_ROWS:  # Messages have left it.
            for member_lamport, _, sent_ms in members:
                bucket.take(member_lamport, sent_ms)
            self._touched[bucket.key] = bucket
            return
        cut = _cut(members, lamport)
        for member_lamport, _, sent_ms in members[:cut]:
            bucket.take(member_lamport, sent_ms)
        self._touched[bucket.key] = bucket
        if cut == len(members):
            self._undivided.add(bucket.key)
            return
        later = self._begin(members[cut][0])
        for _, key, _ in sorted(members[cut:], key=lambda member: member[1]):
            for row in _rows(self._connection.execute(_ONE_ROW, (key,))):
                self._add(row, later)
        self._write()


def _cut(members: Sequence[tuple[int, int, int]], lamport: int) -> int:
    """Where to divide: not between rows of one Lamport timestamp, so perhaps at the end."""
    after = bisect_right(members, lamport, key=lambda member: member[0])
    half = len(members) // 2
    wanted = max(half, after)
    for cut in chain(range(wanted, len(members)), range(wanted - 1, 0, -1)):
        if members[cut][0] > members[cut - 1][0]:
            return cut
    return len(members)
