"""Relations of a Spark plan as tables of DuckDB.

Each relation becomes one SELECT over those that it is made of, whatever it is part of, and is known
by the number that Spark's client gave it; a query is all of them as common table expressions.  What
columns it has is asked of DuckDB, given only the columns of what it reads, so that no question
grows with what lies below.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

# ruff: noqa: S608 - columns are quoted, tables have numbers, and a text is a literal
import duckdb
import pyarrow as pa
import pyarrow.dataset
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from pipeline.duck.errors import DuckError, NotHere
from pipeline.duck.expressions import Expressions, literal, name_of, path_of
from pipeline.duck.types import NULL, is_wide, parsed, quoted, spark_type
from pipeline.paths import from_read

if TYPE_CHECKING:
    from pyspark.sql.connect.proto import Expression, Relation

_JOINS: Final = {
    1: "JOIN",
    2: "FULL JOIN",
    3: "LEFT JOIN",
    4: "RIGHT JOIN",
    5: "ANTI JOIN",
    6: "SEMI JOIN",
    7: "CROSS JOIN",
}
_FULL, _RIGHT, _CROSS = 2, 4, 7
_ONLY_LEFT: Final = {5, 6}
_UNION: Final = 2
_GROUPED: Final = 1
_NUMBERS: Final = ("bigint", "integer", "smallint", "double", "hugeint")
_FILLED: Final[Mapping[str, Sequence[str]]] = {
    "boolean": ("boolean",),
    **dict.fromkeys(("long", "integer", "double"), _NUMBERS),
}
"""By the type of a literal: the types of the columns that are filled with it."""
_NOTHING: Final = "_"
"""The column of rows that have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``sql``: one SELECT, over ``made_of`` by their names."""

    name: str
    sql: str
    columns: Mapping[str, duckdb.sqltypes.DuckDBPyType]
    made_of: Sequence["Table"] = ()
    alias: str | None = None

    @property
    def query(self) -> str:
        """Of all its rows."""
        parts = dict(self._parts())
        with_them = ", ".join(f"{name} AS ({sql})" for name, sql in parts.items())
        return f"WITH {with_them} SELECT * FROM {self.name}"

    def _parts(self) -> Iterator[tuple[str, str]]:
        """Each after those that it is made of."""
        for one in self.made_of:
            yield from one._parts()  # noqa: SLF001 - another of these
        yield self.name, self.sql

    @property
    def schema(self) -> StructType:
        return StructType(
            [
                StructField(name, spark_type(kind))
                for name, kind in self.columns.items()
                if name != _NOTHING
            ]
        )

    @property
    def typed(self) -> str:
        """No row, and its columns."""
        columns = (
            f"{'NULL' if str(kind) == NULL else f'CAST(NULL AS {kind})'} AS {quoted(name)}"
            for name, kind in self.columns.items()
        )
        return f"{self.name} AS (SELECT {', '.join(columns)})"


class Tables:
    """All relations of a session."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._known: dict[tuple[int, str], Table] = {}
        self._named: dict[str, Table] = {}

    def of(self, relation: "Relation") -> Table:
        """Raises NotHere and what DuckDB raises."""
        which = relation.WhichOneof("rel_type") or ""
        key = relation.common.plan_id, which
        if key not in self._known:
            make = _MAKERS.get(which)
            if make is None:
                raise NotHere(f"relation {which}")
            self._known[key] = make(self, relation)
        return self._known[key]

    def keep(self, relation: "Relation") -> None:
        """Its rows, from now on."""
        found = self.of(relation)
        name = f"kept_{found.name}"
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {found.query}")
        key = relation.common.plan_id, relation.WhichOneof("rel_type") or ""
        self._known[key] = replace(found, sql=f"SELECT * FROM {name}", made_of=())

    def give_name(self, name: str, relation: "Relation") -> None:
        """It is read by that name from now on."""
        self._named[name] = self.of(relation)

    def rows(self, table: Table) -> pa.Table:
        found = self._connection.sql(table.query).to_arrow_table()
        return found.drop_columns([_NOTHING]) if _NOTHING in found.column_names else found

    def write(self, table: Table, place: Path, *, replaces: bool) -> None:
        """As one file below ``place``.  Raises DuckError if something is there that may stay."""
        if place.exists():
            if not replaces:
                raise DuckError(f"{place} is there already")
            shutil.rmtree(place)
        place.mkdir(parents=True)
        to = str(place / "part-0.parquet").replace("'", "''")
        self._connection.execute(f"COPY ({table.query}) TO '{to}' (FORMAT parquet, CODEC zstd)")

    # --- one ------------------------------------------------------------------------------------

    def _made(self, relation: "Relation", sql: str, *made_of: Table) -> Table:
        name = f"r{relation.common.plan_id}_{len(self._known)}"
        columns = self._columns(sql, made_of)
        if wide := [one for one, kind in columns.items() if is_wide(kind)]:
            narrow = ", ".join(f"CAST({quoted(one)} AS BIGINT) AS {quoted(one)}" for one in wide)
            sql = f"SELECT * REPLACE ({narrow}) FROM ({sql})"
            columns = self._columns(sql, made_of)
        return Table(name=name, sql=sql, columns=columns, made_of=made_of)

    def _columns(
        self, sql: str, made_of: Sequence[Table]
    ) -> dict[str, duckdb.sqltypes.DuckDBPyType]:
        typed = ", ".join({one.name: one.typed for one in made_of}.values())
        found = self._connection.sql(f"WITH {typed} {sql}" if typed else sql)
        columns = dict(zip(found.columns, found.types, strict=True))
        if len(columns) < len(found.columns):
            raise NotHere("two columns of one name")
        return columns

    def _expressions(self, *made_of: Table) -> Expressions:
        read = " , ".join(one.name for one in made_of)

        def kind_of(sql: str) -> duckdb.sqltypes.DuckDBPyType:
            return next(iter(self._columns(f"SELECT {sql} AS it FROM {read}", made_of).values()))

        return Expressions(frozenset(name for one in made_of for name in one.columns), kind_of)

    # --- where rows come from -------------------------------------------------------------------

    def local(self, relation: "Relation") -> Table:
        local = relation.local_relation
        if not local.data:
            kind = parsed(local.schema)
            assert isinstance(kind, StructType)  # noqa: S101 - of a whole schema
            rows = to_arrow_schema(kind).empty_table()
        else:
            with pa.ipc.open_stream(local.data) as stream:
                rows = stream.read_all()
        return self._registered(relation, rows)

    def _registered(self, relation: "Relation", rows: object) -> Table:
        name = f"rows_{relation.common.plan_id}_{len(self._known)}"
        self._connection.register(name, rows)
        return self._made(relation, f"SELECT * FROM {name}")

    def read(self, relation: "Relation") -> Table:
        if relation.read.WhichOneof("read_type") == "named_table":
            name = relation.read.named_table.unparsed_identifier
            if name not in self._named:
                raise NotHere(f"table {name}")
            return self._named[name]
        source = relation.read.data_source
        if source.format != "parquet":
            raise NotHere(f"reading {source.format}")
        kind = parsed(source.schema)
        assert isinstance(kind, StructType)  # noqa: S101 - of a whole schema
        places = [from_read(path) for path in source.paths]
        files = [str(file) for place in places for file in sorted(place.rglob("*.parquet"))]
        schema = to_arrow_schema(kind)
        if not files:
            return self._registered(relation, schema.empty_table())
        base = source.options.get("basePath") or source.options.get("basepath") or str(places[0])
        rows = pyarrow.dataset.dataset(
            files, schema=schema, format="parquet", partitioning="hive", partition_base_dir=base
        )
        return self._registered(relation, rows)

    def range(self, relation: "Relation") -> Table:
        wanted = relation.range
        sql = f"SELECT range AS id FROM range({wanted.start}, {wanted.end}, {wanted.step})"
        return self._made(relation, sql)

    # --- columns --------------------------------------------------------------------------------

    def project(self, relation: "Relation") -> Table:
        below = self.of(relation.project.input)
        own = self._expressions(below)
        columns = [
            column for one in relation.project.expressions for column in _selected(own, below, one)
        ]
        listed = ", ".join(columns) or f"0 AS {quoted(_NOTHING)}"
        return self._made(relation, f"SELECT {listed} FROM {below.name}", below)

    def with_columns(self, relation: "Relation") -> Table:
        below = self.of(relation.with_columns.input)
        own = self._expressions(below)
        new = {
            one.name[0]: f"{own.sql(one.expr)} AS {quoted(one.name[0])}"
            for one in relation.with_columns.aliases
        }
        columns = [new.pop(name, quoted(name)) for name in below.columns]
        listed = ", ".join([*columns, *new.values()])
        return self._made(relation, f"SELECT {listed} FROM {below.name}", below)

    def drop(self, relation: "Relation") -> Table:
        dropped = relation.drop
        below = self.of(dropped.input)
        gone = {*dropped.column_names, *map(name_of, dropped.columns)}
        kept = ", ".join(quoted(name) for name in below.columns if name not in gone)
        return self._made(relation, f"SELECT {kept} FROM {below.name}", below)

    def to_df(self, relation: "Relation") -> Table:
        below = self.of(relation.to_df.input)
        pairs = zip(below.columns, relation.to_df.column_names, strict=True)
        listed = ", ".join(f"{quoted(old)} AS {quoted(new)}" for old, new in pairs)
        return self._made(relation, f"SELECT {listed} FROM {below.name}", below)

    def renamed(self, relation: "Relation") -> Table:
        wanted = relation.with_columns_renamed
        below = self.of(wanted.input)
        names = {one.col_name: one.new_col_name for one in wanted.renames}
        names |= dict(wanted.rename_columns_map)
        listed = ", ".join(f"{quoted(n)} AS {quoted(names.get(n, n))}" for n in below.columns)
        return self._made(relation, f"SELECT {listed} FROM {below.name}", below)

    def filled(self, relation: "Relation") -> Table:
        """With a number, columns of numbers; with a truth value, columns of these."""
        fill = relation.fill_na
        below = self.of(fill.input)
        if len(fill.values) != 1:
            raise NotHere("filling with several values")
        which = fill.values[0].WhichOneof("literal_type") or ""
        if which not in _FILLED:
            raise NotHere(f"filling with a {which}")
        value = literal(fill.values[0])
        columns = []
        for name, kind in below.columns.items():
            is_meant = (not fill.cols or name in fill.cols) and kind.id in _FILLED[which]
            filled = f"coalesce({quoted(name)}, CAST({value} AS {kind})) AS {quoted(name)}"
            columns.append(filled if is_meant else quoted(name))
        return self._made(relation, f"SELECT {', '.join(columns)} FROM {below.name}", below)

    # --- rows -----------------------------------------------------------------------------------

    def filter(self, relation: "Relation") -> Table:
        below = self.of(relation.filter.input)
        condition = self._expressions(below).sql(relation.filter.condition)
        return self._made(relation, f"SELECT * FROM {below.name} WHERE {condition}", below)

    def sort(self, relation: "Relation") -> Table:
        below = self.of(relation.sort.input)
        own = self._expressions(below)
        order = ", ".join(map(own.order, relation.sort.order))
        return self._made(relation, f"SELECT * FROM {below.name} ORDER BY {order}", below)

    def limit(self, relation: "Relation") -> Table:
        below = self.of(relation.limit.input)
        sql = f"SELECT * FROM {below.name} LIMIT {relation.limit.limit}"
        return self._made(relation, sql, below)

    def distinct(self, relation: "Relation") -> Table:
        wanted = relation.deduplicate
        below = self.of(wanted.input)
        if wanted.all_columns_as_keys:
            return self._made(relation, f"SELECT DISTINCT * FROM {below.name}", below)
        key = ", ".join(map(quoted, wanted.column_names))
        return self._made(relation, f"SELECT DISTINCT ON ({key}) * FROM {below.name}", below)

    def grouped(self, relation: "Relation") -> Table:
        wanted = relation.aggregate
        if wanted.group_type != _GROUPED:
            raise NotHere("grouping but by values")
        below = self.of(wanted.input)
        own = self._expressions(below)
        whole = [*wanted.grouping_expressions, *wanted.aggregate_expressions]
        columns = ", ".join(f"{own.sql(one)} AS {quoted(name_of(one))}" for one in whole)
        places = ", ".join(str(at + 1) for at in range(len(wanted.grouping_expressions)))
        by = f" GROUP BY {places}" if places else ""
        return self._made(relation, f"SELECT {columns} FROM {below.name}{by}", below)

    # --- of two ---------------------------------------------------------------------------------

    def union(self, relation: "Relation") -> Table:
        wanted = relation.set_op
        left, right = self.of(wanted.left_input), self.of(wanted.right_input)
        if wanted.set_op_type != _UNION or not wanted.is_all:
            raise NotHere("set operations but UNION ALL")
        if not wanted.by_name:
            columns = ", ".join(map(quoted, left.columns))
            names = zip(right.columns, left.columns, strict=True)
            others = ", ".join(f"{quoted(old)} AS {quoted(new)}" for old, new in names)
        else:
            if not wanted.allow_missing_columns and {*left.columns} != {*right.columns}:
                raise NotHere("UNION of tables with different columns")
            every = list(dict.fromkeys([*left.columns, *right.columns]))
            columns, others = (
                ", ".join(quoted(n) if n in one.columns else f"NULL AS {quoted(n)}" for n in every)
                for one in (left, right)
            )
        sql = f"SELECT {columns} FROM {left.name} UNION ALL SELECT {others} FROM {right.name}"
        return self._made(relation, sql, left, right)

    def join(self, relation: "Relation") -> Table:
        wanted = relation.join
        left, right = self.of(wanted.left), self.of(wanted.right)
        one, other = left.alias or "l", right.alias or "r"
        keys = list(wanted.using_columns)
        if keys:
            pairs = (f"{one}.{quoted(key)} = {other}.{quoted(key)}" for key in keys)
            condition = f" ON {' AND '.join(pairs)}"
        elif wanted.HasField("join_condition"):
            condition = f" ON {self._expressions(left, right).sql(wanted.join_condition)}"
        else:
            condition = ""
        kind = wanted.join_type if condition else _CROSS
        columns = [_key(key, kind, one, other) for key in keys]
        columns += [f"{one}.{quoted(name)}" for name in left.columns if name not in keys]
        if kind not in _ONLY_LEFT:
            rest = [name for name in right.columns if name not in keys]
            if again := set(rest) & set(left.columns):
                raise NotHere(f"a join of two columns {min(again)}")
            columns += [f"{other}.{quoted(name)}" for name in rest]
        sql = (
            f"SELECT {', '.join(columns)} FROM {left.name} {one}"
            f" {_JOINS[kind]} {right.name} {other}{condition}"
        )
        return self._made(relation, sql, left, right)

    # --- what says nothing of rows --------------------------------------------------------------

    def hint(self, relation: "Relation") -> Table:
        return self.of(relation.hint.input)

    def repartition(self, relation: "Relation") -> Table:
        return self.of(relation.repartition.input)

    def spread(self, relation: "Relation") -> Table:
        return self.of(relation.repartition_by_expression.input)

    def aliased(self, relation: "Relation") -> Table:
        alias = relation.subquery_alias
        return replace(self.of(alias.input), alias=quoted(alias.alias))


def _selected(own: Expressions, below: Table, one: "Expression") -> list[str]:
    """Columns that an expression of a SELECT makes."""
    if one.WhichOneof("expr_type") == "unresolved_star":
        target = one.unresolved_star.unparsed_target
        if not target:
            return [quoted(name) for name in below.columns]
        path = path_of(target.removesuffix(".*"))
        return [".".join([*map(quoted, path), "*"])]
    return [f"{own.sql(one)} AS {quoted(name_of(one))}"]


def _key(key: str, kind: int, one: str, other: str) -> str:
    if kind == _FULL:
        return f"coalesce({one}.{quoted(key)}, {other}.{quoted(key)}) AS {quoted(key)}"
    return f"{other if kind == _RIGHT else one}.{quoted(key)}"


_MAKERS: Final[Mapping[str, Callable[[Tables, "Relation"], Table]]] = {
    "local_relation": Tables.local,
    "read": Tables.read,
    "range": Tables.range,
    "project": Tables.project,
    "with_columns": Tables.with_columns,
    "drop": Tables.drop,
    "to_df": Tables.to_df,
    "with_columns_renamed": Tables.renamed,
    "fill_na": Tables.filled,
    "filter": Tables.filter,
    "sort": Tables.sort,
    "limit": Tables.limit,
    "deduplicate": Tables.distinct,
    "aggregate": Tables.grouped,
    "set_op": Tables.union,
    "join": Tables.join,
    "hint": Tables.hint,
    "repartition": Tables.repartition,
    "repartition_by_expression": Tables.spread,
    "subquery_alias": Tables.aliased,
}
