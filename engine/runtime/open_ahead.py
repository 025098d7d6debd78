"""Opens the next messages from Stores while the disk is busy.

While a batch is made durable, the loop has nothing to do for the conversation, and the messages to
be fed next are known.  Unsealing them and checking signatures costs most and depends on nothing
that happens before.  This runs in steps of a millisecond, with other tasks in between, and only
saves time.  Number and bytes are bounded; messages that find no room are opened when they are fed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, TypeAlias, TypeVar

from engine.core.history.queries import HistoryMessage
from engine.core.ids import WakuHash
from engine.core.waku import WakuMessage

BATCH_MS: Final = 1
MAX_EXPECTED: Final = 256
MAX_EXPECTED_BYTES: Final = 2 * 1024 * 1024

T = TypeVar("T")
OpenAhead: TypeAlias = Callable[[WakuMessage, WakuHash], None]


class OpenAheadQueue:
    def __init__(self) -> None:
        self._expected: OrderedDict[WakuHash, WakuMessage] = OrderedDict()
        self._bytes = 0

    def expect(self, messages: Sequence[HistoryMessage]) -> None:
        """Announce messages that will probably be fed soon."""
        for one in messages:
            size = len(one.message.payload)
            if len(self._expected) >= MAX_EXPECTED or self._bytes + size > MAX_EXPECTED_BYTES:
                return
            if one.message_hash not in self._expected:
                self._expected[one.message_hash] = one.message
                self._bytes += size

    def begins(self, messages: Sequence[HistoryMessage]) -> None:
        """Remove messages that are fed now; the session opens any that are still closed."""
        for one in messages:
            known = self._expected.pop(one.message_hash, None)
            if known is not None:
                self._bytes -= len(known.payload)

    async def during(self, saving: Coroutine[None, None, T], open_ahead: OpenAhead) -> T:
        """Open messages until ``saving`` is done; returns or raises what it does."""
        if not self._expected:
            return await saving
        task = asyncio.create_task(saving)
        try:
            await asyncio.sleep(0)  # Let the disk start.
            while self._expected and not task.done():
                self._open_some(open_ahead)
                await asyncio.sleep(0)
            return await task
        finally:
            task.cancel()

    def _open_some(self, open_ahead: OpenAhead) -> None:
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + BATCH_MS / 1000
        while self._expected and now_s() < until_s:
            waku_hash, message = self._expected.popitem(last=False)
            self._bytes -= len(message.payload)
            open_ahead(message, waku_hash)
