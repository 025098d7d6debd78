"""Records which Stores had which message in one query.

One dictionary serves all Stores, so a message costs one entry however often it comes.  It also
counts messages per set of Stores, which makes omissions cheap to compute.  It lives as long as its
query and stores hashes only.
"""

from enum import Enum, auto

from engine.core.ids import WakuHash


class Sight(Enum):
    NEW = auto()
    """No Store returned it before."""
    NEW_HERE = auto()
    """Another Store returned it, this one did not."""
    KNOWN = auto()


class Provenance:
    def __init__(self) -> None:
        self._had_by: dict[WakuHash, int] = {}
        self._counts: dict[int, int] = {}
        """Number of messages per set of Stores that had them, as a bit mask."""

    def __len__(self) -> int:
        return len(self._had_by)

    def note(self, message_hash: WakuHash, place: int) -> Sight:
        """Record that the Store at ``place``, counted from 0, has this message."""
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
        """How many messages a Store in the bit mask ``of`` had and this one did not."""
        bit = 1 << place
        return sum(
            count
            for had_by, count in self._counts.items()
            if had_by & of & ~bit and not had_by & bit
        )

    def alone(self, place: int) -> int:
        """How many messages only this Store had."""
        return self._counts.get(1 << place, 0)
