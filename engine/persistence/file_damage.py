"""What of a database's files is damaged, without opening the database.

Before a profile is opened it is asked whether the database that was there is gone, and whether
something behind a wrong place in the write-ahead log was committed: SQLite would begin an empty
profile in the first case, and forget it in the second.  ``examine_files`` looks at each page, for
``causerie doctor`` and for a salvage.  Nothing is written.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from engine.core.errors import StorageError, StorageFault
from engine.persistence.cipher_pages import PAGE_BYTES
from engine.persistence.database_files import DatabaseFiles, find_cipher
from engine.persistence.errors import DatabaseUnreadableError
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.wal_frames import (
    LogPages,
    WalIndex,
    committed_frames,
    read_index,
    read_log,
)


class FileDamage(Struct, frozen=True, kw_only=True):
    """What page checks find."""

    pages: int
    """In the main file."""
    unreadable: Sequence[int] = ()
    """Numbers of those pages whose authentication fails."""
    frames_lost: int = 0
    """Of the write-ahead log: committed, and SQLite would not read them."""
    is_cut: bool = False
    """The main file ends within a page."""

    @property
    def is_whole(self) -> bool:
        return not (self.unreadable or self.frames_lost or self.is_cut)


def require_what_was_there(directory: ProfileDirectory) -> None:
    """Raises StorageError if the database is gone or empty though the profile was used.

    A crash at the very first start leaves an empty file, and nothing else of what is looked for.
    One after an earlier database was kept aside leaves a mark.
    """
    files = DatabaseFiles(directory.database)
    if directory.has_database():
        return
    with _readable(directory.database):
        if directory.beginning_anew.exists():
            return
        traces = [
            path
            for path in (files.kept, files.log, directory.archive)
            if path.exists() and path.stat().st_size
        ]
        traces += directory.path.glob(f"{directory.database.name}.salvaged-*")
    if traces:
        what = "empty" if directory.database.exists() else "gone"
        raise StorageError(
            f"The database {directory.database} is {what}, but this profile was used: "
            f"{traces[0].name} is there. Nothing was changed.",
            StorageFault.DATABASE_GONE,
        )


def require_readable_log(path: Path, key: bytes) -> None:
    """Raises DatabaseUnreadableError if SQLite would not read all that was committed."""
    files = DatabaseFiles(path)
    with _readable(path):
        if not files.size():
            return
        lost = _frames_lost(files, key)
    if lost:
        raise DatabaseUnreadableError(
            f"The write-ahead log of {path} is damaged: {lost} pages that were saved are behind "
            "the damage, and SQLite would forget them. Nothing was changed.",
            StorageFault.DAMAGED,
        )


def explained(path: Path, key: bytes, error: StorageError) -> StorageError:
    """The same error, or what the pages tell: that the key is right, and the first page damaged.

    Or that the disk cannot read some of them, which SQLite does not tell from other failures.
    """
    if error.fault is StorageFault.DISK_ERROR:
        return bad_sector(path) or error
    if error.fault is not StorageFault.NOT_DECRYPTED:
        return error
    try:
        cipher = find_cipher(DatabaseFiles(path), key)
    except OSError:
        return error
    if cipher is None:
        return error
    return DatabaseUnreadableError(
        f"The database {path} is damaged: its key is right, but its first page or the list of its "
        "tables is not. Nothing was removed.",
        StorageFault.DAMAGED,
    )


def bad_sector(path: Path) -> DatabaseUnreadableError | None:
    """What to say if the disk cannot read a page of the database, after it reported an error."""
    try:
        if not DatabaseFiles(path).has_bad_sector():
            return None
    except OSError:
        return None
    return DatabaseUnreadableError(
        f"The database {path} is damaged: the disk cannot read a part of it. Nothing was removed.",
        StorageFault.DAMAGED,
    )


def examine_files(path: Path, key: bytes) -> FileDamage:
    """Look at every page.  Raises StorageError if no page fits the key, or the disk refuses."""
    files = DatabaseFiles(path)
    with _readable(path):
        cipher = find_cipher(files, key)
        if cipher is None:
            raise DatabaseUnreadableError(
                f"Cannot examine {path}: no page of it can be decrypted with its key.",
                StorageFault.NOT_DECRYPTED,
            )
        in_log = _pages_in_log(files)
        unreadable = [
            number
            for number, page in files.pages()
            # One that was never written holds nothing; one in the log is read from there.
            if number not in in_log and any(page) and not cipher.is_authentic(page, number)
        ]
        return FileDamage(
            pages=-(-files.size() // PAGE_BYTES),
            unreadable=unreadable,
            frames_lost=_frames_lost(files, key),
            is_cut=bool(files.size() % PAGE_BYTES),
        )


def _frames_lost(files: DatabaseFiles, key: bytes) -> int:
    index = read_index(files.index)  # First: a process that runs adds to the log meanwhile.
    log = read_log(files.log)
    if log is None:
        return 0 if index is None else _not_in_database(index)
    if (
        log.has_right_header
        and log.readable == len(log.frames)
        and (index is None or index.committed <= log.readable or index.salts != log.salts)
    ):
        return 0
    cipher = find_cipher(files, key)
    if cipher is None:
        return 0  # The key is another one, which opening it will say.
    pages = LogPages(files.log, cipher.is_authentic)
    return committed_frames(log, index, pages) - log.readable


def _not_in_database(index: WalIndex) -> int:
    return max(0, index.committed - index.backfilled)


def _pages_in_log(files: DatabaseFiles) -> frozenset[int]:
    log = read_log(files.log)
    if log is None:
        return frozenset()
    return frozenset(frame.page for frame in log.frames[: log.readable])


@contextmanager
def _readable(path: Path) -> Generator[None]:
    """Turns the system's errors into StorageError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = f"Cannot read {path}: {reason}."
        raise StorageError(text, StorageFault.UNUSABLE, f"{path}: {reason}") from error
