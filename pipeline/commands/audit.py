"""``audit``: whether everybody ended up with the same conversation, and if not, what differs first.

The verdict of each log and channel is a line; for each log that differs the first witnesses follow,
with what is known of them.  All verdicts and witnesses are in ``audit/`` below ``--out``.
"""

import argparse
from typing import TYPE_CHECKING, Final

from pipeline.commands import ingest, outcome
from pipeline.commands.notices import notices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "audit"
HELP: Final = "verdict for each participant and channel; exit code 1 if logs differ"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    ingest.add_arguments(parser)
    outcome.add_arguments(parser)


def refused(arguments: argparse.Namespace) -> int | None:
    """2 if there is nothing to read and there never was."""
    if ingest.is_nothing(arguments.inputs, ingest.lake_of(arguments)):
        return outcome.nothing(arguments, NAME)
    return None


def run(arguments: argparse.Namespace, spark: "SparkSession") -> int:
    """0, 1 if logs differ, 2 if nothing could be read, 3 if something has to be looked at."""
    from pipeline.audit import audit  # noqa: PLC0415 - loads Spark
    from pipeline.beside import beside  # noqa: PLC0415 - loads Spark
    from pipeline.trust import Observed, gated  # noqa: PLC0415 - loads Spark

    lake = ingest.lake_of(arguments)
    prepared = ingest.read(spark, arguments.inputs, lake, say=outcome.speaker(arguments))
    if prepared is None:
        return outcome.nothing(arguments, NAME)
    with lake.run(spark) as run, beside(spark) as ask:
        judged = audit(lake.audited(spark), lake.steps, grace_ms=max(arguments.grace_ms, 0))
        verdicts, witnesses = gated(judged, Observed.of(spark, lake), ask)
        run.replace("audit/verdicts", verdicts)
        run.replace("audit/witnesses", witnesses)
        run.commit()
        # Still the only writer: the next one would remove what is told of here.
        summary = outcome.summarised(
            NAME,
            spark,
            lake,
            prepared,
            ask,
            notices=notices(spark, lake, verdicts, ask),
            verdicts=verdicts,
            witnesses=witnesses,
        )
    return outcome.hand_out(summary, arguments)
