"""Pushing to one filter subscriber: a bounded queue and one stream that lasts.

Some subscribers never close their half, so a stream for every message would soon be one too many;
a single one carries all.  Whoever passes messages on waits while the queue is above its soft limit
and the subscriber takes bytes; one that takes none is not waited for.  Messages that find the queue
full are dropped and counted.  A subscriber that takes nothing for long, or whose stream cannot be
opened again, is given up: its subscriptions end, and its next ping tells it so.  Refuses to know
topics.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from engine.core.counters import Counters
from engine.core.errors import TransportError
from engine.network.libp2p.ports import Host, PeerId, ProtocolId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.send_queue import Chunk, SendQueue, SendQueueLimits

FILTER_PUSH_PROTOCOL: Final = ProtocolId("/vac/waku/filter-push/2.0.0-beta1")
_READ_BYTES: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettings:
    queue: SendQueueLimits = field(
        default_factory=lambda: SendQueueLimits(soft_bytes=512 * 1024, message_bytes=1024 * 1024)
    )
    open_timeout_s: float = 10.0
    write_timeout_s: float = 10.0
    max_attempts: int = 3
    """Streams in a row that broke before a message could be written."""
    pause_s: float = 1.0
    stuck_s: float = 0.02
    """How long others wait for a subscriber that takes nothing."""


class FilterPush:
    """``run`` is its task, and ends when the subscriber is given up."""

    def __init__(
        self, host: Host, peer_id: PeerId, *, settings: PushSettings, counters: Counters
    ) -> None:
        self._host = host
        self._peer_id = peer_id
        self._settings = settings
        self._counters = counters
        self._queue = SendQueue(settings.queue)
        self._progress = False
        """Whether the present stream took anything."""
        self._stuck = False
        """Took nothing for a moment; nobody waits for it until it has caught up."""

    @property
    def has_room(self) -> bool:
        return self._queue.has_room

    async def wait_for_room(self) -> None:
        """Only while the subscriber takes what it is sent."""
        if self._stuck or self._queue.has_room:
            return
        if not await self._queue.wait_while_taken(self._settings.stuck_s):
            self._stuck = True
            self._counters.add("filter.subscriber_slow")

    def push(self, encoded: bytes) -> bool:
        """False if the message is dropped for want of room."""
        if self._queue.add_message(encode_frame(encoded)):
            return True
        self._counters.add("filter.push_dropped")
        return False

    async def run(self) -> None:
        """Never raises for the peer's sake."""
        failures = 0
        while failures < self._settings.max_attempts:
            if failures:
                await asyncio.sleep(self._settings.pause_s)
            chunk = await self._queue.take()
            self._queue.put_back(chunk.messages)  # A stream is opened once there is something.
            self._progress = False
            if not await self._write_one_stream():
                return
            self._queue.start_anew()
            failures = 1 if self._progress else failures + 1

    async def _write_one_stream(self) -> bool:
        """Until it breaks; False if the peer does not take what it is sent."""
        try:
            async with asyncio.timeout(self._settings.open_timeout_s):
                stream = await self._host.new_stream(self._peer_id, [FILTER_PUSH_PROTOCOL])
        except (TransportError, TimeoutError):
            self._counters.add("filter.push_stream_refused")
            return True
        watcher = asyncio.create_task(self._watch(stream), name=f"filter watch {self._peer_id}")
        try:
            while True:
                await self._write(stream, await self._queue.take())
        except TransportError:
            self._counters.add("filter.push_stream_broken")
            return True
        except TimeoutError:
            self._counters.add("filter.subscriber_stuck")
            return False
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
            await stream.reset()

    async def _write(self, stream: Stream, chunk: Chunk) -> None:
        try:
            async with asyncio.timeout(self._settings.write_timeout_s):
                await stream.write(chunk.messages)
        except TransportError:
            self._queue.put_back(chunk.messages)
            raise
        self._progress = True
        if self._queue.has_room:
            self._stuck = False

    async def _watch(self, stream: Stream) -> None:
        """Notice a reset at once; a peer may close its half, nothing there is for us."""
        try:
            while await stream.read_some(_READ_BYTES):
                self._counters.add("filter.unexpected_bytes")
        except TransportError as error:
            self._queue.fail(str(error))
