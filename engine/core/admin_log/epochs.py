"""A group's epochs, as its log has them: who may hold which key, and which are good to send in.

Keys and wraps are elsewhere; here an epoch is the commitment to its key.  The log says who was
given it: whom its ``MakeEpoch`` entries name, their authors, and whoever an ``Add`` lets read it.
Honest members wrap it for nobody else.  Here, every such entry is believed, whether it counts or
not: somebody may have acted on it before it was known to be void.  docs/epochs.md has the rules.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import Final

from msgspec import Struct

from engine.core.admin_log.acts import Add, EntryId, MakeEpoch
from engine.core.admin_log.ancestry import Ancestry
from engine.core.admin_log.judging import Judgement, Term, Verdict
from engine.core.ids import ParticipantId

EPOCH_ID_BYTES: Final = 8
"""Of a commitment: what envelopes name an epoch by."""


class Epoch(Struct, frozen=True, kw_only=True):
    commitment: bytes
    entry_id: EntryId
    """Of the earliest entry that counts and names it, which is its place in the order."""
    lamport_timestamp: int
    made_by: ParticipantId
    given: frozenset[ParticipantId]
    """Who may hold the key, as far as the log says."""
    is_good: bool
    """Good to send in: all of ``given`` are members now."""
    lacking: frozenset[ParticipantId]
    """Members who were not given the key of an epoch that is good."""
    may_give: frozenset[ParticipantId]
    """Those of ``lacking`` who were admitted by somebody who did not know of the epoch.  From the
    others it was kept on purpose."""


def epochs_of(
    ancestry: Ancestry, judgement: Judgement, members: Collection[ParticipantId]
) -> tuple[Epoch, ...]:
    """Those that an entry that counts names, the newest first."""
    namings = _namings(ancestry, judgement)
    readers = _readers(ancestry, judgement, namings)
    terms: defaultdict[ParticipantId, list[Term]] = defaultdict(list)
    for term in judgement.terms:
        terms[term.who].append(term)
    now = frozenset(members)
    ids = Counter(commitment[:EPOCH_ID_BYTES] for commitment in namings)
    found = []
    for commitment, numbers in namings.items():
        first = _first(ancestry, judgement, numbers)
        if first is None:
            continue
        bits = reduce(or_, (1 << number for number in numbers))
        given = _given(ancestry, numbers).union(
            [who for who, readable in readers.items() if readable & bits]
        )
        is_good = given <= now and ids[commitment[:EPOCH_ID_BYTES]] == 1
        lacking = now - given if is_good else frozenset()
        entry = ancestry.entries[first]
        epoch = Epoch(
            commitment=commitment,
            entry_id=entry.entry_id,
            lamport_timestamp=entry.lamport_timestamp,
            made_by=entry.author,
            given=given,
            is_good=is_good,
            lacking=lacking,
            may_give=frozenset(
                who
                for who in lacking
                if any(not ancestry.pasts[term.number] & bits for term in terms[who])
            ),
        )
        found.append(epoch)
    found.sort(key=lambda epoch: (epoch.lamport_timestamp, epoch.entry_id), reverse=True)
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
) -> dict[ParticipantId, int]:
    """By person the bits of the entries whose epochs an ``Add`` lets them read."""
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
    return readers


def _first(ancestry: Ancestry, judgement: Judgement, numbers: Iterable[int]) -> int | None:
    """The earliest of those that count."""
    counting = [n for n in numbers if judgement.verdicts[n] is Verdict.COUNTS]
    entries = ancestry.entries
    return min(
        counting, key=lambda n: (entries[n].lamport_timestamp, entries[n].entry_id), default=None
    )


def _given(ancestry: Ancestry, numbers: Iterable[int]) -> frozenset[ParticipantId]:
    """Those whom the entries name, and their authors, who have to have the key."""
    found: frozenset[ParticipantId] = frozenset()
    for number in numbers:
        entry = ancestry.entries[number]
        if isinstance(entry.act, MakeEpoch):
            found |= entry.act.recipients | {entry.author}
    return found
