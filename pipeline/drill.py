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
_WHOSE: Final = ("channel", "participant")
_OF_MESSAGES: Final = {
    "place": "bigint",
    "c_position": "bigint",
    "message_id": "string",
    "is_wanted": "boolean",
}


def looked_at(
    entry: DataFrame,
    message: DataFrame,
    flagged: DataFrame,
    grace_ms: int,
    *,
    partitions: int | None = None,
) -> DataFrame:
    """What stands in flagged buckets of logs, and what should and does not: with both positions.

    ``entry`` and ``message`` with ``bucket``; ``flagged``: rows of the grid.  Where the log has
    nothing ``position`` is null, where the canonical log has nothing ``c_position`` is.  Entries
    and messages go into one table: so they are moved and sorted once, and not joined.
    """
    spots = flagged.select(*GRID_KEY, "begin", "joined_ms", "left_ms")
    there = entry.join(spots, list(GRID_KEY)).select(
        *GRID_KEY,
        "lamport",
        "mid",
        "position",
        "begin",
        *(F.lit(None).cast(kind).alias(name) for name, kind in _OF_MESSAGES.items()),
    )
    wanted = message.join(
        flagged.select(*GRID_KEY, "channel", "joined_ms", "left_ms"), ["channel", "bucket"]
    ).select(
        *GRID_KEY,
        "lamport",
        "mid",
        F.lit(None).cast("bigint").alias("position"),
        F.lit(None).cast("bigint").alias("begin"),
        "place",
        F.col("position").alias("c_position"),
        "message_id",
        (F.col("position").isNotNull() & is_required(grace_ms)).alias("is_wanted"),
    )
    both = there.unionByName(wanted)
    if partitions is None:
        both = both.repartition(*GRID_KEY)
    else:
        both = both.repartition(partitions, *GRID_KEY)
    return _placed(_recognised(both))


def _recognised(both: DataFrame) -> DataFrame:
    """Entries with what is known of their message; of messages only those that are missing.

    Of ids that collide one is taken, which is told elsewhere.
    """
    is_entry = F.col("position").isNotNull()
    same = Window.partitionBy(*GRID_KEY, "lamport", "mid")
    order = same.orderBy(
        is_entry, F.col("c_position").asc_nulls_last(), F.col("place").asc_nulls_last(), "position"
    )
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = ("place", "c_position", "message_id")
    rows = both.select(
        *GRID_KEY,
        "lamport",
        "mid",
        "position",
        "begin",
        "is_wanted",
        *(F.first(name).over(so_far).alias(name) for name in known),
        F.row_number().over(order).alias("row"),
        F.count("position").over(so_far).alias("copy"),
        F.count("position").over(whole).alias("copies"),
    )
    lacks = F.col("is_wanted") & (F.col("copies") == 0) & (F.col("row") == 1)
    is_missing = F.coalesce(lacks, F.lit(False))
    return rows.withColumn("is_missing", is_missing).where(is_entry | is_missing)


def _placed(rows: DataFrame) -> DataFrame:
    """Adds where each entry should stand among what this log holds, and what is odd."""
    order = Window.partitionBy(*GRID_KEY).orderBy(
        "lamport", F.col("place").asc_nulls_last(), "mid", "position"
    )
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_entry = F.col("position").isNotNull()
    expected = F.when(is_entry, F.col("begin") + F.count("position").over(so_far) - 1)
    placed = rows.withColumn("expected_position", expected)
    is_extra = is_entry & (F.col("c_position").isNull() | (F.col("copy") > 1))
    is_moved = is_entry & (F.col("position") != F.col("expected_position"))
    is_odd = F.col("is_missing") | is_extra | is_moved
    return placed.select(
        *GRID_KEY,
        "mid",
        "lamport",
        "position",
        "place",
        F.when(is_odd, F.col("message_id")).alias("message_id"),
        "expected_position",
        "copy",
        "is_missing",
        is_extra.alias("is_extra"),
        is_moved.alias("is_moved"),
    )


def anomalies(looked: DataFrame) -> DataFrame:
    """Of what should be in a log and is not, or is and should not be, or not there: a row each."""
    kinds = F.array_compact(
        F.array(
            F.when(F.col("is_missing"), MISSING),
            F.when(F.col("is_extra"), EXTRA),
            F.when(F.col("is_moved"), REORDERED),
        )
    )
    odd = looked.where("is_missing OR is_extra OR is_moved")
    return found(odd.withColumn("kind", F.explode(kinds)))


# --- causality ------------------------------------------------------------------------------------


def edges(message: DataFrame, moved: DataFrame) -> DataFrame:
    """channel, child_mid, parent_mid: those with an end in ``moved`` (channel, mid).

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


def known(message: DataFrame, ends: DataFrame) -> DataFrame:
    """Of each of these messages where the canonical log has it."""
    return (
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


def standing(canonical: DataFrame, looked: DataFrame, spots: DataFrame) -> DataFrame:
    """At which position each log of ``spots`` has each of these messages, if it has it.

    ``canonical``: of ``known``.  ``spots``: rows of the grid, of logs in which something was moved.
    """
    near = spots.where("is_flagged OR is_equal").select(*GRID_KEY, "channel", "shift", "is_equal")
    wide = near.join(F.broadcast(canonical), ["channel", "bucket"])
    seen = (
        looked.where("copy = 1 AND position IS NOT NULL")
        .join(F.broadcast(canonical.select("bucket", "mid")), ["bucket", "mid"], "left_semi")
        .select(*GRID_KEY, "mid", "lamport", F.col("position").alias("seen"))
    )
    full = wide.join(seen, [*GRID_KEY, "mid", "lamport"], "left")
    known = F.when(F.col("is_equal"), F.col("c_position") + F.col("shift")).otherwise(F.col("seen"))
    return full.select(
        *GRID_KEY, "channel", "mid", "lamport", "place", "message_id", known.alias("position")
    ).where(F.col("position").isNotNull())


def causal(edges: DataFrame, standing: DataFrame) -> DataFrame:
    """Entries that stand before one of their parents, a row for each."""
    parent = standing.select(
        "log",
        F.col("mid").alias("parent_mid"),
        F.col("place").alias("parent_place"),
        F.col("position").alias("parent_position"),
        F.col("message_id").alias("parent_message_id"),
    )
    child = standing.join(edges.withColumnRenamed("child_mid", "mid"), ["channel", "mid"])
    rows = child.join(parent, ["log", "parent_mid"]).where(
        "parent_place < place AND parent_position > position"
    )
    return found(rows.withColumn("kind", F.lit(CAUSAL)))


def found(rows: DataFrame) -> DataFrame:
    """In the columns of WITNESS but for whose log it is; null where there is none."""
    numbers = {"position", "expected_position", "parent_mid", "place"}
    there = set(rows.columns)
    columns = [
        F.col(name)
        if name in there
        else F.lit(None).cast("bigint" if name in numbers else "string").alias(name)
        for name in WITNESS
        if name not in _WHOSE
    ]
    return rows.select("log", *columns)
