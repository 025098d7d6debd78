"""Where digests differ: exactly which messages, row by row, in the flagged buckets alone.

``missing``: a canonical message that has to be in this log and is not.  ``extra``: an entry that is
not canonical, or a second one of the same message.  ``reordered``: an entry that does not stand
where the order of what this log holds puts it.  ``causal``: an entry that stands before one of its
parents.  An entry outside the flagged buckets stands where it should, so its position is known
without looking at it: the canonical one and the bucket's shift.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.digest import GRID_KEY, is_required

MISSING: Final = "missing"
EXTRA: Final = "extra"
REORDERED: Final = "reordered"
CAUSAL: Final = "causal"
WITNESS: Final = (
    "channel",
    "participant",
    "kind",
    "bucket",
    "place",
    "position",
    "expected_position",
    "lamport",
    "mid",
    "message_id",
    "parent_mid",
    "parent_message_id",
)
_WHOSE: Final = ["channel", "participant"]


def one_for_each(message: DataFrame) -> DataFrame:
    """One row for each (channel, mid, lamport): ids that collide are told elsewhere."""
    canonical_first = F.struct(F.col("position").isNotNull(), -F.col("place"))
    return (
        message.groupBy("channel", "bucket", "mid", "lamport")
        .agg(
            F.max_by(F.struct("place", "position", "message_id"), canonical_first).alias("best"),
        )
        .select(
            "channel",
            "bucket",
            "mid",
            "lamport",
            "best.place",
            F.col("best.position").alias("c_position"),
            "best.message_id",
        )
    )


def held_rows(entry: DataFrame, message: DataFrame, flagged: DataFrame) -> DataFrame:
    """Entries in flagged buckets, each with its place and the position that it should have.

    ``entry`` and ``message`` with ``bucket``; ``flagged``: rows of the grid.
    """
    spots = flagged.select(*GRID_KEY, "begin")
    rows = entry.select(*GRID_KEY, "position", "lamport", "mid").join(spots, list(GRID_KEY))
    here = flagged.select("channel", "bucket").distinct()
    known = one_for_each(message.join(here, ["channel", "bucket"], "left_semi"))
    placed = rows.join(known, ["channel", "bucket", "mid", "lamport"], "left")
    order = Window.partitionBy(*GRID_KEY).orderBy(
        "lamport", F.col("place").asc_nulls_last(), "mid", "position"
    )
    copies = Window.partitionBy(*GRID_KEY, "mid", "lamport").orderBy("position")
    return (
        placed.withColumn("expected_position", F.col("begin") + F.row_number().over(order) - 1)
        .withColumn("copy", F.row_number().over(copies))
        .withColumn("is_moved", F.col("position") != F.col("expected_position"))
        .withColumn("is_extra", F.col("c_position").isNull() | (F.col("copy") > 1))
    )


def missing(message: DataFrame, held: DataFrame, flagged: DataFrame, grace_ms: int) -> DataFrame:
    """Witnesses of what should be in a log and is not."""
    spots = flagged.where(F.col("c_n").isNotNull() & F.col("joined_ms").isNotNull())
    wanted = (
        message.where(F.col("position").isNotNull())
        .join(spots.select(*GRID_KEY, "joined_ms", "left_ms"), ["channel", "bucket"])
        .where(is_required(grace_ms))
    )
    there = held.select(*GRID_KEY, "mid", "lamport")
    absent = wanted.join(there, [*GRID_KEY, "mid", "lamport"], "left_anti")
    return _witnesses(absent.drop("position"), MISSING)


def misplaced(held: DataFrame) -> DataFrame:
    """Witnesses of what is in a log and should not be, or not there."""
    extra = _witnesses(held.where("is_extra"), EXTRA)
    return extra.unionByName(_witnesses(held.where("is_moved"), REORDERED))


def causal(message: DataFrame, held: DataFrame, grid: DataFrame) -> DataFrame:
    """Witnesses of entries that stand before one of their parents.

    In a log that is in order none can; so one of both has been moved, and only edges from or to
    something that was moved anywhere are looked at.
    """
    moved = held.where("is_moved").select("channel", "mid").distinct()
    edges = (
        message.where(F.col("position").isNotNull())
        .select(
            "channel",
            F.col("mid").alias("child_mid"),
            F.explode("parent_mids").alias("parent_mid"),
        )
        .distinct()
    )
    touched = _touching(edges, moved, "child_mid").union(_touching(edges, moved, "parent_mid"))
    touched = touched.distinct()
    child = _standing(touched, "child", message, held, grid)
    parent = _standing(touched, "parent", message, held, grid)
    found = child.join(parent, [*_WHOSE, "child_mid", "parent_mid"]).where(
        (F.col("parent_place") < F.col("child_place"))
        & (F.col("parent_position") > F.col("child_position"))
    )
    return _witnesses(
        found.select(
            *_WHOSE,
            F.col("child_bucket").alias("bucket"),
            F.col("child_place").alias("place"),
            F.col("child_position").alias("position"),
            F.col("child_lamport").alias("lamport"),
            F.col("child_mid").alias("mid"),
            F.col("child_message_id").alias("message_id"),
            "parent_mid",
            "parent_message_id",
        ),
        CAUSAL,
    )


def _touching(edges: DataFrame, moved: DataFrame, end: str) -> DataFrame:
    return edges.join(moved.withColumnRenamed("mid", end), ["channel", end], "left_semi").select(
        "channel", "child_mid", "parent_mid"
    )


def _standing(
    edges: DataFrame, end: str, message: DataFrame, held: DataFrame, grid: DataFrame
) -> DataFrame:
    """At which position each log has the message at this end of each edge, if it has it."""
    canonical = message.where(F.col("position").isNotNull()).select(
        "channel",
        "bucket",
        F.col("mid").alias(f"{end}_mid"),
        "lamport",
        "place",
        F.col("position").alias("c_position"),
        "message_id",
    )
    at_end = edges.join(canonical, ["channel", f"{end}_mid"])
    spots = grid.where(F.col("is_flagged") | F.col("is_equal"))
    spots = spots.select(*GRID_KEY, "shift", "is_equal")
    wide = at_end.join(spots, ["channel", "bucket"])
    seen = held.where(F.col("copy") == 1).select(
        *GRID_KEY, F.col("mid").alias(f"{end}_mid"), "lamport", F.col("position").alias("seen")
    )
    full = wide.join(seen, [*GRID_KEY, f"{end}_mid", "lamport"], "left")
    known = F.when(F.col("is_equal"), F.col("c_position") + F.col("shift")).otherwise(F.col("seen"))
    return full.select(
        *_WHOSE,
        "child_mid",
        "parent_mid",
        F.col("bucket").alias(f"{end}_bucket"),
        F.col("lamport").alias(f"{end}_lamport"),
        F.col("place").alias(f"{end}_place"),
        F.col("message_id").alias(f"{end}_message_id"),
        known.alias(f"{end}_position"),
    ).where(F.col(f"{end}_position").isNotNull())


def _witnesses(rows: DataFrame, kind: str) -> DataFrame:
    """In the columns of WITNESS, null where there is none."""
    numbers = {"position", "expected_position", "parent_mid", "place"}
    there = set(rows.columns)
    columns = [
        F.lit(kind).alias("kind")
        if name == "kind"
        else F.col(name)
        if name in there
        else F.lit(None).cast("bigint" if name in numbers else "string").alias(name)
        for name in WITNESS
    ]
    return rows.select(*columns)
