"""Generates the page docs/delivery-contract.md from the contract."""

from collections.abc import Iterator

from engine.delivery.contract import KIND_TEXTS, SCHEMA_VERSION, TABLES, Column, Table, Type

_INTRODUCTION = """\
# The contract of the delivery log

Made from `engine/delivery/contract.py` by `scripts/delivery_contract_page.py`.

The application records by it where the user wants that (`causerie --record-delivery`), the
simulator writes it, and the pipeline reads it. A log is a SQLite file of its own; columns marked
*log* are the same in all of its rows and stand once, in its table `log`. Participants and channels
are pseudonyms: HMAC-SHA256 under a key that a test group shares, 16 hexadecimal digits. No column
holds what people write, their names, keys or topics; only `store_message`, an operator's own export
of a Store, names topics.
"""
_NUMBERS = {Type.INT16, Type.INT32, Type.INT64}


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield f"Schema version: {SCHEMA_VERSION}."
    for table in TABLES:
        yield ""
        yield from _table_lines(table)
    yield ""
    yield "## Kinds of events"
    yield ""
    yield "| kind | what happened |"
    yield "| --- | --- |"
    for kind, text in KIND_TEXTS.items():
        yield f"| `{kind.value}` | {text} |"


def _table_lines(table: Table) -> Iterator[str]:
    yield f"## {table.name}"
    yield ""
    yield f"{table.text} Key: {', '.join(f'`{name}`' for name in table.key)}."
    yield ""
    yield "| column | type | bounds | what it is |"
    yield "| --- | --- | --- | --- |"
    for column in table.columns:
        marks = ", ".join(_marks(column))
        yield f"| `{column.name}` | {marks} | {_bounds(column)} | {column.text} |"


def _marks(column: Column) -> Iterator[str]:
    yield column.type.value
    if column.nullable:
        yield "may be null"
    if column.per_log:
        yield "*log*"


def _bounds(column: Column) -> str:
    if column.name == "kind":
        return "one of those below"
    if column.choices:
        return ", ".join(f"`{choice}`" for choice in column.choices)
    if column.type in _NUMBERS:
        return f"{column.minimum} … {column.maximum}"
    if column.type in {Type.TEXTS, Type.INT64S}:
        return f"at most {column.maximum}"
    if column.minimum == column.maximum:
        return f"{column.maximum} bytes"
    return f"at most {column.maximum} bytes"
