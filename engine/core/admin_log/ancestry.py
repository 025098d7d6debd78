"""Which entry of an admin log knew which: the graph that ``heads`` make.

Entries come in any order.  One whose heads are not all here waits, and is in the graph as soon as
they are.  The past of each is a set of bits, bit n for the n-th entry of the graph, so whether one
knew another is one look, and the past of 10 000 entries takes 6 MB.
"""

from collections import defaultdict

from engine.core.admin_log.acts import MAX_ENTRIES, MAX_HEADS, Create, Entry, EntryId
from engine.core.errors import RemoteProtocolError


class Ancestry:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        """Each after all that it knew."""
        self.pasts: list[int] = []
        """Of ``entries[n]``: bit k is set if it knew ``entries[k]``; its own bit is not set."""
        self._numbers: dict[EntryId, int] = {}
        self._waiting: dict[EntryId, Entry] = {}
        self._wanted_by: defaultdict[EntryId, list[EntryId]] = defaultdict(list)

    def number(self, entry_id: EntryId) -> int | None:
        """Its place in ``entries``; None if it is not here, or waits."""
        return self._numbers.get(entry_id)

    def placed(self, entry_id: EntryId) -> int:
        """The place in ``entries`` of one that is there."""
        return self._numbers[entry_id]

    def knew(self, later: int, earlier: int) -> bool:
        return bool(self.pasts[later] >> earlier & 1)

    def heads(self) -> tuple[EntryId, ...]:
        """The newest entries: nothing here knew them.  At most MAX_HEADS, newest first."""
        known = {head for entry in self.entries for head in entry.heads}
        loose = (entry for entry in self.entries if entry.entry_id not in known)
        newest = sorted(loose, key=lambda one: (one.lamport_timestamp, one.entry_id), reverse=True)
        return tuple(entry.entry_id for entry in newest[:MAX_HEADS])

    def missing(self) -> tuple[EntryId, ...]:
        """What entries here name as heads, and is not here; sorted."""
        return tuple(sorted(head for head in self._wanted_by if head not in self._waiting))

    def add(self, entry: Entry) -> bool:
        """Whether the graph grew; one that is here already, or has to wait, does not grow it.

        Raises RemoteProtocolError ``too_many_entries`` or ``malformed_entry``.
        """
        if entry.entry_id in self._numbers or entry.entry_id in self._waiting:
            return False
        _require_shape(entry)
        if len(self._numbers) + len(self._waiting) >= MAX_ENTRIES:
            raise RemoteProtocolError("too_many_entries")
        lacking = [head for head in entry.heads if head not in self._numbers]
        if lacking:
            self._waiting[entry.entry_id] = entry
            for head in lacking:
                self._wanted_by[head].append(entry.entry_id)
            return False
        self._place(entry)
        return True

    def _place(self, entry: Entry) -> None:
        """Put it in, and whatever waited for it alone, and so on."""
        ready = [entry]
        while ready:
            placed = ready.pop()
            past = 0
            for head in placed.heads:
                number = self._numbers[head]
                past |= self.pasts[number] | 1 << number
            self._numbers[placed.entry_id] = len(self.entries)
            self.entries.append(placed)
            self.pasts.append(past)
            for waiting_id in self._wanted_by.pop(placed.entry_id, ()):
                waiting = self._waiting.get(waiting_id)
                if waiting is not None and all(head in self._numbers for head in waiting.heads):
                    ready.append(self._waiting.pop(waiting_id))


def _require_shape(entry: Entry) -> None:
    """An id commits to its heads, so a cycle cannot be made; that need not be looked for."""
    heads = entry.heads
    is_first = isinstance(entry.act, Create)
    if is_first != (not heads) or len(heads) > MAX_HEADS or len(set(heads)) != len(heads):
        raise RemoteProtocolError("malformed_entry")
