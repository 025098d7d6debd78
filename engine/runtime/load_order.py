"""Decides which conversation is loaded next: the one opened last, then the most recently active.

Loading a long conversation takes seconds of the storage thread.  So it is read in slices, and each
slice takes a turn.  Between two slices the thread reads pages and writes what is due.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.core.ids import ConversationId, UnixMs


class LoadOrder:
    """Hands out turns, one at a time."""

    def __init__(self) -> None:
        self._opened: dict[ConversationId, int] = {}
        """By conversation, the number of its latest opening."""
        self._openings = 0
        self._taken = False
        self._waiting: list[tuple[ConversationId, UnixMs, asyncio.Future[None]]] = []

    def opened(self, conversation_id: ConversationId) -> None:
        """Somebody looks at this conversation now."""
        self._openings += 1
        self._opened[conversation_id] = self._openings

    @asynccontextmanager
    async def turn(self, conversation_id: ConversationId, active_ms: UnixMs) -> AsyncIterator[None]:
        """Wait until it is this conversation's turn; ``active_ms``: its latest activity."""
        if self._taken:
            await self._wait(conversation_id, active_ms)
        self._taken = True
        try:
            yield
        finally:
            self._taken = False
            self._next()

    async def _wait(self, conversation_id: ConversationId, active_ms: UnixMs) -> None:
        mine = asyncio.get_running_loop().create_future()
        place = (conversation_id, active_ms, mine)
        self._waiting.append(place)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._taken = False
                self._next()  # The turn that came with the cancellation is the next one's.
            raise
        finally:
            if place in self._waiting:
                self._waiting.remove(place)

    def _next(self) -> None:
        waiting = [place for place in self._waiting if not place[2].done()]
        if waiting:
            first = max(waiting, key=lambda place: (self._opened.get(place[0], 0), place[1]))
            self._waiting.remove(first)
            self._taken = True
            first[2].set_result(None)
