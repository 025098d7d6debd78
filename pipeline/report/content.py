"""What a report says, collected from the figures' tables: few rows, whatever the input was.

Of channels and participants only the worst are shown, of hours the last; everything is in the
Parquet files beside the page.  Everything here is plain data, so that the page can be made, looked
at and tested without Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.metrics.figures import ALL, NEVER_BUCKET, bucket_end_ms
from pipeline.summary import IDENTICAL, Summary, headline

Row: TypeAlias = Mapping[str, object]
WORST: Final = 20
MOST_HOURS: Final = 31 * 24
MOST_LINES: Final = 6
GROUPED: Final = ("delivery", "acks", "held_by_all", "trailing", "cost", "recovery")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """``points``: (within ms, share of all), ending where the last one came."""

    figure: str
    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    title: str
    made: str
    summary: Summary
    groups: Mapping[str, Mapping[str, Sequence[Row]]]
    """Table → dimension → rows."""
    curves: Sequence[Curve]
    false_acks: Sequence[Row]
    clocks: Sequence[Row]
    quarantine: Sequence[Row] = ()

    @property
    def is_same(self) -> bool:
        """Of all logs, by what was observed."""
        counts = self.summary.counts
        return self.summary.total > 0 and counts.get(IDENTICAL, 0) == self.summary.total

    def total(self, table: str) -> Row:
        rows = self.groups.get(table, {}).get(ALL, ())
        return rows[0] if rows else {}

    @property
    def headline(self) -> str:
        return headline(self.summary.counts)


def grouped(tables: Mapping[str, DataFrame]) -> dict[str, dict[str, list[Row]]]:
    """The worst channels and participants by ``delivery_p95_ms`` and so on, all of the others."""
    found: dict[str, dict[str, list[Row]]] = {}
    for name in GROUPED:
        if name in tables:
            by_dimension = found.setdefault(name, {})
            for row in _few(name, tables[name]):
                by_dimension.setdefault(str(row["dimension"]), []).append(row)
    return found


_WORST_FIRST: Final = {
    "delivery": ("delivery_rate ASC NULLS LAST", "delivery_p95_ms DESC NULLS LAST"),
    "acks": ("ack_rate ASC NULLS LAST", "ack_p95_ms DESC NULLS LAST"),
    "held_by_all": ("held_by_all_p95_ms DESC NULLS LAST",),
    "trailing": ("trailing DESC",),
    "cost": ("sent_bytes DESC",),
    "recovery": ("lost DESC", "missing DESC"),
}


def _few(name: str, table: DataFrame) -> list[Row]:
    order = ", ".join((*_WORST_FIRST[name], "value"))
    per_dimension = F.expr(f"row_number() OVER (PARTITION BY dimension ORDER BY {order})")
    by_hour = F.expr("row_number() OVER (PARTITION BY dimension ORDER BY value DESC)")
    few = (
        table.withColumn("_place", per_dimension)
        .withColumn("_hour", by_hour)
        .where(
            (F.col("dimension") != "hour") & (F.col("_place") <= WORST)
            | (F.col("dimension") == "hour") & (F.col("_hour") <= MOST_HOURS)
        )
        .orderBy("dimension", F.when(F.col("dimension") == "hour", F.col("value")), "_place")
    )
    return [row.asDict() for row in few.drop("_place", "_hour").collect()]


def curves(histogram: DataFrame) -> list[Curve]:
    """For all together, and for each version and network if there are several."""
    wanted = histogram.where(F.col("dimension").isin(ALL, "version", "network"))
    summed = wanted.groupBy("figure", "dimension", "value", "bucket").agg(F.sum("pairs"))
    found: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for row in summed.collect():
        figure, dimension, value, bucket, pairs = row
        found.setdefault((dimension, value or "", figure), []).append((bucket, pairs))
    values = {
        dimension: sorted({key[1] for key in found if key[0] == dimension})
        for dimension in ("version", "network")
    }
    lines = []
    for (dimension, value, figure), buckets in sorted(found.items()):
        if dimension == ALL or 1 < len(values[dimension]) <= MOST_LINES:
            name = "all" if dimension == ALL else f"{dimension} {value}"
            lines.append(Curve(figure=figure, name=name, points=_cumulative(buckets)))
    return lines


def _cumulative(buckets: list[tuple[int, int]]) -> list[tuple[float, float]]:
    total, so_far = sum(pairs for _, pairs in buckets), 0
    points = []
    for bucket, pairs in sorted(buckets):
        if bucket < NEVER_BUCKET:
            so_far += pairs
            points.append((round(bucket_end_ms(bucket), 1), so_far / total))
    return points
