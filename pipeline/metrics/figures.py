"""What all figures share: by what they are told apart, percentiles, and histograms of times.

A time that has not come is ``NEVER``, larger than any other, and counts in every percentile.
Percentiles are exact: the smallest time that at least such a share does not exceed.  Histograms
have buckets of 5 %, so that curves and confidence intervals need no more than a few thousand rows
however long the input is.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.clock import moment

NEVER: Final = 2**63 - 1
"""In ms."""
SHARES: Final[Mapping[str, float]] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
BUCKET: Final = 0.05
"""Of a histogram, in natural logarithms."""
NEVER_BUCKET: Final = 1_000
BLOCKS: Final = 64
"""A figure's confidence interval comes from so many parts of the input, by channel and hour."""
HOUR_MS: Final = 3_600_000

ALL: Final = "all"
DIMENSIONS: Final[Mapping[str, str]] = {
    "channel": "channel",
    "participant": "participant",
    "version": "app_version",
    "network": "network",
    "hour": "hour",
}
"""Name and the column that it stands in."""


def hour_of(at_ms: Column) -> Column:
    """``2026-11-20 17``, UTC."""
    return F.date_format(moment(at_ms), "yyyy-MM-dd HH")


def by_dimension(rows: DataFrame, dimensions: Sequence[str] = tuple(DIMENSIONS)) -> DataFrame:
    """Every row once for ``all`` and once for each dimension, as ``dimension`` and ``value``."""
    keys = [F.struct(F.lit(ALL).alias("dimension"), F.lit("").alias("value"))]
    keys += [
        F.struct(F.lit(name).alias("dimension"), F.col(DIMENSIONS[name]).alias("value"))
        for name in dimensions
    ]
    spread = rows.withColumn("_key", F.explode(F.array(*keys)))
    return spread.select("*", "_key.dimension", "_key.value").drop("_key")


def percentiles(time_ms: str, prefix: str) -> list[Column]:
    """Aggregates ``<prefix>_p50_ms`` and so on; infinite where that share has not come."""
    return [
        _finite(F.expr(f"percentile_disc({share}) WITHIN GROUP (ORDER BY {time_ms})")).alias(
            f"{prefix}_{name}_ms"
        )
        for name, share in SHARES.items()
    ]


def _finite(time_ms: Column) -> Column:
    never = F.lit(float("inf"))
    return F.when(time_ms.isNull(), None).otherwise(
        F.when(time_ms == NEVER, never).otherwise(time_ms.cast("double"))
    )


def share_of(part: Column, whole: Column) -> Column:
    """None of nothing."""
    return F.when(whole > 0, part.cast("double") / whole.cast("double"))


def count_if(condition: Column) -> Column:
    return F.count_if(condition)


def bucket_of(time_ms: Column) -> Column:
    log = F.floor(F.log1p(time_ms.cast("double")) / F.lit(BUCKET)).cast("int")
    return F.when(time_ms == NEVER, F.lit(NEVER_BUCKET)).otherwise(log)


def bucket_end_ms(bucket: int) -> float:
    """No time of the bucket is longer."""
    return (
        float("inf") if bucket == NEVER_BUCKET else 2.718281828459045 ** ((bucket + 1) * BUCKET) - 1
    )


def block_of(*keys: str) -> Column:
    """By a hash that is the same wherever it is computed."""
    digits = F.substring(F.sha2(F.concat_ws("\n", *keys), 256), 1, 8)
    return (F.conv(digits, 16, 10).cast("bigint") % BLOCKS).cast("int")
