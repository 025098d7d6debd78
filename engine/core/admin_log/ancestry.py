"""Which entry of an admin log knew which: the graph that ``heads`` make.

The past of each is a set of bits, bit n for the n-th entry of the graph, so whether one knew
another is one look, and the past of 10 000 entries takes 6 MB.  An entry that has no room
(``engine.core.admin_log.room``) has no number: whoever names it knew what it knew, but not it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from engine.core.admin_log.acts import MAX_HEADS, Entry, EntryId
from engine.core.ids import ParticipantId


class _Passed(Struct, frozen=True):
    """What is left of an entry without room."""

    entry_id: EntryId
    lamport_timestamp: int
    heads: tuple[EntryId, ...]
    past: int = 0
    parents: tuple[int, ...] = ()


class Ancestry:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        """Each after all that it knew."""
        self.pasts: list[int] = []
        """Of ``entries[n]``: bit k is set if it knew ``entries[k]``; its own bit is not set."""
        self.parents: list[tuple[int, ...]] = []
        """Of ``entries[n]``: the numbers of those it names, or of those that one without room named
        in their place."""
        self.backdated: list[bool] = []
        """Whether the Lamport timestamp of ``entries[n]`` is not above those of what it names."""
        self._placed: list[Entry | _Passed] = []
        """Those without room, too; each after all that it names."""
        self._numbers: dict[EntryId, int] = {}
        self._passed: dict[EntryId, _Passed] = {}

    def number(self, entry_id: EntryId) -> int | None:
        """Its place in ``entries``; None if it is not here, waits, or has no room."""
        return self._numbers.get(entry_id)

    def knew(self, later: int, earlier: int) -> bool:
        return bool(self.pasts[later] >> earlier & 1)

    def futures(self) -> list[int]:
        """Of each entry bits of those that knew it: the pasts, seen from the other side."""
        found = [0] * len(self.entries)
        for number in range(len(found) - 1, -1, -1):
            reached = found[number] | 1 << number
            for parent in self.parents[number]:
                found[parent] |= reached
        return found

    def after(
        self,
        passed: Mapping[ParticipantId, int],
        by: Mapping[ParticipantId, int],
        futures: Sequence[int],
    ) -> list[int]:
        """Of each entry bits of those that knew it by way of one that their author ``passed``.

        ``by``: bits of the entries of each author that are looked for.
        """
        found = [0] * len(self.entries)
        if not any(passed.values()):
            return found
        for number in range(len(found) - 1, -1, -1):
            author = self.entries[number].author
            reached = found[number]
            if passed.get(author, 0) >> number & 1:
                reached |= futures[number] & by.get(author, 0)
            for parent in self.parents[number]:
                found[parent] |= reached
        return found

    def has(self, entry_id: EntryId) -> bool:
        return entry_id in self._numbers or entry_id in self._passed

    def heads(self) -> tuple[EntryId, ...]:
        """The newest entries: nothing here knew them.  At most MAX_HEADS, newest first."""
        known = {parent for parents in self.parents for parent in parents}
        loose = (entry for number, entry in enumerate(self.entries) if number not in known)
        newest = sorted(loose, key=lambda one: (one.lamport_timestamp, one.entry_id), reverse=True)
        return tuple(entry.entry_id for entry in newest[:MAX_HEADS])

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
        parents: list[int] = []
        for head in entry.heads:
            number = self._numbers.get(head)
            if number is None:
                passed = self._passed[head]
                past |= passed.past
                parents += passed.parents
                newest = max(newest, passed.lamport_timestamp)
            else:
                past |= self.pasts[number] | 1 << number
                parents.append(number)
                newest = max(newest, self.entries[number].lamport_timestamp)
        if len(entry.heads) > 1 and any(head in self._passed for head in entry.heads):
            parents = self._newest_of(parents)
        if not has_room or not isinstance(entry, Entry):
            passed = _Passed(
                entry.entry_id, entry.lamport_timestamp, entry.heads, past, tuple(parents)
            )
            self._placed.append(passed)
            self._passed[entry.entry_id] = passed
            return
        self._placed.append(entry)
        self._numbers[entry.entry_id] = len(self.entries)
        self.entries.append(entry)
        self.pasts.append(past)
        self.parents.append(tuple(parents))
        self.backdated.append(bool(entry.heads) and newest >= entry.lamport_timestamp)

    def _newest_of(self, numbers: Iterable[int]) -> list[int]:
        """Without those that another one of them knew."""
        each = sorted(set(numbers))
        known = 0
        for number in each:
            known |= self.pasts[number]
        return [number for number in each if not known >> number & 1]
