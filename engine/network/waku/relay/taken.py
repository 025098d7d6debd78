"""Which of the messages that were written to one relay peer it has shown to have read.

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


class Unconfirmed:
    """Counts the messages added to a queue and those written to a stream, in the same order."""

    def __init__(self, *, pause_s: float, counters: Counters) -> None:
        self._pause_s = pause_s
        self._counters = counters
        self._added = 0
        self._written = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._news = asyncio.Event()

    def add(self, taken: asyncio.Future[None] | None) -> None:
        """A message was queued; ``taken`` is done once this or another peer has read it."""
        self._added += 1
        if taken is None:
            return
        if len(self._waiting) < MAX_UNCONFIRMED:
            self._waiting.append((self._added, taken))
        else:
            self._counters.add("relay.too_many_unconfirmed")

    def wrote(self, messages: int) -> None:
        self._written += messages
        self._news.set()

    def lose_written(self) -> None:
        """The stream broke: nothing will show whether what was written was read."""
        self._reached(self._written)

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
                for taken in self._reached(written):
                    if not taken.done():
                        taken.set_result(None)
                await asyncio.sleep(self._pause_s)
            else:
                self._reached(written)

    def _reached(self, written: int) -> list[asyncio.Future[None]]:
        """Forget the first ``written`` messages; return what waited for them."""
        reached: list[asyncio.Future[None]] = []
        while self._waiting and self._waiting[0][0] <= written:
            reached.append(self._waiting.popleft()[1])
        return reached
