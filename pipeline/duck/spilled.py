"""Where DuckDB puts what does not fit into memory: a directory of one process, gone when that ends.

A process that is killed cannot remove its own.  So each holds a lock in it, which the system lets
go of, and whoever starts next removes those that nobody holds.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "causerie-spilled-"
_LOCK: Final = "lock"


class Spilled:
    def __init__(self) -> None:
        """Raises OSError."""
        _clear()
        made = Path(tempfile.mkdtemp(prefix="causerie-"))
        self._lock = (made / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # It gets its name when it is locked: nobody may take it for one that was left.
        self.place = made.rename(made.with_name(f"{PREFIX}{made.name}"))

    def close(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        self._lock.close()


def _clear() -> None:
    """What was left by processes of ours that were killed."""
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if place.is_symlink() or place.stat().st_uid != os.getuid():
                continue
            with (place / _LOCK).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, ignore_errors=True)
        except OSError:
            continue  # It is in use, or another process is removing it.
