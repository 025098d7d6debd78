"""Acknowledgements that were wrong, by how they were known and by how many filters said so.

A claim is false if the one who is said to hold the message never received it, by its own log.
Where that log is not there nobody can tell: these are ``unobserved``, and no share is made of them.
For filters the rate that their sizes promise stands beside the one that was seen.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from engine.delivery.contract import AckSource, Kind
from pipeline.metrics.figures import count_if, share_of

MOST_FILTERS = 4
"""More are counted as so many."""


def false_acks(event: DataFrame, log: DataFrame) -> DataFrame:
    """By ``ack_source`` and ``filters``, which is 0 for what is certain."""
    held = (
        event.where(F.col("kind").isin([Kind.RECEIVED.value, Kind.DELIVERED.value]))
        .select("channel", "mid", F.col("participant").alias("peer"))
        .distinct()
        .withColumn("holds", F.lit(True))
    )
    logs = log.select(F.col("participant").alias("peer")).distinct().withColumn("seen", F.lit(True))
    rows = (
        _claims(event)
        .join(held, ["channel", "mid", "peer"], "left")
        .join(F.broadcast(logs), "peer", "left")
    )
    seen = F.col("seen").isNotNull()
    found = rows.groupBy("ack_source", "filters").agg(
        F.count(F.lit(1)).alias("claims"),
        count_if(seen).alias("observed"),
        count_if(~seen).alias("unobserved"),
        count_if(seen & F.col("holds").isNull()).alias("false"),
        F.avg("promised").alias("promised_rate"),
    )
    return found.withColumn("false_rate", share_of(F.col("false"), F.col("observed")))


def _claims(event: DataFrame) -> DataFrame:
    """(message, who is said to hold it) once for each way in which it was said."""
    kinds = [Kind.ACKED.value, Kind.POSSIBLY_ACKED.value]
    told = event.where(F.col("kind").isin(kinds) & F.col("mid").isNotNull())
    is_filter = F.col("ack_source") == AckSource.BLOOM.value
    k, n, m = (F.col(f"bloom_{name}").cast("double") for name in "knm")
    promised = F.pow(F.lit(1.0) - F.exp(-k * n / m), k)
    filters = F.count_if(is_filter).cast("int")
    return told.groupBy("channel", "mid", "participant", "peer", "ack_source").agg(
        F.least(filters, F.lit(MOST_FILTERS)).alias("filters"),
        F.product(F.when(is_filter, promised)).alias("promised"),
    )
