"""A log as columns, as a store loads it at start: a million entries at a time.

An object per entry would cost a start more time and memory than all of its other work.  From
outside a table is a sequence of ``LogEntry``, each created when it is read.  The newest rows are
young: their ids are texts and their retrieval hints are here, for the messages that name them.
Older rows are in pages that never change, some 25 bytes each, without hints.  Order and look-up by
id are left to ``LogIndex``.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice, pairwise
from operator import ge
from struct import unpack
from typing import Final, TypeAlias, TypeGuard, overload

from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, Position
from engine.core.packed_ids import PACKED_BYTES, pack_id, unpack_id
from engine.core.sds.vocabulary import LogEntry

Row: TypeAlias = tuple[
    int,
    MessageId | bytes,
    ParticipantId,
    bytes | None,
    InstanceId | None,
    int | None,
    MessageId | None,
    int,
]
"""Lamport timestamp, id (packed or not), sender and retrieval hint; the author's instance, sequence
and previous message, if any; and the size."""

Author: TypeAlias = tuple[ParticipantId, InstanceId | None]

PAGE_ROWS: Final = 512
"""Between one and two pages of rows are young, so that a page is closed in a millisecond."""
_NO_SEQUENCE: Final = 0
_NO_ID: Final = bytes(PACKED_BYTES)
_WIDTHS: Final = (("B", 2**8), ("H", 2**16), ("I", 2**32))

_text_of = lru_cache(maxsize=4_096)(unpack_id)
"""Each claim asks for the newest ids of the same authors again."""


class Page:
    """Rows that do not change any more."""

    __slots__ = ("authors", "first_lamport", "ids", "lamports", "sequences", "sizes", "texts")

    def __init__(
        self,
        ids: Sequence[MessageId | bytes],
        lamports: Sequence[int],
        authors: Sequence[int],
        sequences: Sequence[int],
        sizes: Sequence[int],
    ) -> None:
        self.texts: dict[int, MessageId] = {}
        """Ids that cannot be packed, by place in the page."""
        self.ids = b"".join(ids if _all_packed(ids) else self._packed(ids))
        self.first_lamport = min(lamports)
        self.lamports = _narrow([lamport - self.first_lamport for lamport in lamports])
        """Minus the first."""
        self.authors = _narrow(authors)
        self.sequences = _narrow(sequences)
        self.sizes = _narrow(sizes)

    def _packed(self, ids: Sequence[MessageId | bytes]) -> Iterator[bytes]:
        for index, item in enumerate(ids):
            if isinstance(item, bytes):
                yield item
            elif packed := pack_id(item):
                yield packed
            else:
                self.texts[index] = item
                yield _NO_ID

    def id_at(self, index: int) -> MessageId:
        text = self.texts.get(index) if self.texts else None
        start = PACKED_BYTES * index
        return _text_of(self.ids[start : start + PACKED_BYTES]) if text is None else text

    def packed_ids(self) -> tuple[bytes, ...]:
        """One for each row; anything for an id that cannot be packed."""
        return unpack(f"{PACKED_BYTES}s" * (len(self.ids) // PACKED_BYTES), self.ids)


class LogTable(Sequence[LogEntry]):
    """Log entries by number, in the order in which they were added."""

    __slots__ = (
        "_authors",
        "_hints",
        "_lamports",
        "_numbers",
        "_sequences",
        "_sizes",
        "authors",
        "first_young",
        "page_rows",
        "pages",
        "previous",
        "young_ids",
    )

    def __init__(self, *, page_rows: int = PAGE_ROWS) -> None:
        self.page_rows = page_rows
        self.pages: list[Page] = []
        """The oldest rows, ``page_rows`` in each."""
        self.first_young = 0
        """The number of the first row that is in no page."""
        self.young_ids: list[MessageId] = []
        self._hints: list[bytes | None] = []
        self._lamports = array("q")
        self._authors = array("I")
        self._sequences = array("q")
        self._sizes = array("I")
        self.authors: list[Author] = []
        """Senders with their instances, each stored once; rows refer to them by number."""
        self._numbers: dict[Author, int] = {}
        self.previous: dict[int, MessageId] = {}
        """By number, for the few whose author's previous message is not known to be here."""

    @classmethod
    def of_rows(cls, rows: Iterable[Row], *, page_rows: int = PAGE_ROWS) -> "LogTable":
        """Columns from rows."""
        table = cls(page_rows=page_rows)
        table.add_rows(rows)
        return table

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Add rows, a page at a time; the newest stay young."""
        rows, young = iter(rows), deque[list[Row]]()
        while chunk := list(islice(rows, self.page_rows)):
            young.append(chunk)
            whole_pages = len(self.young_ids) % self.page_rows == 0
            if len(young) > 1 and len(chunk) == self.page_rows and whole_pages:
                while self.young_ids:
                    self.close_page()
                self._add_page(young.popleft())
        for row in chain.from_iterable(young):
            self._add_young(row)
            if self.is_full():
                self.close_page()

    @classmethod
    def of(cls, entries: Iterable[LogEntry], *, page_rows: int = PAGE_ROWS) -> "LogTable":
        """The same entries in a table of its own."""
        if isinstance(entries, LogTable):
            return entries.copy()
        table = cls(page_rows=page_rows)
        for entry in entries:
            table.append(entry)
            if table.is_full():
                table.close_page()
        return table

    def sorted(self) -> "LogTable":
        """The same entries, ascending by position."""
        rows = sorted(range(len(self)), key=self.place)
        return LogTable.of((self[row] for row in rows), page_rows=self.page_rows)

    def copy(self) -> "LogTable":
        """A table with the same pages, which never change, and young rows of its own."""
        table = LogTable(page_rows=self.page_rows)
        table.pages = self.pages[:]
        table.first_young = self.first_young
        table.young_ids = self.young_ids[:]
        table._hints = self._hints[:]
        table._lamports = self._lamports[:]
        table._authors = self._authors[:]
        table._sequences = self._sequences[:]
        table._sizes = self._sizes[:]
        table.authors = self.authors[:]
        table._numbers = dict(self._numbers)
        table.previous = dict(self.previous)
        return table

    def _add_page(self, rows: list[Row]) -> None:
        lamports, ids, senders, _, instances, sequences, previous, sizes = zip(*rows, strict=True)
        authors = self._numbers_of([*zip(senders, instances, strict=True)])
        if previous.count(None) < len(rows):  # Few pages have one.
            numbered = enumerate(previous, self.first_young)
            self.previous.update((row, item) for row, item in numbered if item is not None)
        if None in sequences:
            sequences = tuple(_NO_SEQUENCE if n is None else n for n in sequences)
        self.pages.append(Page(ids, lamports, authors, sequences, sizes))
        self.first_young += len(rows)

    def _add_young(self, row: Row) -> None:
        lamport, message_id, sender_id, hint, instance_id, sequence, previous_id, size = row
        self.young_ids.append(
            unpack_id(message_id) if isinstance(message_id, bytes) else message_id
        )
        self._hints.append(hint)
        self._lamports.append(lamport)
        self._authors.append(self._number_of((sender_id, instance_id)))
        self._sequences.append(_NO_SEQUENCE if sequence is None else sequence)
        self._sizes.append(size)
        if previous_id is not None:
            self.previous[len(self) - 1] = previous_id

    def append(self, entry: LogEntry) -> int:
        """Add one entry; returns its number."""
        position, sender_id, author, ids = (
            entry.position,
            entry.sender_id,
            entry.author,
            self.young_ids,
        )
        number = self.first_young + len(ids)
        self._lamports.append(position.lamport_timestamp)
        ids.append(position.message_id)
        self._hints.append(entry.retrieval_hint)
        self._sizes.append(entry.size)
        if entry.previous_id is not None:
            self.previous[number] = entry.previous_id
        if author is None:
            who: Author = sender_id, None
            self._sequences.append(_NO_SEQUENCE)
        else:
            who = sender_id, author.instance_id
            self._sequences.append(author.sequence)
        known = self._numbers.get(who)
        self._authors.append(self._number_of(who) if known is None else known)
        return number

    def _numbers_of(self, authors: list[Author]) -> list[int]:
        try:
            return [*map(self._numbers.__getitem__, authors)]
        except KeyError:  # Rarely: someone is new.
            return [*map(self._number_of, authors)]

    def _number_of(self, author: Author) -> int:
        number = self._numbers.setdefault(author, len(self.authors))
        if number == len(self.authors):
            self.authors.append(author)
        return number

    def is_full(self) -> bool:
        """Whether a page of young rows is to be closed."""
        return len(self.young_ids) >= 2 * self.page_rows

    def close_page(self) -> list[MessageId]:
        """Turn the oldest young rows into a page; returns their ids."""
        end = self.page_rows
        ids = self.young_ids[:end]
        self.pages.append(
            Page(
                ids,
                self._lamports[:end],
                self._authors[:end],
                self._sequences[:end],
                self._sizes[:end],
            )
        )
        self.first_young += end
        del self.young_ids[:end], self._hints[:end], self._lamports[:end], self._authors[:end]
        del self._sequences[:end], self._sizes[:end]
        return ids

    # --- one row ---

    def id_of(self, row: int) -> MessageId:
        young = row - self.first_young
        if young >= 0:
            return self.young_ids[young]
        page, index = divmod(row, self.page_rows)
        return self.pages[page].id_at(index)

    def packed_id_of(self, row: int) -> bytes:
        """The id of a row of a page, if it can be packed."""
        start = row % self.page_rows * PACKED_BYTES
        return self.pages[row // self.page_rows].ids[start : start + PACKED_BYTES]

    def lamport_of(self, row: int) -> int:
        young = row - self.first_young
        if young >= 0:
            return self._lamports[young]
        at, index = divmod(row, self.page_rows)
        page = self.pages[at]
        return page.first_lamport + page.lamports[index]

    def author_of(self, row: int) -> Author:
        young = row - self.first_young
        if young >= 0:
            return self.authors[self._authors[young]]
        page, index = divmod(row, self.page_rows)
        return self.authors[self.pages[page].authors[index]]

    def sender_of(self, row: int) -> ParticipantId:
        return self.author_of(row)[0]

    def sequence_of(self, row: int) -> int:
        young = row - self.first_young
        if young >= 0:
            return self._sequences[young]
        page, index = divmod(row, self.page_rows)
        return self.pages[page].sequences[index]

    def size_of(self, row: int) -> int:
        young = row - self.first_young
        if young >= 0:
            return self._sizes[young]
        page, index = divmod(row, self.page_rows)
        return self.pages[page].sizes[index]

    def hint_of(self, row: int) -> bytes | None:
        """How a message can be retrieved; None also if it is no longer young."""
        young = row - self.first_young
        return self._hints[young] if young >= 0 else None

    def set_hint(self, row: int, retrieval_hint: bytes) -> None:
        """Only a young row remembers it."""
        young = row - self.first_young
        if young >= 0:
            self._hints[young] = retrieval_hint

    # --- all rows ---

    def author_numbers(self) -> Iterator[int]:
        """For each row the place of its author in ``authors``."""
        old = chain.from_iterable(page.authors for page in self.pages)
        return chain(old, self._authors)

    def sequences(self) -> Iterator[int]:
        """For each row its author's sequence number; anything if there is none."""
        old = chain.from_iterable(page.sequences for page in self.pages)
        return chain(old, self._sequences)

    def is_in_order(self) -> bool:
        """Whether the rows ascend by position."""
        start, doubtful = 0, list[int]()
        # Rows whose successor is not later in Lamport time, as far as a single page shows.
        for column in (*(page.lamports for page in self.pages), self._lamports):
            if any(map(ge, column, islice(column, 1, None))):
                pairs = enumerate(pairwise(column), start)
                doubtful.extend(row for row, (one, other) in pairs if one >= other)
            start += len(column)
            if 0 < start < len(self):
                doubtful.append(start - 1)
        return all(self.place(row) < self.place(row + 1) for row in doubtful)

    def place(self, row: int) -> tuple[int, MessageId]:
        """The position, to compare with others."""
        # Strings compare by code point, which is the order of their UTF-8 bytes.
        return self.lamport_of(row), self.id_of(row)

    # --- as a sequence of entries ---

    def __len__(self) -> int:
        return self.first_young + len(self.young_ids)

    @overload
    def __getitem__(self, number: int) -> LogEntry: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[LogEntry, ...]: ...

    def __getitem__(self, number: int | slice) -> LogEntry | tuple[LogEntry, ...]:
        if isinstance(number, slice):
            return tuple(self[index] for index in range(*number.indices(len(self))))
        row = range(len(self))[number]
        sender_id, instance_id = self.author_of(row)
        return LogEntry(
            position=Position(lamport_timestamp=self.lamport_of(row), message_id=self.id_of(row)),
            sender_id=sender_id,
            retrieval_hint=self.hint_of(row),
            author=(
                None
                if instance_id is None
                else AuthorSequence(instance_id=instance_id, sequence=self.sequence_of(row))
            ),
            previous_id=self.previous.get(row),
            size=self.size_of(row),
        )

    def __iter__(self) -> Iterator[LogEntry]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Equal to any sequence of the same entries."""
        if not isinstance(other, LogTable | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(map(_same, self, other))

    __hash__ = None  # type: ignore[assignment]  # mutable


def _same(one: object, other: object) -> bool:
    return one == other


def _all_packed(ids: Sequence[MessageId | bytes]) -> TypeGuard[Sequence[bytes]]:
    return {*map(type, ids)} == {bytes}


def _narrow(values: Sequence[int]) -> "array[int]":
    """The values in the narrowest column that takes them."""
    largest = max(values)
    for code, end in _WIDTHS:
        if largest < end:
            return array(code, values)
    return array("Q", values)
