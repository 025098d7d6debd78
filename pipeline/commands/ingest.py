"""``ingest``: read what is new into bronze and silver tables; without new input nothing changes."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.commands import complain, say
from pipeline.commands.notices import refused_text
from pipeline.sources.files import find_pieces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.lake import Lake
    from pipeline.prepare import Prepared

NAME: Final = "ingest"
HELP: Final = "read logs and exports into tables below --out"
_NO_LOG: Final = "there is no delivery log and no export of one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", nargs="+", type=Path, help="delivery logs, exports, directories of them"
    )


def refused(arguments: argparse.Namespace) -> int | None:
    """2 if there is nothing to read and there never was."""
    return 2 if is_nothing(arguments.inputs, lake_of(arguments)) else None


def is_nothing(inputs: Sequence[Path], lake: "Lake") -> bool:
    """Whether there is no file at all and, as far as can be seen without Spark, no table.

    That is said.
    """
    if not lake.is_local or find_pieces(inputs) or lake.silver_state():
        return False
    complain(f"{', '.join(map(str, inputs))}: {_NO_LOG}")
    return True


def run(arguments: argparse.Namespace, spark: "SparkSession") -> int:
    """0, 2 if nothing could be read, 3 if some input was put into quarantine."""
    prepared = read(spark, arguments.inputs, lake_of(arguments))
    if prepared is None:
        return 2
    return 3 if prepared.quarantined else 0


def lake_of(arguments: argparse.Namespace) -> "Lake":
    """Where the tables are that a command works with."""
    from pipeline.lake import Lake  # noqa: PLC0415 - loads Spark

    return Lake(arguments.lake or arguments.out, arguments.tables)


def read(
    spark: "SparkSession",
    inputs: Sequence[Path],
    lake: "Lake",
    *,
    say: Callable[[str], None] = say,
) -> "Prepared | None":
    """Ingest, and say what came of it; None if there is nothing to work with."""
    from pipeline.prepare import prepare  # noqa: PLC0415 - loads Spark

    prepared = prepare(spark, inputs, lake)
    if not lake.silver_state():
        complain(f"{', '.join(map(str, inputs))}: {_NO_LOG}")
        return None
    rows = ", ".join(f"{count} {table}" for table, count in prepared.rows.items() if count)
    say(f"read {prepared.files} files: {rows}" if prepared.is_new else "nothing new")
    for file, reason, refused in prepared.refused:
        complain(refused_text(file, reason, refused))
    if not lake.silver(spark, "log").limit(1).count():
        complain("nothing of what was named could be read")
        return None
    return prepared
