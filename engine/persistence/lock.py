"""One process per profile: an operating system lock that ends with its holder.

The kernel releases ``flock`` (``msvcrt.locking`` on Windows) however the process ends, so a ``kill
-9`` leaves no stale lock, and the file's existence means nothing.  The file contains the holder's
process id only so that a second process can name it.
"""

import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Self

from engine.core.errors import StorageError, StorageFault
from engine.persistence.errors import ProfileInUseError
from engine.persistence.profile_directory import ProfileDirectory

if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE = 1 << 20
    """Windows locks are mandatory: lock a byte beyond the process id, so that it stays readable."""

    def _try_lock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(directory: ProfileDirectory) -> bool:
    """Whether a process has the profile open.  Writes nothing, so it can be asked anywhere."""
    try:
        descriptor = os.open(directory.lock_file, os.O_RDONLY)
    except OSError:
        return False
    try:
        _try_lock(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class ProfileLock:
    """Held from construction until ``release`` or the end of the process.

    Raises ProfileInUseError if another process holds it, StorageError if it cannot be tried.
    """

    def __init__(self, directory: ProfileDirectory) -> None:
        try:
            descriptor = os.open(directory.lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StorageError(
                f"Cannot lock {directory.lock_file}: {reason}.",
                StorageFault.UNUSABLE,
                f"{directory.lock_file}: {reason}",
            ) from error
        try:
            _try_lock(descriptor)
        except OSError as error:
            pid = _read_pid(descriptor)
            os.close(descriptor)
            raise ProfileInUseError(directory.path.name, pid) from error
        self._descriptor: int | None = descriptor
        # Only the lock matters; on a full disk it has no process id in it.
        with contextlib.suppress(OSError):
            _write_pid(descriptor)

    def release(self) -> None:
        """Idempotent.  The file stays: removing it would let two processes lock two files."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()


@contextlib.contextmanager
def held_file(path: Path) -> Generator[None]:
    """Hold the lock on one file, such as that of backups, and on nothing else of the profile.

    Raises StorageError if another process holds it.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(f"Cannot lock {path}: {reason}.", StorageFault.DISK_ERROR) from error
    try:
        try:
            _try_lock(descriptor)
        except OSError as error:
            text = f"Another process holds {path}."
            raise StorageError(text, StorageFault.LOCKED) from error
        yield
    finally:
        os.close(descriptor)


def _write_pid(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, b"%d\n" % os.getpid())


def _read_pid(descriptor: int) -> int | None:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return int(os.read(descriptor, 20))
    except (OSError, ValueError):
        return None
