"""Reads delivery logs: SQLite files, one per profile and stretch of time.

A log is ``<participant>-<number>.delivery.db`` in WAL mode, so it can be read while the application
writes, and keeps all that was committed if the process is killed.  It needs no encryption: it holds
only pseudonyms, message ids, hashes and numbers.  The table ``log`` names its owner and schema
version.

A file may come from anywhere.  One that is not a log, damaged, locked or of another version raises
``DeliveryLogError`` with the file and one of a few reasons.  Rows are returned as they are;
``engine.delivery.check`` checks them.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from engine.core.errors import StorageError
from engine.delivery.check import problem_of
from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_TABLES,
    READABLE_VERSIONS,
    SCHEMA_VERSION,
    Column,
    Table,
    Type,
)
from engine.delivery.ddl import HEADER_COLUMNS, create_statements

SUFFIX: Final = ".delivery.db"
APPLICATION_ID: Final = 0x43444C31
""""CDL1", in the file's header."""
BUSY_MS: Final = 2_000
BATCH_ROWS: Final = 20_000
_ROWS_AT_ONCE: Final = 1_000
"""How many rows' values are in memory together: few enough for the processor's cache."""
_HEADER: Final = tuple(column.name for column in HEADER_COLUMNS)
_LISTS: Final = {Type.TEXTS, Type.INT64S}
_MAX_CELL_BYTES: Final = 64 * 1024
"""Nothing in the contract is longer, but a foreign file may hold more."""


_ERRORS: Final = (sqlite3.Error, OverflowError, UnicodeDecodeError)
"""What the driver raises for a malformed file."""
_NO_PLACE_FOR_WAL: Final = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


def _code(error: Exception) -> int:
    """SQLite's primary result code; 0 for any other error."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class DeliveryLogError(StorageError):
    """A log that cannot be read.

    ``reason``: ``absent``, ``not_a_log``, ``corrupt``, ``locked``, ``version`` or ``unreadable``.
    """

    def __init__(self, path: Path, reason: str, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path
        self.reason = reason


class LogHeader(Struct, frozen=True, kw_only=True):
    """The values that are the same in all rows of a log."""

    schema_version: int
    log_id: str
    participant: str
    key_id: str
    app_version: str
    network: str
    created_ms: int = 0
    previous_log_id: str | None = None

    def value(self, column: str) -> int | str | None:
        found: int | str | None = getattr(self, column)
        return found


def create_tables(connection: sqlite3.Connection, header: LogHeader) -> None:
    """Create the tables, within the caller's transaction."""
    for statement in create_statements():
        connection.execute(statement)
    values = [*map(header.value, _HEADER), header.created_ms]
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO log VALUES ({marks})", values)  # noqa: S608 - marks only
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def find_logs(place: Path) -> list[Path]:
    """``place`` itself if it is a log, or all logs in this directory and below, sorted."""
    if place.is_dir():
        return sorted(place.rglob(f"*{SUFFIX}"))
    return [place]


class LogReader:
    """Reads one file and changes nothing.  Use it as a context manager, in one thread."""

    def __init__(self, path: Path) -> None:
        """Raises DeliveryLogError."""
        self.path = path
        self._connection = self._connect()
        try:
            self.header = self._checked_header()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    # --- reading ------------------------------------------------------------------------------

    def last_seq(self) -> int:
        """The newest event's number, 0 if there is none: a later reading continues after it.

        Raises DeliveryLogError, also if there are events and none has a number that one may have.
        """
        ((newest,),) = self._all("SELECT max(seq) FROM delivery_event")
        if newest is None:
            return 0
        if not isinstance(newest, int) or newest < 1:
            raise DeliveryLogError(self.path, "corrupt", "its events are not numbered")
        return newest

    def count(self, table: Table) -> int:
        """How many rows a table has."""
        ((rows,),) = self._all(f"SELECT count(*) FROM {table.name}")  # noqa: S608 - names of the contract
        return rows if isinstance(rows, int) else 0

    def last_kind(self) -> object:
        """The newest event's kind; None if there is none."""
        rows = self._all("SELECT kind FROM delivery_event ORDER BY seq DESC LIMIT 1")
        return rows[0][0] if rows else None

    def batches(
        self,
        table: Table = DELIVERY_EVENT,
        columns: Sequence[str] | None = None,
        *,
        after_seq: int = 0,
        through_seq: int | None = None,
        passed_over: int = 0,
    ) -> Iterator[list[tuple[object, ...]]]:
        """Rows as tuples in the order of ``columns`` (None = the table's), in batches.

        Values are as in the file: nothing is checked, lists are JSON text.  ``after_seq`` and
        ``through_seq`` bound events, which come in the order of ``seq``.  The first ``passed_over``
        rows of these are skipped.  Raises DeliveryLogError, also half-way.
        """
        wanted = [table.column(name) for name in (table.names if columns is None else columns)]
        selected = ", ".join(map(self._expression, wanted))
        rest, bounds = _bounds(table, after_seq, through_seq)
        sql = f"SELECT {selected} FROM {table.name}{rest} LIMIT -1 OFFSET ?"  # noqa: S608 - names of the contract
        constants = [self.header.value(column.name) for column in wanted if column.per_log]
        values = [*constants, *bounds, passed_over]
        try:
            with closing(self._connection.execute(sql, values)) as cursor:
                while batch := cursor.fetchmany(BATCH_ROWS):
                    yield batch
        except _ERRORS as error:
            raise self._refused(error) from error

    def lines(
        self,
        table: Table,
        line: str,
        *,
        after_seq: int = 0,
        through_seq: int | None = None,
    ) -> Iterator[tuple[int, bytes]]:
        """Like ``batches``, but renders each row by ``line``, an SQL expression that gives a blob.

        Yields the number of rows and the rows, joined by line feeds.  This makes one object per row
        instead of one per cell.
        """
        rest, bounds = _bounds(table, after_seq, through_seq)
        sql = f"SELECT {line} FROM {table.name}{rest}"  # noqa: S608 - the caller's own expression
        try:
            with closing(self._connection.execute(sql, bounds)) as cursor:
                cells = chain.from_iterable(cursor)
                while True:
                    parts, rows = list[bytes](), 0
                    while part := list(islice(cells, min(_ROWS_AT_ONCE, BATCH_ROWS - rows))):
                        parts.append(b"\n".join(part))
                        rows += len(part)
                    if not rows:
                        return
                    yield rows, b"\n".join(parts)
        except _ERRORS as error:
            raise self._refused(error) from error

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Read from one snapshot: what is written in the meantime is not seen."""
        self._all("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    def checked(
        self, table: Table = DELIVERY_EVENT, *, after_seq: int = 0
    ) -> Iterator[tuple[tuple[object, ...], str | None]]:
        """Rows with lists decoded, each with its first problem or None."""
        lists = [number for number, column in enumerate(table.columns) if column.type in _LISTS]
        for batch in self.batches(table, after_seq=after_seq):
            for raw in batch:
                row = _decoded(raw, lists) if lists else raw
                yield row, problem_of(table, row)

    # --- internals ----------------------------------------------------------------------------

    def _expression(self, column: Column) -> str:
        if column.per_log:
            return "?"
        return column.name if column.since <= self.header.schema_version else "NULL"

    def _connect(self) -> sqlite3.Connection:
        try:
            size = self.path.stat().st_size
        except OSError as error:
            raise DeliveryLogError(self.path, "absent", "there is no such file") from error
        if not size:
            raise DeliveryLogError(self.path, "not_a_log", "the file is empty")
        uri = self.path.absolute().as_uri() + "?mode=ro"
        try:
            return self._open(uri)
        except _ERRORS as error:
            if _code(error) not in _NO_PLACE_FOR_WAL or _size(self._wal):
                raise self._refused(error) from error
        # A write-ahead log needs a writable directory beside it.  Without one, as on a read-only
        # medium, and with nothing left in the log, the file alone is complete.
        try:
            return self._open(uri + "&immutable=1")
        except _ERRORS as error:
            raise self._refused(error) from error

    @property
    def _wal(self) -> Path:
        return self.path.with_name(f"{self.path.name}-wal")

    def _open(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_MS / 1000, isolation_level=None)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_CELL_BYTES)
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _checked_header(self) -> LogHeader:
        ((application,),) = self._all("PRAGMA application_id")
        if application != APPLICATION_ID:
            raise DeliveryLogError(self.path, "not_a_log", "this is no delivery log")
        ((version,),) = self._all("PRAGMA user_version")
        if version not in READABLE_VERSIONS:
            raise DeliveryLogError(
                self.path,
                "version",
                f"written under version {version} of the contract, this program knows"
                f" {SCHEMA_VERSION}",
            )
        there = set(self._all("SELECT name FROM sqlite_master WHERE type = 'table'"))
        wanted = {("log",), *((table.name,) for table in LOG_TABLES)}
        if not wanted <= there:
            raise DeliveryLogError(self.path, "corrupt", "tables are missing")
        rows = self._all(f"SELECT {', '.join(_HEADER)}, created_ms FROM log")  # noqa: S608 - names of the contract
        if len(rows) != 1:
            raise DeliveryLogError(self.path, "corrupt", "it does not say whose it is")
        return self._header_of(rows[0])

    def _header_of(self, row: tuple[object, ...]) -> LogHeader:
        *values, created_ms = row
        bare = Table(name="log", text="", key=(), columns=HEADER_COLUMNS)
        problem = problem_of(bare, values)
        version, log_id, participant, key_id, app_version, network, previous = values
        if problem or not isinstance(version, int) or version not in READABLE_VERSIONS:
            raise DeliveryLogError(self.path, "corrupt", f"its header is wrong: {problem}")
        return LogHeader(
            schema_version=version,
            log_id=str(log_id),
            participant=str(participant),
            key_id=str(key_id),
            app_version=str(app_version),
            network=str(network),
            created_ms=created_ms if isinstance(created_ms, int) else 0,
            previous_log_id=str(previous) if previous is not None else None,
        )

    def _all(self, sql: str) -> list[tuple[object, ...]]:
        try:
            return self._connection.execute(sql).fetchmany(1_000)
        except _ERRORS as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> DeliveryLogError:
        """Translate SQLite's error into a reason that names no content of the file."""
        code = _code(error)
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return DeliveryLogError(self.path, "locked", "another program has locked it")
        if code == sqlite3.SQLITE_NOTADB:
            return DeliveryLogError(self.path, "not_a_log", "this is no SQLite file")
        if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR}:
            return DeliveryLogError(self.path, "unreadable", "it cannot be opened for reading")
        return DeliveryLogError(self.path, "corrupt", "it is damaged")


def _bounds(table: Table, after_seq: int, through_seq: int | None) -> tuple[str, list[int]]:
    """The end of a SELECT that bounds events, and its values.

    From the beginning means from whatever there is: numbers below 1 break the contract, and a
    reader has to hear of them.
    """
    if table is not DELIVERY_EVENT:
        return "", []
    last = 2**63 - 1 if through_seq is None else through_seq
    if not after_seq:
        return " WHERE seq <= ? ORDER BY seq", [last]
    return " WHERE seq > ? AND seq <= ? ORDER BY seq", [after_seq, last]


def _decoded(raw: tuple[object, ...], lists: Sequence[int]) -> tuple[object, ...]:
    row = list(raw)
    for number in lists:
        text = row[number]
        if isinstance(text, str):
            try:
                row[number] = json.loads(text)
            except (ValueError, RecursionError):
                row[number] = b""  # No list's type, so the check refuses it.
    return tuple(row)
