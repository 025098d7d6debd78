"""Sets of sequence numbers as ranges: what is held of an author, or claimed to be.

A set without gaps is one range, however long; a look-up or an insertion is a binary search.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from engine.core.sds.vocabulary import SequenceRange


class SequenceSet:
    """Numbers from 1 upwards, kept as ascending, disjoint, not adjacent ranges."""

    __slots__ = ("firsts", "lasts")

    def __init__(self, ranges: Iterable[SequenceRange] = ()) -> None:
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        for item in ranges:
            self.add_range(item.first, item.last)

    def add(self, number: int) -> None:
        lasts = self.lasts
        if lasts and number == lasts[-1] + 1:
            lasts[-1] = number
        else:
            self.add_range(number, number)

    def add_range(self, first: int, last: int) -> None:
        """Include ``first`` to ``last``, merging what touches."""
        low = bisect_left(self.lasts, first - 1)
        high = bisect_right(self.firsts, last + 1)
        if low < high:
            first = min(first, self.firsts[low])
            last = max(last, self.lasts[high - 1])
        self.firsts[low:high] = [first]
        self.lasts[low:high] = [last]

    def remove(self, number: int) -> None:
        """Remove a number, if it is present."""
        index = bisect_left(self.lasts, number)
        if index == len(self.lasts) or self.firsts[index] > number:
            return
        first, last = self.firsts[index], self.lasts[index]
        kept = [item for item in ((first, number - 1), (number + 1, last)) if item[0] <= item[1]]
        self.firsts[index : index + 1] = [item[0] for item in kept]
        self.lasts[index : index + 1] = [item[1] for item in kept]

    def __contains__(self, number: int) -> bool:
        index = bisect_left(self.lasts, number)
        return index < len(self.lasts) and self.firsts[index] <= number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SequenceSet):
            return NotImplemented
        return self.firsts == other.firsts and self.lasts == other.lasts

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __len__(self) -> int:
        """Number of ranges."""
        return len(self.firsts)

    def ranges(self, limit: int | None = None) -> tuple[SequenceRange, ...]:
        """The oldest ``limit`` ranges."""
        return tuple(
            SequenceRange(first=first, last=last)
            for first, last in zip(self.firsts[:limit], self.lasts[:limit], strict=True)
        )

    def covers(self, other: "SequenceSet") -> bool:
        """Whether every number of ``other`` is in this set."""
        return not self.holes(other)

    def holes(self, other: "SequenceSet") -> list[SequenceRange]:
        """What ``other`` has and this set is missing, ascending."""
        found: list[SequenceRange] = []
        for first, last in zip(other.firsts, other.lasts, strict=True):
            at = first
            index = bisect_left(self.lasts, first)
            while at <= last:
                if index >= len(self.firsts) or self.firsts[index] > last:
                    found.append(SequenceRange(first=at, last=last))
                    break
                if self.firsts[index] > at:
                    found.append(SequenceRange(first=at, last=self.firsts[index] - 1))
                at = self.lasts[index] + 1
                index += 1
        return found
