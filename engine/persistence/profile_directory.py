"""The directory of one profile: private to its user, and where each file in it lies.

The directory has mode 0700, every file 0600.  SQLite creates files with mode 0644 and gives its
journal the mode of the database, so the process's umask is set to 077 before the first file is
made.  Other modules define the files' contents.
"""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.core.errors import StorageError, StorageFault

PRIVATE_UMASK: Final = 0o077
_DIRECTORY_MODE: Final = 0o700


class ProfileDirectory(Struct, frozen=True):
    """An existing, private, writable directory.  Create it with ``open_profile_directory``."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "causerie.db"

    @property
    def archive(self) -> Path:
        """Sealed messages kept for others."""
        return self.path / "archive.db"

    @property
    def files(self) -> Path:
        """Sealed chunks of files that travel apart from their messages."""
        return self.path / "blobs"

    @property
    def opened_files(self) -> Path:
        """Copies that other programs show; removed at the end."""
        return self.path / "opened"

    @property
    def kept_files(self) -> Path:
        """Sealed chunks of others' files, which a node keeps for them."""
        return self.path / "kept"

    @property
    def backup_copy(self) -> Path:
        """Of the database, while a backup is made."""
        return self.path / "causerie.db.backup"

    @property
    def backup_lock(self) -> Path:
        """Held while a backup is made."""
        return self.path / "backup.lock"

    @property
    def restoring(self) -> Path:
        """What comes out of a backup, until all of it is here."""
        return self.path / "restoring"

    @property
    def key_header(self) -> Path:
        """The ways that lead to the database's key."""
        return self.path / "database.keys"

    @property
    def key_header_copy(self) -> Path:
        """Should the header be damaged."""
        return self.path / "database.keys.copy"

    @property
    def place_secret(self) -> Path:
        """Opens the key header, where there is no system keyring or it is not wanted."""
        return self.path / "database.secret"

    @property
    def unlock_attempts(self) -> Path:
        """How many wrong passphrases were tried, and when."""
        return self.path / "unlock.attempts"

    @property
    def key_file(self) -> Path:
        """The key itself, of a profile that has no key header yet."""
        return self.path / "database.key"

    @property
    def keyring_account(self) -> Path:
        """Likewise the name of its entry in the system keyring, which is not secret."""
        return self.path / "keyring.account"

    @property
    def erasing(self) -> Path:
        """The mark of a profile that is being erased; nobody else's file has this name."""
        return self.path / "causerie.erasing"

    @property
    def beginning_anew(self) -> Path:
        """The mark of one whose earlier database was kept aside, until the new one is there."""
        return self.path / "causerie.beginning"

    @property
    def lock_file(self) -> Path:
        return self.path / "profile.lock"

    def has_database(self) -> bool:
        """False for an empty file, which a crash at the very first start leaves."""
        try:
            return self.database.stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unusable(self.path, error) from error


def open_profile_directory(path: Path) -> ProfileDirectory:
    """Create the directory if necessary, make it private, and set the process's umask to 077.

    Raises StorageError, naming the path, if it cannot be created or written to, or holds a
    profile that is being erased: whoever goes on with that would take what was put there, too.
    """
    require_not_being_erased(path)
    os.umask(PRIVATE_UMASK)
    try:
        path.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        if path.stat().st_mode & PRIVATE_UMASK:
            path.chmod(_DIRECTORY_MODE)
        _try_to_write(path)
    except OSError as error:
        raise _unusable(path, error) from error
    return ProfileDirectory(path)


def is_being_erased(path: Path) -> bool:
    return ProfileDirectory(path).erasing.is_file()


def require_not_being_erased(path: Path) -> None:
    """Raises StorageError."""
    if is_being_erased(path):
        raise StorageError(
            f"The profile in {path} is being erased; causerie erase finishes it.",
            StorageFault.NOT_ERASED,
            str(path),
        )


def write_private_file(path: Path, content: str | bytes) -> None:
    """Write to ``path``, 0600, durable and atomic: a crash leaves the old file or the new.

    Raises OSError.
    """
    data = content.encode("ascii") if isinstance(content, str) else content
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make a rename durable.  Windows has no such call and needs none on NTFS."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _try_to_write(path: Path) -> None:
    """Really write: modes and access(2) tell too little (read-only mounts, root, Windows)."""
    probe = path / f".writable-{os.getpid()}"
    os.close(os.open(probe, os.O_WRONLY | os.O_CREAT, 0o600))
    probe.unlink()


def _unusable(path: Path, error: OSError) -> StorageError:
    reason = error.strerror or type(error).__name__
    text = f"The profile directory {path} cannot be used: {reason}."
    return StorageError(text, StorageFault.UNUSABLE, f"{path}: {reason}")
