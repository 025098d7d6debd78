"""Cells that differ, row by row: exactly which messages.

``missing``: a canonical message that has to be in this log and is not.  ``extra``: an entry that is
not canonical, or a second one of the same message.  ``reordered``: an entry that does not stand
where the order of what this log holds puts it.  An entry outside the flagged cells stands where it
should, so its position is known without looking at it: the canonical one less the cell's shift.

Which entries belong to a flagged cell only a join with the order tells, but their positions lie
between the first and the last that were counted there, so hardly any others are joined.
"""

from functools import partial
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.audit.cells import CELL, ID, WHOSE, Order, is_required
from pipeline.beside import Answer, Beside

MISSING: Final = "missing"
EXTRA: Final = "extra"
REORDERED: Final = "reordered"
_MESSAGE: Final = (*ID, "bucket", "place", "c_position", "message_id", "sent_ms")
LOOKED: Final = (
    *CELL,
    "lamport",
    "mid",
    "position",
    "expected_position",
    "place",
    "message_id",
    "is_copy",
    "is_missing",
    "is_extra",
    "is_moved",
)
"""Entries of flagged cells, and what is missing there (``position`` is null).  ``place`` and
``message_id`` are null of what nobody tells of."""


def looked_at(  # noqa: PLR0913, PLR0917 -- what it looks at, and who is asked
    entry: DataFrame,
    order: Order,
    compared: Answer,
    logs: Answer,
    ask: Beside,
    bucket_messages: int,
) -> Answer:
    """LOOKED of flagged cells."""
    flagged = ask.ask(_flagged, compared)
    spots = ask.ask(lambda cells: cells.select("channel", "bucket").distinct(), flagged)
    order_there = order.messages.withColumnRenamed("position", "c_position").select(*_MESSAGE)
    messages = ask.fetched(ask.only(order_there, spots, ["channel", "bucket"]))
    near = ask.fetched(_near(entry, flagged, ask, bucket_messages))
    held = ask.ask(_held, near, messages, flagged)
    absent = ask.ask(_absent, messages, flagged, logs, held)
    return ask.ask(DataFrame.unionByName, held, absent)


def _flagged(compared: DataFrame) -> DataFrame:
    return compared.where("is_flagged").select(*CELL, "begin", "first", "last")


def _near(entry: DataFrame, flagged: Answer, ask: Beside, bucket_messages: int) -> DataFrame:
    """Entries that may belong to a flagged cell."""
    # One number for three columns is looked up sooner.  Should two of them agree, the joins tell.
    spans = ask.ask(partial(_spans, bucket_messages=bucket_messages), flagged).frame
    spot = F.xxhash64(*WHOSE, F.expr(f"position div {bucket_messages}"))
    return (
        entry.withColumn("spot", spot)
        .join(
            F.broadcast(spans.select(F.xxhash64(*WHOSE, "span").alias("spot"))), "spot", "left_semi"
        )
        .select(*WHOSE, "position", "lamport", "mid")
    )


def _held(near: DataFrame, messages: DataFrame, flagged: DataFrame) -> DataFrame:
    rows = near.join(messages, [*ID]).join(F.broadcast(flagged.select(*CELL, "begin")), [*CELL])
    in_order = Window.partitionBy(*CELL).orderBy(
        "lamport", F.col("place").asc_nulls_last(), "mid", "position"
    )
    this = F.struct("lamport", "mid")
    is_copy = F.coalesce(F.lag(this).over(in_order) == this, F.lit(False))
    return (
        rows.withColumn("is_copy", is_copy)
        .withColumn("expected_position", F.col("begin") + F.row_number().over(in_order) - 1)
        .withColumn("is_missing", F.lit(False))
        .withColumn("is_extra", F.col("c_position").isNull() | F.col("is_copy"))
        .withColumn("is_moved", F.col("position") != F.col("expected_position"))
        .select(*LOOKED)
    )


def _spans(flagged: DataFrame, bucket_messages: int) -> DataFrame:
    """channel, participant, span: of so many positions each, from first to last, each once.

    Entries that were moved far make cells overlap widely, so these are laid together before.
    """
    by_first = Window.partitionBy(*WHOSE).orderBy("low", "high")
    so_far = by_first.rowsBetween(Window.unboundedPreceding, -1)
    begins = F.coalesce(F.col("low") > F.max("high").over(so_far), F.lit(True))
    return (
        flagged.where(F.col("first").isNotNull())
        .select(
            *WHOSE,
            F.expr(f"first div {bucket_messages}").alias("low"),
            F.expr(f"last div {bucket_messages}").alias("high"),
        )
        .withColumn("begins", begins.cast("int"))
        .withColumn("island", F.sum("begins").over(by_first))
        .groupBy(*WHOSE, "island")
        .agg(F.min("low").alias("low"), F.max("high").alias("high"))
        .select(*WHOSE, F.explode(F.sequence("low", "high")).alias("span"))
    )


def _absent(messages: DataFrame, flagged: DataFrame, logs: DataFrame, held: DataFrame) -> DataFrame:
    wanted = (
        messages.where(F.col("c_position").isNotNull())
        .join(F.broadcast(flagged.select(*CELL).join(logs, [*WHOSE])), ["channel", "bucket"])
        .where(is_required(F.col("sent_ms"), F.col("sent_ms")))
    )
    absent = wanted.join(held, [*CELL, "lamport", "mid"], "left_anti")
    nothing = F.lit(None).cast("bigint")
    return absent.select(
        *CELL,
        "lamport",
        "mid",
        nothing.alias("position"),
        nothing.alias("expected_position"),
        "place",
        "message_id",
        F.lit(False).alias("is_copy"),
        F.lit(True).alias("is_missing"),
        F.lit(False).alias("is_extra"),
        F.lit(False).alias("is_moved"),
    )
