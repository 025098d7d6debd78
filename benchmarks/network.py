"""Our libp2p and gossip beside py-libp2p's and js-libp2p's: the same work, the same run, loopback.

Each implementation runs as two processes, a server and a client, or a hub and ten leaves; rounds of
all three take turns, so that all meet the same load of the machine.  What only our bars ask for
(idle, churn, bursts of ten thousand in three topologies) is ``network_load.py``'s.  Where a peer
cannot be had (scripts/peers.py), the report says so.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any, Literal

from benchmarks.report import Figure, Report
from scripts import interop, interop_python

HERE = Path(__file__).parent
ROUNDS = 3
LEAVES = 10
PACED, PACE_MS = 200, 20
BURST, LONG_BURST = 1_000, 10_000
ANSWER_TIMEOUT_S = 300.0
RTT_BAR, MESSAGES_BAR = 0.3, 5.0
IDLE_BAR_PERCENT, IDLE_MIB_BAR = 0.3, 0.3
LEAK_BAR_MIB = 4.0
TOPOLOGIES = ("star", "line", "mesh")
FIGURES = {
    "connect": "connect, to the first answer on a stream",
    "rtt": "round trip of 32 bytes on an open stream",
    "requests": "request and response, each on a new stream",
    "messages": "messages of 1 KiB on one stream",
    "bulk": "bulk",
    "paced": "gossip to 10 peers, 1 KiB, 50 a second: latency",
    "paced_share": "gossip to 10 peers, 1 KiB, 50 a second: delivered",
    "burst": "gossip to 10 peers, burst of 1 000 of 1 KiB: deliveries",
    "burst_share": "gossip to 10 peers, burst of 1 000 of 1 KiB: delivered",
}
UNITS = {"connect": "ms", "rtt": "ms", "paced": "ms", "bulk": "MB/s"}
UNITS |= {"paced_share": "%", "burst_share": "%"}

Fields = dict[str, Any]


class NotMeasuredError(Exception):
    """The peer says why, or is silent."""


class Side:
    """One process that takes commands."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address: str = self._read()["address"]

    def ask(self, command: str, **fields: object) -> Fields:
        """Raises NotMeasuredError."""
        assert self._process.stdin is not None  # noqa: S101 -- it is a pipe
        self._process.stdin.write(json.dumps({"command": command, **fields}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Fields:
        assert self._process.stdout is not None  # noqa: S101 -- it is a pipe
        watchdog = Timer(ANSWER_TIMEOUT_S, self._process.kill)
        watchdog.start()
        line = self._process.stdout.readline()
        watchdog.cancel()
        if not line:
            raise NotMeasuredError("it ended or gave no answer")
        answer: Fields = json.loads(line)
        if "failed" in answer:
            raise NotMeasuredError(answer["failed"])
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    messages: int = 50_000
    mib: int = 64

    @contextmanager
    def side(self) -> Iterator[Side]:
        process = subprocess.Popen(  # noqa: S603 -- our own command
            self.command,
            env={**os.environ, **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield Side(process)
        finally:
            process.kill()
            process.communicate()


OURS = Implementation(name="ours", command=(sys.executable, "-m", "benchmarks.network_ours"))
LOAD = Implementation(name="ours", command=(sys.executable, "-m", "benchmarks.network_load"))


def _python() -> Implementation:
    interop_python.ENVIRONMENT.ensure()
    return Implementation(
        name="py-libp2p 0.8.1",
        command=(str(interop_python.ENVIRONMENT.python), "-m", "benchmarks.network_py"),
        environment={"PYTHONPATH": str(interop_python.LOCKED)},
        messages=5_000,
        mib=16,
    )


def _js() -> Implementation:
    interop.ensure()
    command = (str(interop.node()), str(HERE / "network_js.mjs"), str(interop.modules()))
    return Implementation(name="js-libp2p 2.8.11", command=command)


@dataclass
class Results:
    """What every round came to, by implementation and figure."""

    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def add(self, who: str, what: str, value: float) -> None:
        self.values.setdefault((who, what), []).append(value)

    def of(self, who: str, what: str) -> list[float]:
        return self.values.get((who, what), [])


def run(quick: bool) -> Report:
    report = Report(name="network")
    peers = [OURS]
    for name, make in (("py-libp2p", _python), ("js-libp2p", _js)):
        try:
            peers.append(make())
        except (interop.InteropUnavailable, OSError) as reason:
            report.notes.append(f"{name} not run: {reason}")
    results = Results()
    for _ in range(1 if quick else ROUNDS):
        for peer in peers:
            for measure in (_streams, _gossip):
                try:
                    measure(peer, results, quick=quick)
                except NotMeasuredError as reason:
                    report.notes.append(f"{peer.name} not run to the end: {reason}")
    report.figures += _beside(results, peers)
    report.figures += _load_figures(quick, report)
    return report


def _streams(peer: Implementation, results: Results, *, quick: bool) -> None:
    part = 4 if quick else 1
    with ExitStack() as stack:
        server, client = (stack.enter_context(peer.side()) for _ in range(2))
        for what, key, fields in (
            ("connect", "ms", {"times": 20}),
            ("rtt", "ms", {"times": 2_000 // part}),
            ("requests", "per_second", {"times": 400 // part}),
            ("messages", "per_second", {"times": peer.messages // part}),
            ("bulk", "mb_per_second", {"mib": peer.mib // part}),
        ):
            told = client.ask(what, address=server.address, **fields)
            results.add(peer.name, what, told[key])


def _gossip(peer: Implementation, results: Results, *, quick: bool) -> None:
    with ExitStack() as stack:
        hub, leaves = (stack.enter_context(peer.side()) for _ in range(2))
        leaves.ask("leaves", address=hub.ask("hub")["address"], number=LEAVES)
        hub.ask("meshed", number=LEAVES)
        for what, times, pace_ms in (
            ("paced", PACED // (4 if quick else 1), PACE_MS),
            ("burst", BURST, 0),
        ):
            began_ns = hub.ask("publish", times=times, pace_ms=pace_ms)["began_ns"]
            told = leaves.ask("heard", expected=times, quiet_s=3.0)
            came = sum(told["counts"])
            results.add(peer.name, f"{what}_share", 100 * came / (times * LEAVES))
            seconds = (told["last_ns"] - began_ns) / 1e9
            speed = came / seconds if seconds > 0 else 0.0
            results.add(peer.name, what, speed if what == "burst" else told["latency_ms"])


def _beside(results: Results, peers: Sequence[Implementation]) -> list[Figure]:
    figures: list[Figure] = []
    for what, name in FIGURES.items():
        for peer in peers:
            values = results.of(peer.name, what)
            theirs = None if peer is OURS else peer.name
            figures += _figure(name, values, UNITS.get(what, "/s"), peer=theirs)
    for peer in peers[1:]:
        figures += _relative(results, peer, "rtt", "at most", RTT_BAR)
        figures += _relative(results, peer, "messages", "at least", MESSAGES_BAR)
    return figures


def _relative(
    results: Results,
    peer: Implementation,
    what: str,
    bar_is: Literal["at most", "at least"],
    bar: float,
) -> list[Figure]:
    """Round by round; the bars are py-libp2p's."""
    pairs = zip(results.of(OURS.name, what), results.of(peer.name, what), strict=False)
    return _figure(
        f"{FIGURES[what]}, relative to {peer.name}",
        [ours / theirs for ours, theirs in pairs],
        "times",
        bar=bar if peer.name.startswith("py") else None,
        bar_is=bar_is,
    )


def _load_figures(quick: bool, report: Report) -> list[Figure]:
    if sys.platform != "linux":
        report.notes.append("idle, churn and bursts not run: they are read from Linux's /proc")
        return []
    return [*_idle(quick), *_memory(), *_churn(quick), *_bursts(quick)]


def _idle(quick: bool) -> list[Figure]:
    with LOAD.side() as hub, LOAD.side() as leaves:
        leaves.ask("leaves", address=hub.ask("hub")["address"], number=LEAVES)
        hub.ask("meshed", number=LEAVES)
        hub.ask("held")
        shares = [100 * hub.ask("idle", seconds=10 if quick else 60)["share"]]
    return _figure("idle CPU, 10 idle connections", shares, "%", bar=IDLE_BAR_PERCENT)


def _memory() -> list[Figure]:
    number = 100
    with LOAD.side() as hub, LOAD.side() as leaves:
        address = hub.ask("hub")["address"]
        before = hub.ask("held")["bytes"]
        leaves.ask("leaves", address=address, number=number)
        hub.ask("meshed", number=number)
        each = (hub.ask("held")["bytes"] - before) / number / 2**20
    return _figure("memory for each of 100 idle connections", [each], "MiB", bar=IDLE_MIB_BAR)


def _churn(quick: bool) -> list[Figure]:
    times = 1_000 if quick else 10_000
    with LOAD.side() as hub, LOAD.side() as leaves:
        address = hub.ask("hub")["address"]
        leaves.ask("churn", address=address, times=300)  # whatever grows once has grown
        hub.ask("alone")
        before = hub.ask("held")
        leaves.ask("churn", address=address, times=times)
        hub.ask("alone")
        after = hub.ask("held")
    name = f"left of {times} connections that came and went"
    return [
        *_figure(f"{name}: tasks", [after["tasks"] - before["tasks"]], "", bar=0),
        *_figure(f"{name}: sockets and files", [after["files"] - before["files"]], "", bar=0),
        *_figure(
            f"{name}: memory", [(after["bytes"] - before["bytes"]) / 2**20], "MiB", bar=LEAK_BAR_MIB
        ),
    ]


def _bursts(quick: bool) -> list[Figure]:
    figures: list[Figure] = []
    times = LONG_BURST // (5 if quick else 1)
    for topology in TOPOLOGIES:
        with LOAD.side() as nodes:
            told = nodes.ask("burst", topology=topology, times=times)
        name = f"burst of {times} to 10 leaves, {topology}"
        fewest = [float(told["fewest"])]
        figures += _figure(f"{name}: fewest heard", fewest, "", bar=times, bar_is="at least")
        figures += _figure(f"{name}: most heard", [told["most"]], "", bar=times)
        figures += _figure(f"{name}: copies dropped", [told["dropped"]], "")
        figures += _figure(f"{name}: time", [told["seconds"]], "s")
        mib = told["bytes_per_node"] / 2**20
        figures += _figure(f"{name}: memory at its highest, each node", [mib], "MiB")
    return figures


def _figure(  # noqa: PLR0913 - a row of the table
    name: str,
    values: Sequence[float],
    unit: str,
    *,
    bar: float | None = None,
    bar_is: Literal["at most", "at least"] = "at most",
    peer: str | None = None,
) -> list[Figure]:
    """Median and spread; nothing if it was not measured."""
    if not values:
        return []
    return [
        Figure(
            figure=name,
            value=statistics.median(values),
            unit=unit,
            spread=(min(values), max(values)),
            bar=bar,
            bar_is=bar_is,
            peer=peer,
        )
    ]
