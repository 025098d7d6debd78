"""Silver: what was read, put in order.  Pure functions of DataFrames; nothing here reads or writes.

``event``: every event once.  ``entry``: each participant's final log, from its newest snapshot and
what was delivered after it.  ``message``: everything anybody knows of, and its place among all.
``member``: who belongs, since when.  ``conflict``: ids of which different things are told.

The **canonical log** of a channel is ordered by (Lamport timestamp, message id), as SDS orders it,
and holds what somebody vouches for: its sender's log, or, where that log is not there, anybody's;
or two logs.  A message in one log alone, that its sender's log does not know, is a stray; it has a
``place`` among all but no ``position`` in the canonical log.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, STORE_MESSAGE, Kind

HASH_BUCKETS: Final = 4
ID_KEY: Final = ("channel", "mid", "lamport", "message_id")


def good(bronze: DataFrame) -> DataFrame:
    return bronze.where(F.col("problem").isNull())


def events(bronze: DataFrame, *, may_repeat: bool) -> DataFrame:
    """Every event once.  ``may_repeat``: exports were read, and may tell of what a log told too."""
    rows = good(bronze).select(
        *DELIVERY_EVENT.names,
        F.to_date(F.timestamp_millis("at_ms")).alias("day"),
        F.pmod(F.xxhash64(F.coalesce("channel", F.lit(""))), F.lit(HASH_BUCKETS))
        .cast("int")
        .alias("hash_bucket"),
    )
    return rows.dropDuplicates(["log_id", "seq"]) if may_repeat else rows


def snapshots(bronze: DataFrame, *, may_repeat: bool) -> DataFrame:
    """Rows of snapshots, each once: one log may tell of several, exported at different times."""
    key = ["segment", *LOG_SNAPSHOT.key, "snapshot_ms", "mid"]
    return bronze.dropDuplicates(key) if may_repeat else bronze


def store_messages(bronze: DataFrame) -> DataFrame:
    """What Stores hold, each once for each Store."""
    return good(bronze).select(*STORE_MESSAGE.names).dropDuplicates(list(STORE_MESSAGE.key))


# --- the final log of each participant ------------------------------------------------------------


def newest_snapshots(snapshot: DataFrame) -> DataFrame:
    """channel, participant, snapshot_ms, segment, log_id: which one counts."""
    newest = (
        good(snapshot)
        .groupBy("channel", "participant")
        .agg(F.max(F.struct("snapshot_ms", "segment", "log_id")).alias("newest"))
    )
    return newest.select("channel", "participant", "newest.*")


def entries(snapshot: DataFrame, bronze_events: DataFrame) -> DataFrame:
    """channel, participant, position, lamport, mid, message_id: positions 0, 1, 2 and so on.

    Almost always a snapshot as it is.  Where there is none, or messages were delivered after it
    (the process was killed), or its positions have holes, the log is put together.
    """
    newest = F.broadcast(newest_snapshots(snapshot))
    key = ["channel", "participant", "snapshot_ms", "segment", "log_id"]
    taken = (
        good(snapshot)
        .join(newest, key)
        .select("channel", "participant", "position", "lamport", "mid", "message_id")
    )
    later = _delivered_later(newest, bronze_events)
    unfinished = (
        later.select("channel", "participant")
        .union(_irregular(taken))
        .distinct()
        .withColumn("is_unfinished", F.lit(True))
    )
    marked = taken.join(F.broadcast(unfinished), ["channel", "participant"], "left")
    regular = marked.where(F.col("is_unfinished").isNull()).drop("is_unfinished")
    rest = marked.where(F.col("is_unfinished")).drop("is_unfinished")
    return regular.unionByName(_put_together(rest, later))


def _delivered_later(newest: DataFrame, bronze_events: DataFrame) -> DataFrame:
    """What was delivered after the snapshot: in the same log by ``seq``, in others by the clock."""
    rows = good(bronze_events)
    marks = (
        rows.where(F.col("kind") == Kind.SNAPSHOT.value)
        .groupBy("channel", "log_id")
        .agg(F.max("seq").alias("snapshot_seq"))
    )
    cut = newest.join(marks, ["channel", "log_id"], "left").select(
        "channel",
        "participant",
        "snapshot_ms",
        F.col("log_id").alias("snapshot_log"),
        "snapshot_seq",
    )
    is_later = (
        F.when(F.col("snapshot_ms").isNull(), F.lit(True))
        .when(
            (F.col("log_id") == F.col("snapshot_log")) & F.col("snapshot_seq").isNotNull(),
            F.col("seq") > F.col("snapshot_seq"),
        )
        .otherwise(F.col("at_ms") > F.col("snapshot_ms"))
    )
    delivered = rows.where(
        (F.col("kind") == Kind.DELIVERED.value)
        & F.col("channel").isNotNull()
        & F.col("mid").isNotNull()
        & F.col("lamport").isNotNull()
    )
    return (
        delivered.join(F.broadcast(cut), ["channel", "participant"], "left")
        .where(is_later)
        .select("channel", "participant", "lamport", "mid", "message_id")
        .distinct()
    )


def _irregular(taken: DataFrame) -> DataFrame:
    """Whose positions are not 0 to n - 1: count, sum and sum of squares tell."""
    n, top = F.col("n"), F.col("top")
    sums = taken.groupBy("channel", "participant").agg(
        F.count(F.lit(1)).alias("n"),
        F.max("position").alias("top"),
        F.sum(F.col("position").cast("decimal(38,0)")).alias("s1"),
        F.sum(F.col("position").cast("double") * F.col("position")).alias("s2"),
    )
    squares = n.cast("double") * (n - 1) * (2 * n - 1) / 6
    return sums.where(
        (top != n - 1)
        | (F.col("s1") * 2 != n.cast("decimal(19,0)") * (n - 1).cast("decimal(19,0)"))
        | (F.abs(F.col("s2") - squares) > 1e-9 * squares)
    ).select("channel", "participant")


def _put_together(taken: DataFrame, later: DataFrame) -> DataFrame:
    """Both in one order: the snapshot keeps its own, what came later stands where it belongs."""
    whose = ["channel", "participant"]
    new = later.join(taken, [*whose, "mid", "lamport"], "left_anti").withColumn(
        "position", F.lit(None).cast("bigint")
    )
    in_snapshot = Window.partitionBy(*whose).orderBy("position", "lamport", "message_id")
    own = F.struct("lamport", "message_id")
    both = taken.withColumn("after", F.max(own).over(in_snapshot)).unionByName(
        new.withColumn("after", own)
    )
    order = Window.partitionBy(*whose).orderBy("after", F.col("position").asc_nulls_last())
    place = (F.row_number().over(order) - 1).cast("bigint")
    return both.withColumn("position", place).select(
        *whose, "position", "lamport", "mid", "message_id"
    )


# --- messages -------------------------------------------------------------------------------------


def known_messages(entry: DataFrame, message: DataFrame) -> DataFrame:
    """One row for each (channel, mid, lamport, message_id) that anybody tells of."""
    nothing = F.lit(None)
    held = entry.select(
        *ID_KEY,
        nothing.cast("string").alias("protocol"),
        nothing.cast("string").alias("sender"),
        nothing.cast("bigint").alias("sent_ms"),
        nothing.cast("array<bigint>").alias("parent_mids"),
        F.lit(False).alias("is_own"),
        F.col("participant").alias("holder"),
    )
    told = good(message).select(
        *ID_KEY,
        "protocol",
        "sender",
        "sent_ms",
        "parent_mids",
        (F.col("sender") == F.col("participant")).alias("is_own"),
        nothing.cast("string").alias("holder"),
    )
    own_first = F.when(F.col("is_own"), 2).when(F.col("parent_mids").isNotNull(), 1).otherwise(0)
    return (
        held.unionByName(told)
        .groupBy(*ID_KEY)
        .agg(
            F.max("protocol").alias("protocol"),
            F.coalesce(F.max(F.when(F.col("is_own"), F.col("sender"))), F.min("sender")).alias(
                "sender"
            ),
            F.coalesce(F.max(F.when(F.col("is_own"), F.col("sent_ms"))), F.min("sent_ms")).alias(
                "sent_ms"
            ),
            F.max_by("parent_mids", own_first).alias("parent_mids"),
            F.count("holder").cast("int").alias("holders"),
            (F.min("holder") != F.max("holder")).alias("is_shared"),
            F.max("is_own").alias("is_vouched"),
        )
    )


def messages(entry: DataFrame, message: DataFrame) -> DataFrame:
    """The silver table ``message``: all that is known, with ``place`` and ``position``."""
    observed = (
        entry.select("channel", F.col("participant").alias("sender"))
        .union(good(message).select("channel", F.col("participant").alias("sender")))
        .distinct()
        .withColumn("sender_has_log", F.lit(True))
    )
    known = known_messages(entry, message).join(
        F.broadcast(observed), ["channel", "sender"], "left"
    )
    vouched = (
        F.coalesce("is_vouched", F.lit(False))
        | (F.col("sender").isNotNull() & F.col("sender_has_log").isNull())
        | F.coalesce("is_shared", F.lit(False))
    )
    chosen = _one_of_each(known.withColumn("is_canonical", vouched))
    order = Window.partitionBy("channel").orderBy("lamport", "message_id", "mid")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    position = F.sum(F.col("is_canonical").cast("bigint")).over(so_far) - 1
    return chosen.select(
        "channel",
        "mid",
        "lamport",
        "message_id",
        "protocol",
        "sender",
        "sent_ms",
        "parent_mids",
        "holders",
        (F.row_number().over(order) - 1).cast("bigint").alias("place"),
        F.when(F.col("is_canonical"), position).alias("position"),
    )


def _one_of_each(known: DataFrame) -> DataFrame:
    """Of an id with several variants the best vouched for is canonical, the others are strays."""
    several = (
        known.groupBy("channel", "mid")
        .agg(
            F.count(F.lit(1)).alias("variants"),
            F.max(
                F.struct(
                    F.col("is_canonical"),
                    F.coalesce("is_vouched", F.lit(False)),
                    F.col("holders"),
                    (-F.col("lamport")).alias("minus_lamport"),
                    F.col("message_id"),
                )
            ).alias("best"),
        )
        .where(F.col("variants") > 1)
        .select("channel", "mid", "best")
    )
    is_best = F.col("best").isNull() | (
        (F.col("message_id") == F.col("best.message_id"))
        & (F.col("lamport") == -F.col("best.minus_lamport"))
    )
    return known.join(several, ["channel", "mid"], "left").withColumn(
        "is_canonical", F.col("is_canonical") & is_best
    )


def conflicts(entry: DataFrame, message: DataFrame) -> DataFrame:
    """channel, message_id, reason, variants: of what different logs tell different things."""
    told = good(message)
    differing = (
        told.groupBy("channel", "message_id")
        .agg(
            F.min("lamport").alias("low"),
            F.max("lamport").alias("high"),
            F.min("sender").alias("first"),
            F.max("sender").alias("last"),
            F.min(F.array_join("parent_mids", ",")).alias("few"),
            F.max(F.array_join("parent_mids", ",")).alias("many"),
        )
        .select(
            "channel",
            "message_id",
            F.explode(
                F.array_compact(
                    F.array(
                        F.when(F.col("low") != F.col("high"), "lamport"),
                        F.when(F.col("first") != F.col("last"), "sender"),
                        F.when(F.col("few") != F.col("many"), "parents"),
                    )
                )
            ).alias("reason"),
        )
    )
    return differing.unionByName(_wrong_mids(entry, told))


def _wrong_mids(entry: DataFrame, told: DataFrame) -> DataFrame:
    """``mid`` must be what the id's hash says, or the digests compare the wrong things."""
    ids = entry.select("channel", "message_id", "mid").union(
        told.select("channel", "message_id", "mid")
    )
    return (
        ids.distinct()
        .where(F.col("mid") != mid_of(F.col("message_id")))
        .select("channel", "message_id", F.lit("mid").alias("reason"))
        .distinct()
    )


def mid_of(message_id: Column) -> Column:
    """As ``engine.delivery.pseudonym.mid_of``: the first 8 bytes of sha256, big-endian, signed."""
    digits = F.substring(F.sha2(message_id, 256), 1, 16)
    high = F.conv(F.substring(digits, 1, 8), 16, 10).cast("bigint")
    low = F.conv(F.substring(digits, 9, 8), 16, 10).cast("bigint")
    return F.shiftleft(high, 32).bitwiseOR(low)


# --- members and logs -----------------------------------------------------------------------------


def members(membership: DataFrame, entry: DataFrame, logs: DataFrame) -> DataFrame:
    """Who belongs to a channel, as all logs together tell; the newest stay of each counts.

    Who has a log of the channel is in here too; without a membership ``joined_ms`` is null, and
    what is missing in that log is undefined.
    """
    told = good(membership)
    latest = told.groupBy("channel", F.col("member").alias("participant")).agg(
        F.max(F.struct("joined_ms", "left_ms")).alias("stay")
    )
    with_log = logs.select("participant").distinct().withColumn("has_log", F.lit(True))
    holding = entry.select("channel", "participant").distinct().withColumn("holds", F.lit(True))
    whole = latest.join(holding, ["channel", "participant"], "full")
    return whole.join(F.broadcast(with_log), "participant", "left").select(
        "channel",
        "participant",
        F.col("stay.joined_ms").alias("joined_ms"),
        F.col("stay.left_ms").alias("left_ms"),
        F.coalesce("has_log", "holds", F.lit(False)).alias("has_log"),
    )


def logs(bronze_events: DataFrame) -> DataFrame:
    """Whose each log is, and how far it goes."""
    whose = ("log_id", "participant", "key_id", "app_version", "network")
    return (
        good(bronze_events)
        .groupBy(*whose)
        .agg(F.max("seq").alias("last_seq"), F.max("file").alias("file"))
    )
