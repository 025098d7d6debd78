"""Makes a profile of a backup, in a place where there is none yet.

Everything is first taken out into a directory of its own in the profile's.  Only when the last byte
of the file has proved right do the parts go to their places, the database last and in one step:
whenever the process is killed there is either no profile yet, or all of it.

The restored profile numbers its messages under a fresh instance id, and has a network key of its
own: what it had written after the backup, or what another device writes that was restored from the
same file, contradicts nothing.  Its database gets the key of the place, not of the backup.
"""

import hashlib
import secrets
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.codec.backup import EntryReader, damaged
from engine.core.backup import BackupHeader, Entry, EntryKind
from engine.core.errors import BackupError, BackupFlaw
from engine.core.ids import UnixMs
from engine.crypto.backup import BackupSecret, derive_secret
from engine.persistence.backup import copy_pages, identity_in, page_bytes_of, stopped
from engine.persistence.backup_file import BackupReader, not_written
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.chunk_files import write_durably
from engine.persistence.connection import (
    SIDE_FILES,
    bring_into_one_file,
    connect,
    create_private,
    sync_file,
    transaction,
)
from engine.persistence.errors import PassphraseNeededError, translated
from engine.persistence.key import DatabaseKey, KeyPlace, obtain_database_key
from engine.persistence.profile_directory import ProfileDirectory, sync_directory
from engine.persistence.rolling_backups import STATE_KEY
from engine.persistence.schema import SCHEMA_VERSION, check_version

_SYNCING_THREADS: Final = 8
_ID_BYTES: Final = 16
_NETWORK_KEY_BYTES: Final = 32
_OF_THE_DEVICE: Final = ("network.port", "clock.judged", "clock.offset", STATE_KEY)
"""Values that hold for the device on which they were found, and not for another."""


class RestorePlace(Struct, frozen=True, kw_only=True):
    """Where the profile goes."""

    directory: ProfileDirectory
    settings: Path
    """If there are any, they stay, and the backup's go beside them."""
    default_settings: bytes = b""
    """Settings with these bytes count as none: nobody chose them."""
    window: Path
    force_key_file: bool = False
    wants_key_file: Callable[[Path], bool] = lambda _settings: False
    """Whether these settings forbid to ask the keyring.  They go beside if the key is there."""


class Restored(Struct, frozen=True, kw_only=True):
    created_ms: UnixMs
    """When the backup was made."""
    files: int
    """Chunks of files."""
    key_place: KeyPlace
    """What leads to the key of the new profile, whatever led to that of the old one."""
    settings_beside: Path | None = None
    """Where the backup's settings are, if others were in their place."""


def restore_backup(
    file: Path, passphrase: str, place: RestorePlace, progress: Progress = unheard
) -> Restored:
    """The caller holds the profile's lock.

    Raises BackupError and StorageError; no profile is there then.
    """
    with BackupReader(file) as reader:
        header = reader.header()
        require_known_schema(header)
        require_no_profile(place)
        secret = derive_secret(passphrase, salt=header.salt, cost=header.cost)
        work = _Work(reader, progress)
        taken = _Taken(place.directory.restoring)
        try:
            forget_restoring(place.directory)
            taken.directory.mkdir(mode=0o700)
            _take_out(reader, secret, taken, work)
            key = obtain_database_key(place.directory, force_key_file=place.force_key_file)
            _make_database(taken, key.key, work)
            work.tell()
            beside = _put_in_place(taken, place, key)
        except OSError as error:
            raise not_written(error) from error
        finally:
            forget_restoring(place.directory)
    progress(1.0)
    return Restored(
        created_ms=header.created_ms,
        files=taken.files,
        key_place=key.place,
        settings_beside=beside,
    )


def forget_restoring(directory: ProfileDirectory) -> None:
    """Throw away what an attempt left that was killed."""
    shutil.rmtree(directory.restoring, ignore_errors=True)


def require_known_schema(header: BackupHeader) -> None:
    if header.schema_version > SCHEMA_VERSION:
        raise BackupError(
            BackupFlaw.TOO_NEW,
            f"The backup was made by a newer version of Causerie ({header.app_version}).",
            header.app_version,
        )


def require_no_profile(place: RestorePlace) -> None:
    """A database that the very first start made is none: nobody has a name in it yet.

    Raises BackupError, and StorageError if what is there cannot be opened.
    """
    directory = place.directory
    if not directory.has_database():
        return
    there = BackupError(
        BackupFlaw.PROFILE_THERE,
        f"There is a profile in {directory.path} already; nothing was changed. Give a new name"
        " (--profile NAME).",
    )
    try:
        key = obtain_database_key(directory, force_key_file=place.force_key_file)
    except PassphraseNeededError as error:  # Only somebody can have set it.
        raise there from error
    if identity_in(directory.database, key.key) is not None:
        raise there


class _Work:
    def __init__(self, reader: BackupReader, progress: Progress) -> None:
        self._reader = reader
        self._progress = progress
        self._copied = 0
        self._database_bytes = reader.size
        self.tell()

    def expect(self, database_bytes: int) -> None:
        """Known once it begins to come out of the file."""
        self._database_bytes = database_bytes

    def did(self, copied: int) -> None:
        """So many bytes of the database."""
        self._copied += copied
        self.tell()

    def tell(self) -> None:
        """Raises BackupError if the user stopped it."""
        done = self._reader.read_bytes + self._copied
        if not self._progress(min(done / (self._reader.size + self._database_bytes), 0.999)):
            raise stopped()


class _Taken:
    """What came out of the backup."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sealed_database = directory / "sealed.db"
        self.database = directory / "causerie.db"
        self.settings = directory / "settings.toml"
        self.window = directory / "window.json"
        self.chunks = directory / "blobs"
        self.database_key = b""
        self.files = 0


def _take_out(reader: BackupReader, secret: BackupSecret, taken: _Taken, work: _Work) -> None:
    """All of the file, to its end."""
    entries = reader.entries(secret)
    taken.chunks.mkdir(mode=0o700)
    seen: list[EntryKind] = []
    while (entry := entries.next()).kind is not EntryKind.END:
        if entry.kind in seen and entry.kind is not EntryKind.CHUNK:
            raise damaged("an entry is there twice")
        seen.append(entry.kind)
        _take_entry(entry, entries, taken, work)
    if entry.size != len(seen) or EntryKind.DATABASE not in seen:
        raise damaged("entries are missing")


def _take_entry(entry: Entry, entries: EntryReader, taken: _Taken, work: _Work) -> None:
    match entry.kind:
        case EntryKind.DATABASE_KEY:
            taken.database_key = entries.whole(entry)
        case EntryKind.DATABASE:
            work.expect(entry.size)
            _write_pieces(taken.sealed_database, entries.content(entry), work)
        case EntryKind.SETTINGS:
            write_durably(taken.settings, entries.whole(entry))
        case EntryKind.WINDOW:
            write_durably(taken.window, entries.whole(entry))
        case EntryKind.CHUNK:
            sealed = entries.whole(entry)
            if hashlib.sha256(sealed).digest() != entry.name:
                raise damaged("a chunk of a file")
            _write_pieces(taken.chunks / entry.name.hex(), iter((sealed,)), work)
            taken.files += 1
        case EntryKind.END:
            raise AssertionError


def _write_pieces(path: Path, pieces: Iterator[bytes], work: _Work) -> None:
    """Not forced to the disk yet: thousands of files would take long, one by one."""
    create_private(path)
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
            work.tell()


# --- the database ---------------------------------------------------------------------------------


def _make_database(taken: _Taken, key: bytes, work: _Work) -> None:
    sealed = connect(str(taken.sealed_database), taken.database_key)
    try:
        with translated("restore the database"):
            check_version(sealed)
            page_bytes = page_bytes_of(sealed)
            copy_pages(sealed, taken.database, key, lambda pages: work.did(pages * page_bytes))
    finally:
        sealed.close()
    taken.sealed_database.unlink()
    _begin_anew(taken.database, key)
    sync_file(taken.database)


def _begin_anew(database: Path, key: bytes) -> None:
    """As the same person on a device of its own."""
    connection = connect(str(database), key)
    try:
        with translated("restore the database"), transaction(connection):
            changed = connection.execute(
                "UPDATE profile SET instance_id = ?, network_key = ?",
                (secrets.token_bytes(_ID_BYTES), secrets.token_bytes(_NETWORK_KEY_BYTES)),
            ).rowcount
            if not changed:
                raise damaged("there is no profile in it")
            connection.execute("DELETE FROM own_sequence")
            for name in _OF_THE_DEVICE:
                connection.execute("DELETE FROM value WHERE key = ?", (name,))
    finally:
        connection.close()


# --- the place ------------------------------------------------------------------------------------


def _put_in_place(taken: _Taken, place: RestorePlace, key: DatabaseKey) -> Path | None:
    """Where the settings went, if not to their place."""
    directory = place.directory
    directory.files.mkdir(mode=0o700, exist_ok=True)
    chunks = list(taken.chunks.iterdir())
    with ThreadPoolExecutor(_SYNCING_THREADS) as threads:  # A disk syncs many at once.
        list(threads.map(sync_file, chunks))
    for chunk in chunks:
        chunk.replace(directory.files / chunk.name)
    sync_directory(directory.files)
    beside = _put_settings(taken.settings, place, key) if taken.settings.exists() else None
    if taken.window.exists():
        _put_file(taken.window, place.window)
    if directory.has_database():
        bring_into_one_file(directory.database, key.key)
    for end in SIDE_FILES:
        directory.database.with_name(f"{directory.database.name}{end}").unlink(missing_ok=True)
    taken.database.replace(directory.database)
    sync_directory(directory.path)
    return beside


def _put_settings(taken: Path, place: RestorePlace, key: DatabaseKey) -> Path | None:
    target = place.settings
    chosen = target.exists() and (
        target.read_bytes() not in (place.default_settings, taken.read_bytes())
    )
    if chosen or (key.place is KeyPlace.SYSTEM_KEYRING and place.wants_key_file(taken)):
        target = target.with_name(f"{target.stem}.from-backup{target.suffix}")
    _put_file(taken, target)
    return None if target == place.settings else target


def _put_file(taken: Path, target: Path) -> None:
    """As a whole; it may go to another disk."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = target.with_name(f"{target.name}.new")
    fresh.unlink(missing_ok=True)
    write_durably(fresh, taken.read_bytes())
    fresh.replace(target)
