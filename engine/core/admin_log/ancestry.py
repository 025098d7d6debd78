"""Which entry of an admin log knew which: the graph that ``heads`` make.

Entries come in any order.  One whose heads are not all here waits, and is in the graph as soon as
they are.  The past of each is a set of bits, bit n for the n-th entry of the graph, so whether one
knew another is one look, and the past of 10 000 entries takes 6 MB.  An entry that has no room
(``engine.core.admin_log.room``) has no number: whoever names it knew what it knew, but not it.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from engine.core.admin_log.acts import MAX_HEADS, Create, Entry, EntryId
from engine.core.admin_log.standing import Standing
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ParticipantId

MAX_WAITING: Final = 512
"""Entries of one author that wait for others.  Honest ones come after what they name, mostly."""


class _Passed(Struct, frozen=True):
    """What is left of an entry without room."""

    entry: Entry
    past: int
    parents: tuple[int, ...]


class Ancestry:
    def __init__(self, no_room: Collection[EntryId] = ()) -> None:
        self.entries: list[Entry] = []
        """Each after all that it knew."""
        self.pasts: list[int] = []
        """Of ``entries[n]``: bit k is set if it knew ``entries[k]``; its own bit is not set."""
        self.parents: list[tuple[int, ...]] = []
        """Of ``entries[n]``: the numbers of those it names, or of those that one without room named
        in their place."""
        self.backdated: list[bool] = []
        """Whether the Lamport timestamp of ``entries[n]`` is not above those of what it names."""
        self.standing: Final = Standing()
        self._no_room: Final = set(no_room)
        self.placed: list[Entry] = []
        """Those without room, too; each after all that it names."""
        self._numbers: dict[EntryId, int] = {}
        self._passed: dict[EntryId, _Passed] = {}
        self._waiting: dict[EntryId, Entry] = {}
        self._waiting_of = Counter[ParticipantId]()
        self._wanted_by: defaultdict[EntryId, list[EntryId]] = defaultdict(list)

    def number(self, entry_id: EntryId) -> int | None:
        """Its place in ``entries``; None if it is not here, waits, or has no room."""
        return self._numbers.get(entry_id)

    def knew(self, later: int, earlier: int) -> bool:
        return bool(self.pasts[later] >> earlier & 1)

    def has(self, entry_id: EntryId) -> bool:
        """Whether it is here, if only to wait."""
        return self._is_placed(entry_id) or entry_id in self._waiting

    def is_wanted(self, entry_id: EntryId) -> bool:
        """Whether others here name it and wait for it."""
        return entry_id in self._wanted_by

    def heads(self) -> tuple[EntryId, ...]:
        """The newest entries: nothing here knew them.  At most MAX_HEADS, newest first."""
        known = {parent for parents in self.parents for parent in parents}
        loose = (entry for number, entry in enumerate(self.entries) if number not in known)
        newest = sorted(loose, key=lambda one: (one.lamport_timestamp, one.entry_id), reverse=True)
        return tuple(entry.entry_id for entry in newest[:MAX_HEADS])

    def missing(self) -> tuple[EntryId, ...]:
        """What entries here name as heads, and is not here; sorted."""
        return tuple(sorted(head for head in self._wanted_by if head not in self._waiting))

    def with_no_room(self, no_room: Collection[EntryId]) -> "Ancestry":
        """The same entries; ``no_room``: which of them get no number."""
        made = Ancestry(no_room)
        for entry in (*self.placed, *self._waiting.values()):
            made.add(entry)
        return made

    def add(self, entry: Entry, *, has_room: bool = True) -> tuple[tuple[Entry, bool], ...]:
        """The entries that are in the graph now and were not before, those without room, too.

        With each, whether its author has standing.
        Raises RemoteProtocolError ``too_many_entries`` or ``malformed_entry``.
        """
        if self.has(entry.entry_id):
            return ()
        _require_shape(entry)
        if not has_room:
            self._no_room.add(entry.entry_id)
        lacking = [head for head in entry.heads if not self._is_placed(head)]
        if not lacking:
            return self._place(entry)
        if self._waiting_of[entry.author] >= MAX_WAITING:
            raise RemoteProtocolError("too_many_entries")
        self._waiting[entry.entry_id] = entry
        self._waiting_of[entry.author] += 1
        for head in lacking:
            self._wanted_by[head].append(entry.entry_id)
        return ()

    def _is_placed(self, entry_id: EntryId) -> bool:
        return entry_id in self._numbers or entry_id in self._passed

    def _place(self, entry: Entry) -> tuple[tuple[Entry, bool], ...]:
        """Put it in, and whatever waited for it alone, and so on."""
        ready, placed = [entry], []
        while ready:
            one = ready.pop()
            placed.append((one, self._put(one)))
            for waiting_id in self._wanted_by.pop(one.entry_id, ()):
                waiting = self._waiting.get(waiting_id)
                if waiting is not None and all(map(self._is_placed, waiting.heads)):
                    ready.append(self._waiting.pop(waiting_id))
                    self._waiting_of[waiting.author] -= 1
        return tuple(placed)

    def _put(self, entry: Entry) -> bool:
        self.placed.append(entry)
        past, newest = 0, 0
        parents: list[int] = []
        for head in entry.heads:
            number = self._numbers.get(head)
            if number is None:
                passed = self._passed[head]
                past |= passed.past
                parents += passed.parents
                newest = max(newest, passed.entry.lamport_timestamp)
            else:
                past |= self.pasts[number] | 1 << number
                parents.append(number)
                newest = max(newest, self.entries[number].lamport_timestamp)
        if any(head in self._passed for head in entry.heads):
            parents = self._newest_of(parents)
        if entry.entry_id in self._no_room:
            self._passed[entry.entry_id] = _Passed(entry, past, tuple(parents))
            return self.standing.has_any(entry, past)
        self.standing.note(len(self.entries), entry, past)
        self._numbers[entry.entry_id] = len(self.entries)
        self.entries.append(entry)
        self.pasts.append(past)
        self.parents.append(tuple(parents))
        self.backdated.append(bool(entry.heads) and newest >= entry.lamport_timestamp)
        return self.standing.has_any(entry, past)

    def _newest_of(self, numbers: Iterable[int]) -> list[int]:
        """Without those that another one of them knew."""
        each = sorted(set(numbers))
        known = 0
        for number in each:
            known |= self.pasts[number]
        return [number for number in each if not known >> number & 1]


def _require_shape(entry: Entry) -> None:
    """An id commits to its heads, so a cycle cannot be made; that need not be looked for."""
    heads = entry.heads
    is_first = isinstance(entry.act, Create)
    if is_first != (not heads) or len(heads) > MAX_HEADS or len(set(heads)) != len(heads):
        raise RemoteProtocolError("malformed_entry")
