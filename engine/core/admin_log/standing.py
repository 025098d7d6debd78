"""Who was named by somebody who might, as far as an entry knew, and out of whose share they write.

All of it follows from the entries that one can reach over an entry's heads, whether these have room
or not, and these are in its id.  So it never changes, and is the same for everybody.  People whom
nobody named who may have named them have no standing.  Whoever was named has a share of the share
of whoever named them (``engine.core.admin_log.room``).
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection
from functools import reduce
from operator import or_
from typing import Final, TypeAlias

from msgspec import Struct

from engine.core.admin_log.acts import (
    Add,
    Create,
    EndLink,
    Entry,
    EntryId,
    Promote,
    Role,
    SetInviters,
)
from engine.core.admin_log.room import Place, Share, place_of
from engine.core.ids import ParticipantId

_Nearness: TypeAlias = tuple[int, Place, Place]
"""How many people it took from the creator, the first naming of these, and the last."""


class _Naming(Struct, frozen=True, order=True):
    nearness: _Nearness
    number: int
    share: Share
    """Of whoever is named."""


_BLOCK: Final = 64


class _Namings:
    """Those of one person, the nearest first.

    In blocks of up to _BLOCK, with the bits of each, since thousands of people may name one person,
    who then writes thousands of entries.
    """

    def __init__(self) -> None:
        self._blocks: list[list[_Naming]] = [[]]
        self._bits = [0]

    def add(self, naming: _Naming) -> None:
        place = bisect_left(self._blocks[:-1], naming, key=lambda block: block[-1])
        block = self._blocks[place]
        insort(block, naming)
        self._bits[place] |= 1 << naming.number
        if len(block) > _BLOCK:
            halves = block[: _BLOCK // 2], block[_BLOCK // 2 :]
            self._blocks[place : place + 1] = halves
            self._bits[place : place + 1] = [
                reduce(or_, (1 << each.number for each in half)) for half in halves
            ]

    def nearest(self, known: int) -> _Naming:
        """``known``: bits of namings, at least one of which is here."""
        place = next(place for place, bits in enumerate(self._bits) if bits & known)
        return next(each for each in self._blocks[place] if known >> each.number & 1)


class Standing:
    """``first``: id of the ``Create`` that the group began with.

    What an entry knew is a set of bits, one for each entry that names somebody or lets members
    admit others.
    """

    def __init__(self, first: EntryId) -> None:
        self._first: Final = first
        self._count = 0
        self._known: dict[EntryId, int] = {}
        """By entry: what somebody who names it knows."""
        self._namings: defaultdict[ParticipantId, _Namings] = defaultdict(_Namings)
        self._members: defaultdict[ParticipantId, int] = defaultdict(int)
        self._admins: defaultdict[ParticipantId, int] = defaultdict(int)
        self._owned = 0
        """The group's ``Create``."""
        self._opened = 0
        """The entries that let all members admit others."""
        self.people: set[ParticipantId] = set()
        """Everybody who may ever have had a role, if all entries counted."""

    def past(self, entry: Entry) -> int:
        """What it knew.  All that it names has to be kept here."""
        past = 0
        for head in entry.heads:
            past |= self._known[head]
        return past

    def share_of(self, entry: Entry, past: int) -> Share | None:
        """None for a stranger's."""
        if isinstance(entry.act, Create):
            return Share(entry.author) if entry.entry_id == self._first else None
        naming = self._nearest(entry.author, past)
        return None if naming is None else naming.share

    def hear(self, entry: Entry, past: int) -> None:
        """Whether it is kept or not, messages are taken from whom it names."""
        self.people.update(self._named(entry, past))
        if isinstance(entry.act, EndLink) and self._is_owner(entry, past):
            self.people.update(one.member for one in entry.act.left)

    def keep(self, entry: Entry, past: int, share: Share | None) -> None:
        """``share``: the one that it is counted in."""
        self._known[entry.entry_id] = past | self._note(entry, past, share)

    def _note(self, entry: Entry, past: int, share: Share | None) -> int:
        """Returns its bit, or 0 if it gives nobody anything."""
        bit = 1 << self._count
        named = self._named(entry, past)
        if named and share is not None:
            for who in named:
                self._namings[who].add(self._naming(entry, who, past, share))
                self._members[who] |= bit
                if isinstance(entry.act, Create | Promote):
                    self._admins[who] |= bit
            if isinstance(entry.act, Create):
                self._owned |= bit
        elif isinstance(entry.act, SetInviters) and self._is_admin(entry, past):
            if entry.act.least is not Role.MEMBER:
                return 0
            self._opened |= bit
        else:
            return 0
        self._count += 1
        return bit

    def _naming(self, entry: Entry, named: ParticipantId, past: int, share: Share) -> _Naming:
        place = place_of(entry)
        if isinstance(entry.act, Create):
            return _Naming((0, place, place), self._count, share)
        by = self._nearest(entry.author, past)
        top = place if by is None or share.is_creators else by.nearness[1]
        below = share.below(named)
        return _Naming((below.depth, top, place), self._count, below)

    def _named(self, entry: Entry, past: int) -> Collection[ParticipantId]:
        match entry.act:
            case Create() if entry.entry_id == self._first:
                return (entry.author,)
            case EndLink(members=members) if self._is_owner(entry, past):
                return members
            case Promote(member=member) if self._is_admin(entry, past):
                return (member,)
            case Add(member=member) if self._is_admin(entry, past) or self._may_admit(entry, past):
                return (member,)
            case _:
                return ()

    def _is_owner(self, entry: Entry, past: int) -> bool:
        return bool(self._owned & past & self._members.get(entry.author, 0))

    def _is_admin(self, entry: Entry, past: int) -> bool:
        return bool(self._admins.get(entry.author, 0) & past)

    def _may_admit(self, entry: Entry, past: int) -> bool:
        return bool(self._opened & past and self._members.get(entry.author, 0) & past)

    def _nearest(self, who: ParticipantId, past: int) -> _Naming | None:
        known = self._members.get(who, 0) & past
        if not known:
            return None
        return self._namings[who].nearest(known)
