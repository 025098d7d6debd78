"""Copies a database of an old version into a new file of the present one, which then replaces it.

Changing the tables in place would write every page twice, with as much room beside the file, and
keep most of it in memory.  The new file is filled in slices, without a journal: whatever breaks off
leaves the old profile whole, and the new file is thrown away.  It is synced before it takes the old
one's name, in one step.  The caller holds the profile's lock.
"""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from engine.core.errors import StorageError, StorageFault
from engine.persistence.connection import (
    bring_into_one_file,
    connect,
    create_private,
    key_literal,
    transaction,
)
from engine.persistence.errors import CarryOverStoppedError, DiskFullError, translated
from engine.persistence.from_version_1 import AFTERWARDS, PACKED, REFILLED, pack, stored_id_in_sql
from engine.persistence.many_rows import Value
from engine.persistence.profile_directory import sync_directory
from engine.persistence.schema import migrate

Progress: TypeAlias = Callable[[float], bool]
"""Is told the share that is done on the thread that opens, and says whether to go on.

At first 0, then less than 1 until the new profile has its place."""

SLICE: Final = 4_096
"""Rows.  Some tens of milliseconds."""
_CACHE_KIB: Final = 64 * 1024
"""Rows by id come in no order; an index of a million fits."""
_FILLING: Final = (
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA foreign_keys = OFF",  # The old tables hold to them already.
    f"PRAGMA cache_size = -{_CACHE_KIB}",
)
_MEGABYTE: Final = 1_000_000


def unheard(share: float, /) -> bool:
    """Progress that nobody follows."""
    del share
    return True


def carry_over(path: Path, key: bytes, progress: Progress) -> None:
    """Raises StorageError; the old profile is untouched then."""
    unfinished = _unfinished(path)
    _tell(progress, 0.0)
    bring_into_one_file(path, key)
    try:
        with translated(f"carry {path} over to this version"):
            _fill(unfinished, path, key, progress)
        bring_into_one_file(path, key)  # Nothing may lie beside the file that takes its name.
        _replace(path, unfinished)
        progress(1.0)
    except DiskFullError as error:
        raise _no_room(path) from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _no_room(path) from error
        reason = error.strerror or type(error).__name__
        raise StorageError(f"Cannot carry {path} over to this version: {reason}.") from error
    finally:
        forget_unfinished(path)


def forget_unfinished(path: Path) -> None:
    """Throw away what an attempt left that was killed."""
    unfinished = _unfinished(path)
    for end in ("", "-journal"):
        unfinished.with_name(f"{unfinished.name}{end}").unlink(missing_ok=True)


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.unfinished")


def _fill(new: Path, old: Path, key: bytes, progress: Progress) -> None:
    create_private(new)
    connection = connect(str(new), key)
    try:
        migrate(connection)
        for pragma in _FILLING:
            connection.execute(pragma)
        connection.execute(f"ATTACH DATABASE ? AS old KEY {key_literal(key)}", (str(old),))
        with transaction(connection):
            _Copying(connection, progress).copy()
    finally:
        connection.close()


def _replace(path: Path, new: Path) -> None:
    descriptor = os.open(new, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    new.replace(path)
    sync_directory(path.parent)


def _no_room(path: Path) -> DiskFullError:
    megabytes = f"{path.stat().st_size // _MEGABYTE + 1}"
    return DiskFullError(
        f"Cannot carry {path} over to this version: the disk is full. It takes up to {megabytes} MB"
        " more while both are there. Make room and start again; nothing was changed.",
        StorageFault.NO_ROOM_TO_CARRY_OVER,
        megabytes,
    )


def _tell(progress: Progress, share: float) -> None:
    if not progress(share):
        raise CarryOverStoppedError("The profile was not carried over: it was stopped.")


class _Table(Struct, frozen=True):
    name: str
    rows: int
    keys: Sequence[str]
    columns: Sequence[str]
    """Those that both versions have."""


class _Copying:
    """All tables from ``old`` into those of the open database, in its transaction."""

    def __init__(self, connection: sqlite3.Connection, progress: Progress) -> None:
        self._connection = connection
        self._progress = progress
        self._is_version_1 = connection.execute("PRAGMA old.user_version").fetchone() == (1,)
        self._tables = [self._table(name) for (name,) in connection.execute(_TABLES).fetchall()]
        self._rows = 1 + sum(table.rows for table in self._tables)
        self._done = 0

    def copy(self) -> None:
        """Raises StorageError if a row is lost on the way."""
        if self._is_version_1:
            stored_id_in_sql(self._connection)
        for table in self._tables:
            if self._is_version_1 and table.name == PACKED:
                came = pack(self._connection, self._advance)
            else:
                came = self._copy(table)
            if came != table.rows:
                raise StorageError(
                    f"Cannot carry the profile over to this version: of {table.rows} rows in "
                    f"{table.name} {came} came across.",
                    StorageFault.DAMAGED,
                )
        if self._is_version_1:
            for statement in AFTERWARDS:
                self._connection.execute(statement)

    def _advance(self, rows: int) -> None:
        self._done += rows
        _tell(self._progress, self._done / self._rows)

    def _table(self, name: str) -> _Table:
        (rows,) = self._connection.execute(f"SELECT count(*) FROM old.{name}").fetchone()  # noqa: S608
        old, new = (
            self._connection.execute(f"PRAGMA {where}.table_info({name})").fetchall()
            for where in ("old", "main")
        )
        keys = sorted((place, column) for _, column, _, _, _, place in old if place)
        known = {column for _, column, *_ in new}
        return _Table(
            name,
            rows,
            keys=[column for _, column in keys],
            columns=[column for _, column, *_ in old if column in known],
        )

    def _copy(self, table: _Table) -> int:
        names = ", ".join(table.columns)
        same = f"INSERT INTO {table.name} ({names}) SELECT {names} FROM old.{table.name} AS o"  # noqa: S608
        *before, last = REFILLED.get(table.name, [same]) if self._is_version_1 else [same]
        came = 0
        for where, values in self._slices(table):
            for statement in before:
                self._connection.execute(f"{statement} {where}", values)
            rows = self._connection.execute(f"{last} {where}", values).rowcount
            self._advance(rows)
            came += rows
        return came

    def _slices(self, table: _Table) -> Iterator[tuple[str, Sequence[Value]]]:
        """Conditions on the keys of the old table, called ``o``; each is true for a slice of it."""
        keys = ", ".join(f"o.{key}" for key in table.keys)
        marks = ", ".join("?" * len(table.keys))
        down = ", ".join(f"o.{key} DESC" for key in table.keys)
        after, before = f"({keys}) > ({marks})", f"({keys}) <= ({marks})"
        start: tuple[Value, ...] = ()
        while True:
            begins = f"WHERE {after}" if start else ""
            last: tuple[Value, ...] | None = self._connection.execute(
                f"SELECT * FROM (SELECT {keys} FROM old.{table.name} AS o {begins} "  # noqa: S608
                f"ORDER BY {keys} LIMIT {SLICE}) AS o ORDER BY {down} LIMIT 1",
                start,
            ).fetchone()
            if last is None:
                return
            yield (f"{begins} AND {before}" if start else f"WHERE {before}"), (*start, *last)
            start = last


_TABLES: Final = """
SELECT name FROM old.sqlite_master
WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> '_sqlite_migrations'
"""
