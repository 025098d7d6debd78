"""Silver: what was read, put in order.  Pure functions of DataFrames; nothing here reads or writes.

``event``: every event once.  ``entry``: each participant's final log, from its newest snapshot and
what was delivered after it.  ``message``: everything anybody knows of, and its place among all,
``sent_ms`` by the corrected clock (``pipeline.clock``).  ``member``, ``stay``, ``coverage``: who
belongs, when, and what was observed of them (``pipeline.coverage``).  ``conflict``: ids of which
different things are told, and by whom.

The **canonical log** of a channel is ordered by (Lamport timestamp, message id), as SDS orders it,
and holds what somebody vouches for, ``vouched_by``: its sender's log (``sender``), or most of the
logs that should hold it (``majority``).  Where the sender's log is there as a whole and does not
have it, that takes two.  What few hold is no part of it: of a sender whose log could tell, nobody
vouches (null); of another nobody can say who is right (``minority``).  Such a message has a
``place`` among all but no ``position`` in the canonical log.
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from engine.delivery.contract import DELIVERY_EVENT, STORE_MESSAGE
from pipeline.coverage import WHOSE, block_of, is_delivery, is_during, marks_of

MID: Final = ("channel", "mid")
ID_KEY: Final = ("channel", "mid", "lamport", "message_id")
SNAPSHOT: Final = ("snapshot_ms", "segment", "log_id")
"""Of a participant in a channel; the greatest is the newest."""
CONFLICT: Final = ("channel", "mid", "message_id", "reason", "participant")
_VOTED_ON: Final = ("channel", "message_id", "reason")
SENDER: Final = "sender"
MAJORITY: Final = "majority"
MINORITY: Final = "minority"


def good(bronze: DataFrame) -> DataFrame:
    return bronze.where(F.col("problem").isNull())


def events(bronze: DataFrame) -> DataFrame:
    return good(bronze).select("file", *DELIVERY_EVENT.names)


def shown_in_blocks(snapshot: DataFrame) -> DataFrame:
    """What is told of each snapshot, by blocks of positions: rows, top, marks."""
    return snapshot.groupBy(*WHOSE, "key_id", *SNAPSHOT, block_of("position").alias("block")).agg(
        F.count(F.lit(1)).alias("rows"),
        F.max("position").alias("top"),
        marks_of("position").alias("marks"),
    )


def shown(blocks: DataFrame) -> DataFrame:
    """The same, all blocks together: rows, top, and how many different ``positions``."""
    return blocks.groupBy(*WHOSE, "key_id", *SNAPSHOT).agg(
        F.sum("rows").alias("rows"),
        F.max("top").alias("top"),
        F.sum(F.bit_count("marks")).alias("positions"),
    )


def told_again(blocks: DataFrame, *within: str) -> DataFrame:
    """log_id: of logs with more rows than numbers in a block, as they are in several exports."""
    whole = blocks.groupBy("log_id", *within, "block").agg(
        F.sum("rows").alias("rows"), F.bit_or("marks").alias("marks")
    )
    return whole.where(F.col("rows") > F.bit_count("marks")).select("log_id").distinct()


def store_messages(bronze: DataFrame) -> DataFrame:
    """What Stores hold, each once for each Store."""
    return good(bronze).select(*STORE_MESSAGE.names).dropDuplicates(list(STORE_MESSAGE.key))


# --- the final log of each participant ------------------------------------------------------------


def newest_snapshots(shown: DataFrame) -> DataFrame:
    """channel, participant, snapshot_ms, segment, log_id: which one counts."""
    newest = shown.groupBy(*WHOSE).agg(F.max(F.struct(*SNAPSHOT)).alias("newest"))
    return newest.select(*WHOSE, "newest.*")


def older_snapshots(shown: DataFrame, newest: DataFrame) -> DataFrame:
    """Those that do not count."""
    key = [*WHOSE, *SNAPSHOT]
    return shown.join(newest, key, "left_anti").select(*key).distinct()


def taken(snapshot: DataFrame, older: DataFrame) -> DataFrame:
    """The rows of the snapshots that count."""
    return snapshot.join(F.broadcast(older), [*WHOSE, *SNAPSHOT], "left_anti").select(
        *WHOSE, "position", "lamport", "mid", "message_id", "file"
    )


def clashing(order: DataFrame, irregular: DataFrame) -> DataFrame:
    """channel, participant, file, rows: snapshots with two messages at one place."""
    this = F.struct("mid", "lamport", "message_id")
    return (
        order.join(F.broadcast(irregular), [*WHOSE], "left_semi")
        .groupBy(*WHOSE, "position")
        .agg(
            F.min(this).alias("one"),
            F.max(this).alias("other"),
            F.count("*").alias("rows"),
            F.max("file").alias("file"),
        )
        .where("one <> other")
        .groupBy(*WHOSE)
        .agg(F.max("file").alias("file"), F.sum("rows").alias("rows"))
    )


def entries(order: DataFrame, made: DataFrame, later: DataFrame) -> DataFrame:
    """channel, participant, position, lamport, mid, message_id: positions 0, 1, 2 and so on.

    Almost always a snapshot as it is.  Where there is none, or messages were delivered after it
    (the process was killed), or its positions have holes, the log is put together: ``made``.
    """
    taken = order.drop("file")
    rest = taken.join(F.broadcast(made), [*WHOSE], "left_semi")
    whole = taken.join(F.broadcast(made), [*WHOSE], "left_anti")
    return whole.unionByName(_put_together(rest, later))


def unfinished(newest: DataFrame, heard: DataFrame) -> DataFrame:
    """channel, participant, log_id: logs with something that was delivered after the snapshot.

    After ``after_seq`` in the same log, after ``after_ms`` by the clock in others; without a
    snapshot both are null.  ``heard``: ``coverage.heard``.
    """
    marks = heard.groupBy("channel", F.col("log_id").alias("shot_log")).agg(
        F.max("snapshot_seq").alias("shot_seq")
    )
    shot = newest.select(
        *WHOSE, F.col("snapshot_ms").alias("after_ms"), F.col("log_id").alias("shot_log")
    ).join(marks, ["channel", "shot_log"], "left")
    delivered = (
        heard.where("last_delivered_seq IS NOT NULL")
        .groupBy(*WHOSE, "log_id")
        .agg(F.max("last_delivered_seq").alias("seq"), F.max("last_delivered_ms").alias("at_ms"))
    )
    is_same = F.col("log_id") == F.col("shot_log")
    return (
        delivered.join(shot, [*WHOSE], "left")
        .withColumn("after_seq", F.when(is_same, F.col("shot_seq")))
        .where(_is_later())
        .select(*WHOSE, "log_id", "after_seq", "after_ms")
    )


def delivered_later(event: DataFrame, unfinished: DataFrame) -> DataFrame:
    """channel, participant, lamport, mid, message_id: what was delivered after the snapshot."""
    return (
        event.where(is_delivery())
        .join(F.broadcast(unfinished), [*WHOSE, "log_id"])
        .where(_is_later())
        .select(*WHOSE, "lamport", "mid", "message_id")
        .distinct()
    )


def _is_later() -> Column:
    after_clock = F.coalesce(F.col("at_ms") > F.col("after_ms"), F.lit(True))
    return F.coalesce(F.col("seq") > F.col("after_seq"), after_clock)


def irregular(shown: DataFrame) -> DataFrame:
    """Whose positions are not 0 to n - 1, each once.  ``shown``: of the snapshots that count."""
    rows = F.col("rows")
    return shown.where((F.col("top") != rows - 1) | (F.col("positions") != rows)).select(*WHOSE)


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


def told_of(entry: DataFrame, message: DataFrame) -> DataFrame:
    """mid, holders, is_plain: all that anybody tells of, summed up as numbers.

    Plain is what one row of its sender's log tells and nobody tells otherwise, as nearly all are:
    there nothing has to be chosen among texts, for which Spark would sort all rows.  What is told
    of in two channels is not plain.
    """
    message = good(message)
    this = F.xxhash64("channel", "lamport", "message_id")
    all_of_it = F.xxhash64(
        this,
        "protocol",
        "sender",
        *(F.col(name).isNull() for name in ("parent_mids", "content")),
        "parent_mids",
        "content",
    )
    said = message.select(
        "mid", this.alias("this"), all_of_it.alias("said"), _is_own().alias("is_own")
    )
    held = entry.select("mid", this.alias("this"), F.lit(True).alias("is_held"))
    summed = (
        said.unionByName(held, allowMissingColumns=True)
        .groupBy("mid")
        .agg(
            F.count_if("is_held").cast("int").alias("holders"),
            F.count_if("is_own").alias("own"),
            *(way("this").alias(f"this_{at}") for at, way in enumerate((F.min, F.max))),
            *(way("said").alias(f"said_{at}") for at, way in enumerate((F.min, F.max))),
        )
    )
    is_plain = F.expr("own = 1 AND this_0 = this_1 AND said_0 = said_1")
    return summed.select("mid", "holders", is_plain.alias("is_plain"))


def _is_own() -> Column:
    return F.col("sender") == F.col("participant")


def plain_messages(message: DataFrame, is_plain: DataFrame, clock: DataFrame) -> DataFrame:
    """As ``known_messages``, of what is plain: that part of ``told_of``."""
    own = good(message).where(_is_own())
    told = own.join(is_plain, "mid").withColumn("is_vouched", F.lit(True))
    return _by_the_clock(told, clock)


def told_alike(message: DataFrame) -> DataFrame:
    """Of those who tell the same of a message one row; ``sent_ms`` and ``last_sent_ms`` may differ.

    Most tell the same, and to choose among texts Spark sorts rows.
    """
    return (
        good(message)
        .groupBy(
            *ID_KEY,
            "protocol",
            "sender",
            "parent_mids",
            "content",
            _is_own().alias("is_own"),
        )
        .agg(F.min("sent_ms").alias("sent_ms"), F.max("sent_ms").alias("last_sent_ms"))
    )


def known_messages(entry: DataFrame, told: DataFrame, clock: DataFrame) -> DataFrame:
    """One row for each (channel, mid, lamport, message_id) that anybody tells of.

    ``told``: ``told_alike``.  ``sent_ms``: by the corrected clock of the sender.
    """
    held = (
        entry.groupBy(*ID_KEY)
        .agg(F.count("participant").alias("holders"))
        .withColumn("is_own", F.lit(False))
    )
    own_first = F.when(F.col("is_own"), 2).when(F.col("parent_mids").isNotNull(), 1).otherwise(0)
    of_own = {
        name: F.max(F.when(F.col("is_own"), F.col(name)))
        for name in ("sender", "last_sent_ms", "content")
    }
    known = (
        told.unionByName(held, allowMissingColumns=True)
        .groupBy(*ID_KEY)
        .agg(
            F.max("protocol").alias("protocol"),
            F.coalesce(of_own["sender"], F.min("sender")).alias("sender"),
            F.coalesce(of_own["last_sent_ms"], F.min("sent_ms")).alias("sent_ms"),
            F.max_by("parent_mids", own_first).alias("parent_mids"),
            F.coalesce(of_own["content"], F.min("content")).alias("content"),
            F.coalesce(F.sum("holders"), F.lit(0)).cast("int").alias("holders"),
            F.coalesce(F.max("is_own"), F.lit(False)).alias("is_vouched"),
        )
    )
    return _by_the_clock(known, clock)


def _by_the_clock(known: DataFrame, clock: DataFrame) -> DataFrame:
    offsets = clock.select(F.col("participant").alias("sender"), "offset_ms")
    return (
        known.join(F.broadcast(offsets), "sender", "left")
        .withColumn("sent_ms", F.try_subtract("sent_ms", F.coalesce("offset_ms", F.lit(0))))
        .select(
            *ID_KEY,
            "protocol",
            "sender",
            "sent_ms",
            "parent_mids",
            "content",
            "holders",
            "is_vouched",
        )
    )


def told_of_by_others(known: DataFrame) -> DataFrame:
    """Those that their sender's log does not tell of."""
    return known.where("NOT is_vouched")


def told_variously(known: DataFrame) -> DataFrame:
    """channel, mid: ids that stand for more than one message."""
    return known.groupBy(*MID).count().where("count > 1").select(*MID)


def vouched(known: DataFrame, by_others: DataFrame) -> DataFrame:
    """``known_messages`` with who vouches for them: ``vouched_by``.

    ``by_others``: ``vouched_by_others``.
    """
    own = known.where("is_vouched").withColumn("vouched_by", F.lit(SENDER))
    return own.unionByName(by_others)


def messages(vouched: DataFrame, various: DataFrame) -> DataFrame:
    """The silver table ``message``: all that is known, with ``place`` and ``position``.

    ``various``: ``told_variously``.
    """
    is_canonical = F.coalesce(F.col("vouched_by").isin(SENDER, MAJORITY), F.lit(False))
    chosen = _one_of_each(vouched.withColumn("is_canonical", is_canonical), various)
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
        "content",
        "holders",
        "vouched_by",
        (F.row_number().over(order) - 1).cast("bigint").alias("place"),
        F.when(F.col("is_canonical"), position).alias("position"),
    )


def vouched_by_others(
    doubtful: DataFrame, holding: DataFrame, seen: DataFrame, stay: DataFrame
) -> DataFrame:
    """``told_of_by_others`` with ``vouched_by``: whether most others hold them.

    Those count whose log goes on after it was sent and who belonged then, or who hold it.
    ``holding``: the entries that hold them; ``seen``: what was observed of the logs that count.
    """
    ids = doubtful.select(*ID_KEY, "sender", "sent_ms")
    sender = F.coalesce("sender", F.lit(""))
    holders = (
        holding.join(ids, [*ID_KEY])
        .where(F.col("participant") != sender)
        .select(*ID_KEY, "participant", F.lit(True).alias("holds"))
    )
    logs = seen.select(*WHOSE, "until_ms").join(stay, [*WHOSE], "left")
    is_there = F.col("joined_ms").isNull() | is_during(F.col("sent_ms"))
    should = (
        ids.join(F.broadcast(logs), "channel")
        .where(F.col("participant") != sender)
        .where(F.col("sent_ms").isNull() | ((F.col("sent_ms") <= F.col("until_ms")) & is_there))
        .select(*ID_KEY, "participant", F.lit(False).alias("holds"))
    )
    asked = (
        holders.union(should)
        .groupBy(*ID_KEY, "participant")
        .agg(F.max("holds").alias("holds"))
        .groupBy(*ID_KEY)
        .agg(F.count_if("holds").alias("yes"), F.count("*").alias("all"))
    )
    whole = seen.where("is_whole").select(
        "channel", F.col("participant").alias("sender"), F.col("until_ms").alias("sender_until_ms")
    )
    denies = F.col("sender_until_ms").isNotNull() & F.coalesce(
        F.col("sent_ms") <= F.col("sender_until_ms"), F.lit(True)
    )
    is_majority = (F.col("yes") * 2 > F.col("all")) & (~denies | (F.col("yes") > 1))
    return (
        doubtful.join(asked, [*ID_KEY], "left")
        .join(F.broadcast(whole), ["channel", "sender"], "left")
        .withColumn("vouched_by", F.when(is_majority, MAJORITY).when(~denies, MINORITY))
        .drop("yes", "all", "sender_until_ms")
    )


def _one_of_each(known: DataFrame, various: DataFrame) -> DataFrame:
    """Of an id with several variants the best vouched for is canonical, the others are strays."""
    several = (
        known.join(various, ["channel", "mid"], "left_semi")
        .groupBy("channel", "mid")
        .agg(
            F.max(
                F.struct(
                    F.col("is_canonical"),
                    F.col("is_vouched"),
                    F.col("holders"),
                    (-F.col("lamport")).alias("minus_lamport"),
                    F.col("message_id"),
                )
            ).alias("best"),
        )
    )
    is_best = F.col("best").isNull() | (
        (F.col("message_id") == F.col("best.message_id"))
        & (F.col("lamport") == -F.col("best.minus_lamport"))
    )
    return known.join(several, ["channel", "mid"], "left").withColumn(
        "is_canonical", F.col("is_canonical") & is_best
    )


def differing(told: DataFrame) -> DataFrame:
    """channel, message_id: of what any two logs tell otherwise.  ``told``: ``told_alike``."""
    texts = _texts_voted_on()
    differs = (F.coalesce(F.min(t) != F.max(t), F.lit(False)) for t in texts.values())
    return (
        told.groupBy("channel", "message_id")
        .agg(reduce(Column.__or__, differs).alias("differs"))
        .where("differs")
        .select("channel", "message_id")
    )


def conflicts(
    entry: DataFrame, message: DataFrame, differing: DataFrame, wrong: DataFrame
) -> DataFrame:
    """channel, mid, message_id, reason, participant: of what a log tells otherwise than others.

    Most logs are right, or the sender's if that many are on either side; if neither tells, all of
    them are named.  When it was sent is not compared: a log may know that only roughly.
    ``wrong``: ``wrong_mids``.
    """
    told = good(message)
    votes = _votes(told, differing)
    found = votes.join(_outvoted(votes), [*_VOTED_ON, "value"], "left_semi").select(*CONFLICT)
    columns = ("channel", "mid", "message_id", "participant")
    theirs = (
        entry.select(*columns)
        .union(told.select(*columns))
        .join(wrong, ["channel", "mid", "message_id"], "left_semi")
        .withColumn("reason", F.lit("mid"))
    )
    return found.unionByName(theirs).distinct()


def _texts_voted_on() -> dict[str, Column]:
    return {
        "lamport": F.col("lamport").cast("string"),
        "sender": F.col("sender"),
        "parents": F.array_join("parent_mids", ","),
        "content": F.col("content"),
    }


def _votes(told: DataFrame, differing: DataFrame) -> DataFrame:
    """What each log tells, ``value``, of each thing, ``reason``, where any two tell otherwise."""
    fields = F.explode(
        F.array(
            *(
                F.struct(F.lit(name).alias("reason"), text.alias("value"))
                for name, text in _texts_voted_on().items()
            )
        )
    )
    return (
        told.join(differing, ["channel", "message_id"], "left_semi")
        .select(
            "channel",
            "mid",
            "message_id",
            "participant",
            (F.col("sender") == F.col("participant")).alias("is_own"),
            fields.alias("one"),
        )
        .select("channel", "mid", "message_id", "participant", "is_own", "one.*")
        .where("value IS NOT NULL")
    )


def _outvoted(votes: DataFrame) -> DataFrame:
    """Values that fewer logs tell than another one; all of them if none has the most."""
    counted = votes.groupBy(*_VOTED_ON, "value").agg(
        F.struct(F.countDistinct("participant").alias("n"), F.max("is_own").alias("own")).alias(
            "weight"
        )
    )
    best = counted.groupBy(*_VOTED_ON).agg(
        F.max("weight").alias("best"), F.count("*").alias("variants")
    )
    alone = Window.partitionBy(*_VOTED_ON)
    return (
        counted.join(best, [*_VOTED_ON])
        .where("variants > 1")
        .withColumn("is_best", F.col("weight") == F.col("best"))
        .withColumn("bests", F.count_if("is_best").over(alone))
        .where("NOT is_best OR bests > 1")
        .select(*_VOTED_ON, "value")
    )


def wrong_mids(known: DataFrame) -> DataFrame:
    """channel, mid, message_id of ids whose ``mid`` is not what their hash says.

    By it messages are compared.  ``known``: the silver table ``message``, all that anybody tells
    of.
    """
    ids = known.select("channel", "mid", "message_id")
    return ids.where(F.col("mid") != mid_of(F.col("message_id"))).distinct()


def mid_of(message_id: Column) -> Column:
    """As ``engine.delivery.pseudonym.mid_of``: the first 8 bytes of sha256, big-endian, signed."""
    digits = F.substring(F.sha2(message_id, 256), 1, 16)
    high = F.conv(F.substring(digits, 1, 8), 16, 10).cast("bigint")
    low = F.conv(F.substring(digits, 9, 8), 16, 10).cast("bigint")
    return F.shiftleft(high, 32).bitwiseOR(low)


# --- members --------------------------------------------------------------------------------------


def members(coverage: DataFrame, stay: DataFrame) -> DataFrame:
    """Who belongs to a channel: one row each, with the newest stay and ``stays``, all of them.

    ``has_log``: it may be compared and tells of the channel.  Without a stay ``joined_ms`` is null,
    and what is missing in that log is undefined.
    """
    one = F.struct("joined_ms", "left_ms")
    latest = stay.groupBy(*WHOSE).agg(
        F.max(one).alias("stay"), F.sort_array(F.collect_list(one)).alias("stays")
    )
    return (
        coverage.select(*WHOSE, "has_log")
        .join(latest, [*WHOSE], "left")
        .select(
            *WHOSE,
            F.col("stay.joined_ms").alias("joined_ms"),
            F.col("stay.left_ms").alias("left_ms"),
            "stays",
            "has_log",
        )
    )
