"""Copies what can still be read of a damaged database into a new one.

SQLCipher refuses a page whose bytes were changed, and then reads no other page on that connection.
So each table is read by ranges of its key: a range that fails is halved, on a new connection, until
what cannot be read is a row or two.  Text keys have no halves; they are read from both ends.  All
reading is done on a copy (``readable_copy``): the damaged files are never opened.

An index that is whole still names the rows that its table lost.  So it is known which messages are
gone, and of whom; what is done about that is in ``recovery_mending``.
"""

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import UnixMs
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.connection import SIDE_FILES, connect, create_private, transaction
from engine.persistence.errors import CarryOverStoppedError, DatabaseUnreadableError, translated
from engine.persistence.many_rows import Value
from engine.persistence.profile_directory import sync_directory
from engine.persistence.readable_copy import CopiedPages, copy_readable
from engine.persistence.recovery_mending import (
    LOST_ENTRIES,
    LOST_MESSAGES,
    leave_out_nameless,
    leave_out_orphans,
    make_again,
    note_lost_bytes,
    replace_lost_keys,
    want_again,
)
from engine.persistence.schema import LAST_TO_COPY, check_version, migrate

MAX_FAILURES: Final = 4_000
"""For each table; beyond it, ranges that fail are given up as a whole."""
MAX_IN_VAIN: Final = 300
"""Failures without a row between them: what leads to the rows is gone, not some of them."""
ASKED_AFTER_ROWS: Final = 256
"""How often it is asked whether to go on; also after each place that cannot be read."""
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_MADE_AGAIN: Final = frozenset(
    {"_sqlite_migrations", "ordinal_block", "own_sequence", "reaction_count"}
)
_MADE_AGAIN_PREFIXES: Final = ("sqlite_", "log_index", "log_pages", "log_buckets", "log_author",
                               "log_late", "search")  # fmt: skip
_FILLING: Final = (
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA foreign_keys = OFF",
)
_WITH_BYTES: Final = frozenset({"log_raw", "raw_block"})


class LostMessages(Struct, frozen=True, kw_only=True):
    """Messages of one conversation that the damage took, as far as an index still names them."""

    conversation: str
    """Its name; of a pair the person's, if this device gave one."""
    is_group: bool
    messages: int
    first_ms: UnixMs
    """By Lamport timestamp, which is a time unless clocks were wrong."""
    last_ms: UnixMs


class Recovered(Struct, frozen=True, kw_only=True):
    rows: Mapping[str, int]
    """By table, of those that had any."""
    unreadable: int
    """Places that could not be read; each holds one row or many."""
    places: Mapping[str, int]
    """The same by table."""
    lost: Sequence[LostMessages] = ()
    asked_for: int = 0
    """Messages of groups that members and Stores are asked for."""
    keyless: int = 0
    """Groups whose key is gone."""
    pages: CopiedPages

    @property
    def is_all(self) -> bool:
        """Nothing is known to be gone."""
        return not (self.unreadable or self.pages.frames_missing)


def recover(
    old: Path, new: Path, key: bytes, progress: Progress = unheard, *, now_ms: UnixMs
) -> Recovered:
    """Make the database ``new``, which must not exist, of what is readable in ``old``.

    Raises StorageError: if not even the list of tables or the identity can be read, if it is of
    another version, or if there is no room.  ``new`` is gone then.
    """
    copy = new.with_name(f"{new.name}.damaged")
    try:
        forget(copy)
        pages = _copied(old, copy, key, progress)
        source = _Source(copy, key, frozenset((*pages.unreadable, *pages.blank)))
        try:
            return _fill(source, new, key, progress, (pages, now_ms))
        finally:
            source.close()
    except BaseException:
        forget(new)
        raise
    finally:
        forget(copy)


def _copied(old: Path, copy: Path, key: bytes, progress: Progress) -> CopiedPages:
    try:
        return copy_readable(old, copy, key, lambda: _ask(progress, 0.0))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = f"Cannot copy {old}: {reason}."
        raise StorageError(text, StorageFault.UNUSABLE, f"{old}: {reason}") from error


def _ask(progress: Progress, share: float) -> None:
    if not progress(share):
        raise CarryOverStoppedError("Nothing was recovered: it was stopped.")


def forget_unfinished_repair(database: Path) -> None:
    """Throw away what a repair left that was killed."""
    unfinished = database.with_name(f"{database.name}.unfinished")
    forget(unfinished)
    forget(unfinished.with_name(f"{unfinished.name}.damaged"))


def forget(path: Path) -> None:
    """Remove what was made of a database."""
    for end in ("", *SIDE_FILES):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


class _Table(Struct, frozen=True):
    name: str
    keys: Sequence[str]
    whole: frozenset[str]
    """Those columns whose values are integers."""
    columns: Sequence[str]
    """Those that both databases have."""


class _Source:
    """The damaged database; after each page that cannot be read, on a new connection."""

    def __init__(self, path: Path, key: bytes, unreadable: frozenset[int]) -> None:
        """``unreadable``: pages of which that is known."""
        self._path = path
        self._key = key
        self._connection = connect(str(path), key)
        self.failures = 0
        with translated(f"read {path}"):
            check_version(self._connection)
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            roots = self._list_tables()
        self.tables = list(roots)
        self.gone = frozenset(name for name, root in roots.items() if root in unreadable)
        """Tables whose first page, which leads to all others, cannot be read."""
        if version <= LAST_TO_COPY:
            text = "A profile of so old a version cannot be recovered."
            raise StorageError(text, StorageFault.TOO_OLD)

    def close(self) -> None:
        self._connection.close()

    def _list_tables(self) -> dict[str, int]:
        """With their root pages."""
        found: list[tuple[str, int]] = self._connection.execute(
            "SELECT name, rootpage FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        ).fetchall()
        return {
            name: root
            for name, root in found
            if name not in _MADE_AGAIN and not name.startswith(_MADE_AGAIN_PREFIXES)
        }

    def table(self, name: str, target: sqlite3.Connection) -> _Table:
        """Its columns are those of both databases: an older one has fewer."""
        ours, theirs = (
            connection.execute(f"PRAGMA table_info({name})").fetchall()
            for connection in (target, self._connection)
        )
        known = {column for _, column, *_ in theirs}
        keys = sorted((place, column) for _, column, _, _, _, place in ours if place)
        return _Table(
            name,
            keys=[column for _, column in keys],
            whole=frozenset(column for _, column, kind, *_ in ours if kind == "INTEGER"),
            columns=[column for _, column, *_ in ours if column in known],
        )

    def read(self, sql: str, values: Sequence[Value]) -> Iterator[tuple[Value, ...]]:
        """Rows up to the first that cannot be read; then ``DatabaseUnreadableError``."""
        try:
            with translated("read what is left"):
                yield from self._connection.execute(sql, values)
        except DatabaseUnreadableError:
            self.failures += 1
            self._connection.close()
            self._connection = connect(str(self._path), self._key)
            raise


class _Copying:
    def __init__(self, source: _Source, target: sqlite3.Connection, progress: Progress) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._share = 0.0
        self._failures_before = 0
        self._in_vain = 0
        self._follows_another = False
        self.places: Counter[str] = Counter()

    def copy(self, table: _Table, share: float) -> int:
        """``share``: how much is done before it."""
        self._share = share
        self._failures_before, self._in_vain = self._source.failures, 0
        self._follows_another = False
        self._table = table
        self._go_on()
        if table.name in self._source.gone:
            self._unreadable()
            return 0
        before = _count(self._target, table.name)
        self._by_key(())
        return _count(self._target, table.name) - before

    def _go_on(self) -> None:
        _ask(self._progress, self._share)

    def _by_key(self, fixed: tuple[Value, ...]) -> None:
        """All rows whose key begins with ``fixed``."""
        if self._table.keys[len(fixed)] in self._table.whole:
            self._by_halves(fixed)
        else:
            self._from_both_ends(fixed)

    def _by_halves(self, fixed: tuple[Value, ...]) -> None:
        keys, place = self._table.keys, len(fixed)
        column, is_last = keys[place], place + 1 == len(keys)
        # Rows of one conversation are many, those of one timestamp lie together.
        leads_on = not is_last and (not place or keys[place + 1] in self._table.whole)
        ranges = [(_LEAST, _MOST)]
        while ranges:
            first, last = ranges.pop()
            where = f"{self._same(fixed)} {column} BETWEEN ? AND ?"
            reached = self._take(where, (*fixed, first, last), place=len(fixed))
            if reached is None:
                continue
            first = first if not isinstance(reached, int) else reached + (1 if is_last else 0)
            if first > last or self._gives_up or (first == last and not leads_on):
                self._unreadable()
            elif first == last:
                self._by_key((*fixed, first))
            else:
                middle = first + (last - first) // 2
                ranges += [(middle + 1, last), (first, middle)]

    def _unreadable(self) -> None:
        """Ranges without a row between them are one place."""
        if not self._follows_another:
            self.places[self._table.name] += 1
        self._follows_another = True

    @property
    def _gives_up(self) -> bool:
        failures = self._source.failures - self._failures_before
        return failures > MAX_FAILURES or self._in_vain > MAX_IN_VAIN

    def _from_both_ends(self, fixed: tuple[Value, ...]) -> None:
        where = self._same(fixed) + " 1"
        if self._take(where, fixed, place=None) is not None:
            self._unreadable()
            self._take(where, fixed, place=None, backwards=True)

    def _same(self, fixed: tuple[Value, ...]) -> str:
        return "".join(f"{key} = ? AND " for key in self._table.keys[: len(fixed)])

    def _take(
        self,
        where: str,
        values: Sequence[Value],
        *,
        place: int | None,
        backwards: bool = False,
    ) -> Value | None:
        """Copy until a page cannot be read.  None: all of it; else how far the key came.

        Of the key's column ``place``; without one, or without any row, "".
        """
        table = self._table
        down = " DESC" if backwards else ""
        order = ", ".join(f"{key}{down}" for key in table.keys)
        names = ", ".join(table.columns)
        sql = f"SELECT {names} FROM {table.name} WHERE {where} ORDER BY {order}"  # noqa: S608
        marks = ", ".join("?" * len(table.columns))
        put = f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({marks})"  # noqa: S608
        at = None if place is None else table.columns.index(table.keys[place])
        reached: Value = ""
        try:
            for number, row in enumerate(self._source.read(sql, values), 1):
                if number % ASKED_AFTER_ROWS == 0:
                    self._go_on()
                self._target.execute(put, row)
                self._in_vain, self._follows_another = 0, False
                reached = reached if at is None else row[at]
        except DatabaseUnreadableError:
            self._in_vain += 1
            self._go_on()
            return reached
        return None


# --- what indexes still name ----------------------------------------------------------------------


def _note_lost(source: _Source, target: sqlite3.Connection, places: Mapping[str, int]) -> None:
    """What of the tables that have such places only an index still has."""
    for table, index, columns, put in _NAMED_BY_INDEX:
        if places.get(table) is None:
            continue
        sql = f"SELECT {columns} FROM {table} INDEXED BY {index}"  # noqa: S608 - our own
        down = ", ".join(f"{column} DESC" for column in columns.split(", ")[:2])
        for order in ("", f" ORDER BY {down}"):
            # With what stands in one direction the damaged part may be in the way.
            with suppress(DatabaseUnreadableError):
                for row in source.read(f"{sql} {_WHERE.get(index, '')}{order}", ()):
                    target.execute(put, row)
                break


_WHERE: Final = {"timeline_order": "WHERE hidden = 0"}
_PUT_PARTICIPANT: Final = """
INSERT OR IGNORE INTO participant (conversation_key, participant_id, participant_key)
VALUES (?, ?, ?)
"""
_PUT_INSTANCE: Final = """
INSERT OR IGNORE INTO instance (conversation_key, instance_id, instance_key) VALUES (?, ?, ?)
"""
_NOTE_MESSAGE: Final = """
INSERT OR IGNORE INTO lost_message SELECT ?1, ?2, ?3
WHERE NOT EXISTS (SELECT 1 FROM message WHERE conversation_key = ?1 AND message_id = ?2)
"""
# Its place would be read from the table.
_NOTE_ENTRY: Final = """
INSERT OR IGNORE INTO lost_entry SELECT ?1, ?2, coalesce((
  SELECT lamport_timestamp FROM message WHERE conversation_key = ?1 AND message_id = ?2), (
  SELECT lamport_timestamp FROM lost_message WHERE conversation_key = ?1 AND message_id = ?2)),
  NULL, NULL
WHERE NOT EXISTS (SELECT 1 FROM log_entry WHERE conversation_key = ?1 AND message_id = ?2)
"""
_NAMED_BY_INDEX: Final = (
    (
        "participant", "sqlite_autoindex_participant_1",
        "conversation_key, participant_id, participant_key", _PUT_PARTICIPANT,
    ),
    (
        "instance", "sqlite_autoindex_instance_1",
        "conversation_key, instance_id, instance_key", _PUT_INSTANCE,
    ),
    (
        "message", "timeline_order",
        "conversation_key, message_id, lamport_timestamp", _NOTE_MESSAGE,
    ),
    (
        "log_entry", "sqlite_autoindex_log_entry_2",
        "conversation_key, message_id", _NOTE_ENTRY,
    ),
)  # fmt: skip


# --- filling the new one --------------------------------------------------------------------------


def _fill(
    source: _Source, new: Path, key: bytes, progress: Progress, told: tuple[CopiedPages, UnixMs]
) -> Recovered:
    pages, now_ms = told
    create_private(new)
    target = connect(str(new), key)
    try:
        with translated(f"write {new}"):
            migrate(target)
            for pragma in _FILLING:
                target.execute(pragma)
            with transaction(target):
                target.execute(LOST_MESSAGES)
                target.execute(LOST_ENTRIES)
                rows, places = _copy_all(source, target, progress)
                _note_lost(source, target, places)
                leave_out_orphans(target)
                leave_out_nameless(target)
                if _WITH_BYTES & places.keys():
                    note_lost_bytes(target)
                want_again(target, now_ms)
                keyless = replace_lost_keys(target)
                make_again(target)
                found = Recovered(
                    rows=rows,
                    unreadable=sum(places.values()),
                    places=places,
                    lost=_lost(target),
                    asked_for=_count(target, "temp.lost_entry"),
                    keyless=keyless,
                    pages=pages,
                )
            target.execute("PRAGMA journal_mode = DELETE")
    finally:
        target.close()
    _make_durable(new)
    progress(1.0)
    return found


def _lost(target: sqlite3.Connection) -> list[LostMessages]:
    return [
        LostMessages(
            conversation=name,
            is_group=kind == "group",
            messages=messages,
            first_ms=UnixMs(first_ms),
            last_ms=UnixMs(last_ms),
        )
        for name, kind, messages, first_ms, last_ms in target.execute(_LOST_BY_CONVERSATION)
    ]


_LOST_BY_CONVERSATION: Final = """
SELECT coalesce(nullif(p.local_name, ''), c.name), c.kind, count(*), min(l.lamport_timestamp),
       max(l.lamport_timestamp)
FROM lost_message AS l
JOIN conversation AS c USING (conversation_key)
LEFT JOIN contact AS p USING (conversation_key)
GROUP BY conversation_key ORDER BY conversation_key
"""


def _count(target: sqlite3.Connection, table: str) -> int:
    row: tuple[int] = target.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
    return row[0]


def _make_durable(path: Path) -> None:
    """Only now it is said to be there: filled as above, a power cut might leave half of it."""
    try:
        descriptor = os.open(path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(path.parent)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = f"Cannot write {path}: {reason}."
        raise StorageError(text, StorageFault.UNUSABLE, f"{path}: {reason}") from error


def _copy_all(
    source: _Source, target: sqlite3.Connection, progress: Progress
) -> tuple[dict[str, int], dict[str, int]]:
    """Rows that came and places that could not be read, by table."""
    copying, rows = _Copying(source, target, progress), dict[str, int]()
    for place, name in enumerate(source.tables):
        table = source.table(name, target)
        if table.keys and (came := copying.copy(table, place / len(source.tables))):
            rows[name] = came
    if not rows.get("profile"):
        text = "The identity in the damaged profile cannot be read, so nothing can be recovered."
        raise StorageError(text, StorageFault.DAMAGED)
    return rows, dict(copying.places)
