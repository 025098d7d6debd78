"""Which entries of an admin log count.  A function of the set of entries, not of their order.

An entry counts under a *term*: an entry that gave its author a role, that the author knew, and that
nothing the author knew had ended.  Terms have a rank: the owner's, then admins' by the position
(Lamport timestamp, id) of their promotion, then members' by that of their admission.  Whoever gives
somebody a role has a term of higher rank, so terms are judged from the highest down, and each
entry's right rests on what is judged already.

A removal or demotion takes that its author outranks the other.  It ends the other's terms of lower
rank, those it did not know of too, unless they were given by somebody who knew of it; and it voids
what the other did under such a term without knowing of it.  Two admins who remove one another are
so decided by rank.  Leaving ends what one knew and any promotion that did not know of it, and voids
nothing: only an admission brings back who left.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Final, TypeAlias

from msgspec import Struct, field

from engine.core.admin_log.acts import (
    LEAST_ROLE,
    MAX_REPEATS,
    Act,
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
from engine.core.admin_log.ancestry import Ancestry, Inviters
from engine.core.ids import ParticipantId

Rank: TypeAlias = tuple[int, int, EntryId]
"""Smaller ranks higher."""
_Done: TypeAlias = tuple[ParticipantId, type[Act], ParticipantId]
"""By whom, what, to whom."""


class Verdict(StrEnum):
    COUNTS = "counts"
    VOID = "void"
    """Its author was removed or demoted by somebody it did not know of."""
    NOT_ALLOWED = "not_allowed"
    """Its author had no role for this, as far as the author knew."""
    OUTRANKED = "outranked"
    """It is about somebody who ranks as high or higher."""
    TOO_OFTEN = "too_often"
    """Its author did this to the same person MAX_REPEATS times before."""
    BACKDATED = "backdated"
    """Its Lamport timestamp is not above those of what it names."""
    NOT_THE_FIRST = "not_the_first"
    """The group began with another entry."""
    SPENT = "spent"
    """The invitation had been used as often as it may."""
    EXPIRED = "expired"
    REVOKED = "revoked"
    UNSUPPORTED = "unsupported"
    """What it does is of a newer version, or beyond a bound."""
    NO_INVITATION = "no_invitation"
    """The author knew of no invitation with that id."""


class Term(Struct, frozen=True, kw_only=True):
    """A role that somebody has from an entry on."""

    rank: Rank
    who: ParticipantId
    role: Role
    number: int
    """Of the entry that gave it."""


class Judgement(Struct, frozen=True, kw_only=True):
    verdicts: tuple[Verdict, ...]
    """One for each of ``ancestry.entries``."""
    terms: tuple[Term, ...]
    """Those that nothing ended, the highest first."""
    ever: frozenset[ParticipantId] = frozenset()
    """Everybody who was given one, ended or not."""
    endings: int = 0
    """Bits of the entries that ended a term; another removal or demotion changed nothing."""
    invites: Mapping[EntryId, tuple[Invite, Term]] = field(default_factory=dict)
    """Each that counts, and the term that it was made under."""
    uses: Mapping[EntryId, int] = field(default_factory=dict)
    revoked: frozenset[EntryId] = frozenset()
    times: Mapping[_Done, int] = field(default_factory=dict)


def judge(ancestry: Ancestry, futures: Sequence[int], first: EntryId) -> Judgement:
    """``first``: id of the ``Create`` that the group began with; ``futures``: of ``ancestry``."""
    return _Judging(ancestry, futures, first).run()


class _Endings:
    """Entries that count and end terms of one person, of one kind and all by others or none.

    Two things are asked of them for each term, whatever their number.  Whether somebody who knew a
    term knew an ending that the term's author did not: since they knew all that this author knew,
    it is enough to count the endings that each of the two knew.  And whether each ending either
    knew an entry or was known to it.
    """

    def __init__(self) -> None:
        self.bits = 0
        self.ordered = -1
        """Bits of the entries that knew each of these, or that it knew."""
        self._count_bits: list[int] = []
        """How many of these each entry knew, in binary: bit n of the k-th has 2^k for entry n."""

    def add(self, number: int, past: int, future: int) -> None:
        self.bits |= 1 << number
        self.ordered &= past | future
        carried = future
        for place, have in enumerate(self._count_bits):
            self._count_bits[place] = have ^ carried
            carried &= have
        if carried:
            self._count_bits.append(carried)

    def known_as_to(self, past: int) -> int:
        """Bits of the entries that knew as many of these as an entry with that past."""
        count = (self.bits & past).bit_count()
        found = -1
        for place, have in enumerate(self._count_bits):
            found &= have if count >> place & 1 else ~have
        return found


class _EndingsOf:
    """All that end terms of one person."""

    def __init__(self) -> None:
        self.removals: Final = _Endings()
        self.demotions: Final = _Endings()
        self.own_removals: Final = _Endings()
        self.own_demotions: Final = _Endings()

    def by_others(self, role: Role) -> tuple[_Endings, ...]:
        return (self.removals,) if role is Role.MEMBER else (self.removals, self.demotions)

    def own(self, role: Role) -> tuple[_Endings, ...]:
        is_member = role is Role.MEMBER
        return (self.own_removals,) if is_member else (self.own_removals, self.own_demotions)


class _GivenTerm(Struct, frozen=True, kw_only=True):
    term: Term
    ends: int
    """Bits of the entries that end it."""
    acted: int
    """Bits of what the holder did knowing of it, and of none of these.  Of an owner's or admin's
    term: of what anybody did."""
    stands: int
    """Bits of what each of these by others knew, or was known to; the rest of ``acted`` is void."""


class _Judging:
    """Entries are taken as bits of a number, all that a term is about at once.

    No entry is looked at under two terms of one role.  Who is outranked, or did something too
    often, under one term is so under all that follow.  What is void is void under all others of
    that role: the removal that neither knew it nor was known to it ends these as well.
    """

    def __init__(self, ancestry: Ancestry, futures: Sequence[int], first: EntryId) -> None:
        self._ancestry: Final = ancestry
        self._first: Final = first
        self._verdicts = [Verdict.NOT_ALLOWED] * len(ancestry.entries)
        self._given_terms: list[_GivenTerm] = []
        self._ranked: dict[ParticipantId, int] = defaultdict(int)
        """By person: who knew that they are owner or admin, by a term that was judged already."""
        self._endings: dict[ParticipantId, _EndingsOf] = defaultdict(_EndingsOf)
        self._by: dict[ParticipantId, int] = defaultdict(int)
        """By author bits of the entries that it takes a term for."""
        self._untried: dict[ParticipantId, int] = {}
        """Bits of those that were not looked at under a term of owner or admin."""
        self._untried_of_members: dict[ParticipantId, int] = {}
        """Of those that were not looked at under one of a member, and a member may do that."""
        self._futures: Final = futures
        self._after_leaving: Sequence[int] = ()
        self._own_revokes: dict[tuple[ParticipantId, EntryId], list[int]] = defaultdict(list)
        self._invites: dict[EntryId, tuple[Invite, Term]] = {}
        """Each that counts, and the term that it was made under."""
        self._unrevoked: dict[EntryId, int] = {}
        """By invitation, if it was revoked: bits of what all knew who did."""
        self._uses: dict[EntryId, int] = defaultdict(int)
        self._as_members = 0
        """Bits of the entries that count under a member's term."""
        self._times: Counter[_Done] = Counter()
        self._inviters: list[Role] | None = None

    def run(self) -> Judgement:
        self._decide_without_terms()
        for term in sorted(self._candidates(), key=lambda term: term.rank):
            if self._is_given(term):
                given = self._given(term)
                self._given_terms.append(given)
                self._judge_under(given)
                if term.role is not Role.MEMBER:
                    self._ranked[term.who] |= given.acted
        return Judgement(
            verdicts=tuple(self._verdicts),
            endings=reduce(or_, (given.ends for given in self._given_terms), 0),
            terms=tuple(given.term for given in self._given_terms if not given.ends),
            ever=frozenset(given.term.who for given in self._given_terms),
            invites=self._invites,
            uses=self._uses,
            revoked=frozenset(self._unrevoked),
            times=self._times,
        )

    def _decide_without_terms(self) -> None:
        """The shape of the graph, and what people do to themselves."""
        for number, entry in enumerate(self._ancestry.entries):
            if self._ancestry.backdated[number]:
                self._verdicts[number] = Verdict.BACKDATED
            elif isinstance(entry.act, Unsupported):
                self._verdicts[number] = Verdict.UNSUPPORTED
            elif isinstance(entry.act, Create):
                is_first = entry.entry_id == self._first
                self._verdicts[number] = Verdict.COUNTS if is_first else Verdict.NOT_THE_FIRST
            elif isinstance(entry.act, Remove | Demote) and entry.act.member == entry.author:
                self._verdicts[number] = Verdict.COUNTS
                endings = self._endings[entry.author]
                is_removal = isinstance(entry.act, Remove)
                self._end(endings.own_removals if is_removal else endings.own_demotions, number)
            else:
                self._by[entry.author] |= 1 << number
                if isinstance(entry.act, Revoke):
                    self._own_revokes[entry.author, entry.act.invitation].append(number)
        leaves = {who: endings.own_removals.bits for who, endings in self._endings.items()}
        self._after_leaving = self._ancestry.after(leaves, self._by, self._futures)
        self._untried.update(self._by)

    def _end(self, endings: _Endings, number: int) -> None:
        endings.add(number, self._ancestry.pasts[number], self._futures[number])

    # --- terms ----------------------------------------------------------------------------------

    def _candidates(self) -> Iterator[Term]:
        for number, entry in enumerate(self._ancestry.entries):
            match entry.act:
                case Create():
                    yield _term(Role.OWNER, entry.author, number, entry)
                    yield _term(Role.MEMBER, entry.author, number, entry)
                case Promote(member=member):
                    yield _term(Role.ADMIN, member, number, entry)
                    yield _term(Role.MEMBER, member, number, entry)
                case Add(member=member):
                    yield _term(Role.MEMBER, member, number, entry)
                case EndLink(members=members):
                    for member in sorted(members):
                        yield _term(Role.MEMBER, member, number, entry)
                case _:
                    pass

    def _is_given(self, term: Term) -> bool:
        """Whether its entry counts, which is decided: whoever made that ranks higher.

        An invitation's uses are counted here, in the order of admissions.
        """
        if self._verdicts[term.number] is not Verdict.COUNTS:
            return False
        act = self._ancestry.entries[term.number].act
        if not isinstance(act, Add) or act.invitation is None:
            return True
        refusal = self._refusal(act.invitation, term.number)
        if refusal is not None:
            self._verdicts[term.number] = refusal
            return False
        self._uses[act.invitation] += 1
        return True

    def _refusal(self, invitation: EntryId, number: int) -> Verdict | None:
        """Of an admission, entry ``number``, by an invitation."""
        ancestry = self._ancestry
        made = ancestry.number(invitation)
        invite, _ = self._invites.get(invitation, (None, None))
        if made is None or invite is None or not ancestry.knew(number, made):
            return Verdict.NO_INVITATION
        is_own = ancestry.entries[made].author == ancestry.entries[number].author
        if not is_own and self._as_members >> number & 1:
            return Verdict.NOT_ALLOWED
        if ancestry.entries[number].sent_ms > invite.expires_ms:
            return Verdict.EXPIRED
        if not self._unrevoked.get(invitation, -1) >> number & 1:
            return Verdict.REVOKED
        return Verdict.SPENT if self._uses[invitation] >= invite.uses else None

    def _given(self, term: Term) -> _GivenTerm:
        """Whatever ends it ranks higher, so all that is decided by now."""
        past, future = self._ancestry.pasts[term.number], self._futures[term.number]
        endings = self._endings[term.who]
        ends, acted, stands = 0, future, -1
        for by_others in endings.by_others(term.role):
            ends |= by_others.bits & ~past
            acted &= by_others.known_as_to(past)
            stands &= by_others.ordered
        own = endings.own(term.role)
        if isinstance(self._ancestry.entries[term.number].act, Promote):
            for each in own:
                ends |= each.bits & ~past
                acted &= each.known_as_to(past)
        else:
            after_it = reduce(or_, (each.bits for each in own)) & future
            ends |= after_it
            if term.role is Role.MEMBER:
                acted &= ~self._after_leaving[term.number]
            else:
                acted &= ~reduce(or_, (self._futures[number] for number in _bits(after_it)), 0)
        return _GivenTerm(term=term, ends=ends, acted=acted, stands=stands)

    # --- entries --------------------------------------------------------------------------------

    def _judge_under(self, given: _GivenTerm) -> None:
        """Whatever its holder did knowing of it, and of no end of it."""
        is_member, who = given.term.role is Role.MEMBER, given.term.who
        untried = self._untried_of_members if is_member else self._untried
        if who not in untried:
            untried[who] = self._left_to_members(who) if is_member else 0
        tried = untried[who] & given.acted
        untried[who] &= ~tried
        for number in sorted(_bits(tried), key=self._position):
            self._verdicts[number] = self._verdict(given, number)
            if self._verdicts[number] is Verdict.COUNTS:
                self._count(number, given.term)
                self._as_members |= is_member << number
                if is_member and isinstance(self._ancestry.entries[number].act, Invite):
                    self._judge_revokes(given, number)

    def _left_to_members(self, who: ParticipantId) -> int:
        """Bits of what they did that a member may do, and that does not count already."""
        counts = Verdict.COUNTS
        left = (
            1 << number
            for number in _bits(self._by.get(who, 0))
            if self._verdicts[number] is not counts and self._may_member(number)
        )
        return reduce(or_, left, 0)

    def _judge_revokes(self, given: _GivenTerm, invite: int) -> None:
        """A member may revoke what they made under the same term."""
        invitation, who = self._ancestry.entries[invite].entry_id, given.term.who
        for number in self._own_revokes.get((who, invitation), ()):
            is_known = self._ancestry.knew(number, invite)
            is_decided = self._verdicts[number] is Verdict.COUNTS
            if is_decided or not is_known or not given.acted >> number & 1:
                continue
            stands = given.stands >> number & 1
            self._verdicts[number] = Verdict.COUNTS if stands else Verdict.VOID
            if stands:
                self._count(number, given.term)

    def _verdict(self, given: _GivenTerm, number: int) -> Verdict:
        entry = self._ancestry.entries[number]
        if LEAST_ROLE[type(entry.act)] > max(given.term.role, Role.ADMIN):
            return Verdict.NOT_ALLOWED  # What a member may do is decided before.
        if self._is_outranked(entry, number):
            return Verdict.OUTRANKED
        if not given.stands >> number & 1:
            return Verdict.VOID
        done = done_by(entry)
        is_too_often = done is not None and self._times[done] >= MAX_REPEATS
        return Verdict.TOO_OFTEN if is_too_often else Verdict.COUNTS

    def _position(self, number: int) -> tuple[int, EntryId]:
        entry = self._ancestry.entries[number]
        return entry.lamport_timestamp, entry.entry_id

    def _may_member(self, number: int) -> bool:
        act = self._ancestry.entries[number].act
        if isinstance(act, Add | Invite):
            return self._least_inviter(number) <= Role.MEMBER
        return LEAST_ROLE[type(act)] <= Role.MEMBER

    def _least_inviter(self, number: int) -> Role:
        """As the newest ``SetInviters`` says that the author knew.

        Only admins set it, and whatever admins did is decided before the first member's admission.
        """
        if self._inviters is None:
            self._inviters = _inherited(self._ancestry, self._verdicts)
        return self._inviters[number]

    def _is_outranked(self, entry: Entry, number: int) -> bool:
        match entry.act:
            case Remove(member=other) | Demote(member=other) | DeleteMessage(author=other):
                return bool(self._ranked.get(other, 0) >> number & 1)
            case _:
                return False

    def _count(self, number: int, term: Term) -> None:
        entry = self._ancestry.entries[number]
        done = done_by(entry)
        if done is not None:
            self._times[done] += 1
        match entry.act:
            case Remove(member=member):
                self._end(self._endings[member].removals, number)
            case Demote(member=member):
                self._end(self._endings[member].demotions, number)
            case Invite() as act:
                self._invites[entry.entry_id] = (act, term)
            case Revoke(invitation=invitation):
                past = self._ancestry.pasts[number]
                self._unrevoked[invitation] = self._unrevoked.get(invitation, -1) & past
            case _:
                pass


def done_by(entry: Entry) -> _Done | None:
    """What counts only MAX_REPEATS times."""
    match entry.act:
        case Add(member=member) | Promote(member=member):
            return entry.author, type(entry.act), member
        case Remove(member=member) | Demote(member=member):
            return entry.author, type(entry.act), member
        case _:
            return None


def _bits(value: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while value:
        lowest = value & -value
        yield lowest.bit_length() - 1
        value ^= lowest


def _inherited(ancestry: Ancestry, verdicts: list[Verdict]) -> list[Role]:
    """For each entry the role that the newest ``SetInviters`` in its past asks for."""
    none: Inviters = (-1, EntryId(""), LEAST_ROLE[Add])

    def said(number: int) -> Inviters:
        entry = ancestry.entries[number]
        if isinstance(entry.act, SetInviters) and verdicts[number] is Verdict.COUNTS:
            return entry.lamport_timestamp, entry.entry_id, entry.act.least
        return none

    return [role for _, _, role in ancestry.inherited(said, none)]


def _term(role: Role, who: ParticipantId, number: int, entry: Entry) -> Term:
    rank = (-role, entry.lamport_timestamp, entry.entry_id)
    return Term(rank=rank, who=who, role=role, number=number)
