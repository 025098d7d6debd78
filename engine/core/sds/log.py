"""The local log's index: which messages were delivered, and in which order.

This is Participant state and Resolve Conflicts of the specification: ascending by (Lamport
timestamp, message id).  Memory holds only what the protocol needs, as columns; content stays on
disk.  The newest messages are found in a dict, older ones by their packed ids; an insertion is an
append, or a binary search when a message comes late.  The newest entries are kept as dependencies,
ready for the next message.

A forked author used one sequence number for several messages.  Then the first in the log's order
counts under that number.  Each of them is also the only message of its own instance, named by its
id.  So holdings name all of them, and members who hold the same claim the same.
"""

from array import array
from base64 import urlsafe_b64decode
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import filterfalse

from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, Position
from engine.core.sds.authors import Author
from engine.core.sds.log_order import CHUNK_ROWS, LogOrder, Place
from engine.core.sds.log_table import LogTable
from engine.core.sds.sequences import SequenceSet
from engine.core.sds.vocabulary import (
    HistoryEntry,
    Holdings,
    LogEntry,
    SequenceRange,
)

_FIRST_ID = MessageId("")


class LogIndex:
    """Delivered messages by id, by position and by author."""

    __slots__ = (
        "_authors",
        "_last",
        "_order",
        "_recent",
        "_table",
        "_tail",
        "_twins",
        "_young",
        "expected",
    )

    def __init__(
        self,
        entries: Iterable[LogEntry] = (),
        *,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        table = LogTable.of(entries)
        table.find_pages()
        in_order = table.rows_in_order()
        self._table = table
        self._young = dict(zip(table.young_ids, range(table.first_young, len(table)), strict=True))
        """The table's young rows by id: nearly all that is looked up."""
        self._order = LogOrder(in_order, table.place, chunk_rows=chunk_rows)
        for row in range(in_order, len(table)):
            self._order.insert(row)
        self._last: Place = table.place(self._order.last) if self._order else (-1, _FIRST_ID)
        """The position of the last message."""
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
        self._note_authors(in_order)

    def __contains__(self, message_id: MessageId) -> bool:
        if message_id in self._young:
            return True
        return self._table.first_young > 0 and self._table.old.find(message_id) is not None

    def __len__(self) -> int:
        return len(self._order)

    def absent(self, message_ids: Iterable[MessageId]) -> list[MessageId]:
        """Those that are not in the log."""
        perhaps = [*filterfalse(self._young.__contains__, message_ids)]
        return [item for item in perhaps if self._row(item) is None] if perhaps else perhaps

    def _row(self, message_id: MessageId) -> int | None:
        row = self._young.get(message_id)
        return self._table.old.find(message_id) if row is None and self._table.first_young else row

    def _row_here(self, message_id: MessageId) -> int:
        row = self._row(message_id)
        if row is None:
            raise KeyError(message_id)
        return row

    def get(self, message_id: MessageId) -> LogEntry | None:
        """The entry with this id, without its hint if it is old; None if it is not in the log."""
        row = self._row(message_id)
        return None if row is None else self._table[row]

    def sender_of(self, message_id: MessageId) -> ParticipantId | None:
        """Who sent a message; None if it is not in the log."""
        row = self._row(message_id)
        return None if row is None else self._table.sender_of(row)

    def size_of(self, message_id: MessageId) -> int:
        """The size of a message that is here."""
        return self._table.size_of(self._row_here(message_id))

    def entries(self) -> Iterator[LogEntry]:
        """All entries, ascending by position; for snapshots and audits, never per message."""
        return map(self._table.__getitem__, self._order)

    def insert(self, entry: LogEntry) -> bool:
        """Add a message at its place; True if it came late, before others."""
        table, tail = self._table, self._tail
        position, sender_id, author = entry.position, entry.sender_id, entry.author
        message_id = position.message_id
        place = position.lamport_timestamp, message_id
        late = place < self._last
        row = self._young[message_id] = table.append(entry)
        if author is not None:
            noted = self._authors.get(author.instance_id)
            if (
                noted is None
                or self._recent
                or noted.owner != sender_id
                or author.sequence <= noted.held.lasts[-1]
            ):
                self._note_author(author, sender_id, row, late=late)
            else:
                noted.note(author.sequence, row)
                if not late or table.place(noted.newest) < place:
                    noted.newest = row
            if entry.previous_id is not None:
                before = AuthorSequence(author.instance_id, author.sequence - 1)
                self.expected.setdefault(before, (entry.previous_id, message_id))
        if late:
            self._insert_late(row)
        else:
            self._order.append(row)
            self._last = place
            if tail is not None:
                tail.append(HistoryEntry(message_id, entry.retrieval_hint, sender_id))
        if table.is_full():
            self._close_page()
        return late

    def _close_page(self) -> None:
        young, first = self._young, self._table.first_young
        ids = self._table.close_page()
        rows = array("I")
        for row, message_id in enumerate(ids, first):
            if young.get(message_id) == row:  # It has not left the log.
                del young[message_id]
                rows.append(row)
        self._table.find_page(len(self._table.pages) - 1, rows)

    def _insert_late(self, row: int) -> None:
        """Into the order, and into the newest entries if it is one of them."""
        tail = self._tail
        newest = 0 if tail is None else tail.maxlen or 0
        after = self._order.insert(row, counted=newest)
        if tail is not None and after < newest:
            if len(tail) == newest:
                tail.popleft()
            tail.insert(len(tail) - after, _dependency(self._table, row))

    def remove(self, message_id: MessageId) -> None:
        """Remove a message.  Its row stays, but nothing refers to it."""
        row = self._row_here(message_id)
        self._order.remove(row)
        if self._young.pop(message_id, None) is None:
            self._table.old.remove(message_id)
        self._last = self._table.place(self._order.last) if self._order else (-1, _FIRST_ID)
        self._tail = None
        self._recent = {}
        author = self._table[row].author
        noted = None if author is None else self._authors.get(author.instance_id)
        if author is None or noted is None or noted.owner != self._table.sender_of(row):
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
        """Note how a message can be retrieved; True if that is news, or may be."""
        row, table, tail = self._row_here(message_id), self._table, self._tail
        if table.hint_of(row) == retrieval_hint:
            return False
        table.set_hint(row, retrieval_hint)
        if tail is None:
            return True
        index = -1
        for entry in reversed(tail):  # Nearly always among the very newest.
            if entry.message_id == message_id:
                tail[index] = HistoryEntry(message_id, retrieval_hint, entry.sender_id)
                break
            index -= 1
        return True

    def wants_hint(self, message_id: MessageId) -> bool:
        """Whether a message is here, without a hint, and recent enough for one to be of use."""
        row = self._young.get(message_id)
        return row is not None and self._table.hint_of(row) is None

    def newest_lamport(self, latest: int | None = None) -> int:
        """The timestamp of the last message, or the last up to ``latest``; 0 if there is none."""
        if not self._order:
            return 0
        if latest is None or self._last[0] <= latest:
            return self._last[0]
        rows = self._order.before((latest + 1, _FIRST_ID), 1)
        return self._table.lamport_of(rows[0]) if rows else 0

    def ids_after(self, lamport: int) -> list[MessageId]:
        """Messages with a greater Lamport timestamp, ascending."""
        return [*map(self._table.id_of, self._order.since((lamport + 1, _FIRST_ID)))]

    def oldest_lamport(self) -> int | None:
        return self._table.lamport_of(self._order.first) if self._order else None

    def newest_ids(self, count: int) -> list[MessageId]:
        """The newest messages, newest first."""
        return [*map(self._table.id_of, reversed(self._order.newest(count)))]

    def before(self, position: Position, count: int) -> tuple[MessageId, ...]:
        """The newest messages up to this one, and the next one of its author, if it is here."""
        latest = position.lamport_timestamp
        rows = self._order.before((latest + 1, _FIRST_ID), count - 1)
        found = [*map(self._table.id_of, rows)]
        entry = self.get(position.message_id)
        if entry is not None and entry.author is not None:
            following = self.id_of(entry.author.instance_id, entry.author.sequence + 1)
            found += [] if following is None else [following]
        return tuple(dict.fromkeys(found))

    def causal_history(
        self, count: int, latest: int | None = None, *, ahead: int = 0
    ) -> tuple[HistoryEntry, ...]:
        """The newest entries as dependencies, oldest first; ``ahead`` of them after ``latest``."""
        if latest is not None and self._last[0] > latest:
            # Our clock was ahead once, or is behind now; or someone's is wrong.
            lamport_of = self._table.lamport_of
            later = [row for row in self._order.newest(ahead) if lamport_of(row) > latest]
            rows = self._order.before((latest + 1, _FIRST_ID), count - len(later)) + later
            return tuple(_dependency(self._table, row) for row in rows)
        tail = self._tail
        if tail is None or tail.maxlen != count:
            newest = self._order.newest(count)
            tail = deque((_dependency(self._table, row) for row in newest), maxlen=count)
            self._tail = tail
        return tuple(tail)

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
        if not late or self._table.place(noted.newest) < self._table.place(row):
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
        twins.sort(key=self._table.place)
        noted.replace(author.sequence, twins[0])
        ids = [self._table.id_of(row) for row in twins]
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

    def _note_authors(self, in_order: int) -> None:
        """Note the authors of all loaded entries, of which the first ``in_order`` ascend."""
        table = self._table
        noted: dict[int, Author | None] = {}
        for first, authors, sequences in table.author_columns():
            rows = range(first, first + len(authors))
            if rows.stop > in_order or not self._note_runs(first, authors, sequences, noted):
                for row in rows:
                    self._note_author_of_row(row, noted, late=row >= in_order)
        for row, previous_id in table.previous.items():
            entry = table[row]
            if entry.author is not None and previous_id not in self:
                before = AuthorSequence(entry.author.instance_id, entry.author.sequence - 1)
                self.expected.setdefault(before, (previous_id, entry.position.message_id))

    def _note_runs(
        self,
        first: int,
        authors: Sequence[int],
        sequences: Sequence[int],
        noted: dict[int, Author | None],
    ) -> bool:
        """Note rows in order, if each author's numbers among them are the next ones; else none."""
        rows_of: defaultdict[int, list[int]] = defaultdict(list)
        numbers_of: defaultdict[int, list[int]] = defaultdict(list)
        for row, (author, sequence) in enumerate(zip(authors, sequences, strict=True), first):
            rows_of[author].append(row)
            numbers_of[author].append(sequence)
        runs: list[tuple[int, list[int], int]] = []
        for author, rows in sorted(rows_of.items()):
            sender_id, instance_id = self._table.authors[author]
            if instance_id is None:
                continue
            known = noted[author] if author in noted else self._authors.get(instance_id)
            start = 1 if known is None else known.next_sequence
            if numbers_of[author] != [*range(start, start + len(rows))] or (
                known is not None and known.owner != sender_id
            ):
                return False
            runs.append((author, rows, start))
        for author, rows, start in runs:
            if author not in noted:  # They are numbered as they appear.
                noted[author] = self._noted(*self._table.authors[author])
            if (one := noted[author]) is not None:
                one.note_run(start, rows)
                one.newest = rows[-1]
        return True

    def _note_author_of_row(self, row: int, noted: dict[int, Author | None], *, late: bool) -> None:
        table = self._table
        number, sequence = table.author_number_of(row), table.sequence_of(row)
        if not late:
            if number not in noted:
                noted[number] = self._noted(*table.authors[number])
            author = noted[number]
            if author is None:
                return
            if author.note(sequence, row):
                author.newest = row
                return
        sender_id, instance_id = table.authors[number]
        if instance_id is not None:
            shared = AuthorSequence(instance_id, sequence)
            self._note_author(shared, sender_id, row, late=late)

    def _noted(self, sender_id: ParticipantId, instance_id: InstanceId | None) -> Author | None:
        """The author of an instance, if it belongs to this sender: to the first in the log."""
        if instance_id is None:
            return None
        author = self._authors.get(instance_id)
        if author is None:
            author = self._authors[instance_id] = Author(sender_id)
        return author if author.owner == sender_id else None

    def held(self, instance_id: InstanceId) -> SequenceSet | None:
        author = self._authors.get(instance_id)
        return author.held if author else None

    def instances(self) -> Iterator[InstanceId]:
        return iter(self._authors)

    def id_of(self, instance_id: InstanceId, sequence: int) -> MessageId | None:
        author = self._authors.get(instance_id)
        row = author.row_of(sequence) if author else None
        return None if row is None else self._table.id_of(row)

    def last_of(self, who: ParticipantId) -> list[LogEntry]:
        """The message with the highest number of each of their instances."""
        rows = (
            (instance_id, author.row_of(author.held.lasts[-1]))
            for instance_id, author in self._authors.items()
            if author.owner == who and author.held.lasts
        )
        found = ((instance_id, self._table[row]) for instance_id, row in rows if row is not None)
        return [
            entry
            for instance_id, entry in found
            if entry.author is not None and entry.author.instance_id == instance_id
        ]

    def neighbours(self, author: AuthorSequence) -> tuple[MessageId | None, MessageId | None]:
        """The messages with this number and with the one before it, if they are here."""
        noted = self._authors.get(author.instance_id)
        if noted is None:
            return None, None
        sequence, id_of = author.sequence, self._table.id_of
        before = noted.row_of(sequence - 1)
        previous_id = None if before is None else id_of(before)
        if noted.held.lasts[-1] < sequence:  # The usual case: the next one.
            return None, previous_id
        row = noted.row_of(sequence)
        return None if row is None else id_of(row), previous_id

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
        held, id_of = author.held, self._table.id_of
        return tuple(
            SequenceRange(first=first, last=last, head=head_of(id_of(author.row_of(last) or 0)))
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
        last = min(recent, key=lambda key: self._table.place(authors[key].newest))
        if self._table.place(authors[last].newest) < self._table.place(authors[instance_id].newest):
            del recent[last]
            recent[instance_id] = None

    def _most_recent(self, count: int) -> list[InstanceId]:
        """By the log's order, not by arrival, so that members who hold the same claim the same."""
        authors = self._authors
        return nlargest(count, authors, key=lambda key: self._table.place(authors[key].newest))


@lru_cache(maxsize=1_024)  # Each claim names the newest message of every author, again and again.
def head_of(message_id: MessageId) -> bytes:
    """The first 8 of the 16 bytes of which the id is the base64url."""
    return urlsafe_b64decode(message_id[:11] + "=")


def instance_of_twin(message_id: MessageId) -> InstanceId:
    """The instance of which a message that shares its number is the only one."""
    return InstanceId(urlsafe_b64decode(message_id + "=="))


def _dependency(table: LogTable, row: int) -> HistoryEntry:
    return HistoryEntry(table.id_of(row), table.hint_of(row), table.sender_of(row))
