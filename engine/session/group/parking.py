"""Verified messages of people whose join has not arrived yet.

A join and its author's next message can overtake each other.  Until the join is known, nothing of
its author may touch the channel's state, so such messages wait here.  Parking is bounded by count
and bytes and drops the oldest first.  It is in memory only: what it drops is rebroadcast or
repaired.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from engine.core.ids import MessageId, ParticipantId

MAX_PARKED = 200
MAX_PARKED_BYTES = 2 * 1024 * 1024

T = TypeVar("T")


@dataclass(slots=True)
class Parking(Generic[T]):
    """Items by message id, each with its sender and its size in bytes."""

    _items: OrderedDict[MessageId, tuple[ParticipantId, int, T]] = field(
        default_factory=OrderedDict
    )
    _bytes: int = 0

    def park(self, message_id: MessageId, sender_id: ParticipantId, size: int, item: T) -> int:
        """Keep ``item``; returns how many older ones were dropped."""
        if message_id in self._items:
            return 0
        self._items[message_id] = (sender_id, size, item)
        self._bytes += size
        dropped = 0
        while len(self._items) > MAX_PARKED or self._bytes > MAX_PARKED_BYTES:
            _, (_, old_size, _) = self._items.popitem(last=False)
            self._bytes -= old_size
            dropped += 1
        return dropped

    def take(self, sender_id: ParticipantId) -> list[T]:
        """Remove and return all items of ``sender_id``, in order of arrival."""
        mine = [key for key, (sender, _, _) in self._items.items() if sender == sender_id]
        taken = []
        for key in mine:
            _, size, item = self._items.pop(key)
            self._bytes -= size
            taken.append(item)
        return taken

    def take_wanted(self, is_wanted: Callable[[MessageId], bool]) -> list[T]:
        """Remove and return those by their ids, in order of arrival."""
        taken = []
        for message_id in [each for each in self._items if is_wanted(each)]:
            _, size, item = self._items.pop(message_id)
            self._bytes -= size
            taken.append(item)
        return taken

    def __len__(self) -> int:
        return len(self._items)
