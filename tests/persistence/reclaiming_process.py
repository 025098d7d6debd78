"""A process that gives the unused room of a profile back, and is killed on the way.

Run as ``python -m tests.persistence.reclaiming_process DIRECTORY WHERE``: a share of the copying in
percent, or ``writing``: once the packed pages go through the log.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from engine.persistence.profile_directory import ProfileDirectory
from engine.persistence.reclaim import reclaim_unused
from tests.persistence.backup_examples import key_of

LOG_BYTES = 100_000


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    directory, where = ProfileDirectory(Path(sys.argv[1])), sys.argv[2]
    log = directory.database.with_name(f"{directory.database.name}-wal")

    def watch() -> None:
        while log.stat().st_size < LOG_BYTES:
            pass
        die()

    def progress(share: float) -> bool:
        if where != "writing" and share * 100 >= int(where):
            die()
        return True

    if where == "writing":
        log.touch()
        threading.Thread(target=watch, daemon=True).start()
    reclaim_unused(directory.database, key_of(directory), progress)


if __name__ == "__main__":
    main()
