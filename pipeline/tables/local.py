"""Heads on a disk: ``manifest.json``, replaced in one step, and a lock that dies with its process.

It takes a file system whose rename is atomic and whose locks hold: a disk, NFS, CephFS.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pipeline.tables import Head, LakeError

FORMAT: Final = 2
MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class LocalPlace:
    root: Path

    def head(self) -> Head:
        path = self.root / MANIFEST
        try:
            return head_of(path.read_text(encoding="utf-8"), str(path))
        except FileNotFoundError:
            return Head()
        except (OSError, UnicodeDecodeError) as error:
            raise LakeError(f"{path} cannot be read: {error}") from error

    def commit(self, head: Head) -> None:
        if self.head().number != head.number - 1:
            raise LakeError(f"another process has written to {self.root} meanwhile: start again")
        unfinished = self.root / f".{MANIFEST}"
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(text_of(head))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.root / MANIFEST)

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = (self.root / ".lock").open("a")
        except OSError as error:
            raise LakeError(f"{self.root} cannot be written: {error.strerror}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise LakeError(f"another process is writing to {self.root}") from error
            yield


def text_of(head: Head) -> str:
    return json.dumps({"format": FORMAT, **asdict(head)}, indent=1, sort_keys=True)


def head_of(text: str, where: str) -> Head:
    """Raises LakeError."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise LakeError(f"{where} cannot be read: {error}") from error
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise LakeError(f"{where} is of another format than {FORMAT}: name another place")
    try:
        return Head(**found)
    except TypeError as error:
        raise LakeError(f"{where} is not what this program writes: {error}") from error
