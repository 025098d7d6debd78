"""Where the command line says that the passphrase of a profile is.

It comes from a terminal, a file or an open descriptor, never from an argument, which others on the
machine can read.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.core.backup import MAX_PASSPHRASE_CHARACTERS
from engine.core.errors import ConfigError

_MOST_BYTES: Final = 4 * MAX_PASSPHRASE_CHARACTERS + 2
_MOST_DIGITS: Final = 6


class PassphraseSource(Struct, frozen=True, kw_only=True):
    """Where the command line says it is; nowhere: it is asked for on a terminal."""

    file: Path | None = None
    descriptor: int | None = None

    def read(self) -> str | None:
        """The first line; None: nothing was said.  Raises ConfigError."""
        if self.file is not None:
            return _first_line(self.file, "--profile-passphrase-file")
        if self.descriptor is not None:
            return _first_line(self.descriptor, "--profile-passphrase-fd")
        return None


def add_passphrase_options(parser: ArgumentParser, *, default: object) -> None:
    """``default``: of a command argparse.SUPPRESS, so that it undoes nothing said before it."""
    parser.add_argument(
        "--profile-passphrase-file",
        type=Path,
        default=default,
        metavar="FILE",
        help="its first line opens a profile that has a passphrase (default: asked for)",
    )
    parser.add_argument(
        "--profile-passphrase-fd",
        type=_descriptor,
        default=default,
        metavar="N",
        help="likewise, read from this open file descriptor",
    )


def _descriptor(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ArgumentTypeError("allowed is the number of an open descriptor")
    return int(text)


def passphrase_source(asked: Namespace) -> PassphraseSource:
    return PassphraseSource(
        file=asked.profile_passphrase_file, descriptor=asked.profile_passphrase_fd
    )


def _first_line(source: Path | int, option: str) -> str:
    try:
        with open(source, "rb") as opened:  # noqa: PTH123 - a descriptor has no path
            line = opened.readline(_MOST_BYTES)
        return line.decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        named = source if isinstance(source, Path) else f"descriptor {source}"
        raise ConfigError(f"{option}: {named} cannot be read") from error
