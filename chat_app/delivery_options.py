"""The command line's options and commands about records of deliveries."""

import argparse
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

from engine.core.errors import ConfigError
from engine.delivery.pseudonym import parse_key

P = TypeVar("P", bound=argparse.ArgumentParser)

FORMATS: Final = ("parquet", "jsonl")
_AGO: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_MAX_KEY_CHARACTERS: Final = 1_024
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MOMENTS: Final = "a time such as 2026-11-20 or 2026-11-20T13:45 (UTC), or ago: 90m, 36h, 7d"


def add_record_options(
    parser: argparse.ArgumentParser,
    *,
    default: str | None = None,
    where: str = "in the profile",
) -> None:
    """``default``: SUPPRESS in a command, so that it does not undo what was said before it."""
    parser.add_argument(
        "--record-delivery",
        nargs="?",
        const="",
        default=default,
        type=_optional_path,
        metavar="DIR",
        help=f"record what happens to messages, without text and names (default: {where})",
    )
    parser.add_argument(
        "--record-delivery-key-file",
        dest="record_delivery_key",
        type=_key_in,
        default=default,
        metavar="FILE",
        help="holds the key of the test group, as another member was shown it; -: standard input",
    )
    parser.add_argument(
        "--record-delivery-key", type=_key_itself, default=default, help=argparse.SUPPRESS
    )


def add_export_commands(
    commands: "argparse._SubParsersAction[P]",
    add_profile: Callable[[argparse.ArgumentParser], None],
) -> None:
    log = commands.add_parser("export-log", help="recorded deliveries as Parquet or JSON lines")
    add_profile(log)
    log.add_argument("--logs", type=_path, metavar="PATH", help="a log, or a directory of them")
    _add_export(log)
    store = commands.add_parser("export-store", help="what a Store holds, without its payloads")
    add_profile(store)
    source = store.add_mutually_exclusive_group(required=True)
    source.add_argument("--store", metavar="MULTIADDR", help="a node that serves Store")
    source.add_argument(
        "--archive", type=_path, metavar="FILE", help="archive.db of a node of ours"
    )
    store.add_argument("--topics", nargs="+", metavar="TOPIC", help="content topics (default: all)")
    _add_export(store)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="parquet")
    parser.add_argument("--since", type=moment_ms, metavar="TIME", help=_MOMENTS)
    parser.add_argument("--until", type=moment_ms, metavar="TIME", help="likewise")
    parser.add_argument(
        "--out", type=_path, required=True, metavar="DIR", help="a directory that is made"
    )


def moment_ms(text: str) -> int:
    """Unix milliseconds.  An argparse type."""
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            span = timedelta(**{_UNITS[ago[2]]: int(ago[1])})
            moment = datetime.now(tz=UTC) - span
        else:
            moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        found = int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        found = -1
    if found < 0:
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: allowed is {_MOMENTS}")
    return found


def _key_in(name: str) -> str:
    """The key in a file.  An argparse type."""
    try:
        if name == "-":
            text = sys.stdin.read(_MAX_KEY_CHARACTERS)
        else:
            with _path(name).open(encoding="ascii") as file:
                text = file.read(_MAX_KEY_CHARACTERS)
        parse_key(text.strip())
    except ConfigError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from error
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(f"{name}: holds no key") from None
    return text.strip()


def _key_itself(_key: str) -> str:
    """What everybody on the machine can read in the list of processes is no secret."""
    raise argparse.ArgumentTypeError(
        "others on this machine see what stands on a command line. Put the key into a file and say"
        " --record-delivery-key-file FILE, or - for standard input; or set [delivery] key"
    )


def _optional_path(text: str) -> Path | str:
    return _path(text) if text else ""


def _path(text: str) -> Path:
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r}: a path is needed")
    return Path(text).expanduser().absolute()
