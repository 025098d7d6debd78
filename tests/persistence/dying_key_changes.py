"""A program that makes a change of a key's ways over and over, killed one step later each time.

Its first argument is a directory with ``profile`` and perhaps ``keyring`` in it.  What each try
left goes into ``0``, ``1``, … there; the last of them came to its end.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keyring

from engine.persistence.key import DatabaseKey, KeyPlace
from engine.persistence.key_changes import remove_passphrase, set_passphrase, tend_key_header
from engine.persistence.profile_directory import ProfileDirectory
from tests.persistence.backup_examples import CHEAP
from tests.persistence.desktop_keyring import FileKeyring

MOST_STEPS = 200


def change(name: str, directory: ProfileDirectory, key: bytes, *, in_file: bool) -> None:
    match name:
        case "carry over":
            place = KeyPlace.KEY_FILE if in_file else KeyPlace.SYSTEM_KEYRING
            tend_key_header(directory, DatabaseKey(key=key, place=place))
        case "set":
            set_passphrase(directory, key, "a new passphrase", alone=False, cost=CHEAP)
        case "set alone":
            set_passphrase(directory, key, "a new passphrase", alone=True, cost=CHEAP)
        case _:
            remove_passphrase(directory, key, force_key_file=in_file)


def dying(step: int) -> None:
    """Kill this process before or after a call that changes something outside."""
    left = step

    def count() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def around(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: object, **named: object) -> object:
            count()
            answer = real(*given, **named)
            count()
            return answer

        return called

    for name in ("fsync", "replace", "unlink", "open"):
        setattr(os, name, around(getattr(os, name)))
    for name in ("set_password", "delete_password"):
        setattr(FileKeyring, name, around(getattr(FileKeyring, name)))


def main(work: Path, name: str, key: bytes, where: str) -> None:
    for step in range(MOST_STEPS):
        place = work / f"{step}"
        place.mkdir()
        shutil.copytree(work / "profile", place / "profile")
        if (work / "keyring").exists():
            shutil.copyfile(work / "keyring", place / "keyring")
        child = os.fork()
        if child == 0:
            keyring.set_keyring(FileKeyring(place / "keyring"))
            directory = ProfileDirectory(place / "profile")
            dying(step)
            change(name, directory, key, in_file=where == "file")
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return
    raise AssertionError("it never came to its end")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], bytes.fromhex(sys.argv[3]), sys.argv[4])
