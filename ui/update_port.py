"""What the window asks of whoever looks for news of releases: ``chat_app.update_notice``."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from engine.core.ids import UnixMs
from engine.core.releases import Release, ReleaseError


class UpdateState(StrEnum):
    OFF = "off"
    """Nobody is asked."""
    NOT_YET = "not_yet"
    CURRENT = "current"
    NEWER = "newer"
    """``Updates.release`` is newer than this program."""


class Updates(Struct, frozen=True, kw_only=True):
    state: UpdateState
    release: Release | None = None
    asked_ms: UnixMs | None = None
    problem: ReleaseError | None = None
    """Why the last answer was none."""
    is_dismissed: bool = False
    """The user wants to hear no more of this release."""


class UpdatePort(Protocol):
    @property
    def page(self) -> str:
        """The https address of the page of releases, for a browser."""

    def view(self) -> Updates: ...

    def listen(self, listener: Callable[[], None], /) -> Callable[[], None]:
        """Called after each change; returns what ends that."""

    async def dismiss(self) -> None:
        """Say no more of the release that is announced."""
