"""Opens a profile's database: SQLCipher, durable and private by its settings.

``synchronous=FULL`` in WAL mode: a commit that has returned is synced to disk, which is what
"saved" means to the user.  The key is passed raw (no key derivation: it is random already).  The
connection is bound to the thread that opened it.  The tables are defined in ``schema``.
"""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlcipher3 import dbapi2

from engine.core.errors import StorageError
from engine.persistence.errors import translated
from engine.persistence.key import KEY_BYTES
from engine.persistence.schema import check_version, migrate

BUSY_TIMEOUT_MS: Final = 5_000
SIDE_FILES: Final = ("-wal", "-shm")
"""Files that SQLite keeps beside an open database."""
_CACHED_STATEMENTS: Final = 256

_CIPHER_PRAGMAS: Final = (
    # The library would write diagnostics to stderr; failures reach us as exceptions anyway.
    "PRAGMA cipher_log_level = NONE",
    "PRAGMA cipher_compatibility = 4",
)
_SECURITY_PRAGMAS: Final = (
    "PRAGMA temp_store = MEMORY",  # nothing decrypted in temporary files
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)
_DURABILITY_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 16777216",
)


def open_database(path: Path, key: bytes) -> sqlite3.Connection:
    """Open or create the database and bring its schema up to date.

    Raises StorageError: DatabaseUnreadableError (wrong key, damaged), DatabaseTooNewError and
    DatabaseFromBeforeError (both untouched), DiskFullError, or with the reason in words.
    """
    _create_private(path)
    connection = _connect(str(path), key, uri=False)
    try:
        with translated(f"open {path}"):
            check_version(connection)
            _make_durable(connection, path)
            migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def memory_database() -> sqlite3.Connection:
    """A new database that no file holds; the schema and its rules are the same."""
    connection = _connect(":memory:", bytes(KEY_BYTES), uri=False)
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection)
    return connection


def open_readonly(path: Path, key: bytes) -> sqlite3.Connection:
    """Open an existing database read-only, even while the application has it open.

    Changes neither data nor schema.  Raises as ``open_database`` does, and if the database does not
    exist or its schema is older.
    """
    if not path.is_file():
        raise StorageError(f"There is no database at {path}.")
    connection = _connect(f"{path.absolute().as_uri()}?mode=ro", key, uri=True)
    try:
        with translated(f"read {path}"):
            check_version(connection, must_be_current=True)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Commits at the end; after an error nothing has changed.  None may be open already."""
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # Some errors, as of a full disk, have ended it already.
            connection.execute("ROLLBACK")
        raise


def bring_into_one_file(path: Path, key: bytes) -> None:
    """Move the write-ahead log's content into the database, whichever version wrote it.

    Raises StorageError if another process has it open.
    """
    connection = _connect(str(path), key, uri=False)
    try:
        with translated(f"put {path} into one file"):
            row: tuple[int, int, int] = connection.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            ).fetchone()
    finally:
        connection.close()
    if row[0] or any(path.with_name(f"{path.name}{end}").exists() for end in SIDE_FILES):
        raise StorageError(f"Another process reads {path}. Close it and start again.")


def damaged_pages(connection: sqlite3.Connection) -> list[str]:
    """Errors found by SQLCipher's page authentication and SQLite's own check; empty if all is well.

    Reads the whole file: seconds for a large profile.
    """
    with translated("check the database"):
        found: list[tuple[str]] = connection.execute("PRAGMA cipher_integrity_check").fetchall()
        if not found:
            found = [
                row for row in connection.execute("PRAGMA quick_check").fetchall() if row[0] != "ok"
            ]
    return [text for (text,) in found]


def _make_durable(connection: sqlite3.Connection, path: Path) -> None:
    mode: tuple[str] = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode[0] != "wal":
        raise StorageError(f"Cannot open {path}: its disk has no write-ahead logging.")
    for pragma in _DURABILITY_PRAGMAS:
        connection.execute(pragma)


def _connect(address: str, key: bytes, *, uri: bool) -> sqlite3.Connection:
    if len(key) != KEY_BYTES:
        raise StorageError(f"A database key has {KEY_BYTES} bytes, not {len(key)}.")
    with translated("open the database"):
        connection = dbapi2.connect(
            address,
            timeout=BUSY_TIMEOUT_MS / 1000,
            isolation_level=None,  # transactions begin only where the code says so
            cached_statements=_CACHED_STATEMENTS,
            uri=uri,
        )
    try:
        with translated("open the database"):
            connection.execute(f"PRAGMA key = \"x'{key.hex()}'\"")
            for pragma in (*_CIPHER_PRAGMAS, *_SECURITY_PRAGMAS):
                connection.execute(pragma)
            # Tests the key: reading the first page decrypts and authenticates it.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _create_private(path: Path) -> None:
    """Create an empty file of mode 0600, whatever the umask: SQLite would make it 0644.

    SQLite gives the write-ahead log and its index the mode of the database.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"Cannot open {path}: {reason}.") from error
