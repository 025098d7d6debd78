"""How long an empty profile takes to be filled from a Store node in another process.

Everything but painting: paged, checked, decrypted, put in causal order, durable with every commit
synced, told to the window.  Beside it how late the loop wakes a task meanwhile, and the memory.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.report import Figure, Report, figure_of

COUNT: Final = 5_000
LONG_COUNT: Final = 100_000
ROUNDS: Final = 3
FILL_BAR_S: Final = {COUNT: 3.0, LONG_COUNT: 90.0}
UNLIMITED_BAR_S: Final = 25.0
LATE_BAR_MS: Final = 10.0
PATIENCE_S: Final = 900


def run(quick: bool) -> Report:
    report = Report(name="history")
    report.figures += _filled(COUNT, rounds=1 if quick else ROUNDS)
    if quick:
        report.notes.append("100 000 messages were not filled in: not quick")
    else:
        report.figures += _filled(LONG_COUNT, rounds=1)
        report.figures += _filled(LONG_COUNT, rounds=1, unlimited=True)
    return report


def _filled(count: int, *, rounds: int, unlimited: bool = False) -> list[Figure]:
    """``unlimited``: the Store gives a peer more than 64 MiB a minute, and answers as often."""
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        store = _start_store(count, Path(place), unlimited=unlimited)
        try:
            line = json.loads(store.stdout.readline()) if store.stdout else {}
            runs = [_fill(count, line["address"], line["link"]) for _ in range(rounds)]
        finally:
            store.communicate("\n")
    name = f"{count:,} messages".replace(",", " ")
    if unlimited:
        name += " without a Store's limits"
    bar_s = UNLIMITED_BAR_S if unlimited else FILL_BAR_S[count]
    grown = [one["after_mib"] - one["before_mib"] for one in runs]
    return [
        figure_of(f"{name}: filled in", [r["seconds"] for r in runs], "s", bar=bar_s),
        figure_of(f"{name}: processor time", [r["cpu_seconds"] for r in runs], "s"),
        figure_of(f"{name}: … of it the loop's thread", [r["loop_cpu_seconds"] for r in runs], "s"),
        figure_of(f"{name}: loop delay, p99", [r["late_p99_ms"] for r in runs], "ms", LATE_BAR_MS),
        figure_of(f"{name}: loop delay, longest", [r["late_max_ms"] for r in runs], "ms"),
        figure_of(f"{name}: memory grown by", grown, "MiB"),
    ]


def _start_store(count: int, place: Path, *, unlimited: bool) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.history_store", str(count), str(place)]
    command += ["unlimited"] * unlimited
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _fill(count: int, address: str, link: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        command = [sys.executable, "-m", "benchmarks.history_fill", str(count), place]
        done = subprocess.run(  # noqa: S603 - likewise
            [*command, address, link],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
