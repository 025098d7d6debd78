"""What was observed of whom: for each log of a channel from when until when, and what limits it.

Drawn first in a report, because a verdict holds for what was observed and for nothing else.  It is
``coverage`` as the trust gate goes by it, in the same corrected times.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from pipeline.coverage import WHOSE

MOST_ROWS: Final = 24
_MOST_FETCHED: Final = 4_000
_STAY: Final = (*WHOSE, "joined_ms", "left_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Of a participant in a channel."""

    channel: str
    participant: str
    stays: Sequence[tuple[int, int | None]]
    """From joining to leaving, all of them; None: is still there."""
    spans: Sequence[tuple[int, int]]
    """Of its logs; none: there is no log, or none that may be compared."""
    problems: Sequence[str] = ()
    """What limits it, in the words of ``pipeline.coverage``."""
    dropped: int = 0
    """Rows that recorders could not write."""
    unobserved: int = 0
    """Messages that were sent after its end."""


def observed(coverage: DataFrame, stay: DataFrame, log: DataFrame) -> list[Observed]:
    """At most ``MOST_ROWS`` for a page: those without a log first, then those that are limited."""
    order = ("has_log", F.size("problems") == 0, *WHOSE)
    rows = coverage.orderBy(*order).limit(MOST_ROWS).collect()
    people = F.col("participant").isin(sorted({row["participant"] for row in rows}))
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    told = log.where(people).select("participant", "from_ms", "until_ms")
    for who, from_ms, until_ms in _few(told):
        spans[who].append((from_ms, until_ms))
    stays: dict[tuple[str, str], list[tuple[int, int | None]]] = defaultdict(list)
    for channel, who, joined_ms, left_ms in _few(stay.where(people).select(*_STAY)):
        stays[channel, who].append((joined_ms, left_ms))
    return [
        Observed(
            channel=row["channel"],
            participant=row["participant"],
            stays=stays[row["channel"], row["participant"]],
            spans=[
                (from_ms - row["offset_ms"], until_ms - row["offset_ms"])
                for from_ms, until_ms in (spans[row["participant"]] if row["has_log"] else ())
            ],
            problems=row["problems"],
            dropped=row["dropped"],
            unobserved=row["unobserved"],
        )
        for row in rows
    ]


def _few(rows: DataFrame) -> Sequence[Row]:
    return rows.orderBy(*rows.columns).limit(_MOST_FETCHED).collect()


def span_of(rows: Sequence[Observed]) -> tuple[int, int]:
    """What a picture of them covers: all that was recorded."""
    times = [ms for row in rows for span in row.spans for ms in span]
    return (min(times), max(times)) if times else (0, 1)
