"""A group's epochs, as its log has them: who may hold which key, and which are good to send in.

Keys and wraps are elsewhere; here an epoch is the commitment to its key.  The log says who was
given it: whom its ``MakeEpoch`` entries name, their authors, and whoever an ``Add`` lets read it.
Honest members wrap it for nobody else.  Here, every such entry is believed, whether it counts or
not: somebody may have acted on it before it was known to be void.  docs/epochs.md has the rules.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import Final

from msgspec import Struct

from engine.core.admin_log.acts import Add, EntryId, MakeEpoch
from engine.core.admin_log.ancestry import Ancestry
from engine.core.admin_log.judging import Judgement, Term, Verdict
from engine.core.ids import ParticipantId, UnixMs

EPOCH_ID_BYTES: Final = 8
"""Of a commitment: what envelopes name an epoch by."""
MAX_EPOCHS: Final = 2_000
"""Any member can make epochs without end, and each costs as much as there are members."""


class Epoch(Struct, frozen=True, kw_only=True):
    commitment: bytes
    entry_id: EntryId
    """Of the earliest entry that counts and names it, which is its place in the order."""
    lamport_timestamp: int
    made_by: ParticipantId
    made_ms: UnixMs
    """By the clock of its author, who may say what they like."""
    given: frozenset[ParticipantId]
    """Who may hold the key, as far as the log says."""
    is_good: bool
    """Good to send in: all of ``given`` are members now."""
    lacking: frozenset[ParticipantId]
    """Members who were not given the key of an epoch that is good."""
    is_withheld: bool
    """From some of ``lacking`` it was kept on purpose: they were admitted by people who knew of it.
    """


def epochs_of(
    ancestry: Ancestry, judgement: Judgement, members: Collection[ParticipantId]
) -> tuple[Epoch, ...]:
    """Those that an entry that counts names, the newest first, MAX_EPOCHS at most."""
    namings = _namings(ancestry, judgement)
    readers = _readers(ancestry, judgement, namings)
    terms: defaultdict[ParticipantId, list[Term]] = defaultdict(list)
    for term in judgement.terms:
        terms[term.who].append(term)
    now = frozenset(members)
    ids = Counter(commitment[:EPOCH_ID_BYTES] for commitment in namings)
    found = []
    for commitment, first in _newest(ancestry, judgement, namings):
        numbers = namings[commitment]
        bits = reduce(or_, (1 << number for number in numbers))
        given = _given(ancestry, numbers).union(
            [who for number in numbers for who, readable in readers if readable[number] == "1"]
        )
        is_good = given <= now and ids[commitment[:EPOCH_ID_BYTES]] == 1
        lacking = now - given if is_good else frozenset()
        entry = ancestry.entries[first]
        epoch = Epoch(
            commitment=commitment,
            entry_id=entry.entry_id,
            lamport_timestamp=entry.lamport_timestamp,
            made_by=entry.author,
            made_ms=entry.sent_ms,
            given=given,
            is_good=is_good,
            lacking=lacking,
            is_withheld=any(
                all(ancestry.pasts[term.number] & bits for term in terms[who]) for who in lacking
            ),
        )
        found.append(epoch)
    return tuple(found)


def _namings(ancestry: Ancestry, judgement: Judgement) -> dict[bytes, list[int]]:
    """By commitment the numbers of the entries with it, those that do not count, too."""
    found: dict[bytes, list[int]] = {}
    for number, entry in enumerate(ancestry.entries):
        is_placed = judgement.verdicts[number] is not Verdict.BACKDATED
        if isinstance(entry.act, MakeEpoch) and is_placed:
            found.setdefault(entry.act.commitment, []).append(number)
    return found


def _readers(
    ancestry: Ancestry, judgement: Judgement, namings: dict[bytes, list[int]]
) -> list[tuple[ParticipantId, str]]:
    """Whom an ``Add`` lets read epochs; "1" at the number of each entry that names one of these.

    Looking at a place of a string is quicker than at a bit of a large integer, by far.
    """
    numbers = sorted(
        (number for each in namings.values() for number in each),
        key=lambda number: ancestry.entries[number].lamport_timestamp,
    )
    lamports = [ancestry.entries[number].lamport_timestamp for number in numbers]
    bits = [1 << number for number in reversed(numbers)]
    from_here_on = [*reversed(list(accumulate(bits, or_))), 0]
    readers: defaultdict[ParticipantId, int] = defaultdict(int)
    for number, entry in enumerate(ancestry.entries):
        if not isinstance(entry.act, Add) or entry.act.reads_from is None:
            continue
        if judgement.verdicts[number] is not Verdict.BACKDATED:
            since = from_here_on[bisect_left(lamports, entry.act.reads_from)]
            readers[entry.act.member] |= ancestry.pasts[number] & since
    count = len(ancestry.entries)
    return [(who, f"{readable:0{count}b}"[::-1]) for who, readable in readers.items()]


def _newest(
    ancestry: Ancestry, judgement: Judgement, namings: Mapping[bytes, Iterable[int]]
) -> list[tuple[bytes, int]]:
    """Commitments, and the number of the earliest entry that counts and names it; newest first."""
    entries = ancestry.entries

    def place(number: int) -> tuple[int, EntryId]:
        return entries[number].lamport_timestamp, entries[number].entry_id

    firsts = (
        (commitment, min(counting, key=place))
        for commitment, numbers in namings.items()
        if (counting := [n for n in numbers if judgement.verdicts[n] is Verdict.COUNTS])
    )
    return sorted(firsts, key=lambda first: place(first[1]), reverse=True)[:MAX_EPOCHS]


def _given(ancestry: Ancestry, numbers: Iterable[int]) -> frozenset[ParticipantId]:
    """Those whom the entries name, and their authors, who have to have the key."""
    found: frozenset[ParticipantId] = frozenset()
    for number in numbers:
        entry = ancestry.entries[number]
        if isinstance(entry.act, MakeEpoch):
            found |= entry.act.recipients | {entry.author}
    return found
