"""Which logs take part: those under one key, that do not contradict themselves or one another.

A log under another key speaks of other names.  Of a log that is told in two ways, or of two logs of
one participant that cannot both be true, nobody can say which is right; then neither takes part.
What is left out is kept with its reason, for ``pipeline.coverage`` and the quarantine.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Final, TypeAlias

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, Table
from pipeline import coverage, silver
from pipeline.beside import Answer, Beside
from pipeline.coverage import BEGINNINGS, CLASH, OTHER_KEY, OVERLAP, WHOSE
from pipeline.persisted import if_any

OVERLAP_MS: Final = 5_000
"""A clock may be put right between two files by that much."""
KNOWS_BEFORE: Final = 3
"""The contract's version since which a log tells in every form which one it continues."""
_Summing: TypeAlias = Callable[[DataFrame], DataFrame]


class Once:
    """Rows of which some may have been read several times, as they are in several exports.

    Logs that hold nothing twice, as nearly all do, need not be shuffled for it.
    """

    def __init__(  # noqa: PLR0913 -- what, summed up how, and what makes it the same
        self,
        rows: DataFrame,
        ask: Beside,
        *,
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
        blocks = ask.fetched(in_blocks(rows), about=rows.count() // coverage.BLOCK)
        repeats = ask.ask(lambda told: silver.told_again(told, *within), blocks)
        self.several = ask.only(rows, repeats, ["log_id"])
        """All of those logs that hold some twice, as they were read."""
        if not repeats.is_empty:
            once = self.several.dropDuplicates(["log_id", *key])
            self.rows = rows.join(repeats.frame, "log_id", "left_anti").unionByName(once)
            blocks = ask.ask(_with_those_once, blocks, repeats, in_blocks(once))
        self.summed = ask.ask(together, blocks)
        """``together`` of these rows."""


def _with_those_once(blocks: DataFrame, repeats: DataFrame, once: DataFrame) -> DataFrame:
    return blocks.join(repeats, "log_id", "left_anti").unionByName(once)


def events_once(rows: DataFrame, ask: Beside) -> Once:
    return Once(
        rows,
        ask,
        in_blocks=coverage.heard_in_blocks,
        together=coverage.heard,
        key=["seq"],
        within=[],
    )


def snapshots_once(rows: DataFrame, ask: Beside) -> Once:
    """One log may tell of several, exported at different times."""
    shot = ["segment", "channel", "snapshot_ms"]
    key = [*shot, "position", "mid"]
    return Once(
        rows,
        ask,
        in_blocks=silver.shown_in_blocks,
        together=silver.shown,
        key=key,
        within=shot,
    )


class Comparable:
    """Of whole logs of whole participants: what takes part.

    It depends on no other logs, but for the key.
    """

    def __init__(
        self, log: Answer | DataFrame, event: Once, shot: Once, key: str | None, ask: Beside
    ) -> None:
        """``event``, ``shot``: of events, and of snapshots; ``key``: ``main_key``."""
        self._key = key
        self._ask = ask
        under_key = partial(_under_key, key=key)
        self._heard = ask.ask(under_key, event.summed)
        shown = ask.ask(under_key, shot.summed)
        self._newest = ask.ask(silver.newest_snapshots, shown)
        older = ask.ask(silver.older_snapshots, shown, self._newest)
        self._taken = ask.ask(_without_older, shown, older)
        self._irregular = ask.ask(silver.irregular, self._taken)
        self._order = silver.taken(_under_key(shot.rows, key), older.frame)
        self._clashing = ask.fetched(silver.clashing(self._order, self._irregular.frame))
        odd_log = ask.ask(odd_logs, log, told_otherwise(event.several))
        self._part = ask.ask(coverage.parts, self._heard, self._newest, ask.ask(under_key, log))
        others = ask.ask(partial(_under_other_keys, key=key), event.summed)
        self.odd = ask.ask(not_comparable, self._part, odd_log, self._clashing, others)
        """channel, participant, problem: who does not take part, and why."""

    def only(self, rows: DataFrame) -> DataFrame:
        """The rows of logs that take part."""
        return taking_part(rows, self._key, self._left_out)

    @property
    def _left_out(self) -> DataFrame | None:
        return None if self.odd.is_empty else self.odd.frame

    def _taking_part(self, told: Answer) -> Answer:
        return told if self.odd.is_empty else self._ask.ask(_but, told, self.odd)

    def events(self) -> int:
        """How many events there are of logs that take part."""
        return _sum_of_rows(self._taking_part(self._heard), self._ask)

    def entries(self, event: DataFrame) -> tuple[DataFrame, int]:
        """The final logs, and how many entries stand in them as they were read."""
        heard, shown, irregular = map(
            self._taking_part, (self._heard, self._taken, self._irregular)
        )
        unfinished = self._ask.ask(silver.unfinished, self._newest, heard)
        later = if_any(silver.delivered_later(event, unfinished.frame))
        made = later.select(*WHOSE).union(irregular.frame).distinct()
        order = _but(self._order, self._left_out)
        as_read = self._ask.ask(_whole_ones, shown, made)
        return silver.entries(order, made, later), _sum_of_rows(as_read, self._ask)

    def seen(self, bronze: Mapping[Table, DataFrame]) -> Answer:
        """``coverage.seen`` of these."""
        part, newest = map(self._taking_part, (self._part, self._newest))
        bad = F.col("problem").isNotNull() & F.col("log_id").isNotNull()
        order = bronze[LOG_SNAPSHOT].where(bad).select(*WHOSE).distinct()
        events = bronze[DELIVERY_EVENT].where(bad).groupBy("log_id").agg(F.max("seq").alias("seq"))
        return self._ask.ask(_seen, part, newest, order.union(self._holes(bronze)), events)

    def _holes(self, bronze: Mapping[Table, DataFrame]) -> DataFrame:
        """Orders with holes, in a file some of whose rows nobody could even read."""
        snapshot = bronze[LOG_SNAPSHOT]
        unread = snapshot.where("problem IS NOT NULL AND log_id IS NULL").select("file").distinct()
        return (
            self._order.join(F.broadcast(self._irregular.frame), [*WHOSE], "left_semi")
            .join(F.broadcast(unread), "file", "left_semi")
            .select(*WHOSE)
            .distinct()
        )

    def quarantine(self, refused: DataFrame) -> Answer:
        """``refused``, ``bronze.quarantine``, and snapshots that contradict themselves."""
        return self._ask.ask(_with_clashing, refused, self._clashing)


def _with_clashing(refused: DataFrame, clashing: DataFrame) -> DataFrame:
    return refused.unionByName(
        clashing.select(
            F.lit(LOG_SNAPSHOT.name).alias("table"),
            "file",
            F.lit("position.clash").alias("reason"),
            F.lit(None).cast("string").alias("log_id"),
            F.lit(None).cast("bigint").alias("seq"),
            "rows",
        )
    )


def _under_key(rows: DataFrame, key: str | None) -> DataFrame:
    return rows.where(F.col("key_id") == F.lit(key))


def _under_other_keys(heard: DataFrame, key: str | None) -> DataFrame:
    is_other = F.col("channel").isNotNull() & (F.col("key_id") != F.lit(key))
    return heard.where(is_other).select(*WHOSE)


def _without_older(shown: DataFrame, older: DataFrame) -> DataFrame:
    return shown.join(F.broadcast(older), [*WHOSE, *silver.SNAPSHOT], "left_anti")


def _whole_ones(shown: DataFrame, made: DataFrame) -> DataFrame:
    """Of snapshots those that nothing has to be added to."""
    return _but(shown, made)


def _seen(part: DataFrame, newest: DataFrame, order: DataFrame, events: DataFrame) -> DataFrame:
    """``order``: whose has bad rows; ``events``: of logs with some, the last bad ``seq``."""
    refused = order.withColumn("seq", F.lit(None).cast("bigint"))
    bad = part.join(events, "log_id").select(*WHOSE, "seq")
    return coverage.seen(part, newest, refused.union(bad))


def _sum_of_rows(summed: Answer, ask: Beside) -> int:
    (found,) = ask.ask(lambda told: told.agg(F.sum("rows").alias("rows")), summed).dicts()
    rows = found["rows"]
    return rows if isinstance(rows, int) else 0


def taking_part(rows: DataFrame, key: str | None, odd: DataFrame | None) -> DataFrame:
    """The rows of logs under that key, but for those of ``odd`` (none: nobody's is)."""
    return _but(rows.where(F.col("key_id") == F.lit(key)), odd)


def _but(rows: DataFrame, odd: DataFrame | None) -> DataFrame:
    if odd is None:
        return rows
    return rows.join(F.broadcast(odd.select(*WHOSE).distinct()), [*WHOSE], "left_anti")


def main_key(log: Answer | DataFrame, ask: Beside) -> str | None:
    """The key that most participants recorded under; None if there is no log."""
    first = ask.ask(_most_used, log).dicts()
    return str(first[0]["key_id"]) if first else None


def _most_used(log: DataFrame) -> DataFrame:
    counted = log.groupBy("key_id").agg(
        F.countDistinct("participant").alias("people"), F.sum("rows").alias("rows")
    )
    return counted.orderBy(F.desc("people"), F.desc("rows"), "key_id").limit(1)


def odd_logs(log: DataFrame, otherwise: DataFrame) -> DataFrame:
    """log_id: of two owners, or ``told_otherwise``."""
    owners = log.groupBy("log_id").count().where("count > 1").select("log_id")
    return owners.union(otherwise).distinct()


def told_otherwise(told_twice: DataFrame) -> DataFrame:
    """log_id: that are told in two ways."""
    told = [F.col(name) for name in DELIVERY_EVENT.names if name != "schema_version"]
    return (
        told_twice.groupBy("log_id", "seq")
        .agg(F.min(F.xxhash64(*told)).alias("one"), F.max(F.xxhash64(*told)).alias("other"))
        .where("one <> other")
        .select("log_id")
        .distinct()
    )


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
