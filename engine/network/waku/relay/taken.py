"""Which messages were written to one relay peer, and which of them it has shown to have read.

A relay says nothing about what it receives, and a stopped peer's socket takes bytes for a while.
So a ping follows them on the same connection (``Stream.confirm``): its answer means that the peer
has read everything before it.  One ping confirms all that was written, and the next one waits for a
moment, so a burst costs a few of them.
"""

import asyncio
from collections import deque

from engine.core.counters import Counters
from engine.network.libp2p.ports import Stream

MAX_UNCONFIRMED = 1_000
"""Messages of one peer that wait for its answer; what goes beyond is not waited for."""


class Progress:
    """How far one published message has come, at whichever peer is first."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.written: asyncio.Future[None] = loop.create_future()
        """Done once it was written to a peer's stream."""
        self.taken: asyncio.Future[None] = loop.create_future()
        """Done once a peer has shown that it read it."""


class Unconfirmed:
    """Counts the messages added to a queue and those written to a stream, in the same order."""

    def __init__(self, *, pause_s: float, counters: Counters) -> None:
        self._pause_s = pause_s
        self._counters = counters
        self._added = 0
        self._written = 0
        self._unwritten: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Of what is still in the queue, whose bytes are bounded."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._news = asyncio.Event()

    def add(self, progress: Progress | None) -> None:
        """A message was queued; ``progress`` is told what becomes of it."""
        self._added += 1
        if progress is None:
            return
        self._unwritten.append((self._added, progress.written))
        if len(self._waiting) < MAX_UNCONFIRMED:
            self._waiting.append((self._added, progress.taken))
        else:
            self._counters.add("relay.too_many_unconfirmed")

    def wrote(self, messages: int) -> None:
        self._written += messages
        _reach(self._unwritten, self._written)
        self._news.set()

    def lose_written(self) -> None:
        """The stream broke: nothing will show whether what was written was read."""
        _forget(self._waiting, self._written)

    async def confirm(self, stream: Stream) -> None:
        """Run as a task while the stream lasts.

        Raises TransportError when it breaks or its peer refuses a ping.  Called again, it asks
        about all that is still waited for.
        """
        self._news.set()
        while True:
            await self._news.wait()
            self._news.clear()
            written = self._written
            if any(place <= written and not taken.done() for place, taken in self._waiting):
                await stream.confirm()
                _reach(self._waiting, written)
                await asyncio.sleep(self._pause_s)
            else:
                _forget(self._waiting, written)


def _reach(waiting: deque[tuple[int, asyncio.Future[None]]], place: int) -> None:
    """What waited for the messages up to ``place`` is done."""
    for future in _forget(waiting, place):
        if not future.done():
            future.set_result(None)


def _forget(
    waiting: deque[tuple[int, asyncio.Future[None]]], place: int
) -> list[asyncio.Future[None]]:
    """Take out what waits for the messages up to ``place``."""
    found: list[asyncio.Future[None]] = []
    while waiting and waiting[0][0] <= place:
        found.append(waiting.popleft()[1])
    return found
