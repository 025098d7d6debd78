"""What honest people notice while somebody floods the node between them.

Three processes: the node, with all services and a small archive, which measures how late its loop
wakes a task (a desktop's node shares that loop with the window); two people who say twenty texts a
second to each other through it; and, in every second run, attackers who do everything at once.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Final

from benchmarks.network_ours import TOPIC, Leaf
from benchmarks.report import Figure, Report, percentile
from engine.core.waku import WakuMessage

ROUNDS: Final = 3
SECONDS: Final = 10
QUICK_SECONDS: Final = 4
PER_SECOND: Final = 20
IN_TIME_MS: Final = 1_000.0
TEXT_BYTES: Final = 1_500
SHARE_BAR: Final = 0.95
LATE_BAR_MS: Final = 20.0


def run(quick: bool) -> Report:
    report = Report(name="floods")
    seconds = QUICK_SECONDS if quick else SECONDS
    runs = [
        (one_run(seconds, flooded=False), one_run(seconds, flooded=True))
        for _ in range(1 if quick else ROUNDS)
    ]
    calm, flooded = zip(*runs, strict=True)
    shares = [two["in_time"] / one["in_time"] for one, two in runs]
    report.figures.append(
        _figure("texts heard within a second, flooded to calm", shares, "", SHARE_BAR, least=True)
    )
    for words, rounds in (("calm", calm), ("flooded", flooded)):
        bar = LATE_BAR_MS if words == "flooded" else None
        late = [one["late_p99_ms"] for one in rounds]
        heard = [one["heard_p99_ms"] for one in rounds]
        report.figures.append(_figure(f"{words}: from said to heard, p99", heard, "ms"))
        report.figures.append(_figure(f"{words}: the node's loop wakes late, p99", late, "ms", bar))
    taken = [one["taken_mib"] for one in flooded]
    report.figures.append(_figure("flooded: bytes that came to the node", taken, "MiB"))
    return report


def one_run(seconds: int, *, flooded: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        node = _process("node", place)
        address = str(json.loads(_line(node))["address"])
        attackers = _process("attack", address, seconds + 4) if flooded else None
        if attackers is not None:
            _line(attackers)
        latencies_ms = asyncio.run(_talk(address, seconds))
        told: dict[str, float] = json.loads(node.communicate("\n", timeout=60)[0])
        if attackers is not None:
            attackers.kill()
            attackers.wait()
    in_time = sum(each <= IN_TIME_MS for each in latencies_ms)
    return told | {
        "in_time": in_time / (seconds * PER_SECOND),
        "heard_p99_ms": percentile(latencies_ms, 0.99),
    }


async def _talk(address: str, seconds: int) -> list[float]:
    speaker, hearer = Leaf(), Leaf()
    for one in (speaker, hearer):
        one.node.add_peers([address])
        await one.node.start()
    while not (speaker.node.status().peers and hearer.node.status().peers):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)  # So that both are in the mesh.
    due_s = time.monotonic()
    for _ in range(seconds * PER_SECOND):
        payload = time.monotonic_ns().to_bytes(8, "big") + os.urandom(TEXT_BYTES)
        await speaker.node.publish(
            WakuMessage(payload=payload, content_topic=TOPIC, timestamp_ns=time.time_ns())
        )
        due_s += 1 / PER_SECOND
        await asyncio.sleep(max(due_s - time.monotonic(), 0))
    await asyncio.sleep(IN_TIME_MS / 1_000)
    for one in (speaker, hearer):
        await one.node.stop()
    return hearer.latencies_ms


def _process(*arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.floods_work", *map(str, arguments)]
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _line(process: "subprocess.Popen[str]") -> str:
    output: IO[str] | None = process.stdout
    line = "" if output is None else output.readline()
    if not line:
        raise RuntimeError("a process of the benchmark ended early")
    return line


def _figure(
    name: str, values: Sequence[float], unit: str, bar: float | None = None, *, least: bool = False
) -> Figure:
    return Figure(
        figure=name,
        value=statistics.median(values),
        unit=unit,
        spread=(min(values), max(values)),
        bar=bar,
        bar_is="at least" if least else "at most",
    )
