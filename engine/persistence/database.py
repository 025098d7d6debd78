"""Opens a profile's database: of the present schema, and durable by its settings.

``synchronous=FULL`` in WAL mode: a commit that has returned is synced to disk, which is what
"saved" means to the user.  The tables are defined in ``schema``; a database of an old version is
carried over first (``carry_over``).
"""

import sqlite3
import threading
from pathlib import Path
from typing import Final

from engine.core.errors import StorageError, StorageFault
from engine.core.key_header import KEY_BYTES
from engine.persistence.carry_over import Progress, carry_over, forget_unfinished, unheard
from engine.persistence.connection import connect, create_private
from engine.persistence.errors import translated
from engine.persistence.schema import check_version, is_to_be_copied, migrate

_NO_SIDE_FILES: Final = frozenset({StorageFault.NOT_OPENED, StorageFault.READ_ONLY})
_DURABILITY_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 16777216",
)


def open_database(path: Path, key: bytes, progress: Progress = unheard) -> sqlite3.Connection:
    """Open or create the database and bring its schema up to date.

    ``progress`` is told of that, if it takes long.  Raises StorageError: DatabaseUnreadableError
    (wrong key, damaged), DatabaseTooNewError and DatabaseFromBeforeError (both untouched),
    DiskFullError, CarryOverStoppedError, or with the reason in words.
    """
    create_private(path)
    forget_unfinished(path)
    connection = connect(str(path), key)
    try:
        with translated(f"open {path}"):
            check_version(connection)
            if is_to_be_copied(connection):
                connection.close()
                carry_over(path, key, progress)
                connection = connect(str(path), key)
            _make_durable(connection, path)
            migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def memory_database() -> sqlite3.Connection:
    """A new database that no file holds; the schema and its rules are the same.

    It is copied from an empty one that the thread keeps: to make the tables takes a hundred times
    as long.
    """
    connection = connect(":memory:", bytes(KEY_BYTES))
    if _empty.database is None:
        empty = connect(":memory:", bytes(KEY_BYTES))
        migrate(empty)
        _empty.database = empty
    _empty.database.backup(connection)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


class _Empty(threading.local):
    """A connection is bound to the thread that made it."""

    database: sqlite3.Connection | None = None


_empty: Final = _Empty()


def open_readonly(path: Path, key: bytes) -> sqlite3.Connection:
    """Open an existing database read-only, even while the application has it open.

    Changes neither data nor schema.  Raises as ``open_database`` does, and if the database does not
    exist or its schema is older.
    """
    if not path.is_file():
        raise StorageError(f"There is no database at {path}.")
    connection = _connect_readonly(path, key)
    try:
        with translated(f"read {path}"):
            check_version(connection, must_be_current=True)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_readonly(path: Path, key: bytes) -> sqlite3.Connection:
    """Where SQLite cannot make its side files, nobody writes, and what is in the file is all."""
    address = path.absolute().as_uri()
    try:
        return connect(f"{address}?mode=ro", key, uri=True)
    except StorageError as error:
        wal = path.with_name(f"{path.name}-wal")
        is_all = not wal.exists() or not wal.stat().st_size
        if error.fault not in _NO_SIDE_FILES or not is_all:
            raise
        return connect(f"{address}?immutable=1", key, uri=True)


def damaged_pages(connection: sqlite3.Connection) -> list[str]:
    """Errors found by SQLCipher's page authentication and SQLite's own check; empty if all is well.

    Reads the whole file: seconds for a large profile.
    """
    with translated("check the database"):
        found: list[tuple[str]] = connection.execute("PRAGMA cipher_integrity_check").fetchall()
        if not found:
            said = connection.execute("PRAGMA integrity_check").fetchall()
            found = [row for row in said if row[0] != "ok"]
    return [text for (text,) in found]


def _make_durable(connection: sqlite3.Connection, path: Path) -> None:
    mode: tuple[str] = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode[0] != "wal":
        raise StorageError(f"Cannot open {path}: its disk has no write-ahead logging.")
    for pragma in _DURABILITY_PRAGMAS:
        connection.execute(pragma)
