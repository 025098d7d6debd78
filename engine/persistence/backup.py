"""Makes a backup of a profile, also while it is open: its database, chunks of files, settings.

The database is copied page by page to a file beside it, in one read transaction of a connection of
its own, so that a writer waits for nothing; the copy has a random key, which is in the backup.  The
copy is opened, and from there sealed into the backup file.  Then that file is read again from
beginning to end and compared with what went in.  What is kept for others (archive) is left out.
Sealing is in ``engine.crypto.backup``, restoring in ``restore``.
"""

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.codec.backup import MAX_SMALL_BYTES, EntryReader, damaged
from engine.core.backup import (
    FILE_SALT_BYTES,
    SALT_BYTES,
    BackupHeader,
    Cost,
    Entry,
    EntryKind,
)
from engine.core.blobs.manifest import MAX_SEALED_BYTES
from engine.core.errors import BackupError, BackupFlaw, StorageError, StorageFault
from engine.core.ids import UnixMs
from engine.core.key_header import KEY_BYTES
from engine.crypto.backup import BackupSecret, derive_secret, pseudonym_of
from engine.persistence.backup_file import BackupReader, BackupWriter, not_written
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.chunk_files import name_of
from engine.persistence.connection import SIDE_FILES, connect, create_private
from engine.persistence.database import open_readonly
from engine.persistence.errors import translated
from engine.persistence.lock import held_file
from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.schema import SCHEMA_VERSION, check_version

PAGES_AT_ONCE: Final = 512
"""2 MiB; how often it is asked whether to go on."""
_READ_BYTES: Final = 1024 * 1024


class BackupSource(Struct, frozen=True, kw_only=True):
    """What is backed up; the files may be missing."""

    directory: ProfileDirectory
    key: bytes
    """Of its database."""
    settings: Path
    window: Path
    app_version: str


class BackupMade(Struct, frozen=True, kw_only=True):
    path: Path
    size: int
    files: int
    """Chunks of files."""
    left_out: int
    """Chunks that are damaged, or cannot be read."""


def new_secret(passphrase: str, cost: Cost | None = None) -> BackupSecret:
    """With a salt of its own.  Raises BackupError for a passphrase that is too short."""
    return derive_secret(passphrase, salt=secrets.token_bytes(SALT_BYTES), cost=cost or Cost())


def write_backup(  # noqa: PLR0913 - keyword-only: what may be left out
    source: BackupSource,
    target: Path,
    secret: BackupSecret,
    *,
    created_ms: UnixMs,
    progress: Progress = unheard,
    file_salt: bytes = b"",
) -> BackupMade:
    """``target`` is there, whole and checked, or as it was before.

    ``file_salt``: random, to know the file by; one is made if it is empty.
    Raises StorageError, and BackupError if it was stopped or does not pass the check.
    """
    require_outside(source, target)
    work = _Work(progress)
    copy = source.directory.backup_copy
    with held_file(source.directory.backup_lock):
        try:
            key = secrets.token_bytes(KEY_BYTES)
            signing_key, instance_id = _copy_database(source, copy, key, work)
            header = BackupHeader(
                cost=secret.cost,
                salt=secret.salt,
                file_salt=file_salt or secrets.token_bytes(FILE_SALT_BYTES),
                schema_version=SCHEMA_VERSION,
                app_version=source.app_version,
                created_ms=created_ms,
                pseudonym=pseudonym_of(signing_key),
            )
            owner = pseudonym_of(signing_key + instance_id)
            with BackupWriter(target, header, secret, owner=owner) as writer:
                written, left_out = _write_entries(source, copy, key, writer, work)
                writer.finish()
                _check(writer.passing, secret, written, work)
                size = writer.passing.stat().st_size
                work.tell()
                writer.give_name()
        except OSError as error:
            raise not_written(error) from error
        finally:
            forget_copy(source.directory)
    progress(1.0)
    files = sum(1 for entry, _ in written if entry.kind is EntryKind.CHUNK)
    return BackupMade(path=target, size=size, files=files, left_out=left_out)


def require_outside(source: BackupSource, target: Path) -> None:
    """It would replace a part of the profile, or go when the profile does.

    A link in the last place of ``target`` is replaced and not followed, so it is not looked at.
    """
    place = target.parent.resolve()
    for kept in (source.directory.path.resolve(), source.settings.parent.resolve()):
        if place.is_relative_to(kept):
            raise BackupError(
                BackupFlaw.IN_PROFILE,
                f"{target} is inside the profile; give a name in another directory.",
                str(target),
            )


def forget_copy(directory: ProfileDirectory) -> None:
    for end in ("", "-journal", *SIDE_FILES):
        copy = directory.backup_copy
        copy.with_name(f"{copy.name}{end}").unlink(missing_ok=True)


def forget_backup_leftovers(directory: ProfileDirectory) -> None:
    """Throw away what a backup left that was killed; one that is being made stays."""
    if directory.backup_copy.exists():
        with suppress(StorageError), held_file(directory.backup_lock):
            forget_copy(directory)


class _Work:
    """How much is done of what there is to do."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._done = 0
        self._bytes = 1
        self.tell()

    def expect(self, database_bytes: int, chunk_bytes: int) -> None:
        """The database is copied, sealed and checked; chunks are sealed and checked."""
        self._bytes = 3 * database_bytes + 2 * chunk_bytes

    def did(self, size: int) -> None:
        self._done += size
        self.tell()

    def tell(self) -> None:
        """Raises BackupError if the user stopped it."""
        share = min(self._done / self._bytes, 0.999)
        if not self._progress(share):
            raise stopped()


def stopped() -> BackupError:
    return BackupError(BackupFlaw.STOPPED, "It was stopped; nothing was changed.")


# --- the copy of the database ---------------------------------------------------------------------


def _copy_database(
    source: BackupSource, copy: Path, key: bytes, work: _Work
) -> tuple[bytes, bytes]:
    """The signing key and the instance id of the profile in it."""
    forget_copy(source.directory)
    chunks = sum(size for _, size in _chunks(source))
    reading = open_readonly(source.directory.database, source.key)
    try:
        with translated("copy the database"):
            # The transaction stays open, so the copy is of one moment, whatever is written since.
            reading.execute("BEGIN")
            found: tuple[bytes, bytes] | None = reading.execute(
                "SELECT signing_key, instance_id FROM profile"
            ).fetchone()
            if found is None:
                raise StorageError("There is nothing to back up yet.", StorageFault.OTHER)
            page_bytes = page_bytes_of(reading)
            (pages,) = reading.execute("PRAGMA page_count").fetchone()
            work.expect(pages * page_bytes, chunks)
            copy_pages(reading, copy, key, lambda count: work.did(count * page_bytes))
    finally:
        reading.close()
    if identity_in(copy, key) != found[0]:
        raise damaged("the copy of the database")
    return found


def identity_in(database: Path, key: bytes) -> bytes | None:
    """The signing key; None if the database has no profile.  Raises StorageError."""
    opened = connect(str(database), key)
    try:
        with translated(f"read {database}"):
            check_version(opened)
            if not opened.execute("PRAGMA user_version").fetchone()[0]:
                return None
            row: tuple[bytes] | None = opened.execute("SELECT signing_key FROM profile").fetchone()
    finally:
        opened.close()
    return None if row is None else row[0]


def page_bytes_of(connection: sqlite3.Connection) -> int:
    """SQLCipher answers with a text."""
    return int(connection.execute("PRAGMA page_size").fetchone()[0])


def copy_pages(
    reading: sqlite3.Connection, target: Path, key: bytes, did: Callable[[int], None]
) -> None:
    """All pages of an open database into a new file with another key.

    Each page is authenticated as it is read.  ``did`` is told how many came over since it was told
    last; what it raises stops the copying.
    """
    create_private(target)
    writing = connect(str(target), key)
    try:
        writing.execute("PRAGMA journal_mode = OFF")
        writing.execute("PRAGMA synchronous = OFF")
        told = 0

        def follow(status: int, remaining: int, total: int) -> None:
            nonlocal told
            del status
            done = total - remaining
            did(done - told)
            told = done

        reading.backup(writing, pages=PAGES_AT_ONCE, progress=follow, sleep=0)
    finally:
        writing.close()


# --- the file -------------------------------------------------------------------------------------

_Written = tuple[Entry, bytes]
"""An entry, and the hash of its content."""


def _write_entries(
    source: BackupSource, copy: Path, key: bytes, writer: BackupWriter, work: _Work
) -> tuple[Sequence[_Written], int]:
    """And how many chunks were left out."""
    written = [
        _write(writer, EntryKind.DATABASE_KEY, KEY_BYTES, iter((key,)), work),
        _write(writer, EntryKind.DATABASE, copy.stat().st_size, _pieces(copy), work),
    ]
    for kind, path in ((EntryKind.SETTINGS, source.settings), (EntryKind.WINDOW, source.window)):
        if path.is_file() and path.stat().st_size <= MAX_SMALL_BYTES:
            data = path.read_bytes()
            written.append(_write(writer, kind, len(data), iter((data,)), work))
    left_out = 0
    for path, size in _chunks(source):
        try:
            sealed = _chunk_in(path, size)
        except FileNotFoundError:  # Its file was deleted meanwhile.
            continue
        if sealed:
            name, pieces = hashlib.sha256(sealed).digest(), iter((sealed,))
            written.append(_write(writer, EntryKind.CHUNK, len(sealed), pieces, work, name=name))
        else:
            left_out += 1
    return written, left_out


def _chunk_in(path: Path, size: int) -> bytes:
    """Empty if it is damaged or cannot be read.  Raises FileNotFoundError."""
    if not 0 < size <= MAX_SEALED_BYTES:
        return b""
    try:
        sealed = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError:
        return b""
    return sealed if name_of(path) == hashlib.sha256(sealed).digest() else b""


def _write(  # noqa: PLR0913 - what an entry is, and where it goes
    writer: BackupWriter,
    kind: EntryKind,
    size: int,
    pieces: Iterator[bytes],
    work: _Work,
    *,
    name: bytes = b"",
) -> _Written:
    entry, hashed, left = Entry(kind=kind, size=size, name=name), hashlib.sha256(), size
    writer.begin(entry)
    for piece in pieces:
        writer.add(piece)
        hashed.update(piece)
        left -= len(piece)
        work.did(len(piece))
    if left:
        raise StorageError("A file changed while it was copied.", StorageFault.DISK_ERROR)
    return entry, hashed.digest()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            yield piece


def _chunks(source: BackupSource) -> Sequence[tuple[Path, int]]:
    """With their sizes; also those that may be deleted at this moment."""
    found: list[tuple[Path, int]] = []
    try:
        entries = os.scandir(source.directory.files)
    except FileNotFoundError:
        return ()
    with entries:
        for entry in entries:
            path = Path(entry.path)
            if name_of(path) is not None:
                with suppress(FileNotFoundError):  # This one is gone, the others are not.
                    found.append((path, entry.stat().st_size))
    return sorted(found)


# --- the check ------------------------------------------------------------------------------------


def _check(path: Path, secret: BackupSecret, written: Sequence[_Written], work: _Work) -> None:
    """All of it opens and is what was written; the database in it can be read."""
    with BackupReader(path) as reader:
        entries = reader.entries(secret)
        for entry, expected in written:
            if entries.next() != entry or _hash_of(entries, entry, work) != expected:
                raise damaged("it is not what was written")
        if entries.next().size != len(written):
            raise damaged("it is not what was written")


def _hash_of(entries: EntryReader, entry: Entry, work: _Work) -> bytes:
    hashed = hashlib.sha256()
    for piece in entries.content(entry):
        hashed.update(piece)
        work.did(len(piece))
    return hashed.digest()
