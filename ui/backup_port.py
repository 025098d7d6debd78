"""What the window asks of the outside to make a backup, or to restore one.

Both take long and run on a thread of their own: ``follow`` is told the share that is done, on the
loop; ``goes_on`` is asked on that thread.  They raise ChatError.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

Follow = Callable[[float], None]
GoesOn = Callable[[], bool]


class BackupDone(Struct, frozen=True, kw_only=True):
    """It was read again and is whole."""

    path: Path
    size: int
    left_out: int
    """Parts of files that are damaged here, and so are not in it."""


class BackupPort(Protocol):
    def suggestion(self) -> Path:
        """A name for the next file, in a directory that is there."""

    async def make(
        self, path: Path, passphrase: str, follow: Follow, goes_on: GoesOn
    ) -> BackupDone: ...


class BackupLooks(Struct, frozen=True, kw_only=True):
    """What a file says of itself without its passphrase."""

    created_ms: int
    size: int


class RestoreDone(Struct, frozen=True, kw_only=True):
    settings_beside: str
    """Where the backup's settings are, if others were in their place; "" otherwise."""


class RestorePort(Protocol):
    def look_at(self, path: Path) -> BackupLooks:
        """Raises ChatError if it is no backup that can be restored here."""

    async def restore(
        self, path: Path, passphrase: str, follow: Follow, goes_on: GoesOn
    ) -> RestoreDone: ...
