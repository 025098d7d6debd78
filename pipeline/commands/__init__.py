"""The commands of ``causerie-pipeline``, a module for each, and how they speak.

Results go to standard output, complaints and progress to standard error.  Exit codes: 0 fine, 1
logs differ, 2 wrong use or nothing that could be read, 3 done, but with something to look at: input
in quarantine, logs that nobody can judge, clocks far apart.  Each is told in a line that names the
file.  Whoever reads along may stop, as ``head`` does: then the rest is not said, but still done.
"""

import os
import sys
from typing import TextIO


def say(text: str) -> None:
    """A line, like all that is said."""
    _write(sys.stdout, text)


def complain(text: str) -> None:
    _write(sys.stderr, f"causerie-pipeline: {text}")


def tell(text: str) -> None:
    """How far something is that takes long."""
    _write(sys.stderr, text)


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(f"{_harmless(text)}\n")
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _harmless(text: str) -> str:
    """Ids and file names are others': none may move the cursor, or make a line of its own."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
