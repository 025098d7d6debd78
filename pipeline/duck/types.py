"""Spark's types in DuckDB's words, and back.

A schema comes as JSON, or as text such as ``name string, mids array<bigint>``; a cast names a type
in such a text, too.  Only types are here that the contract, silver and figures have.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from pyspark.sql import types

from pipeline.duck.errors import NotHere

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

NULL: Final = '"NULL"'
"""The type of what is nothing, as DuckDB shows it."""
_SIMPLE: Final[tuple[tuple[types.DataType, str, tuple[str, ...]], ...]] = (
    (types.StringType(), "VARCHAR", ("string",)),
    (types.LongType(), "BIGINT", ("bigint", "long")),
    (types.IntegerType(), "INTEGER", ("int", "integer")),
    (types.ShortType(), "SMALLINT", ("smallint", "short")),
    (types.BooleanType(), "BOOLEAN", ("boolean",)),
    (types.DoubleType(), "DOUBLE", ("double",)),
    (types.BinaryType(), "BLOB", ("binary",)),
    (types.DateType(), "DATE", ("date",)),
    (types.TimestampNTZType(), "TIMESTAMP", ("timestamp", "timestamp_ntz")),
    (types.NullType(), NULL, ("void",)),
)
_IN_SQL: Final[Mapping[types.DataType, str]] = {kind: sql for kind, sql, _ in _SIMPLE}
_OF_SQL: Final[Mapping[str, types.DataType]] = {sql: kind for kind, sql, _ in _SIMPLE}
_OF_TEXT: Final[Mapping[str, types.DataType]] = {
    name: kind for kind, _, names in _SIMPLE for name in names
}
_WIDE: Final = "HUGEINT"
"""What DuckDB adds integers up in."""
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)", re.IGNORECASE)


def sql_type(kind: types.DataType) -> str:
    """Raises NotHere."""
    if isinstance(kind, types.ArrayType):
        return f"{sql_type(kind.elementType)}[]"
    if isinstance(kind, types.StructType):
        return f"STRUCT({', '.join(f'{quoted(f.name)} {sql_type(f.dataType)}' for f in kind)})"
    if isinstance(kind, types.DecimalType):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if kind not in _IN_SQL:
        raise NotHere(f"type {kind.simpleString()}")
    return _IN_SQL[kind]


def spark_type(kind: "DuckDBPyType") -> types.DataType:
    """Raises NotHere."""
    if kind.id == "list":
        ((_, element),) = children(kind)
        return types.ArrayType(spark_type(element))
    if kind.id == "struct":
        fields = [types.StructField(name, spark_type(one)) for name, one in children(kind)]
        return types.StructType(fields)
    text = str(kind)
    if found := _DECIMAL.fullmatch(text):
        return types.DecimalType(int(found[1]), int(found[2]))
    if text not in _OF_SQL:
        raise NotHere(f"type {text}")
    return _OF_SQL[text]


def children(kind: "DuckDBPyType") -> "list[tuple[str, DuckDBPyType]]":
    """Of a list or a struct, by name."""
    return [(name, cast("DuckDBPyType", one)) for name, one in kind.children]


def is_wide(kind: "DuckDBPyType") -> bool:
    return str(kind) == _WIDE


def parsed(text: str) -> types.DataType:
    """Of a type, a list of columns, or JSON.  Raises NotHere."""
    text = text.strip()
    if text.startswith("{"):
        return types.StructType.fromJson(json.loads(text))
    low = text.lower()
    if low in _OF_TEXT:
        return _OF_TEXT[low]
    if found := _DECIMAL.fullmatch(low):
        return types.DecimalType(int(found[1]), int(found[2]))
    if low.startswith("array<"):
        return types.ArrayType(parsed(text[len("array<") : -1]))
    if low.startswith("struct<"):
        return _fields(text[len("struct<") : -1])
    return _fields(text)


def _fields(text: str) -> types.StructType:
    fields = []
    for column in _split(text):
        name, _, kind = re.sub(r"^(`[^`]+`|[^\s:`]+)[\s:]+", r"\1\0", column.strip()).partition(
            "\0"
        )
        if not kind:
            raise NotHere(f"type {text}")
        fields.append(types.StructField(name.strip("`"), parsed(kind)))
    return types.StructType(fields)


def _split(text: str) -> Iterator[str]:
    """At commas that stand in no brackets."""
    depth = start = 0
    for at, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\0", "' || chr(0) || '") + "'"
