"""A conversation's order in few bytes, to find the position at which a message is placed.

Ascending by (Lamport timestamp, message id), as everywhere.  Positions are unknown until the
messages from before the recording are known, and again once there are more than memory keeps.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from engine.core.ids import MessageId, Position

MAX_KEPT: Final = 1_000_000


class Order:
    __slots__ = ("_ids", "_is_known", "_lamports", "_max_kept")

    def __init__(self, *, is_known: bool, max_kept: int = MAX_KEPT) -> None:
        """``is_known``: there are no earlier messages."""
        self._lamports = array("q")
        self._ids: list[MessageId] = []
        self._is_known = is_known
        self._max_kept = max_kept

    def __len__(self) -> int:
        return len(self._ids)

    def begin(self, before: Iterable[Position]) -> None:
        """Add the messages from before the recording, in any order."""
        here = zip(self._lamports, self._ids, strict=True)
        both = sorted({*here, *((p.lamport_timestamp, p.message_id) for p in before)})
        self._lamports = array("q", (lamport for lamport, _ in both))
        self._ids = [message_id for _, message_id in both]
        self._is_known = True
        self._bound()

    def add(self, lamport: int, message_id: MessageId) -> tuple[bool, int | None]:
        """Whether the message is new, and how many lie before it; None if that is unknown."""
        lamports, ids = self._lamports, self._ids
        if not lamports or lamport > lamports[-1]:
            at = len(ids)
        else:
            first, last = bisect_left(lamports, lamport), bisect_right(lamports, lamport)
            at = bisect_left(ids, message_id, first, last)
            if at < last and ids[at] == message_id:
                return False, None
        lamports.insert(at, lamport)
        ids.insert(at, message_id)
        place = at if self._is_known else None
        self._bound()
        return True, place

    def _bound(self) -> None:
        if len(self._ids) > self._max_kept:
            keep = self._max_kept // 2
            self._lamports, self._ids = self._lamports[-keep:], self._ids[-keep:]
            self._is_known = False
