"""Which entries of an admin log have room, where somebody writes more than it holds.

Room is dealt out in shares.  The group's creator has room for all that they write.  What is left is
dealt in rounds to the shares of those whom they named: to each one entry, then to each another one.
Whoever has a share takes every other entry of it for themselves, and the rest is dealt in rounds
again, to those whom *they* named.  So accomplices, to whatever depth, take room only from whoever
named them.  Strangers, who cannot count, come last.

Which entries have room follows from the set of entries, and who has none once never gets any:
docs/admin-log.md has the proof.  So a member need not keep what came without room.
"""

from bisect import bisect_left, insort
from collections.abc import Collection
from typing import Final, TypeAlias

from engine.core.admin_log.acts import Entry, EntryId
from engine.core.ids import ParticipantId

Place: TypeAlias = tuple[int, EntryId]
"""Lamport timestamp and id: the order of one author's entries."""


def place_of(entry: Entry) -> Place:
    return entry.lamport_timestamp, entry.entry_id


class Share:
    """What one person writes, and all whom they named, as one whole.

    The same person named by two others has two shares; which of these an entry is in, ``standing``
    says.
    """

    def __init__(self, holder: ParticipantId, above: "Share | None" = None) -> None:
        self.holder: Final = holder
        self.above: Final = above
        self.depth: Final[int] = 0 if above is None else above.depth + 1
        self.own: list[Place] = []
        """In order."""
        self.others: dict[ParticipantId, Share] = {}
        """Of those whom the holder named, if anything is in it."""
        self.size = 0
        """As of the last count: how many entries are in it."""
        self.own_limit: int | None = None
        """As of the last deal: how many of the holder's own have room at most, if that is known."""
        self._round: tuple[int, ParticipantId] | None = None
        """The last one that has room, and whose entry was its last, if others have none."""

    @property
    def is_creators(self) -> bool:
        return self.above is None

    def below(self, named: ParticipantId) -> "Share":
        return self.others.get(named) or Share(named, self)

    def limit(self, holder: ParticipantId) -> int | None:
        """How many entries have room at most in the share that this one gives ``holder``."""
        if self._round is None:
            return None
        number, last = self._round
        return number + (holder <= last)

    def begin(self) -> None:
        """Its first entry is counted."""
        if self.above is not None:
            self.above.others[self.holder] = self
            self.own_limit = self.above.limit(self.holder)
            if self.own_limit is not None:
                self._round = self.own_limit, ParticipantId("")

    def deal(self, room: int | None) -> None:
        """``room``: for how many; ``own_limit`` and ``limit`` are right afterwards."""
        if room is None or (self.size <= room and self.is_creators):
            self.own_limit, self._round = None, None
            return
        others = self.size - len(self.own)
        if self.is_creators:
            self.own_limit = room
            left = max(0, room - len(self.own))
        else:
            self.own_limit = max(room - room // 2, room - others)
            left = max(room // 2, room - len(self.own))
        self._round = _last_round(left, self.others.values()) if others > left else None

    def position(self, number: int, among: ParticipantId | None) -> int:
        """In the share's order: of the holder's ``number``th entry, or of somebody else's.

        ``among``: whose share that one is the ``number``th of.
        """
        if among is None:
            others = self.size - len(self.own)
            return number if self.is_creators else number + min(number, others)
        before = number + sum(
            min(other.size, number) + (other.size > number and holder < among)
            for holder, other in self.others.items()
            if holder != among
        )
        own = len(self.own)
        return before + (own if self.is_creators else min(own, before + 1))


def _last_round(room: int, shares: Collection[Share]) -> tuple[int, ParticipantId]:
    """Of ``shares`` that have more entries than ``room``."""
    full, left = 0, room
    sizes = sorted(share.size for share in shares)
    for done, size in enumerate(sizes):
        sharing = len(sizes) - done
        if (size - full) * sharing > left:
            full += left // sharing
            left %= sharing
            break
        left -= (size - full) * sharing
        full = size
    if not left:
        return full, ParticipantId("")
    return full, sorted(share.holder for share in shares if share.size > full)[left - 1]


def _found(share: Share | None) -> Share | None:
    """The one with that holder in the same share, if there is one."""
    return share if share is None or share.above is None else share.above.below(share.holder)


class Room:
    """``size``: how many entries have room."""

    def __init__(self, size: int) -> None:
        self._size: Final = size
        self._shares: list[Share] = []
        """Each after the one that it is part of."""
        self._strangers: list[Place] = []
        self._strangers_limit: int | None = None

    def has_none(self, entry: Entry, share: Share | None) -> bool:
        """Whether this one, which is not among those counted yet, comes too late for good."""
        share = _found(share)
        if share is None:
            limit, own = self._strangers_limit, self._strangers
        elif share.own or share.above is None:
            limit, own = share.own_limit, share.own
        else:
            limit, own = share.above.limit(share.holder), share.own
        return limit is not None and bisect_left(own, place_of(entry)) >= limit

    def has_some(self, entry: Entry, share: Share | None) -> bool:
        """Whether a new one would have room, if room were dealt now."""
        self._count_shares()
        share = _found(share)
        if share is None:
            return sum(len(each.own) for each in self._shares) < self._size
        position = share.position(bisect_left(share.own, place_of(entry)), None)
        while share.above is not None:
            share, holder = share.above, share.holder
            position = share.position(position, holder)
        return position < self._size

    def count(self, entry: Entry, share: Share | None) -> Share | None:
        """Returns the share that it is in."""
        share = _found(share)
        if share is None:
            insort(self._strangers, place_of(entry))
            return None
        if not share.own:
            share.begin()
            self._shares.append(share)
        insort(share.own, place_of(entry))
        return share

    def deal(self) -> frozenset[EntryId]:
        """Those counted that have none."""
        self._count_shares()
        total = self._shares[0].size if self._shares else 0
        if total + len(self._strangers) <= self._size:
            return frozenset()
        self._strangers_limit = max(0, self._size - total)
        none = self._strangers[self._strangers_limit :]
        for share in self._shares:
            above = share.above
            share.deal(self._size if above is None else above.limit(share.holder))
            if share.own_limit is not None:
                none += share.own[share.own_limit :]
        return frozenset(entry_id for _, entry_id in none)

    def _count_shares(self) -> None:
        for share in self._shares:
            share.size = len(share.own)
        for share in reversed(self._shares):
            if share.above is not None:
                share.above.size += share.size
