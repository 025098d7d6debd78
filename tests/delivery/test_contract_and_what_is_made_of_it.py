"""The contract is one declaration: whatever else says the same is compared with it here."""

import ast
import sqlite3
from pathlib import Path
from typing import get_type_hints

import pytest

from engine.delivery import contract
from engine.delivery.check import problem_of
from engine.delivery.contract import (
    DELIVERY_EVENT,
    KIND_TEXTS,
    LOG_SNAPSHOT,
    LOG_TABLES,
    MEMBERSHIP,
    MESSAGE,
    TABLES,
    Column,
    Kind,
    Table,
    Type,
)
from engine.delivery.ddl import create_statements
from engine.delivery.page import page
from engine.delivery.rows import EventRow, MembershipRow, MessageRow, SnapshotRow

ROOT = Path(__file__).resolve().parents[2]


def test_rows_have_the_columns_of_the_contract() -> None:
    for table, fields in (
        (DELIVERY_EVENT, ("seq", *EventRow._fields)),
        (LOG_SNAPSHOT, SnapshotRow._fields),
        (MESSAGE, MessageRow._fields),
        (MEMBERSHIP, MembershipRow._fields),
    ):
        assert tuple(column.name for column in table.row_columns) == fields, table.name


@pytest.mark.parametrize("table", LOG_TABLES, ids=lambda table: table.name)
def test_the_log_file_has_the_columns_of_the_contract(table: Table) -> None:
    connection = sqlite3.connect(":memory:")
    for statement in create_statements():
        connection.execute(statement)
    made = connection.execute(f"PRAGMA table_info({table.name})").fetchall()
    connection.close()
    assert [name for _, name, *_ in made] == [column.name for column in table.row_columns]
    by_name = {name: (kind, not_null) for _, name, kind, not_null, *_ in made}
    for column in table.row_columns:
        kind, not_null = by_name[column.name]
        number = column.type in {Type.INT16, Type.INT32, Type.INT64}
        assert (kind == "INTEGER") == number
        assert bool(not_null) != column.nullable


def test_the_page_is_what_the_contract_says() -> None:
    written = (ROOT / "docs" / "delivery-contract.md").read_text(encoding="utf-8")
    assert written == page(), "run python scripts/delivery_contract_page.py"


def test_every_kind_is_explained_and_fits() -> None:
    assert set(KIND_TEXTS) == set(Kind)
    for table in TABLES:
        for column in table.columns:
            assert all(len(choice) <= column.maximum for choice in column.choices), column.name


def test_the_contract_needs_nothing_but_the_standard_library() -> None:
    """So that any machine that reads logs can have it."""
    tree = ast.parse(Path(contract.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"collections.abc", "dataclasses", "enum", "typing"}


def _good(column: Column) -> object:
    match column.type:
        case Type.INT16 | Type.INT32 | Type.INT64:
            return max(column.minimum, 0)
        case Type.FLOAT64:
            return 0.5
        case Type.TEXT:
            return column.choices[0] if column.choices else "a"
        case Type.BINARY:
            return bytes(max(column.minimum, 1))
        case Type.TEXTS | Type.INT64S:
            return []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_row_is_judged_by_every_column(table: Table) -> None:
    good = [_good(column) for column in table.columns]
    assert problem_of(table, good) is None
    assert problem_of(table, good[:-1]) == "row.length"
    for number, column in enumerate(table.columns):

        def with_value(value: object, at: int = number) -> str | None:
            return problem_of(table, [*good[:at], value, *good[at + 1 :]])

        assert with_value(None) == (None if column.nullable else f"{column.name}.null")
        assert with_value(object()) == f"{column.name}.type"
        match column.type:
            case Type.INT16 | Type.INT32 | Type.INT64:
                assert with_value(column.maximum + 1) == f"{column.name}.range"
                assert with_value(column.minimum - 1) == f"{column.name}.range"
                assert with_value(True) == f"{column.name}.type"
            case Type.TEXT:
                wrong = "choice" if column.choices else "length"
                assert with_value("é" * (column.maximum // 2 + 1)) == f"{column.name}.{wrong}"
            case Type.BINARY:
                assert with_value(bytes(column.maximum + 1)) == f"{column.name}.length"
            case Type.TEXTS:
                assert with_value([1]) == f"{column.name}.type"
                assert with_value(["a"] * (column.maximum + 1)) == f"{column.name}.length"
            case Type.INT64S:
                assert with_value(["a"]) == f"{column.name}.type"
            case Type.FLOAT64:
                pass


def test_hints_of_rows_are_of_the_columns_types() -> None:
    wanted = {Type.TEXT: str, Type.BINARY: bytes, Type.TEXTS: str, Type.INT64S: str}
    hints = get_type_hints(EventRow)
    for column in DELIVERY_EVENT.row_columns[1:]:
        hint = hints[column.name]
        assert wanted.get(column.type, int) in getattr(hint, "__args__", (hint,)), column.name
