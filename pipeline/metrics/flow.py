"""What figures are drawn from besides tables: who reaches whom, and what happened when.

Both have as many rows as a page can use, whatever the input was: of the pairs of people the worst,
of the time at most so many equal parts.
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from engine.delivery.contract import Kind, Via
from pipeline.metrics.figures import NEVER, count_if, percentiles, share_of

MOST_LINKS: Final = 10_000
MOST_MESSAGES: Final = 20
MOST_PARTS: Final = 96
_WIDTHS_S: Final = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200,
    86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400,
)  # fmt: skip


def links(pairs: DataFrame) -> DataFrame:
    """For each (sender, receiver): expected, delivered, loss, percentiles; the worst first."""
    seen = F.col("has_log")
    return (
        pairs.groupBy("sender", "receiver")
        .agg(
            count_if(seen).alias("expected"),
            count_if(F.col("to_delivery_ms") < NEVER).alias("delivered"),
            count_if(~seen).alias("unobserved"),
            *percentiles("to_delivery_ms", "delivery"),
        )
        .withColumn("loss", share_of(F.col("expected") - F.col("delivered"), F.col("expected")))
        .orderBy(
            F.desc_nulls_last("loss"), F.desc_nulls_last("delivery_p95_ms"), "sender", "receiver"
        )
        .limit(MOST_LINKS)
    )


def worst_messages(pairs: DataFrame) -> DataFrame:
    """Messages with ``undelivered``, ``missed`` and ``slowest_ms``: the worst by each of these."""
    each = pairs.groupBy("channel", "mid").agg(
        count_if(F.col("has_log")).alias("expected"),
        count_if(F.col("to_delivery_ms") == NEVER).alias("undelivered"),
        count_if(F.col("missing_ms").isNotNull()).alias("missed"),
        F.max(F.when(F.col("to_delivery_ms") < NEVER, F.col("to_delivery_ms"))).alias("slowest_ms"),
    )
    some = (
        each.orderBy(F.desc_nulls_last(column), "channel", "mid").limit(MOST_MESSAGES)
        for column in ("undelivered", "missed", "slowest_ms")
    )
    return reduce(DataFrame.union, some).distinct()


def activity(event: DataFrame) -> DataFrame:
    """For each part of the time: what was written, lost sight of, sent again and brought back.

    Parts are ``width_ms`` long, at most about ``MOST_PARTS`` of them; by the recorders' clocks.
    """
    (span,) = event.agg(F.min("at_ms"), F.max("at_ms")).collect()
    width_ms = width_of((span[1] or 0) - (span[0] or 0))
    start = F.expr(f"at_ms DIV {width_ms}") * F.lit(width_ms)
    received = _is(Kind.RECEIVED)
    counts = {
        "sent": _is(Kind.SENT),
        "missing": _is(Kind.MISSING),
        "retransmitted": _is(Kind.RETRANSMITTED),
        "repair_requests": _is(Kind.REPAIR_REQUESTED),
        "repairs_sent": _is(Kind.REPAIR_SENT),
        "by_repair": received & (F.col("via") == Via.REPAIR.value),
        "by_store": received & (F.col("via") == Via.STORE.value),
        "lost": _is(Kind.LOST),
        "on_purpose": _is(Kind.FAULT) & F.col("channel").isNotNull(),
    }
    return (
        event.groupBy(start.alias("start_ms"))
        .agg(*(count_if(which).alias(name) for name, which in counts.items()))
        .withColumn("width_ms", F.lit(width_ms).cast("bigint"))
        .orderBy("start_ms")
    )


def width_of(span_ms: int) -> int:
    """Of parts that people count in, so that ``MOST_PARTS`` cover it; a century at the longest."""
    wide_enough = (s * 1_000 for s in _WIDTHS_S if s * 1_000 * MOST_PARTS >= span_ms)
    return next(wide_enough, max(span_ms // MOST_PARTS, 1))


def _is(kind: Kind) -> Column:
    return F.col("kind") == kind.value
