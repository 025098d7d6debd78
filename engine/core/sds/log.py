"""The local log's index: which messages were delivered, and in which order.

Participant state and Resolve Conflicts of the specification: ascending by (Lamport timestamp,
message id).  Only what the protocol asks for is in memory: ids, positions, senders, hints and
authors' sequence numbers; content stays on disk.  A look-up is a dict access; an insertion is an
append, or a binary search when a message comes late.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from engine.core.sds.sequences import SequenceSet
from engine.core.sds.types import HistoryEntry, Holdings, LogEntry
from engine.core.types import InstanceId, MessageId, ParticipantId, Position


def _order(position: Position) -> tuple[int, MessageId]:
    # Strings compare by code point, which is the order of their UTF-8 bytes.
    return position.lamport_timestamp, position.message_id


class _Author:
    """One instance of an author: whose it is, what we hold of it, and under which ids."""

    __slots__ = ("held", "ids", "owner")

    def __init__(self, owner: ParticipantId) -> None:
        self.owner = owner
        self.held = SequenceSet()
        self.ids: dict[int, MessageId] = {}


class LogIndex:
    """Delivered messages by id, by position and by author."""

    __slots__ = ("_authors", "_entries", "_order")

    def __init__(self, entries: Iterable[LogEntry] = ()) -> None:
        self._entries: dict[MessageId, LogEntry] = {}
        self._order: list[Position] = []
        self._authors: dict[InstanceId, _Author] = {}
        for entry in entries:
            self.insert(entry)

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self._entries

    def __len__(self) -> int:
        return len(self._order)

    def get(self, message_id: MessageId) -> LogEntry | None:
        return self._entries.get(message_id)

    def entries(self) -> Iterator[LogEntry]:
        """All of them, ascending by position; for snapshots and audits, never per message."""
        return (self._entries[position.message_id] for position in self._order)

    def insert(self, entry: LogEntry) -> bool:
        """Add a message at its place; True = it came late, others lie behind it."""
        position = entry.position
        self._entries[position.message_id] = entry
        self._note_author(entry)
        if not self._order or _order(self._order[-1]) < _order(position):
            self._order.append(position)
            return False
        self._order.insert(bisect_left(self._order, _order(position), key=_order), position)
        return True

    def set_hint(self, message_id: MessageId, retrieval_hint: bytes) -> None:
        entry = self._entries[message_id]
        self._entries[message_id] = replace(entry, retrieval_hint=retrieval_hint)

    def newest(self, count: int) -> Iterator[LogEntry]:
        """The newest entries, newest first."""
        newest = islice(reversed(self._order), count)
        return (self._entries[position.message_id] for position in newest)

    def causal_history(self, count: int) -> tuple[HistoryEntry, ...]:
        """The newest entries as dependencies, oldest first."""
        history = [
            HistoryEntry(
                message_id=entry.position.message_id,
                retrieval_hint=entry.retrieval_hint,
                sender_id=entry.sender_id,
            )
            for entry in self.newest(count)
        ]
        history.reverse()
        return tuple(history)

    # --- authors' sequence numbers ---

    def _note_author(self, entry: LogEntry) -> None:
        if entry.author is None:
            return
        instance_id, sequence = entry.author.instance_id, entry.author.sequence
        # Re-inserted so that the dict's order is by latest activity.
        author = self._authors.pop(instance_id, None) or _Author(entry.sender_id)
        self._authors[instance_id] = author
        if author.owner == entry.sender_id and sequence not in author.ids:
            author.held.add(sequence)
            author.ids[sequence] = entry.position.message_id

    def held(self, instance_id: InstanceId) -> SequenceSet | None:
        author = self._authors.get(instance_id)
        return author.held if author else None

    def instances(self) -> Iterator[InstanceId]:
        return iter(self._authors)

    def id_of(self, instance_id: InstanceId, sequence: int) -> MessageId | None:
        author = self._authors.get(instance_id)
        return author.ids.get(sequence) if author else None

    def holdings(self, *, max_instances: int, max_ranges: int) -> Holdings:
        """What we state that we hold: recently active authors, their oldest ranges.

        The oldest, because the first hole is the one that delivery waits for.
        """
        recent = islice(reversed(self._authors.items()), max_instances)
        return {instance_id: author.held.ranges(max_ranges) for instance_id, author in recent}
