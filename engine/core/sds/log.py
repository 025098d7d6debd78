"""The local log's index: which messages were delivered, and in which order.

Participant state and Resolve Conflicts of the specification: ascending by (Lamport timestamp,
message id).  Only what the protocol asks for is in memory, as columns: ids, positions, senders,
hints and authors' sequence numbers; content stays on disk.  A look-up is a dict access; an
insertion is an append, or a binary search when a message comes late.  The newest entries are kept
as dependencies, ready for the next message.
"""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import islice
from operator import ge

from engine.core.sds.authors import Author
from engine.core.sds.log_table import LogTable
from engine.core.sds.sequences import SequenceSet
from engine.core.sds.types import HistoryEntry, Holdings, LogEntry, history_entry
from engine.core.types import AuthorSequence, InstanceId, MessageId, ParticipantId


class LogIndex:
    """Delivered messages by id, by position and by author."""

    __slots__ = ("_authors", "_order", "_recent", "_table", "_tail", "rows")

    def __init__(self, entries: Iterable[LogEntry] = ()) -> None:
        self._table = LogTable.of(entries)
        self.rows = dict(zip(self._table.ids, range(len(self._table)), strict=True))
        """By id.  Others ask it what is here, which every message does a dozen times."""
        self._order = array("I", self._in_order())
        """Row numbers, ascending by position."""
        self._authors: dict[InstanceId, Author] = {}
        self._recent: dict[InstanceId, None] = {}
        """Of many authors those who spoke last; empty = to be chosen again."""
        self._tail: deque[HistoryEntry] | None = None
        """The newest entries, as many as were asked for last; None = to be gathered again."""
        self._note_authors()

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, message_id: MessageId) -> LogEntry | None:
        row = self.rows.get(message_id)
        return None if row is None else self._table[row]

    def sender_of(self, message_id: MessageId) -> ParticipantId | None:
        """Who sent a message; None = it is not in the log."""
        row = self.rows.get(message_id)
        return None if row is None else self._table.senders[row]

    def entries(self) -> Iterator[LogEntry]:
        """All of them, ascending by position; for snapshots and audits, never per message."""
        return map(self._table.__getitem__, self._order)

    def insert(self, entry: LogEntry) -> bool:
        """Add a message at its place; True = it came late, others lie behind it."""
        table, order, tail = self._table, self._order, self._tail
        position, sender_id, author = entry.position, entry.sender_id, entry.author
        message_id, lamport = position.message_id, position.lamport_timestamp
        late = (
            bool(order)
            and lamport <= table.lamports[order[-1]]
            and (lamport, message_id) < self._place(order[-1])
        )
        row = self.rows[message_id] = table.append(entry)
        if author is not None:
            noted = self._authors.get(author.instance_id)
            if noted is None or late or self._recent or noted.owner != sender_id:
                self._note_author(author, sender_id, row, late=late)
            else:
                noted.note(author.sequence, row)
                noted.newest = row
        if late:
            order.insert(bisect_left(order, (lamport, message_id), key=self._place), row)
            self._tail = None
        else:
            order.append(row)
            if tail is not None:  # As ``history_entry`` does, without the call.
                fields = message_id, entry.retrieval_hint, sender_id
                tail.append(tuple.__new__(HistoryEntry, fields))
        return late

    def set_hint(self, message_id: MessageId, retrieval_hint: bytes) -> bool:
        """Note how a message can be retrieved; True = that is news."""
        row, hints, tail = self.rows[message_id], self._table.hints, self._tail
        if hints[row] == retrieval_hint:
            return False
        hints[row] = retrieval_hint
        if tail is None:
            return True
        index = -1
        for entry in reversed(tail):  # Nearly always among the very newest.
            if entry.message_id == message_id:
                tail[index] = history_entry(message_id, retrieval_hint, entry.sender_id)
                break
            index -= 1
        return True

    def newest_lamport(self) -> int:
        """Of the last message, 0 if there is none."""
        return self._table.lamports[self._order[-1]] if self._order else 0

    def oldest_lamport(self) -> int | None:
        return self._table.lamports[self._order[0]] if self._order else None

    def newest_ids(self, count: int) -> list[MessageId]:
        """The newest messages, newest first."""
        ids = self._table.ids
        return [ids[row] for row in reversed(self._order[max(len(self._order) - count, 0) :])]

    def causal_history(self, count: int) -> tuple[HistoryEntry, ...]:
        """The newest entries as dependencies, oldest first."""
        tail = self._tail
        if tail is None or tail.maxlen != count:
            newest = self._order[max(len(self._order) - count, 0) :]
            tail = deque((_dependency(self._table, row) for row in newest), maxlen=count)
            self._tail = tail
        return tuple(tail)

    # --- order ---

    def _place(self, row: int) -> tuple[int, MessageId]:
        # Strings compare by code point, which is the order of their UTF-8 bytes.
        return self._table.lamports[row], self._table.ids[row]

    def _in_order(self) -> Iterable[int]:
        """Row numbers of what was loaded: in order already, unless some Lamport times are equal."""
        rows, lamports = range(len(self._table)), self._table.lamports
        if any(map(ge, lamports, islice(lamports, 1, None))):
            return sorted(rows, key=self._place)
        return rows

    # --- authors' sequence numbers ---

    def _note_author(
        self, author: AuthorSequence, sender_id: ParticipantId, row: int, *, late: bool
    ) -> None:
        noted = self._authors.get(author.instance_id)
        if noted is None:
            noted = self._authors[author.instance_id] = Author(sender_id)
            noted.newest = row
        if noted.owner != sender_id:
            return
        noted.note(author.sequence, row)
        if not late or self._place(noted.newest) < self._place(row):
            noted.newest = row
        if self._recent:
            self._note_recent(author.instance_id)

    def _note_authors(self) -> None:
        """All that was loaded."""
        table, authors, order = self._table, self._authors, self._order
        for row in order:
            instance_id = table.instances[row]
            if instance_id is None:
                continue
            author = authors.get(instance_id)
            if author is None:
                author = authors[instance_id] = Author(table.senders[row])
            if author.owner == table.senders[row]:
                author.note(table.sequences[row], row)
                author.newest = row

    def held(self, instance_id: InstanceId) -> SequenceSet | None:
        author = self._authors.get(instance_id)
        return author.held if author else None

    def instances(self) -> Iterator[InstanceId]:
        return iter(self._authors)

    def id_of(self, instance_id: InstanceId, sequence: int) -> MessageId | None:
        author = self._authors.get(instance_id)
        row = author.row_of(sequence) if author else None
        return None if row is None else self._table.ids[row]

    def holdings(self, *, max_instances: int, max_ranges: int) -> Holdings:
        """What we state that we hold: recently active authors, their oldest ranges.

        The oldest, because the first hole is the one that delivery waits for.
        """
        authors = self._authors
        return {
            instance_id: authors[instance_id].held.ranges(max_ranges)
            for instance_id in self.recent_instances(max_instances)
        }

    def recent_instances(self, count: int) -> Iterable[InstanceId]:
        """Whose messages came last, all of them unless there are more than that."""
        authors = self._authors
        if len(authors) <= count:
            return authors
        if len(self._recent) != count:
            self._recent = dict.fromkeys(self._most_recent(count))
        return self._recent

    def _note_recent(self, instance_id: InstanceId) -> None:
        """Its author spoke, perhaps as one of those who spoke last."""
        authors, recent = self._authors, self._recent
        if instance_id in recent:
            return
        last = min(recent, key=lambda key: self._place(authors[key].newest))
        if self._place(authors[last].newest) < self._place(authors[instance_id].newest):
            del recent[last]
            recent[instance_id] = None

    def _most_recent(self, count: int) -> list[InstanceId]:
        """By the log's order, not by arrival: whoever holds the same claims the same."""
        authors = self._authors
        return nlargest(count, authors, key=lambda key: self._place(authors[key].newest))


def _dependency(table: LogTable, row: int) -> HistoryEntry:
    return history_entry(table.ids[row], table.hints[row], table.senders[row])
