"""The command line: a thin registry of ``pipeline.commands``, which know what they do.

Opens the Spark session that a command asks for, and turns what it raises into one line and an exit
code.  It refuses to know tables.
"""

import argparse
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from engine.core.errors import ChatError
from pipeline.commands import audit, bench, complain, ingest, report, simulate, stream
from pipeline.duck.errors import DuckError
from pipeline.java import JavaMissing
from pipeline.session import SessionSettings, is_asked_for, session
from pipeline.sources.files import PARQUET, find_pieces
from pipeline.tables import LakeError
from pipeline.tables.jars import DELTA, session_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRONG_USE: Final = 2
INTERRUPTED: Final = 130
SMALL_INPUT_BYTES: Final = 64 * 1024 * 1024
"""About 300 000 rows in delivery logs."""
PACKED: Final = 3
"""So many times as many rows, at least, have room in Parquet.

Spark's session for little input compiles nothing and has one task: for three million rows in 60 MB
of exports it takes half as much processor time again as the usual one.
"""
_CAUSE: Final = "Caused by: "
_FREE: Final = "; make room and start it again, it goes on with what is whole"
_HINTS: Final = {
    "No space left on device": _FREE,
    "Disk quota exceeded": _FREE,
    "File too large": _FREE,
    "Read-only file system": "; choose another --out",
    "Not a directory": "; choose another --out",
    "Permission denied": "; choose another --out, or have it opened to you",
}
"""What the system says when it refuses something, and what one can do about it."""


class Command(Protocol):
    """A module of ``pipeline.commands``."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def refused(self, arguments: argparse.Namespace) -> int | None:
        """Before Spark starts, which takes seconds: the exit code, if it need not.

        Why was said, or is raised as by ``run``.
        """

    def run(self, arguments: argparse.Namespace, spark: "SparkSession") -> int: ...


COMMANDS: Final[tuple[Command, ...]] = (ingest, audit, report, stream, simulate, bench)


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="causerie-pipeline",
        description="Did every participant end up with the same conversation?  Audits and reports "
        "delivery over many participants' logs, and sweeps simulations.",
        epilog="Exit codes: 0 fine, 1 logs differ, 2 wrong use or nothing to read, 3 done, but "
        "some input could not be read or judged.",
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        one = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(one)
        one.add_argument("--out", required=True, metavar="DIR", help="where tables and pages go")
        one.add_argument(
            "--lake", metavar="PLACE", help="where tables are, if not below --out: DIR or s3a://…"
        )
        one.add_argument(
            "--tables",
            choices=("parquet", DELTA),
            help="their format; default: parquet in a directory, delta behind a URL",
        )
        where = one.add_mutually_exclusive_group()
        where.add_argument("--master", help="of Spark; default: all processors of this machine")
        where.add_argument("--remote", metavar="URL", help="of Spark Connect, sc://host:port")
        one.add_argument("--driver-memory", metavar="SIZE", help="for example 4g")
        one.set_defaults(command=command)
    return whole


def main(words: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    try:
        return _refused(arguments) or _run(arguments)
    except (ChatError, JavaMissing, LakeError) as error:
        complain(str(error))
        return WRONG_USE
    except OSError as error:
        complain(_refused_by_system(error))
        return WRONG_USE
    except DuckError as error:
        complain(error.text)
        return WRONG_USE
    except (PySparkException, Py4JError) as error:
        complain(f"Spark could not finish: {gist(str(error))}")
        return WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED


def _refused(arguments: argparse.Namespace) -> int | None:
    command: Command = arguments.command
    if "://" in arguments.out and command not in {ingest, audit}:
        complain(f"{command.NAME}: --out is a directory; --lake says where tables are")
        return WRONG_USE
    _place_for(arguments.out)
    return command.refused(arguments)


def _run(arguments: argparse.Namespace) -> int:
    command: Command = arguments.command
    with session(settings_for(arguments)) as spark:
        return command.run(arguments, spark)


def settings_for(arguments: argparse.Namespace) -> SessionSettings:
    """Which session the command takes, by what was asked for and how much there is to read."""
    return SessionSettings(
        master=arguments.master,
        remote=arguments.remote,
        driver_memory=arguments.driver_memory,
        is_small=_is_small(arguments, PACKED),
        needs_java=not (can_do_without_java(arguments) and _is_small(arguments)),
        more=session_options(arguments.lake or arguments.out, arguments.tables, os.environ),
    )


def _place_for(out: str) -> None:
    """Raises OSError if nothing can be written there; nothing is made yet."""
    if "://" in out:
        return
    place = Path(out).absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))


def _refused_by_system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}{_HINTS.get(error.strerror or '', '')}"


def gist(text: str) -> str:
    """Of what Spark says: what our own code raised in a worker, or what the system refused.

    Else it is the innermost cause, or the first line.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = f"{LakeError.__module__}.{LakeError.__name__}: "
    for line in lines:
        if ours in line:
            return line.partition(ours)[2]
    for reason, hint in _HINTS.items():
        if reason in text:
            return f"{reason}{hint}"
    causes = [line.partition(_CAUSE)[2] for line in lines if line.startswith(_CAUSE)]
    return next(iter([*causes[-1:], *lines]), "it says no more")


def _is_small(arguments: argparse.Namespace, packed: int = 1) -> bool:
    """Whether the inputs and what was read before are a few files of a few megabytes together.

    ``packed``: how many times a byte of Parquet counts.
    """
    inputs: Sequence[Path] | None = getattr(arguments, "inputs", None)
    if not inputs:
        return False
    try:
        pieces = find_pieces([*inputs, Path(arguments.out) / "bronze"])
        sizes = (piece.bytes * (packed if piece.kind == PARQUET else 1) for piece in pieces)
        return sum(sizes) <= SMALL_INPUT_BYTES
    except OSError:
        return False  # Reading it says what is wrong.


def can_do_without_java(arguments: argparse.Namespace) -> bool:
    """Unless Spark was asked for, or tables are where or as only Spark has them."""
    if arguments.command not in {ingest, audit, report}:
        return False
    asked = arguments.master or arguments.remote or arguments.driver_memory
    return not asked and not is_asked_for() and not ingest.lake_of(arguments).takes_spark()
