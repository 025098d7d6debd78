"""Ends the mutes whose time is over, so that the window shows it without being asked.

Whether a message rings is decided by the time at which it comes (``EventPublisher.is_muted``), so
nothing is lost if this is late.  The end is a time of day, which can be set: it is looked at anew
at least once a minute.
"""

import asyncio
import logging
from typing import Final

from engine.core.counters import Counters
from engine.core.errors import ChatError
from engine.runtime.conversations import Conversations
from engine.runtime.own_clock import OwnClock

LOOK_MS: Final = 60_000
"""The system's time may have been set meanwhile, or the machine have slept."""
AGAIN_MS: Final = 5_000
"""After the disk refused."""

logger = logging.getLogger(__name__)


class MuteEnds:
    def __init__(self, conversations: Conversations, clock: OwnClock, counters: Counters) -> None:
        self._conversations = conversations
        self._clock = clock
        self._counters = counters
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """A conversation was muted or unmuted."""
        self._changed.set()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            wait_ms = await self._end_those_over()
            try:
                async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _end_those_over(self) -> int | None:
        """Returns for how long nothing is to be done; None: until something changes."""
        waits: list[int] = []
        for runner in self._conversations.runners():
            until_ms = runner.record.muted_until_ms
            if until_ms is None:
                continue
            left_ms = until_ms - self._clock.clock_ms()
            if not runner.mute_is_over:
                waits.append(min(left_ms, LOOK_MS))
                continue
            try:
                await runner.end_mute()
            except ChatError as error:
                self._counters.add("engine.mute_not_ended")
                logger.warning("a mute was not ended", extra={"error": type(error).__name__})
                waits.append(AGAIN_MS)
        return min(waits, default=None)
