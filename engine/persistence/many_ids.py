"""Looking up many rows by their ids with few statements.

A statement is prepared once and cached by its text, so its number of ids is one of two: one, or as
many as ``MANY``; what is left over is filled up with the last.  Knows no table.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

MANY: Final = 64

_Id = TypeVar("_Id", bound=str)


def with_ids(sql: str) -> Mapping[int, str]:
    """``sql``, which ends in "IN", by the number of ids that follow."""
    return {count: f"{sql} ({', '.join('?' * count)})" for count in (1, MANY)}


def by_the_dozen(ids: Sequence[_Id]) -> Iterator[Sequence[_Id]]:
    """All of ``ids`` in as many as a statement of ``with_ids`` takes."""
    if len(ids) == 1:
        yield ids
        return
    for first in range(0, len(ids), MANY):
        some = ids[first : first + MANY]
        yield [*some, *[some[-1]] * (MANY - len(some))]
