"""Every table of figures as Parquet and CSV, and as rows for the page: counted once, written once.

Figures have as many rows as there are channels, participants and hours, so they are fetched as a
whole.  Verdicts and witnesses may be as long as the input; those Spark writes by itself.
"""

import csv
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from pipeline.metrics.compute import Silver, metrics
from pipeline.paths import to_read

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, object]
TABLES: Final = "tables"
_FILE: Final = "part-00000.parquet"
_SORTED: Final = 4
"""By so many columns from the left."""


@dataclass(frozen=True, slots=True)
class Written:
    """``figures``: rows by table.  ``audit``: verdicts and witnesses, read again."""

    figures: Mapping[str, Sequence[Row]]
    audit: Mapping[str, DataFrame]


def write_tables(
    spark: SparkSession, silver: Silver, place: Path, audit: Mapping[str, DataFrame] | None = None
) -> Written:
    """Below ``place``, whole or not at all."""
    waiting = place.with_name(f".{place.name}")
    shutil.rmtree(waiting, ignore_errors=True)
    waiting.mkdir(parents=True)
    long = audit or {}
    for name, table in long.items():
        table.coalesce(1).write.parquet(str(waiting / name))
        written = spark.read.schema(table.schema).parquet(to_read(waiting / name))
        _write_long_csv(written, waiting / f"{name}.csv")
    figures = {}
    found = metrics(silver)
    try:
        for name, table in found.tables.items():
            arrow = _in_order(table.toArrow())
            (waiting / name).mkdir()
            pq.write_table(arrow, waiting / name / _FILE)
            figures[name] = arrow.to_pylist()
            _write_csv(arrow.column_names, figures[name], waiting / f"{name}.csv")
    finally:
        found.release()
    shutil.rmtree(place, ignore_errors=True)
    waiting.rename(place)
    return Written(
        figures=figures,
        audit={
            name: spark.read.schema(table.schema).parquet(to_read(place / name))
            for name, table in long.items()
        },
    )


def _in_order(table: "pa.Table") -> "pa.Table":
    return table.sort_by([(name, "ascending") for name in table.column_names[:_SORTED]])


def _write_csv(names: Sequence[str], rows: Sequence[Row], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(names)
        out.writerows(tuple(row.values()) for row in rows)


def _write_long_csv(table: DataFrame, path: Path) -> None:
    """Row by row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(table.columns)
        ordered = table.orderBy(*table.columns[:_SORTED])
        out.writerows(map(_cells, ordered.toLocalIterator()))


def _cells(row: Sequence[object]) -> list[object]:
    return [" ".join(cell) if isinstance(cell, list) else cell for cell in row]
