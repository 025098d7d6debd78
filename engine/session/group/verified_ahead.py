"""Messages from a Store that were opened before their turn.

Messages from Stores are made durable in batches.  While the disk works, the next batches are
unsealed, checked and decoded, which needs no state of the conversation.  A result is used only for
exactly the same bytes.  The number kept is bounded; a message dropped here is opened again in its
turn.
"""

from collections import OrderedDict
from typing import Final, Generic, TypeVar

from engine.core.ids import WakuHash
from engine.core.waku import WakuMessage

MAX_AHEAD: Final = 256
MAX_AHEAD_BYTES: Final = 2 * 1024 * 1024

T = TypeVar("T")


class VerifiedAhead(Generic[T]):
    def __init__(self) -> None:
        self._items: OrderedDict[WakuHash, tuple[WakuMessage, T]] = OrderedDict()
        self._bytes = 0

    def __contains__(self, waku_hash: WakuHash) -> bool:
        return waku_hash in self._items

    def put(self, waku: WakuMessage, waku_hash: WakuHash, opened: T) -> None:
        self.take(waku, waku_hash)
        self._items[waku_hash] = (waku, opened)
        self._bytes += len(waku.payload)
        while len(self._items) > MAX_AHEAD or self._bytes > MAX_AHEAD_BYTES:
            _, (oldest, _) = self._items.popitem(last=False)
            self._bytes -= len(oldest.payload)

    def take(self, waku: WakuMessage, waku_hash: WakuHash) -> T | None:
        """Remove and return the result for these bytes; None if they have yet to be opened."""
        found = self._items.pop(waku_hash, None)
        if found is None:
            return None
        known, opened = found
        self._bytes -= len(known.payload)
        return opened if known is waku or known.payload == waku.payload else None
