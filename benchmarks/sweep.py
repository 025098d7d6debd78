"""A sweep of the simulator on Spark beside the same rows in a local pool of processes.

The same cases go through ``mapInArrow`` and through ``ProcessPoolExecutor``, with as many workers,
in turns and in alternating order; what comes out must be the same to the last bit, also when the
rows are cut into other partitions and come in another order.  Starting Spark's session is printed
apart, and so is its first job, in which Java loads and compiles what any job needs; all the rest
counts: planning, the exchange, and in the pool its processes and what they import.  Beside the
clock stands the processor time of all processes: on a busy machine the clock measures the others.
"""

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from benchmarks.report import Figure, Report
from pipeline.simulate.case import Case
from pipeline.simulate.sweep import row_of, run_case, sweep, tasks_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS: Final = 3
MOST_TIMES: Final = 1.1
QUICK_SHARE: Final = 4
Row: TypeAlias = tuple[object, ...]
Ticks: TypeAlias = dict[int, int]
"""Processor time of each process so far, in the system's ticks."""
Work: TypeAlias = Callable[[], tuple[Sequence[Row], Ticks]]
"""Rows, and the processor time of all processes while they still run."""

_GROUP: Final = Case(sweep="bench", messages=100, loss=0.1, duplication=0.05, reorder=0.1)
_PAIR: Final = Case(sweep="bench", protocol="mvds", messages=100, gap_ms=300_000, offline=0.7)


@dataclass(frozen=True, slots=True)
class Run:
    """``rows`` are the figures of all cases, as text that tells every bit, in a fixed order."""

    seconds: float
    processor_seconds: float
    rows: Sequence[str]


def cases(*, quick: bool) -> list[Case]:
    """About 80 s of work, much of it in some cases and little in most; quick: a quarter."""
    divided = QUICK_SHARE if quick else 1
    sizes = ((16, 8), (8, 32), (4, 32))
    groups = [
        replace(_GROUP, members=size, seed=seed, latency_ms=20 * seed)
        for size, count in sizes
        for seed in range(1, count // divided + 1)
    ]
    pairs = [replace(_PAIR, seed=seed) for seed in range(1, 32 // divided + 1)]
    return [*pairs, *groups]


def run(quick: bool) -> Report:
    from pipeline.java import JavaMissing  # noqa: PLC0415 - other benchmarks need no Spark
    from pipeline.session import SessionSettings, session  # noqa: PLC0415 - likewise

    report, workers = Report(name="sweep"), os.cpu_count() or 1
    settings = SessionSettings(master=f"local[{workers}]", app="benchmarks")
    began = time.perf_counter()
    try:
        with session(settings) as spark:
            started_s = time.perf_counter() - began
            report.figures.append(_figure("starting the session, not counted", [started_s], "s"))
            few = [replace(_PAIR, messages=1, seed=seed) for seed in range(1, workers + 1)]
            first = _timed(lambda: _spark(spark, few, workers))
            report.figures.append(_figure("its first job, not counted", [first.seconds], "s"))
            report.figures += _compare(spark, cases(quick=quick), workers, 2 if quick else ROUNDS)
    except JavaMissing as missing:
        report.notes.append(f"not run: {missing}")
    return report


def _compare(
    spark: "SparkSession", whole: list[Case], workers: int, rounds: int
) -> Sequence[Figure]:
    tasks = tasks_for(whole, workers)
    on_spark: list[Run] = []
    in_pool: list[Run] = []
    for number in range(rounds):
        sides: list[tuple[list[Run], Work]] = [
            (on_spark, lambda: _spark(spark, whole, tasks)),
            (in_pool, lambda: _pool(whole, workers)),
        ]
        for found, work in sides if number % 2 == 0 else reversed(sides):
            found.append(_timed(work))
    small = sorted(whole, key=lambda case: case.work_s)[: len(whole) // 3]
    cut = [_spark(spark, small, 1), _spark(spark, small[::-1], len(small))]
    pairs = list(zip(on_spark, in_pool, strict=True))
    times = [spark_.seconds / pool.seconds for spark_, pool in pairs]
    processor = [one.processor_seconds / other.processor_seconds for one, other in pairs]
    differing = sum(
        one != other
        for spark_, pool in pairs
        for one, other in zip(spark_.rows, pool.rows, strict=True)
    ) + sum(one != other for one, other in zip(*(_bits(rows) for rows, _ in cut), strict=True))
    name = f"{len(whole)} runs"
    return [
        _figure(f"{name} on Spark, {tasks} tasks, {workers} cores",
                [one.seconds for one in on_spark], "s"),
        _figure(f"{name} in a pool of {workers} processes", [one.seconds for one in in_pool], "s"),
        _figure("Spark, relative to the pool", times, "times", MOST_TIMES),
        _figure("processor time, Spark's", [one.processor_seconds for one in on_spark], "s"),
        _figure("processor time, the pool's", [one.processor_seconds for one in in_pool], "s"),
        _figure("processor time, relative to the pool", processor, "times"),
        _figure("rows that differ in any bit", [differing], "", 0),
    ]  # fmt: skip


def _spark(spark: "SparkSession", whole: Sequence[Case], tasks: int) -> tuple[Sequence[Row], Ticks]:
    rows = [tuple(row) for row in sweep(spark, whole, tasks=tasks).collect()]
    return rows, _processor_ticks()


def _pool(whole: Sequence[Case], workers: int) -> tuple[Sequence[Row], Ticks]:
    """The heaviest first, one at a time to whoever is free: the best that a pool can do."""
    ordered = sorted(whole, key=lambda case: -case.work_s)
    context = multiprocessing.get_context("spawn")  # A fork of a process with threads may hang.
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        outcomes = list(pool.map(run_case, ordered, chunksize=1))
        after = _processor_ticks()
    return [row_of(*pair) for pair in zip(ordered, outcomes, strict=True)], after


def _timed(work: Work) -> Run:
    before, began = _processor_ticks(), time.perf_counter()
    rows, after = work()
    seconds = time.perf_counter() - began
    return Run(seconds, _seconds_between(before, after), _bits(rows))


def _bits(rows: Sequence[Row]) -> Sequence[str]:
    """``repr`` of a float is exact."""
    return sorted(map(repr, rows))


def _processor_ticks() -> Ticks:
    """Of this process and all below it, Java and Spark's Python workers too.

    From Linux's ``/proc``; elsewhere there are none, and only the clock tells anything.
    """
    parents: dict[int, int] = {}
    ticks: Ticks = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # It has just ended.
        parents[int(file.parent.name)] = int(fields[1])
        ticks[int(file.parent.name)] = int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {one: ticks[one] for one in ours if one in ticks}


def _seconds_between(before: Ticks, after: Ticks) -> float:
    """Spark's idle workers may end meanwhile: what they did before is no part of it."""
    spent = sum(count - before.get(one, 0) for one, count in after.items())
    return spent / os.sysconf("SC_CLK_TCK") or 1.0


def _figure(name: str, values: Sequence[float], unit: str, at_most: float | None = None) -> Figure:
    return Figure(
        figure=name,
        value=statistics.median(values),
        unit=unit,
        spread=(min(values), max(values)),
        bar=at_most,
    )
