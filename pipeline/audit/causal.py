"""Causality: a message that stands, or was delivered, before one that it depends on.

Three questions about **edges** from a child to its parent.  Is the child's place in the canonical
order below its parent's?  Then it is a violation in every log that holds the child, however many
agree.  Does a log hold the child before the parent?  Where the canonical order does not, a log in
order does not either, so edges that touch what was moved are enough, in logs where something was.
Was the child delivered before the parent, by ``seq``?  Then the parent was delivered after
something of a higher place, so edges to what came **late** in this sense are enough; a parent that
had been given up as lost before is none to wait for, also after a new start, in the next log.
"""

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.audit.cells import ID, WHOSE, Order
from pipeline.beside import Answer, Beside

if TYPE_CHECKING:
    from pipeline.audit import Audited

CAUSAL: Final = "causal"
EARLY: Final = "early"
VIOLATION: Final = (
    *WHOSE,
    "kind",
    "place",
    "position",
    "lamport",
    "mid",
    "message_id",
    "parent_mid",
    "parent_message_id",
)
_LOG: Final = (*WHOSE, "log_id")


def violations(
    tables: "Audited", order: Order, compared: Answer, looked: Answer, ask: Beside
) -> Answer:
    """VIOLATION.  ``causal``: as the final log stands; ``early``: as it was delivered."""
    canonical = order.messages.where(F.col("position").isNotNull())
    moved = ask.ask(lambda rows: rows.where("is_moved").select("mid").distinct(), looked)
    touched = ask.fetched(moved.frame.union(_late(tables, order, canonical)).distinct())
    edges = ask.fetched(_suspect(order, canonical, touched.frame))
    both = ask.ask(_ends, edges)
    columns = ("channel", "mid", "lamport", "message_id", "place", "position", "bucket")
    ends = ask.fetched(ask.only(canonical.select(*columns), both, ["mid"]))
    first, lost = (
        ask.only(rows, both, ["mid"]).groupBy(*_LOG, "mid").agg(F.min("seq").alias("seq"))
        for rows in (tables.delivered, tables.lost)
    )
    held = ask.ask(_held, ends, compared, looked)
    found = (
        ask.ask(_below, edges, held),
        ask.ask(_moved, edges, held, looked),
        ask.ask(_early, edges, first, lost),
    )
    return ask.ask(_told, ends, *found)


def _told(ends: DataFrame, *found: DataFrame) -> DataFrame:
    """VIOLATION."""
    texts = ends.select("channel", "mid", "place", "lamport", "message_id")
    parents = ends.select(
        "channel", F.col("mid").alias("parent_mid"), F.col("message_id").alias("parent_message_id")
    )
    told = (
        reduce(DataFrame.unionByName, found)
        .join(texts, ["channel", "mid"])
        .join(parents, ["channel", "parent_mid"])
    )
    return told.select(*VIOLATION)


def _ends(edges: DataFrame) -> DataFrame:
    """mid: of both.  In another channel it may be another message, which no edge leads to."""
    return edges.select("mid").union(edges.select("parent_mid")).distinct()


def _suspect(order: Order, canonical: DataFrame, touched: DataFrame) -> DataFrame:
    """channel, mid, parent_mid, is_below: edges that are, or to or from ``touched``, a ``mid``."""
    marked = touched.withColumn("is_touched", F.lit(True))
    nodes = canonical.select("channel", "mid", "place", "parent_mids").join(
        F.broadcast(marked), "mid", "left"
    )
    children = nodes.withColumn("parent_mid", F.explode(F.array_distinct("parent_mids")))
    parents = nodes.select(
        "channel",
        F.col("mid").alias("parent_mid"),
        F.col("place").alias("parent_place"),
        F.col("is_touched").alias("is_parent_touched"),
    )
    pairs = children.join(order.hinted(parents), ["channel", "parent_mid"])
    is_below = F.col("place") < F.col("parent_place")
    is_touched = F.coalesce("is_touched", "is_parent_touched", F.lit(False))
    return pairs.where(is_below | is_touched).select(
        "channel", "mid", "parent_mid", is_below.alias("is_below")
    )


# --- final logs -----------------------------------------------------------------------------------


def _held(ends: DataFrame, compared: DataFrame, looked: DataFrame) -> DataFrame:
    """channel, participant, mid, at: where each log has them; of copies the first."""
    in_order = compared.where("is_equal").select(*WHOSE, "bucket", "shift")
    by_shift = in_order.join(ends, ["channel", "bucket"]).select(
        *WHOSE, "mid", (F.col("position") - F.col("shift")).alias("at")
    )
    seen = looked.where(F.col("position").isNotNull() & ~F.col("is_copy"))
    by_row = seen.join(ends.select(*ID), [*ID], "left_semi").select(
        *WHOSE, "mid", F.col("position").alias("at")
    )
    return by_shift.unionByName(by_row)


def _below(edges: DataFrame, held: DataFrame) -> DataFrame:
    return (
        edges.where("is_below")
        .join(held, ["channel", "mid"])
        .select(
            *WHOSE, F.lit(CAUSAL).alias("kind"), "mid", "parent_mid", F.col("at").alias("position")
        )
    )


def _moved(edges: DataFrame, held: DataFrame, looked: DataFrame) -> DataFrame:
    whose = looked.where("is_moved").select(*WHOSE).distinct()
    there = held.join(F.broadcast(whose), [*WHOSE], "left_semi")
    parent = there.select(*WHOSE, F.col("mid").alias("parent_mid"), F.col("at").alias("parent_at"))
    return (
        edges.where("NOT is_below")
        .join(there, ["channel", "mid"])
        .join(parent, [*WHOSE, "parent_mid"])
        .where("at < parent_at")
        .select(
            *WHOSE, F.lit(CAUSAL).alias("kind"), "mid", "parent_mid", F.col("at").alias("position")
        )
    )


# --- as it was delivered --------------------------------------------------------------------------


def _late(tables: "Audited", order: Order, canonical: DataFrame) -> DataFrame:
    """mid: what any log delivered after something of a higher place.

    All that was ever delivered is sorted here, so what is sorted are numbers.  Should two logs have
    one number, or two channels messages of one ``mid``, more is late, and it is looked at in vain.
    """
    places = canonical.select("mid", "place")
    before = Window.partitionBy("log").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    return (
        tables.delivered.select(F.xxhash64(*_LOG).alias("log"), "seq", "mid")
        .join(order.hinted(places), "mid")
        .withColumn("highest", F.max("place").over(before))
        .where("place < highest")
        .select("mid")
    )


def _early(edges: DataFrame, first: DataFrame, lost: DataFrame) -> DataFrame:
    parent = first.select(*_LOG, F.col("mid").alias("parent_mid"), F.col("seq").alias("parent_seq"))
    early = (
        edges.join(first, ["channel", "mid"])
        .join(parent, [*_LOG, "parent_mid"])
        .where("seq < parent_seq")
        .select(*_LOG, "mid", "parent_mid", "seq")
    )
    return (
        _not_given_up(early, lost)
        .select(
            *WHOSE,
            F.lit(EARLY).alias("kind"),
            "mid",
            "parent_mid",
            F.lit(None).cast("bigint").alias("position"),
        )
        .distinct()
    )


def _not_given_up(early: DataFrame, lost: DataFrame) -> DataFrame:
    """Where nobody had given up on the parent: earlier in this log, or in another of its owner."""
    given_up = lost.withColumn("parent_mid", F.col("mid")).alias("given_up")
    conditions = [
        *(F.col(f"early.{name}") == F.col(f"given_up.{name}") for name in (*WHOSE, "parent_mid")),
        F.expr("given_up.log_id <> early.log_id OR given_up.seq < early.seq"),
    ]
    return early.alias("early").join(given_up, conditions, "left_anti")
