"""Exported rows, Parquet and JSON lines, by Arrow: a damaged file is one row of quarantine.

Spark's own readers would fail the whole job at a truncated file, or pass over it without a word.
A file is recognised by its columns; JSON lines by those of its first row.
"""

import base64
import json
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from engine.delivery.contract import Column, Table, Type
from pipeline.sources import arrow_rows
from pipeline.sources.files import PARQUET, Piece, table_of

BATCH_ROWS: Final = 50_000
MAX_LINE_CHARACTERS: Final = 256 * 1024
MOST_ROW_GROUPS: Final = 1_000
"""Of a file with more texts are read one by one: to look at each group takes its time, too."""
_ENCODINGS: Final = {"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}


class ExportError(Exception):
    """An exported file that cannot be read; ``reason`` is one of a few words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def table_in(piece: Piece) -> Table:
    """Which table an export holds.  Raises ExportError.

    What is there and no file, such as a pipe, is not opened: nobody may ever write to it.
    """
    path = Path(piece.path)
    try:
        if path.exists() and not path.is_file():
            raise ExportError("unreadable")
        if piece.kind == PARQUET:
            names = pq.read_schema(piece.path).names
        else:
            with path.open(encoding="utf-8") as lines:
                first = json.loads(lines.readline(MAX_LINE_CHARACTERS))
            names = list(first) if isinstance(first, dict) else []
    except FileNotFoundError as error:
        raise ExportError("absent") from error
    except (OSError, pa.ArrowException, ValueError, RecursionError) as error:
        raise ExportError("corrupt") from error
    table = table_of(names)
    if table is None:
        raise ExportError("not_a_log")
    return table


def batches(piece: Piece, table: Table) -> Iterator[pa.RecordBatch]:
    """All rows, looked through; nothing if the file holds another table.  Raises ExportError."""
    if table_in(piece) is not table:
        return
    read = _parquet if piece.kind == PARQUET else _json_lines
    try:
        yield from read(piece.path, table)
    except (OSError, pa.ArrowException, UnicodeDecodeError, KeyError) as error:
        raise ExportError("corrupt") from error


def _parquet(path: str, table: Table) -> Iterator[pa.RecordBatch]:
    told = pq.read_metadata(path)
    there = [name for name in table.names if name in told.schema.to_arrow_schema().names]
    repeating = _with_dictionaries(told, arrow_rows.repeating_texts(table))
    with pq.ParquetFile(path, metadata=told, read_dictionary=repeating) as file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=there):
            batch.validate(full=True)  # Nobody else looks whether a text is one.
            columns = [_column(batch, column) for column in table.columns]
            yield arrow_rows.checked(table, columns, path)


def _with_dictionaries(told: pq.FileMetaData, names: Collection[str]) -> list[str]:
    """Which of these columns Arrow can read as dictionaries: texts, in the usual encodings."""
    if told.num_row_groups > MOST_ROW_GROUPS:
        return []
    groups = [told.row_group(at) for at in range(told.num_row_groups)]
    columns = ((at, told.schema.column(at)) for at in range(told.num_columns))
    return [
        column.path
        for at, column in columns
        if column.path in names
        and column.physical_type == "BYTE_ARRAY"
        and all(_ENCODINGS.issuperset(group.column(at).encodings) for group in groups)
    ]


def _column(batch: pa.RecordBatch, column: Column) -> pa.Array:
    """Null where the file does not have it, as one of an earlier version."""
    wanted = arrow_rows.source_type(column)
    if column.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, wanted)
    values = batch.column(column.name)
    return values if values.type in (wanted, arrow_rows.REPEATING) else values.cast(wanted)


def _json_lines(path: str, table: Table) -> Iterator[pa.RecordBatch]:
    with Path(path).open(encoding="utf-8") as lines:
        while taken := list(islice(_lines(lines), BATCH_ROWS)):
            rows = [_row(table, line) for line in taken]
            yield arrow_rows.sorted_out(table, rows, path)


def _lines(lines: TextIO) -> Iterator[str]:
    while line := lines.readline(MAX_LINE_CHARACTERS + 1):
        if len(line) > MAX_LINE_CHARACTERS:
            raise ExportError("corrupt")
        if line.strip():
            yield line


def _row(table: Table, line: str) -> tuple[object, ...] | None:
    """None: no JSON object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return tuple(_value(found.get(column.name), column.type) for column in table.columns)


def _value(value: object, kind: Type) -> object:
    """Bytes travel as base64 or as hexadecimal digits."""
    if kind is not Type.BINARY or not isinstance(value, str):
        return value
    try:
        return bytes.fromhex(value)
    except ValueError:
        pass
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        return value
