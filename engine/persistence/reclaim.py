"""Gives the unused pages of a profile's database back to the disk.

SQLite's VACUUM writes what is live into a temporary file, encrypted like the database, and from
there through the write-ahead log over the database, in one transaction: whenever the process is
killed, the database is whole, as it was or packed.  It needs a connection of its own, and nobody
else may write meanwhile, so it belongs on the storage thread, where writes wait their turn.
"""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

from engine.core.errors import StorageError, StorageFault
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.connection import connect
from engine.persistence.database_files import DatabaseFiles
from engine.persistence.errors import translated
from engine.persistence.page_trees import keep_list_of_tables

_SLACK: Final = 1.05
"""A log's frame has a head, and messages of the next seconds need room, too."""
_MEGABYTE: Final = 1_000_000
_STEPS_AT_ONCE: Final = 500
"""Of SQLite's virtual machine, about a hundred rows; how often it is asked whether to go on."""
_STEPS_A_ROW: Final = 4.2
"""Of a table or an index; measured."""
_COPYING: Final = 0.85
"""The share of the time until all is in the temporary file; then nothing stops it any more."""
_FLAT_MEMORY: Final = ("PRAGMA temp_store = FILE", "PRAGMA cache_size = -2000")
"""Rows come in the order in which they lie, so that more memory would not help."""
_TEMPORARY: Final = ("/var/tmp", "/usr/tmp", "/tmp")  # noqa: S108 - SQLite's own list


def room_needed(live_bytes: int) -> int:
    """On the disk for a while, if temporary files are on the same one."""
    return round(2 * live_bytes * _SLACK)


def reclaim_unused(path: Path, key: bytes, progress: Progress = unheard) -> int:
    """By how many bytes the database got smaller; while somebody reads, the file follows later.

    Raises StorageError, and nothing has changed: NO_ROOM_TO_RECLAIM, CLOSING if ``progress``
    stopped it, LOCKED if another process writes.
    """
    connection = connect(str(path), key)
    try:
        with translated("give unused room back"):
            before, live = _sizes(connection)
            require_room(path.parent, live)
            connection.execute("PRAGMA synchronous = FULL")
            for pragma in _FLAT_MEMORY:
                connection.execute(pragma)
            # The pages that list the tables move.  An old copy would mislead a repair.
            DatabaseFiles(path).kept.unlink(missing_ok=True)
            _vacuum(connection, progress)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            after, _ = _sizes(connection)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = f"Cannot give unused room back: {reason}."
        raise StorageError(text, StorageFault.DISK_ERROR) from error
    finally:
        connection.close()
        keep_list_of_tables(path, key)
    progress(1.0)
    return max(before - after, 0)


def require_room(place: Path, live_bytes: int) -> None:
    """For the log beside the database and the temporary file; raises StorageError."""
    places = [place, _temporary_directory()]
    if places[0].stat().st_dev == places[1].stat().st_dev:
        places.pop()
    each = room_needed(live_bytes) // len(places)
    missing = max(each - shutil.disk_usage(where).free for where in places)
    if missing > 0:
        megabytes = f"{missing // _MEGABYTE + 1}"
        raise StorageError(
            f"The disk has too little free room to pack the database: {megabytes} MB are missing.",
            StorageFault.NO_ROOM_TO_RECLAIM,
            megabytes,
        )


def _temporary_directory() -> Path:
    """As SQLite looks for it."""
    named = (os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR"))
    for place in (*named, *_TEMPORARY):
        if place and os.access(place, os.W_OK | os.X_OK) and Path(place).is_dir():
            return Path(place)
    return Path(tempfile.gettempdir())


def _sizes(connection: sqlite3.Connection) -> tuple[int, int]:
    """All pages, and those in use, in bytes."""
    pages, free, page_bytes = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return pages * page_bytes, (pages - free) * page_bytes


def _vacuum(connection: sqlite3.Connection, progress: Progress) -> None:
    expected = _STEPS_A_ROW * max(_rows(connection), 1) / _STEPS_AT_ONCE
    calls, is_stopped = 0, not progress(0.0)

    def goes_on() -> int:
        nonlocal calls, is_stopped
        calls += 1
        is_stopped = is_stopped or not progress(_COPYING * min(calls / expected, 1.0))
        return is_stopped

    connection.set_progress_handler(goes_on, _STEPS_AT_ONCE)
    try:
        with translated("give unused room back"):
            connection.execute("VACUUM")
    except StorageError as error:
        if is_stopped:
            raise StorageError("It was stopped.", StorageFault.CLOSING) from error
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _rows(connection: sqlite3.Connection) -> int:
    """Of all tables and indexes."""
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    rows = 0
    for (name,) in names:
        (count,) = connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()  # noqa: S608 - from the schema
        indexes = connection.execute(f'PRAGMA index_list("{name}")').fetchall()
        rows += count * (1 + sum(1 for index in indexes if index[3] != "pk"))
    return rows
