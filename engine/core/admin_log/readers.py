"""Who may be given the key of an epoch: whom honest members wrap it for.

Every member knows an epoch's commitment, and can write an entry that names themselves beside it.
So that newcomers read back as far as the inviter chose, and not as far as they like, the key is for

1. whom the entry names that made it: the one which knew no other entry with the commitment.  If
   there are several, all but one are by liars, so only whom all of them name counts;
2. whom any entry with it names, if somebody let them in who had not heard of it;
3. whom an ``Add`` lets read it, if that knew of it, and its author may have the key by entries that
   come before.

Only entries that count are believed; "before" is the order of the log.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import accumulate, compress
from operator import or_
from typing import Final, NamedTuple, TypeAlias

from engine.core.admin_log.acts import Add, Entry, epoch_in
from engine.core.admin_log.ancestry import Ancestry
from engine.core.admin_log.judging import Judgement, Verdict
from engine.core.admin_log.room import Place, place_of
from engine.core.ids import ParticipantId

_People: TypeAlias = frozenset[ParticipantId]
_ZEROS_AND_ONES: Final = bytes.maketrans(b"01", bytes([0, 1]))


def ones(bits: int, width: int = 1) -> bytes:
    """A byte for each bit, the lowest first; ``width``: at least so many."""
    return f"{bits:0{width}b}"[::-1].encode().translate(_ZEROS_AND_ONES)


def readers_of(
    ancestry: Ancestry,
    judgement: Judgement,
    futures: Sequence[int],
    namings: Mapping[bytes, Iterable[int]],
) -> dict[bytes, _People]:
    """By commitment; ``namings``: the entries with it, of which at least one counts."""
    counting = {
        commitment: [n for n in numbers if judgement.verdicts[n] is Verdict.COUNTS]
        for commitment, numbers in namings.items()
    }
    terms: defaultdict[ParticipantId, int] = defaultdict(int)
    for term in judgement.terms:
        terms[term.who] |= 1 << term.number
    named = {
        commitment: _named(ancestry, numbers, futures, terms)
        for commitment, numbers in counting.items()
    }
    let_in = _let_in(ancestry, judgement, counting, named)
    return {
        commitment: people if people >= let_in[commitment] else people | let_in[commitment]
        for commitment, people in named.items()
    }


def _named(
    ancestry: Ancestry,
    numbers: Sequence[int],
    futures: Sequence[int],
    terms: Mapping[ParticipantId, int],
) -> _People:
    """By rules 1 and 2."""
    if len(numbers) == 1:
        return _recipients(ancestry.entries[numbers[0]])
    known = reduce(or_, (1 << number for number in numbers))
    recipients = {number: _recipients(ancestry.entries[number]) for number in numbers}
    first = (recipients[number] for number in numbers if not ancestry.pasts[number] & known)
    made_for = frozenset.intersection(*first)
    others = frozenset[ParticipantId]().union(*recipients.values()) - made_for
    if not others:
        return made_for
    heard = reduce(or_, (futures[number] for number in numbers))
    return made_for.union(who for who in others if terms.get(who, 0) & ~heard)


def _recipients(entry: Entry) -> _People:
    """The author has to have the key, too."""
    epoch = epoch_in(entry.act)
    if epoch is None:
        return frozenset()
    named = epoch.recipients
    return named if entry.author in named else named | {entry.author}


class _Admission(NamedTuple):
    place: Place
    author: ParticipantId
    member: ParticipantId
    reads_from: int
    number: int


def _let_in(
    ancestry: Ancestry,
    judgement: Judgement,
    counting: Mapping[bytes, Sequence[int]],
    named: Mapping[bytes, _People],
) -> dict[bytes, _People]:
    """By rule 3.  What is said of all epochs at once are bits, one for each."""
    entries = ancestry.entries
    admissions = [
        _Admission(place_of(entry), entry.author, entry.act.member, entry.act.reads_from, number)
        for number, entry in enumerate(entries)
        if isinstance(entry.act, Add)
        and entry.act.reads_from is not None
        and judgement.verdicts[number] is Verdict.COUNTS
    ]
    readable = dict.fromkeys((one.author for one in admissions), 0)
    epochs, begun = dict[int, int](), list[tuple[int, int]]()
    for place, (commitment, numbers) in enumerate(counting.items()):
        bit = 1 << place
        epochs.update(dict.fromkeys(numbers, bit))
        begun.append((min(entries[number].lamport_timestamp for number in numbers), bit))
        for who in readable.keys() & named[commitment]:
            readable[who] |= bit
    known = ancestry.known(lambda number: epochs.get(number, 0))
    since = _Since(begun)
    people, rows = list[ParticipantId](), list[bytes]()
    for one in sorted(admissions):
        given = readable[one.author] & known[one.number] & since(one.reads_from)
        if one.member in readable:
            readable[one.member] |= given
        if given:
            people.append(one.member)
            rows.append(ones(given, len(counting)))
    columns = zip(*rows, strict=True) if rows else [()] * len(counting)
    return {
        commitment: frozenset(compress(people, column))
        for commitment, column in zip(counting, columns, strict=True)
    }


class _Since:
    """Bits of the epochs that began at a Lamport timestamp or later."""

    def __init__(self, begun: Iterable[tuple[int, int]]) -> None:
        """Lamport timestamps, each with a bit."""
        newest_first = sorted(begun, reverse=True)
        self._lamports = [-lamport for lamport, _ in newest_first]
        bits = (bit for _, bit in newest_first)
        self._bits: list[int] = [0, *accumulate(bits, int.__or__)]

    def __call__(self, lamport: int) -> int:
        return self._bits[bisect_right(self._lamports, -lamport)]
