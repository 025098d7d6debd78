"""A log's rows as lines of text that SQLite makes and Arrow reads, where that is exact.

To fetch a row costs Python one object for each cell, and columns made of these cost as much again;
a line for each row and Arrow's reader of CSV cost half of that.  But text has no types, and what
stands in a file is whatever its maker wanted.  So SQL makes an empty line of a row unless each cell
is of the type that its column has; and a block of lines counts only if Arrow finds as many rows as
there were, none empty, each with all its cells, all of it UTF-8, and as many bytes of text as
SQLite counted (its ``printf`` ends a text at a zero byte).  A cell with a separator in it breaks
the first of these, so nothing is quoted.  Empty is null: an empty text, or one that begins with a
blank, makes a row empty too.  Tables with lists gain nothing by this and are not read so.

From the first block that does not count, the caller goes on as it always could, row by row.  Here
is decided how cells are read and never whether they are any good: that is ``arrow_rows``'s.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from engine.delivery.contract import Column, Table, Type
from engine.delivery.sqlite_log import DeliveryLogError, LogReader
from pipeline.sources.arrow_rows import NOT_ARROW, source_type

_BETWEEN: Final = "\x1f"
_OCTETS: Final = "octets"
_LAST_TEXT: Final = f"char({0x10FFFF})"
_NUMBERS: Final = {Type.INT16, Type.INT32, Type.INT64}
_TYPES: Final = {*_NUMBERS, Type.TEXT, Type.BINARY}
_PARSED: Final = csv.ParseOptions(
    delimiter=_BETWEEN,
    quote_char=False,
    double_quote=False,
    escape_char=False,
    newlines_in_values=False,
    ignore_empty_lines=False,
)

Columns = dict[Column, pa.Array]


def blocks(
    log: LogReader, table: Table, *, after_seq: int, through_seq: int | None
) -> Iterator[Columns]:
    """The table's ``row_columns``, many rows at a time.

    Ends at the first block that cannot be read so, and then there are more rows.
    """
    if not all(column.type in _TYPES for column in table.row_columns):
        return
    lines = log.lines(table, _line(table), after_seq=after_seq, through_seq=through_seq)
    while True:
        try:
            rows, text = next(lines)
            found = _columns(table, rows, text)
        except (StopIteration, DeliveryLogError, *NOT_ARROW):
            return
        if found is None:
            return
        yield found


# --- what SQLite makes ----------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _line(table: Table) -> str:
    """SQL: a row's cells and how many bytes its texts have, or an empty blob."""
    columns = table.row_columns
    odd = " OR ".join(map(_is_odd, columns))
    texts = [column for column in columns if column.type is Type.TEXT]
    cells = [f"hex({c.name})" if c.type is Type.BINARY else c.name for c in columns]
    cells.append(" + ".join(map(_length, texts)) or "0")
    form = _BETWEEN.join(["%s"] * len(cells))
    return f"CASE WHEN {odd} THEN x'' ELSE CAST(printf('{form}', {', '.join(cells)}) AS BLOB) END"


def _is_odd(column: Column) -> str:
    """SQL: true if the cell is of another type, by SQLite's order: numbers, text, blobs.

    Of null it is null.  Real numbers pass: they have a point, which Arrow takes in no integer.  The
    plus takes the column's affinity away, by which the comparison would convert.
    """
    cell = f"+{column.name}"
    if column.type in _NUMBERS:
        return f"{cell} >= ''"
    if column.type is Type.BINARY:
        return f"{cell} <= x''"
    return f"{cell} NOT BETWEEN '!' AND {_LAST_TEXT}"


def _length(column: Column) -> str:
    length = f"length(CAST({column.name} AS BLOB))"
    return f"ifnull({length}, 0)" if column.nullable else length


# --- what Arrow makes of it -----------------------------------------------------------------------


def _columns(table: Table, rows: int, text: bytes) -> Columns | None:
    """None: that is not what SQLite meant.  Raises what ``NOT_ARROW`` names."""
    names, converted = _reading(table)
    found = csv.read_csv(
        pa.BufferReader(text),
        csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
        _PARSED,
        converted,
    )
    arrays = [column.combine_chunks() for column in found.columns]
    if found.num_rows != rows or arrays[-1].null_count:
        return None
    columns = dict(zip(table.row_columns, arrays, strict=False))
    texts = (
        pc.sum(pc.binary_length(columns[c])).as_py() or 0 for c in columns if c.type is Type.TEXT
    )
    if pc.sum(arrays[-1]).as_py() != sum(texts):
        return None
    return {c: _bytes(of) if c.type is Type.BINARY else of for c, of in columns.items()}


@lru_cache(maxsize=8)
def _reading(table: Table) -> tuple[list[str], csv.ConvertOptions]:
    types = {
        column.name: source_type(column) if column.type in _NUMBERS else pa.string()
        for column in table.row_columns
    }
    types[_OCTETS] = pa.int64()
    options = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    return list(types), options


def _bytes(digits: pa.Array) -> pa.Array:
    """Of hexadecimal digits, all at once: they lie one after another."""
    valid, offsets, data = digits.buffers()
    count = len(digits)
    places = pa.Array.from_buffers(pa.int32(), count + 1, [None, offsets], offset=digits.offset)
    halves = pc.cast(pc.divide(places, 2), pa.int32()).buffers()[1]
    whole = bytes.fromhex(data.to_pybytes().decode("ascii")) if data is not None else b""
    return pa.Array.from_buffers(pa.binary(), count, [valid, halves, pa.py_buffer(whole)])
