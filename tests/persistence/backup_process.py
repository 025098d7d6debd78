"""A process that backs a profile up, or restores one, and is killed at a step of that.

Run as ``python -m tests.persistence.backup_process backup|restore PROFILE FILE STEP``.  A STEP is a
number, the share that is done in thousandths, or the name of a function at whose call it dies.
"""

import os
import signal
import sys
from pathlib import Path

from engine.core.ids import UnixMs
from engine.persistence import backup, backup_file, restore
from engine.persistence.backup import new_secret, write_backup
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.restore import restore_backup
from tests.persistence.backup_examples import CHEAP, WORDS, place_in, source_of


def die() -> bool:
    os.kill(os.getpid(), signal.SIGKILL)
    return False


def die_in(name: str) -> None:
    for module in (backup, backup_file, restore):
        if hasattr(module, name):
            setattr(module, name, lambda *_, **__: die())


def main() -> None:
    what, profile, file, step = sys.argv[1:]
    share = int(step) / 1000 if step.isdigit() else 2.0
    if not step.isdigit():
        die_in(step)

    def progress(done: float) -> bool:
        return die() if done >= share else True

    directory = open_profile_directory(Path(profile))
    if what == "backup":
        source = source_of(directory)
        secret = new_secret(WORDS, CHEAP)
        write_backup(source, Path(file), secret, created_ms=UnixMs(2), progress=progress)
    else:
        restore_backup(Path(file), WORDS, place_in(directory), progress)


if __name__ == "__main__":
    main()
