"""What a runner does while the disk is busy: it opens what Stores gave next.

Making a slice durable takes a while in which the loop has nothing to do for the conversation.  The
messages that are to be fed next are known by then, and most of what they cost, unsealing and
checking signatures, depends on nothing that happens before their turn.  In slices, with everybody's
turn between them; nothing comes of it but time saved.  Bounded by number and bytes: what finds no
room is opened in its turn.
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
        """They will probably be fed soon."""
        for one in messages:
            size = len(one.message.payload)
            if len(self._expected) >= MAX_EXPECTED or self._bytes + size > MAX_EXPECTED_BYTES:
                return
            if one.message_hash not in self._expected:
                self._expected[one.message_hash] = one.message
                self._bytes += size

    def begins(self, messages: Sequence[HistoryMessage]) -> None:
        """It is their turn: what is not open by now is opened in it."""
        for one in messages:
            known = self._expected.pop(one.message_hash, None)
            if known is not None:
                self._bytes -= len(known.payload)

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
        until_s = now_s() + BATCH_MS / 1000
        while self._expected and now_s() < until_s:
            waku_hash, message = self._expected.popitem(last=False)
            self._bytes -= len(message.payload)
            open_ahead(message, waku_hash)
