"""Checks whether a row keeps to the contract; the row may come from anywhere.

A row is a sequence in the order of the table's columns.  The answer is a reason from a fixed
vocabulary, ``<column>.<problem>``; it repeats nothing of the row.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from engine.delivery.contract import Column, Table, Type

_Check = Callable[[object], str]
_NO_PROBLEM: Final = ""


def problem_of(table: Table, row: Sequence[object]) -> str | None:
    """The first problem of a row; None if there is none."""
    checks = _checks(table)
    if len(row) != len(checks):
        return "row.length"
    for column, value, check in zip(table.columns, row, checks, strict=True):
        if value is None:
            if not column.nullable:
                return f"{column.name}.null"
        elif problem := check(value):
            return f"{column.name}.{problem}"
    return None


@lru_cache(maxsize=16)
def _checks(table: Table) -> tuple[_Check, ...]:
    return tuple(map(_check_of, table.columns))


def _check_of(column: Column) -> _Check:
    match column.type:
        case Type.INT16 | Type.INT32 | Type.INT64:
            return lambda value: _int_problem(column, value)
        case Type.FLOAT64:
            return lambda value: _NO_PROBLEM if type(value) is float else "type"
        case Type.TEXT:
            return lambda value: _text_problem(column, value)
        case Type.BINARY:
            return lambda value: _binary_problem(column, value)
        case Type.TEXTS | Type.INT64S:
            item_type = str if column.type is Type.TEXTS else int
            return lambda value: _list_problem(column, value, item_type)


def _int_problem(column: Column, value: object) -> str:
    if type(value) is not int:
        return "type"
    return _NO_PROBLEM if column.minimum <= value <= column.maximum else "range"


def _text_problem(column: Column, value: object) -> str:
    if not isinstance(value, str):
        return "type"
    if column.choices and value not in column.choices:
        return "choice"
    return _NO_PROBLEM if _byte_length(value) <= column.maximum else "length"


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _binary_problem(column: Column, value: object) -> str:
    if not isinstance(value, bytes):
        return "type"
    return _NO_PROBLEM if column.minimum <= len(value) <= column.maximum else "length"


def _list_problem(column: Column, value: object, item_type: type) -> str:
    if not isinstance(value, list) or any(type(item) is not item_type for item in value):
        return "type"
    return _NO_PROBLEM if len(value) <= column.maximum else "length"
