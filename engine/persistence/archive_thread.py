"""The archive as asyncio sees it: every call runs on one thread of its own, in order.

It gives the archive its clock.  Refuses to know SQL and streams.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from engine.core.waku_archive import (
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
)
from engine.persistence.archive import Retention, SqliteArchive
from engine.persistence.storage_thread import StorageThread


class ThreadedArchive:
    """Made by ``open``.  Every method may raise StorageError."""

    def __init__(
        self, archive: SqliteArchive, thread: StorageThread, clock_ns: Callable[[], int]
    ) -> None:
        self._archive = archive
        self._thread = thread
        self._clock_ns = clock_ns

    @classmethod
    async def open(
        cls,
        path: Path,
        retention: Retention | None = None,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> Self:
        thread = StorageThread()
        try:
            archive = await thread.run(SqliteArchive.open, path, retention)
        except BaseException:
            await thread.close()
            raise
        return cls(archive, thread, clock_ns)

    async def append(self, messages: Sequence[ArchivedMessage], /) -> int:
        return await self._thread.run(self._archive.append, messages, now_ns=self._clock_ns())

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        """Raises CursorUnknownError."""
        return await self._thread.run(self._archive.query, query)

    async def retain(self) -> int:
        return await self._thread.run(self._archive.retain, now_ns=self._clock_ns())

    async def statistics(self) -> ArchiveStatistics:
        return await self._thread.run(self._archive.statistics)

    async def close(self) -> None:
        await self._thread.close(self._archive.close)
