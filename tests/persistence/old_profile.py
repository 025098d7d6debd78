"""A database as the test versions from before the first schema left it, as far as that matters."""

import shutil
import sqlite3
from pathlib import Path

from sqlcipher3 import dbapi2

OLD_VERSION = 9


def make_old_database(
    path: Path,
    key: bytes,
    *,
    version: int = OLD_VERSION,
    application_id: int = 0,
    killed: bool = False,
) -> None:
    """``killed``: by whoever wrote it, so that the last row is in the write-ahead log alone."""
    original = path.with_name("original")
    connection = _connect(original, key)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(
        "CREATE TABLE _sqlite_migrations (migration_set TEXT, name TEXT, applied_at TEXT);"
        "INSERT INTO _sqlite_migrations VALUES ('causerie', 'create_first_tables', '2026');"
        "CREATE TABLE message (text TEXT NOT NULL) STRICT;"
        "INSERT INTO message VALUES ('first');"
    )
    connection.execute(f"PRAGMA application_id = {application_id}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.execute("INSERT INTO message VALUES ('last')")
    if killed:
        shutil.copy(original, path)
        shutil.copy(original.with_name("original-wal"), path.with_name(f"{path.name}-wal"))
    connection.close()
    if not killed:
        shutil.copy(original, path)
    original.unlink()


def texts(path: Path, key: bytes) -> list[str]:
    connection = _connect(path, key)
    try:
        return [text for (text,) in connection.execute("SELECT text FROM message ORDER BY rowid")]
    finally:
        connection.close()


def _connect(path: Path, key: bytes) -> sqlite3.Connection:
    connection = dbapi2.connect(str(path), isolation_level=None)
    connection.execute(f"PRAGMA key = \"x'{key.hex()}'\"")
    return connection
