"""The delivery view with the inspector at 200 messages a second, its graph, and the network view.

A process for each round; frames are CPU time of the thread, with Qt's offscreen platform, and all
of the page is painted, also what a window of usual height would not show.  The bar is for frames
that paint something: a clock of 50 Hz counts two more for each of these, in which nothing happens.
"""

import json
import os
import subprocess
import sys

from benchmarks.report import Report, figure_of, percentile

FRAME_BAR_MS = 8.0
PAN_BAR_MS = 16.0
"""As scrolling in the timeline."""
ROUNDS = 5
_NAMES = {
    "first": "graph of 10 000 messages: first sight",
    "pan": "graph of 10 000 messages: pan, frame p99",
    "pan over all": "graph of 10 000 messages: pan with all in sight, frame p99",
}


def run(quick: bool) -> Report:
    report = Report(name="delivery_view")
    rounds = [_measured() for _ in range(1 if quick else ROUNDS)]
    opening = [each["busy"]["opening"][0] for each in rounds]
    frames, of_all = (
        [percentile(each["busy"][kind], 0.99) for each in rounds]
        for kind in ("frames", "all frames")
    )
    report.figures.append(figure_of("opening it", opening, "ms"))
    name = "200 messages a second, the inspector open, too: frame p99"
    report.figures.append(figure_of(name, frames, "ms", FRAME_BAR_MS))
    report.figures.append(figure_of("the same, with the frames that paint nothing", of_all, "ms"))
    for key, words in _NAMES.items():
        bar = None if key == "first" else PAN_BAR_MS
        figures = [percentile(each["graph"][key], 0.99) for each in rounds]
        report.figures.append(figure_of(words, figures, "ms", bar))
    looks = [percentile(each["network"]["frames"], 0.99) for each in rounds]
    name = "network view of 64 peers, all changed: frame p99"
    report.figures.append(figure_of(name, looks, "ms"))
    return report


def _measured() -> dict[str, dict[str, list[float]]]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.delivery_view_work"],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, dict[str, list[float]]] = json.loads(done.stdout)
    return found
