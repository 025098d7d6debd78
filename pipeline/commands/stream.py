"""``stream``: follow logs as they grow, with a live page; a new start goes on where it stopped."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.commands import say

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "stream"
HELP: Final = "follow delivery logs as they grow, and keep a live page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, help="directory with delivery logs")
    parser.add_argument("--every", type=int, default=5, metavar="SECONDS", help="default 5")
    parser.add_argument(
        "--once", action="store_true", help="stop when everything that is there was read"
    )


def run(arguments: argparse.Namespace, spark: "SparkSession") -> int:
    """Until it is interrupted, unless ``--once``."""
    from pipeline.report.live import live_page, write_whole  # noqa: PLC0415 - loads Spark
    from pipeline.stream import LIVE_KINDS, StreamPlaces, start  # noqa: PLC0415 - loads Spark

    source: Path = arguments.source
    if not source.is_dir():
        raise NotADirectoryError(f"{source}: no such directory")
    places = StreamPlaces(Path(arguments.out))
    every_s = max(1, arguments.every)

    def show(sums: "DataFrame") -> None:
        rows = [row.asDict() for row in sums.toLocalIterator()]
        now_ms = time.time_ns() // 1_000_000
        text = live_page(rows, LIVE_KINDS, now_ms=now_ms, every_s=every_s)
        write_whole(places.page, text)

    write_whole(
        places.page,
        live_page([], LIVE_KINDS, now_ms=time.time_ns() // 1_000_000, every_s=every_s),
    )
    query = start(spark, source, places, every_s=every_s, written=show)
    say(f"live page: {places.page}")
    try:
        if arguments.once:
            query.processAllAvailable()
        else:
            query.awaitTermination()
    except KeyboardInterrupt:
        say("stopped")
    finally:
        query.stop()
    return 0
