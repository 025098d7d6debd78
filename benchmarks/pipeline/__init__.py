"""The pipeline measured: audits of 1, 10 and 100 million events with known faults, and ingesting.

Ten million are also audited by a cluster of one worker and of two, and from the logs that people
hand in to the last witness.  Each measurement has a process, and so a Java, of its own.  Spark,
DuckDB with the same plan and with every row looked at, and Polars work on the same files in one
run.  Data lie in a temporary directory and are removed size by size.  Wall clock counts; processor
time stands beside it, as other work on the machine does not lengthen it as much.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import duckdb

from benchmarks.pipeline.generator import Injected, generate
from benchmarks.pipeline.handed_in import hand_in
from benchmarks.pipeline.logs import write_logs
from benchmarks.pipeline.spark_work import HEAP, wrong
from benchmarks.report import Figure, Report
from pipeline.commands.outcome import DIFFERS, FINE, LOOK

MILLION: Final = 1_000_000
SIZES: Final = (MILLION, 10 * MILLION, 100 * MILLION)
QUICK_SIZES: Final = (MILLION, 10 * MILLION)
BESIDE: Final = 10 * MILLION
"""The plain ways sort everything; more than this takes them minutes."""
AUDIT_BARS_S: Final = {10 * MILLION: 8.0, 100 * MILLION: 60.0}
DUCKDB_BARS: Final = {10 * MILLION: 4.0, 100 * MILLION: 1.5}
"""Times DuckDB's."""
SHUFFLE_BAR: Final = 40.0
"""Bytes for an event."""
GROWTH_BAR: Final = 1.2
WORKERS_BAR: Final = 1.6
FROM_LOGS_BAR: Final = 8.0
"""Times DuckDB's."""
FROM_LOGS_RUNS: Final = 3
INGEST_BAR: Final = 300_000
TINY_BAR_S: Final = 12.0
ONE_MORE_BAR_S: Final = 15.0
CROWD: Final = 100
"""So many logs of one channel, each of as many messages, of which one comes later."""
WAYS: Final[Mapping[str, Sequence[str]]] = {
    "without Java": (),
    "with Spark": ("--master", "local[*]"),
}
"""Of small inputs: as users run it, and with Spark asked for."""
PATIENCE_S: Final = 3_600
PARTICIPANTS: Final = 10
MESSAGES: Final = 20_000

Seen = dict[str, Any]
Bar = tuple[float, Literal["at most", "at least"]]


def run(quick: bool) -> Report:
    report = Report(name="pipeline")
    if quick:
        report.notes.append("100 million events were not audited: not quick")
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as made:
        place = Path(made)
        report.figures += tiny(place / "tiny")
        report.figures += one_more(place / "crowd")
        report.figures += ingest(place / "ingest", MESSAGES // 10 if quick else MESSAGES)
        report.figures += audits(place, QUICK_SIZES if quick else SIZES)
    return report


def audits(place: Path, sizes: Sequence[int]) -> list[Figure]:
    figures: list[Figure] = []
    seconds: dict[int, float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=place) as made:
            injected = generate(Path(made), size)
            seen = in_process("spark_work", "audit", made)
            figures += audit_figures(size, injected, seen)
            warm = statistics.median(one["seconds"] for one in seen["warm"])
            seconds[size] = warm / injected.events
            figures += by_duckdb(size, warm, in_process("beside", "hash_join", made))
            if size == BESIDE:
                figures += beside(made)
                figures += workers(made)
                figures += from_logs(Path(made), place / "handed in")
    if 100 * MILLION in seconds:
        growth = seconds[100 * MILLION] / seconds[10 * MILLION]
        name = "time for an event at 100 million, relative to 10 million"
        figures.append(figure(name, [growth], "times", (GROWTH_BAR, "at most")))
    return figures


def audit_figures(size: int, injected: Injected, seen: Seen) -> list[Figure]:
    name = f"{size // MILLION} million events"
    first, warm = seen["first"], seen["warm"]
    runs = [first, *warm]
    moved = [one["shuffle_bytes"] / injected.events for one in runs]
    spilled = float(sum(one["spilled_bytes"] for one in runs))
    bar = at_most(AUDIT_BARS_S.get(size))
    return [
        figure(f"{name}: session start", [seen["session_s"]], "s"),
        figure(f"{name}: its first job", [seen["first_job_s"]], "s"),
        figure(f"{name}: audit, first of a session", [first["seconds"]], "s", bar),
        figure(f"{name}: … its processor time", [first["cpu_seconds"]], "s"),
        figure(f"{name}: audit, later", [one["seconds"] for one in warm], "s"),
        figure(f"{name}: … its processor time", [one["cpu_seconds"] for one in warm], "s"),
        figure(f"{name}: … shuffled for an event", moved, "bytes", at_most(SHUFFLE_BAR)),
        figure(f"{name}: … spilled to disk", [spilled], "bytes", at_most(0)),
        figure(f"{name}: anomalies wrongly told or not told", [seen["wrong"]], "", at_most(0)),
    ]


def by_duckdb(size: int, warm: float, seen: Seen) -> list[Figure]:
    name = f"{size // MILLION} million events"
    ratio = warm / statistics.median(seen["seconds"])
    bar = at_most(DUCKDB_BARS.get(size))
    return [
        figure(f"{name}: the same plan", seen["seconds"], "s", peer="DuckDB"),
        figure(f"{name}: … processor", seen["cpu_seconds"], "s", peer="DuckDB"),
        figure(f"{name}: … wrong", [float(seen["wrong"])], "", peer="DuckDB"),
        figure(f"{name}: audit, later, relative to DuckDB", [ratio], "times", bar),
    ]


def beside(made: str) -> list[Figure]:
    figures: list[Figure] = []
    for way, peer, what in (
        ("every_row", "DuckDB", "every row"),
        ("polars", "Polars", "every row, no causality"),
    ):
        seen, name = in_process("beside", way, made), f"{BESIDE // MILLION} million events"
        figures += [
            figure(f"{name}: {what}", seen["seconds"], "s", peer=peer),
            figure(f"{name}: … processor", seen["cpu_seconds"], "s", peer=peer),
            figure(f"{name}: … wrong", [float(seen["wrong"])], "", peer=peer),
        ]
    return figures


def workers(made: str) -> list[Figure]:
    """Each of one core; the driver takes its share of the same machine."""
    name = f"{BESIDE // MILLION} million events"
    one, two = (
        [run["seconds"] for run in in_process("spark_work", "audit", made, number)["warm"]]
        for number in ("1", "2")
    )
    gain = statistics.median(one) / statistics.median(two)
    return [
        figure(f"{name}: audit, later, by one worker", one, "s"),
        figure(f"{name}: audit, later, by two workers", two, "s"),
        figure(f"{name}: … times as fast by two", [gain], "times", (WORKERS_BAR, "at least")),
    ]


def from_logs(made: Path, place: Path) -> list[Figure]:
    """Whole processes on Parquet exports, in turns: the command on Spark, and one of DuckDB."""
    name = f"{BESIDE // MILLION} million events, from exported logs"
    place.mkdir()
    rows = hand_in(made, place / "logs")
    (place / "made").symlink_to(made)
    ours: list[float] = []
    theirs: list[float] = []
    most_wrong = most_wrong_of_theirs = 0
    for run in range(FROM_LOGS_RUNS):
        out = place / f"out {run}"
        more = ("--master", "local[*]", "--driver-memory", HEAP)
        ours.append(audit_command(place / "logs", out, *more, codes=(DIFFERS,)))
        most_wrong = max(most_wrong, wrong(made, told_in(out)))
        began = time.perf_counter()
        seen = in_process("beside", "handed_in", str(place))
        theirs.append(time.perf_counter() - began)
        most_wrong_of_theirs = max(most_wrong_of_theirs, seen["wrong"])
        shutil.rmtree(out)
    shutil.rmtree(place)
    ratio = statistics.median(ours) / statistics.median(theirs)
    return [
        figure(f"{name}, {rows} rows: command audit", ours, "s"),
        figure(f"{name}: … wrong", [float(most_wrong)], "", at_most(0)),
        figure(f"{name}: one query", theirs, "s", peer="DuckDB"),
        figure(f"{name}: … wrong", [float(most_wrong_of_theirs)], "", peer="DuckDB"),
        figure(f"{name}: … relative to DuckDB", [ratio], "times", (FROM_LOGS_BAR, "at most")),
    ]


def told_in(out: Path) -> set[tuple[object, ...]]:
    """The witnesses that a command left in its tables."""
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT channel, participant, kind, mid, parent_mid FROM read_parquet(?)",
            [f"{out}/audit/witnesses/**/*.parquet"],
        ).fetchall()
    return set(rows)


def ingest(place: Path, messages: int) -> list[Figure]:
    write_logs(place / "logs", PARTICIPANTS, messages)
    seen = in_process("spark_work", "ingest", str(place))
    rows, runs = seen["rows"], seen["ingest"]
    # A few logs are read before Python's workers have started.
    bar: Bar | None = (INGEST_BAR, "at least") if messages == MESSAGES else None
    return [
        figure(f"logs of {rows} rows: read", [rows / r["seconds"] for r in runs], "rows/s", bar),
        figure("… processor time", [r["cpu_seconds"] / rows * 1e6 for r in runs], "µs a row"),
        figure("… read again: rows added", [float(seen["added"])], "", at_most(0)),
        figure("… read again: time", [seen["again"]["seconds"]], "s"),
    ]


def tiny(place: Path) -> list[Figure]:
    """The command on five logs of 20 messages: all of it is starting."""
    write_logs(place / "logs", 5, 20)
    bar: Bar = (TINY_BAR_S, "at most")
    return [
        figure(
            f"command audit, five logs of 20 messages, {name}",
            [audit_command(place / "logs", place / f"{name} {run}", *more) for run in range(3)],
            "s",
            bar,
        )
        for name, more in WAYS.items()
    ]


def one_more(place: Path) -> list[Figure]:
    """The command on a hundred logs of one channel, the last of which comes later."""
    write_logs(place / "logs", CROWD, CROWD)
    last = max((place / "logs").iterdir())
    figures: list[Figure] = []
    for way, more in WAYS.items():
        out = place / way
        aside = last.rename(place / last.name)
        first = audit_command(place / "logs", out / "grown", *more)
        aside.rename(last)
        then = audit_command(place / "logs", out / "grown", *more)
        fresh = audit_command(place / "logs", out / "fresh", *more)
        name = f"command audit, {CROWD} logs of one channel, {way}"
        figures += [
            figure(f"{name}: at once", [first, fresh], "s"),
            figure(f"{name}: one more", [then], "s", (ONE_MORE_BAR_S, "at most")),
        ]
    return figures


def audit_command(logs: Path, out: Path, *more: str, codes: Sequence[int] = (FINE, LOOK)) -> float:
    """Seconds, from the start of Python on.  Members without a log are no fault here."""
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "pipeline", "audit", str(logs), "--out", str(out), *more],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
    )
    if done.returncode not in codes:
        raise RuntimeError(done.stderr)
    return time.perf_counter() - began


def in_process(module: str, what: str, place: str, *more: str) -> Seen:
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", f"benchmarks.pipeline.{module}", what, place, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    seen: Seen = json.loads(done.stdout.splitlines()[-1])
    return seen


def at_most(bar: float | None) -> Bar | None:
    return None if bar is None else (bar, "at most")


def figure(
    name: str, values: list[float], unit: str, bar: Bar | None = None, peer: str | None = None
) -> Figure:
    return Figure(
        figure=name,
        value=statistics.median(values),
        unit=unit,
        spread=(min(values), max(values)),
        bar=None if bar is None else bar[0],
        bar_is="at most" if bar is None else bar[1],
        peer=peer,
    )
