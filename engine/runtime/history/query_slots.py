"""Turns at asking Stores: few conversations at once, so that one device is a modest guest.

Whoever waits for the user goes without a turn.
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


class OwnTurn:
    """One conversation's: taken when it has something to ask, given back when that is done."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._has_turn = self._is_active = False
        self.is_urgent = asyncio.Event()
        """Somebody waits at the window."""

    async def take(self) -> None:
        """One of the few, if there is none yet; but whoever is urgent goes at once."""
        if self._is_active:
            return
        self._is_active = True
        if self.is_urgent.is_set():
            return
        turn = asyncio.ensure_future(self._turns.take())
        urgent = asyncio.ensure_future(self.is_urgent.wait())
        try:
            await asyncio.wait((turn, urgent), return_when=asyncio.FIRST_COMPLETED)
        finally:
            urgent.cancel()
            if turn.done() and not turn.cancelled():
                self._has_turn = True
            else:
                turn.cancel()
            await asyncio.gather(turn, urgent, return_exceptions=True)

    def rest(self) -> None:
        self._is_active = False
        self.is_urgent.clear()
        if self._has_turn:
            self._has_turn = False
            self._turns.give_back()
