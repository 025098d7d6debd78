"""Failures of a profile on disk, as codes for the window and in words for the command line.

Every failure of the driver becomes a ``StorageError`` or one of the subclasses below, chosen by
SQLite's result code. sqlcipher3 raises exception classes of its own, which no ``except
sqlite3.Error`` catches, so the translation lives in one place.  A text names paths and remedies; it
never contains a key, a statement or a message.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Final, TypeAlias

from sqlcipher3 import dbapi2

from engine.core.errors import StorageError, StorageFault


class DiskFullError(StorageError):
    """Nothing new was saved, and nothing saved before is lost.  Try again with more room."""


class CarryOverStoppedError(StorageError):
    """The user stopped the carrying over of an old profile, which is left untouched."""


class DatabaseUnreadableError(StorageError):
    """The key does not fit or bytes on disk were changed: page authentication failed."""


class DatabaseTooNewError(StorageError):
    """A newer version of the application wrote it; it was left untouched."""

    def __init__(self, text: str) -> None:
        super().__init__(text, StorageFault.TOO_NEW)


class DatabaseFromBeforeError(StorageError):
    """A test version from before the first schema wrote it; it was left untouched."""

    def __init__(self, text: str) -> None:
        super().__init__(text, StorageFault.TOO_OLD)


class KeyUnavailableError(StorageError):
    """A database exists, but its key is missing."""

    def __init__(self, text: str) -> None:
        super().__init__(text, StorageFault.NO_KEY)


class PassphraseNeededError(StorageError):
    """Nothing but its passphrase opens the profile, now or at all; ``reason``: why, if now."""

    def __init__(self, reason: str = "") -> None:
        text = f"The profile asks for its passphrase. {reason}".strip()
        super().__init__(text, StorageFault.PASSPHRASE_NEEDED, reason)


class WrongPassphraseError(StorageError):
    def __init__(self) -> None:
        super().__init__("This is not the passphrase.", StorageFault.WRONG_PASSPHRASE)


class TooSoonError(StorageError):
    """After wrong passphrases; nothing was tried."""

    def __init__(self, wait_ms: int) -> None:
        seconds = -(-wait_ms // 1_000)
        text = f"Too many wrong passphrases. Wait {seconds} s."
        super().__init__(text, StorageFault.TOO_SOON, f"{seconds}")
        self.wait_ms = wait_ms


class ProfileInUseError(StorageError):
    """Another process has the profile open."""

    def __init__(self, profile_name: str, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        text = f'The profile "{profile_name}" is in use by {holder}.'
        super().__init__(text, StorageFault.IN_USE, profile_name)
        self.profile_name = profile_name
        self.pid = pid


class HandedOverError(StorageError):
    """Its window was told what this start was for, and has not answered: it may be busy."""

    def __init__(self, profile_name: str) -> None:
        text = (
            f'The profile "{profile_name}" is open in a window that does not answer now. It was '
            "told of this start, and goes on with it once it can."
        )
        super().__init__(text, StorageFault.HANDED_OVER, profile_name)


_PRIMARY_CODE_MASK: Final = 0xFF


class _ResultCode(IntEnum):
    """SQLite's primary result codes that have words of their own (sqlite.org/rescode.html)."""

    PERM = 3
    BUSY = 5
    LOCKED = 6
    READONLY = 8
    IOERR = 10
    CORRUPT = 11
    FULL = 13
    CANTOPEN = 14
    CONSTRAINT = 19
    NOTADB = 26


_Failure: TypeAlias = tuple[type[StorageError], str, StorageFault]

_FAILURES: Final[Mapping[int, _Failure]] = {
    _ResultCode.FULL: (
        DiskFullError,
        "the disk is full; nothing was saved",
        StorageFault.DISK_FULL,
    ),
    _ResultCode.NOTADB: (
        DatabaseUnreadableError,
        "it cannot be decrypted: either its key is another one, or the file was damaged",
        StorageFault.NOT_DECRYPTED,
    ),
    _ResultCode.CORRUPT: (DatabaseUnreadableError, "the database is damaged", StorageFault.DAMAGED),
    _ResultCode.BUSY: (
        StorageError,
        "another process keeps the database locked",
        StorageFault.LOCKED,
    ),
    _ResultCode.LOCKED: (
        StorageError,
        "another process keeps the database locked",
        StorageFault.LOCKED,
    ),
    _ResultCode.PERM: (StorageError, "the database may only be read", StorageFault.READ_ONLY),
    _ResultCode.READONLY: (StorageError, "the database may only be read", StorageFault.READ_ONLY),
    _ResultCode.CANTOPEN: (
        StorageError,
        "the database file cannot be opened",
        StorageFault.NOT_OPENED,
    ),
    _ResultCode.IOERR: (StorageError, "the disk reported an error", StorageFault.DISK_ERROR),
    _ResultCode.CONSTRAINT: (
        StorageError,
        "it contradicts what is stored already",
        StorageFault.CONTRADICTION,
    ),
}


def storage_error(action: str, error: dbapi2.Error) -> StorageError:
    """The driver's ``error`` as ours; ``action`` completes "Cannot …"."""
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE_MASK
    unknown = f"the database refused ({type(error).__name__})"
    kind, reason, fault = _FAILURES.get(code, (StorageError, unknown, StorageFault.OTHER))
    return kind(f"Cannot {action}: {reason}.", fault)


@contextmanager
def translated(
    action: str, explain: Callable[[StorageError], StorageError] = lambda error: error
) -> Generator[None]:
    """Turn the driver's errors in a block into ``StorageError``; ``explain`` may know more."""
    try:
        yield
    except dbapi2.Error as error:
        raise explain(storage_error(action, error)) from error
    except (OverflowError, UnicodeEncodeError):
        # Raised by the driver before SQLite sees the value: an integer over 64 bits, a lone
        # surrogate.  The cause is suppressed, because its text would quote the value.
        text = f"Cannot {action}: a value does not fit the database."
        raise StorageError(text, StorageFault.NOT_STORABLE) from None
