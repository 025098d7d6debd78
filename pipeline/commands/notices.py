"""What a reader has to know before believing a verdict, each a line that names the file.

What could not be read, and why; logs that cannot be judged because nobody says since when they
should have messages; clocks so far apart that joining and writing cannot be put in order.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.beside import Answer, Beside
    from pipeline.lake import Lake

CLOCK_MS: Final = 20_000
"""So far may clocks be apart; a Store takes in nothing that is further off."""
SAID_MS: Final = 10_000
"""A clock that is off by less is put right without a word."""
MOST: Final = 20
NAMED: Final = 5
MOST_SPAN_MS: Final = 10**15

_FILE_REASONS: Final = {
    "file.absent": "there is no such file",
    "file.corrupt": "it is damaged, or was cut off",
    "file.locked": "another program has locked it; try again when that is done",
    "file.not_a_log": "this is neither a delivery log nor an export of one",
    "file.unreadable": "it cannot be opened for reading",
    "file.version": "it was written under another version of the contract",
}


def refused_text(file: str, reason: str, rows: int) -> str:
    """Of a file in quarantine, or of rows of it."""
    if reason in _FILE_REASONS:
        return f"{file}: {_FILE_REASONS[reason]} ({reason})"
    return f"{file}: {rows} row{'' if rows == 1 else 's'} against the contract: {reason}"


def notices(spark: "SparkSession", lake: "Lake", verdicts: "Answer", ask: "Beside") -> list[str]:
    """Beside what is in quarantine."""
    log, coverage, clock = (
        ask.fetched(lake.silver(spark, name)) for name in ("log", "coverage", "clock")
    )
    file_of = ask.told(_file_of, log)
    found = [
        *ask.told(partial(_limits, file_of), coverage),
        *ask.told(_absent, coverage),
        *ask.told(partial(_without_membership, file_of), verdicts),
    ]
    clocks = ask.told(partial(_clocks, file_of), clock)
    return [*found, *(clocks or _lamport_clocks(lake.silver(spark, "event"), file_of))]


def _file_of(log: "DataFrame") -> dict[str, str]:
    """By participant: the last of whose logs."""
    rows = log.orderBy("participant", "last_seq").collect()
    return {row["participant"]: row["file"] for row in rows}


_LIMITS: Final = {
    "other key": "it was recorded under another key than most: it is compared with none",
    "clash": "it contradicts itself, two rows under one number or place: it is not compared",
    "overlap": "two logs tell of the same time, and a recorder writes one: neither is compared",
    "two beginnings": "two logs, and neither continues the other: neither is compared",
    "refused": "rows of it break the contract: what it lacks was not observed",
    "gap": "its recorder dropped {dropped} rows: what these told was not observed",
    "first file": "what came before is not here: it was not observed live",
    "hole": "numbers of events are left out: it was not observed live as a whole",
    "nothing": "it says nothing of this channel: what its owner has there was not observed",
    "ends early": "{unobserved} messages were sent after its end: they were not observed",
}


def _limits(file_of: Mapping[str, str], coverage: "DataFrame") -> list[str]:
    """What limits a log, a line for each."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - loads Spark

    rows = (
        coverage.select("*", F.explode("problems").alias("problem"))
        .orderBy("channel", "participant", "problem")
        .limit(MOST)
        .collect()
    )
    return [
        f"{file_of.get(row['participant'], row['participant'])}: log of {row['participant']} in"
        f" {row['channel']}: "
        + _LIMITS[row["problem"]].format(dropped=row["dropped"], unobserved=row["unobserved"])
        for row in rows
    ]


def _absent(coverage: "DataFrame") -> list[str]:
    """Members who handed in no log, by channel."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - loads Spark

    is_absent = ~F.col("has_log") & (F.size("problems") == 0)
    rows = (
        coverage.groupBy("channel")
        .agg(
            F.count("*").alias("members"),
            F.count_if(is_absent).alias("absent"),
            F.slice(
                F.array_sort(F.collect_set(F.when(is_absent, F.col("participant")))), 1, NAMED
            ).alias("names"),
        )
        .where("absent > 0")
        .orderBy("channel")
        .limit(MOST)
        .collect()
    )
    return [
        f"{row['channel']}: not observed: {row['absent']} of {row['members']} members handed in no"
        f" log: {', '.join(row['names'])}"
        + (f" and {row['absent'] - NAMED} more" if row["absent"] > NAMED else "")
        for row in rows
    ]


def _without_membership(file_of: Mapping[str, str], verdicts: "DataFrame") -> list[str]:
    from pipeline.audit import UNKNOWN  # noqa: PLC0415 - loads Spark

    unknown = verdicts.where(f"verdict = '{UNKNOWN}'").orderBy("channel", "participant")
    return [
        f"{file_of.get(row['participant'], row['participant'])}: no membership says since when"
        f" {row['participant']} belongs to {row['channel']}: what it lacks cannot be judged"
        for row in unknown.limit(MOST).collect()
    ]


def _clocks(file_of: Mapping[str, str], clock: "DataFrame") -> list[str]:
    """Whose clock is off."""
    off = clock.where(f"abs(offset_ms) >= {SAID_MS}")
    rows = off.orderBy("participant").limit(MOST).collect()
    return [
        f"{file_of.get(row['participant'], row['participant'])}: the clock of {row['participant']}"
        f" is {_span(abs(row['offset_ms']))}"
        f" {'ahead of' if row['offset_ms'] > 0 else 'behind'} {row['others']} of"
        f" {row['partners']} others{_OR_THEIRS if row['partners'] == 1 else ''}: its times are put"
        " right by that"
        for row in rows
    ]


_OR_THEIRS: Final = ", or that one's is off"


def _span(ms: int) -> str:
    """A clock may be off by more than any calendar has."""
    return str(timedelta(milliseconds=ms)) if ms < MOST_SPAN_MS else f"{ms} ms"


def _lamport_clocks(event: "DataFrame", file_of: Mapping[str, str]) -> list[str]:
    """Where no copies were compared: as far as Lamport timestamps tell.

    Such a one is the sender's clock or, if that is behind, one more than the last.
    """
    from pyspark.sql import functions as F  # noqa: PLC0415 - loads Spark

    sent = event.where("kind = 'sent' AND protocol = 'sds' AND lamport IS NOT NULL")
    behind = (
        sent.groupBy("participant", "channel")
        .agg(F.min(F.col("lamport") - F.col("at_ms")).alias("behind_ms"))
        .where(F.col("behind_ms") >= CLOCK_MS)
        .orderBy(F.desc("behind_ms"), "participant", "channel")
    )
    return [
        f"{file_of.get(row['participant'], row['participant'])}: its clock is at least"
        f" {row['behind_ms'] // 1_000} s behind another's in {row['channel']}: who joined before"
        f" a message is uncertain by that much; --grace-ms {row['behind_ms']} leaves it out of the"
        " audit"
        for row in behind.limit(MOST).collect()
    ]
