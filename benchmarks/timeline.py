"""The timeline: CPU of a frame while one scrolls over messages as large as they can be.

Each of 64 KB, folded as it comes and then unfolded: code of 5 000 lines, one endless line, lists,
quotes and marks without end.  Beside them short messages, which are what a timeline is made of, and
messages that everybody reacts to, answers or edits.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import TypedDict, cast

from benchmarks.report import Figure, Report, figure_of, percentile

FRAME_BAR_MS = 16.0
TAKEN_BAR_MIB = 32.0
ROUNDS = 5


class Measured(TypedDict):
    parse_ms: float
    folded_ms: list[float]
    unfold_ms: float
    unfolded_ms: list[float]
    taken_mib: float


class Round(TypedDict):
    large: dict[str, Measured]
    discussed: dict[str, list[float]]


def run(quick: bool) -> Report:
    report = Report(name="timeline")
    rounds = [_measured() for _ in range(1 if quick else ROUNDS)]
    for name in rounds[0]["large"]:
        report.figures += _figures(name, [one["large"][name] for one in rounds])
    for name in rounds[0]["discussed"]:
        worst = [percentile(one["discussed"][name], 0.99) for one in rounds]
        report.figures.append(figure_of(name, worst, "ms", FRAME_BAR_MS))
    return report


def _measured() -> Round:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.timeline_work"],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return cast("Round", json.loads(done.stdout))


def _figures(name: str, rounds: Sequence[Measured]) -> list[Figure]:
    folded = [percentile(one["folded_ms"], 0.99) for one in rounds]
    unfolded = [percentile(one["unfolded_ms"], 0.99) for one in rounds]
    return [
        figure_of(f"{name}: parsed when stored", [one["parse_ms"] for one in rounds], "ms"),
        figure_of(f"{name}: frame p99", folded, "ms", FRAME_BAR_MS),
        figure_of(f"{name}: unfolded, frame p99", unfolded, "ms", FRAME_BAR_MS),
        figure_of(f"{name}: the click that unfolds", [one["unfold_ms"] for one in rounds], "ms"),
        figure_of(f"{name}: memory", [one["taken_mib"] for one in rounds], "MiB", TAKEN_BAR_MIB),
    ]
