"""What a runner does while the disk is busy: it opens what Stores gave next.

Making a slice durable takes a while in which the loop has nothing to do for the conversation.  The
messages that are to be fed next are known by then, and most of what they cost, unsealing and
checking signatures, depends on nothing that happens before their turn.  In slices, with everybody's
turn between them; nothing comes of it but time saved.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, TypeAlias, TypeVar

from engine.core.history.types import HistoryMessage
from engine.core.types import WakuHash
from engine.core.waku import WakuMessage

SLICE_MS: Final = 2
MAX_EXPECTED: Final = 512

T = TypeVar("T")
OpenAhead: TypeAlias = Callable[[WakuMessage, WakuHash], None]


class Meanwhile:
    def __init__(self) -> None:
        self._expected: deque[HistoryMessage] = deque(maxlen=MAX_EXPECTED)

    def expect(self, messages: Sequence[HistoryMessage]) -> None:
        """They will probably be fed soon."""
        self._expected.extend(messages)

    async def during(self, saving: Coroutine[None, None, T], open_ahead: OpenAhead) -> T:
        """What ``saving`` returns or raises, as soon as it does."""
        if not self._expected:
            return await saving
        task = asyncio.create_task(saving)
        try:
            await asyncio.sleep(0)  # So that the disk begins.
            while self._expected and not task.done():
                self._open_some(open_ahead)
                await asyncio.sleep(0)
            return await task
        finally:
            task.cancel()

    def _open_some(self, open_ahead: OpenAhead) -> None:
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + SLICE_MS / 1000
        while self._expected and now_s() < until_s:
            item = self._expected.popleft()
            open_ahead(item.message, item.message_hash)
