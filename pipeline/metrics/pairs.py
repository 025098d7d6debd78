"""One row for each message and each member who should have got it, with all that became of it.

Every figure of delivery and of acknowledgement is counted from these rows.  What a member should
have got is the canonical log while it was a member; whether it got it can be seen only where its
own log is there.  Sending and being acknowledged are read off the sender's clock.  Delivery happens
on another device: there ``clock`` puts it on the sender's clock if the two are far enough apart to
tell, from the quickest copies in both directions.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from engine.delivery.contract import Kind
from pipeline.clock import apart_ms
from pipeline.metrics.figures import NEVER, hour_of

SKEW_MS: Final = 1_000
"""Clocks that differ by less cannot be told from a network that is slower in one direction."""


def pairs(event: DataFrame, message: DataFrame, member: DataFrame, log: DataFrame) -> DataFrame:
    """The columns of the last statement.

    ``to_delivery_ms`` and ``to_ack_ms`` are ``NEVER`` if that did not happen, null if it cannot be
    seen, because that log is not there.
    """
    expected = _expected(event, message, member)
    joined = (
        expected.join(_got(event), ["channel", "mid", "receiver"], "left")
        .join(_acked(event), ["channel", "mid", "sender", "receiver"], "left")
        .join(F.broadcast(_home(log)), "receiver", "left")
    )
    offsets = F.broadcast(clock(joined).where("corrected").drop("samples", "corrected"))
    placed = joined.join(offsets, ["sender", "receiver"], "left")
    offset_ms = F.coalesce("offset_ms", F.lit(0))
    delivered_ms = apart_ms(F.col("delivered_ms"), F.col("sent_ms"))
    to_delivery = _time_or_never(apart_ms(delivered_ms, offset_ms))
    to_ack = _time_or_never(apart_ms(F.col("acked_ms"), F.col("sent_ms")))
    return placed.select(
        "channel",
        "mid",
        "lamport",
        "sender",
        "receiver",
        "has_log",
        "sender_has_log",
        F.coalesce("app_version", "home_version").alias("app_version"),
        F.coalesce("network", "home_network").alias("network"),
        hour_of(F.col("sent_ms")).alias("hour"),
        "sent_ms",
        "received_ms",
        "delivered_ms",
        "via",
        "missing_ms",
        "lost_ms",
        "acked_ms",
        "maybe_ms",
        F.when(F.col("has_log"), to_delivery).alias("to_delivery_ms"),
        F.when(F.col("sender_has_log"), to_ack).alias("to_ack_ms"),
    )


def clock(received: DataFrame) -> DataFrame:
    """For each (sender, receiver) how far the receiver's clock is ahead, ``offset_ms``.

    ``corrected``: it is taken into account, because it is seen in both directions and far enough.
    """
    direct = received.where("received_ms IS NOT NULL AND sent_ms IS NOT NULL")
    one_way = direct.groupBy("sender", "receiver").agg(
        F.min(apart_ms(F.col("received_ms"), F.col("sent_ms"))).alias("there_ms"),
        F.count(F.lit(1)).alias("samples"),
    )
    back = one_way.select(
        F.col("receiver").alias("sender"),
        F.col("sender").alias("receiver"),
        F.col("there_ms").alias("back_ms"),
    )
    offset_ms = (apart_ms(F.col("there_ms"), F.col("back_ms")) / 2).cast("bigint")
    return one_way.join(back, ["sender", "receiver"]).select(
        "sender",
        "receiver",
        offset_ms.alias("offset_ms"),
        "samples",
        (F.abs(offset_ms) >= SKEW_MS).alias("corrected"),
    )


def _expected(event: DataFrame, message: DataFrame, member: DataFrame) -> DataFrame:
    """Sent when the sender's log says so, by its clock; who belonged then, by the corrected one."""
    sent = (
        event.where(F.col("kind") == Kind.SENT.value)
        .groupBy("channel", "mid")
        .agg(F.min("at_ms").alias("logged_ms"))
    )
    canonical = message.where("position IS NOT NULL").select(
        "channel", "mid", "lamport", "sender", F.col("sent_ms").alias("corrected_ms")
    )
    members = member.select("channel", F.col("participant").alias("receiver"), "stays", "has_log")
    senders = member.select(
        "channel",
        F.col("participant").alias("sender"),
        F.col("has_log").alias("sender_has_log"),
    )
    timed = canonical.join(sent, ["channel", "mid"], "left").withColumn(
        "sent_ms", F.coalesce("logged_ms", "corrected_ms")
    )
    true_ms = F.coalesce("corrected_ms", "sent_ms")
    was_member = F.exists(
        "stays",
        lambda stay: (
            (stay["joined_ms"] <= true_ms)
            & (stay["left_ms"].isNull() | (true_ms < stay["left_ms"]))
        ),
    )
    return (
        timed.join(F.broadcast(members), "channel")
        .where((F.col("receiver") != F.col("sender")) & (F.col("sent_ms").isNull() | was_member))
        .join(F.broadcast(senders), ["channel", "sender"], "left")
        .withColumn("sender_has_log", F.coalesce("sender_has_log", F.lit(False)))
        .drop("logged_ms", "corrected_ms", "stays")
    )


def _got(event: DataFrame) -> DataFrame:
    """What happened to a message at a member's."""
    kinds = [Kind.RECEIVED, Kind.DELIVERED, Kind.MISSING, Kind.LOST]
    wanted = event.where(F.col("mid").isNotNull() & F.col("kind").isin([k.value for k in kinds]))
    return wanted.groupBy("channel", "mid", F.col("participant").alias("receiver")).agg(
        _first_ms(Kind.RECEIVED).alias("received_ms"),
        _first_ms(Kind.DELIVERED).alias("delivered_ms"),
        _first_ms(Kind.MISSING).alias("missing_ms"),
        _first_ms(Kind.LOST).alias("lost_ms"),
        F.min_by("via", F.when(F.col("kind") == Kind.RECEIVED.value, F.col("at_ms"))).alias("via"),
        F.max("app_version").alias("app_version"),
        F.max("network").alias("network"),
    )


def _acked(event: DataFrame) -> DataFrame:
    kinds = [Kind.ACKED.value, Kind.POSSIBLY_ACKED.value]
    wanted = event.where(F.col("mid").isNotNull() & F.col("kind").isin(kinds))
    keys = (F.col("participant").alias("sender"), F.col("peer").alias("receiver"))
    return wanted.groupBy("channel", "mid", *keys).agg(
        _first_ms(Kind.ACKED).alias("acked_ms"), _first_ms(Kind.POSSIBLY_ACKED).alias("maybe_ms")
    )


def _first_ms(kind: Kind) -> Column:
    return F.min(F.when(F.col("kind") == kind.value, F.col("at_ms")))


def _time_or_never(time_ms: Column) -> Column:
    """``greatest`` would take the 0 where there is no time at all."""
    return F.when(time_ms.isNull(), F.lit(NEVER)).otherwise(F.greatest(time_ms, F.lit(0)))


def _home(log: DataFrame) -> DataFrame:
    """Version and network of a participant whose log says nothing of a message."""
    return log.groupBy(F.col("participant").alias("receiver")).agg(
        F.max("app_version").alias("home_version"), F.max("network").alias("home_network")
    )
