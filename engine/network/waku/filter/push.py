"""Pushes messages to one filter subscriber: a bounded queue, and a long-lived stream if possible.

Some subscribers (js-waku) never close their half of a stream, so one stream per message would soon
exceed their limit; a single stream carries all messages.  Others (go-waku) read one message, close,
and silently drop what follows.  Once a peer has closed a young stream, each message gets its own
stream, and messages that may have been dropped are pushed again.  These peers also reset a stream
that comes too soon; its message is tried again later.

The caller waits while the queue is above its soft limit and the subscriber accepts bytes.  It does
not wait for a subscriber that accepts none.  Messages that find the queue full are dropped and
counted.  A subscriber that accepts nothing for long, or to which no stream can be opened, is given
up: its subscriptions end, and its next ping tells it so.  Topics are handled in ``server``.
"""

import asyncio
from enum import Enum, auto
from typing import Final

from msgspec import Struct, field

from engine.core.counters import Counters
from engine.core.errors import TransportError
from engine.network.libp2p.ports import Host, PeerId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.protocols import FILTER_PUSH_PROTOCOL
from engine.network.waku.send_queue import Chunk, SendQueue, SendQueueLimits

_READ_BYTES: Final = 1_024


class PushSettings(Struct, frozen=True, kw_only=True):
    queue: SendQueueLimits = field(
        default_factory=lambda: SendQueueLimits(soft_bytes=512 * 1024, message_bytes=1024 * 1024)
    )
    open_timeout_s: float = 10.0
    write_timeout_s: float = 10.0
    max_attempts: int = 3
    """Consecutive streams that broke before a message could be written."""
    pause_s: float = 1.0
    stuck_s: float = 0.02
    """How long callers wait for a subscriber that accepts nothing."""
    young_s: float = 10.0
    """If the peer closes a stream sooner than this, each message gets its own stream."""


class _Outcome(Enum):
    """How a stream ended."""

    TAKEN = auto()
    BROKEN = auto()
    STUCK = auto()


class _Unproved:
    """What was written to a young stream after its first message; the peer may have dropped it."""

    def __init__(self, *, until_s: float, max_bytes: int) -> None:
        self._until_s = until_s
        self._room_bytes = max_bytes
        self._frames: list[bytes] = []

    def note(self, frames: tuple[bytes, ...], *, now_s: float) -> None:
        self._room_bytes -= sum(map(len, frames))
        if self.is_young(now_s=now_s) and self._room_bytes >= 0:
            self._frames += frames
        else:
            self._frames.clear()

    def is_young(self, *, now_s: float) -> bool:
        return now_s < self._until_s

    @property
    def frames(self) -> list[bytes]:
        return self._frames[1:]


class FilterPush:
    """Run ``run`` as a task; it ends when the subscriber is given up."""

    def __init__(
        self, host: Host, peer_id: PeerId, *, settings: PushSettings, counters: Counters
    ) -> None:
        self._host = host
        self._peer_id = peer_id
        self._settings = settings
        self._counters = counters
        self._queue = SendQueue(settings.queue)
        self._one_each = False
        """Whether the peer closes a stream after its first message."""
        self._progress = False
        """Whether the current stream accepted anything."""
        self._stuck = False
        """The peer accepted nothing for a moment.  Callers do not wait for it until it has caught
        up."""

    @property
    def has_room(self) -> bool:
        return self._queue.has_room

    async def wait_for_room(self) -> None:
        """Wait while the queue is too full, but only if the subscriber accepts bytes."""
        if self._stuck or self._queue.has_room:
            return
        if not await self._queue.wait_while_taken(self._settings.stuck_s):
            self._stuck = True
            self._counters.add("filter.subscriber_slow")

    def push(self, encoded: bytes) -> bool:
        """Return False if the queue is full and the message is dropped."""
        if self._queue.add_message(encode_frame(encoded)):
            return True
        self._counters.add("filter.push_dropped")
        return False

    async def run(self) -> None:
        """Never raises because of the peer."""
        failures = 0
        while failures < self._settings.max_attempts:
            if failures:
                await asyncio.sleep(self._settings.pause_s)
            chunk = await self._queue.take(at_most=1)
            self._queue.put_back(chunk.frames)  # Open a stream only for something to write.
            self._progress = False
            match await self._use_one_stream():
                case _Outcome.TAKEN:
                    failures = 0
                case _Outcome.BROKEN:
                    failures = 1 if self._progress else failures + 1
                case _Outcome.STUCK:
                    return
            self._queue.start_anew()

    async def _use_one_stream(self) -> _Outcome:
        try:
            async with asyncio.timeout(self._settings.open_timeout_s):
                stream = await self._host.new_stream(self._peer_id, [FILTER_PUSH_PROTOCOL])
        except (TransportError, TimeoutError):
            self._counters.add("filter.push_stream_refused")
            return _Outcome.BROKEN
        watcher = asyncio.create_task(self._watch(stream), name=f"filter watch {self._peer_id}")
        use = self._write_one if self._one_each else self._write_on
        outcome = _Outcome.BROKEN
        try:
            outcome = await use(stream, watcher)
        except TransportError:
            self._counters.add("filter.push_stream_broken")
        except TimeoutError:
            self._counters.add("filter.subscriber_stuck")
            outcome = _Outcome.STUCK
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
            if outcome is not _Outcome.TAKEN:
                await stream.reset()
        return outcome

    async def _write_on(self, stream: Stream, watcher: "asyncio.Task[bool]") -> _Outcome:
        """Write messages until the stream breaks or the peer closes its half."""
        watcher.add_done_callback(self._interrupt)
        clock = asyncio.get_running_loop().time
        unproved = _Unproved(
            until_s=clock() + self._settings.young_s, max_bytes=self._settings.queue.message_bytes
        )
        try:
            while True:
                chunk = await self._queue.take()
                await self._write(stream, chunk)
                self._progress = True
                unproved.note(chunk.frames, now_s=clock())
        except (TransportError, TimeoutError):
            if not _has_ended(watcher):
                raise
        self._queue.put_back(unproved.frames)
        self._one_each = unproved.is_young(now_s=clock())
        await stream.close_write()
        return _Outcome.TAKEN

    async def _write_one(self, stream: Stream, watcher: "asyncio.Task[bool]") -> _Outcome:
        """Write one message.  The peer has it once it closes its half, but not if it resets."""
        chunk = await self._queue.take(at_most=1)
        await self._write(stream, chunk)
        try:
            await stream.close_write()
            await asyncio.wait((watcher,), timeout=self._settings.write_timeout_s)
        except TransportError:
            self._queue.put_back(chunk.frames)
            raise
        if not watcher.done():
            self._one_each = False  # It neither closed nor reset, so it may read further messages.
            await stream.reset()
        elif not _has_ended(watcher):
            self._queue.put_back(chunk.frames)
            self._counters.add("filter.push_stream_broken")
            return _Outcome.BROKEN
        return _Outcome.TAKEN

    async def _write(self, stream: Stream, chunk: Chunk) -> None:
        try:
            async with asyncio.timeout(self._settings.write_timeout_s):
                await stream.write(chunk.messages)
        except (TransportError, TimeoutError):
            self._queue.put_back(chunk.frames)
            raise
        if self._queue.has_room:
            self._stuck = False

    async def _watch(self, stream: Stream) -> bool:
        """Whether the stream ended rather than broke.  The subscriber sends nothing on it."""
        try:
            while await stream.read_some(_READ_BYTES):
                self._counters.add("filter.unexpected_bytes")
        except TransportError:
            return False
        return True

    def _interrupt(self, watcher: "asyncio.Task[bool]") -> None:
        if not watcher.cancelled():
            self._queue.fail("the subscriber closed its half or reset the stream")


def _has_ended(watcher: "asyncio.Task[bool]") -> bool:
    return watcher.done() and not watcher.cancelled() and watcher.result()
