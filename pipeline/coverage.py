"""What was observed of whom: looked at before any verdict, and said before it.

A row for each channel and participant: whose log is there and may be compared, from when to when it
tells, whether its final order is known as a whole, and what is wrong with it, as ``problems``.  The
worst of these (``NOT_COMPARABLE``) mean that nobody can tell what the participant holds: such a log
takes no part, neither as one that is judged nor as one that vouches.  The others leave a log in and
only limit what its silence means: what it had no way of telling was not observed, and is not
missing.  Pure functions of DataFrames, one row for each log or participant in most of them.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from engine.delivery.contract import Kind

WHOSE: Final = ("channel", "participant")

OTHER_KEY: Final = "other key"
"""Recorded under another key: its names mean something else."""
CLASH: Final = "clash"
"""It contradicts itself: two stories under one number or place, or two owners."""
OVERLAP: Final = "overlap"
"""Two logs of one participant at the same time; a recorder writes one."""
BEGINNINGS: Final = "two beginnings"
"""Two logs of one participant neither of which continues another."""
REFUSED: Final = "refused"
"""Rows of it break the contract, so its order has holes."""
GAP: Final = "gap"
"""The recorder dropped rows."""
FIRST_FILE: Final = "first file"
"""What came before is not there: it continues a file, or begins after its first row."""
HOLE: Final = "hole"
"""Numbers of events are left out."""
NOTHING: Final = "nothing"
"""There is a log, and it says nothing of this channel."""
ENDS_EARLY: Final = "ends early"
"""Messages were sent after its last row."""
NOT_COMPARABLE: Final = (OTHER_KEY, CLASH, OVERLAP, BEGINNINGS)
MOST_SLACK_MS: Final = 86_400_000
BLOCK: Final = 62
"""Numbers are summed up by so many: a bit for each tells whether one is there twice."""


# --- logs -----------------------------------------------------------------------------------------


_OF_LOG: Final = ("log_id", "participant", "key_id", "app_version", "network", "previous_log_id")
_WAYS: Final[Mapping[str, Callable[[str], Column]]] = {
    "schema_version": F.max,
    "rows": F.sum,
    "first_seq": F.min,
    "last_seq": F.max,
    "from_ms": F.min,
    "until_ms": F.max,
    "gaps": F.sum,
    "dropped": F.try_sum,
    "last_gap_seq": F.max,
    "last_gap_ms": F.max,
    "delivered": F.sum,
    "highest": F.max,
    "snapshot_seq": F.max,
    "last_delivered_seq": F.max,
    "last_delivered_ms": F.max,
}
"""How what is told of a log is put together."""


def heard_in_blocks(event: DataFrame) -> DataFrame:
    """Of every event, what each file tells of each log and channel, by blocks of ``seq``.

    The one pass over all events; what follows is asked of its few rows.
    """
    is_gap = F.col("kind") == Kind.GAP.value
    is_delivered = F.col("kind") == Kind.DELIVERED.value
    is_snapshot = F.col("kind") == Kind.SNAPSHOT.value
    return event.groupBy(*_OF_LOG, "file", "channel", block_of("seq").alias("block")).agg(
        F.max("schema_version").alias("schema_version"),
        F.count(F.lit(1)).alias("rows"),
        marks_of("seq").alias("marks"),
        F.min("seq").alias("first_seq"),
        F.max("seq").alias("last_seq"),
        F.min("at_ms").alias("from_ms"),
        F.max("at_ms").alias("until_ms"),
        F.count_if(is_gap).alias("gaps"),
        F.try_sum(F.when(is_gap, F.col("amount"))).alias("dropped"),
        F.max(F.when(is_gap, F.col("seq"))).alias("last_gap_seq"),
        F.max(F.when(is_gap, F.col("at_ms"))).alias("last_gap_ms"),
        F.count_if(is_delivered).alias("delivered"),
        F.max(F.when(is_delivered, F.col("position"))).alias("highest"),
        F.max(F.when(is_snapshot, F.col("seq"))).alias("snapshot_seq"),
        F.max(F.when(is_delivery(), F.col("seq"))).alias("last_delivered_seq"),
        F.max(F.when(is_delivery(), F.col("at_ms"))).alias("last_delivered_ms"),
    )


def heard(blocks: DataFrame) -> DataFrame:
    """The same, all blocks together."""
    return _together(blocks, *_OF_LOG, "file", "channel")


def _together(told: DataFrame, *of: str) -> DataFrame:
    return told.groupBy(*of).agg(*(way(name).alias(name) for name, way in _WAYS.items()))


def block_of(number: str) -> Column:
    return F.expr(f"{number} div {BLOCK}")


def marks_of(number: str) -> Column:
    """A bit for each number of a block that is there."""
    return F.bit_or(F.expr(f"cast(1 AS bigint) << cast({number} % {BLOCK} AS int)"))


def is_delivery() -> Column:
    """Of an event: a message came into the log."""
    there = (F.col(name).isNotNull() for name in ("channel", "mid", "lamport"))
    return reduce(Column.__and__, there, F.col("kind") == Kind.DELIVERED.value)


def logs(heard: DataFrame) -> DataFrame:
    """Whose each log is, how far it goes, and what its recorder left out."""
    whose = ("log_id", "participant", "key_id", "app_version", "network")
    return heard.groupBy(*whose).agg(
        F.max("schema_version").alias("schema_version"),
        F.max("previous_log_id").alias("previous_log_id"),
        F.min("first_seq").alias("first_seq"),
        F.max("last_seq").alias("last_seq"),
        F.sum("rows").alias("rows"),
        F.min("from_ms").alias("from_ms"),
        F.max("until_ms").alias("until_ms"),
        F.sum("gaps").alias("gaps"),
        F.coalesce(F.try_sum("dropped"), F.lit(0)).alias("dropped"),
        F.max("last_gap_seq").alias("last_gap_seq"),
        F.max("last_gap_ms").alias("last_gap_ms"),
        F.max("file").alias("file"),
    )


def parts(heard: DataFrame, newest: DataFrame, log: DataFrame) -> DataFrame:
    """channel, log_id and what the log tells of that channel; with the columns of ``log``.

    ``newest``: the snapshots that count.
    """
    found = (
        heard.where("channel IS NOT NULL")
        .groupBy("channel", "log_id")
        .agg(
            F.sum("delivered").alias("delivered"),
            F.max("highest").alias("highest"),
            F.max("snapshot_seq").alias("snapshot_seq"),
        )
    )
    shot = newest.select("channel", "log_id", F.col("snapshot_ms").alias("shot_ms")).distinct()
    return found.join(shot, ["channel", "log_id"], "full").join(log, "log_id")


# --- how much of a log is known -------------------------------------------------------------------


def seen(part: DataFrame, newest: DataFrame, refused: DataFrame) -> DataFrame:
    """One row for each channel and participant with a log that may be compared.

    ``refused``: channel, participant, log_id, seq (none: of a snapshot) of rows that break the
    contract.  Times are by the participant's own clock.
    """
    told = _told_of_parts(_parts_in_context(part, newest, refused))
    began_empty = ~F.col("is_cut") & (F.coalesce("highest", F.lit(0)) < F.col("delivered"))
    is_whole = (F.col("has_order") | began_empty) & ~F.col("is_gap_later") & ~F.col("is_bad")
    return told.select(
        *WHOSE,
        "logs",
        "key_id",
        "from_ms",
        "until_ms",
        "snapshot_ms",
        "gaps",
        "dropped",
        F.coalesce(is_whole, F.lit(False)).alias("is_whole"),
        F.array_compact(
            F.array(
                F.when(F.col("is_bad"), REFUSED),
                F.when(F.col("gaps") > 0, GAP),
                F.when(F.col("is_cut"), FIRST_FILE),
                F.when(F.col("is_holed"), HOLE),
            )
        ).alias("problems"),
    )


def _parts_in_context(part: DataFrame, newest: DataFrame, refused: DataFrame) -> DataFrame:
    """Each part with whether the one before it is here, the newest snapshot, and what is bad."""
    known = part.select(F.col("log_id").alias("previous_log_id")).distinct()
    known = known.withColumn("has_previous", F.lit(True))
    shot = newest.select(*WHOSE, "snapshot_ms", F.col("log_id").alias("shot_log"))
    bad = refused.groupBy(*WHOSE).agg(
        F.max("seq").alias("bad_seq"),
        F.max(F.col("seq").isNull()).alias("is_bad_order"),
    )
    return (
        part.join(F.broadcast(known), "previous_log_id", "left")
        .join(shot, [*WHOSE], "left")
        .join(bad, [*WHOSE], "left")
    )


def _told_of_parts(rows: DataFrame) -> DataFrame:
    """Of all parts of a participant's log together."""
    is_shot = F.col("log_id") == F.col("shot_log")
    knows_seq = is_shot & F.col("snapshot_seq").isNotNull()
    is_gap_later = F.coalesce(
        F.when(F.col("shot_log").isNull(), F.col("gaps") > 0)
        .when(knows_seq, F.col("last_gap_seq") > F.col("snapshot_seq"))
        .otherwise(F.col("last_gap_ms") > F.col("snapshot_ms")),
        F.lit(False),
    )
    is_bad_later = F.coalesce(
        F.when(knows_seq, F.col("bad_seq") > F.col("snapshot_seq")).otherwise(
            F.col("shot_log").isNull() & F.col("bad_seq").isNotNull()
        ),
        F.lit(False),
    )
    is_cut = (F.col("previous_log_id").isNotNull() & F.col("has_previous").isNull()) | (
        F.col("first_seq") > 1
    )
    is_holed = F.col("rows") < F.col("last_seq") - F.col("first_seq") + 1
    return rows.groupBy(*WHOSE).agg(
        F.countDistinct("log_id").cast("int").alias("logs"),
        F.max("key_id").alias("key_id"),
        F.min("from_ms").alias("from_ms"),
        F.max(F.greatest("until_ms", "shot_ms")).alias("until_ms"),
        F.max("snapshot_ms").alias("snapshot_ms"),
        F.sum("gaps").alias("gaps"),
        F.try_sum("dropped").alias("dropped"),
        F.max(is_cut).alias("is_cut"),
        F.max(is_holed).alias("is_holed"),
        F.max(is_gap_later).alias("is_gap_later"),
        F.max(is_bad_later | F.coalesce("is_bad_order", F.lit(False))).alias("is_bad"),
        F.sum("delivered").alias("delivered"),
        F.max("highest").alias("highest"),
        F.max(F.col("shot_log").isNotNull()).alias("has_order"),
    )


def corrected(seen: DataFrame, clock: DataFrame) -> DataFrame:
    """The same with times by the corrected clock, and ``offset_ms``."""
    timed = seen.join(
        F.broadcast(clock.select("participant", "offset_ms")), "participant", "left"
    ).withColumn("offset_ms", F.coalesce("offset_ms", F.lit(0)))
    times = ("from_ms", "until_ms", "snapshot_ms")
    return timed.withColumns({name: F.try_subtract(name, "offset_ms") for name in times})


# --- who belongs, and when ------------------------------------------------------------------------


def stays(membership: DataFrame, clock: DataFrame) -> DataFrame:
    """channel, participant, joined_ms, left_ms: when each member surely belonged.

    Every stay that the member's own log tells of, or two logs, or any if its own is not there.  A
    stay without an end that another follows ended nobody knows when, and is left out.  By the
    corrected clock, narrowed by how well that is known.
    """
    told = (
        membership.where("problem IS NULL")
        .groupBy("channel", F.col("member").alias("participant"), "joined_ms")
        .agg(
            F.max("left_ms").alias("left_ms"),
            F.countDistinct("participant").alias("tellers"),
            F.max(F.col("member") == F.col("participant")).alias("is_own"),
        )
    )
    own = Window.partitionBy(*WHOSE)
    following = own.orderBy("joined_ms")
    trusted = (
        told.withColumn("has_own", F.max("is_own").over(own))
        .where("is_own OR tellers > 1 OR NOT has_own")
        .withColumn("next_ms", F.lead("joined_ms").over(following))
        .where("left_ms IS NOT NULL OR next_ms IS NULL")
        .withColumn("left_ms", F.least("left_ms", "next_ms"))
    )
    sure = clock.select("participant", "offset_ms", "within_ms")
    slack_ms = F.coalesce(F.max("within_ms").over(Window.partitionBy("channel")), F.lit(0))
    offset_ms = F.coalesce("offset_ms", F.lit(0))
    return (
        trusted.join(F.broadcast(sure), "participant", "left")
        .withColumn("slack_ms", F.least(slack_ms, F.lit(MOST_SLACK_MS)) * 2)
        .select(
            *WHOSE,
            F.try_add(F.try_subtract("joined_ms", offset_ms), "slack_ms").alias("joined_ms"),
            F.try_subtract(F.try_subtract("left_ms", offset_ms), "slack_ms").alias("left_ms"),
        )
    )


def is_during(sent_ms: Column) -> Column:
    """Whether that was during the stay of the same row."""
    return (F.col("joined_ms") <= sent_ms) & (
        F.col("left_ms").isNull() | (sent_ms < F.col("left_ms"))
    )


# --- the table ------------------------------------------------------------------------------------


def coverage(
    seen: DataFrame, stay: DataFrame, odd: DataFrame, log: DataFrame, unobserved: DataFrame
) -> DataFrame:
    """The silver table: of members and owners of logs, what was observed.

    ``unobserved``: channel, participant and how many messages were sent after the log's end.
    """
    members = stay.groupBy(*WHOSE).agg(F.count("*").cast("int").alias("stays"))
    bad = odd.groupBy(*WHOSE).agg(F.collect_set("problem").alias("worst"))
    owners = log.select("participant").distinct().withColumn("owns", F.lit(True))
    rows = (
        members.join(seen, [*WHOSE], "full")
        .join(bad, [*WHOSE], "full")
        .join(unobserved, [*WHOSE], "left")
        .join(F.broadcast(owners), "participant", "left")
    )
    has_log = F.col("is_whole").isNotNull() & F.col("worst").isNull()
    is_silent = F.col("owns") & F.col("is_whole").isNull() & F.col("worst").isNull()
    ends_early = has_log & (F.col("unobserved") > 0)
    nothing = F.array().cast("array<string>")
    return rows.select(
        *WHOSE,
        has_log.alias("has_log"),
        F.coalesce("is_whole", F.lit(False)).alias("is_whole"),
        F.coalesce("stays", F.lit(0)).alias("stays"),
        F.coalesce("logs", F.lit(0)).alias("logs"),
        "key_id",
        "from_ms",
        "until_ms",
        "snapshot_ms",
        F.coalesce("gaps", F.lit(0)).alias("gaps"),
        F.coalesce("dropped", F.lit(0)).alias("dropped"),
        F.coalesce("offset_ms", F.lit(0)).alias("offset_ms"),
        F.coalesce("unobserved", F.lit(0)).alias("unobserved"),
        F.array_sort(
            F.concat(
                F.coalesce("worst", nothing),
                F.coalesce("problems", nothing),
                F.array_compact(
                    F.array(F.when(is_silent, NOTHING), F.when(ends_early, ENDS_EARLY))
                ),
            )
        ).alias("problems"),
    )


def sent_after_the_end(
    message: DataFrame, entry: DataFrame, seen: DataFrame, stay: DataFrame
) -> DataFrame:
    """channel, participant, unobserved: what was sent in its stays after the log's end.

    What the log holds all the same was observed, whatever the clocks say.
    """
    earliest = seen.groupBy("channel").agg(F.min("until_ms").alias("first_end_ms"))
    late = (
        message.where("position IS NOT NULL AND sent_ms IS NOT NULL")
        .join(F.broadcast(earliest), "channel")
        .where("sent_ms > first_end_ms")
        .select("channel", "mid", "sent_ms")
    )
    ends = seen.select(*WHOSE, "until_ms").join(stay, [*WHOSE])
    held = entry.join(F.broadcast(late.select("channel", "mid")), ["channel", "mid"], "left_semi")
    return (
        late.join(F.broadcast(ends), "channel")
        .where((F.col("sent_ms") > F.col("until_ms")) & is_during(F.col("sent_ms")))
        .select(*WHOSE, "mid")
        .distinct()
        .join(held.select(*WHOSE, "mid"), [*WHOSE, "mid"], "left_anti")
        .groupBy(*WHOSE)
        .agg(F.count("*").alias("unobserved"))
    )
