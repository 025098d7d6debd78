"""Questions about few rows, carried out in this process: DuckDB beside Spark.

To plan, compile and hand out a question takes Spark longer than it takes DuckDB to look at half a
million rows.  The questions are the same functions of DataFrames, and so are their answers
(``pipeline.duck``); whatever turns out to be more rows than that stays with Spark.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, StructType

from pipeline.duck import connect_mode, opened
from pipeline.persisted import persisted
from pipeline.session import for_few_rows, is_here
from pipeline.tables.parquet import nothing

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS: Final = 500_000
WITH_LISTS: Final = 20
"""Of a table with lists, a row may be so many times as long: then fewer are few."""
Question: TypeAlias = Callable[..., DataFrame]
Keep: TypeAlias = Callable[[DataFrame], DataFrame]
_Told = TypeVar("_Told")


class Answer:
    """Rows that are made once.  ``table``: they themselves, where they are few."""

    def __init__(
        self, spark: SparkSession, frame: DataFrame | None, table: "pa.Table | None"
    ) -> None:
        self.table = table
        self._spark = spark
        self._frame = frame

    @property
    def frame(self) -> DataFrame:
        """For Spark.  Of no rows that is known when a query is planned, as by ``if_any``."""
        if self._frame is None:
            assert self.table is not None  # noqa: S101 - there is one of the two
            if not self.table.num_rows:
                self._frame = nothing(self._spark, self.schema)
            else:
                self._frame = self._spark.createDataFrame(self.table, self.schema)
        return self._frame

    @property
    def schema(self) -> StructType:
        if self.table is None:
            assert self._frame is not None  # noqa: S101 - there is one of the two
            return self._frame.schema
        return from_arrow_schema(self.table.schema)

    @property
    def is_empty(self) -> bool:
        return self.frame.isEmpty() if self.table is None else not self.table.num_rows

    def dicts(self) -> list[dict[str, object]]:
        """Row by row."""
        if self.table is None:
            return [row.asDict(recursive=True) for row in self.frame.collect()]
        return list(self.table.to_pylist())


class Beside:
    def __init__(self, spark: SparkSession, here: SparkSession | None, keep: Keep) -> None:
        """``here``: None if there is nothing but ``spark``."""
        self._spark = spark
        self._here = here
        self._keep = keep
        self._known: dict[int, tuple[Answer, DataFrame]] = {}
        self._kept: list[DataFrame] = []

    def ask(self, question: Question, *tables: DataFrame | Answer) -> Answer:
        """Here if all ``tables`` and the answer are few rows, else by Spark."""
        found = [one if isinstance(one, Answer) else self.fetched(one) for one in tables]
        if self._here is None:
            return self._by_spark(question, found)
        if any(one.table is None for one in found):
            return self.fetched(question(*(one.frame for one in found)))
        with connect_mode():
            few = _if_few(question(*(self._brought(self._here, one) for one in found)))
        return self._by_spark(question, found) if few is None else self.given(few)

    def told(self, question: Callable[..., _Told], *tables: Answer) -> _Told:
        """What ``question`` makes of these tables in Python; here if all are few rows."""
        if self._here is None or any(one.table is None for one in tables):
            with for_few_rows(self._spark):
                return question(*(one.frame for one in tables))
        with connect_mode():
            return question(*(self._brought(self._here, one) for one in tables))

    def given(self, table: "pa.Table") -> Answer:
        return Answer(self._spark, None, table)

    def only(self, rows: DataFrame, keys: Answer, on: Sequence[str]) -> DataFrame:
        """Rows that have one of these keys, found by Spark."""
        wanted = keys.frame if keys.table is None else F.broadcast(keys.frame)
        return rows.join(wanted, [*on], "left_semi")

    def fetched(self, rows: DataFrame, about: int = 0) -> Answer:
        """The rows, if they are few.  ``about``: so many, if that is known before they are made."""
        if self._here is not None and about <= MOST_ROWS:
            few = _if_few(rows)
            if few is not None:
                return self.given(few)
        return Answer(self._spark, self.kept(rows), None)

    def _by_spark(self, question: Question, found: Sequence[Answer]) -> Answer:
        return Answer(self._spark, self.kept(question(*(one.frame for one in found))), None)

    def kept(self, rows: DataFrame) -> DataFrame:
        """Many rows, made once."""
        kept = self._keep(rows)
        self._kept.append(kept)
        return kept

    def release(self) -> None:
        for kept in self._kept:
            kept.unpersist()

    def _brought(self, here: SparkSession, one: Answer) -> DataFrame:
        if id(one) not in self._known:
            assert one.table is not None  # noqa: S101 - the caller has looked
            self._known[id(one)] = one, here.createDataFrame(one.table, one.schema)
        return self._known[id(one)][1]


def _if_few(rows: DataFrame) -> "pa.Table | None":
    has_lists = any(isinstance(field.dataType, ArrayType) for field in rows.schema)
    most = MOST_ROWS // WITH_LISTS if has_lists else MOST_ROWS
    found = rows.limit(most + 1).toArrow()
    return found if found.num_rows <= most else None


@contextmanager
def beside(spark: SparkSession, keep: Keep = persisted) -> Iterator[Beside]:
    """``keep``: what makes many rows once; until the end.  Without Java all is here anyway."""
    with nullcontext() if is_here(spark) or not MOST_ROWS else opened({}) as here:
        ask = Beside(spark, here, keep)
        try:
            yield ask
        finally:
            ask.release()
