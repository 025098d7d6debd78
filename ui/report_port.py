"""What the window needs in order to make a report of a problem; ``chat_app.bug_report`` has it."""

from pathlib import Path
from typing import Protocol

from msgspec import Struct


class Report(Struct, frozen=True, kw_only=True):
    text: str
    """All of the file."""
    events: int
    """Recorded deliveries in it."""


class ReportPort(Protocol):
    @property
    def records(self) -> bool:
        """Whether deliveries are recorded now."""

    async def make(self) -> Report: ...

    async def save(self, report: Report, folder: Path) -> Path:
        """Raises StorageError."""
