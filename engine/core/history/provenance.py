"""Which message of one query came from which Stores, by hash.

One dictionary for all Stores together: every message costs one entry, however often it comes.  How
many messages were had by which Stores is counted along, so that what a Store omitted costs nothing
to tell in the end.  It lives as long as its query, and holds no message.
"""

from enum import Enum, auto

from engine.core.ids import WakuHash


class Sight(Enum):
    NEW = auto()
    """No Store brought it before."""
    NEW_HERE = auto()
    """Another Store did, this one not."""
    KNOWN = auto()


class Provenance:
    def __init__(self) -> None:
        self._had_by: dict[WakuHash, int] = {}
        self._counts: dict[int, int] = {}
        """Messages by the set of Stores that had them, a bit for each."""

    def __len__(self) -> int:
        return len(self._had_by)

    def note(self, message_hash: WakuHash, place: int) -> Sight:
        """``place``: the Store's, from 0."""
        before = self._had_by.get(message_hash, 0)
        after = before | 1 << place
        if after == before:
            return Sight.KNOWN
        self._had_by[message_hash] = after
        self._counts[after] = self._counts.get(after, 0) + 1
        if not before:
            return Sight.NEW
        self._counts[before] -= 1
        return Sight.NEW_HERE

    def omitted(self, place: int, *, of: int) -> int:
        """Messages that one of the Stores in ``of``, bits, had and this one had not."""
        bit = 1 << place
        return sum(
            count
            for had_by, count in self._counts.items()
            if had_by & of & ~bit and not had_by & bit
        )

    def alone(self, place: int) -> int:
        """Messages that only this Store had."""
        return self._counts.get(1 << place, 0)
