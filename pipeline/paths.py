"""Names of directories as Spark takes them.

They are never percent-encoded: it would take the signs as they stand.  Where it reads, brackets,
braces, stars and question marks are a pattern unless they are escaped; where it writes they are
not.
"""

import re
from pathlib import Path
from typing import Final

_OF_PATTERNS: Final = re.compile(r"([][{}*?\\])")


def on_this_disk(path: Path) -> str:
    """Of an absolute path, whichever file system is Spark's own."""
    return f"file:///{path.as_posix().removeprefix('/')}"


def to_read(place: Path | str) -> str:
    return _OF_PATTERNS.sub(r"\\\1", str(place))


def from_read(told: str) -> Path:
    """Which directory that is: what ``on_this_disk`` and ``to_read`` made of it taken back."""
    return Path(re.sub(r"\\(.)", r"\1", told).removeprefix("file://"))
