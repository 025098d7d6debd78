"""In which order the entries of a log get room, by the rules of docs/admin-log.md read as sets.

Each share is a list, made of its holder's entries and of the lists of whom they named.  Nothing is
counted, kept or forgotten, and nothing is like the way the log does it.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple, TypeAlias

from engine.core.admin_log.acts import (
    Act,
    Add,
    Create,
    EndLink,
    Entry,
    EntryId,
    Promote,
    Role,
    SetInviters,
)
from engine.core.ids import ParticipantId
from tests.core.admin_log.admin_log_oracle import Oracle

Line: TypeAlias = tuple[ParticipantId, ...]
"""From the creator down: who named whom, and at last the author."""


class _Naming(NamedTuple):
    steps: int
    top: tuple[int, str]
    place: tuple[int, str]
    line: Line


def order_of_room(first: EntryId, entries: Sequence[Entry]) -> list[EntryId]:
    return _Reading(first, entries).order()


class _Reading:
    def __init__(self, first: EntryId, entries: Sequence[Entry]) -> None:
        oracle = Oracle(first, entries)
        self.first, self.known, self.past = first, oracle.known, oracle.past
        self.lines: dict[EntryId, Line | None] = {}
        for entry_id in self.known:
            self.line(entry_id)

    def order(self) -> list[EntryId]:
        strangers = [one for one, line in self.lines.items() if line is None]
        creator = self.known[self.first].author
        return [*self._share((creator,)), *sorted(strangers, key=self._place)]

    def _share(self, line: Line) -> list[EntryId]:
        own = sorted((one for one, of in self.lines.items() if of == line), key=self._place)
        below = {of[: len(line) + 1] for of in self.lines.values() if of and _is_below(of, line)}
        dealt = _in_turn(self._share(each) for each in sorted(below))
        return [*own, *dealt] if len(line) == 1 else list(_in_turn([own, dealt]))

    def line(self, entry_id: EntryId) -> Line | None:
        """Whose share of whose share it is in; None for a stranger's."""
        if entry_id not in self.lines:
            author = self.known[entry_id].author
            naming = self._nearest(author, entry_id)
            own = (author,) if entry_id == self.first else None
            self.lines[entry_id] = naming.line if naming else own
        return self.lines[entry_id]

    def _nearest(self, who: ParticipantId, entry_id: EntryId) -> _Naming | None:
        namings = [self._naming(one, who) for one in self.past[entry_id] if self._names(one, who)]
        return min(namings, default=None)

    def _naming(self, entry_id: EntryId, who: ParticipantId) -> _Naming:
        place, by = self._place(entry_id), self.known[entry_id].author
        if entry_id == self.first:
            return _Naming(0, place, place, (who,))
        line = self.line(entry_id)
        assert line is not None
        above = self._nearest(by, entry_id)
        assert above is not None
        top = place if len(line) == 1 else above.top
        return _Naming(len(line), top, place, (*line, who))

    def _names(self, entry_id: EntryId, who: ParticipantId) -> bool:
        """And its author might, as far as they knew."""
        entry = self.known[entry_id]
        match entry.act:
            case Create():
                return entry_id == self.first and entry.author == who
            case EndLink(members=members):
                known = self.past[entry_id]
                owns = self.first in known and self.known[self.first].author == entry.author
                return who in members and owns
            case Promote(member=member):
                return member == who and self._is_admin(entry)
            case Add(member=member):
                return member == who and (self._is_admin(entry) or self._may_admit(entry))
            case _:
                return False

    def _is_admin(self, entry: Entry) -> bool:
        return any(
            isinstance(self.known[one].act, Create | Promote) and self._names(one, entry.author)
            for one in self.past[entry.entry_id]
        )

    def _may_admit(self, entry: Entry) -> bool:
        opened: Act = SetInviters(least=Role.MEMBER)
        past = [self.known[one] for one in self.past[entry.entry_id]]
        return any(one.act == opened and self._is_admin(one) for one in past) and any(
            self._names(one.entry_id, entry.author) for one in past
        )

    def _place(self, entry_id: EntryId) -> tuple[int, str]:
        return self.known[entry_id].lamport_timestamp, entry_id


def _is_below(of: Line, line: Line) -> bool:
    return len(of) > len(line) and of[: len(line)] == line


def _in_turn(lists: Iterable[list[EntryId]]) -> list[EntryId]:
    """The first of each, the second of each, and so on."""
    rounds = zip_longest(*lists)
    return [one for one in chain.from_iterable(rounds) if one is not None]
