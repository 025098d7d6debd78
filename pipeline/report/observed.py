"""What was observed of whom: for each log of a channel from when until when, and with what gaps.

Drawn first in a report, because a verdict holds for what was observed and for nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from engine.delivery.contract import Kind

MOST_ROWS: Final = 24
_MOST_FETCHED: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Of a participant in a channel."""

    channel: str
    participant: str
    stays: Sequence[tuple[int, int | None]]
    """From joining to leaving; None: is still there."""
    spans: Sequence[tuple[int, int]]
    """Of its logs; none: there is no log."""
    dropped: int = 0
    """Rows that recorders could not write."""


def observed(member: DataFrame, event: DataFrame) -> list[Observed]:
    """At most ``MOST_ROWS`` for a page, those without a log first."""
    spans: dict[str, list[tuple[int, int]]] = {}
    dropped: dict[str, int] = {}
    is_gap = F.col("kind") == Kind.GAP.value
    logs = event.groupBy("participant", "log_id").agg(
        F.min("at_ms").alias("from_ms"),
        F.max("at_ms").alias("until_ms"),
        F.sum(F.when(is_gap, F.col("amount"))).alias("dropped"),
    )
    for row in logs.orderBy("participant", "from_ms").limit(_MOST_FETCHED).collect():
        spans.setdefault(row["participant"], []).append((row["from_ms"], row["until_ms"]))
        dropped[row["participant"]] = dropped.get(row["participant"], 0) + (row["dropped"] or 0)
    order = ("has_log", "channel", "participant")
    return [
        Observed(
            channel=row["channel"],
            participant=row["participant"],
            stays=() if row["joined_ms"] is None else ((row["joined_ms"], row["left_ms"]),),
            spans=spans.get(row["participant"], ()) if row["has_log"] else (),
            dropped=dropped.get(row["participant"], 0),
        )
        for row in member.orderBy(*order).limit(MOST_ROWS).collect()
    ]


def span_of(rows: Sequence[Observed]) -> tuple[int, int]:
    """What a picture of them covers: all that was recorded."""
    times = [ms for row in rows for span in row.spans for ms in span]
    return (min(times), max(times)) if times else (0, 1)
