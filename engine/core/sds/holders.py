"""Who holds our messages, how we know, and since when.

Beyond the specification's three states: the table that the user sees, reviewed until every other
member is known for certain to hold a message or 30 days have passed.  Certain is only what a member
signed (a causal history, holdings, a repair); a filter, or anybody unverified, says *maybe*.  A
state never moves backwards.  Messages of other people have no place here.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from engine.core.sds.bloom import base_hashes
from engine.core.sds.types import HeldByChanged, HolderEntry, SequenceRange
from engine.core.types import (
    AuthorSequence,
    HolderSource,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)


@dataclass(slots=True)
class _Own:
    """One of our messages under review."""

    lamport_timestamp: int
    hashes: tuple[int, int]
    author: AuthorSequence | None
    holders: dict[ParticipantId, HolderEntry] = field(default_factory=dict)


class _Sequences:
    """Our own sequence numbers under review, ascending; closed ones are swept out lazily."""

    __slots__ = ("ids", "numbers")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.ids: dict[int, MessageId] = {}

    def add(self, number: int, message_id: MessageId) -> None:
        if number in self.ids:
            return
        self.ids[number] = message_id
        self.numbers.insert(bisect_left(self.numbers, number), number)

    def close(self, number: int) -> None:
        self.ids.pop(number, None)
        if len(self.numbers) > 2 * len(self.ids) + 32:
            self.numbers = [number for number in self.numbers if number in self.ids]

    def within(self, item: SequenceRange) -> list[MessageId]:
        start = bisect_left(self.numbers, item.first)
        end = bisect_left(self.numbers, item.last + 1)
        return [self.ids[n] for n in self.numbers[start:end] if n in self.ids]


class HoldersTable:
    """Our messages that are not yet held by everybody, with their holders."""

    def __init__(
        self,
        participant_id: ParticipantId,
        *,
        members: frozenset[ParticipantId],
        holders: Iterable[HolderEntry] = (),
    ) -> None:
        self._others = members - {participant_id}
        self._me = participant_id
        self._open: dict[MessageId, _Own] = {}
        self._told: dict[ParticipantId, set[MessageId]] = {}
        """What each said about messages under review, certain or not."""
        self._sequences: dict[InstanceId, _Sequences] = {}
        self._restored: dict[MessageId, list[HolderEntry]] = {}
        for entry in holders:
            self._restored.setdefault(entry.message_id, []).append(entry)

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self._open

    def __len__(self) -> int:
        return len(self._open)

    def entries(self) -> Iterator[HolderEntry]:
        return (entry for own in self._open.values() for entry in own.holders.values())

    def restored_ids(self) -> Iterable[MessageId]:
        """Messages with saved holders, in no order; to be tracked at start."""
        return self._restored.keys()

    def track(
        self, message_id: MessageId, lamport_timestamp: int, author: AuthorSequence | None
    ) -> None:
        """Put one of our messages under review."""
        if message_id in self._open:
            return
        own = _Own(lamport_timestamp, base_hashes(message_id), author)
        for entry in self._restored.pop(message_id, ()):
            own.holders[entry.participant_id] = entry
            self._told.setdefault(entry.participant_id, set()).add(message_id)
        self._open[message_id] = own
        if author is not None:
            sequences = self._sequences.setdefault(author.instance_id, _Sequences())
            sequences.add(author.sequence, message_id)
        self._close_if_complete(message_id)

    def note(
        self,
        message_id: MessageId,
        participant_id: ParticipantId,
        source: HolderSource,
        *,
        now_ms: UnixMs,
        false_probability: float | None = None,
    ) -> HolderEntry | None:
        """Record evidence; returns the entry to save, None if it says nothing new."""
        own = self._open.get(message_id)
        if own is None or participant_id == self._me:
            return None
        known = own.holders.get(participant_id)
        certain = source is not HolderSource.BLOOM
        if known is not None and (known.source is not HolderSource.BLOOM or not certain):
            return None
        entry = HolderEntry(
            message_id=message_id,
            participant_id=participant_id,
            source=source,
            since_ms=now_ms,
            false_probability=false_probability,
        )
        own.holders[participant_id] = entry
        self._told.setdefault(participant_id, set()).add(message_id)
        return entry

    def take_event(self, message_id: MessageId) -> HeldByChanged:
        """What to tell about a message whose holders changed; complete ones leave the table."""
        own = self._open[message_id]
        entries = sorted(own.holders.values(), key=lambda entry: entry.participant_id)
        certain = tuple(e for e in entries if e.source is not HolderSource.BLOOM)
        maybe = tuple(e for e in entries if e.source is HolderSource.BLOOM)
        self._close_if_complete(message_id)
        return HeldByChanged(message_id=message_id, certain=certain, maybe=maybe)

    def within(self, instance_id: InstanceId, item: SequenceRange) -> list[MessageId]:
        """Our messages under review with these sequence numbers."""
        sequences = self._sequences.get(instance_id)
        return sequences.within(item) if sequences else []

    def without(
        self, participant_id: ParticipantId, count: int
    ) -> list[tuple[MessageId, tuple[int, int]]]:
        """Of the messages put under review last, those that this participant is not known to hold.

        With their bloom hashes.
        """
        told = self._told.get(participant_id, ())
        newest = islice(reversed(self._open), count)
        wanted = [message_id for message_id in newest if message_id not in told]
        return [(message_id, self._open[message_id].hashes) for message_id in wanted]

    def untold(
        self, participant_id: ParticipantId, message_ids: Iterable[MessageId], *, certain: bool
    ) -> list[MessageId]:
        """Of these messages, those under review whose evidence this participant can better.

        ``certain``: by what it signed; otherwise only those of which it said nothing yet.
        """
        under_review = self._open
        if not under_review:
            return []
        if not certain:
            told = self._told.get(participant_id, ())
            return [item for item in message_ids if item in under_review and item not in told]
        found = [message_id for message_id in message_ids if message_id in under_review]
        return [
            message_id
            for message_id in found
            if (known := under_review[message_id].holders.get(participant_id)) is None
            or known.source is HolderSource.BLOOM
        ]

    def instances(self) -> Iterable[InstanceId]:
        return self._sequences.keys()

    def members_changed(self, members: frozenset[ParticipantId]) -> None:
        """Who must hold a message before it is complete."""
        self._others = members - {self._me}
        for message_id in list(self._open):
            self._close_if_complete(message_id)

    def expire(self, before_lamport: int) -> None:
        """Stop reviewing what is too old, oldest first."""
        while self._open:
            message_id, own = next(iter(self._open.items()))
            if own.lamport_timestamp >= before_lamport:
                return
            self._close(message_id)

    def _close_if_complete(self, message_id: MessageId) -> None:
        holders = self._open[message_id].holders
        if not self._others or len(holders) < len(self._others):
            return
        for participant_id in self._others:
            entry = holders.get(participant_id)
            if entry is None or entry.source is HolderSource.BLOOM:
                return
        self._close(message_id)

    def _close(self, message_id: MessageId) -> None:
        own = self._open.pop(message_id)
        for participant_id in own.holders:
            told = self._told[participant_id]
            told.discard(message_id)
            if not told:
                del self._told[participant_id]
        author = own.author
        if author is not None:
            sequences = self._sequences[author.instance_id]
            sequences.close(author.sequence)
            if not sequences.ids:
                del self._sequences[author.instance_id]
