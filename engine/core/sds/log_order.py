"""The log's rows ascending by position, in chunks.

Rows that arrived in order are ranges, which cost nothing; a chunk becomes an array once a message
came late into it.  So a late message moves at most a few kilobytes, however long the log is.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, TypeAlias

from engine.core.ids import MessageId

Place: TypeAlias = tuple[int, MessageId]
"""Lamport timestamp and message id."""

CHUNK_ROWS: Final = 1_024
NEAR_THE_END: Final = 4
"""Rows that are looked at first: what a Store brings comes right before what was just said."""


class LogOrder:
    """Row numbers, ascending by position."""

    __slots__ = ("_chunk_rows", "_chunks", "_count", "_place")

    def __init__(
        self, count: int, place: Callable[[int], Place], *, chunk_rows: int = CHUNK_ROWS
    ) -> None:
        """The rows up to ``count`` are in order.  ``place`` yields a row's position."""
        self._place = place
        self._chunk_rows = chunk_rows
        self._count = count
        starts = range(0, count, chunk_rows)
        self._chunks: list[array[int] | range] = [
            range(start, min(start + chunk_rows, count)) for start in starts
        ]
        """None is empty."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._chunks)

    @property
    def first(self) -> int:
        return self._chunks[0][0]

    @property
    def last(self) -> int:
        return self._chunks[-1][-1]

    def append(self, row: int) -> None:
        """Add the last row."""
        self._count += 1
        chunks = self._chunks
        last = chunks[-1] if chunks else None
        if isinstance(last, array) and len(last) < self._chunk_rows:
            last.append(row)
            return
        if last is not None and len(last) == last[-1] - last[0] + 1:
            consecutive = range(last[0], last[-1] + 1)
            if all(map(int.__eq__, last, consecutive)):
                chunks[-1] = consecutive
        chunks.append(array("I", (row,)))

    def insert(self, row: int, *, counted: int = 0) -> int:
        """Add a row at its place.

        Returns how many rows come after it; of more than ``counted`` perhaps not all.
        """
        index, offset = self._find(self._place(row))
        if not self._chunks or (index == len(self._chunks) - 1 and offset == len(self._chunks[-1])):
            self.append(row)
            return 0
        chunk = self._as_array(index)
        after = len(chunk) - offset
        for later in range(index + 1, len(self._chunks)):
            if after > counted:
                break
            after += len(self._chunks[later])
        chunk.insert(offset, row)
        self._count += 1
        if len(chunk) >= 2 * self._chunk_rows:
            middle = len(chunk) // 2
            self._chunks[index : index + 1] = [chunk[:middle], chunk[middle:]]
        return after

    def remove(self, row: int) -> None:
        index, offset = self._find(self._place(row))
        chunk = self._as_array(index)
        del chunk[offset]
        self._count -= 1
        if not chunk:
            del self._chunks[index]

    def newest(self, count: int) -> list[int]:
        """The last rows, ascending."""
        return self._up_to(len(self._chunks), 0, count)

    def before(self, place: Place, count: int) -> list[int]:
        """The last rows before a place, ascending."""
        return self._up_to(*self._find(place), count)

    def since(self, place: Place) -> Iterator[int]:
        """The rows from a place on."""
        index, offset = self._find(place)
        return chain.from_iterable(
            [chunk[offset:] if at == 0 else chunk for at, chunk in enumerate(self._chunks[index:])]
        )

    def _up_to(self, index: int, offset: int, count: int) -> list[int]:
        rows = list(self._chunks[index][max(offset - count, 0) : offset]) if offset else []
        while len(rows) < count and index > 0:
            index -= 1
            rows[:0] = self._chunks[index][-(count - len(rows)) :]
        return rows

    def _find(self, place: Place) -> tuple[int, int]:
        """The chunk where a place is, and how many of its rows are before it."""
        last = self._chunks[-1] if self._chunks else ()
        for offset in range(len(last), max(len(last) - NEAR_THE_END, 0), -1):
            if self._place(last[offset - 1]) < place:
                return len(self._chunks) - 1, offset
        index = bisect_right(self._chunks, place, key=lambda chunk: self._place(chunk[0])) - 1
        if index < 0:
            return 0, 0
        return index, bisect_left(self._chunks[index], place, key=self._place)

    def _as_array(self, index: int) -> "array[int]":
        chunk = self._chunks[index]
        if isinstance(chunk, range):
            chunk = self._chunks[index] = array("I", chunk)
        return chunk
