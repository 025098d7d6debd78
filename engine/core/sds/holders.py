"""Who holds our messages, how we know, and since when.

This table goes beyond the specification's three states.  The user sees it, and it is reviewed until
every other member certainly holds a message or 30 days have passed.  Only what a member signed is
certain (a causal history, holdings, a repair).  A filter, or an unverified member, gives *maybe*.
A state never moves backwards.  The table covers only our own messages.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import Final

from engine.core.ids import (
    AuthorSequence,
    HolderSource,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
)
from engine.core.sds.bloom import base_hashes
from engine.core.sds.vocabulary import HeldByChanged, HolderEntry, SequenceRange

_BLOOM: Final = HolderSource.BLOOM
MAYBE_HOLDERS: Final = 256
"""Per message: in an open channel anyone can use any number of names."""


class _Own:
    """One of our messages under review."""

    __slots__ = ("hashes", "holders", "lamport_timestamp")

    def __init__(self, lamport_timestamp: int, hashes: tuple[int, int]) -> None:
        self.lamport_timestamp = lamport_timestamp
        self.hashes = hashes
        self.holders: dict[ParticipantId, HolderEntry] = {}


_by_participant: Final = attrgetter("participant_id")


class _Sequences:
    """Our own sequence numbers, ascending; those no longer under review are removed lazily."""

    __slots__ = ("_under_review", "ids", "numbers")

    def __init__(self, under_review: Mapping[MessageId, _Own]) -> None:
        self._under_review = under_review
        self.numbers: list[int] = []
        self.ids: dict[int, MessageId] = {}

    def add(self, number: int, message_id: MessageId) -> None:
        ids, numbers, under_review = self.ids, self.numbers, self._under_review
        if ids.get(number) in under_review:
            return  # A copied profile used the number twice; the first counts.
        if not numbers or numbers[-1] < number:
            numbers.append(number)
        elif number not in ids:
            numbers.insert(bisect_left(numbers, number), number)
        ids[number] = message_id
        if len(numbers) > 2 * len(under_review) + 32:
            self.ids = {number: item for number, item in ids.items() if item in under_review}
            self.numbers = sorted(self.ids)

    def within(self, item: SequenceRange) -> list[MessageId]:
        start = bisect_left(self.numbers, item.first)
        end = bisect_left(self.numbers, item.last + 1)
        ids = (self.ids[number] for number in self.numbers[start:end])
        return [message_id for message_id in ids if message_id in self._under_review]


class HoldersTable:
    """Our messages that some member may not hold yet, with their holders."""

    def __init__(
        self,
        participant_id: ParticipantId,
        *,
        members: frozenset[ParticipantId],
        holders: Iterable[HolderEntry] = (),
    ) -> None:
        self._others = members - {participant_id}
        self._maybe_room = max(MAYBE_HOLDERS, len(self._others))
        self._me = participant_id
        self._under_review: dict[MessageId, _Own] = {}
        """By id."""
        self._told: dict[ParticipantId, set[MessageId]] = {}
        """The messages under review that each member has given evidence of, certain or not."""
        self._sequences: dict[InstanceId, _Sequences] = {}
        self._restored: dict[MessageId, list[HolderEntry]] = {}
        for entry in holders:
            self._restored.setdefault(entry.message_id, []).append(entry)

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self._under_review

    def __len__(self) -> int:
        return len(self._under_review)

    @property
    def oldest_lamport(self) -> int | None:
        """Of the messages under review; None if there is none."""
        oldest = next(iter(self._under_review.values()), None)
        return None if oldest is None else oldest.lamport_timestamp

    def entries(self) -> Iterator[HolderEntry]:
        return (entry for own in self._under_review.values() for entry in own.holders.values())

    def restored_ids(self) -> Iterable[MessageId]:
        """Messages with saved holders, in no order; track them at start."""
        return self._restored.keys()

    def track(
        self, message_id: MessageId, lamport_timestamp: int, author: AuthorSequence | None
    ) -> None:
        """Put one of our messages under review."""
        if message_id in self._under_review:
            return
        own = self._under_review[message_id] = _Own(lamport_timestamp, base_hashes(message_id))
        if author is not None:
            sequences = self._sequences.get(author.instance_id)
            if sequences is None:
                sequences = _Sequences(self._under_review)
                self._sequences[author.instance_id] = sequences
            sequences.add(author.sequence, message_id)
        if message_id in self._restored:
            for entry in self._restored.pop(message_id):
                own.holders[entry.participant_id] = entry
                self._told.setdefault(entry.participant_id, set()).add(message_id)
            self._close_if_complete(message_id, own)

    def note(
        self,
        message_id: MessageId,
        participant_id: ParticipantId,
        source: HolderSource,
        now_ms: UnixMs,
        false_probability: float | None = None,
    ) -> HolderEntry | None:
        """Record evidence; returns the entry to save, None if it is no news."""
        own = self._under_review.get(message_id)
        if own is None or participant_id == self._me:
            return None
        known = own.holders.get(participant_id)
        if known is not None and (known.source is not _BLOOM or source is _BLOOM):
            return None
        if known is None and source is _BLOOM and len(own.holders) >= self._maybe_room:
            return None
        entry = HolderEntry(message_id, participant_id, source, now_ms, false_probability)
        own.holders[participant_id] = entry
        told = self._told.get(participant_id)
        if told is None:
            self._told[participant_id] = {message_id}
        else:
            told.add(message_id)
        return entry

    def take_events(self, message_ids: Iterable[MessageId]) -> list[HeldByChanged]:
        """Events for messages whose holders changed; complete ones leave the table."""
        events: list[HeldByChanged] = []
        others = self._others
        for message_id in message_ids:
            own = self._under_review.get(message_id)
            if own is None:
                continue
            certain: list[HolderEntry] = []
            maybe: list[HolderEntry] = []
            for entry in own.holders.values():
                (maybe if entry.source is _BLOOM else certain).append(entry)
            if len(own.holders) > 1:
                certain.sort(key=_by_participant)
                maybe.sort(key=_by_participant)
            complete = others and len(certain) >= len(others)
            if complete and others.issubset(map(_by_participant, certain)):
                self._close(message_id, own)
            events.append(HeldByChanged(message_id, tuple(certain), tuple(maybe)))
        return events

    def within(self, instance_id: InstanceId, item: SequenceRange) -> list[MessageId]:
        """Our messages under review with these sequence numbers."""
        sequences = self._sequences.get(instance_id)
        return sequences.within(item) if sequences else []

    def without(
        self, participant_id: ParticipantId, count: int
    ) -> list[tuple[MessageId, tuple[int, int]]]:
        """Of the messages put under review last, those that this member is not known to hold.

        With their bloom hashes.
        """
        told = self._told.get(participant_id, ())
        if len(told) == len(self._under_review):
            return []  # The member has given evidence of all messages under review.
        newest = islice(reversed(self._under_review), count)
        wanted = [message_id for message_id in newest if message_id not in told]
        return [(message_id, self._under_review[message_id].hashes) for message_id in wanted]

    def untold(
        self, participant_id: ParticipantId, message_ids: Iterable[MessageId], *, certain: bool
    ) -> list[MessageId]:
        """Of these messages, those under review whose evidence this member can improve.

        ``certain``: by what it signed; otherwise only messages without evidence from it.
        """
        under_review = self._under_review
        ours = [*filter(under_review.__contains__, message_ids)] if under_review else []
        if not ours:
            return ours
        if not certain:
            told = self._told.get(participant_id, ())
            return [item for item in ours if item not in told]
        better: list[MessageId] = []
        for message_id in ours:
            known = under_review[message_id].holders.get(participant_id)
            if known is None or known.source is _BLOOM:
                better.append(message_id)
        return better

    def instances(self) -> Iterable[InstanceId]:
        return self._sequences.keys()

    def untrack(self, message_id: MessageId) -> None:
        """Stop the review of a message that left the log."""
        own = self._under_review.get(message_id)
        if own is not None:
            self._close(message_id, own)

    def members_changed(self, members: frozenset[ParticipantId]) -> None:
        """Set who must hold a message before it is complete."""
        self._others = members - {self._me}
        self._maybe_room = max(MAYBE_HOLDERS, len(self._others))
        for message_id, own in list(self._under_review.items()):
            self._close_if_complete(message_id, own)

    def expire(self, before_lamport: int) -> None:
        """Stop reviewing what is too old, oldest first."""
        while self._under_review:
            message_id, own = next(iter(self._under_review.items()))
            if own.lamport_timestamp >= before_lamport:
                return
            self._close(message_id, own)

    def _close_if_complete(self, message_id: MessageId, own: _Own) -> None:
        if not self._others:
            return
        for participant_id in self._others:
            entry = own.holders.get(participant_id)
            if entry is None or entry.source is _BLOOM:
                return
        self._close(message_id, own)

    def _close(self, message_id: MessageId, own: _Own) -> None:
        del self._under_review[message_id]
        for participant_id in own.holders:
            told = self._told[participant_id]
            told.discard(message_id)
            if not told:
                del self._told[participant_id]
