"""What it cost: bytes and copies by purpose, duplicates, and what Stores were asked in vain.

Bytes are those of Waku payloads as each log saw them, sent and received apart.  Overhead is all
that was sent, over the first copies of messages, less one.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from engine.delivery.contract import Kind, Via
from pipeline.metrics.figures import by_dimension, count_if, hour_of, share_of

_SENT = {
    "first": Kind.PUBLISHED,
    "again": Kind.RETRANSMITTED,
    "repair": Kind.REPAIR_SENT,
    "sync": Kind.SYNC_SENT,
    "ephemeral": Kind.EPHEMERAL_SENT,
}
_CANCELLED = "cancelled"
_ENDED_WELL = ("complete", _CANCELLED)
"""How a query at Stores ends if nothing was wrong."""
_RECEIVED = (Kind.RECEIVED, Kind.DUPLICATE, Kind.SYNC_RECEIVED, Kind.EPHEMERAL_RECEIVED)


def cost(event: DataFrame) -> DataFrame:
    """messages, then bytes and copies of each purpose, overhead, received_bytes, duplicates."""
    kinds = [Kind.SENT, Kind.REJECTED, Kind.GIVEN_UP, *_SENT.values(), *_RECEIVED]
    rows = by_dimension(_of_kinds(event, kinds).withColumn("hour", hour_of(F.col("at_ms"))))
    sums = [F.sum(_bytes_if(kind)).alias(f"{name}_bytes") for name, kind in _SENT.items()]
    counts = [count_if(_is(kind)).alias(f"{name}_copies") for name, kind in _SENT.items()]
    received = F.col("kind").isin([kind.value for kind in _RECEIVED])
    found = rows.groupBy("dimension", "value").agg(
        count_if(_is(Kind.SENT)).alias("messages"),
        *sums,
        *counts,
        F.sum(F.when(received, F.coalesce("wire_bytes", F.lit(0))).otherwise(0)).alias(
            "received_bytes"
        ),
        count_if(_is(Kind.RECEIVED)).alias("received_first"),
        count_if(_is(Kind.DUPLICATE)).alias("duplicates"),
        count_if(_is(Kind.REJECTED)).alias("rejected"),
        count_if(_is(Kind.GIVEN_UP)).alias("given_up"),
    )
    sent = sum((F.col(f"{name}_bytes") for name in _SENT), F.lit(0))
    return (
        found.withColumn("sent_bytes", sent)
        .withColumn("overhead", share_of(sent - F.col("first_bytes"), F.col("first_bytes")))
        .withColumn("bytes_per_message", share_of(sent, F.col("messages")))
    )


def recovery(event: DataFrame) -> DataFrame:
    """By which way messages came, what was missing and came, and what queries brought."""
    kinds = [Kind.RECEIVED, Kind.MISSING, Kind.LOST, Kind.REPAIR_REQUESTED, Kind.REPAIR_SENT]
    other = _of_kinds(event, kinds).withColumn("hits", F.lit(None).cast("bigint"))
    told = other.unionByName(_queries(event)).join(
        _missing_then_came(event), ["channel", "participant", "mid", "kind"], "left"
    )
    rows = by_dimension(told.withColumn("hour", hour_of(F.col("at_ms"))))
    query = _is(Kind.STORE_QUERY)
    was_cancelled = F.coalesce("detail", F.lit("")) == _CANCELLED
    found = rows.groupBy("dimension", "value").agg(
        *(
            count_if(_is(Kind.RECEIVED) & (F.col("via") == via.value)).alias(f"by_{via.value}")
            for via in Via
        ),
        count_if(_is(Kind.MISSING)).alias("missing"),
        count_if(F.col("came").isNotNull()).alias("missing_came"),
        *(
            count_if(F.col("came") == via.value).alias(f"missing_by_{via.value}")
            for via in (Via.STORE, Via.REPAIR)
        ),
        count_if(_is(Kind.LOST)).alias("lost"),
        count_if(_is(Kind.REPAIR_REQUESTED)).alias("repair_requests"),
        count_if(_is(Kind.REPAIR_SENT)).alias("repairs_sent"),
        count_if(query).alias("store_queries"),
        count_if(query & (F.col("amount") > 0)).alias("store_lookups"),
        count_if(query & ~F.coalesce("detail", F.lit(_ENDED_WELL[0])).isin(*_ENDED_WELL)).alias(
            "store_failed"
        ),
        F.coalesce(F.sum("hits"), F.lit(0)).alias("store_hits"),
        count_if(query & (F.col("hits") == 0) & ~was_cancelled).alias("wasted_queries"),
    )
    return found.withColumn(
        "wasted_share", share_of(F.col("wasted_queries"), F.col("store_queries"))
    )


def _queries(event: DataFrame) -> DataFrame:
    """Queries with what they brought: the hits of their number that stand before them.

    Numbers begin anew when the program does; a recording knows that by ``started``.
    """
    asked = _of_kinds(event, [Kind.STORE_QUERY, Kind.STORE_HIT, Kind.STARTED])
    before = Window.partitionBy("log_id").orderBy("seq")
    run = F.count_if(_is(Kind.STARTED)).over(before)
    of_run = asked.withColumn("run", run).where(~_is(Kind.STARTED))
    same = ("log_id", "channel", "run", "attempt")
    earlier = Window.partitionBy(*same).orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    number = F.coalesce(F.count_if(_is(Kind.STORE_QUERY)).over(earlier), F.lit(0))
    numbered = of_run.withColumn("number", number)
    hits = F.count_if(_is(Kind.STORE_HIT)).over(Window.partitionBy(*same, "number"))
    told = numbered.withColumn("hits", hits.cast("bigint"))
    return told.drop("run", "number").where(_is(Kind.STORE_QUERY))


def _missing_then_came(event: DataFrame) -> DataFrame:
    """For messages told missing that came after all: by which way."""
    keys = ("channel", "participant", "mid")
    wanted = _of_kinds(event, [Kind.MISSING, Kind.RECEIVED]).where("mid IS NOT NULL")
    received = F.when(_is(Kind.RECEIVED), F.coalesce("via", F.lit(Via.RELAY.value)))
    return (
        wanted.groupBy(*keys)
        .agg(F.count_if(_is(Kind.MISSING)).alias("missing"), F.min(received).alias("came"))
        .where("missing > 0 AND came IS NOT NULL")
        .select(*keys, F.lit(Kind.MISSING.value).alias("kind"), "came")
    )


_COLUMNS = (
    "log_id", "seq", "channel", "participant", "mid", "kind", "app_version", "network",
    "at_ms", "via", "wire_bytes", "attempt", "amount", "detail",
)  # fmt: skip


def _of_kinds(event: DataFrame, kinds: list[Kind]) -> DataFrame:
    return event.where(F.col("kind").isin([kind.value for kind in kinds])).select(*_COLUMNS)


def _is(kind: Kind) -> Column:
    return F.col("kind") == kind.value


def _bytes_if(kind: Kind) -> Column:
    return F.when(_is(kind), F.coalesce("wire_bytes", F.lit(0))).otherwise(0).cast("bigint")
