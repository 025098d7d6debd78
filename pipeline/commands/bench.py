"""``bench``: the audit measured where Spark runs, on made-up events with known faults.

For whoever wants to know what their machine or cluster does; the project's own figures come from
``python -m benchmarks pipeline``.  What makes the events is in the source tree and needs DuckDB, so
an installed package says that instead.
"""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.commands import complain, say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "bench"
HELP: Final = "measure digest pass and audit on made-up events with known faults"
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


def run(arguments: argparse.Namespace, spark: "SparkSession") -> int:
    """0, 1 if a fault was not found or one found that is none, 2 if it cannot be measured."""
    try:
        from benchmarks.pipeline.generator import generate  # noqa: PLC0415 - of the source tree
        from benchmarks.pipeline.spark_work import measure_audit  # noqa: PLC0415 - likewise
    except ModuleNotFoundError as lacking:
        complain(f"bench needs the source tree and its development tools: no {lacking.name}")
        return 2
    if not FEWEST <= arguments.events <= MOST:
        complain(f"bench: --events is {FEWEST} to {MOST}")
        return 2
    out = Path(arguments.out).absolute()
    place = out / "events"
    if place.exists():
        complain(f"bench: {place} is there already")
        return 2
    place.mkdir(parents=True)
    made = generate(place, arguments.events)
    seen = measure_audit(spark, place)
    (out / "bench.json").write_text(json.dumps({"events": made.events, **seen}, indent=1) + "\n")
    for name in ("first", "warm"):
        cost = seen[name]
        say(f"audit, {name}: {cost['seconds']:.2f} s, {cost['shuffle_bytes'] / 2**20:.1f} MiB")
    for cost in seen["digest"]:
        rate = made.events / cost["seconds"] / 1e6
        moved = cost["shuffle_bytes"] / made.events
        say(f"digest pass: {rate:.2f} million events a second, {moved:.2f} bytes each shuffled")
    say(f"faults not found, or found and not there: {seen['wrong']}")
    return 1 if seen["wrong"] else 0
