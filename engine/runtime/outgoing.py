"""Hands what one conversation sends to the network, and tells its session what became of it.

The runner enqueues what a transition sends once its writes are durable.  A task of its own
publishes one after the other; loads of what a session left on the disk use the same queue.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial

from engine.core.errors import ChatError, StorageError
from engine.core.mvds.vocabulary import LoadRecords
from engine.network.transport import Receipt
from engine.runtime.fault_bench import Direction, PassingCopy
from engine.runtime.job_queue import JobQueue
from engine.runtime.publish_queue import PublishQueue
from engine.runtime.recorded_queries import record_copy
from engine.runtime.runner_context import RunnerContext
from engine.session.contract import ConversationRecord
from engine.session.inputs import CopiesAccepted
from engine.session.loading import read
from engine.session.transitions import (
    Load,
    LoadEntries,
    LoadSetAside,
    LoadToShow,
    LoadWritten,
    Publish,
)

logger = logging.getLogger(__name__)


class Outgoing:
    def __init__(
        self,
        context: RunnerContext,
        jobs: JobQueue,
        *,
        record: Callable[[], ConversationRecord],
        alone: Callable[[], bool],
    ) -> None:
        """``jobs`` takes what the session is told; ``alone``: whether nobody else is a member."""
        self._context = context
        self._jobs = jobs
        self._record = record
        self._queue = PublishQueue(context.counters, alone=alone)
        self._last_written: asyncio.Future[None] | None = None

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    async def enqueue(self, send: Publish | Load) -> None:
        if isinstance(send, LoadRecords | LoadSetAside | LoadWritten | LoadEntries | LoadToShow):
            await self._queue.put(send)  # A load is requested only once.
            return
        try:
            self._queue.put_nowait(send)
        except asyncio.QueueFull:
            # Unacknowledged messages are sent again, so losing a copy here loses no message.
            self._context.counters.add("runner.outbox_full")

    async def flush(self, *, timeout_ms: int) -> None:
        """Wait until everything has been handed to the network, or until the timeout.

        A relay has it then in its connection to a peer; it writes what is queued in order.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._queue.join()
                if self._last_written is not None:
                    await asyncio.wait([self._last_written])

    async def send_all(self) -> None:
        """Run as a task.  Raises StorageError."""
        while True:
            send = await self._queue.get()
            try:
                await self._send(send)
            except StorageError:
                raise
            except ChatError as error:
                self._context.counters.add("runner.publish_failed")
                logger.warning("could not publish", extra={"error": type(error).__name__})
            finally:
                self._queue.task_done()

    async def _send(self, send: Publish | Load) -> None:
        if isinstance(send, Publish):
            if self._goes_now(send):
                await self._publish(send)
            return
        loaded = await self._context.storage.run(
            read, self._context.store, self._record().conversation_id, send
        )
        if loaded is not None:
            self._jobs.put(loaded)

    def _goes_now(self, send: Publish) -> bool:
        """Whether it is neither lost nor delayed on purpose."""
        faults = self._context.faults
        if faults is None or not faults.is_on:
            return True
        copy = PassingCopy(
            direction=Direction.OUT,
            payload=send.message.payload,
            go_on=lambda: faults.send(self._publish_late(send)),
            message_id=next(iter(send.message_ids), send.repairs),
            doubles=False,  # The same bytes twice are one message to the network.
        )
        return faults.lets_pass(self._record(), copy)

    async def _publish_late(self, publish: Publish) -> None:
        try:
            await self._publish(publish)
        except ChatError as error:
            self._context.counters.add("runner.publish_failed")
            logger.warning("could not publish", extra={"error": type(error).__name__})

    async def _publish(self, publish: Publish) -> None:
        receipt = await self._context.transport.publish(publish.message)
        self._last_written = receipt.written
        recorder = self._context.recording.recorder
        if recorder is not None:
            record_copy(recorder, self._record(), publish, receipt)
        self._context.taps.handed_over(self._record().conversation_id, publish)
        self._context.copies.handed_over(self._record().conversation_id, publish, receipt)
        if not publish.message_ids:
            return
        if receipt.taken is not None:  # Also without peers: one whose stream is opened may take it.
            self._tell(publish, receipt, peers=0)
            receipt.taken.add_done_callback(partial(self._perhaps_accepted, publish, receipt))
        elif receipt.peers:
            self._accepted(publish, receipt)

    def _perhaps_accepted(
        self, publish: Publish, receipt: Receipt, taken: asyncio.Future[None]
    ) -> None:
        if not taken.cancelled():
            self._accepted(publish, receipt)

    def _accepted(self, publish: Publish, receipt: Receipt) -> None:
        self._context.copies.taken(self._record().conversation_id, publish, receipt)
        self._queue.taken(publish.message_ids)
        self._tell(publish, receipt, peers=max(1, receipt.peers))

    def _tell(self, publish: Publish, receipt: Receipt, *, peers: int) -> None:
        self._jobs.offer(
            CopiesAccepted(
                message_ids=publish.message_ids, peers=peers, waku_hash=receipt.waku_hash
            )
        )
