"""What a report says, collected from the figures' tables: few rows, whatever the input was.

Of channels and participants only the worst are shown; everything is in the Parquet files beside
the page.  Everything here is plain data, so that the page can be made, looked
at and tested without Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pipeline.metrics.figures import ALL, NEVER_BUCKET, bucket_end_ms
from pipeline.report.observed import Observed
from pipeline.report.traces import Trace
from pipeline.report.trend import Run
from pipeline.summary import IDENTICAL, Summary, headline

Row: TypeAlias = Mapping[str, object]
WORST: Final = 20
MOST_LINES: Final = 6
GROUPED: Final = ("delivery", "acks", "held_by_all", "trailing", "cost", "recovery")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """``points``: (within ms, share of all), ending where the last one came."""

    figure: str
    name: str
    points: Sequence[tuple[float, float]]
    begin_ms: float = 0.0
    """None came sooner."""


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
    sums: Mapping[str, int] = field(default_factory=dict)
    """Of all verdicts: expected, missing."""
    observed: Sequence[Observed] = ()
    members: int = 0
    """How many rows ``observed`` would have in all."""
    seen: int = 0
    """Of these, whose log is here and may be compared."""
    links: Sequence[Row] = ()
    activity: Sequence[Row] = ()
    traces: Sequence[Trace] = ()
    runs: Sequence[Run] = ()
    """Reports into the same place, the newest last: this one."""

    @property
    def expected(self) -> int | None:
        return self.sums.get("expected")

    @property
    def missing(self) -> int | None:
        return self.sums.get("missing")

    @property
    def held_share(self) -> float | None:
        """Of what all logs should hold in the end."""
        expected = self.expected or 0
        return (expected - (self.missing or 0)) / expected if expected else None

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


def grouped(figures: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, Sequence[Row]]]:
    """The worst channels and participants by ``_WORST_FIRST``, all of the others."""
    found: dict[str, dict[str, Sequence[Row]]] = {}
    for name in GROUPED:
        by_dimension: dict[str, list[Row]] = {}
        for row in figures.get(name, ()):
            by_dimension.setdefault(str(row["dimension"]), []).append(row)
        found[name] = {
            dimension: few
            for dimension, rows in by_dimension.items()
            if (few := _few(name, dimension, rows))
        }
    return found


_KINDS: Final = ("version", "network")
_WORST_FIRST: Final[Mapping[str, Sequence[tuple[str, int]]]] = {
    "delivery": (("delivery_rate", 1), ("delivery_p95_ms", -1)),
    "acks": (("ack_rate", 1), ("ack_p95_ms", -1)),
    "held_by_all": (("held_by_all_p95_ms", -1),),
    "trailing": (("trailing", -1),),
    "cost": (("sent_bytes", -1),),
    "recovery": (("lost", -1), ("missing", -1)),
}
"""Column, and 1 if less is worse."""


def _few(name: str, dimension: str, rows: Sequence[Row]) -> Sequence[Row]:
    if dimension in _KINDS:
        # A single version or network says nothing that the total does not.
        rows = [row for row in rows if row["value"]]
        rows = rows if len(rows) > 1 else ()

    def worst(row: Row) -> tuple[tuple[bool, float], ...]:
        values = ((row[column], sign) for column, sign in _WORST_FIRST[name])
        return tuple(
            (False, sign * value) if isinstance(value, int | float) else (True, 0.0)
            for value, sign in values
        )

    return sorted(rows, key=lambda row: (worst(row), str(row["value"])))[:WORST]


def curves(histogram: Sequence[Row]) -> list[Curve]:
    """For all together, and for each version and network if there are several."""
    found: dict[tuple[str, str, str], dict[int, int]] = {}
    for row in histogram:
        key = (str(row["dimension"]), str(row["value"] or ""), str(row["figure"]))
        bucket, pairs = row["bucket"], row["pairs"]
        if key[0] in (ALL, *_KINDS) and isinstance(bucket, int) and isinstance(pairs, int):
            buckets = found.setdefault(key, {})
            buckets[bucket] = buckets.get(bucket, 0) + pairs
    values = {
        dimension: {key[1] for key in found if key[0] == dimension and key[1]}
        for dimension in _KINDS
    }
    lines = []
    for (dimension, value, figure), buckets in sorted(found.items()):
        if dimension == ALL or (value and 1 < len(values[dimension]) <= MOST_LINES):
            name = "all" if dimension == ALL else f"{dimension} {value}"
            first = min(buckets)
            begin_ms = bucket_end_ms(first - 1) if 0 < first < NEVER_BUCKET else 0.0
            lines.append(
                Curve(figure=figure, name=name, points=_cumulative(buckets), begin_ms=begin_ms)
            )
    return lines


def _cumulative(buckets: Mapping[int, int]) -> list[tuple[float, float]]:
    total, so_far = sum(buckets.values()), 0
    points = []
    for bucket, pairs in sorted(buckets.items()):
        if bucket < NEVER_BUCKET:
            so_far += pairs
            points.append((round(bucket_end_ms(bucket), 1), so_far / total))
    return points
