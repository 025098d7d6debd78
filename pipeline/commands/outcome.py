"""How ``audit`` and ``report`` hand out what they found: on the terminal, as JSON, as JUnit XML.

Both take the same options and end with the same exit code.  With ``--json`` standard output holds
one JSON object and nothing else; everything said on the way goes to standard error.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.commands import complain, say, tell
from pipeline.summary import IDENTICAL, Refused, Summary, as_json, as_junit, headline, lines
from pipeline.witness import AGREEING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.beside import Answer, Beside
    from pipeline.lake import Lake
    from pipeline.prepare import Prepared

FINE: Final = 0
DIFFERS: Final = 1
NOTHING: Final = 2
LOOK: Final = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grace-ms",
        type=int,
        default=0,
        metavar="N",
        help="how far the clocks of who joins or leaves and of who writes may differ (default 0)",
    )
    parser.add_argument(
        "--json", action="store_true", help="what was found as JSON on standard output"
    )
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="verdicts as JUnit XML as well, for CI"
    )


def speaker(arguments: argparse.Namespace) -> Callable[[str], None]:
    """For what is said before there is a result."""
    return tell if arguments.json else say


def nothing(arguments: argparse.Namespace, command: str) -> int:
    """There was nothing to work with; why was said."""
    _write(arguments, Summary(command=command, exit_code=NOTHING, counts={}))
    return NOTHING


def summarised(  # noqa: PLR0913 -- where, of what, and what was said
    command: str,
    spark: "SparkSession",
    lake: "Lake",
    prepared: "Prepared",
    ask: "Beside",
    *,
    verdicts: "Answer",
    witnesses: "Answer",
    notices: Sequence[str],
) -> Summary:
    from pipeline.evidence import (  # noqa: PLC0415 - loads Spark
        Evidence,
        counted,
        covered,
        differing,
        judged,
        stories,
        tried,
    )

    event = lake.silver(spark, "event")
    evidence = Evidence(
        coverage=lake.silver(spark, "coverage"),
        event=event,
        entry=lake.silver(spark, "entry"),
        message=lake.silver(spark, "message"),
    )
    counts, logs = ask.told(counted, verdicts), ask.told(judged, verdicts)
    coverage = ask.told(covered, ask.fetched(evidence.coverage))
    differs = any(verdict not in AGREEING for verdict in counts)
    return Summary(
        command=command,
        exit_code=_exit_code(counts, prepared.quarantined, notices),
        counts=counts,
        logs=logs,
        stories=stories(evidence, *ask.told(differing, verdicts, witnesses)) if differs else (),
        coverage=coverage,
        tried=tried(event),
        notices=notices,
        refused=[Refused(file=file, reason=why, rows=rows) for file, why, rows in prepared.refused],
    )


def _exit_code(counts: dict[str, int], quarantined: int, notices: Sequence[str]) -> int:
    """A log that differs counts for more than anything that has to be looked at."""
    if any(verdict not in AGREEING for verdict in counts):
        return DIFFERS
    is_whole = not quarantined and not notices and set(counts) <= {IDENTICAL}
    return FINE if is_whole else LOOK


def hand_out(summary: Summary, arguments: argparse.Namespace, *, page: Path | None = None) -> int:
    """``page``: of a report, which is named instead of all that is on it."""
    for line in summary.notices:
        complain(line)
    if not arguments.json:
        found = lines(summary) if page is None else [f"{headline(summary.counts)}: {page}"]
        for line in found:
            say(line)
    _write(arguments, summary)
    return summary.exit_code


def _write(arguments: argparse.Namespace, summary: Summary) -> None:
    if arguments.json:
        for line in as_json(summary).splitlines():
            say(line)
    if arguments.junit:
        arguments.junit.parent.mkdir(parents=True, exist_ok=True)
        arguments.junit.write_text(as_junit(summary), encoding="utf-8")
