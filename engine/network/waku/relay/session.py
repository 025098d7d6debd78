"""The outbound half of one relay peer: a queue, one stream, and the task that writes.

While the connection lasts, a broken stream is reopened a few times with growing pauses; then the
session ends.  A peer that accepts nothing for ``write_timeout_s`` gets a new stream as well.  The
peer sends nothing on the stream, but reading it shows when it ends.  ``taken`` finds out what the
peer has read.  Frames are opaque here.
"""

import asyncio
from contextlib import suppress
from typing import Protocol

from msgspec import Struct, field

from engine.core.counters import Counters
from engine.core.errors import TransportError
from engine.network.libp2p.ports import Host, PeerId, Stream
from engine.network.waku.protocols import RELAY_PROTOCOL
from engine.network.waku.relay.taken import Progress, Unconfirmed
from engine.network.waku.send_queue import Chunk, SendQueue, SendQueueLimits

_READ_BYTES = 1_024


class SessionSettings(Struct, frozen=True, kw_only=True):
    max_attempts: int = 4
    """Consecutive streams that broke immediately before the session ends."""
    lasting_s: float = 10.0
    """A stream that lasted this long did not break immediately."""
    first_pause_s: float = 0.1
    open_timeout_s: float = 10.0
    write_timeout_s: float = 30.0
    confirm_pause_s: float = 0.5
    """Between two pings that show whether the peer reads."""
    longest_confirm_pause_s: float = 30.0
    """The same while they fail and the stream lasts."""
    queue: SendQueueLimits = field(default_factory=SendQueueLimits)


class SessionOwner(Protocol):
    def greet(self, peer_id: PeerId, /) -> None:
        """A new stream replaces a broken one: send the subscriptions again."""

    def reachability_changed(self) -> None:
        """A session's ``is_open`` changed."""


class RelaySession:
    """One peer's queue and writer.  Run ``run`` as a task."""

    def __init__(
        self,
        host: Host,
        peer_id: PeerId,
        *,
        settings: SessionSettings,
        counters: Counters,
        owner: SessionOwner,
    ) -> None:
        self.peer_id = peer_id
        self.queue = SendQueue(settings.queue)
        self.is_open = False
        """Whether there is a stream for the queued frames."""
        self.slow = False
        """It accepted nothing for long.  No publisher waits for it until it has caught up."""
        self.stuck = False
        """It accepted nothing for a moment.  No reader waits for it until it has caught up."""
        self._host = host
        self._settings = settings
        self._counters = counters
        self._owner = owner
        self._stream: Stream | None = None
        self._unconfirmed = Unconfirmed(pause_s=settings.confirm_pause_s, counters=counters)

    def add_message(self, frame: bytes, progress: Progress | None) -> bool:
        """Return False if the frame was refused; ``progress`` is told when it is written, read."""
        added = self.queue.add_message(frame)
        if added:
            self._unconfirmed.add(progress)
        return added

    async def run(self) -> None:
        """Write until the peer cannot be reached any more.  Never raises because of the peer."""
        failures = 0
        while failures < self._settings.max_attempts:
            if failures:
                await asyncio.sleep(self._settings.first_pause_s * 2 ** (failures - 1))
                self.queue.start_anew()
                self._owner.greet(self.peer_id)
            began_s = asyncio.get_running_loop().time()
            await self._write_one_stream()
            lasted_s = asyncio.get_running_loop().time() - began_s
            failures = 1 if lasted_s >= self._settings.lasting_s else failures + 1

    async def finish(self) -> None:
        """Write what is queued and end our half, so that the peer reads it even after we are gone.

        Takes as long as the peer does; the caller sets the time limit.
        """
        if self._stream is not None:
            await self.queue.wait_until_idle()
            await self._stream.close_write()

    async def _write_one_stream(self) -> None:
        """Open a stream and write until it breaks."""
        try:
            async with asyncio.timeout(self._settings.open_timeout_s):
                stream = await self._host.new_stream(self.peer_id, [RELAY_PROTOCOL])
        except (TransportError, TimeoutError):
            self._counters.add("relay.stream_refused")
            return
        beside = [
            asyncio.create_task(self._watch(stream), name=f"relay watch {self.peer_id}"),
            asyncio.create_task(self._confirm(stream), name=f"relay confirm {self.peer_id}"),
        ]
        self.is_open, self._stream = True, stream
        self._owner.reachability_changed()
        try:
            while True:
                await self._write(stream, await self.queue.take())
        except TransportError:
            self._counters.add("relay.stream_broken")
        except TimeoutError:
            self._counters.add("relay.stream_stuck")
        finally:
            self.is_open, self._stream = False, None
            self._unconfirmed.lose_written()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await stream.reset()
            self._owner.reachability_changed()

    async def _write(self, stream: Stream, chunk: Chunk) -> None:
        try:
            async with asyncio.timeout(self._settings.write_timeout_s):
                await stream.write(chunk.control + chunk.messages)
        except (TransportError, TimeoutError):
            self.queue.put_back(chunk.frames)
            raise
        self._unconfirmed.wrote(len(chunk.frames))
        if self.queue.has_room:
            self.slow = self.stuck = False

    async def _confirm(self, stream: Stream) -> None:
        """Ask again after a failure, since the stream may last: if it broke, the watcher tells."""
        pause_s = self._settings.confirm_pause_s
        while True:
            with suppress(TransportError):
                await self._unconfirmed.confirm(stream)
            self._counters.add("relay.confirm_failed")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, self._settings.longest_confirm_pause_s)

    async def _watch(self, stream: Stream) -> None:
        """Notice a reset promptly.  A peer may close or use its half; nothing on it is for us."""
        try:
            while await stream.read_some(_READ_BYTES):
                self._counters.add("relay.unexpected_bytes")
        except TransportError as error:
            self.queue.fail(str(error))
