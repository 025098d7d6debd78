"""From Enter in one process to painted in another, durable in both, over loopback.

Two real processes with real windows (offscreen), encrypted profiles on disk, embedded nodes and
sealed envelopes.  The clock starts just before the key press and stops after the receiver's paint.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from benchmarks.report import Report, figure_of, percentile

MESSAGES = 250
QUICK = 60
P50_BAR_MS = 20.0
P99_BAR_MS = 60.0
ROUNDS = 3


def run(quick: bool) -> Report:
    return measure("e2e", "", quick=quick, bars_ms=(P50_BAR_MS, P99_BAR_MS))


def measure(
    name_of_report: str, begin: str, *, quick: bool, bars_ms: tuple[float, float | None]
) -> Report:
    """``begin`` is what the first peer is told instead of a link: see ``window_peer``."""
    report = Report(name=name_of_report)
    rounds = [one_round(QUICK if quick else MESSAGES, begin) for _ in range(1 if quick else ROUNDS)]
    for name, share, bar in (("p50", 0.5, bars_ms[0]), ("p99", 0.99, bars_ms[1])):
        values = [percentile(one, share) for one in rounds]
        shown = f"Enter to shown by the other process, {name}"
        report.figures.append(figure_of(shown, values, "ms", bar))
    return report


def one_round(count: int, begin: str, *, record: bool = False) -> list[float]:
    """Milliseconds of every message of one run; ``record``: both record deliveries meanwhile."""
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        sender = _peer(Path(place) / "sender", "Ines", begin, count, record=record)
        link = str(_next(sender, "link"))
        receiver = _peer(Path(place) / "receiver", "Maya", link, 0, record=record)
        for peer in (sender, receiver):
            _next(peer, "ready")
        for peer in (sender, receiver):
            _go_on(peer)
        entered = dict(_times(sender, "entered", count))
        shown = dict(_times(receiver, "shown", count, starting="Ines "))
        for peer in (sender, receiver):
            _go_on(peer)
            peer.wait(timeout=60)
    return [(shown[text] - at_ns) / 1e6 for text, at_ns in entered.items()]


def _peer(
    directory: Path, name: str, link: str, count: int, *, record: bool
) -> "subprocess.Popen[str]":
    arguments = [str(directory), name, link, str(count), *(["record"] if record else [])]
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "benchmarks.window_peer", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
    )


def _output(peer: "subprocess.Popen[str]") -> IO[str]:
    if peer.stdout is None:
        raise RuntimeError("the peer has no output")
    return peer.stdout


def _next(peer: "subprocess.Popen[str]", key: str) -> object:
    for line in _output(peer):
        said = json.loads(line)
        if key in said:
            value: object = said[key]
            return value
    raise RuntimeError(f"a peer ended before it said {key}")


def _times(
    peer: "subprocess.Popen[str]", key: str, count: int, *, starting: str = ""
) -> list[tuple[str, int]]:
    """(text, monotonic ns) of ``count`` lines with this key."""
    found: list[tuple[str, int]] = []
    while len(found) < count:
        line = _output(peer).readline()
        if not line:
            raise RuntimeError(f"a peer ended after {len(found)} of {count} messages")
        said = json.loads(line)
        if key in said and str(said[key]).startswith(starting):
            found.append((said[key], said["ns"]))
    return found


def _go_on(peer: "subprocess.Popen[str]") -> None:
    if peer.stdin is None:
        raise RuntimeError("the peer has no input")
    peer.stdin.write("\n")
    peer.stdin.flush()
