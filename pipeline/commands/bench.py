"""``bench``: the audit measured where Spark runs, on made-up events with known faults.

It shows what a machine or cluster can do; the project's own figures come from
``python -m benchmarks pipeline``.  What makes the events is in the source tree and needs DuckDB, so
an installed package says that instead.  What it does meanwhile is told on standard error: on a busy
machine a minute passes between two lines, and there is nothing else to see.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.commands import complain, say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.pipeline.costs import Cost
    from benchmarks.pipeline.spark_work import Seen

NAME: Final = "bench"
HELP: Final = "measure the audit on made-up events with known faults"
DEFAULT_EVENTS: Final = 1_000_000
FEWEST: Final = 50_000
MOST: Final = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--events",
        type=int,
        default=DEFAULT_EVENTS,
        metavar="N",
        help=f"how many, {FEWEST} and more (default {DEFAULT_EVENTS})",
    )


def refused(arguments: argparse.Namespace) -> int | None:
    """2 if it cannot be measured."""
    try:
        import benchmarks.pipeline.generator  # noqa: F401, PLC0415 - of the source tree
    except ModuleNotFoundError as lacking:
        complain(f"bench needs the source tree and its development tools: no {lacking.name}")
        return 2
    if not FEWEST <= arguments.events <= MOST:
        complain(f"bench: --events is {FEWEST} to {MOST}")
        return 2
    if (place := _events(arguments)).exists():
        complain(f"bench: {place} is there already")
        return 2
    return None


def _events(arguments: argparse.Namespace) -> Path:
    return Path(arguments.out).absolute() / "events"


def run(arguments: argparse.Namespace, spark: "SparkSession") -> int:
    """0, or 1 if a fault was not found or one found that is none."""
    from benchmarks.pipeline.generator import generate  # noqa: PLC0415 - of the source tree

    place = _events(arguments)
    out = place.parent
    place.mkdir(parents=True)
    tell = _teller()
    tell(f"making {arguments.events} events in {place}")
    made = generate(place, arguments.events)
    seen = _measured(spark, place, tell)
    (out / "bench.json").write_text(json.dumps({"events": made.events, **seen}, indent=1) + "\n")
    tell(f"done: {out / 'bench.json'}")
    _say_all(seen)
    return 1 if seen["wrong"] else 0


def _teller() -> Callable[[str], None]:
    """Says on standard error what begins, and when that is."""
    began = time.monotonic()

    def tell(text: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began:6.1f} s  {text}\n")
        sys.stderr.flush()

    return tell


def _measured(spark: "SparkSession", place: Path, tell: Callable[[str], None]) -> "Seen":
    from benchmarks.pipeline import spark_work  # noqa: PLC0415 - of the source tree
    from benchmarks.pipeline.costs import cost_of  # noqa: PLC0415 - likewise

    def audited(which: str) -> "tuple[set[tuple[object, ...]], Cost]":
        tell(f"audit, {which}")
        return cost_of(spark, lambda: spark_work.audited(spark, place))

    found, first = audited("first of the session")
    again, warm = audited("second")
    return {
        "first": asdict(first),
        "warm": asdict(warm),
        "wrong": max(spark_work.wrong(place, found), spark_work.wrong(place, again)),
    }


def _say_all(seen: "Seen") -> None:
    for name in ("first", "warm"):
        cost = seen[name]
        say(f"audit, {name}: {cost['seconds']:.2f} s, {cost['shuffle_bytes'] / 2**20:.1f} MiB")
    say(f"faults not found, or found and not there: {seen['wrong']}")
