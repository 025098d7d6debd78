"""Which parts of which logs are as the canonical order has them, by one join and one GROUP BY.

A channel's canonical messages are cut into **buckets** of 256.  For each **cell**, a bucket of a
log, a few numbers are kept: how many entries, how many of them canonical, and the least and most of
canonical position minus position.  In a log in order that difference is one number in all of a
cell: by how many more messages the canonical log holds before it.  So a cell is equal if it holds
as many as the canonical bucket, all canonical, at that one difference; positions being distinct,
these are the same messages in the same order.  One that is missing makes its own cell differ and no
other, as the difference that is expected is summed up from what the cells before hold.
"""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.beside import Answer, Beside
from pipeline.clock import apart_ms

WHOSE: Final = ("channel", "participant")
ID: Final = ("channel", "mid", "lamport")
CELL: Final = (*WHOSE, "bucket")
MOST_BROADCAST: Final = 2_000_000
"""So many messages every task may hold; where there are more, both sides are shuffled."""


# --- who has to hold what -------------------------------------------------------------------------


def logs(member: DataFrame, stay: DataFrame, grace_ms: int) -> DataFrame:
    """channel, participant, stays: of whoever has a log.  No stays: nobody says what it needs."""
    since = apart_ms(F.col("joined_ms"), F.lit(-grace_ms))
    until = apart_ms(F.col("left_ms"), F.lit(grace_ms))
    stays = stay.groupBy(*WHOSE).agg(
        F.collect_list(F.struct(since.alias("since"), until.alias("until"))).alias("stays")
    )
    judged = member.where("has_log").select(*WHOSE)
    return judged.join(stays, [*WHOSE], "left").withColumn(
        "stays", F.coalesce("stays", F.array().cast("array<struct<since:bigint,until:bigint>>"))
    )


def is_required(first_ms: Column, last_ms: Column) -> Column:
    """Whether something that was sent from first to last may fall into one of the ``stays``."""
    return F.exists(
        "stays",
        lambda stay: (
            (last_ms >= stay["since"]) & (stay["until"].isNull() | (first_ms < stay["until"]))
        ),
    )


# --- the canonical order --------------------------------------------------------------------------


def ordered(message: DataFrame, bucket_messages: int, *, has_strays: bool) -> DataFrame:
    """Messages with their ``bucket``; a stray's is that of the last canonical one before it."""
    own = message.where(F.col("position").isNotNull()).withColumn(
        "bucket", F.expr(f"position div {bucket_messages}")
    )
    if not has_strays:
        return own
    bounds = own.where(F.col("position") % bucket_messages == 0)
    strays = message.where(F.col("position").isNull()).withColumn(
        "bucket", F.lit(None).cast("bigint")
    )
    before = Window.partitionBy("channel").orderBy("lamport", F.col("place").asc_nulls_last())
    placed = (
        bounds.unionByName(strays)
        .withColumn("bucket", F.coalesce(F.last("bucket", ignorenulls=True).over(before), F.lit(0)))
        .where(F.col("position").isNull())
    )
    return own.unionByName(placed)


def told_once(entry: DataFrame, message: DataFrame) -> DataFrame:
    """Of ids that collide one message, a canonical one first; of what nobody tells of, a stray."""
    best = F.struct(F.col("position").isNotNull(), -F.col("place"))
    rest = [name for name in message.columns if name not in ID]
    known = (
        message.groupBy(*ID)
        .agg(F.max_by(F.struct(*rest), best).alias("best"))
        .select(*ID, *(f"best.{name}" for name in rest))
    )
    unknown = entry.join(known, [*ID], "left_anti").select(*ID).distinct()
    return known.unionByName(unknown, allowMissingColumns=True)


# --- cells ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """``messages``: all, as ``ordered`` makes them, each (channel, mid, lamport) once."""

    messages: DataFrame
    is_small: bool

    def hinted(self, messages: DataFrame) -> DataFrame:
        return F.broadcast(messages) if self.is_small else messages


def counted(
    entry: DataFrame, message: DataFrame, ask: Beside, bucket_messages: int
) -> tuple[Order, Answer]:
    """The order, and of each cell that holds anything: n, matched, least, most, first, last."""
    total, canonical = message.agg(F.count("*"), F.count("position")).collect()[0]
    is_small = total <= MOST_BROADCAST
    messages = ordered(message, bucket_messages, has_strays=canonical < total)
    order = Order(messages=messages, is_small=is_small)
    found = ask.fetched(_counted(entry, order))
    (known,) = ask.ask(_known, found).dicts()
    if (known["rows"] or 0) == entry.count() and not known["unknown"]:
        return order, found
    # An id is told of twice, or nobody tells of it.  Silver makes no such table of honest logs.
    once = ask.kept(told_once(entry, message))
    order = Order(messages=ordered(once, bucket_messages, has_strays=True), is_small=is_small)
    return order, ask.fetched(_counted(entry, order))


def _known(counted: DataFrame) -> DataFrame:
    return counted.agg(
        F.sum("n").alias("rows"), F.count_if(F.col("bucket").isNull()).alias("unknown")
    )


def _counted(entry: DataFrame, order: Order) -> DataFrame:
    named = {name: f"c_{name}" for name in (*ID, "position")}
    canonical = order.messages.select(*named, "bucket").withColumnsRenamed(named)
    # One number is looked up sooner than three columns, which equalities would make the key.
    is_same = [F.col("mid") == F.col("c_mid")]
    is_same += [F.col(n).between(F.col(named[n]), F.col(named[n])) for n in ("channel", "lamport")]
    ahead = F.col("c_position") - F.col("position")
    return (
        entry.join(order.hinted(canonical), is_same, "left")
        .groupBy(*CELL)
        .agg(
            F.count("*").alias("n"),
            F.count("c_position").alias("matched"),
            F.min(ahead).alias("least"),
            F.max(ahead).alias("most"),
            F.min("position").alias("first"),
            F.max("position").alias("last"),
        )
    )


def buckets(messages: DataFrame) -> DataFrame:
    """channel, bucket, c_n, first_ms, last_ms: of the canonical order."""
    return (
        messages.where(F.col("position").isNotNull())
        .groupBy("channel", "bucket")
        .agg(
            F.count("*").alias("c_n"),
            F.min("sent_ms").alias("first_ms"),
            F.max("sent_ms").alias("last_ms"),
        )
    )


def compared(
    found: DataFrame, buckets: DataFrame, logs: DataFrame, bucket_messages: int
) -> DataFrame:
    """CELL, n, c_n, begin, shift, first, last, is_equal, is_flagged: of each log all cells.

    ``begin``: at which position the cell has to begin; ``shift``: by how much less that is than in
    the canonical log.
    """
    grid = logs.select(*WHOSE).join(buckets, "channel")
    both = grid.unionByName(found, allowMissingColumns=True)
    told = [F.max(name).alias(name) for name in both.columns if name not in CELL]
    whole = both.repartition(*WHOSE).groupBy(*CELL).agg(*told).join(F.broadcast(logs), [*WHOSE])
    before = (
        Window.partitionBy(*WHOSE)
        .orderBy("bucket")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    summed = (
        whole.withColumn("n", F.coalesce("n", F.lit(0)))
        .withColumn("c_n", F.coalesce("c_n", F.lit(0)))
        .withColumn("begin", F.sum("n").over(before) - F.col("n"))
        .withColumn("shift", F.col("bucket") * bucket_messages - F.col("begin"))
    )
    is_equal = (
        (F.col("n") == F.col("c_n"))
        & (F.col("matched") == F.col("c_n"))
        & (F.col("least") == F.col("shift"))
        & (F.col("most") == F.col("shift"))
    )
    is_needed = (F.col("n") > 0) | is_required(F.col("first_ms"), F.col("last_ms"))
    columns = ("n", "c_n", "begin", "shift", "first", "last", "is_equal")
    return summed.withColumn("is_equal", F.coalesce(is_equal, F.lit(False))).select(
        *CELL, *columns, (~F.col("is_equal") & is_needed).alias("is_flagged")
    )
