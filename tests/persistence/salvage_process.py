"""A process that repairs a profile, and is killed at a step of that.

Run as ``python -m tests.persistence.salvage_process PROFILE WHEN NUMBER``: it dies when progress is
told for that time (``progress``), or ``before`` or ``after`` that renaming.
"""

import os
import signal
import sys
from pathlib import Path

from engine.core.ids import UnixMs
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.salvage import salvage
from tests.persistence.conftest import KEY


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    profile, when, number = sys.argv[1:]
    left = int(number)
    rename = Path.rename

    def dying(path: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if when == "before" and not left:
            die()
        done = rename(path, target)
        if when == "after" and not left:
            die()
        return done

    def progress(_share: float) -> bool:
        nonlocal left
        left -= when == "progress"
        if not left:
            die()
        return True

    setattr(Path, "rename", dying)  # noqa: B010 - mypy would have it as a method of Path
    directory = open_profile_directory(Path(profile))
    salvage(directory, KEY, progress, day="2026-11-26", now_ms=UnixMs(1))


if __name__ == "__main__":
    main()
