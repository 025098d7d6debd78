"""Writes a file of a message to where the user wants it: as a whole or not at all.

One that came from somebody else says so (``engine.persistence.origin_mark``) before it has a name
under which another program could open it.
"""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from engine.core.errors import StorageError, StorageFault
from engine.persistence.origin_mark import mark_as_received


def write_whole(
    path: Path, pieces: Iterable[bytes], *, is_received: bool, mode: int = 0o666
) -> None:
    """Write the file, replacing one that is there.

    Raises StorageError with ``FILE_NOT_WRITTEN`` and the system's reason.
    """
    # Nobody can have put a link there, and no two writers have the same.
    fresh = path.with_name(f".causerie-{secrets.token_hex(16)}.part")

    def opener(file: str, flags: int) -> int:
        return os.open(file, flags, mode)

    try:
        with open(fresh, "xb", opener=opener) as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        if is_received:
            mark_as_received(fresh)
        fresh.replace(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(reason, StorageFault.FILE_NOT_WRITTEN, reason) from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
