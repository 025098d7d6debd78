"""What of a sweep is finished, run by run, so that a killed one goes on where it was.

A worker that has finished a run leaves its row here, in a file that is whole or not there, and the
driver counts them and says how far it is.  Which files belong to a sweep is decided by what rows
follow from: the program's own source.  Rows of another program are never taken up again.  It takes
a directory that driver and workers share; a worker that does not see it leaves nothing, and the
sweep is the same without.
"""

import functools
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import engine
import pipeline
from pipeline.simulate.case import Case, Scalar

EVERY_S: Final = 15.0
_PREFIX: Final = "unfinished-"
_SUFFIX: Final = ".json"
_WIDTH: Final = 16


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows as ``sweep`` gives them, in ``place``."""

    place: Path

    def open(self) -> None:
        """And what another program left is removed.  Raises OSError."""
        self.place.mkdir(parents=True, exist_ok=True)
        for other in self.place.parent.glob(f"{_PREFIX}*"):
            if other != self.place:
                shutil.rmtree(other)

    def keep(self, run: str, row: Sequence[Scalar]) -> None:
        """Nothing, where the directory is not: then this is another machine's disk."""
        if not self.place.is_dir():
            return
        target = self.place / f"{run}{_SUFFIX}"
        made = target.with_name(f".{target.name}-{os.getpid()}")
        made.write_text(json.dumps(list(row)), encoding="utf-8")
        made.replace(target)

    def row(self, case: Case, columns: int) -> tuple[Scalar, ...] | None:
        """None if it has not been made, or is damaged, and so has to be made again."""
        try:
            row = json.loads((self.place / f"{case.run}{_SUFFIX}").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return tuple(row) if isinstance(row, list) and len(row) == columns else None

    def count(self) -> int:
        return sum(1 for _ in self.place.glob(f"[!.]*{_SUFFIX}"))

    def remove(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)


def kept_below(out: Path) -> Kept:
    """Of a sweep whose results go to ``out``, made by this very program."""
    return Kept(out.absolute() / f"{_PREFIX}{source_digest()}")


@functools.cache
def source_digest() -> str:
    """Of all modules of engine and pipeline, as they lie on this disk."""
    digest = hashlib.sha256()
    for package in (engine, pipeline):
        for root in package.__path__:
            for file in sorted(Path(root).rglob("*.py")):
                digest.update(f"{file.relative_to(root)}\n".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:_WIDTH]


@contextmanager
def told(kept: Kept, total: int, tell: Callable[[str], None]) -> Iterator[None]:
    """Meanwhile ``tell`` is called now and then with how far the sweep is."""
    is_over, began, before = threading.Event(), time.monotonic(), kept.count()

    def watch() -> None:
        last = before
        while not is_over.wait(EVERY_S):
            count = kept.count()
            if count != last:
                last = count
                tell(f"{count} of {total} runs, {time.monotonic() - began:.0f} s")

    watcher = threading.Thread(target=watch, name="sweep-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
