"""Which logs take part: those under one key, that do not contradict themselves or one another.

A log under another key speaks of other names.  Of a log that is told in two ways, or of two logs of
one participant that cannot both be true, nobody can say which is right; then neither takes part.
What is left out is kept with its reason, for ``pipeline.coverage`` and the quarantine.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Final, TypeAlias

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, Table
from pipeline import coverage, silver
from pipeline.coverage import BEGINNINGS, CLASH, OTHER_KEY, OVERLAP, WHOSE
from pipeline.persisted import if_any, persisted
from pipeline.session import for_few_rows

OVERLAP_MS: Final = 5_000
"""A clock may be put right between two files by that much."""
KNOWS_BEFORE: Final = 3
"""The contract's version since which a log tells in every form which one it continues."""
_Summing: TypeAlias = Callable[[DataFrame], DataFrame]


class Once:
    """Rows of which some may have been read several times, as they are in several exports.

    Logs that hold nothing twice, as nearly all do, need not be shuffled for it.
    """

    def __init__(
        self,
        rows: DataFrame,
        in_blocks: _Summing,
        together: _Summing,
        key: Sequence[str],
        within: Sequence[str],
    ) -> None:
        """``in_blocks``: of a number, and ``together``: all of these.

        ``key``: of a row, ``within``: of such a number.
        """
        self.rows = rows
        """Each once."""
        blocks = persisted(in_blocks(rows))
        repeats = if_any(silver.told_again(blocks, *within))
        self.kept = [blocks, repeats]
        self.several = rows.join(F.broadcast(repeats), "log_id", "left_semi")
        """All of those logs that hold some twice, as they were read."""
        if not repeats.isEmpty():
            once = self.several.dropDuplicates(["log_id", *key])
            others = F.broadcast(repeats), "log_id", "left_anti"
            self.rows = rows.join(*others).unionByName(once)
            blocks = blocks.join(*others).unionByName(in_blocks(once))
        self.summed = persisted(together(blocks))
        """``together`` of these rows."""
        self.kept.append(self.summed)


def events_once(rows: DataFrame) -> Once:
    return Once(rows, coverage.heard_in_blocks, coverage.heard, ["seq"], [])


def snapshots_once(rows: DataFrame) -> Once:
    """One log may tell of several, exported at different times."""
    shot = ["segment", "channel", "snapshot_ms"]
    key = [*shot, "position", "mid"]
    return Once(rows, silver.shown_in_blocks, silver.shown, key, shot)


class Comparable:
    """Of whole logs of whole participants: what takes part.

    It depends on no other logs, but for the key.  Small tables are kept until ``release``.
    """

    def __init__(self, log: DataFrame, event: Once, shot: Once, key: str | None) -> None:
        """``event``, ``shot``: of events, and of snapshots; ``key``: ``main_key``."""
        self._key = key
        spark = log.sparkSession
        is_under_key = F.col("key_id") == F.lit(key)
        shown = shot.summed.where(is_under_key)
        self._heard = event.summed.where(is_under_key)
        with for_few_rows(spark):
            self._newest = persisted(silver.newest_snapshots(shown))
            older = if_any(silver.older_snapshots(shown, self._newest))
            self._taken = shown.join(F.broadcast(older), [*WHOSE, *silver.SNAPSHOT], "left_anti")
            self._irregular = if_any(silver.irregular(self._taken))
        self._order = silver.taken(shot.rows.where(is_under_key), older)
        self._clashing = if_any(silver.clashing(self._order, self._irregular))
        odd_log = if_any(odd_logs(log, event.several))
        other = event.summed.where(~is_under_key & F.col("channel").isNotNull()).select(*WHOSE)
        with for_few_rows(spark):
            part = coverage.parts(self._heard, self._newest, log.where(is_under_key))
            self._part = persisted(part)
            self.odd = if_any(not_comparable(self._part, odd_log, self._clashing, other))
            """channel, participant, problem: who does not take part, and why."""
        self._left_out = None if self.odd.isEmpty() else self.odd
        self._kept = [self._newest, older, self._irregular, self._clashing, odd_log, self._part]
        self._kept += [self.odd, *event.kept, *shot.kept]

    def only(self, rows: DataFrame) -> DataFrame:
        """The rows of logs that take part."""
        return taking_part(rows, self._key, self._left_out)

    def events(self) -> int:
        """How many events there are of logs that take part."""
        return _sum_of_rows(self.only(self._heard))

    def entries(self, event: DataFrame) -> tuple[DataFrame, int]:
        """The final logs, and how many entries stand in them as they were read."""
        order, heard, shown, irregular = (
            _but(rows, self._left_out)
            for rows in (self._order, self._heard, self._taken, self._irregular)
        )
        with for_few_rows(event.sparkSession):
            unfinished = if_any(silver.unfinished(self._newest, heard))
        later = if_any(silver.delivered_later(event, unfinished))
        self._kept += [unfinished, later]
        made = later.select(*WHOSE).union(irregular).distinct()
        return silver.entries(order, made, later), _sum_of_rows(_but(shown, made))

    def seen(self, bronze: Mapping[Table, DataFrame]) -> DataFrame:
        """``coverage.seen`` of these."""
        part, newest = _but(self._part, self._left_out), _but(self._newest, self._left_out)
        bad = F.col("problem").isNotNull() & F.col("log_id").isNotNull()
        order = bronze[LOG_SNAPSHOT].where(bad).select(*WHOSE, F.lit(None).cast("bigint"))
        events = bronze[DELIVERY_EVENT].where(bad).groupBy("log_id").agg(F.max("seq").alias("seq"))
        refused = order.union(part.join(events, "log_id").select(*WHOSE, "seq")).toDF(*WHOSE, "seq")
        return coverage.seen(part, newest, refused.union(self._holes(bronze)))

    def _holes(self, bronze: Mapping[Table, DataFrame]) -> DataFrame:
        """Orders with holes, in a file some of whose rows nobody could even read."""
        snapshot = bronze[LOG_SNAPSHOT]
        unread = snapshot.where("problem IS NOT NULL AND log_id IS NULL").select("file").distinct()
        return (
            self._order.join(F.broadcast(self._irregular), [*WHOSE], "left_semi")
            .join(F.broadcast(unread), "file", "left_semi")
            .select(*WHOSE, F.lit(None).cast("bigint").alias("seq"))
            .distinct()
        )

    def quarantine(self) -> DataFrame:
        """Snapshots that contradict themselves."""
        return self._clashing.select(
            F.lit(LOG_SNAPSHOT.name).alias("table"),
            "file",
            F.lit("position.clash").alias("reason"),
            F.lit(None).cast("string").alias("log_id"),
            F.lit(None).cast("bigint").alias("seq"),
            "rows",
        )

    def release(self) -> None:
        for kept in self._kept:
            kept.unpersist()


def _sum_of_rows(summed: DataFrame) -> int:
    with for_few_rows(summed.sparkSession):
        (found,) = summed.agg(F.sum("rows")).collect()
    return int(found[0] or 0)


def taking_part(rows: DataFrame, key: str | None, odd: DataFrame | None) -> DataFrame:
    """The rows of logs under that key, but for those of ``odd`` (none: nobody's is)."""
    return _but(rows.where(F.col("key_id") == F.lit(key)), odd)


def _but(rows: DataFrame, odd: DataFrame | None) -> DataFrame:
    if odd is None:
        return rows
    return rows.join(F.broadcast(odd.select(*WHOSE).distinct()), [*WHOSE], "left_anti")


def main_key(log: DataFrame) -> str | None:
    """The key that most participants recorded under; None if there is no log."""
    counted = log.groupBy("key_id").agg(
        F.countDistinct("participant").alias("people"), F.sum("rows").alias("rows")
    )
    first = counted.orderBy(F.desc("people"), F.desc("rows"), "key_id").limit(1).collect()
    return str(first[0]["key_id"]) if first else None


def odd_logs(log: DataFrame, told_twice: DataFrame) -> DataFrame:
    """log_id: that are told in two ways, or of two owners."""
    owners = log.groupBy("log_id").count().where("count > 1").select("log_id")
    told = [F.col(name) for name in DELIVERY_EVENT.names if name != "schema_version"]
    twice = (
        told_twice.groupBy("log_id", "seq")
        .agg(F.min(F.xxhash64(*told)).alias("one"), F.max(F.xxhash64(*told)).alias("other"))
        .where("one <> other")
        .select("log_id")
    )
    return owners.union(twice).distinct()


def not_comparable(
    part: DataFrame, odd_log: DataFrame, clashing: DataFrame, other_key: DataFrame
) -> DataFrame:
    """channel, participant, problem: who cannot be compared, and why; each once.

    ``part``: under the key that counts; ``clashing``: whose snapshots have two messages at one
    place; ``other_key``: channel and participant as logs under other keys name them.
    """
    found = [
        part.join(F.broadcast(odd_log), "log_id", "left_semi").select(
            *WHOSE, F.lit(CLASH).alias("problem")
        ),
        clashing.select(*WHOSE, F.lit(CLASH).alias("problem")),
        _overlapping(part).select(*WHOSE, F.lit(OVERLAP).alias("problem")),
        _two_beginnings(part).select(*WHOSE, F.lit(BEGINNINGS).alias("problem")),
        other_key.join(part.select(*WHOSE), [*WHOSE], "left_anti").select(
            *WHOSE, F.lit(OTHER_KEY).alias("problem")
        ),
    ]
    return reduce(DataFrame.union, found).distinct()


def _overlapping(part: DataFrame) -> DataFrame:
    in_order = Window.partitionBy(*WHOSE).orderBy("from_ms", "log_id")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    spans = part.where("from_ms IS NOT NULL").select(*WHOSE, "log_id", "from_ms", "until_ms")
    return (
        spans.distinct()
        .withColumn("busy_until_ms", F.max("until_ms").over(before))
        .where(F.col("from_ms") < F.col("busy_until_ms") - OVERLAP_MS)
        .select(*WHOSE)
        .distinct()
    )


def _two_beginnings(part: DataFrame) -> DataFrame:
    begins = part.where(
        (F.col("schema_version") >= KNOWS_BEFORE) & F.col("previous_log_id").isNull()
    )
    return (
        begins.groupBy(*WHOSE)
        .agg(F.countDistinct("log_id").alias("beginnings"))
        .where("beginnings > 1")
        .select(*WHOSE)
    )
