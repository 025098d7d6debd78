"""Backing a profile up and restoring it: how fast, and how much memory that takes.

``python -m benchmarks.backup MEGABYTES`` measures a profile of another size than the usual one.
Half of a profile is its database, half are chunks of files.  The same is done with a profile of a
tenth: memory is flat if both grow alike.  A backup's time includes reading it again, and both times
include Argon2id; the growth is what comes on top of its 64 MiB.  What comes back is compared with
what was there by hashes: all rows of the database but those that a restore makes anew, all chunks.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final, Literal

from msgspec import Struct

from benchmarks.backup_work import MEGABYTE
from benchmarks.report import Figure, Report, figure_of

PLACE: Final = Path("build/bench")
MEGABYTES: Final = 400
QUICK_MEGABYTES: Final = 40
ROUNDS: Final = 5
QUICK_ROUNDS: Final = 2
SMALLER: Final = 10
PATIENCE_S: Final = 1_800
SPEED_BAR: Final = 60.0


class _Run(Struct, frozen=True):
    seconds: float
    grown_mib: float
    peak_mib: float
    """Of the whole process, with Argon2id."""


class _Profile:
    """In ``place``, and what backing it up and restoring it took, round by round."""

    def __init__(self, place: Path, megabytes: int) -> None:
        self._place = place
        self._file = place / "file"
        _work("make", place / "profile", str(megabytes))
        self.size = _size_of(place / "profile")
        self._digest = _work("digest", place / "profile", "")
        self.backups: list[_Run] = []
        self.restores: list[_Run] = []

    def measure(self) -> None:
        there = self._place / "there"
        self.backups.append(_measured("backup", self._place / "profile", self._file))
        self.restores.append(_measured("restore", there, self._file))
        if _work("digest", there, "") != self._digest:
            raise RuntimeError("what came back is not what was there")
        shutil.rmtree(there)
        self._file.unlink()


def run(quick: bool) -> Report:
    return measured(
        QUICK_MEGABYTES if quick else MEGABYTES, rounds=QUICK_ROUNDS if quick else ROUNDS
    )


def measured(megabytes: int, *, rounds: int) -> Report:
    report = Report(name="backup")
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE) as made:
        large = _Profile(Path(made) / "large", megabytes)
        small = _Profile(Path(made) / "small", max(megabytes // SMALLER, 1))
        for _ in range(rounds):
            large.measure()
            small.measure()
    report.figures += [
        *_figures("backup", large, large.backups, small, small.backups),
        *_figures("restore", large, large.restores, small, small.restores),
    ]
    report.notes.append(f"a profile of {large.size / MEGABYTE:.0f} MB, {rounds} rounds")
    return report


def _figures(
    what: Literal["backup", "restore"],
    large: _Profile,
    of_large: list[_Run],
    small: _Profile,
    of_small: list[_Run],
) -> list[Figure]:
    speeds = [large.size / MEGABYTE / run.seconds for run in of_large]
    name = f"{what}: peak of resident memory, growth"
    return [
        Figure(
            figure=what,
            value=median(speeds),
            unit="MB/s",
            spread=(min(speeds), max(speeds)),
            bar=SPEED_BAR,
            bar_is="at least",
        ),
        figure_of(name, [run.grown_mib for run in of_large], "MiB"),
        figure_of(f"{what}: peak of resident memory", [run.peak_mib for run in of_large], "MiB"),
        figure_of(
            f"{name}, {small.size / MEGABYTE:.0f} MB", [run.grown_mib for run in of_small], "MiB"
        ),
    ]


def _size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _measured(what: str, profile: Path, file: Path) -> _Run:
    said = json.loads(_work(what, profile, str(file)))
    return _Run(said["seconds"], said["grown_mib"], said["peak_mib"])


def _work(what: str, profile: Path, third: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "benchmarks.backup_work", what, str(profile), third],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return done.stdout


if __name__ == "__main__":
    print(measured(int(sys.argv[1]), rounds=ROUNDS).as_table())
