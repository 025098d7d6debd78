"""Keeps on disk how far each window has come.

New and finished windows are saved immediately, progress in between at most once a second.  Progress
is saved only after the messages it covers: the caller makes these durable first.  A crash costs
about a second of pages, which are fetched again.
"""

from collections.abc import Callable, Sequence
from typing import Final

from engine.core.history.progress import HistoryWrite, Purpose, SaveProgress
from engine.core.history.saved import HistoryKept, KeptWrite, SaveReach, with_write
from engine.core.ids import UnixMs
from engine.runtime.history.progress_tables import ProgressTable

SAVE_EVERY_MS: Final = 1_000


class ProgressStore:
    """Every coroutine may raise StorageError."""

    def __init__(self, table: ProgressTable, now_ms: Callable[[], UnixMs]) -> None:
        self._table = table
        self._now_ms = now_ms
        self._unsaved: dict[Purpose, SaveProgress] = {}
        self._saved_ms = 0
        self.kept = HistoryKept()

    @property
    def has_unsaved(self) -> bool:
        return bool(self._unsaved)

    async def load(self) -> None:
        self.kept = await self._table.load()

    def forget(self) -> None:
        """Discard unsaved progress; its pages are fetched again."""
        self._unsaved.clear()

    async def keep(self, writes: Sequence[HistoryWrite]) -> None:
        """Save new and dropped windows now, and progress when it is due."""
        now: list[KeptWrite] = []
        kept = {progress.purpose for progress in self.kept.progress}
        for write in writes:
            if isinstance(write, SaveProgress):
                self._unsaved[write.progress.purpose] = write
                if write.progress.purpose not in kept:
                    now.append(self._unsaved.pop(write.progress.purpose))
            else:
                self._unsaved.pop(write.purpose, None)
                now.append(write)
        if now:
            await self.save(now)
        await self.save_due()

    async def save_due(self) -> None:
        now_ms = self._now_ms()
        if self._unsaved and not 0 <= now_ms - self._saved_ms < SAVE_EVERY_MS:
            unsaved, self._unsaved = list(self._unsaved.values()), {}
            await self.save(unsaved)

    async def save(self, writes: Sequence[KeptWrite]) -> None:
        await self._table.save(writes)
        self._saved_ms = self._now_ms()
        for write in writes:
            self.kept = with_write(self.kept, write)

    async def reach(self, since_ms: UnixMs) -> None:
        """Record how far back the user or a session requested messages."""
        known = self.kept.since_ms
        if known is None or since_ms < known:
            await self.save([SaveReach(since_ms=since_ms)])
