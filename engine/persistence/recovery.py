"""Copies what can still be read of a damaged database into a new one.

SQLCipher refuses a page whose bytes were changed, and then reads no other page on that connection.
So each table is read by ranges of its key: a range that fails is halved, on a new connection, until
what cannot be read is a row or two.  Text keys have no halves; they are read from both ends.  All
reading is done on a copy: the damaged files are never opened.

What other rows speak of may be gone.  Rows without their conversation are left out, counts and
ordinals are made again, and the profile's numbering of messages begins anew, because two profiles
with one numbering would contradict each other.
"""

import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import MessageId
from engine.core.problems import FileFault
from engine.core.records import TransferState
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.connection import SIDE_FILES, connect, create_private, transaction
from engine.persistence.errors import CarryOverStoppedError, DatabaseUnreadableError, translated
from engine.persistence.many_rows import Value
from engine.persistence.ordinals import BLOCK_ROWS
from engine.persistence.profile_directory import sync_directory
from engine.persistence.reaction_counts import count_all
from engine.persistence.schema import LAST_TO_COPY, check_version, migrate
from engine.persistence.stored_ids import stored_id

MAX_FAILURES: Final = 4_000
"""For each table; beyond it, ranges that fail are given up as a whole."""
MAX_IN_VAIN: Final = 300
"""Failures without a row between them: what leads to the rows is gone, not some of them."""
ASKED_AFTER_ROWS: Final = 256
"""How often it is asked whether to go on; also after each place that cannot be read."""
_INSTANCE_BYTES: Final = 16
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


class Recovered(Struct, frozen=True, kw_only=True):
    rows: Mapping[str, int]
    """By table, of those that had any."""
    unreadable: int
    """Places that could not be read; each holds one row or many."""


def recover(old: Path, new: Path, key: bytes, progress: Progress = unheard) -> Recovered:
    """Make the database ``new``, which must not exist, of what is readable in ``old``.

    Raises StorageError: if not even the list of tables or the identity can be read, if it is of
    another version, or if there is no room.  ``new`` is gone then.
    """
    copy = new.with_name(f"{new.name}.damaged")
    try:
        _copy_files(old, copy)
        source = _Source(copy, key)
        try:
            return _fill(source, new, key, progress)
        finally:
            source.close()
    except BaseException:
        _remove(new)
        raise
    finally:
        _remove(copy)


def _copy_files(old: Path, copy: Path) -> None:
    try:
        for end in ("", *SIDE_FILES):
            part = old.with_name(f"{old.name}{end}")
            if part.exists() and end != "-shm":
                create_private(copy.with_name(f"{copy.name}{end}"))
                shutil.copyfile(part, copy.with_name(f"{copy.name}{end}"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = f"Cannot copy {old}: {reason}."
        raise StorageError(text, StorageFault.UNUSABLE, f"{old}: {reason}") from error


def _remove(path: Path) -> None:
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

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = key
        self._connection = connect(str(path), key)
        self.failures = 0
        with translated(f"read {path}"):
            check_version(self._connection)
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            self.tables = self._list_tables()
        if version <= LAST_TO_COPY:
            text = "A profile of so old a version cannot be recovered."
            raise StorageError(text, StorageFault.TOO_OLD)

    def close(self) -> None:
        self._connection.close()

    def _list_tables(self) -> list[str]:
        names: list[tuple[str]] = self._connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        ).fetchall()
        return [
            name
            for (name,) in names
            if name not in _MADE_AGAIN and not name.startswith(_MADE_AGAIN_PREFIXES)
        ]

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
        self.unreadable = 0

    def copy(self, table: _Table, share: float) -> int:
        """``share``: how much is done before it."""
        self._share = share
        self._failures_before, self._in_vain = self._source.failures, 0
        self._table = table
        self._go_on()
        (before,) = self._count()
        self._by_key(())
        (after,) = self._count()
        return int(after) - int(before)

    def _count(self) -> tuple[int]:
        found: tuple[int] = self._target.execute(
            f"SELECT count(*) FROM {self._table.name}"  # noqa: S608 - a name of our own schema
        ).fetchone()
        return found

    def _go_on(self) -> None:
        if not self._progress(self._share):
            raise CarryOverStoppedError("Nothing was recovered: it was stopped.")

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
                self.unreadable += 1
            elif first == last:
                self._by_key((*fixed, first))
            else:
                middle = first + (last - first) // 2
                ranges += [(middle + 1, last), (first, middle)]

    @property
    def _gives_up(self) -> bool:
        failures = self._source.failures - self._failures_before
        return failures > MAX_FAILURES or self._in_vain > MAX_IN_VAIN

    def _from_both_ends(self, fixed: tuple[Value, ...]) -> None:
        where = self._same(fixed) + " 1"
        if self._take(where, fixed, place=None) is not None:
            self.unreadable += 1
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
                self._in_vain = 0
                reached = reached if at is None else row[at]
        except DatabaseUnreadableError:
            self._in_vain += 1
            self._go_on()
            return reached
        return None


# --- filling the new one --------------------------------------------------------------------------


def _fill(source: _Source, new: Path, key: bytes, progress: Progress) -> Recovered:
    create_private(new)
    target = connect(str(new), key)
    try:
        with translated(f"write {new}"):
            migrate(target)
            for pragma in _FILLING:
                target.execute(pragma)
            with transaction(target):
                found = _copy_all(source, target, progress)
                _leave_out_orphans(target)
                _make_again(target)
            target.execute("PRAGMA journal_mode = DELETE")
    finally:
        target.close()
    _make_durable(new)
    progress(1.0)
    return found


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


def _copy_all(source: _Source, target: sqlite3.Connection, progress: Progress) -> Recovered:
    copying, rows = _Copying(source, target, progress), dict[str, int]()
    for place, name in enumerate(source.tables):
        table = source.table(name, target)
        if table.keys and (came := copying.copy(table, place / len(source.tables))):
            rows[name] = came
    if not rows.get("profile"):
        text = "The identity in the damaged profile cannot be read, so nothing can be recovered."
        raise StorageError(text, StorageFault.DAMAGED)
    return Recovered(rows=rows, unreadable=copying.unreadable)


def _leave_out_orphans(target: sqlite3.Connection) -> None:
    """As foreign keys would have it; deleting a parent may leave further ones."""
    while True:
        broken: list[tuple[str, int | None, str, int]] = target.execute(
            "PRAGMA foreign_key_check"
        ).fetchall()
        if not broken:
            return
        for child, _, parent, number in broken:
            foreign = target.execute(f"PRAGMA foreign_key_list({child})").fetchall()
            column = next(key[3] for key in foreign if key[0] == number)
            target.execute(
                f"DELETE FROM {child} WHERE {column} NOT IN (SELECT {_key_of(target, parent)} "  # noqa: S608
                f"FROM {parent})"
            )


def _key_of(target: sqlite3.Connection, table: str) -> str:
    columns = target.execute(f"PRAGMA table_info({table})").fetchall()
    name: str = next(column for _, column, _, _, _, place in columns if place == 1)
    return name


def _make_again(target: sqlite3.Connection) -> None:
    for statement in _MADE_FROM_ROWS:
        target.execute(statement)
    count_all(target)
    target.execute(_CHUNKS_ARE_NOT_HERE, (TransferState.FAILED, FileFault.NOT_HERE))
    target.execute("UPDATE profile SET instance_id = ?", (secrets.token_bytes(_INSTANCE_BYTES),))
    conversations: list[tuple[int]] = target.execute(
        "SELECT conversation_key FROM conversation"
    ).fetchall()
    for (conversation,) in conversations:
        _count_unread(target, conversation)
        _make_ordinals(target, conversation)


# Members would be told that this device has them, and nothing would fetch them.
_CHUNKS_ARE_NOT_HERE: Final = f"""
UPDATE transfer SET state = ?, fault = ?
WHERE state IN ('{TransferState.COMPLETE}', '{TransferState.OFFERING}')
"""  # noqa: S608 - our own literals

_MADE_FROM_ROWS: Final = (
    "DELETE FROM reaction WHERE sender_key NOT IN (SELECT participant_key FROM participant)",
    "INSERT OR IGNORE INTO timeline SELECT conversation_key, NULL, NULL, 0, 0, 0 FROM conversation",
    """
    INSERT OR IGNORE INTO channel (conversation_key, lamport_timestamp)
    SELECT conversation_key, 0 FROM conversation WHERE kind = 'group'
    """,
    """
    UPDATE channel SET lamport_timestamp = max(lamport_timestamp, coalesce((
      SELECT max(lamport_timestamp) FROM log_entry AS l
      WHERE l.conversation_key = channel.conversation_key), 0))
    """,
    """
    INSERT OR IGNORE INTO pair_clock
    SELECT conversation_key, 0 FROM conversation WHERE kind = 'pair'
    """,
    """
    UPDATE pair_clock SET lamport_timestamp = max(lamport_timestamp, coalesce((
      SELECT max(lamport_timestamp) FROM message AS m
      WHERE m.conversation_key = pair_clock.conversation_key), 0))
    """,
    """
    UPDATE timeline SET
      placed = (SELECT count(*) FROM message AS m WHERE hidden = 0 AND m.waiting = 0
                AND m.conversation_key = timeline.conversation_key),
      waiting = (SELECT count(*) FROM message AS m WHERE hidden = 0 AND m.waiting = 1
                 AND m.conversation_key = timeline.conversation_key)
    """,
)


def _count_unread(target: sqlite3.Connection, conversation: int) -> None:
    lamport, message_id = target.execute(
        "SELECT read_lamport, read_message_id FROM timeline WHERE conversation_key = ?",
        (conversation,),
    ).fetchone()
    mark = (-1, "") if lamport is None else (lamport, stored_id(MessageId(message_id)))
    target.execute(
        "UPDATE timeline SET unread = (SELECT count(*) FROM message WHERE conversation_key = ?1 "
        "AND hidden = 0 AND is_own = 0 AND kind IN ('text', 'file') "
        "AND (lamport_timestamp, message_id) > (?2, ?3)) WHERE conversation_key = ?1",
        (conversation, *mark),
    )


def _make_ordinals(target: sqlite3.Connection, conversation: int) -> None:
    """Full blocks; the first begins before all rows."""
    places = target.execute(
        "SELECT lamport_timestamp, message_id FROM message "
        "WHERE conversation_key = ? AND waiting = 0 AND hidden = 0 "
        "ORDER BY waiting, lamport_timestamp, message_id",
        (conversation,),
    )
    first: tuple[Value, Value] = (-1, "")
    number, blocks = 0, list[tuple[Value, ...]]()
    for place in places:
        if number == BLOCK_ROWS:
            blocks.append((conversation, *first, number))
            first, number = place, 0
        number += 1
    if number:
        blocks.append((conversation, *first, number))
    target.executemany("INSERT INTO ordinal_block VALUES (?, ?, ?, ?)", blocks)
