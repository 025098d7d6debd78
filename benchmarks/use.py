"""What three windows take while their people talk: texts, pictures, GIFs, emoji, large pictures.

Three real processes in one group, each with its window and desktop session, do the same things at
the same time; after each the resident memory is read (``/proc/PID/smaps_rollup``; Linux only).  The
share of a process (PSS) counts what several processes use together, as Qt's libraries, by parts.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Report, figure_of
from benchmarks.use_peer import PICTURES, make_profile
from benchmarks.use_pictures import make_pictures

RESIDENT_BAR_MIB = 150.0
ROUNDS = 3
NAMES = ("Ines", "Maya", "Tomas")
Readings = dict[str, dict[str, float]]


def run(quick: bool) -> Report:
    report = Report(name="use")
    rounds = [window for _ in range(1 if quick else ROUNDS) for window in one_round()]
    phases = list(rounds[0])
    for phase in phases:
        found = [window[phase]["rss"] for window in rounds]
        report.figures.append(figure_of(f"resident, {phase}", found, "MiB"))
    for key, name, bar in (
        ("rss", "resident, the most of all phases", RESIDENT_BAR_MIB),
        ("pss", "its share, the most of all phases", None),
        ("private", "its own, the most of all phases", None),
    ):
        most = [max(reading[key] for reading in window.values()) for window in rounds]
        report.figures.append(figure_of(name, most, "MiB", bar))
    grown = [window[phases[-1]]["rss"] - window[phases[0]]["rss"] for window in rounds]
    report.notes.append(
        f"grown from the first to the last phase: {statistics.median(grown):.0f} MiB"
    )
    return report


def one_round() -> list[Readings]:
    """By phase, of each window."""
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        first = _peer(Path(place) / NAMES[0], NAMES[0], "")
        link = str(_next(first, "link")["link"])
        peers = [first, *(_peer(Path(place) / name, name, link) for name in NAMES[1:])]
        readings: list[Readings] = [{} for _ in peers]
        while all(said := [_next(peer, "phase") for peer in peers]):
            for peer, found, one in zip(peers, readings, said, strict=True):
                phase = str(one.pop("phase"))
                found[phase] = {key: float(str(value)) for key, value in one.items()}
                _go_on(peer)
        for peer in peers:
            peer.wait(timeout=60)
    return readings


def _peer(directory: Path, name: str, link: str) -> "subprocess.Popen[str]":
    asyncio.run(make_profile(directory, name))
    make_pictures(directory / PICTURES, name)
    screen = {} if os.environ.get("DISPLAY") else {"QT_QPA_PLATFORM": "offscreen"}
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "benchmarks.use_window", str(directory), name, link],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | screen,
    )


def _next(peer: "subprocess.Popen[str]", key: str) -> dict[str, object]:
    """Empty once it has ended."""
    for line in peer.stdout or ():
        said: dict[str, object] = json.loads(line)
        if key in said:
            return said
    return {}


def _go_on(peer: "subprocess.Popen[str]") -> None:
    if peer.stdin is not None and peer.poll() is None:
        peer.stdin.write("\n")
        peer.stdin.flush()
