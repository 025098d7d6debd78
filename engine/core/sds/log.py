"""The local log's index: which messages were delivered, and in which order.

This is Participant state and Resolve Conflicts of the specification: ascending by (Lamport
timestamp, message id).  Memory holds only what the protocol needs, as columns: ids, positions,
senders, hints and authors' sequence numbers; content stays on disk.  A look-up is a dict access; an
insertion is an append, or a binary search when a message comes late.  The newest entries are kept
as dependencies, ready for the next message.

A forked author used one sequence number for several messages.  Then the first in the log's order
counts under that number.  Each of them is also the only message of its own instance, named by its
id.  So holdings name all of them, and members who hold the same claim the same.
"""

from array import array
from base64 import urlsafe_b64decode
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import islice
from operator import ge

from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId
from engine.core.sds.authors import Author
from engine.core.sds.log_table import LogTable
from engine.core.sds.sequences import SequenceSet
from engine.core.sds.vocabulary import (
    HistoryEntry,
    Holdings,
    LogEntry,
    SequenceRange,
)


class LogIndex:
    """Delivered messages by id, by position and by author."""

    __slots__ = ("_authors", "_order", "_recent", "_rows", "_table", "_tail", "_twins", "expected")

    def __init__(self, entries: Iterable[LogEntry] = ()) -> None:
        self._table = LogTable.of(entries)
        self._rows = dict(zip(self._table.ids, range(len(self._table)), strict=True))
        """By id."""
        self._order = array("I", self._in_order())
        """Row numbers, ascending by position."""
        self._authors: dict[InstanceId, Author] = {}
        self._recent: dict[InstanceId, None] = {}
        """The most recently active of many authors; empty = to be chosen again."""
        self._tail: deque[HistoryEntry] | None = None
        """The newest entries, as many as last requested; None = to be gathered again."""
        self._twins: dict[AuthorSequence, list[int]] = {}
        """Rows of the messages that share one number, if several do."""
        self.expected: dict[AuthorSequence, tuple[MessageId, MessageId]] = {}
        """The predecessor that an author's later message names, and that message's id; only where
        the predecessor is not known to be here."""
        self._note_authors()

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, message_id: MessageId) -> LogEntry | None:
        row = self._rows.get(message_id)
        return None if row is None else self._table[row]

    def sender_of(self, message_id: MessageId) -> ParticipantId | None:
        """Who sent a message; None if it is not in the log."""
        row = self._rows.get(message_id)
        return None if row is None else self._table.senders[row]

    def size_of(self, message_id: MessageId) -> int:
        """The size of a message that is here."""
        return self._table.sizes[self._rows[message_id]]

    def entries(self) -> Iterator[LogEntry]:
        """All entries, ascending by position; for snapshots and audits, never per message."""
        return map(self._table.__getitem__, self._order)

    def insert(self, entry: LogEntry) -> bool:
        """Add a message at its place; True if it came late, before others."""
        table, order, tail = self._table, self._order, self._tail
        position, sender_id, author = entry.position, entry.sender_id, entry.author
        message_id, lamport = position.message_id, position.lamport_timestamp
        late = (
            bool(order)
            and lamport <= table.lamports[order[-1]]
            and (lamport, message_id) < self._place(order[-1])
        )
        row = self._rows[message_id] = table.append(entry)
        if author is not None:
            self._note_author(author, sender_id, row, late=late)
            if entry.previous_id is not None:
                before = AuthorSequence(author.instance_id, author.sequence - 1)
                self.expected.setdefault(before, (entry.previous_id, message_id))
        if late:
            order.insert(bisect_left(order, (lamport, message_id), key=self._place), row)
            self._tail = None
        else:
            order.append(row)
            if tail is not None:
                tail.append(HistoryEntry(message_id, entry.retrieval_hint, sender_id))
        return late

    def remove(self, message_id: MessageId) -> None:
        """Remove a message.  Its row stays, but nothing refers to it."""
        row = self._rows.pop(message_id)
        del self._order[bisect_left(self._order, self._place(row), key=self._place)]
        self._tail = None
        self._recent = {}
        author = self._table[row].author
        noted = None if author is None else self._authors.get(author.instance_id)
        if author is None or noted is None or noted.owner != self._table.senders[row]:
            return
        twins = self._twins.get(author)
        if twins is not None:
            twins.remove(row)
            self._count_twins(author, noted, twins, gone=message_id)
        else:
            noted.forget(author.sequence)
        if noted.newest == row:
            last = noted.held.lasts[-1] if noted.held.lasts else None
            newest = None if last is None else noted.row_of(last)
            if newest is None:
                del self._authors[author.instance_id]
            else:
                noted.newest = newest

    def set_hint(self, message_id: MessageId, retrieval_hint: bytes) -> bool:
        """Note how a message can be retrieved; True if that is news."""
        row, hints, tail = self._rows[message_id], self._table.hints, self._tail
        if hints[row] == retrieval_hint:
            return False
        hints[row] = retrieval_hint
        if tail is None:
            return True
        index = -1
        for entry in reversed(tail):  # Nearly always among the very newest.
            if entry.message_id == message_id:
                tail[index] = HistoryEntry(message_id, retrieval_hint, entry.sender_id)
                break
            index -= 1
        return True

    def newest_lamport(self, latest: int | None = None) -> int:
        """The timestamp of the last message, or the last up to ``latest``; 0 if there is none."""
        order, lamports = self._order, self._table.lamports
        end = len(order) if latest is None else self._end(latest)
        return lamports[order[end - 1]] if end else 0

    def ids_after(self, lamport: int) -> list[MessageId]:
        """Messages with a greater Lamport timestamp, ascending."""
        ids = self._table.ids
        return [ids[row] for row in self._order[self._end(lamport) :]]

    def _end(self, latest: int) -> int:
        """How many messages have at most this Lamport timestamp."""
        return bisect_right(self._order, latest, key=self._table.lamports.__getitem__)

    def oldest_lamport(self) -> int | None:
        return self._table.lamports[self._order[0]] if self._order else None

    def newest_ids(self, count: int) -> list[MessageId]:
        """The newest messages, newest first."""
        ids = self._table.ids
        return [ids[row] for row in reversed(self._order[max(len(self._order) - count, 0) :])]

    def causal_history(self, count: int, latest: int | None = None) -> tuple[HistoryEntry, ...]:
        """The newest entries not later than ``latest`` as dependencies, oldest first."""
        if (
            latest is not None and self.newest_lamport() > latest
        ):  # Our clock was ahead once, or is behind now.
            end = self._end(latest)
            rows = self._order[max(end - count, 0) : end]
            return tuple(_dependency(self._table, row) for row in rows)
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
        """Row numbers of loaded entries: in order already unless some Lamport times are equal."""
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
        first = noted.row_of(author.sequence)
        if first is None:
            noted.note(author.sequence, row)
        else:
            twins = self._twins.setdefault(author, [first])
            twins.append(row)
            self._count_twins(author, noted, twins)
        if not late or self._place(noted.newest) < self._place(row):
            noted.newest = row
        if self._recent:
            self._note_recent(author.instance_id)

    def _count_twins(
        self,
        author: AuthorSequence,
        noted: Author,
        twins: list[int],
        *,
        gone: MessageId | None = None,
    ) -> None:
        """The first of messages with one number counts under it; each also counts by itself."""
        self._recent = {}
        twins.sort(key=self._place)
        noted.replace(author.sequence, twins[0])
        ids = [self._table.ids[row] for row in twins]
        if len(twins) == 1:  # It is not shared any more.
            del self._twins[author]
            self._authors.pop(instance_of_twin(ids[0]), None)
        else:
            for row, message_id in zip(twins, ids, strict=True):
                alone = self._authors[instance_of_twin(message_id)] = Author(noted.owner)
                alone.note(1, row)
                alone.newest = row
        if gone is not None:
            self._authors.pop(instance_of_twin(gone), None)

    def _note_authors(self) -> None:
        """Note the authors of all loaded entries."""
        table, authors, order = self._table, self._authors, self._order
        for row in order:
            instance_id = table.instances[row]
            if instance_id is None:
                continue
            author = authors.get(instance_id)
            if author is None:
                author = authors[instance_id] = Author(table.senders[row])
            if author.owner == table.senders[row]:
                sequence = table.sequences[row]
                if sequence in author.held:
                    number = AuthorSequence(instance_id, sequence)
                    self._note_author(number, author.owner, row, late=False)
                else:
                    author.note(sequence, row)
                    author.newest = row
        for row, previous_id in table.previous.items():
            instance_id = table.instances[row]
            if instance_id is not None and previous_id not in self._rows:
                before = AuthorSequence(instance_id, table.sequences[row] - 1)
                self.expected.setdefault(before, (previous_id, table.ids[row]))

    def held(self, instance_id: InstanceId) -> SequenceSet | None:
        author = self._authors.get(instance_id)
        return author.held if author else None

    def instances(self) -> Iterator[InstanceId]:
        return iter(self._authors)

    def id_of(self, instance_id: InstanceId, sequence: int) -> MessageId | None:
        author = self._authors.get(instance_id)
        row = author.row_of(sequence) if author else None
        return None if row is None else self._table.ids[row]

    def neighbours(self, author: AuthorSequence) -> tuple[MessageId | None, MessageId | None]:
        """The messages with this number and with the one before it, if they are here."""
        noted = self._authors.get(author.instance_id)
        if noted is None:
            return None, None
        sequence, ids = author.sequence, self._table.ids
        before = noted.row_of(sequence - 1)
        previous_id = None if before is None else ids[before]
        if noted.held.lasts[-1] < sequence:  # The usual case: the next one.
            return None, previous_id
        row = noted.row_of(sequence)
        return None if row is None else ids[row], previous_id

    def counted_as(self, message_id: MessageId, author: AuthorSequence) -> AuthorSequence:
        """The instance and number under which holdings name a message that is here."""
        if author in self._twins:
            return AuthorSequence(instance_of_twin(message_id), 1)
        return author

    def holdings(self, *, max_instances: int, max_ranges: int) -> Holdings:
        """The holdings that we claim: recently active authors, their oldest ranges.

        The oldest, because delivery waits for the first hole.
        """
        return {
            instance_id: self._ranges(self._authors[instance_id], max_ranges)
            for instance_id in self.recent_instances(max_instances)
        }

    def _ranges(self, author: Author, limit: int) -> tuple[SequenceRange, ...]:
        held, ids = author.held, self._table.ids
        return tuple(
            SequenceRange(first=first, last=last, head=head_of(ids[author.row_of(last) or 0]))
            for first, last in zip(held.firsts[:limit], held.lasts[:limit], strict=True)
        )

    def recent_instances(self, count: int) -> Iterable[InstanceId]:
        """The most recently active instances; all of them if there are no more than ``count``."""
        authors = self._authors
        if len(authors) <= count:
            return authors
        if len(self._recent) != count:
            self._recent = dict.fromkeys(self._most_recent(count))
        return self._recent

    def _note_recent(self, instance_id: InstanceId) -> None:
        """Note that an author was active."""
        authors, recent = self._authors, self._recent
        if instance_id in recent:
            return
        last = min(recent, key=lambda key: self._place(authors[key].newest))
        if self._place(authors[last].newest) < self._place(authors[instance_id].newest):
            del recent[last]
            recent[instance_id] = None

    def _most_recent(self, count: int) -> list[InstanceId]:
        """By the log's order, not by arrival, so that members who hold the same claim the same."""
        authors = self._authors
        return nlargest(count, authors, key=lambda key: self._place(authors[key].newest))


def head_of(message_id: MessageId) -> bytes:
    """The first 8 of the 16 bytes of which the id is the base64url."""
    return urlsafe_b64decode(message_id[:11] + "=")


def instance_of_twin(message_id: MessageId) -> InstanceId:
    """The instance of which a message that shares its number is the only one."""
    return InstanceId(urlsafe_b64decode(message_id + "=="))


def _dependency(table: LogTable, row: int) -> HistoryEntry:
    return HistoryEntry(table.ids[row], table.hints[row], table.senders[row])
