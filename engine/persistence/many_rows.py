"""Reads and writes many rows with few statements.

Statements are prepared once and cached by their text, so each is made for one of two numbers of
rows: one, or ``MANY``.  Every step of a statement releases the interpreter lock and must wait to
get it back; with many rows in one step, there is only one wait.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias, TypeVar

MANY: Final = 32

Value: TypeAlias = int | float | str | bytes | None
_Id = TypeVar("_Id", bound=str | bytes | int)


def with_ids(sql: str, *, order: str = "") -> Mapping[int, str]:
    """``sql``, which ends in "IN", by the number of ids that follow."""
    return {count: f"{sql} ({', '.join('?' * count)}) {order}" for count in (1, MANY)}


def by_the_dozen(ids: Sequence[_Id]) -> Iterator[Sequence[_Id]]:
    """All of ``ids`` in groups of the size that ``with_ids`` takes; the last id is repeated."""
    if len(ids) == 1:
        yield ids
        return
    for first in range(0, len(ids), MANY):
        some = ids[first : first + MANY]
        yield [*some, *[some[-1]] * (MANY - len(some))]


def with_rows(sql: str, *, columns: int, conflict: str = "") -> Mapping[int, str]:
    """``sql``, an INSERT up to the values, by the number of rows that follow."""
    row = f"({', '.join('?' * columns)})"
    return {count: f"{sql} VALUES {', '.join([row] * count)} {conflict}" for count in (1, MANY)}


def insert(
    connection: sqlite3.Connection, statement: Mapping[int, str], rows: Sequence[Sequence[Value]]
) -> None:
    """Insert the rows in order."""
    whole = len(rows) - len(rows) % MANY
    for first in range(0, whole, MANY):
        some = chain.from_iterable(rows[first : first + MANY])
        connection.execute(statement[MANY], tuple(some))
    connection.executemany(statement[1], rows[whole:])
