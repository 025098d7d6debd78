"""The audit: of each participant's log of each channel, whether it is the canonical one.

Verdicts, the worst that holds: ``causal violation`` (a message stands before what it depends on),
``reordered``, ``extra`` (something that nobody else knows of), ``missing``, ``prefix`` (only the
newest are missing: it is behind), ``unknown`` (it lacks some, but nobody says since when it belongs
to the channel), ``identical``.  Every anomaly is a witness row; the first divergence is the one
that stands first in the canonical order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import digest, drill

IDENTICAL: Final = "identical"
PREFIX: Final = "prefix"
UNKNOWN: Final = "unknown"
CAUSAL_VIOLATION: Final = "causal violation"
_WHOSE: Final = ["channel", "participant"]
_FEW_ROWS: Final = 500_000
FEW_CELLS: Final = 500_000
_FEW_FLAGGED: Final = 10_000
_FLAGGED_OF_TASK: Final = 250
_LIGHT: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
_COUNTED: Final = (drill.MISSING, drill.EXTRA, drill.REORDERED, drill.CAUSAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """``verdicts``: one row for each log and channel.  ``witnesses``: one for each anomaly."""

    verdicts: DataFrame
    witnesses: DataFrame


def audit(  # noqa: PLR0913 -- three tables and four settings
    entry: DataFrame,
    message: DataFrame,
    member: DataFrame,
    *,
    key: int,
    grace_ms: int = 0,
    bucket_messages: int = digest.BUCKET_MESSAGES,
    few_cells: int = FEW_CELLS,
) -> Audit:
    """Tables of silver.  ``key``: of the second digest, new for each audit.

    ``grace_ms``: how far the clocks of who joins or leaves and of who writes may differ.
    ``few_cells``: so many buckets of all logs together are compared in a single task, without
    compiling anything for them; with more, Spark spreads that too.
    """
    spark = message.sparkSession
    buckets = digest.Buckets(message, member, bucket_messages)
    is_few = buckets.cells <= few_cells
    message = buckets.of_messages(message)
    entry, digests = _digests(buckets, entry, key, is_few=is_few)
    canonical = digest.canonical_digests(message, key)
    if is_few:
        canonical = _cut(canonical, is_few=True)
    with _lightly(spark, is_few=is_few):
        grid = _cut(
            digest.compare(digests, canonical, buckets.of_logs(), grace_ms, is_few=is_few),
            is_few=is_few,
        )
        flagged = _cut(grid.where("is_flagged"), is_few=is_few)
        differing = flagged.count()
    is_few = is_few and differing <= _FEW_FLAGGED
    looked = _cut(
        drill.looked_at(
            entry,
            message,
            F.broadcast(flagged) if differing <= _FEW_ROWS else flagged,
            grace_ms,
            partitions=1 + differing // _FLAGGED_OF_TASK if is_few else None,
        )
    )
    logs = buckets.logs.select("log", *_WHOSE, "joined_ms")
    with _lightly(spark, is_few=is_few):
        moved = _cut(looked.where("is_moved").select("log", "mid"), is_few=is_few)
        is_moved = not moved.isEmpty()
    found = drill.anomalies(looked)
    if is_moved:
        moved = moved.join(F.broadcast(logs.select("log", "channel")), "log")
        found = found.unionByName(_causal(message, moved, looked, grid, is_few=is_few))
    with _lightly(spark, is_few=is_few):
        found = _cut(found, is_few=is_few)
        verdicts = _verdicts(grid, looked, found, logs)
        witnesses = found.join(F.broadcast(logs), "log").select(*drill.WITNESS)
        if is_few:
            verdicts, witnesses = _cut(verdicts, is_few=True), _cut(witnesses, is_few=True)
    return Audit(verdicts=verdicts, witnesses=witnesses)


def _digests(
    buckets: digest.Buckets, entry: DataFrame, key: int, *, is_few: bool
) -> tuple[DataFrame, DataFrame]:
    """The entries with their buckets, and their digests."""
    near = buckets.of_entries(entry)
    digests = _cut(digest.digests(near, digest.GRID_KEY, key), is_few=is_few)
    if digests.where(F.col("bucket") == digest.FAR).isEmpty():
        return near, digests
    whole = buckets.of_all_entries(entry)
    return whole, _cut(digest.digests(whole, digest.GRID_KEY, key), is_few=is_few)


def _causal(
    message: DataFrame, moved: DataFrame, looked: DataFrame, grid: DataFrame, *, is_few: bool
) -> DataFrame:
    spark = message.sparkSession
    with _lightly(spark, is_few=is_few):
        logs = F.broadcast(moved.select("log").distinct())
        spots = _cut(grid.join(logs, "log", "left_semi"), is_few=is_few)
        ids = _small(moved.select("channel", "mid").distinct(), is_few=is_few)
    edges = _cut(drill.edges(message, ids), is_few=is_few)
    with _lightly(spark, is_few=is_few):
        ends = _small(drill.ends(edges), is_few=is_few)
    known = _cut(drill.known(message, ends), is_few=is_few)
    with _lightly(spark, is_few=is_few):
        standing = _cut(drill.standing(known, looked, spots), is_few=is_few)
        return _cut(drill.causal(edges, standing), is_few=is_few)


def _cut(rows: DataFrame, *, is_few: bool = False) -> DataFrame:
    """Computed now, once, and without its history: what is asked of it later is a short plan.

    Spark would otherwise plan all that came before anew for each question, which takes longer than
    the work itself.  ``is_few``: into one partition, so that nothing has to be moved any more.
    """
    if not is_few:
        return rows.localCheckpoint()
    return rows.coalesce(1).localCheckpoint().coalesce(1)  # Said again: a checkpoint forgets it.


def _small(rows: DataFrame, *, is_few: bool) -> DataFrame:
    """To be sent to wherever the large tables are read, if it is small enough for that."""
    rows = _cut(rows, is_few=is_few)
    return F.broadcast(rows) if is_few or rows.count() <= _FEW_ROWS else rows


@contextmanager
def _lightly(spark: SparkSession, *, is_few: bool) -> Iterator[None]:
    """For queries of few rows: compiling them, and running them in stages, would be the work."""
    settings = _LIGHT if is_few else {}
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


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
