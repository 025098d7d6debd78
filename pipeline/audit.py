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
_FEW_ROWS: Final = 500_000
_COUNTED: Final = (drill.MISSING, drill.EXTRA, drill.REORDERED, drill.CAUSAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """``verdicts``: one row for each log and channel.  ``witnesses``: one for each anomaly."""

    verdicts: DataFrame
    witnesses: DataFrame


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
    buckets = digest.Buckets(message, member, bucket_messages)
    message = buckets.of_messages(message)
    entry = buckets.of_entries(entry)
    grid = _cut(
        digest.compare(
            digest.digests(entry, digest.GRID_KEY, key),
            digest.canonical_digests(message, key),
            buckets.of_logs(),
            grace_ms,
        )
    )
    flagged = _small(grid.where("is_flagged"))
    looked = _cut(drill.looked_at(entry, message, flagged, grace_ms))
    moved = _cut(looked.where("is_moved").select("log", "mid"))
    found = drill.anomalies(looked)
    if not moved.isEmpty():
        channels = F.broadcast(buckets.logs.select("log", "channel"))
        found = found.unionByName(_causal(message, moved.join(channels, "log"), looked, grid))
    found = _cut(found)
    logs = F.broadcast(buckets.logs.select("log", *_WHOSE, "joined_ms"))
    return Audit(
        verdicts=_verdicts(grid, looked, found, logs),
        witnesses=found.join(logs, "log").select(*drill.WITNESS),
    )


def _causal(message: DataFrame, moved: DataFrame, looked: DataFrame, grid: DataFrame) -> DataFrame:
    logs = F.broadcast(moved.select("log").distinct())
    spots = grid.join(logs, "log", "left_semi")
    ids = _small(moved.select("channel", "mid").distinct())
    edges = _cut(drill.edges(message, ids))
    standing = _cut(drill.standing(message, _small(drill.ends(edges)), looked, spots))
    return drill.causal(edges, standing)


def _cut(rows: DataFrame) -> DataFrame:
    """Computed now, once, and without its history: what is asked of it later is a short plan.

    Spark would otherwise plan all that came before anew for each question, which takes longer than
    the work itself.
    """
    return rows.localCheckpoint()


def _small(rows: DataFrame) -> DataFrame:
    """To be sent to wherever the large tables are read, if it is small enough for that."""
    rows = _cut(rows)
    return F.broadcast(rows) if rows.count() <= _FEW_ROWS else rows


def _verdicts(grid: DataFrame, looked: DataFrame, found: DataFrame, logs: DataFrame) -> DataFrame:
    whole = grid.groupBy("log").agg(
        F.sum("n").alias("held"),
        F.coalesce(F.sum("c_n"), F.lit(0)).alias("canonical"),
        F.max(F.when(F.col("is_equal"), F.col("bucket"))).alias("last_equal"),
    )
    last = looked.where("NOT is_missing").groupBy("log").agg(F.max("place").alias("last_held"))
    is_missing = F.col("kind") == drill.MISSING
    first = F.struct("place", "message_id", "kind")
    counts = found.groupBy("log").agg(
        *(F.count_if(F.col("kind") == kind).alias(kind) for kind in _COUNTED),
        F.min(F.when(is_missing, F.struct("place", "bucket"))).alias("gap"),
        F.min(F.when(F.col("place").isNotNull(), first)).alias("first"),
    )
    rows = whole.where("held > 0 OR canonical > 0").join(last, "log", "left")
    rows = rows.join(counts, "log", "left").join(logs, "log").na.fill(0, list(_COUNTED))
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
