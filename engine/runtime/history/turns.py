"""Turns at asking Stores: few conversations at once, so that one device is a modest guest.

Whoever waits for the user goes without a turn: see ``Filler``.
"""

import asyncio
from collections import deque
from typing import Final

AT_ONCE: Final = 2


class Turns:
    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = at_once
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for one, in the order of asking; give it back afterwards."""
        if self._free and not self._waiting:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            else:
                self._waiting.remove(turn)
            raise

    def give_back(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
