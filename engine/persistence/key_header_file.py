"""The key header on disk, in two copies: one is enough, so a damaged one costs nothing.

The first is written before the second, each in one step; the first that can be read counts.  A
header of a newer version counts wherever it is, and nothing is written over it.
"""

from pathlib import Path

from engine.codec.key_header import MAX_HEADER_BYTES, decode_key_header, encode_key_header
from engine.core.errors import StorageError, StorageFault
from engine.core.key_header import KeyHeader
from engine.persistence.profile_directory import ProfileDirectory, write_private_file


def read_key_header(directory: ProfileDirectory) -> KeyHeader | None:
    """None if there is none.  Raises StorageError if neither copy can be read."""
    first: StorageError | None = None
    for path in (directory.key_header, directory.key_header_copy):
        try:
            data = _read(path)
            if data is not None:
                return decode_key_header(data)
        except StorageError as error:
            if error.fault is StorageFault.KEYS_TOO_NEW:
                raise _unusable(directory, error) from error
            first = first or error
    if first is None:
        return None
    raise _unusable(directory, first) from first


def write_key_header(directory: ProfileDirectory, header: KeyHeader) -> None:
    """Raises StorageError; the old header still counts then, or the new one does."""
    data = encode_key_header(header)
    for path in (directory.key_header, directory.key_header_copy):
        try:
            write_private_file(path, data)
        except OSError as error:
            raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> StorageError:
    reason = error.strerror or type(error).__name__
    text = f"Cannot write {path}: {reason}."
    return StorageError(text, StorageFault.UNUSABLE, f"{path}: {reason}")


def set_header_aside(directory: ProfileDirectory) -> None:
    """A copy under a name that nothing has: its database may only have been moved away for a while.

    Raises StorageError.
    """
    number = 1
    while (aside := directory.path / f"{directory.key_header.name}.before-{number}").exists():
        number += 1
    for path in (directory.key_header, directory.key_header_copy):
        data = _read(path)
        if data is not None:
            try:
                write_private_file(aside, data)
            except OSError as error:
                raise _not_written(aside, error) from error
            return


def mend_copies(directory: ProfileDirectory, header: KeyHeader) -> bool:
    """Make both copies say what opened the database; whether one did not.  Raises StorageError."""
    data = encode_key_header(header)
    paths = (directory.key_header, directory.key_header_copy)
    if all(_holds(path, data) for path in paths):
        return False
    write_key_header(directory, header)
    return True


def _holds(path: Path, data: bytes) -> bool:
    try:
        return _read(path) == data
    except StorageError:
        return False


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_HEADER_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = f"Cannot read {path}: {reason}."
        raise StorageError(text, StorageFault.UNUSABLE, f"{path}: {reason}") from error


_REMEDIES = {
    StorageFault.KEYS_TOO_NEW: "Start the newer version; nothing was changed.",
    StorageFault.KEYS_FOREIGN: "Put the right file back, or restore a backup.",
    StorageFault.KEYS_DAMAGED: "Put a copy of the file back, or restore a backup.",
}


def _unusable(directory: ProfileDirectory, error: StorageError) -> StorageError:
    remedy = _REMEDIES.get(error.fault)
    if remedy is None:
        return error
    path = directory.key_header
    text = f"{error} ({path}, {directory.key_header_copy.name}) {remedy}"
    return StorageError(text, error.fault, str(path))
