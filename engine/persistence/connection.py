"""Connects to the file of a profile's database: SQLCipher, private by its settings.

The key is passed raw (no key derivation: it is random already).  A connection is bound to the
thread that made it.  What the file must be like, and how durable it is, says ``database``.
"""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlcipher3 import dbapi2

from engine.core.errors import StorageError, StorageFault
from engine.core.key_header import KEY_BYTES
from engine.persistence.errors import translated

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


def _as_it_is(value: object) -> object:
    return value


# What is no number and no text is offered to adapters first.  Finding none takes the driver 1 to 2
# µs a value, a tenth of what storing a message takes; these are found in a tenth of that.
for _kind in (bytes, bool, type(None)):
    dbapi2.register_adapter(_kind, _as_it_is)


def connect(address: str, key: bytes, *, uri: bool = False) -> sqlite3.Connection:
    """``address``: a path, a URI, or ":memory:".  Raises StorageError, also if the key is wrong."""
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
            connection.execute(f"PRAGMA key = {key_literal(key)}")
            for pragma in (*_CIPHER_PRAGMAS, *_SECURITY_PRAGMAS):
                connection.execute(pragma)
            # Tests the key: reading the first page decrypts and authenticates it.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def key_literal(key: bytes) -> str:
    """As a statement takes it: there is no parameter for a key."""
    return f"\"x'{key.hex()}'\""


def create_private(path: Path) -> None:
    """Create an empty file of mode 0600, whatever the umask: SQLite would make it 0644.

    SQLite gives the write-ahead log and its index the mode of the database.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = f"Cannot open {path}: {reason}."
        raise StorageError(text, StorageFault.UNUSABLE, f"{path}: {reason}") from error


def sync_file(path: Path) -> None:
    """Force to the disk what was written without it.  Raises OSError."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
    connection = connect(str(path), key)
    try:
        with translated(f"put {path} into one file"):
            row: tuple[int, int, int] = connection.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            ).fetchone()
    finally:
        connection.close()
    if row[0] or any(path.with_name(f"{path.name}{end}").exists() for end in SIDE_FILES):
        raise StorageError(f"Another process reads {path}. Close it and start again.")
