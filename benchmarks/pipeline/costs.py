"""What a piece of work on Spark costs: wall clock, processor time, and what its stages moved.

Processor time is that of this process and all its descendants, so Java, its compiler threads and
collector, and Spark's Python workers are in it.  Bytes are Spark's own account of its stages, from
the status store that also feeds its web page.  Over Spark Connect there is none, and they are 0.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    seconds: float
    cpu_seconds: float
    shuffle_bytes: int = 0
    """Written by all stages, as it went over the wire (compressed)."""
    spilled_bytes: int = 0
    """To disk."""
    stages: int = 0
    tasks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stages:
    shuffle_bytes: int = 0
    spilled_bytes: int = 0
    stages: int = 0
    tasks: int = 0


def cpu_seconds() -> float:
    """Of this process and its descendants, living ones and those that were waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # It has ended meanwhile.
            fields = path.read_text().rpartition(")")[2].split()
            number = int(path.parent.name)
            parents[number] = int(fields[1])
            ticks[number] = sum(map(int, fields[11:15]))
    ours = newest = {os.getpid()}
    while newest:
        newest = {number for number, parent in parents.items() if parent in ours} - ours
        ours = ours | newest
    return sum(ticks.get(number, 0) for number in ours) / os.sysconf("SC_CLK_TCK")


def cost_of(spark: "SparkSession", work: Callable[[], Result]) -> tuple[Result, Cost]:
    before = _stages(spark)
    cpu, began = cpu_seconds(), time.perf_counter()
    result = work()
    seconds, spent = time.perf_counter() - began, cpu_seconds() - cpu
    after = _stages(spark)
    return result, Cost(
        seconds=seconds,
        cpu_seconds=spent,
        shuffle_bytes=after.shuffle_bytes - before.shuffle_bytes,
        spilled_bytes=after.spilled_bytes - before.spilled_bytes,
        stages=after.stages - before.stages,
        tasks=after.tasks - before.tasks,
    )


def _stages(spark: "SparkSession") -> _Stages:
    """Of everything that has run in this session so far."""
    if not hasattr(spark, "_jsparkSession"):
        return _Stages()  # A client of Spark Connect.
    context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - Python has no other way to it
    context.listenerBus().waitUntilEmpty()
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - likewise
    nothing = jvm.java.util.ArrayList()
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - likewise
    no_quantiles = gateway.new_array(jvm.double, 0)
    listed = context.statusStore().stageList(nothing, False, False, no_quantiles, nothing)
    shuffled = spilled = tasks = stages = 0
    for at in range(listed.size()):
        stage = listed.apply(at)
        stages += stage.status().toString() == "COMPLETE"
        shuffled += stage.shuffleWriteBytes()
        spilled += stage.diskBytesSpilled()
        tasks += stage.numCompleteTasks()
    return _Stages(shuffle_bytes=shuffled, spilled_bytes=spilled, stages=stages, tasks=tasks)
