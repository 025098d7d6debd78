"""The audit: of each participant's log of each channel, whether it is the canonical one.

Verdicts, the worst that holds: ``causal violation`` (a message stands before what it depends on),
``reordered``, ``extra`` (something that nobody else knows of), ``missing``, ``prefix`` (only the
newest are missing: it is behind), ``unknown`` (it lacks some, but nobody says since when it belongs
to the channel), ``identical``.  Every anomaly is a witness row; the first divergence is the one
that stands first in the canonical order.
"""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline import digest, drill

IDENTICAL: Final = "identical"
PREFIX: Final = "prefix"
UNKNOWN: Final = "unknown"
CAUSAL_VIOLATION: Final = "causal violation"
_WHOSE: Final = ["channel", "participant"]
_COUNTED: Final = (drill.MISSING, drill.EXTRA, drill.REORDERED, drill.CAUSAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """``verdicts``: one row for each log and channel.  ``witnesses``: one for each anomaly."""

    verdicts: DataFrame
    witnesses: DataFrame
    kept: tuple[DataFrame, ...]

    def release(self) -> None:
        """Gives back what was kept in memory between the passes."""
        for table in self.kept:
            table.unpersist()


def audit(  # noqa: PLR0913 -- three tables and three settings
    entry: DataFrame,
    message: DataFrame,
    member: DataFrame,
    *,
    key: int,
    grace_ms: int = 0,
    bucket_messages: int = digest.BUCKET_MESSAGES,
) -> Audit:
    """Tables of silver.  ``key``: of the second digest, new for each audit.

    ``grace_ms``: how far the clocks of who joins or leaves and of who writes may differ.
    """
    bounds = digest.bounds(message, bucket_messages).persist()
    steps = digest.search_steps(bounds)
    message = digest.with_bucket(message, bounds, steps)
    entry = digest.with_bucket(entry, bounds, steps)
    grid = grid_of(entry, message, member, key=key, grace_ms=grace_ms).persist()
    flagged = grid.where("is_flagged")
    held = drill.held_rows(entry, message, flagged).persist()
    found = drill.missing(message, held, flagged, grace_ms).unionByName(drill.misplaced(held))
    if not held.where("is_moved").isEmpty():
        found = found.unionByName(drill.causal(message, held, grid))
    found = found.persist()
    verdicts = _verdicts(grid, held, found)
    return Audit(verdicts=verdicts, witnesses=found, kept=(bounds, grid, held, found))


def grid_of(
    entry: DataFrame, message: DataFrame, member: DataFrame, *, key: int, grace_ms: int = 0
) -> DataFrame:
    """Of tables with ``bucket``: the digests of all logs beside the canonical ones."""
    log = digest.digests(entry, digest.GRID_KEY, key)
    canonical = digest.canonical_digests(message, key).persist()
    whose = member.where("has_log").select("channel", "participant", "joined_ms", "left_ms")
    return digest.compare(log, canonical, whose, grace_ms)


def _verdicts(grid: DataFrame, held: DataFrame, found: DataFrame) -> DataFrame:
    whole = grid.groupBy(*_WHOSE).agg(
        F.sum("n").alias("held"),
        F.coalesce(F.sum("c_n"), F.lit(0)).alias("canonical"),
        F.max(F.when(F.col("is_equal"), F.col("bucket"))).alias("last_equal"),
        F.max("joined_ms").alias("joined_ms"),
    )
    last = held.groupBy(*_WHOSE).agg(F.max("place").alias("last_held"))
    is_missing = F.col("kind") == drill.MISSING
    first = F.struct("place", "message_id", "kind")
    counts = found.groupBy(*_WHOSE).agg(
        *(F.count_if(F.col("kind") == kind).alias(kind) for kind in _COUNTED),
        F.min(F.when(is_missing, F.struct("place", "bucket"))).alias("gap"),
        F.min(F.when(F.col("place").isNotNull(), first)).alias("first"),
    )
    rows = whole.join(last, _WHOSE, "left").join(counts, _WHOSE, "left")
    rows = rows.na.fill(0, list(_COUNTED))
    return rows.select(
        *_WHOSE,
        _verdict().alias("verdict"),
        (F.col("held") + F.col(drill.MISSING) - F.col(drill.EXTRA)).alias("expected"),
        "held",
        *_COUNTED,
        F.col("first.place").alias("first_place"),
        F.col("first.kind").alias("first_kind"),
        F.col("first.message_id").alias("first_message_id"),
    )


def _verdict() -> Column:
    nothing_after = F.coalesce(F.col("last_held") < F.col("gap.place"), F.lit(True)) & F.coalesce(
        F.col("last_equal") < F.col("gap.bucket"), F.lit(True)
    )
    lacks = F.col("held") - F.col(drill.EXTRA) < F.col("canonical")
    return (
        F.when(F.col(drill.CAUSAL) > 0, CAUSAL_VIOLATION)
        .when(F.col(drill.REORDERED) > 0, drill.REORDERED)
        .when(F.col(drill.EXTRA) > 0, drill.EXTRA)
        .when((F.col(drill.MISSING) > 0) & nothing_after, PREFIX)
        .when(F.col(drill.MISSING) > 0, drill.MISSING)
        .when(F.col("joined_ms").isNull() & lacks, UNKNOWN)
        .otherwise(IDENTICAL)
    )
