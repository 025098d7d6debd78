"""Which entry of an admin log knew which: the graph that ``heads`` make.

The past of each is a set of bits, bit n for the n-th entry of the graph, so whether one knew
another is one look, and the past of 10 000 entries takes 6 MB.  An entry that has no room
(``engine.core.admin_log.room``) has no number: whoever names it knew what it knew, but not it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TypeAlias

from msgspec import Struct

from engine.core.admin_log.acts import MAX_HEADS, Entry, EntryId, Role
from engine.core.admin_log.room import place_of
from engine.core.ids import ParticipantId

Inviters: TypeAlias = tuple[int, EntryId, Role]
"""Which ``SetInviters``, by its Lamport timestamp and id, and whom it lets admit others."""


class _Passed(Struct, frozen=True):
    """What is left of an entry without room."""

    entry_id: EntryId
    lamport_timestamp: int
    heads: tuple[EntryId, ...]
    past: int = 0


class Ancestry:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        """Each after all that it knew."""
        self.pasts: list[int] = []
        """Of ``entries[n]``: bit k is set if it knew ``entries[k]``; its own bit is not set."""
        self.backdated: list[bool] = []
        """Whether the Lamport timestamp of ``entries[n]`` is not above those of what it names."""
        self._placed: list[Entry | _Passed] = []
        """Those without room, too; each after all that it names."""
        self._named: list[tuple[int, ...]] = []
        """By each of ``_placed``: the places there of those that it names."""
        self._places: dict[EntryId, int] = {}
        self._numbers: dict[EntryId, int] = {}
        self._passed: dict[EntryId, _Passed] = {}

    def number(self, entry_id: EntryId) -> int | None:
        """Its place in ``entries``; None if it is not here, waits, or has no room."""
        return self._numbers.get(entry_id)

    def knew(self, later: int, earlier: int) -> bool:
        return bool(self.pasts[later] >> earlier & 1)

    def futures(self) -> list[int]:
        """Of each entry bits of those that knew it: the pasts, seen from the other side."""
        return self._gather(lambda number: 1 << number)

    def after(
        self,
        passed: Mapping[ParticipantId, int],
        by: Mapping[ParticipantId, int],
        futures: Sequence[int],
    ) -> list[int]:
        """Of each entry bits of those that knew it by way of one that their author ``passed``.

        ``by``: bits of the entries of each author that are looked for.
        """
        if not any(passed.values()):
            return [0] * len(self.entries)

        def looked_for(number: int) -> int:
            author = self.entries[number].author
            is_passed = passed.get(author, 0) >> number & 1
            return futures[number] & by.get(author, 0) if is_passed else 0

        return self._gather(looked_for)

    def _gather(self, of: Callable[[int], int]) -> list[int]:
        """For each entry what ``of`` says of all that knew it."""
        found = [0] * len(self._placed)
        for place in range(len(found) - 1, -1, -1):
            number = self._numbers.get(self._placed[place].entry_id)
            reached = found[place] if number is None else found[place] | of(number)
            for named in self._named[place]:
                found[named] |= reached
        return [found[self._places[entry.entry_id]] for entry in self.entries]

    def inherited(self, of: Callable[[int], Inviters], least: Inviters) -> list[Inviters]:
        """For each entry the highest that ``of`` says of all that it knew, ``least`` for none."""
        best: list[Inviters] = []
        """With that of the entry itself."""
        found: list[Inviters] = []
        for place, entry in enumerate(self._placed):
            highest = max((best[named] for named in self._named[place]), default=least)
            number = self._numbers.get(entry.entry_id)
            if number is not None:
                found.append(highest)
                highest = max(highest, of(number))
            best.append(highest)
        return found

    def known(self, of: Callable[[int], int]) -> list[int]:
        """For each entry the bits that ``of`` says of all that it knew."""
        with_own: list[int] = []
        found: list[int] = []
        for place, entry in enumerate(self._placed):
            bits = reduce(or_, (with_own[named] for named in self._named[place]), 0)
            number = self._numbers.get(entry.entry_id)
            if number is not None:
                found.append(bits)
                bits |= of(number)
            with_own.append(bits)
        return found

    def has(self, entry_id: EntryId) -> bool:
        return entry_id in self._numbers or entry_id in self._passed

    def lamport_of(self, entry_id: EntryId) -> int:
        """Of one that is here."""
        number = self._numbers.get(entry_id)
        placed = self._passed[entry_id] if number is None else self.entries[number]
        return placed.lamport_timestamp

    def loose(self) -> list[int]:
        """Numbers of those that nothing here knew, the newest first."""
        known = reduce(or_, self.pasts, 0)
        loose = (number for number in range(len(self.entries)) if not known >> number & 1)
        return sorted(loose, key=lambda number: place_of(self.entries[number]), reverse=True)

    def heads(self, numbers: Iterable[int]) -> tuple[EntryId, ...]:
        """The first MAX_HEADS of those that none before knew."""
        found: list[EntryId] = []
        known = 0
        for number in numbers:
            if len(found) == MAX_HEADS:
                break
            if not known >> number & 1:
                found.append(self.entries[number].entry_id)
                known |= self.pasts[number] | 1 << number
        return tuple(found)

    def needed(self) -> tuple[EntryId, ...]:
        """Those that have room, and those that these name; each after all that it names."""
        found: list[EntryId] = []
        named: set[EntryId] = set()
        for entry in reversed(self._placed):
            if isinstance(entry, Entry) or entry.entry_id in named:
                found.append(entry.entry_id)
                named.update(entry.heads)
        return tuple(reversed(found))

    def with_no_room(self, no_room: Collection[EntryId]) -> "Ancestry":
        """The same entries; ``no_room``: which of them get no number."""
        made = Ancestry()
        for entry in self._placed:
            made._put(entry, has_room=isinstance(entry, Entry) and entry.entry_id not in no_room)
        return made

    def add(self, entry: Entry, *, has_room: bool) -> None:
        """All that it names has to be here."""
        self._put(entry, has_room=has_room)

    def _put(self, entry: Entry | _Passed, *, has_room: bool) -> None:
        past, newest = 0, 0
        for head in entry.heads:
            number = self._numbers.get(head)
            if number is None:
                passed = self._passed[head]
                past |= passed.past
                newest = max(newest, passed.lamport_timestamp)
            else:
                past |= self.pasts[number] | 1 << number
                newest = max(newest, self.entries[number].lamport_timestamp)
        self._places[entry.entry_id] = len(self._placed)
        self._named.append(tuple(self._places[head] for head in entry.heads))
        if not has_room or not isinstance(entry, Entry):
            passed = _Passed(entry.entry_id, entry.lamport_timestamp, entry.heads, past)
            self._placed.append(passed)
            self._passed[entry.entry_id] = passed
            return
        self._placed.append(entry)
        self._numbers[entry.entry_id] = len(self.entries)
        self.entries.append(entry)
        self.pasts.append(past)
        self.backdated.append(bool(entry.heads) and newest >= entry.lamport_timestamp)
