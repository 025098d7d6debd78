"""What a Store archives: relayed messages wait here for the disk and are written in batches.

The relay adds messages on the loop.  The queue is bounded in messages and bytes.  Above half of
that, the source with most messages waits a moment; when the queue is full, messages of that source
are dropped and counted.  A batch that the disk refuses stays and is retried, and ``failing`` is
set, so that an archive cannot lose messages unnoticed.

A query first waits until accepted messages of its topics are written, so that it never misses a
message this node already took.  It does not wait for other topics, so a flood delays no other
reader.

A run of messages refused for their time suggests that this node's own clock is wrong:
``clock_suspect``.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from engine.core.counters import Counters
from engine.core.errors import StorageError
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku import WakuMessage
from engine.core.waku_archive import (
    OURSELVES,
    Appended,
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
    Ineligible,
    Source,
    ineligibility,
)
from engine.network.waku.intake_queue import IntakeQueue
from engine.network.waku.message_hash import message_hash

_LOGGER = logging.getLogger(__name__)
SUSPICIOUS_REFUSALS = 20
"""Consecutive refusals because of the time."""


class Archive(Protocol):
    """Every method may raise StorageError."""

    async def append(self, messages: Sequence[ArchivedMessage], /) -> Appended:
        """All or nothing, durable on return, never exceeding the archive's size limit."""

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        """Raises CursorUnknownError, ArchiveSlowError."""

    async def retain(self) -> int:
        """Remove a portion of the expired messages; return 0 once none are left."""

    async def statistics(self) -> ArchiveStatistics: ...

    async def close(self) -> None: ...


class IntakeSettings(Struct, frozen=True, kw_only=True):
    max_queued: int = 20_000
    max_queued_bytes: int = 32 * 1024 * 1024
    batch: int = 500
    batch_bytes: int = 1024 * 1024
    """Bytes written at once, while the messages that make room for them are still on disk."""
    retry_s: float = 2.0
    retain_every_s: float = 60.0
    patience_s: float = 0.5
    """How long the largest source, and queries, wait for a disk that is behind."""


@dataclass(slots=True)
class _Unwritten:
    """Messages of one topic since all were written: how many accepted, how many done."""

    accepted: int = 0
    done: int = 0


class ArchiveIntake:
    """The archive's only writer.  Create a new one for every start; the archive outlives it."""

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
        self._queue = IntakeQueue(
            max_messages=settings.max_queued, max_bytes=settings.max_queued_bytes
        )
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._writing = asyncio.Lock()
        self._begun = self._ended = 0
        """Batches begun and ended, including those that the disk refused."""
        self._progress = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.failing = False
        """Whether the disk refused the last batch."""
        self._refused_for_time = 0
        self._unwritten: dict[ContentTopic, _Unwritten] = {}

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="archive intake")

    async def stop(self) -> None:
        """Write what is queued, if the disk allows it."""
        if self._task is not None:
            async with self._writing:  # Not in the middle of a batch.
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        while len(self._queue) and await self._write_batch():
            pass

    def offer(
        self,
        pubsub_topic: PubsubTopic,
        message: WakuMessage,
        data: bytes,
        source: Source = OURSELVES,
    ) -> bool:
        """Return whether the message will be archived."""
        now_ns = self._now_ns()
        why_not = ineligibility(message, now_ns=now_ns)
        self._judge_clock(why_not)
        if why_not is not None:
            self._counters.add(f"store.refused_{why_not}")
            return False
        digest = hashlib.sha256(message.content_topic.encode() + message.payload).digest()
        offered = ArchivedMessage(
            message_hash=message_hash(pubsub_topic, message),
            pubsub_topic=pubsub_topic,
            content_topic=message.content_topic,
            timestamp_ns=message.timestamp_ns or now_ns,
            digest=digest,
            data=data,
            source=source,
        )
        self._unwritten.setdefault(message.content_topic, _Unwritten()).accepted += 1
        dropped = self._queue.put(offered)
        if dropped:
            self._counters.add("store.dropped_queue_full", len(dropped))
            self._done_with(dropped)
        self._filled.set()
        if not self._queue.below_half:
            self._room.clear()
        return not any(each is offered for each in dropped)

    @property
    def clock_suspect(self) -> bool:
        return self._refused_for_time >= SUSPICIOUS_REFUSALS

    async def wait_for_room(self, source: Source = OURSELVES) -> None:
        """Wait briefly while the disk is behind, if this is the largest source.

        Other sources never wait, and none waits for a disk that refuses.
        """
        if self.failing or self._room.is_set() or not self._queue.has_most(source):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.patience_s):
                await self._room.wait()

    async def query(self, query: ArchiveQuery) -> ArchivePage:
        """Raises StorageError, CursorUnknownError."""
        await self._wait_for_accepted(query)
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

    async def _wait_for_accepted(self, query: ArchiveQuery) -> None:
        """Wait until the query's topics are written; if it names none, until the next batch."""
        awaited = [
            (topic, each, each.accepted)
            for topic in query.content_topics
            if (each := self._unwritten.get(topic)) is not None
        ]
        batch = self._begun + 1 if len(self._queue) else self._begun

        def is_written() -> bool:
            if query.content_topics:
                return all(
                    each.done >= accepted or self._unwritten.get(topic) is not each
                    for topic, each, accepted in awaited
                )
            return self._ended >= batch

        try:
            async with asyncio.timeout(self._settings.patience_s), self._progress:
                await self._progress.wait_for(lambda: self.failing or is_written())
        except TimeoutError:
            self._counters.add("store.query_ahead_of_disk")

    def _done_with(self, messages: Sequence[ArchivedMessage]) -> None:
        """Count messages as written or dropped."""
        for message in messages:
            unwritten = self._unwritten[message.content_topic]
            unwritten.done += 1
            if unwritten.done == unwritten.accepted:
                del self._unwritten[message.content_topic]

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
            if not await self._write_batch():
                await asyncio.sleep(self._settings.retry_s)

    async def _write_batch(self) -> bool:
        """Return False if the disk refused; no message is lost then."""
        settings = self._settings
        async with self._writing:
            batch = self._queue.take(max_messages=settings.batch, max_bytes=settings.batch_bytes)
            if not len(self._queue):
                self._filled.clear()
            if not batch:
                return True
            self._begun += 1
            try:
                return await self._write(batch)
            finally:
                self._ended += 1
                async with self._progress:
                    self._progress.notify_all()

    async def _write(self, batch: list[ArchivedMessage]) -> bool:
        try:
            done = await self._archive.append(batch)
        except StorageError as error:
            self._put_back(batch)
            self._counters.add("store.archive_failed")
            if not self.failing:
                _LOGGER.error("the archive takes no messages: %s", error)  # noqa: TRY400
            self.failing = True
            return False
        except asyncio.CancelledError:
            self._put_back(batch)  # It may have been written; writing it twice does no harm.
            raise
        self.failing = False
        if self._queue.below_half:
            self._room.set()
        self._done_with(batch)
        self._counters.add("store.archived", done.added)
        self._counters.add("store.duplicates", len(batch) - done.added)
        if done.evicted:
            self._counters.add("store.evicted", done.evicted)
        return True

    def _put_back(self, batch: list[ArchivedMessage]) -> None:
        self._queue.put_back(batch)
        self._filled.set()

    async def _retain(self) -> None:
        try:
            while removed := await self._archive.retain():
                self._counters.add("store.removed", removed)
        except StorageError:
            self._counters.add("store.retention_failed")
