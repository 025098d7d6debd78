"""A process that erases a profile and is killed at its nth change of the disk.

Run as ``python -m tests.chat_app.erasing_process DIRECTORY SETTINGS NTH``.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from engine.persistence.erase import ErasePlace, erase


def main() -> None:
    directory, settings, nth = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    changes = 0

    def dying(change: Callable[..., None]) -> Callable[..., None]:
        def changed(*given: object, **named: object) -> None:
            nonlocal changes
            if changes == nth:
                os.kill(os.getpid(), signal.SIGKILL)
            changes += 1
            change(*given, **named)

        return changed

    for name in ("unlink", "rmdir", "fsync"):
        setattr(os, name, dying(getattr(os, name)))
    erase(ErasePlace(directory=directory, settings=settings, is_own=True))


if __name__ == "__main__":
    main()
