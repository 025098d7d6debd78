"""What the window asks of the outside about the recording of deliveries.

``chat_app.delivery_recording`` answers: whether deliveries are recorded now, where to and under
which key; it switches that, and exports what was recorded.
"""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from engine.core.errors import ChatError
from ui.backup_port import Follow, GoesOn


class RecordingState(Struct, frozen=True, kw_only=True):
    records: bool
    """Now."""
    directory: str
    """Where the records go, or would."""
    key: str
    """Under which they are; "" while there is none."""
    lasts: bool = False
    """The command line asked for it, so it cannot be switched off in this run."""


class LogFormat(StrEnum):
    PARQUET = "parquet"
    JSON_LINES = "jsonl"


class ExportWish(Struct, frozen=True, kw_only=True):
    folder: Path
    """In which a new one is made."""
    log_format: LogFormat
    since_ms: int | None
    """None: from the beginning."""


class UnreadableLog(Struct, frozen=True, kw_only=True):
    name: str
    reason: str
    """As ``engine.delivery.sqlite_log.DeliveryLogError`` has it."""


class ExportedLog(Struct, frozen=True, kw_only=True):
    """``folder`` None: nothing was recorded, or nothing of it can be read."""

    folder: Path | None
    events: int = 0
    logs: int = 0
    bad_rows: int = 0
    """They break the contract, and were left out."""
    unreadable: tuple[UnreadableLog, ...] = ()


class ExportStoppedError(ChatError):
    """As was asked for; nothing is left behind."""


class RecordingPort(Protocol):
    def state(self) -> RecordingState: ...

    def formats(self) -> tuple[LogFormat, ...]:
        """Those that this installation can write."""

    async def switch(self, *, on: bool) -> None:
        """From now on.  Raises ChatError; then nothing changes."""

    def listen(self, listener: Callable[[], None], /) -> Callable[[], None]:
        """It is called when the state changed, until it is called off."""

    async def export(self, wish: ExportWish, follow: Follow, goes_on: GoesOn) -> ExportedLog:
        """On a thread.  Raises ChatError, and nothing is left behind then."""
