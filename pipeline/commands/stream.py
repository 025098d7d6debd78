"""``stream``: follow logs as they grow, with a live page; a new start goes on where it stopped.

A file that cannot be read is told when that is first seen, stands on the page, and is tried again
at every batch.
"""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.delivery.sqlite_log import DeliveryLogError, LogReader
from pipeline.commands import complain, say
from pipeline.commands.notices import refused_text
from pipeline.sources.files import LOG, find_pieces

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


def refused(arguments: argparse.Namespace) -> None:
    """Raises NotADirectoryError."""
    if not arguments.source.is_dir():
        raise NotADirectoryError(f"{arguments.source}: no such directory")


def run(arguments: argparse.Namespace, spark: "SparkSession") -> int:
    """Until it is interrupted, unless ``--once``; 3 if some file could not be read in the end."""
    from pipeline.report.live import live_page, write_whole  # noqa: PLC0415 - loads Spark
    from pipeline.stream import LIVE_KINDS, StreamPlaces, start  # noqa: PLC0415 - loads Spark

    source: Path = arguments.source
    places = StreamPlaces(Path(arguments.out))
    every_s, told = max(1, arguments.every), set[str]()

    def show_rows(rows: list[dict[str, object]]) -> None:
        unread = unread_files(source)
        for line in unread:
            if line not in told:
                complain(line)
        told.update(unread)
        now_ms = time.time_ns() // 1_000_000
        text = live_page(rows, LIVE_KINDS, now_ms=now_ms, every_s=every_s, unread=unread)
        write_whole(places.page, text)

    def show(sums: "DataFrame") -> None:
        show_rows([row.asDict() for row in sums.toLocalIterator()])

    show_rows([])
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
    return 3 if unread_files(source) else 0


def unread_files(source: Path) -> list[str]:
    """Those that cannot be read now, each with the reason."""
    from pipeline.sources.exports import ExportError, table_in  # noqa: PLC0415 - loads Arrow

    found = []
    for piece in find_pieces([source]):
        try:
            if piece.kind == LOG:
                LogReader(Path(piece.path)).close()
            else:
                table_in(piece)
        except (DeliveryLogError, ExportError) as error:
            found.append(refused_text(piece.path, f"file.{error.reason}", 1))
    return found
