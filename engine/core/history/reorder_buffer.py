"""A queue of messages, ordered by time, that wait for slower Stores.

It only reports when it is full; the caller then stops filling it.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final, TypeAlias

from engine.core.history.queries import HistoryMessage
from engine.core.ids import WakuHash

EVERYTHING: Final = 2**63
"""Later than any message's time."""

_Entry: TypeAlias = tuple[int, WakuHash, int, HistoryMessage]
"""Key, hash, size in bytes, message."""


class ReorderBuffer:
    def __init__(self, *, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._heap: list[_Entry] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def is_full(self) -> bool:
        return len(self._heap) >= self._max_messages or self._bytes >= self._max_bytes

    @property
    def is_half_full(self) -> bool:
        return 2 * len(self._heap) >= self._max_messages or 2 * self._bytes >= self._max_bytes

    def add(self, key: int, item: HistoryMessage) -> None:
        """Add a message at its time.  At equal keys the hash decides, as it does in Stores."""
        size = len(item.message.payload)
        self._bytes += size
        heappush(self._heap, (key, item.message_hash, size, item))

    def take_until(self, key: int) -> Iterator[HistoryMessage]:
        """Remove and yield all messages up to ``key``, in order."""
        while self._heap and self._heap[0][0] <= key:
            _, _, size, item = heappop(self._heap)
            self._bytes -= size
            yield item
