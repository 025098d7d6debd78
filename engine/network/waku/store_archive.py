"""What a Store takes in: relayed messages wait here for the disk, in batches, in order.

The relay hands over messages on the loop.  The queue is bounded in messages and bytes; above half
of that whoever hands over waits a moment, and what finds it full is dropped and counted.  A batch
that the disk refused stays and is tried again, and ``failing`` says so: an archive that loses
messages while every signal is green is the worst kind.  A query first waits for what was taken in
before it, so nobody is told that a message is missing which this node has just accepted.

Where one message after the other is refused for its time, it is likelier that this node's own clock
is wrong: ``clock_suspect``.
"""

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from engine.core.counters import Counters
from engine.core.errors import StorageError
from engine.core.types import PubsubTopic
from engine.core.waku import WakuMessage
from engine.core.waku_archive import (
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
    Ineligible,
    ineligibility,
)
from engine.network.waku.message_hash import message_hash

_LOGGER = logging.getLogger(__name__)
_ENTRY_OVERHEAD_BYTES = 500
SUSPICIOUS_REFUSALS = 20
"""In a row, for their time."""


class Archive(Protocol):
    """Every method may raise StorageError."""

    async def append(self, messages: Sequence[ArchivedMessage], /) -> int:
        """All or nothing, durable on return; how many were new."""

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        """Raises CursorUnknownError."""

    async def retain(self) -> int:
        """Remove a slice of what is too old or too much; 0 once nothing is."""

    async def statistics(self) -> ArchiveStatistics: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeSettings:
    max_queued: int = 20_000
    max_queued_bytes: int = 32 * 1024 * 1024
    batch: int = 500
    retry_s: float = 2.0
    retain_every_s: float = 60.0
    patience_s: float = 0.5
    """How long others wait for a disk that is behind."""


class ArchiveIntake:
    """The archive's only writer.  Made new for every start; the archive outlives it."""

    def __init__(
        self,
        archive: Archive,
        settings: IntakeSettings,
        *,
        now_ns: Callable[[], int],
        counters: Counters,
    ) -> None:
        self._archive = archive
        self._settings = settings
        self._now_ns = now_ns
        self._counters = counters
        self._queue: deque[ArchivedMessage] = deque()
        self._queued_bytes = 0
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.failing = False
        """The disk refused the last batch."""
        self._refused_for_time = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="archive intake")

    async def stop(self) -> None:
        """Writes what is queued, if the disk lets it."""
        if self._task is not None:
            async with self._writing:  # Not in the middle of a batch.
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._write_all()

    def offer(self, pubsub_topic: PubsubTopic, message: WakuMessage, data: bytes) -> bool:
        """Whether the message will be archived."""
        why_not = ineligibility(message, now_ns=self._now_ns())
        self._judge_clock(why_not)
        if why_not is not None:
            self._counters.add(f"store.refused_{why_not}")
            return False
        size = len(data) + _ENTRY_OVERHEAD_BYTES
        settings = self._settings
        if (
            len(self._queue) >= settings.max_queued
            or self._queued_bytes + size > settings.max_queued_bytes
        ):
            self._counters.add("store.dropped_queue_full")
            return False
        digest = hashlib.sha256(message.content_topic.encode() + message.payload).digest()
        self._queue.append(
            ArchivedMessage(
                message_hash=message_hash(pubsub_topic, message),
                pubsub_topic=pubsub_topic,
                content_topic=message.content_topic,
                timestamp_ns=message.timestamp_ns or 0,
                digest=digest,
                data=data,
            )
        )
        self._queued_bytes += size
        self._filled.set()
        if not self._below_half():
            self._room.clear()
        return True

    @property
    def clock_suspect(self) -> bool:
        return self._refused_for_time >= SUSPICIOUS_REFUSALS

    async def wait_for_room(self) -> None:
        """A moment's wait while the disk is behind; none for a disk that refuses."""
        if self.failing or self._room.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.patience_s):
                await self._room.wait()

    async def query(self, query: ArchiveQuery) -> ArchivePage:
        """Raises StorageError, CursorUnknownError."""
        await self._write_all()
        return await self._archive.query(query)

    # --- inside ---------------------------------------------------------------------------------

    def _judge_clock(self, why_not: Ineligible | None) -> None:
        if why_not is None:
            self._refused_for_time = 0
        elif why_not is Ineligible.CLOCK:
            self._refused_for_time += 1
            if self._refused_for_time == SUSPICIOUS_REFUSALS:
                _LOGGER.warning(
                    "the last %d messages were not archived, for their times are more than 20 s "
                    "from this computer's clock: check it",
                    SUSPICIOUS_REFUSALS,
                )

    def _below_half(self) -> bool:
        settings = self._settings
        return (
            len(self._queue) < settings.max_queued // 2
            and self._queued_bytes < settings.max_queued_bytes // 2
        )

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        retain_s = loop.time()
        while True:
            if loop.time() >= retain_s:
                await self._retain()
                retain_s = loop.time() + self._settings.retain_every_s
            try:
                async with asyncio.timeout_at(retain_s):
                    await self._filled.wait()
            except TimeoutError:
                continue
            if not await self._write_all():
                await asyncio.sleep(self._settings.retry_s)

    async def _write_all(self) -> bool:
        """Everything that is queued now.  False if the disk refused; nothing is lost then."""
        async with self._writing:
            while self._queue:
                batch = [
                    self._queue.popleft()
                    for _ in range(min(self._settings.batch, len(self._queue)))
                ]
                if not await self._write(batch):
                    return False
            self._filled.clear()
        return True

    async def _write(self, batch: list[ArchivedMessage]) -> bool:
        try:
            added = await self._archive.append(batch)
        except StorageError as error:
            self._queue.extendleft(reversed(batch))
            self._counters.add("store.archive_failed")
            if not self.failing:
                _LOGGER.error("the archive takes no messages: %s", error)  # noqa: TRY400
            self.failing = True
            return False
        except asyncio.CancelledError:
            self._queue.extendleft(reversed(batch))  # Perhaps written: a second time is no harm.
            raise
        self.failing = False
        self._queued_bytes -= sum(len(message.data) + _ENTRY_OVERHEAD_BYTES for message in batch)
        if self._below_half():
            self._room.set()
        self._counters.add("store.archived", added)
        self._counters.add("store.duplicates", len(batch) - added)
        return True

    async def _retain(self) -> None:
        try:
            while removed := await self._archive.retain():
                self._counters.add("store.removed", removed)
        except StorageError:
            self._counters.add("store.retention_failed")
