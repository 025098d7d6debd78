"""Writes delivery logs: files of bounded size, as many as fit into a bounded space.

One thread uses it.  Rows passed together are one transaction, which survives the death of the
process.  A full file is closed and the next one begun; the oldest files are deleted when all
together are too large.  The next start continues a file of the same program, network and key,
including its numbering.  A file that cannot be read is left alone, beside a new one.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.core.errors import StorageError
from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_SNAPSHOT,
    LOG_TABLES,
    MEMBERSHIP,
    MESSAGE,
    SCHEMA_VERSION,
    Table,
)
from engine.delivery.rows import Rows
from engine.delivery.sqlite_log import (
    BUSY_MS,
    SUFFIX,
    DeliveryLogError,
    LogHeader,
    LogReader,
    create_tables,
)

LOG_ID_BYTES: Final = 8
_DIGITS: Final = 6

_UPSERTS: Final = {
    DELIVERY_EVENT: "",
    LOG_SNAPSHOT: "",
    MESSAGE: (
        " ON CONFLICT DO UPDATE SET sent_ms = coalesce(sent_ms, excluded.sent_ms),"
        " parents = coalesce(parents, excluded.parents),"
        " parent_mids = coalesce(parent_mids, excluded.parent_mids),"
        " content = coalesce(content, excluded.content)"
        " WHERE sent_ms IS NULL OR parents IS NULL OR content IS NULL"
    ),
    MEMBERSHIP: (" ON CONFLICT DO UPDATE SET left_ms = excluded.left_ms"),
}


def _insert(table: Table) -> str:
    names = [column.name for column in table.row_columns]
    marks = ", ".join("?" * len(names))
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of the contract
        f"{_UPSERTS[table]}"
    )


_INSERTS: Final = {table: _insert(table) for table in LOG_TABLES}


class Owner(Struct, frozen=True, kw_only=True):
    """Whose log it is; a change of any field begins a new file."""

    participant: str
    key_id: str
    app_version: str
    network: str


class Limits(Struct, frozen=True, kw_only=True):
    """The maximum size of one file, and of all files of one participant."""

    file_bytes: int = 64 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024


class LogWriter:
    def __init__(
        self,
        directory: Path,
        owner: Owner,
        *,
        limits: Limits,
        now_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._directory = directory
        self._owner = owner
        self._limits = limits
        self._now_ms = now_ms
        self._random_bytes = random_bytes
        self._connection: sqlite3.Connection | None = None
        self._log_id: str | None = None
        self._number = 0
        self._seq = 0

    @property
    def path(self) -> Path:
        """The path of the current file."""
        name = f"{self._owner.participant}-{self._number:0{_DIGITS}}{SUFFIX}"
        return self._directory / name

    # --- writing ------------------------------------------------------------------------------

    def append(self, rows: Rows) -> bool:
        """Make ``rows`` durable; True if the file is now full and the next call begins a new one.

        Raises StorageError, with none of the rows written.
        """
        connection = self._connection or self._open()
        seq = self._seq
        try:
            with _transaction(connection):
                for channel in {row.channel for row in rows.snapshots}:
                    connection.execute("DELETE FROM log_snapshot WHERE channel = ?", (channel,))
                connection.executemany(_INSERTS[MESSAGE], rows.messages)
                connection.executemany(_INSERTS[MEMBERSHIP], rows.memberships)
                connection.executemany(_INSERTS[LOG_SNAPSHOT], rows.snapshots)
                numbered = ((number, *row) for number, row in enumerate(rows.events, start=seq + 1))
                connection.executemany(_INSERTS[DELIVERY_EVENT], numbered)
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            self.close()  # Reopened next time, or replaced if it cannot be read.
            raise StorageError(f"{self.path}: {_reason(error)}") from error
        self._seq = seq + len(rows.events)
        if _size_of(connection) < self._limits.file_bytes:
            return False
        self.close()
        return True

    def close(self) -> None:
        """Close the file, with everything written in it and no write-ahead log beside it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    # --- files --------------------------------------------------------------------------------

    def files(self) -> list[Path]:
        """All files of this participant, oldest first."""
        return sorted(self._directory.glob(f"{self._owner.participant}-*{SUFFIX}"))

    def _open(self) -> sqlite3.Connection:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.files()
        except OSError as error:
            raise StorageError(f"{self._directory}: {_reason(error)}") from error
        if found:
            self._number = max(map(_number_of, found))
            if self._can_go_on():
                try:
                    self._connection = self._connect()
                except sqlite3.Error as error:
                    raise StorageError(f"{self.path}: {_reason(error)}") from error
                return self._connection
        return self._create(self._number + 1)

    def _can_go_on(self) -> bool:
        """Whether the newest file is ours and has room; notes its id and highest number."""
        try:
            with LogReader(self.path) as log:
                header, self._seq = log.header, log.last_seq()
            is_full = self.path.stat().st_size >= self._limits.file_bytes
        except (DeliveryLogError, OSError):
            return False
        self._log_id = header.log_id
        owner = Owner(
            participant=header.participant,
            key_id=header.key_id,
            app_version=header.app_version,
            network=header.network,
        )
        is_current = header.schema_version == SCHEMA_VERSION
        return owner == self._owner and is_current and not is_full

    def _create(self, number: int) -> sqlite3.Connection:
        self._number = number
        self._make_room()
        log_id = self._random_bytes(LOG_ID_BYTES).hex()
        header = LogHeader(
            schema_version=SCHEMA_VERSION,
            log_id=log_id,
            participant=self._owner.participant,
            key_id=self._owner.key_id,
            app_version=self._owner.app_version,
            network=self._owner.network,
            created_ms=self._now_ms(),
            previous_log_id=self._log_id,
        )
        connection: sqlite3.Connection | None = None
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise StorageError(f"{self.path}: {_reason(error)}") from error
        try:
            connection = self._connect()
            with _transaction(connection):
                create_tables(connection, header)
        except sqlite3.Error as error:
            self._take_back(connection)
            raise StorageError(f"{self.path}: {_reason(error)}") from error
        self._log_id, self._seq = log_id, 0
        self._connection = connection
        return connection

    def _take_back(self, connection: sqlite3.Connection | None) -> None:
        """A file that could not be begun goes: one for every try would fill the directory."""
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
        for path in _parts(self.path):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_MS / 1000, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # The data survives the death of the process; a crash of the machine may cost the last
            # moments.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA journal_size_limit = 1048576")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _make_room(self) -> None:
        """Delete the oldest files, so that a new one fits the bound with the rest."""
        files = self.files()
        sizes = [_size_on_disk(path) for path in files]
        while files and sum(sizes) + self._limits.file_bytes > self._limits.total_bytes:
            oldest = files.pop(0)
            sizes.pop(0)
            for path in _parts(oldest):
                with suppress(OSError):
                    path.unlink(missing_ok=True)


class _transaction:  # noqa: N801 - reads as the statement that it is
    """Commits all statements or none."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self._connection.execute("COMMIT")
            return
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")


def usable_rows(rows: Rows) -> Rows:
    """Drop rows that no file can take: numbers beyond 64 bits, text that is not UTF-8."""
    return replace(
        rows,
        events=list(filter(_is_usable, rows.events)),
        messages=list(filter(_is_usable, rows.messages)),
        memberships=list(filter(_is_usable, rows.memberships)),
        snapshots=list(filter(_is_usable, rows.snapshots)),
    )


def _is_usable(row: Sequence[object]) -> bool:
    for value in row:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return False
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                return False
    return True


def _number_of(path: Path) -> int:
    digits = path.name.removesuffix(SUFFIX).rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _size_of(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages * page_bytes)


def _parts(path: Path) -> tuple[Path, ...]:
    return path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def _size_on_disk(path: Path) -> int:
    total = 0
    for part in _parts(path):
        with suppress(OSError):
            total += part.stat().st_size
    return total


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error) if isinstance(error, sqlite3.Error) else type(error).__name__
