"""Where digests differ: exactly which messages, row by row, in the flagged buckets alone.

``missing``: a canonical message that has to be in this log and is not.  ``extra``: an entry that is
not canonical, or a second one of the same message.  ``reordered``: an entry that does not stand
where the order of what this log holds puts it.  ``causal``: an entry that stands before one of its
parents.  An entry outside the flagged buckets stands where it should, so its position is known
without looking at it: the canonical one and the bucket's shift.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
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
    same = Window.partitionBy("channel", "bucket", "mid", "lamport").orderBy(
        F.col("position").asc_nulls_last(), "place"
    )
    return (
        message.withColumn("copy", F.row_number().over(same))
        .where("copy = 1")
        .select(
            "channel",
            "bucket",
            "mid",
            "lamport",
            "place",
            F.col("position").alias("c_position"),
            "message_id",
        )
    )


def looked_at(entry: DataFrame, message: DataFrame, flagged: DataFrame, grace_ms: int) -> DataFrame:
    """What stands in flagged buckets of logs, and what should: each with both positions.

    ``entry`` and ``message`` with ``bucket``; ``flagged``: rows of the grid.  Where the log has
    nothing ``position`` is null, where the canonical log has nothing ``c_position`` is.
    """
    spots = flagged.select(*GRID_KEY, "begin", "joined_ms", "left_ms")
    there = entry.select(*GRID_KEY, "position", "lamport", "mid").join(
        spots.select(*GRID_KEY, F.col("begin").alias("log_begin")), list(GRID_KEY)
    )
    here = flagged.select("channel", "bucket").distinct()
    known = one_for_each(message.join(here, ["channel", "bucket"], "left_semi"))
    wanted = known.join(spots, ["channel", "bucket"])
    both = there.join(wanted, [*GRID_KEY, "mid", "lamport"], "full")
    order = Window.partitionBy(*GRID_KEY).orderBy(
        "lamport", F.col("place").asc_nulls_last(), "mid", "position"
    )
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    copies = Window.partitionBy(*GRID_KEY, "mid", "lamport").orderBy("position")
    begin = F.coalesce("log_begin", "begin")
    is_entry = F.col("position").isNotNull()
    lacks = ~is_entry & F.col("c_position").isNotNull() & is_required(grace_ms)
    return both.select(
        *GRID_KEY,
        "mid",
        "lamport",
        "position",
        "place",
        "c_position",
        "message_id",
        F.when(is_entry, begin + F.count("position").over(so_far) - 1).alias("expected_position"),
        F.row_number().over(copies).alias("copy"),
        lacks.alias("is_missing"),
    ).where(is_entry | F.col("is_missing"))


def anomalies(looked: DataFrame) -> DataFrame:
    """Witnesses of what should be in a log and is not, or is and should not be, or not there."""
    is_entry = F.col("position").isNotNull()
    is_extra = is_entry & (F.col("c_position").isNull() | (F.col("copy") > 1))
    kinds = F.array_compact(
        F.array(
            F.when(F.col("is_missing"), MISSING),
            F.when(is_extra, EXTRA),
            F.when(_is_moved(), REORDERED),
        )
    )
    odd = looked.where(F.col("is_missing") | is_extra | _is_moved())
    return witnesses(odd.withColumn("kind", F.explode(kinds)))


def moved(looked: DataFrame) -> DataFrame:
    """channel, mid: of what does not stand where it should in any log."""
    return looked.where(_is_moved()).select("channel", "mid").distinct()


def _is_moved() -> Column:
    return F.col("position").isNotNull() & (F.col("position") != F.col("expected_position"))


# --- causality ------------------------------------------------------------------------------------


def edges(message: DataFrame, moved: DataFrame) -> DataFrame:
    """channel, child_mid, parent_mid: those with an end in ``moved``.

    In a log that is in order nothing stands before its parent; so one of both has been moved, and
    only edges from or to something that was moved anywhere are looked at.
    """
    whole = message.where(F.col("position").isNotNull()).select(
        "channel", F.col("mid").alias("child_mid"), F.explode("parent_mids").alias("parent_mid")
    )
    for end in ("child", "parent"):
        marks = moved.select(
            "channel", F.col("mid").alias(f"{end}_mid"), F.lit(True).alias(f"is_{end}_moved")
        )
        whole = whole.join(marks, ["channel", f"{end}_mid"], "left")
    touched = whole.where("is_child_moved OR is_parent_moved")
    return touched.select("channel", "child_mid", "parent_mid").distinct()


def ends(edges: DataFrame) -> DataFrame:
    """channel, mid: of all that the edges join."""
    child = edges.select("channel", F.col("child_mid").alias("mid"))
    return child.union(edges.select("channel", F.col("parent_mid").alias("mid"))).distinct()


def standing(message: DataFrame, ends: DataFrame, looked: DataFrame, grid: DataFrame) -> DataFrame:
    """At which position each log has each of these messages, if it has it."""
    canonical = (
        message.where(F.col("position").isNotNull())
        .join(ends, ["channel", "mid"])
        .select(
            "channel",
            "bucket",
            "mid",
            "lamport",
            "place",
            F.col("position").alias("c_position"),
            "message_id",
        )
    )
    spots = grid.where(F.col("is_flagged") | F.col("is_equal"))
    wide = canonical.join(spots.select(*GRID_KEY, "shift", "is_equal"), ["channel", "bucket"])
    seen = looked.where((F.col("copy") == 1) & F.col("position").isNotNull()).select(
        *GRID_KEY, "mid", "lamport", F.col("position").alias("seen")
    )
    full = wide.join(seen, [*GRID_KEY, "mid", "lamport"], "left")
    known = F.when(F.col("is_equal"), F.col("c_position") + F.col("shift")).otherwise(F.col("seen"))
    return full.select(
        *GRID_KEY, "mid", "lamport", "place", "message_id", known.alias("position")
    ).where(F.col("position").isNotNull())


def causal(edges: DataFrame, standing: DataFrame) -> DataFrame:
    """Witnesses of entries that stand before one of their parents."""
    parent = standing.select(
        *_WHOSE,
        F.col("mid").alias("parent_mid"),
        F.col("place").alias("parent_place"),
        F.col("position").alias("parent_position"),
        F.col("message_id").alias("parent_message_id"),
    )
    child = standing.join(edges.withColumnRenamed("child_mid", "mid"), ["channel", "mid"])
    found = child.join(parent, [*_WHOSE, "parent_mid"]).where(
        "parent_place < place AND parent_position > position"
    )
    return witnesses(found.withColumn("kind", F.lit(CAUSAL)))


def witnesses(rows: DataFrame) -> DataFrame:
    """In the columns of WITNESS, null where there is none."""
    numbers = {"position", "expected_position", "parent_mid", "place"}
    there = set(rows.columns)
    columns = [
        F.col(name)
        if name in there
        else F.lit(None).cast("bigint" if name in numbers else "string").alias(name)
        for name in WITNESS
    ]
    return rows.select(*columns)
