"""A node for a thousand: the real ``causerie node``, and a thousand edge devices that use it.

The node has its archive and all services; its settings file gives it the room.  Each device is a
whole edge node at an address of its own, subscribed to one of a hundred topics, ten to a topic.
They come sixty-four at a time; then fifty messages a second are pushed, each to ten others.  Two
processes hold the devices, on the same cores as the node.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks.network import Fields, Implementation, Side
from benchmarks.report import Figure, Report, percentile

ROUNDS: Final = 3
SECONDS: Final = 30
QUICK_SECONDS: Final = 10
DEVICES: Final = 1_000
PER_TOPIC: Final = 10
PER_SECOND: Final = 50
LOADS: Final = 2
AT_ONCE: Final = 64
PATIENCE_S: Final = 180.0
DELIVERED_BAR: Final = 0.999
SETTINGS: Final = """
[network]
listen_host = "127.0.0.1"
discovery = false
[node]
devices = 1100
subscribers = 1100
"""
_HITCHES: Final = ("refused", "busy", "limit", "dropped", "too_many", "timeout", "lost", "gave_way")


class OneRun(Struct, kw_only=True):
    connected: float = 0
    subscribed: float = 0
    seconds: float = 0
    connect_ms: float = 0
    accepted: float = 0
    delivered: float = 0
    p50_ms: float = 0
    p99_ms: float = 0
    quiet_cpu: float = 0
    cpu: float = 0
    alone_mib: float = 0
    full_mib: float = 0
    end_mib: float = 0
    hitches: dict[str, int] = {}


def run(quick: bool) -> Report:
    report = Report(name="node")
    seconds = QUICK_SECONDS if quick else SECONDS
    runs = [one_run(seconds) for _ in range(1 if quick else ROUNDS)]
    add = report.figures.append
    add(_figure("devices connected", [one.connected for one in runs], ""))
    add(_figure("devices subscribed", [one.subscribed for one in runs], "", DEVICES))
    add(_figure("until all are subscribed, 64 at a time", [one.seconds for one in runs], "s"))
    add(
        _figure("the node's processor time for one to come", [one.connect_ms for one in runs], "ms")
    )
    add(_figure("pushes accepted", [one.accepted for one in runs], ""))
    add(_figure("deliveries, share", [one.delivered for one in runs], "", DELIVERED_BAR))
    add(_figure("from push to filter push, p50", [one.p50_ms for one in runs], "ms"))
    add(_figure("from push to filter push, p99", [one.p99_ms for one in runs], "ms"))
    add(_figure("the node's share of a core, nobody speaks", [one.quiet_cpu for one in runs], ""))
    add(_figure("the node's share of a core, 50 messages/s", [one.cpu for one in runs], ""))
    add(_figure("resident memory alone", [one.alone_mib for one in runs], "MiB"))
    add(_figure("resident memory with all", [one.full_mib for one in runs], "MiB"))
    add(_figure("resident memory at the end", [one.end_mib for one in runs], "MiB"))
    each_kib = [(one.full_mib - one.alone_mib) * 1_024 / max(one.connected, 1) for one in runs]
    add(_figure("resident memory per device", each_kib, "KiB"))
    report.notes.append(
        f"{LOADS} processes with {DEVICES} edge nodes share the cores with the node."
    )
    for number, one in enumerate(runs, start=1):
        told = ", ".join(f"{name} {count}" for name, count in one.hitches.items())
        report.notes.append(f"run {number}, hitches that the node counted: {told or 'none'}")
    return report


def one_run(seconds: int) -> OneRun:
    one = OneRun()
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="causerie-bench-"))
        (Path(place) / "settings.toml").write_text(SETTINGS)
        process, metrics, address = stack.enter_context(_node(place))
        pool = stack.enter_context(ThreadPoolExecutor(LOADS))
        loads = [stack.enter_context(_load(address, number)) for number in range(LOADS)]

        def ask(command: str, **fields: object) -> list[Fields]:
            return list(pool.map(lambda load: load.ask(command, **fields), loads))

        one.alone_mib, used_s = _resident_mib(process.pid), _cpu_s(process.pid)
        came = ask("connect", at_once=AT_ONCE // LOADS, patience_s=PATIENCE_S)
        one.connect_ms = (_cpu_s(process.pid) - used_s) * 1_000 / DEVICES
        one.connected = _metrics(metrics)["connected_peers"]
        one.subscribed = sum(each["subscribed"] for each in came)
        one.seconds = max(each["seconds"] for each in came)
        time.sleep(2)
        one.full_mib = _resident_mib(process.pid)
        one.quiet_cpu = _cpu_while(process.pid, lambda: time.sleep(seconds / 3))
        messages = seconds * PER_SECOND // LOADS
        said: list[Fields] = []
        one.cpu = _cpu_while(
            process.pid,
            lambda: said.extend(ask("talk", messages=messages, per_second=PER_SECOND / LOADS)),
        )
        heard = ask("heard")
        one.accepted = sum(each["accepted"] for each in said) / (messages * LOADS)
        one.delivered = sum(each["heard"] for each in heard) / (messages * LOADS * PER_TOPIC)
        latencies_ms = [ms for each in heard for ms in each["latencies_ms"]]
        one.p50_ms, one.p99_ms = percentile(latencies_ms, 0.5), percentile(latencies_ms, 0.99)
        one.end_mib = _resident_mib(process.pid)
        one.hitches = _hitches(_metrics(metrics))
    return one


@contextmanager
def _node(place: str) -> Iterator[tuple["subprocess.Popen[str]", str, str]]:
    """The process, where its metrics are, and its address."""
    options = ["--profile-dir", place, "--metrics-port", "0"]
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "chat_app", "node", *options], stdout=subprocess.PIPE, text=True
    )
    try:
        metrics, address = (_said(process) for _ in range(2))
        yield process, metrics, address
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _said(process: "subprocess.Popen[str]") -> str:
    line = "" if process.stdout is None else process.stdout.readline()
    if not line:
        raise RuntimeError("the node ended early")
    return line.split()[-1]


@contextmanager
def _load(address: str, number: int) -> Iterator[Side]:
    count = DEVICES // LOADS
    arguments = (address, number * count, count, DEVICES // PER_TOPIC)
    command = (sys.executable, "-m", "benchmarks.node_work", *map(str, arguments))
    with Implementation(name="devices", command=command).side() as side:
        yield side


def _metrics(where: str) -> dict[str, int]:
    with urllib.request.urlopen(where, timeout=60) as page:  # noqa: S310 - our own node
        text = page.read().decode()
    rows = (line.split() for line in text.splitlines() if line.startswith("causerie_"))
    return {row[0].removeprefix("causerie_"): int(float(row[1])) for row in rows}


def _hitches(counts: dict[str, int]) -> dict[str, int]:
    return {
        name: count
        for name, count in counts.items()
        if count and any(word in name for word in _HITCHES)
    }


def _cpu_while(pid: int, work: Callable[[], object]) -> float:
    """The share of a core that the process took meanwhile."""
    began, used = time.perf_counter(), _cpu_s(pid)
    work()
    return (_cpu_s(pid) - used) / (time.perf_counter() - began)


def _cpu_s(pid: int) -> float:
    """User and system time, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _figure(name: str, values: Sequence[float], unit: str, bar: float | None = None) -> Figure:
    return Figure(
        figure=name,
        value=statistics.median(values),
        unit=unit,
        spread=(min(values), max(values)),
        bar=bar,
        bar_is="at least",
    )
