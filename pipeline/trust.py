"""The trust gate: which of the audit's findings hold, given what was observed.

The audit compares logs as they are.  What a log had no way of telling is not an anomaly: it becomes
``not observed``.  A log that cannot be compared gets no other verdict than that.  An entry that few
hold, of a sender whose log is not there, is ``unconfirmed``: the logs differ, and nobody can say
which of them is right.  A log that tells of a message otherwise than the others has a ``conflict``.
What was delivered before what it depends on (``early``) is a violation only where the log tells of
everything that happened: the row that says that the other had been given up may be what is lacking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.beside import Answer, Beside
from pipeline.coverage import (
    FIRST_FILE,
    GAP,
    HOLE,
    NOT_COMPARABLE,
    NOTHING,
    REFUSED,
    WHOSE,
    is_during,
)
from pipeline.silver import MINORITY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.audit import Audit
    from pipeline.lake import Lake

CONFLICT: Final = "conflict"
UNCONFIRMED: Final = "unconfirmed"
NOT_OBSERVED: Final = "not observed"
NOT_COMPARED: Final = "not comparable"
_EARLY: Final = "early"
_MISSING: Final = "missing"
_EXTRA: Final = "extra"
_PREFIX: Final = "prefix"
_UNKNOWN: Final = "unknown"
_IDENTICAL: Final = "identical"
_WORSE: Final = ((("causal", "early"), "causal violation"), (("reordered",), "reordered"))
_OWN: Final = (_EXTRA, _MISSING, UNCONFIRMED, CONFLICT)
_MESSAGE: Final = ("channel", "mid", "lamport")
_TOLD_OF: Final = (*_MESSAGE, "sent_ms", "vouched_by")
_PARTLY: Final = (REFUSED, GAP, FIRST_FILE, HOLE)
"""Problems of logs that do not tell of all that happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The silver tables that the gate goes by."""

    coverage: DataFrame
    conflict: DataFrame
    message: DataFrame
    stay: DataFrame
    log: DataFrame

    @classmethod
    def of(cls, spark: "SparkSession", lake: "Lake") -> "Observed":
        """Raises LakeError if nothing was ingested yet."""
        names = ("coverage", "conflict", "message", "stay", "log")
        return cls(**{name: lake.silver(spark, name) for name in names})


def observed_stays(stay: DataFrame, coverage: DataFrame) -> DataFrame:
    """Stays as far as the member's log goes: nothing that was sent later has to be in it."""
    ends = coverage.where("has_log").select(*WHOSE, "until_ms")
    return stay.join(F.broadcast(ends), [*WHOSE], "left").select(
        *WHOSE, "joined_ms", F.least("left_ms", F.try_add("until_ms", F.lit(1))).alias("left_ms")
    )


def gated(judged: "Audit", observed: Observed, ask: Beside) -> tuple[Answer, Answer]:
    """The audit's verdicts and witnesses as far as they hold, and the gate's own.

    Each verdict has ``log_ids``: the logs of its participant that it rests on.
    """
    found, conflict = ask.fetched(judged.witnesses), ask.fetched(observed.conflict)
    of_witnesses = ask.ask(lambda rows: rows.select("channel", "mid").distinct(), found)
    of_conflicts = ask.ask(lambda rows: rows.select("channel", "message_id").distinct(), conflict)
    message = ask.only(observed.message, of_witnesses, ["channel", "mid"])
    texts = ask.only(observed.message, of_conflicts, ["channel", "message_id"])
    coverage = ask.fetched(observed.coverage)
    told = ask.ask(_told, found, message.select(*_TOLD_OF), coverage, observed.stay)
    places = texts.select("channel", "message_id", "place", "lamport")
    kept = ask.ask(_kept, told, conflict, places)
    return ask.ask(_verdicts, judged.verdicts, kept, told, coverage, observed.log), kept


def _told(
    witnesses: DataFrame, message: DataFrame, coverage: DataFrame, stay: DataFrame
) -> DataFrame:
    """The audit's witnesses, with whether the log could not tell, ``is_unseen``.

    ``message``: those that witnesses are of.
    """
    columns = witnesses.columns
    few = message.where(F.col("vouched_by") == MINORITY).select(*_MESSAGE).distinct()
    is_few = F.col("is_few") & (F.col("kind") == _EXTRA)
    lacking = _lacking(witnesses.where(F.col("kind") == _MISSING), message, coverage, stay)
    partly = coverage.where(_is_one_of(_PARTLY)).select(*WHOSE, F.lit(True).alias("is_partly"))
    others = (
        witnesses.where(F.col("kind") != _MISSING)
        .join(F.broadcast(few.withColumn("is_few", F.lit(True))), [*_MESSAGE], "left")
        .join(F.broadcast(partly), [*WHOSE], "left")
        .withColumn("kind", F.when(is_few, UNCONFIRMED).otherwise(F.col("kind")))
        .withColumn("is_unseen", F.coalesce("is_partly", F.lit(False)) & (F.col("kind") == _EARLY))
    )
    lacking = lacking.withColumn("is_unseen", ~F.col("is_whole"))
    both = (rows.select(*columns, "is_unseen") for rows in (lacking, others))
    return reduce(DataFrame.unionByName, both)


def _kept(told: DataFrame, conflict: DataFrame, places: DataFrame) -> DataFrame:
    """The witnesses that hold, and those of conflicts."""
    seen = told.where("NOT is_unseen").drop("is_unseen")
    own = _conflicting(conflict, places)
    return seen.unionByName(own, allowMissingColumns=True).select(*seen.columns)


def _lacking(
    missing: DataFrame, message: DataFrame, coverage: DataFrame, stay: DataFrame
) -> DataFrame:
    """Of what is missing that which had to be there, with whether the log could tell."""
    sent = message.select(*_MESSAGE, "sent_ms")
    due = observed_stays(stay, coverage)
    whole = coverage.select(*WHOSE, "is_whole")
    is_due = F.col("sent_ms").isNull() | is_during(F.col("sent_ms"))
    there = (
        missing.join(sent, [*_MESSAGE])
        .join(F.broadcast(due), [*WHOSE])
        .where(is_due)
        .select(*WHOSE, "mid", "lamport")
        .distinct()
    )
    return missing.join(there, [*WHOSE, "mid", "lamport"], "left_semi").join(
        F.broadcast(whole), [*WHOSE]
    )


def _conflicting(conflict: DataFrame, places: DataFrame) -> DataFrame:
    """A witness for each log and message of which it tells otherwise."""
    first = places.groupBy("channel", "message_id").agg(
        F.min("place").alias("place"), F.min("lamport").alias("lamport")
    )
    whose = conflict.select(*WHOSE, "mid", "message_id").distinct()
    return whose.join(first, ["channel", "message_id"], "left").withColumn("kind", F.lit(CONFLICT))


def _verdicts(
    verdicts: DataFrame,
    witnesses: DataFrame,
    told: DataFrame,
    coverage: DataFrame,
    log: DataFrame,
) -> DataFrame:
    """``witnesses``: those that hold; ``told``: also of what a log had no way of telling of."""
    hidden = told.where("is_unseen").select(*WHOSE).distinct()
    kinds = [name for names, _ in _WORSE for name in names if name in verdicts.columns]
    counted = [*kinds, *_OWN]
    first = F.when(F.col("place").isNotNull(), F.struct("place", "kind", "message_id"))
    counts = witnesses.groupBy(*WHOSE).agg(
        *(F.count_if(F.col("kind") == kind).alias(f"n_{kind}") for kind in counted),
        F.min(first).alias("first"),
    )
    judged = verdicts.join(
        F.broadcast(coverage.where("has_log").select(*WHOSE, "unobserved")), [*WHOSE]
    )
    rows = judged.join(counts, [*WHOSE], "left").join(
        F.broadcast(hidden.withColumn("is_hidden", F.lit(True))), [*WHOSE], "left"
    )
    own = rows.fillna(0, [f"n_{kind}" for kind in counted]).select(
        *WHOSE,
        _worst(kinds).alias("verdict"),
        "expected",
        "held",
        *(F.col(f"n_{kind}").alias(kind) for kind in counted),
        F.col("first.place").alias("first_place"),
        F.col("first.kind").alias("first_kind"),
        F.col("first.message_id").alias("first_message_id"),
    )
    whole = own.unionByName(_unjudged(coverage), allowMissingColumns=True).fillna(
        0, [*counted, "expected", "held"]
    )
    logs = log.groupBy("participant").agg(F.sort_array(F.collect_set("log_id")).alias("log_ids"))
    return whole.join(F.broadcast(logs), "participant", "left").select(*whole.columns, "log_ids")


def _worst(kinds: list[str]) -> Column:
    """Of a row with the audit's verdict, what is left of its counts, and its coverage."""
    is_unseen = F.coalesce("is_hidden", F.lit(False)) | (F.col("unobserved") > 0)
    found = F.when(F.col(f"n_{CONFLICT}") > 0, CONFLICT)
    for names, verdict in _WORSE:
        numbers = [F.col(f"n_{name}") for name in names if name in kinds]
        if numbers:
            found = found.when(reduce(Column.__add__, numbers) > 0, verdict)
    is_missing = F.col(f"n_{_MISSING}") > 0
    return (
        found.when(F.col(f"n_{_EXTRA}") > 0, _EXTRA)
        .when(is_missing & (F.col("verdict") == _PREFIX), _PREFIX)
        .when(is_missing, _MISSING)
        .when(F.col(f"n_{UNCONFIRMED}") > 0, UNCONFIRMED)
        .when(is_unseen, NOT_OBSERVED)
        .when(F.col("verdict") == _UNKNOWN, _UNKNOWN)
        .otherwise(_IDENTICAL)
    )


def _unjudged(coverage: DataFrame) -> DataFrame:
    """Logs of which nothing can be told."""
    is_odd = _is_one_of(NOT_COMPARABLE)
    is_silent = F.array_contains("problems", NOTHING)
    return (
        coverage.where("NOT has_log")
        .withColumn("verdict", F.when(is_odd, NOT_COMPARED).when(is_silent, NOT_OBSERVED))
        .where("verdict IS NOT NULL")
        .select(*WHOSE, "verdict")
    )


def _is_one_of(problems: Sequence[str]) -> Column:
    return F.arrays_overlap("problems", F.array(*map(F.lit, problems)))
