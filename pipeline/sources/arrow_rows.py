"""Rows into Arrow, a batch at a time, each with what is wrong with it by the contract.

The words for what is wrong are those of ``engine.delivery.check``, but here a whole column is
looked at in one go: row by row Python would be ten times slower than the disk.  Texts that repeat
are dictionaries, so that each different one is read, looked at and written once.  Only a batch that
does not even fit the columns' types (no recorder writes one) is sorted out row by row.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from engine.delivery.check import problem_of
from engine.delivery.contract import (
    MAX_MESSAGE_ID_BYTES,
    MESSAGE,
    READABLE_VERSIONS,
    Column,
    Table,
    Type,
)
from pipeline.schema import arrow_schema

PROBLEM: Final = "problem"
FILE: Final = "file"
REPEATING: Final = pa.dictionary(pa.int32(), pa.string())
_INTEGERS: Final = {Type.INT16, Type.INT32, Type.INT64}
_LISTS: Final = {Type.TEXTS, Type.INT64S}
_PLAIN_LISTS: Final = {
    Type.INT64S: (r"^\[(-?(0|[1-9][0-9]{0,18})(,-?(0|[1-9][0-9]{0,18}))*)?\]$", ","),
    Type.TEXTS: (r'^\[("[^"\\\x00-\x1f]*"(,"[^"\\\x00-\x1f]*")*)?\]$', '","'),
}
"""Lists without blanks and escapes, and what stands between two items."""
_BAD_LIST: Final = object()
NOT_ARROW: Final = (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError)
"""What is raised for values that a column's type does not take."""


@lru_cache(maxsize=16)
def source_schema(table: Table) -> pa.Schema:
    """The contract's columns, all nullable, and ``problem`` and ``file``."""
    fields = [field.with_nullable(True) for field in arrow_schema(table)]
    return pa.schema([*fields, pa.field(PROBLEM, pa.string()), pa.field(FILE, pa.string())])


@lru_cache(maxsize=16)
def batch_schema(table: Table) -> pa.Schema:
    """The same, with dictionaries of texts that repeat."""
    repeating = {*repeating_texts(table), PROBLEM, FILE}
    return pa.schema(
        [
            field.with_type(REPEATING) if field.name in repeating else field
            for field in source_schema(table)
        ]
    )


@lru_cache(maxsize=16)
def repeating_texts(table: Table) -> tuple[str, ...]:
    """Columns of few different texts; a dictionary of ids or digests would hold nearly all."""
    digest = MESSAGE.column("content")
    return tuple(
        column.name
        for column in table.columns
        if column.type is Type.TEXT
        and column.maximum < MAX_MESSAGE_ID_BYTES
        and column is not digest
    )


def plain(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """Without dictionaries, as Spark takes it."""
    return batch.cast(source_schema(table))


def batch_of(
    table: Table, rows: Sequence[Sequence[object]], file: str, header: Mapping[str, object]
) -> pa.RecordBatch:
    """Rows as they stand in a log file: the table's ``row_columns``, lists as JSON text.

    ``header``: what the file says once for all of its rows, by the column's name.
    """
    try:
        cells = zip(table.row_columns, zip(*rows, strict=True), strict=True)
        found = {column: _array(column, values) for column, values in cells}
        return of_columns(table, found, file, header)
    except NOT_ARROW:
        return _one_by_one(table, rows, file, header)


def of_columns(
    table: Table, found: Mapping[Column, pa.Array], file: str, header: Mapping[str, object]
) -> pa.RecordBatch:
    """As ``batch_of``, of ``row_columns`` that have their types."""
    rows = len(next(iter(found.values())))
    columns = [
        _same(column, header[column.name], rows) if column.per_log else found[column]
        for column in table.columns
    ]
    return checked(table, columns, file)


def checked(table: Table, columns: Sequence[pa.Array], file: str) -> pa.RecordBatch:
    """Columns of the table's types, looked through.  What is too long is left out."""
    rows = len(columns[0])
    problems: pa.Array = pa.nulls(rows, pa.string())
    kept: list[pa.Array] = []
    for column, whole in zip(table.columns, columns, strict=True):
        values = whole
        for mask, what in _masks(column, whole):
            if pc.any(mask).as_py():
                is_wrong = pc.fill_null(mask, False)
                reason = pa.scalar(f"{column.name}.{what}")
                here = pc.if_else(is_wrong, reason, pa.scalar(None, pa.string()))
                problems = pc.coalesce(problems, here)
                if what == "length":
                    values = _without(values, is_wrong)
        kept.append(values)
    return _batch(table, kept, problems, file)


def _without(values: pa.Array, mask: pa.Array) -> pa.Array:
    """Null where the mask is true; a dictionary keeps what is used no more."""
    if pa.types.is_dictionary(values.type):
        return pa.DictionaryArray.from_arrays(_without(values.indices, mask), values.dictionary)
    return pc.if_else(mask, pa.scalar(None, values.type), values)


def refused(table: Table, file: str, reason: str) -> pa.RecordBatch:
    """One row that stands for a file, or the rest of one, that could not be read."""
    columns = [pa.nulls(1, field.type) for field in arrow_schema(table)]
    return _batch(table, columns, pa.array([reason]), file)


def _batch(
    table: Table, columns: Sequence[pa.Array], problems: pa.Array, file: str
) -> pa.RecordBatch:
    schema = batch_schema(table)
    found = [*columns, problems, _same_text(file, len(problems))]
    fitting = [
        values if values.type == field.type else values.dictionary_encode()
        for values, field in zip(found, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(fitting, schema=schema)


# --- conversion -----------------------------------------------------------------------------------


def _array(column: Column, values: Sequence[object]) -> pa.Array:
    """Of the column's type; raises where a value is of another, rather than convert it."""
    wanted = source_type(column)
    if column.type in _LISTS:
        return _lists(column, pa.array(values))
    found = pa.array(values)
    if pa.types.is_null(found.type):
        return found.cast(wanted)
    alike = {Type.TEXT: pa.string(), Type.BINARY: pa.binary(), Type.FLOAT64: pa.float64()}
    if found.type != alike.get(column.type, pa.int64()):
        raise TypeError(column.name)
    return found if found.type == wanted else found.cast(wanted)


def _same_text(value: str, rows: int) -> pa.Array:
    numbers = pa.repeat(pa.scalar(0, REPEATING.index_type), rows)
    return pa.DictionaryArray.from_arrays(numbers, pa.array([value]))


def _same(column: Column, value: object, rows: int) -> pa.Array:
    """That value in every row."""
    if isinstance(value, str) and column.type is Type.TEXT:
        return _same_text(value, rows)
    return pa.repeat(pa.scalar(value, source_type(column)), rows)


def _lists(column: Column, texts: pa.Array) -> pa.Array:
    """Of JSON texts: all at once if they are as our recorder writes them, else one by one."""
    wanted = source_type(column)
    if pa.types.is_null(texts.type):
        return texts.cast(wanted)
    if texts.type != pa.string():
        raise TypeError(column.name)
    plain, comma = _PLAIN_LISTS[column.type]
    if not pc.all(pc.match_substring_regex(texts, plain)).as_py():
        return pa.array([_list(value) for value in texts.to_pylist()], type=wanted)
    inner = pc.utf8_slice_codeunits(texts, len(comma) // 2 + 1, -(len(comma) // 2) - 1)
    items = pc.split_pattern(inner, comma)
    empty = pc.equal(texts, "[]")
    if pc.any(empty).as_py():
        items = pc.if_else(empty, pa.scalar([], items.type), items)
    return items.cast(wanted)


def _list(value: str | None) -> list[object] | None:
    if value is None:
        return None
    decoded = json.loads(value)
    if not isinstance(decoded, list):
        raise TypeError
    return decoded


@lru_cache(maxsize=128)
def source_type(column: Column) -> pa.DataType:
    return arrow_schema(Table(name="", text="", key=(), columns=(column,))).field(0).type


def _one_by_one(
    table: Table, rows: Sequence[Sequence[object]], file: str, header: Mapping[str, object]
) -> pa.RecordBatch:
    whole: list[tuple[object, ...]] = []
    for row in rows:
        found = dict(header)
        for column, value in zip(table.row_columns, row, strict=True):
            found[column.name] = _decoded(value) if column.type in _LISTS else value
        whole.append(tuple(found[name] for name in table.names))
    return sorted_out(table, whole, file)


def sorted_out(
    table: Table, rows: Sequence[tuple[object, ...] | None], file: str
) -> pa.RecordBatch:
    """Rows with lists as lists, looked at one by one; None is a row that could not be read."""
    problems = [_problem(table, row) for row in rows]
    try:
        return _built(table, rows, problems, file)
    except NOT_ARROW:
        problems = [what or _unfit(table, row) for what, row in zip(problems, rows, strict=True)]
        return _built(table, rows, problems, file)


def _built(
    table: Table,
    rows: Sequence[tuple[object, ...] | None],
    problems: Sequence[str | None],
    file: str,
) -> pa.RecordBatch:
    """Of rows that have a problem nothing is kept."""
    empty = (None,) * len(table.columns)
    kept = [empty if row is None or bad else row for row, bad in zip(rows, problems, strict=True)]
    columns = [
        pa.array(values, type=source_type(column))
        for column, values in zip(table.columns, zip(*kept, strict=True), strict=True)
    ]
    return _batch(table, columns, pa.array(problems, pa.string()), file)


def _problem(table: Table, row: tuple[object, ...] | None) -> str | None:
    if row is None:
        return "row.unreadable"
    problem = problem_of(table, row)
    if problem is None and row[0] not in READABLE_VERSIONS:
        return "schema_version.range"
    return problem


def _unfit(table: Table, row: tuple[object, ...] | None) -> str | None:
    """Python has text without UTF-8 and integers without end, in lists too; Arrow has not."""
    for column, value in zip(table.columns, row or (), strict=False):
        try:
            pa.scalar(value, source_type(column))
        except NOT_ARROW:
            return f"{column.name}.type"
    return None


def _decoded(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return _BAD_LIST


# --- what may be wrong with a column --------------------------------------------------------------


def _masks(column: Column, values: pa.Array) -> list[tuple[pa.Array, str]]:
    if pa.types.is_dictionary(values.type):
        return list(_masks_of_repeating(column, values))
    found: list[tuple[pa.Array, str]] = []
    if not column.nullable and values.null_count:
        found.append((pc.is_null(values), "null"))
    if values.null_count == len(values):
        return found
    if column.type in _INTEGERS:
        found += _integer_masks(column, values)
    elif column.type is Type.TEXT:
        found += _text_masks(column, values)
    elif column.type is Type.BINARY:
        lengths = pc.binary_length(values)
        outside = pc.or_(pc.less(lengths, column.minimum), pc.greater(lengths, column.maximum))
        found.append((outside, "length"))
    elif column.type in _LISTS:
        found.append((pc.greater(pc.list_value_length(values), column.maximum), "length"))
    return found


def _masks_of_repeating(column: Column, values: pa.Array) -> Iterator[tuple[pa.Array, str]]:
    """Each different text is looked at once."""
    if not column.nullable and values.null_count:
        yield pc.is_null(values), "null"
    for mask, what in _masks(replace(column, nullable=True), values.dictionary):
        if pc.any(mask).as_py():
            yield mask.take(values.indices), what


def _integer_masks(column: Column, values: pa.Array) -> list[tuple[pa.Array, str]]:
    if column.name == "schema_version":
        return [(pc.invert(pc.is_in(values, pa.array(READABLE_VERSIONS, values.type))), "range")]
    bounds = pc.min_max(values).as_py()
    if column.minimum <= bounds["min"] and bounds["max"] <= column.maximum:
        return []
    outside = pc.or_(pc.less(values, column.minimum), pc.greater(values, column.maximum))
    return [(outside, "range")]


def _text_masks(column: Column, values: pa.Array) -> list[tuple[pa.Array, str]]:
    if column.choices:
        known = pc.is_in(values, value_set=pa.array(column.choices))
        return [(pc.and_(pc.invert(known), pc.is_valid(values)), "choice")]
    return [(pc.greater(pc.binary_length(values), column.maximum), "length")]
