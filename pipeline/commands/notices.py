"""What a reader has to know before believing a verdict, each a line that names the file.

What could not be read, and why; logs that cannot be judged because nobody says since when they
should have messages; clocks so far apart that joining and writing cannot be put in order.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.lake import Lake

CLOCK_MS: Final = 20_000
"""So far may clocks be apart; a Store takes in nothing that is further off."""
MOST: Final = 20

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


def notices(spark: "SparkSession", lake: "Lake", verdicts: "DataFrame") -> list[str]:
    """Beside what is in quarantine."""
    file_of = {
        row["participant"]: row["file"]
        for row in lake.silver(spark, "log").orderBy("participant", "last_seq").collect()
    }
    return [*_without_membership(verdicts, file_of), *_clocks(spark, lake, file_of)]


def _without_membership(verdicts: "DataFrame", file_of: dict[str, str]) -> list[str]:
    from pipeline.audit import UNKNOWN  # noqa: PLC0415 - loads Spark

    unknown = verdicts.where(f"verdict = '{UNKNOWN}'").orderBy("channel", "participant")
    return [
        f"{file_of.get(row['participant'], row['participant'])}: no membership says since when"
        f" {row['participant']} belongs to {row['channel']}: what it lacks cannot be judged"
        for row in unknown.limit(MOST).collect()
    ]


def _clocks(spark: "SparkSession", lake: "Lake", file_of: dict[str, str]) -> list[str]:
    """A Lamport timestamp is the sender's clock or, if that is behind, one more than the last."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - loads Spark

    sent = lake.silver(spark, "event").where(
        "kind = 'sent' AND protocol = 'sds' AND lamport IS NOT NULL"
    )
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
