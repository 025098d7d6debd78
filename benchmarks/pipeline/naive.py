"""The audit the plain way on Spark: sort every log, join every row.  What digests save is this."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

WHOSE = ["channel", "participant"]
COLUMNS = (*WHOSE, "kind", "mid", "lamport", "position", "parent_mid")


def witnesses(
    entry: DataFrame, message: DataFrame, member: DataFrame, *, grace_ms: int = 0
) -> DataFrame:
    """(channel, participant, kind, mid, lamport, position, parent_mid)."""
    canonical_first = F.struct(F.col("position").isNotNull(), -F.col("place"))
    known = (
        message.groupBy("channel", "mid", "lamport")
        .agg(F.max_by(F.struct("place", "position"), canonical_first).alias("best"))
        .select(
            "channel", "mid", "lamport", "best.place", F.col("best.position").alias("c_position")
        )
    )
    order = Window.partitionBy(*WHOSE).orderBy(
        "lamport", F.col("place").asc_nulls_last(), "mid", "position"
    )
    copies = Window.partitionBy(*WHOSE, "mid", "lamport").orderBy("position")
    held = (
        entry.select(*WHOSE, "mid", "lamport", "position")
        .join(known, ["channel", "mid", "lamport"], "left")
        .withColumn("expected_position", F.row_number().over(order) - 1)
        .withColumn("copy", F.row_number().over(copies))
    )
    since = F.col("lamport") >= F.col("joined_ms") + grace_ms
    until = F.col("left_ms").isNull() | (F.col("lamport") < F.col("left_ms") - grace_ms)
    wanted = (
        message.where(F.col("position").isNotNull())
        .drop("position")
        .join(member.where("has_log"), "channel")
        .where(F.col("joined_ms").isNotNull() & since & until)
    )
    absent = wanted.join(held, [*WHOSE, "mid", "lamport"], "left_anti")
    is_extra = F.col("c_position").isNull() | (F.col("copy") > 1)
    parts = [
        _rows(absent, "missing"),
        _rows(held.where(is_extra), "extra"),
        _rows(held.where(F.col("position") != F.col("expected_position")), "reordered"),
        _rows(_causal(message, held), "causal"),
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return whole


def _causal(message: DataFrame, held: DataFrame) -> DataFrame:
    edges = (
        message.where(F.col("position").isNotNull())
        .select("channel", "mid", "lamport", F.explode("parent_mids").alias("parent_mid"))
        .distinct()
    )
    first = held.where("copy = 1")
    parent = first.where(F.col("c_position").isNotNull()).select(
        *WHOSE,
        F.col("mid").alias("parent_mid"),
        F.col("place").alias("parent_place"),
        F.col("position").alias("parent_position"),
    )
    pairs = first.join(edges, ["channel", "mid", "lamport"]).join(parent, [*WHOSE, "parent_mid"])
    return pairs.where("parent_place < place AND parent_position > position")


def _rows(rows: DataFrame, kind: str) -> DataFrame:
    there = set(rows.columns)
    return rows.select(
        *(
            F.lit(kind).alias(name)
            if name == "kind"
            else F.col(name)
            if name in there
            else F.lit(None).cast("bigint").alias(name)
            for name in COLUMNS
        )
    )
