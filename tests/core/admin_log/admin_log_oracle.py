"""What counts in an admin log, by the rules of docs/admin-log.md read as equations.

A guess says of each entry under which term it counts, or that it does not.  The rules make a better
guess of any guess; done often enough, no rule changes it any more.  Slow, and nothing like the way
the log does it.
"""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple, TypeAlias

from engine.core.admin_log.acts import (
    LEAST_ROLE,
    MAX_REPEATS,
    Add,
    Create,
    DeleteMessage,
    Demote,
    EndLink,
    Entry,
    EntryId,
    Invite,
    Promote,
    Remove,
    Revoke,
    Role,
    SetInviters,
    Unsupported,
)
from engine.core.ids import ParticipantId


class Term(NamedTuple):
    rank: tuple[int, int, str]
    who: ParticipantId
    role: Role
    by: EntryId


Guess: TypeAlias = dict[EntryId, Term | str | None]
"""A term, "themselves", or None."""


class Oracle:
    def __init__(self, first: EntryId, entries: Sequence[Entry]) -> None:
        self.first = first
        self.known = {entry.entry_id: entry for entry in _whole(entries)}
        self.past: dict[EntryId, set[EntryId]] = {}
        for entry_id in self.known:
            self._find_past(entry_id)

    def _find_past(self, entry_id: EntryId) -> set[EntryId]:
        if entry_id not in self.past:
            heads = self.known[entry_id].heads
            self.past[entry_id] = set(heads).union(*map(self._find_past, heads))
        return self.past[entry_id]

    def settle(self, guess: Guess) -> Guess:
        for round_ in count():
            better: Guess = {entry_id: self.better(entry_id, guess) for entry_id in self.known}
            if better == guess:
                return guess
            assert round_ < 20 * len(self.known) + 20, "the rules chase one another"
            guess = better
        raise AssertionError

    def roles(self, guess: Guess) -> dict[ParticipantId, Role]:
        everything = set(self.known)
        found: dict[ParticipantId, Role] = {}
        for term in self.terms():
            if self.held(term, everything, guess):
                found[term.who] = max(found.get(term.who, Role.NOBODY), term.role)
        return found

    def terms(self) -> list[Term]:
        found = []
        for entry_id, entry in self.known.items():
            given: tuple[tuple[ParticipantId, Role], ...] = ()
            match entry.act:
                case Create():
                    given = ((entry.author, Role.OWNER), (entry.author, Role.MEMBER))
                case Promote(member=who):
                    given = ((who, Role.ADMIN), (who, Role.MEMBER))
                case Add(member=who):
                    given = ((who, Role.MEMBER),)
                case EndLink(members=members):
                    given = tuple((who, Role.MEMBER) for who in members)
                case _:
                    pass
            for who, role in given:
                found.append(Term((-role, entry.lamport_timestamp, entry_id), who, role, entry_id))
        return sorted(found)

    # --- the rules ------------------------------------------------------------------------------

    def better(self, entry_id: EntryId, guess: Guess) -> Term | str | None:
        entry = self.known[entry_id]
        heads = [self.known[head].lamport_timestamp for head in entry.heads]
        if any(lamport >= entry.lamport_timestamp for lamport in heads):
            return None
        if isinstance(entry.act, Unsupported):
            return None
        if isinstance(entry.act, Create):
            return "themselves" if entry_id == self.first else None
        if isinstance(entry.act, Remove | Demote) and entry.act.member == entry.author:
            return "themselves"
        for term in self.terms():
            if term.who == entry.author and self.may(term, entry, guess):
                return term
        return None

    def may(self, term: Term, entry: Entry, guess: Guess) -> bool:
        past = self.past[entry.entry_id]
        if not self.held(term, past, guess) or term.role < self.least(term, entry, guess):
            return False
        if isinstance(entry.act, Remove | Demote | DeleteMessage):
            other = entry.act.author if isinstance(entry.act, DeleteMessage) else entry.act.member
            for one in self.terms():
                if one.who == other and one.rank < term.rank and self.held(one, past, guess):
                    return False
        if self.times_before(entry, guess) >= MAX_REPEATS:
            return False
        return all(
            entry.entry_id in self.past[ending]
            for ending in self.endings(term, guess)
            if guess[ending] != "themselves"
        )

    def times_before(self, entry: Entry, guess: Guess) -> int:
        if not isinstance(entry.act, Add | Promote | Remove | Demote):
            return 0
        return sum(
            (one.lamport_timestamp, one.entry_id) < (entry.lamport_timestamp, entry.entry_id)
            for one in self.known.values()
            if one.author == entry.author
            and type(one.act) is type(entry.act)
            and isinstance(guess[one.entry_id], Term)
            and getattr(one.act, "member", None) == entry.act.member
        )

    def held(self, term: Term, known: set[EntryId], guess: Guess) -> bool:
        if term.by not in known or guess[term.by] is None or not self.let_in(term.by, guess):
            return False
        return not any(ending in known for ending in self.endings(term, guess))

    def endings(self, term: Term, guess: Guess) -> list[EntryId]:
        found = []
        for entry_id, entry in self.known.items():
            act, under = entry.act, guess[entry_id]
            if not isinstance(act, Remove | Demote) or act.member != term.who or under is None:
                continue
            if isinstance(act, Demote) and term.role is Role.MEMBER:
                continue
            if isinstance(under, Term):
                does_end = under.rank < term.rank and entry_id not in self.past[term.by]
            elif isinstance(self.known[term.by].act, Promote):
                does_end = entry_id not in self.past[term.by]
            else:
                does_end = term.by in self.past[entry_id]
            if does_end:
                found.append(entry_id)
        return found

    def least(self, term: Term, entry: Entry, guess: Guess) -> Role:
        act = entry.act
        is_known = isinstance(act, Revoke) and act.invitation in self.past[entry.entry_id]
        if isinstance(act, Revoke) and is_known and guess[act.invitation] == term:
            return Role.MEMBER if isinstance(self.known[act.invitation].act, Invite) else Role.ADMIN
        if isinstance(act, Add | Invite) and term.role is Role.MEMBER:
            said = [
                (one.lamport_timestamp, one.entry_id, one.act.least)
                for one in map(self.known.__getitem__, self.past[entry.entry_id])
                if isinstance(one.act, SetInviters) and guess[one.entry_id] is not None
            ]
            return max(said)[2] if said else Role.ADMIN
        return LEAST_ROLE[type(act)]

    def let_in(self, entry_id: EntryId, guess: Guess) -> bool:
        entry = self.known[entry_id]
        if not isinstance(entry.act, Add) or entry.act.invitation is None:
            return True
        name = entry.act.invitation
        invite = self.known[name].act if name in self.past[entry_id] else None
        if not isinstance(invite, Invite) or guess[name] is None:
            return False
        if entry.sent_ms > invite.expires_ms or self.is_revoked(name, entry_id, guess):
            return False
        under = guess[entry_id]
        is_as_member = isinstance(under, Term) and under.role is Role.MEMBER
        if is_as_member and self.known[name].author != entry.author:
            return False
        place = (entry.lamport_timestamp, entry_id)
        before = [
            one
            for one in self.known.values()
            if isinstance(one.act, Add)
            and one.act.invitation == name
            and guess[one.entry_id] is not None
            and (one.lamport_timestamp, one.entry_id) < place
            and self.let_in(one.entry_id, guess)
        ]
        return len(before) < invite.uses

    def is_revoked(self, name: EntryId, entry_id: EntryId, guess: Guess) -> bool:
        return any(
            isinstance(one.act, Revoke)
            and one.act.invitation == name
            and guess[one.entry_id] is not None
            and entry_id not in self.past[one.entry_id]
            for one in self.known.values()
        )


def _whole(entries: Sequence[Entry]) -> list[Entry]:
    """Those that are here with all they name."""
    found: dict[EntryId, Entry] = {}
    while True:
        more = [
            entry
            for entry in entries
            if entry.entry_id not in found and all(head in found for head in entry.heads)
        ]
        if not more:
            return list(found.values())
        found |= {entry.entry_id: entry for entry in more}
