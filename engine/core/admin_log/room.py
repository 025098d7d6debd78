"""Which entries of an admin log have room, where somebody writes more than it holds.

Room is dealt in rounds: first to whatever the group's creator wrote, then to everybody's first
entry, then to everybody's second, and so on until it is used up; last to people without standing,
who cannot count.  So whoever floods the log takes
what the others leave.  Which entries have room follows from the set of entries, and who once has
none never gets any: as the set grows, an entry's round only gets later and the last round with room
only earlier.  So a member need not keep what came without room.  docs/admin-log.md has the proof.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, TypeAlias

from engine.core.admin_log.acts import Entry, EntryId
from engine.core.ids import ParticipantId

Place: TypeAlias = tuple[int, EntryId]
"""Lamport timestamp and id: the order of one author's entries."""
_LAST_ROUND: Final = 2**53
Turn: TypeAlias = tuple[int, int, EntryId]
"""Round, Lamport timestamp and id: the order in which entries get room."""


class Room:
    """``size``: how many entries have room; ``first``: id of the group's ``Create``."""

    def __init__(self, first: EntryId, size: int) -> None:
        self._first: Final = first
        self._size: Final = size
        self._creator: ParticipantId | None = None
        self._strangers: list[Place] = []
        self._places: defaultdict[ParticipantId, list[Place]] = defaultdict(list)
        self._last_turn: Turn | None = None
        """Of those that have room, since some had none."""

    def has_none(self, entry: Entry) -> bool:
        """Whether this one, which is not among those counted yet, comes too late for good."""
        if self._last_turn is None:
            return False
        place = entry.lamport_timestamp, entry.entry_id
        return self._turn(entry.author, place, self._places[entry.author]) > self._last_turn

    def has_some(self, entry: Entry) -> bool:
        """Whether a new one by somebody with standing would have room, if room were dealt now."""
        place = entry.lamport_timestamp, entry.entry_id
        own = self._turn(entry.author, place, self._places[entry.author])
        return sum(turn < own for turn in self._turns()) < self._size

    def count(self, entry: Entry, *, has_standing: bool) -> None:
        place = entry.lamport_timestamp, entry.entry_id
        if not has_standing:
            self._strangers.append(place)
            return
        insort(self._places[entry.author], place)
        if entry.entry_id == self._first:
            self._creator = entry.author

    def deal(self) -> frozenset[EntryId]:
        """Those counted that have none."""
        turns = sorted(self._turns())
        self._last_turn = turns[self._size - 1] if len(turns) > self._size else None
        return frozenset(entry_id for _, _, entry_id in turns[self._size :])

    def _turns(self) -> Iterable[Turn]:
        for author, places in self._places.items():
            for number, (lamport, entry_id) in enumerate(places):
                yield (-1 if author == self._creator else number, lamport, entry_id)

        for place in self._strangers:
            yield (_LAST_ROUND, *place)

    def _turn(self, author: ParticipantId, place: Place, places: list[Place]) -> Turn:
        round_ = -1 if author == self._creator else bisect_left(places, place)
        return (round_, *place)
