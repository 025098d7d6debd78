"""``audit``: whether everybody ended up with the same conversation, and if not, what differs first.

The verdict of each log and channel is a line, the first witnesses follow; all of them are in
``audit/verdicts`` and ``audit/witnesses`` below ``--out``.
"""

import argparse
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.commands import complain, ingest, say
from pipeline.commands.notices import notices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "audit"
HELP: Final = "verdict for each participant and channel; exit code 1 if logs differ"
_SHOWN_VERDICTS: Final = 50
_SHOWN_WITNESSES: Final = 20
_FINE: Final = ("identical", "unknown")
_SHORT: Final = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    ingest.add_arguments(parser)
    parser.add_argument(
        "--grace-ms",
        type=int,
        default=0,
        metavar="N",
        help="how far the clocks of who joins or leaves and of who writes may differ (default 0)",
    )


def run(arguments: argparse.Namespace, spark: "SparkSession") -> int:
    """0, 1 if logs differ, 2 if nothing could be read, 3 if something has to be looked at."""
    from pipeline.audit import audit  # noqa: PLC0415 - loads Spark
    from pipeline.lake import Lake  # noqa: PLC0415 - loads Spark

    out = Path(arguments.out)
    prepared = ingest.read(spark, arguments.inputs, out)
    if prepared is None:
        return 2
    lake = Lake(out)
    judged = audit(
        spark, lake.audited(), key=secrets.randbits(64), grace_ms=max(arguments.grace_ms, 0)
    )
    judged.verdicts.write.mode("overwrite").parquet(str(out / "audit" / "verdicts"))
    judged.witnesses.write.mode("overwrite").parquet(str(out / "audit" / "witnesses"))
    verdicts = spark.read.schema(judged.verdicts.schema).parquet(str(out / "audit" / "verdicts"))
    differing = _say_verdicts(verdicts)
    told = notices(spark, lake, verdicts)
    for line in told:
        complain(line)
    if differing:
        _say_witnesses(spark.read.parquet(str(out / "audit" / "witnesses")))
        return 1
    return 3 if prepared.quarantined or told else 0


def _say_verdicts(verdicts: "DataFrame") -> int:
    """How many logs differ; those come first."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - loads Spark

    is_fine = F.col("verdict").isin(*_FINE)
    is_known = F.col("verdict") != _FINE[-1]
    counted = verdicts.agg(F.count("*"), F.count_if(is_fine), F.count_if(is_fine & is_known))
    total, fine, agree = counted.collect()[0]
    unknown = f", {fine - agree} cannot be judged" if fine > agree else ""
    say(f"{total} logs of channels: {agree} agree, {total - fine} differ{unknown}")
    order = (is_fine, "channel", "participant")
    for row in verdicts.orderBy(*order).limit(_SHOWN_VERDICTS).collect():
        say(
            f"  {row['channel'][:_SHORT]}  {row['participant'][:_SHORT]}  {row['verdict']}"
            f"  ({row['held']} of {row['expected']})"
        )
    if total > _SHOWN_VERDICTS:
        say(f"  … and {total - _SHOWN_VERDICTS} more")
    return int(total - fine)


def _say_witnesses(witnesses: "DataFrame") -> None:
    say("the first that differ:")
    order = ("channel", "participant", "place")
    for row in witnesses.orderBy(*order).limit(_SHOWN_WITNESSES).collect():
        say(
            f"  {row['channel'][:_SHORT]}  {row['participant'][:_SHORT]}  {row['kind']}:"
            f" {row['message_id']} at place {row['place']}"
        )
