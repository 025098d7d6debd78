"""Spark's functions and operators as DuckDB's SQL, with Spark's meaning.

Where both differ: in Spark nothing comes first in an order and least among structs, ``max_by`` may
answer with nothing, lists are collected empty and not null, and integers are added up as integers.
Arguments are SQL already.  What is not in a table here is refused, never guessed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Final, TypeAlias

from pipeline.duck.errors import NotHere

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

Arguments: TypeAlias = Sequence[str]
KindOf: TypeAlias = "Callable[[str], DuckDBPyType]"


@dataclass(frozen=True, slots=True)
class Call:
    """As SQL; in a window ``OVER`` comes after ``sql`` and before ``after``."""

    sql: str
    before: str = ""
    after: str = ""

    @property
    def whole(self) -> str:
        return f"{self.before}{self.sql}{self.after}"


_OPERATORS: Final[Mapping[str, str]] = {
    "==": "=",
    "<=>": "IS NOT DISTINCT FROM",
    ">": ">",
    "<": "<",
    ">=": ">=",
    "<=": "<=",
    "+": "+",
    "-": "-",
    "*": "*",
    "/": "/",
    "%": "%",
    "|": "|",
    "and": "AND",
    "or": "OR",
}
_PATTERNS: Final[Mapping[str, str]] = {
    "not": "(NOT {0})",
    "isnull": "({0} IS NULL)",
    "isnotnull": "({0} IS NOT NULL)",
    "negative": "(- {0})",
    "abs": "abs({0})",
    "greatest": "greatest({all})",
    "least": "least({all})",
    "coalesce": "coalesce({all})",
    "array": "[{all}]",
    "array_compact": "list_filter({0}, lambda e: e IS NOT NULL)",
    "array_contains": "list_contains({0}, {1})",
    "array_distinct": "list_distinct({0})",
    "array_join": "array_to_string({0}, {1})",
    "arrays_overlap": "list_has_any({0}, {1})",
    "array_sort": "list_sort({0}, 'ASC', 'NULLS LAST')",
    "sort_array": "list_sort({0}, CASE WHEN {1} THEN 'ASC' ELSE 'DESC' END,"
    " CASE WHEN {1} THEN 'NULLS FIRST' ELSE 'NULLS LAST' END)",
    "size": "CAST(len({0}) AS INTEGER)",
    "slice": "list_slice({0}, {1}, {1} + {2} - 1)",
    "explode": "unnest({0})",
    "substring": "substring({0}, {1}, {2})",
    "shiftleft": "CAST(CAST(CAST({0} AS BIT) << {1} AS BIT) AS BIGINT)",
    "pmod": "((({0} % {1}) + {1}) % {1})",
    "try_add": "TRY_CAST(CAST({0} AS HUGEINT) + {1} AS BIGINT)",
    "try_subtract": "TRY_CAST(CAST({0} AS HUGEINT) - {1} AS BIGINT)",
    # Another hash than Spark's: for telling values apart and for samples, not to be kept.
    "xxhash64": "CAST(hash({all}) >> 1 AS BIGINT)",
    "timestamp_millis": "epoch_ms({0})",
    "to_date": "CAST({0} AS DATE)",
    "floor": "CAST(floor({0}) AS BIGINT)",
    "log1p": "ln(1 + {0})",
    "exp": "exp({0})",
    "power": "pow({0}, {1})",
    "product": "product({0})",
    "sequence": "generate_series({0}, {1})",
    "concat_ws": "concat_ws({all})",
    "row_number": "row_number()",
    "lead": "lead({0}, {1})",
    "lag": "lag({0}, {1})",
    "avg": "avg({0})",
    "bit_xor": "bit_xor({0})",
    "bit_or": "bit_or({0})",
    "bit_count": "CAST(bit_count({0}) AS INTEGER)",
    "count_if": "count(CASE WHEN {0} THEN 1 END)",
    "concat": "({concatenated})",
}


def called(name: str, arguments: Arguments, *, is_distinct: bool, kind_of: KindOf) -> Call:
    """Raises NotHere."""
    name = name.lower()
    if name in _OPERATORS and len(arguments) == 2:  # noqa: PLR2004 - left and right
        return Call(f"({arguments[0]} {_OPERATORS[name]} {arguments[1]})")
    if name in _SPECIAL and not (is_distinct and name not in _MAY_BE_DISTINCT):
        return _SPECIAL[name](arguments, is_distinct, kind_of)
    pattern = _PATTERNS.get(name)
    if pattern is None or is_distinct or _takes(pattern) not in {None, len(arguments)}:
        raise NotHere(f"{name} of {len(arguments)}")
    whole = {"all": ", ".join(arguments), "concatenated": " || ".join(arguments)}
    return Call(pattern.format(*arguments, **whole))


def _takes(pattern: str) -> int | None:
    """How many arguments; None for any number of them."""
    fields = {field for _, field, _, _ in Formatter().parse(pattern) if field}
    return None if fields & {"all", "concatenated"} else len(fields)


# --- what takes more than a pattern ---------------------------------------------------------------


def _when(arguments: Arguments, _distinct: bool, _kind_of: KindOf) -> Call:
    pairs = zip(arguments[::2], arguments[1::2], strict=False)
    cases = "".join(f" WHEN {condition} THEN {value}" for condition, value in pairs)
    otherwise = f" ELSE {arguments[-1]}" if len(arguments) % 2 else ""
    return Call(f"CASE{cases}{otherwise} END")


def _in(arguments: Arguments, _distinct: bool, _kind_of: KindOf) -> Call:
    of, *among = arguments
    return Call(f"({of} IN ({', '.join(among)}))" if among else "false")


def _negation(arguments: Arguments, _distinct: bool, _kind_of: KindOf) -> Call:
    return Call(f"(- {arguments[0]})")


def _count(arguments: Arguments, is_distinct: bool, _kind_of: KindOf) -> Call:
    return Call(f"count({'DISTINCT ' if is_distinct else ''}{', '.join(arguments)})")


def _sum(arguments: Arguments, _distinct: bool, _kind_of: KindOf) -> Call:
    return Call(f"sum({arguments[0]})")


def _try_sum(arguments: Arguments, _distinct: bool, _kind_of: KindOf) -> Call:
    return Call(f"sum({arguments[0]})", "TRY_CAST(", " AS BIGINT)")


def _collected(arguments: Arguments, is_distinct: bool, _kind_of: KindOf) -> Call:
    of = arguments[0]
    distinct = "DISTINCT " if is_distinct else ""
    return Call(f"list({distinct}{of}) FILTER (WHERE {of} IS NOT NULL)", "coalesce(", ", [])")


def _collected_set(arguments: Arguments, _distinct: bool, kind_of: KindOf) -> Call:
    return _collected(arguments, True, kind_of)


def _extreme(name: str) -> "_Special":
    def extreme(arguments: Arguments, _distinct: bool, kind_of: KindOf) -> Call:
        of = arguments[0]
        key = ordered_as_in_spark(of, kind_of)
        return Call(f"{name}({of})" if key == of else f"arg_{name}({of}, {key})")

    return extreme


def _extreme_by(name: str) -> "_Special":
    def extreme(arguments: Arguments, _distinct: bool, kind_of: KindOf) -> Call:
        of, by = arguments
        return Call(f"arg_{name}_null({of}, {ordered_as_in_spark(by, kind_of)})")

    return extreme


def ordered_as_in_spark(of: str, kind_of: KindOf) -> str:
    """What orders as Spark does: of structs whose fields may be null, these are the least."""
    kind = kind_of(of)
    if kind.id != "struct":
        return of
    fields = [
        f"struct_extract({of}, '{name.replace(chr(39), chr(39) * 2)}')" for name, _ in kind.children
    ]
    parts = [
        f"{word}{at} := {key}"
        for at, field in enumerate(fields)
        for word, key in (("n", f"{field} IS NOT NULL"), ("v", field))
    ]
    return f"CASE WHEN {of} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"


def _conv(arguments: Arguments, _distinct: bool, _kind_of: KindOf) -> Call:
    of, base, into = arguments
    if (base, into) != ("16", "10"):
        raise NotHere(f"conv from {base} to {into}")
    return Call(f"CAST(CAST('0x' || {of} AS UBIGINT) AS VARCHAR)")


def _sha2(arguments: Arguments, _distinct: bool, _kind_of: KindOf) -> Call:
    of, bits = arguments
    if bits != "256":
        raise NotHere(f"sha2 of {bits} bits")
    return Call(f"sha256({of})")


def _last(arguments: Arguments, _distinct: bool, _kind_of: KindOf) -> Call:
    of, *ignores = arguments
    return Call(f"last_value({of}{' IGNORE NULLS' if ignores == ['true'] else ''})")


def _date_format(arguments: Arguments, _distinct: bool, _kind_of: KindOf) -> Call:
    of, pattern = arguments
    if pattern not in _DATE_FORMATS:
        raise NotHere(f"date_format as {pattern}")
    return Call(f"strftime({of}, {_DATE_FORMATS[pattern]})")


_DATE_FORMATS: Final = {"'yyyy-MM-dd HH'": "'%Y-%m-%d %H'"}
_Special: TypeAlias = Callable[[Arguments, bool, KindOf], Call]
_MAY_BE_DISTINCT: Final = {"count"}
_SPECIAL: Final[Mapping[str, _Special]] = {
    "when": _when,
    "in": _in,
    "-": _negation,
    "!": lambda arguments, *_: Call(f"(NOT {arguments[0]})"),
    "count": _count,
    "sum": _sum,
    "try_sum": _try_sum,
    "collect_list": _collected,
    "collect_set": _collected_set,
    "max": _extreme("max"),
    "min": _extreme("min"),
    "max_by": _extreme_by("max"),
    "min_by": _extreme_by("min"),
    "conv": _conv,
    "date_format": _date_format,
    "last": _last,
    "sha2": _sha2,
}
