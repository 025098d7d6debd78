"""The archive for asyncio: one thread writes, another reads.

Each thread works in order, and neither waits for the other, so queries never delay archiving.  A
page has a deadline, which includes waiting for earlier pages.  Topics queried by name are recorded
at the next write.  The archive gets its clock from here.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

from engine.core.waku_archive import (
    Appended,
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
    Source,
)
from engine.persistence.archive import Retention, SqliteArchive
from engine.persistence.archive_pages import ArchiveReader
from engine.persistence.storage_thread import StorageThread

PAGE_DEADLINE_S: Final = 2.0
MAX_NOTED_TOPICS: Final = 1_000
"""Queried since the last write; others are recorded when they are queried again."""


class ThreadedArchive:
    """Create it with ``open``.  Every method may raise StorageError."""

    def __init__(  # noqa: PLR0913, PLR0917 - see ``open``
        self,
        archive: SqliteArchive,
        thread: StorageThread,
        reader: ArchiveReader,
        reading: StorageThread,
        clock_ns: Callable[[], int],
        clock_s: Callable[[], float],
    ) -> None:
        self._archive = archive
        self._thread = thread
        self._reader = reader
        self._reading = reading
        self._clock_ns = clock_ns
        self._clock_s = clock_s
        self._asked_for: set[tuple[int, Source]] = set()

    @classmethod
    async def open(
        cls,
        path: Path,
        retention: Retention | None = None,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> Self:
        """``clock_s`` is for deadlines, and also called on the reading thread."""
        thread, reading = StorageThread(), StorageThread()
        try:
            archive = await thread.run(SqliteArchive.open, path, retention)
            try:
                reader = await reading.run(ArchiveReader.open, path, clock_s=clock_s)
            except BaseException:
                await thread.close(archive.close)
                raise
        except BaseException:
            await thread.close()
            await reading.close()
            raise
        return cls(archive, thread, reader, reading, clock_ns, clock_s)

    async def append(self, messages: Sequence[ArchivedMessage], /) -> Appended:
        await self._note_asked_for()
        return await self._thread.run(self._archive.append, messages, now_ns=self._clock_ns())

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        """Query one page.  Raises CursorUnknownError, ArchiveSlowError."""
        deadline_s = self._clock_s() + PAGE_DEADLINE_S
        found = await self._reading.run(self._reader.query, query, deadline_s=deadline_s)
        if len(self._asked_for) < MAX_NOTED_TOPICS:
            self._asked_for |= {(topic, query.asker) for topic in found.topics}
        return found.page

    async def retain(self) -> int:
        await self._thread.run(self._archive.age_topics, now_ns=self._clock_ns())
        return await self._thread.run(self._archive.retain, now_ns=self._clock_ns())

    async def statistics(self) -> ArchiveStatistics:
        return await self._thread.run(self._archive.statistics)

    async def close(self) -> None:
        await self._reading.close(self._reader.close)
        await self._thread.close(self._archive.close)

    async def _note_asked_for(self) -> None:
        if self._asked_for:
            asked_for, self._asked_for = self._asked_for, set()
            await self._thread.run(self._archive.ask_for, asked_for)
