"""Verdicts: what cells, looked-at rows and violations say of each log, added up.

The worst that holds: ``causal violation`` (a message stands, or was delivered, before what it
depends on), ``reordered``, ``extra`` (something that nobody vouches for), ``missing``, ``prefix``
(only the newest are missing: it is behind), ``unknown`` (it lacks some, but nobody says since when
it belongs to the channel), ``identical``.  The first divergence is the one that stands first in the
canonical order.
"""

from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.audit.causal import CAUSAL, EARLY
from pipeline.audit.cells import WHOSE
from pipeline.audit.drill import EXTRA, MISSING, REORDERED

IDENTICAL: Final = "identical"
PREFIX: Final = "prefix"
UNKNOWN_SINCE: Final = "unknown"
CAUSAL_VIOLATION: Final = "causal violation"
COUNTED: Final = (MISSING, EXTRA, REORDERED, CAUSAL, EARLY)
_TEXT: Final = pa.string()
_NUMBER: Final = pa.int64()
WITNESS: Final = pa.schema(
    {
        "channel": _TEXT,
        "participant": _TEXT,
        "kind": _TEXT,
        "place": _NUMBER,
        "position": _NUMBER,
        "expected_position": _NUMBER,
        "lamport": _NUMBER,
        "mid": _NUMBER,
        "message_id": _TEXT,
        "parent_mid": _NUMBER,
        "parent_message_id": _TEXT,
    }
)
"""``position``: where it is, ``expected_position``: where it should be, ``place``: among all."""
VERDICT: Final = pa.schema(
    {
        "channel": _TEXT,
        "participant": _TEXT,
        "verdict": _TEXT,
        "expected": _NUMBER,
        "held": _NUMBER,
        **dict.fromkeys(COUNTED, _NUMBER),
        "first_place": _NUMBER,
        "first_kind": _TEXT,
        "first_message_id": _TEXT,
    }
)


def witnesses(looked: DataFrame, violations: DataFrame) -> DataFrame:
    """WITNESS: an anomaly each; an entry that is extra and out of order is two."""
    kinds = F.array_compact(
        F.array(
            F.when(F.col("is_missing"), MISSING),
            F.when(F.col("is_extra"), EXTRA),
            F.when(F.col("is_moved"), REORDERED),
        )
    )
    odd = (
        looked.withColumn("kind", F.explode(kinds))
        .withColumn("parent_mid", F.lit(None).cast("bigint"))
        .withColumn("parent_message_id", F.lit(None).cast("string"))
    )
    more = violations.withColumn("expected_position", F.lit(None).cast("bigint"))
    return odd.select(*WITNESS.names).unionByName(more.select(*WITNESS.names))


def verdicts(
    logs: DataFrame, compared: DataFrame, looked: DataFrame, witness: DataFrame
) -> DataFrame:
    """One row for each log; none for who has nothing and should not."""
    held = compared.groupBy(*WHOSE).agg(
        F.sum("n").alias("held"),
        F.sum("c_n").alias("canonical"),
        F.max(F.when(F.col("is_equal"), F.col("bucket"))).alias("last_equal"),
    )
    seen = looked.groupBy(*WHOSE).agg(
        F.max(F.when(~F.col("is_missing"), F.col("place"))).alias("last_held"),
        F.min(F.when(F.col("is_missing"), F.col("place"))).alias("gap_place"),
        F.min(F.when(F.col("is_missing"), F.col("bucket"))).alias("gap_bucket"),
    )
    first = F.when(F.col("place").isNotNull(), F.struct("place", "kind", "message_id"))
    told = witness.groupBy(*WHOSE).agg(
        *(F.count_if(F.col("kind") == kind).alias(kind) for kind in COUNTED),
        F.min(first).alias("first"),
    )
    whole = reduce(
        lambda left, right: left.join(right, [*WHOSE], "left"),
        (seen, told),
        logs.join(held, [*WHOSE]),
    ).fillna(0, list(COUNTED))
    return whole.where("held > 0 OR canonical > 0").select(
        *WHOSE,
        _worst().alias("verdict"),
        (F.col("held") + F.col(MISSING) - F.col(EXTRA)).alias("expected"),
        "held",
        *COUNTED,
        F.col("first.place").alias("first_place"),
        F.col("first.kind").alias("first_kind"),
        F.col("first.message_id").alias("first_message_id"),
    )


def _worst() -> Column:
    is_lacking = F.col(MISSING) > 0
    is_behind = F.coalesce(F.col("last_held") < F.col("gap_place"), F.lit(True)) & F.coalesce(
        F.col("last_equal") < F.col("gap_bucket"), F.lit(True)
    )
    is_short = F.col("held") - F.col(EXTRA) < F.col("canonical")
    return (
        F.when(F.col(CAUSAL) + F.col(EARLY) > 0, CAUSAL_VIOLATION)
        .when(F.col(REORDERED) > 0, REORDERED)
        .when(F.col(EXTRA) > 0, EXTRA)
        .when(is_lacking & is_behind, PREFIX)
        .when(is_lacking, MISSING)
        .when((F.size("stays") == 0) & is_short, UNKNOWN_SINCE)
        .otherwise(IDENTICAL)
    )
