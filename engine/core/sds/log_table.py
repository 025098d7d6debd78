"""A log as columns, as a store loads it at start: a million entries at a time.

An object per entry would cost a start more time and memory than all of its other work.  From
outside a table is a sequence of ``LogEntry``, each created when it is read.  The newest rows are
young: their ids are texts and their retrieval hints are here, for the messages that name them.
Older rows are in pages that never change, some 25 bytes each, without hints; a store can keep them,
and their look-up by id, for the next start.  The order is left to ``LogIndex``.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from operator import ge
from struct import unpack
from typing import Final, TypeAlias, TypeGuard, overload

from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, Position
from engine.core.packed_ids import PACKED_BYTES, pack_id, unpack_id, unpack_ids
from engine.core.sds.log_ids import BUCKET_ROWS, Buckets, RowsById
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
"""Of rows that are heard, between one and two pages are young, so that a page is closed in a
millisecond."""
LEAST_YOUNG: Final = 128
"""Of rows that are loaded; more would cost each start."""
_NO_SEQUENCE: Final = 0
_NO_ID: Final = bytes(PACKED_BYTES)
_WIDTHS: Final = (("B", 2**8), ("H", 2**16), ("I", 2**32))

_text_of = lru_cache(maxsize=4_096)(unpack_id)
"""Each claim asks for the newest ids of the same authors again."""


class LogPage:
    """Rows that do not change any more."""

    __slots__ = ("authors", "first_lamport", "ids", "lamports", "sequences", "sizes", "texts")

    def __init__(  # noqa: PLR0913 - one for each column
        self,
        *,
        ids: bytes,
        first_lamport: int,
        lamports: "array[int]",
        authors: "array[int]",
        sequences: "array[int]",
        sizes: "array[int]",
    ) -> None:
        self.texts: dict[int, MessageId] = {}
        """Ids that cannot be packed, by place in the page."""
        self.ids = ids
        self.first_lamport = first_lamport
        self.lamports = lamports
        """Minus the first."""
        self.authors = authors
        self.sequences = sequences
        self.sizes = sizes

    @classmethod
    def of(
        cls,
        ids: Sequence[MessageId | bytes],
        lamports: Sequence[int],
        authors: Sequence[int],
        sequences: Sequence[int],
        sizes: Sequence[int],
    ) -> "LogPage":
        texts: dict[int, MessageId] = {}
        packed = b"".join(ids if _all_packed(ids) else _packed(ids, texts))
        first = min(lamports)
        page = cls(
            ids=packed,
            first_lamport=first,
            lamports=_narrow([lamport - first for lamport in lamports]),
            authors=_narrow(authors),
            sequences=_narrow(sequences),
            sizes=_narrow(sizes),
        )
        page.texts = texts
        return page

    def __len__(self) -> int:
        return len(self.lamports)

    @property
    def last_place(self) -> tuple[int, MessageId]:
        """The position of its last row."""
        return self.first_lamport + self.lamports[-1], self.id_at(len(self) - 1)

    def id_at(self, index: int) -> MessageId:
        text = self.texts.get(index) if self.texts else None
        start = PACKED_BYTES * index
        return _text_of(self.ids[start : start + PACKED_BYTES]) if text is None else text

    def packed_ids(self) -> tuple[bytes, ...]:
        """One for each row; anything for an id that cannot be packed."""
        return unpack(f"{PACKED_BYTES}s" * (len(self.ids) // PACKED_BYTES), self.ids)


def _packed(ids: Sequence[MessageId | bytes], texts: dict[int, MessageId]) -> Iterator[bytes]:
    """Each id in 16 bytes; those that cannot be packed go to ``texts``."""
    for index, item in enumerate(ids):
        if isinstance(item, bytes):
            yield item
        elif packed := pack_id(item):
            yield packed
        else:
            texts[index] = item
            yield _NO_ID


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
        "distrusted",
        "first_young",
        "old",
        "page_rows",
        "pages",
        "pages_found",
        "previous",
        "rows_only",
        "rows_saved",
        "young_ids",
    )

    def __init__(self, *, page_rows: int = PAGE_ROWS, bucket_rows: int = BUCKET_ROWS) -> None:
        self.page_rows = page_rows
        self.distrusted = False
        """Whether pages that a store had kept were damaged or out of date, and were left."""
        self.rows_only = False
        """Whether a store reads it as rows, because it cannot read what it had kept."""
        self._empty(bucket_rows)

    def clear(self) -> None:
        """Remove all entries."""
        self._empty(self.old.bucket_rows)

    def _empty(self, bucket_rows: int) -> None:
        self.pages: list[LogPage] = []
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
        self.old = RowsById(self.packed_id_of, bucket_rows=bucket_rows)
        """Rows of pages by id: those of the first ``pages_found`` pages."""
        self.pages_found = 0
        self.rows_saved = 0
        """So many of the first rows came from pages that a store had kept, and are in order."""

    def restore_authors(self, authors: Iterable[Author]) -> None:
        """Take over the authors of pages that were kept, before these."""
        for author in authors:
            self._number_of(author)

    def add_pages(self, pages: Sequence[LogPage], previous: Mapping[int, MessageId]) -> None:
        """Add pages that were kept, which ascend by position, before any row."""
        self.pages += pages
        self.previous.update(previous)
        self.first_young += sum(map(len, pages))
        self.rows_saved = self.first_young

    def restore_old(self, buckets: Iterable[Buckets], rows: int, *, key: int) -> None:
        """Take over the look-up of the first ``rows`` by id.

        Raises ValueError if it does not fit together.
        """
        old = RowsById(self.packed_id_of, bucket_rows=self.old.bucket_rows, key=key)
        old.restore(buckets)
        if len(old) != rows or rows > self.first_young:
            raise ValueError("a saved look-up has another number of rows")
        self.old = old
        self.pages_found = rows // self.page_rows

    def find_pages(self, *, key: int | None = None) -> None:
        """Make the rows of all pages known by id; ``key``: see ``RowsById``."""
        old, size = self.old, self.page_rows
        if not len(old) and self.pages:
            room, bucket_rows = self.first_young, old.bucket_rows
            key = old.key if key is None else key
            self.old = RowsById(self.packed_id_of, room=room, bucket_rows=bucket_rows, key=key)
        for number in range(self.pages_found, len(self.pages)):
            self.find_page(number, range(number * size, (number + 1) * size))

    def find_page(self, number: int, rows: Sequence[int]) -> None:
        """Make these rows of the next page known by id; others have left the log."""
        page, first = self.pages[number], number * self.page_rows
        packed = page.packed_ids()
        if page.texts:
            for row in rows:
                if (text := page.texts.get(row - first)) is not None:
                    self.old.add_text(text, row)
            rows = [row for row in rows if row - first not in page.texts]
        if len(rows) < len(packed):
            packed = tuple(packed[row - first] for row in rows)
        self.old.add(packed, rows)
        self.pages_found = number + 1

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Add rows, a page at a time; the newest stay young."""
        rows = iter(rows)
        chunk = list(islice(rows, self.page_rows))
        while chunk:
            following = list(islice(rows, self.page_rows))
            enough = len(following) >= min(LEAST_YOUNG, self.page_rows)
            if enough and len(self.young_ids) % self.page_rows == 0:
                while self.young_ids:
                    self.close_page()
                self._add_page(chunk)
            else:
                self._add_young(chunk)
                while self.is_full():
                    self.close_page()
            chunk = following

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
        table.old = self.old.copy(table.packed_id_of)
        table.pages_found = self.pages_found
        table.rows_saved = self.rows_saved
        table.distrusted, table.rows_only = self.distrusted, self.rows_only
        return table

    def _add_page(self, rows: list[Row]) -> None:
        lamports, ids, senders, _, instances, sequences, previous, sizes = zip(*rows, strict=True)
        authors = self._numbers_of([*zip(senders, instances, strict=True)])
        if previous.count(None) < len(rows):  # Few pages have one.
            numbered = enumerate(previous, self.first_young)
            self.previous.update((row, item) for row, item in numbered if item is not None)
        if None in sequences:
            sequences = tuple(_NO_SEQUENCE if n is None else n for n in sequences)
        self.pages.append(LogPage.of(ids, lamports, authors, sequences, sizes))
        self.first_young += len(rows)

    def _add_young(self, rows: list[Row]) -> None:
        lamports, ids, senders, hints, instances, sequences, previous, sizes = zip(
            *rows, strict=True
        )
        first = len(self)
        self.previous.update(
            (row, item) for row, item in enumerate(previous, first) if item is not None
        )
        self.young_ids += (
            unpack_ids(ids)
            if _all_packed(ids)
            else [unpack_id(item) if isinstance(item, bytes) else item for item in ids]
        )
        self._hints += hints
        self._lamports.extend(lamports)
        self._authors.extend(self._numbers_of([*zip(senders, instances, strict=True)]))
        self._sequences.extend(_NO_SEQUENCE if n is None else n for n in sequences)
        self._sizes.extend(sizes)

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
            for author in dict.fromkeys(authors):
                self._number_of(author)
            return [*map(self._numbers.__getitem__, authors)]

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
            LogPage.of(
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

    def author_number_of(self, row: int) -> int:
        """The place of its author in ``authors``."""
        young = row - self.first_young
        if young >= 0:
            return self._authors[young]
        page, index = divmod(row, self.page_rows)
        return self.pages[page].authors[index]

    def author_of(self, row: int) -> Author:
        return self.authors[self.author_number_of(row)]

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

    def author_columns(self) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
        """For each page, and for the young rows: the first row, authors and sequence numbers."""
        for number, page in enumerate(self.pages):
            yield number * self.page_rows, page.authors, page.sequences
        yield self.first_young, self._authors, self._sequences

    def rows_in_order(self) -> int:
        """How many of the first rows ascend by position."""
        start, doubtful = 0, list[int]()
        # Rows whose successor is not later in Lamport time, as far as a single page shows.
        for column in (*(page.lamports for page in self.pages), self._lamports):
            end = start + len(column)
            if end > self.rows_saved and any(map(ge, column, islice(column, 1, None))):
                pairs = enumerate(pairwise(column), start)
                doubtful.extend(row for row, (one, other) in pairs if one >= other)
            start = end
            if self.rows_saved <= start < len(self) and start > 0:
                doubtful.append(start - 1)
        wrong = (row for row in doubtful if self.place(row) >= self.place(row + 1))
        return next(wrong, len(self) - 1) + 1

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
