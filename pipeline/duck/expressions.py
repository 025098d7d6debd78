"""Expressions of a Spark plan as DuckDB's SQL."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
from pyspark.sql.types import IntegralType

from pipeline.duck.errors import NotHere
from pipeline.duck.functions import Call, KindOf, called
from pipeline.duck.types import parsed, quoted, sql_type, text_literal

if TYPE_CHECKING:
    from pyspark.sql.connect.proto import Expression

_WORD: Final = re.compile(r"'(?:[^']|'')*'|[A-Za-z_]\w*")
_PART: Final = re.compile(r"`([^`]*)`|([^.`]+)")
_FRACTIONS: Final = {"double", "float", "decimal"}
_FRAMES: Final = {1: "ROWS", 2: "RANGE"}


@dataclass(frozen=True, slots=True)
class Expressions:
    """Of one relation: ``columns`` are those of what it reads."""

    columns: frozenset[str]
    kind_of: KindOf

    def sql(self, expression: "Expression") -> str:
        """Raises NotHere."""
        return self._call(expression).whole

    def _call(self, expression: "Expression") -> Call:
        which = expression.WhichOneof("expr_type")
        write = _WRITERS.get(which or "")
        if write is None:
            raise NotHere(f"expression {which}")
        found = write(self, expression)
        return found if isinstance(found, Call) else Call(found)

    def function(self, expression: "Expression") -> Call:
        function = expression.unresolved_function
        name = function.function_name
        if name == "struct":
            pairs = (f"{quoted(name_of(a))} := {self.sql(a)}" for a in function.arguments)
            return Call(f"struct_pack({', '.join(pairs)})")
        if name == "exists":
            return Call(self._exists(*function.arguments))
        arguments = [self.sql(argument) for argument in function.arguments]
        return called(name, arguments, is_distinct=function.is_distinct, kind_of=self.kind_of)

    def _exists(self, values: "Expression", condition: "Expression") -> str:
        function = condition.lambda_function
        (argument,) = (".".join(a.name_parts) for a in function.arguments)
        inside = self.sql(function.function)
        return f"(len(list_filter({self.sql(values)}, lambda {quoted(argument)}: {inside})) > 0)"

    def window(self, expression: "Expression") -> str:
        window = expression.window
        function = self._call(window.window_function)
        parts = []
        if window.partition_spec:
            parts.append("PARTITION BY " + ", ".join(map(self.sql, window.partition_spec)))
        if window.order_spec:
            parts.append("ORDER BY " + ", ".join(map(self.order, window.order_spec)))
        if window.HasField("frame_spec"):
            parts.append(self._frame(window.frame_spec))
        return f"{function.before}{function.sql} OVER ({' '.join(parts)}){function.after}"

    def _frame(self, frame: "Expression.Window.WindowFrame") -> str:
        bounds = []
        for bound, way in ((frame.lower, "PRECEDING"), (frame.upper, "FOLLOWING")):
            if bound.WhichOneof("boundary") == "unbounded":
                bounds.append(f"UNBOUNDED {way}")
            elif bound.WhichOneof("boundary") == "current_row":
                bounds.append("CURRENT ROW")
            else:
                rows = number_of(bound.value.literal)
                bounds.append(f"{abs(rows)} {'PRECEDING' if rows < 0 else 'FOLLOWING'}")
        return f"{_FRAMES[frame.frame_type]} BETWEEN {bounds[0]} AND {bounds[1]}"

    def order(self, order: "Expression.SortOrder") -> str:
        way = "DESC" if order.direction == 2 else "ASC"  # noqa: PLR2004 - SORT_DIRECTION_DESCENDING
        first = order.null_ordering == 1 or (order.null_ordering == 0 and way == "ASC")
        return f"{self.sql(order.child)} {way} NULLS {'FIRST' if first else 'LAST'}"

    def attribute(self, expression: "Expression") -> str:
        parts = path_of(expression.unresolved_attribute.unparsed_identifier)
        whole = ".".join(parts)
        if whole in self.columns:
            return quoted(whole)
        return ".".join(map(quoted, parts))

    def text(self, expression: "Expression") -> str:
        """SQL as both know it, in which columns may be named like words of DuckDB's."""

        def word(found: "re.Match[str]") -> str:
            if found[0] in self.columns:
                return quoted(found[0])
            return "//" if found[0].lower() == "div" else found[0]

        return f"({_WORD.sub(word, expression.expression_string.expression)})"

    def cast(self, expression: "Expression") -> str:
        cast = expression.cast
        if cast.WhichOneof("cast_to_type") == "type_str":
            kind = parsed(cast.type_str)
        else:
            kind = proto_schema_to_pyspark_data_type(cast.type)
        word = "TRY_CAST" if cast.eval_mode == 3 else "CAST"  # noqa: PLR2004 - EVAL_MODE_TRY
        value = self.sql(cast.expr)
        if isinstance(kind, IntegralType) and self.kind_of(value).id in _FRACTIONS:
            value = f"trunc({value})"  # DuckDB would round it.
        return f"{word}({value} AS {sql_type(kind)})"

    def field(self, expression: "Expression") -> str:
        extract = expression.unresolved_extract_value
        return f"struct_extract({self.sql(extract.child)}, {self.sql(extract.extraction)})"


def path_of(identifier: str) -> list[str]:
    return [ticked or plain for ticked, plain in _PART.findall(identifier)]


def name_of(expression: "Expression") -> str:
    """Of the column that it makes."""
    which = expression.WhichOneof("expr_type") or ""
    name = _NAMES.get(which)
    return which if name is None else name(expression)


def _name_of_call(expression: "Expression") -> str:
    function = expression.unresolved_function
    return f"{function.function_name}({', '.join(map(name_of, function.arguments))})"


_NAMES: Final[Mapping[str, "Callable[[Expression], str]"]] = {
    "alias": lambda one: one.alias.name[0],
    "unresolved_attribute": lambda one: path_of(one.unresolved_attribute.unparsed_identifier)[-1],
    "unresolved_function": _name_of_call,
    "unresolved_star": lambda _: "*",
    "cast": lambda one: name_of(one.cast.expr),
    "literal": lambda one: literal(one.literal).strip("'"),
    "window": lambda one: name_of(one.window.window_function),
}


def literal(value: "Expression.Literal") -> str:
    which = value.WhichOneof("literal_type") or ""
    write = _LITERALS.get(which)
    if write is None:
        raise NotHere(f"literal {which}")
    return write(value)


def number_of(value: "Expression.Literal") -> int:
    return int(getattr(value, value.WhichOneof("literal_type") or ""))


def _integer(value: "Expression.Literal") -> str:
    return f"({number_of(value)})" if number_of(value) < 0 else str(number_of(value))


_LITERALS: Final[Mapping[str, "Callable[[Expression.Literal], str]"]] = {
    "null": lambda _: "NULL",
    "string": lambda one: text_literal(one.string),
    "boolean": lambda one: str(one.boolean).lower(),
    "byte": _integer,
    "short": _integer,
    "integer": _integer,
    "long": lambda one: f"CAST('{one.long}' AS BIGINT)",
    "double": lambda one: f"CAST('{one.double!r}' AS DOUBLE)",
}
_WRITERS: Final[Mapping[str, Callable[[Expressions, "Expression"], "Call | str"]]] = {
    "literal": lambda _, expression: literal(expression.literal),
    "unresolved_attribute": Expressions.attribute,
    "unresolved_function": Expressions.function,
    "expression_string": Expressions.text,
    "unresolved_star": lambda *_: "*",
    "alias": lambda own, expression: own._call(expression.alias.expr),  # noqa: SLF001 - its own
    "cast": Expressions.cast,
    "window": Expressions.window,
    "unresolved_extract_value": Expressions.field,
    "sort_order": lambda own, expression: own.order(expression.sort_order),
    "unresolved_named_lambda_variable": lambda _, expression: quoted(
        ".".join(expression.unresolved_named_lambda_variable.name_parts)
    ),
}
