"""What the window asks of the outside to make a backup, or to restore one.

Both take long and run on a thread of their own: ``follow`` is told the share that is done, on the
loop; ``goes_on`` is asked on that thread.  They raise ChatError.
"""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from engine.core.errors import ChatError

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


class DailyState(StrEnum):
    """Of the backups that are made by themselves, one a day."""

    OFF = "off"
    NEEDS_PASSPHRASE = "needs_passphrase"  # noqa: S105 - a state
    """There is a folder, but nobody gave a passphrase on this device."""
    ON = "on"
    WORKING = "working"
    FAILED = "failed"
    """The last one; it is not tried again for hours, or until the folder is back."""


class DailyBackups(Struct, frozen=True, kw_only=True):
    folder: str
    state: DailyState
    problem: ChatError | None
    share: float
    """Of the one that is being made."""
    last_good_ms: int
    """When the last backup of any kind was made; 0: none is known."""
    kept: int
    """In the folder."""
    is_late: bool
    """The last one is so old that the user wants to be reminded."""


class DailyPort(Protocol):
    def view(self) -> DailyBackups: ...

    def listen(self, listener: Callable[[], None], /) -> Callable[[], None]:
        """It is called when there is another view, until it is called off."""

    async def turn_on(self, folder: Path, passphrase: str) -> None:
        """Raises ChatError; then nothing has changed."""

    async def turn_off(self) -> None:
        """What was made stays.  Raises ChatError."""

    def try_again(self) -> None: ...


class BackupActs(Struct, frozen=True, kw_only=True):
    """What rows and buttons about backups lead to."""

    by_hand: Callable[[], None]
    daily: DailyPort | None
    set_up: Callable[[], None]
    turn_off: Callable[[], None]


class BackupLooks(Struct, frozen=True, kw_only=True):
    """What a file says of itself without its passphrase."""

    created_ms: int
    size: int


class RestoreDone(Struct, frozen=True, kw_only=True):
    key_storage: str = ""
    """Where its key is now, as ``IdentityView.key_storage``; "": not told."""
    settings_beside: str
    """Where the backup's settings are, if others were in their place; "" otherwise."""


class RestorePort(Protocol):
    def look_at(self, path: Path) -> BackupLooks:
        """Raises ChatError if it is no backup that can be restored here."""

    async def restore(
        self, path: Path, passphrase: str, follow: Follow, goes_on: GoesOn
    ) -> RestoreDone: ...
