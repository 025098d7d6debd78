"""The commands of ``causerie-pipeline``, a module for each, and how they speak.

Results go to standard output, complaints and progress to standard error.  Exit codes: 0 fine, 1
logs differ, 2 wrong use or nothing that could be read, 3 done, but with something to look at: input
in quarantine, logs that nobody can judge, clocks far apart.  Each is told in a line that names the
file.
"""

import sys


def say(text: str) -> None:
    sys.stdout.write(f"{_harmless(text)}\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    sys.stderr.write(f"causerie-pipeline: {_harmless(text)}\n")


def tell(text: str) -> None:
    """How far something is that takes long."""
    sys.stderr.write(f"{_harmless(text)}\n")
    sys.stderr.flush()


def _harmless(text: str) -> str:
    """Ids and file names are other people's: none may move the cursor or change colours."""
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)
