"""The log file's SQL, generated from the contract.

Columns that are the same in all rows of a log stand once, in the table ``log``; lists are JSON.  A
reader must not rely on the constraints: a file may come from anywhere.
"""

from collections.abc import Iterable
from typing import Final

from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_TABLES,
    Column,
    Table,
    Type,
)

SQL_TYPES: Final = {
    Type.INT16: "INTEGER",
    Type.INT32: "INTEGER",
    Type.INT64: "INTEGER",
    Type.FLOAT64: "REAL",
    Type.TEXT: "TEXT",
    Type.BINARY: "BLOB",
    Type.TEXTS: "TEXT",
    Type.INT64S: "TEXT",
}
HEADER_COLUMNS: Final = tuple(column for column in DELIVERY_EVENT.columns if column.per_log)
"""The columns of the table ``log``; the other tables have some of them."""


def create_statements() -> tuple[str, ...]:
    """The statements that create all tables of a log file."""
    header = (
        f"CREATE TABLE log (\n  {_columns(HEADER_COLUMNS)},\n"
        "  created_ms INTEGER NOT NULL\n) STRICT"
    )
    return header, *map(_create_table, LOG_TABLES)


def _create_table(table: Table) -> str:
    key = ", ".join(name for name in table.key if not table.column(name).per_log)
    lines = f"  {_columns(table.row_columns)},\n  PRIMARY KEY ({key})"
    # An integer key is already the rowid.
    options = "STRICT" if key == "seq" else "STRICT, WITHOUT ROWID"
    return f"CREATE TABLE {table.name} (\n{lines}\n) {options}"


def _columns(columns: Iterable[Column]) -> str:
    return ",\n  ".join(
        f"{column.name} {SQL_TYPES[column.type]}{'' if column.nullable else ' NOT NULL'}"
        for column in columns
    )
