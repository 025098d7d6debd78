"""Entries of an admin log that came before what they name."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from engine.core.admin_log.acts import Entry, EntryId
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ParticipantId

MAX_WAITING: Final = 512
"""Of one author, beside those that others wait for.  Honest ones come after what they name, mostly.
"""

TOO_MANY: Final = "too_many_entries"


class Waiting:
    def __init__(self) -> None:
        self._entries: dict[EntryId, Entry] = {}
        self._count_of = Counter[ParticipantId]()
        self._wanted_by: defaultdict[EntryId, list[EntryId]] = defaultdict(list)
        self.missing: set[EntryId] = set()
        """What entries here name, and is not here."""
        self._crowded = set[ParticipantId]()
        """Those of whom some were refused."""

    def __contains__(self, entry_id: EntryId) -> bool:
        return entry_id in self._entries

    def is_wanted(self, entry_id: EntryId) -> bool:
        """Whether others here name it and wait for it."""
        return entry_id in self._wanted_by

    @property
    def eased(self) -> frozenset[ParticipantId]:
        """Those of whom some were refused, and far fewer wait now."""
        return frozenset(who for who in self._crowded if self._count_of[who] <= MAX_WAITING // 2)

    def try_again(self) -> None:
        """All that were refused of those come again now."""
        self._crowded -= self.eased

    def add(self, entry: Entry, lacking: Iterable[EntryId]) -> None:
        """Raises RemoteProtocolError ``too_many_entries``."""
        if self._count_of[entry.author] >= MAX_WAITING and not self.is_wanted(entry.entry_id):
            self._crowded.add(entry.author)
            raise RemoteProtocolError(TOO_MANY)
        self._entries[entry.entry_id] = entry
        self._count_of[entry.author] += 1
        self.missing.discard(entry.entry_id)
        for head in lacking:
            self._wanted_by[head].append(entry.entry_id)
            if head not in self._entries:
                self.missing.add(head)

    def release(self, entry_id: EntryId, is_here: Callable[[EntryId], bool]) -> list[Entry]:
        """Those that waited for this one last."""
        self.missing.discard(entry_id)
        ready = []
        for waiting_id in self._wanted_by.pop(entry_id, ()):
            waiting = self._entries.get(waiting_id)
            if waiting is not None and all(map(is_here, waiting.heads)):
                ready.append(self._entries.pop(waiting_id))
                self._count_of[waiting.author] -= 1
        return ready
