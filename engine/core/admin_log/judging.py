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
from collections.abc import Iterator, Mapping
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
from engine.core.admin_log.ancestry import Ancestry
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


def judge(ancestry: Ancestry, first: EntryId) -> Judgement:
    """``first``: id of the ``Create`` that the group began with."""
    return _Judging(ancestry, first).run()


class _Endings(Struct):
    """Entries that count and end terms of one person: bits of their numbers."""

    removals: int = 0
    demotions: int = 0
    own: list[tuple[int, bool]] = []
    """Of those by the person: number, and whether it is a removal."""


class _GivenTerm(Struct, frozen=True, kw_only=True):
    term: Term
    ends: int
    """Bits of the entries that end it: who knew one of them did not act under it."""
    known_to_all: int
    """Bits of what all of these knew, except those of the holder's own: the rest is void."""


class _Judging:
    def __init__(self, ancestry: Ancestry, first: EntryId) -> None:
        self._ancestry: Final = ancestry
        self._first: Final = first
        self._verdicts = [Verdict.NOT_ALLOWED] * len(ancestry.entries)
        self._terms: dict[ParticipantId, list[_GivenTerm]] = defaultdict(list)
        self._endings: dict[ParticipantId, _Endings] = defaultdict(_Endings)
        self._undecided: dict[ParticipantId, list[int]] = defaultdict(list)
        """Entries by author that no term has decided yet."""
        self._invites: dict[int | None, tuple[Invite, Term]] = {}
        """Each that counts, by its number, and the term that it was made under."""
        self._revocations: dict[EntryId, list[int]] = defaultdict(list)
        self._uses: dict[EntryId, int] = defaultdict(int)
        self._times: Counter[_Done] = Counter()
        self._inviters: list[Role] | None = None

    def run(self) -> Judgement:
        self._decide_without_terms()
        for term in sorted(self._candidates(), key=lambda term: term.rank):
            if self._is_given(term):
                given = self._given(term)
                self._terms[term.who].append(given)
                self._judge_under(given)
        held = [given for terms in self._terms.values() for given in terms]
        still = (given.term for given in held if not given.ends)
        return Judgement(
            verdicts=tuple(self._verdicts),
            endings=reduce(or_, (given.ends for given in held), 0),
            terms=tuple(sorted(still, key=lambda term: term.rank)),
            ever=frozenset(who for who, terms in self._terms.items() if terms),
            invites={
                self._ancestry.entries[number].entry_id: invite
                for number, invite in self._invites.items()
                if number is not None
            },
            uses=self._uses,
            revoked=frozenset(self._revocations),
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
                own = self._endings[entry.author].own
                own.append((number, isinstance(entry.act, Remove)))
            else:
                self._undecided[entry.author].append(number)
        for numbers in self._undecided.values():
            numbers.sort(key=self._position)

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
        invite, _ = self._invites.get(made, (None, None))
        if made is None or invite is None or not ancestry.knew(number, made):
            return Verdict.NO_INVITATION
        if ancestry.entries[number].sent_ms > invite.expires_ms:
            return Verdict.EXPIRED
        revocations = self._revocations.get(invitation, ())
        if not all(ancestry.knew(revoked, number) for revoked in revocations):
            return Verdict.REVOKED
        return Verdict.SPENT if self._uses[invitation] >= invite.uses else None

    def _given(self, term: Term) -> _GivenTerm:
        """Whatever ends it ranks higher, so all that is decided by now."""
        pasts, endings = self._ancestry.pasts, self._endings[term.who]
        by_others = endings.removals
        if term.role is not Role.MEMBER:
            by_others |= endings.demotions
        by_others &= ~pasts[term.number]
        own = 0
        is_promotion = isinstance(self._ancestry.entries[term.number].act, Promote)
        for number, is_removal in endings.own:
            if is_removal or term.role is not Role.MEMBER:
                was_known = pasts[number] >> term.number & 1
                is_unaware = is_promotion and not pasts[term.number] >> number & 1
                own |= (was_known or is_unaware) << number
        known_to_all = -1
        for number in _bits(by_others):
            known_to_all &= pasts[number]
        return _GivenTerm(term=term, ends=by_others | own, known_to_all=known_to_all)

    # --- entries --------------------------------------------------------------------------------

    def _judge_under(self, given: _GivenTerm) -> None:
        """Whatever its holder did knowing of it, and of no end of it."""
        author = given.term.who
        undecided = []
        for number in self._undecided[author]:
            verdict = Verdict.NOT_ALLOWED
            if self._was_held(given, number):
                verdict = self._verdict(given, number)
            if verdict is Verdict.COUNTS:
                self._count(number, given.term)
                continue
            undecided.append(number)
            if verdict is not Verdict.NOT_ALLOWED:
                self._verdicts[number] = verdict
        self._undecided[author] = undecided

    def _was_held(self, given: _GivenTerm, number: int) -> bool:
        """As far as the author of entry ``number`` knew."""
        its_bit = 1 << given.term.number
        return self._ancestry.pasts[number] & (its_bit | given.ends) == its_bit

    def _verdict(self, given: _GivenTerm, number: int) -> Verdict:
        entry = self._ancestry.entries[number]
        if given.term.role < self._least_role(given.term, entry, number):
            return Verdict.NOT_ALLOWED
        if self._is_outranked(given.term, entry, number):
            return Verdict.OUTRANKED
        if not given.known_to_all >> number & 1:
            return Verdict.VOID
        done = done_by(entry)
        is_too_often = done is not None and self._times[done] >= MAX_REPEATS
        return Verdict.TOO_OFTEN if is_too_often else Verdict.COUNTS

    def _position(self, number: int) -> tuple[int, EntryId]:
        entry = self._ancestry.entries[number]
        return entry.lamport_timestamp, entry.entry_id

    def _least_role(self, term: Term, entry: Entry, number: int) -> Role:
        act = entry.act
        if isinstance(act, Revoke):
            _, made_under = self._invites.get(self._ancestry.number(act.invitation), (None, None))
            if made_under == term:
                return Role.MEMBER
        if isinstance(act, Add | Invite) and term.role is Role.MEMBER:
            return self._least_inviter(number)
        return LEAST_ROLE[type(act)]

    def _least_inviter(self, number: int) -> Role:
        """As the newest ``SetInviters`` says that the author knew.

        Only admins set it, and whatever admins did is decided before the first member's admission.
        """
        if self._inviters is None:
            self._inviters = _inherited(self._ancestry, self._verdicts)
        return self._inviters[number]

    def _is_outranked(self, term: Term, entry: Entry, number: int) -> bool:
        match entry.act:
            case Remove(member=other) | Demote(member=other) | DeleteMessage(author=other):
                held = self._terms[other]
                return any(
                    one.term.rank < term.rank and self._was_held(one, number) for one in held
                )
            case _:
                return False

    def _count(self, number: int, term: Term) -> None:
        self._verdicts[number] = Verdict.COUNTS
        entry = self._ancestry.entries[number]
        done = done_by(entry)
        if done is not None:
            self._times[done] += 1
        match entry.act:
            case Remove(member=member):
                self._endings[member].removals |= 1 << number
            case Demote(member=member):
                self._endings[member].demotions |= 1 << number
            case Invite() as act:
                self._invites[number] = (act, term)
            case Revoke(invitation=invitation):
                self._revocations[invitation].append(number)
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
    newest: list[tuple[int, EntryId, Role]] = []
    for parents in ancestry.parents:
        best = (-1, EntryId(""), LEAST_ROLE[Add])
        for number in parents:
            named = ancestry.entries[number]
            best = max(best, newest[number])
            if isinstance(named.act, SetInviters) and verdicts[number] is Verdict.COUNTS:
                best = max(best, (named.lamport_timestamp, named.entry_id, named.act.least))
        newest.append(best)
    return [role for _, _, role in newest]


def _term(role: Role, who: ParticipantId, number: int, entry: Entry) -> Term:
    rank = (-role, entry.lamport_timestamp, entry.entry_id)
    return Term(rank=rank, who=who, role=role, number=number)
