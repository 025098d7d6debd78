"""Delivery and acknowledgement: shares, percentiles, and histograms for curves and intervals."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.metrics.figures import (
    ALL,
    NEVER,
    block_of,
    bucket_of,
    by_dimension,
    count_if,
    percentiles,
    share_of,
)

CURVES = ("version", "network", "channel")
"""What curves are told apart by, besides all together."""


def delivery(pairs: DataFrame) -> DataFrame:
    """By receiver: expected, delivered, unobserved, rate, percentiles of the time to delivery."""
    rows = by_dimension(pairs.withColumn("participant", F.col("receiver")))
    seen = F.col("has_log")
    return (
        rows.groupBy("dimension", "value")
        .agg(
            count_if(seen).alias("expected"),
            count_if(F.col("to_delivery_ms") < NEVER).alias("delivered"),
            count_if(~seen).alias("unobserved"),
            count_if(seen & F.col("lost_ms").isNotNull()).alias("given_up_waiting"),
            *percentiles("to_delivery_ms", "delivery"),
        )
        .withColumn("delivery_rate", share_of(F.col("delivered"), F.col("expected")))
    )


def acks(pairs: DataFrame) -> DataFrame:
    """By sender: of each message and other member, how often and when it knew for certain."""
    rows = by_dimension(pairs.where("sender_has_log").withColumn("participant", F.col("sender")))
    return (
        rows.groupBy("dimension", "value")
        .agg(
            F.count(F.lit(1)).alias("claimable"),
            count_if(F.col("to_ack_ms") < NEVER).alias("acked"),
            count_if(F.col("acked_ms").isNull() & F.col("maybe_ms").isNotNull()).alias(
                "maybe_only"
            ),
            *percentiles("to_ack_ms", "ack"),
        )
        .withColumn("ack_rate", share_of(F.col("acked"), F.col("claimable")))
    )


def held_by_all(pairs: DataFrame) -> DataFrame:
    """Of messages: when the sender knew that every other member holds it."""
    whole = (
        pairs.where("sender_has_log")
        .groupBy("channel", "mid", F.col("sender").alias("participant"))
        .agg(F.max("to_ack_ms").alias("all_ms"))
    )
    rows = by_dimension(whole, ["channel", "participant"])
    return rows.groupBy("dimension", "value").agg(
        F.count(F.lit(1)).alias("messages"),
        count_if(F.col("all_ms") < NEVER).alias("held_by_all"),
        *percentiles("all_ms", "held_by_all"),
    )


def histogram(pairs: DataFrame) -> DataFrame:
    """Figure (delivery, ack, held, known), dimension, value, block, bucket, pairs.

    ``held`` and ``known`` are of messages: when the last member whose log is here had it, and when
    its sender knew that everybody has it.
    """
    blocked = pairs.withColumn("block", block_of("channel", "hour"))
    each = blocked.select(*_OF_CURVES, "to_delivery_ms", "to_ack_ms")
    of_pairs = _bucketed(each, {"delivery": "to_delivery_ms", "ack": "to_ack_ms"})
    whole = blocked.groupBy("channel", "mid").agg(
        F.max("to_delivery_ms").alias("held_ms"),
        F.max("to_ack_ms").alias("known_ms"),
        F.max("app_version").alias("app_version"),
        F.max("network").alias("network"),
        F.min("block").alias("block"),
    )
    return of_pairs.union(_bucketed(whole, {"held": "held_ms", "known": "known_ms"}))


_OF_CURVES = ("channel", "app_version", "network", "block")


def _bucketed(rows: DataFrame, figures: Mapping[str, str]) -> DataFrame:
    """``figures``: name and the column of its time."""
    spread = by_dimension(rows, CURVES).withColumn(
        "block", F.when(F.col("dimension") == ALL, F.col("block")).otherwise(F.lit(0))
    )
    each = F.explode(
        F.array(
            *(
                F.struct(F.lit(name).alias("figure"), F.col(column).alias("ms"))
                for name, column in figures.items()
            )
        )
    ).alias("one")
    told = spread.select("dimension", "value", "block", each).where("one.ms IS NOT NULL")
    return told.groupBy(
        F.col("one.figure").alias("figure"),
        "dimension",
        "value",
        "block",
        bucket_of(F.col("one.ms")).alias("bucket"),
    ).agg(F.count(F.lit(1)).alias("pairs"))


def trailing(pairs: DataFrame) -> DataFrame:
    """Gaps at the end: what a log lacks after the last message that it has.

    No later message tells that these exist, so they are the ones that nobody notices; ``noticed``
    of them were named by something else.  A share of the logs, and of what was expected.
    """
    seen = pairs.where("has_log")
    last = seen.groupBy("channel", "receiver").agg(
        F.max(F.when(F.col("delivered_ms").isNotNull(), F.col("lamport"))).alias("last_lamport")
    )
    with_last = seen.join(last, ["channel", "receiver"])
    is_gap = F.col("delivered_ms").isNull() & (
        F.col("last_lamport").isNull() | (F.col("lamport") > F.col("last_lamport"))
    )
    per_log = with_last.groupBy(
        "channel",
        F.col("receiver").alias("participant"),
    ).agg(
        F.count(F.lit(1)).alias("expected"),
        count_if(F.col("delivered_ms").isNull()).alias("undelivered"),
        count_if(is_gap).alias("trailing"),
        count_if(is_gap & F.col("missing_ms").isNotNull()).alias("noticed"),
        F.max("app_version").alias("app_version"),
        F.max("network").alias("network"),
    )
    rows = by_dimension(per_log, ["channel", "participant", "version", "network"])
    summed = rows.groupBy("dimension", "value").agg(
        F.count(F.lit(1)).alias("logs"),
        count_if(F.col("trailing") > 0).alias("logs_with_gap"),
        *(F.sum(name).alias(name) for name in ("expected", "undelivered", "trailing", "noticed")),
    )
    return summed.withColumn(
        "trailing_gap_rate", share_of(F.col("logs_with_gap"), F.col("logs"))
    ).withColumn("trailing_share", share_of(F.col("trailing"), F.col("expected")))
