"""A group's epochs, as its log has them: who may hold which key, and which are good to send in.

Keys and wraps are elsewhere; here an epoch is the commitment to its key.  The log says who was
given it: whom its entries name (``epoch_in``), their authors, and whoever an ``Add`` lets read it.
Here, every such entry is believed, whether it counts or not: somebody may have acted on it before
it was known to be void.  Honest members wrap it for ``readers`` alone.  docs/epochs.md has the
rules.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import compress
from operator import or_
from typing import Final

from msgspec import Struct

from engine.core.admin_log.acts import Add, EntryId, epoch_in
from engine.core.admin_log.ancestry import Ancestry
from engine.core.admin_log.judging import Judgement, Verdict
from engine.core.admin_log.readers import ones, readers_of
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
    """Who may hold the key, whoever said so."""
    readers: frozenset[ParticipantId]
    """Those of them to whom honest members give it: ``engine.core.admin_log.readers``."""
    is_good: bool
    """Good to send in: all of ``given`` are members now."""
    is_complete: bool
    """It is good, and every member is among its readers."""
    is_withheld: bool
    """It is good, and was kept on purpose from some members: they were admitted by people who knew
    of it."""


def epochs_of(
    ancestry: Ancestry,
    judgement: Judgement,
    futures: Sequence[int],
    members: Collection[ParticipantId],
) -> tuple[Epoch, ...]:
    """Those that an entry that counts names, the newest first, MAX_EPOCHS at most.

    ``futures``: those of ``ancestry``.
    """
    namings = _namings(ancestry, judgement)
    let_read = _let_read(ancestry, judgement, futures, namings)
    terms, holders = _terms(ancestry, judgement)
    now = frozenset(members)
    ids = Counter(commitment[:EPOCH_ID_BYTES] for commitment in namings)
    newest = _newest(ancestry, judgement, namings)
    readers = readers_of(ancestry, judgement, futures, {name: namings[name] for name, _ in newest})
    found = []
    for commitment, first in newest:
        numbers = namings[commitment]
        given = _given(ancestry, numbers) | let_read(numbers)
        is_good = given <= now and ids[commitment[:EPOCH_ID_BYTES]] == 1
        knew = reduce(or_, (futures[number] for number in numbers))
        entry = ancestry.entries[first]
        epoch = Epoch(
            commitment=commitment,
            entry_id=entry.entry_id,
            lamport_timestamp=entry.lamport_timestamp,
            made_by=entry.author,
            made_ms=entry.sent_ms,
            given=given,
            readers=readers[commitment],
            is_good=is_good,
            is_complete=is_good and now <= readers[commitment],
            is_withheld=is_good
            and bool(terms & knew)
            and not now - readers[commitment] <= _held(holders, terms & ~knew),
        )
        found.append(epoch)
    return tuple(found)


def _namings(ancestry: Ancestry, judgement: Judgement) -> dict[bytes, list[int]]:
    """By commitment the numbers of the entries with it, those that do not count, too."""
    found: dict[bytes, list[int]] = {}
    for number, entry in enumerate(ancestry.entries):
        is_placed = judgement.verdicts[number] is not Verdict.BACKDATED
        epoch = epoch_in(entry.act)
        if epoch is not None and is_placed:
            found.setdefault(epoch.commitment, []).append(number)
    return found


def _let_read(
    ancestry: Ancestry,
    judgement: Judgement,
    futures: Sequence[int],
    namings: Mapping[bytes, Iterable[int]],
) -> Callable[[Iterable[int]], frozenset[ParticipantId]]:
    """Whom an ``Add`` lets read the epoch that entries of these numbers name."""
    named: list[ParticipantId | None] = [None] * len(ancestry.entries)
    admissions = []
    for number, entry in enumerate(ancestry.entries):
        is_placed = judgement.verdicts[number] is not Verdict.BACKDATED
        if isinstance(entry.act, Add) and entry.act.reads_from is not None and is_placed:
            named[number] = entry.act.member
            admissions.append((entry.act.reads_from, number))
    admissions.sort(reverse=True)
    reading, by_naming = 0, {}
    for lamport, number in sorted(
        (ancestry.entries[number].lamport_timestamp, number)
        for numbers in namings.values()
        for number in numbers
    ):
        while admissions and admissions[-1][0] <= lamport:
            reading |= 1 << admissions.pop()[1]
        by_naming[number] = reading & futures[number]
    return lambda numbers: _chosen(named, reduce(or_, (by_naming[each] for each in numbers)))


def _terms(
    ancestry: Ancestry, judgement: Judgement
) -> tuple[int, Sequence[tuple[ParticipantId, ...]]]:
    """Bits of the entries that gave the members their roles, and to whom each did."""
    bits = 0
    holders: list[tuple[ParticipantId, ...]] = [()] * len(ancestry.entries)
    for term in judgement.terms:
        bits |= 1 << term.number
        holders[term.number] += (term.who,)
    return bits, holders


def _held(holders: Sequence[tuple[ParticipantId, ...]], bits: int) -> frozenset[ParticipantId]:
    return frozenset(who for people in compress(holders, ones(bits)) for who in people)


def _chosen(people: Iterable[ParticipantId | None], bits: int) -> frozenset[ParticipantId]:
    """Those at the numbers of the bits that are set."""
    if not bits:
        return frozenset()
    return frozenset(who for who in compress(people, ones(bits)) if who is not None)


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
    found: set[ParticipantId] = set()
    for number in numbers:
        entry = ancestry.entries[number]
        epoch = epoch_in(entry.act)
        if epoch is not None:
            found.update(epoch.recipients, (entry.author,))
    return frozenset(found)
