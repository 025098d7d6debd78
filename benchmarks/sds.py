"""The SDS core beside ``@waku/sds``: the same work, the same run, each in a process of its own.

CPU time, without seal and disk.  ``sds_work.py`` and ``sds_js.mjs`` are the workloads; rounds of
ours and theirs alternate, so that both meet the same load of the machine.  Where js-waku cannot be
had (scripts/interop.py), its rows are missing and a line on stderr says why.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchmarks.report import Figure, Report
from scripts import interop

PEER = "@waku/sds 0.0.8"
JS_SCRIPT = Path(__file__).with_name("sds_js.mjs")
ROUNDS = 3
THOUSAND, MILLION = 1_000, 1_000_000
PAIR = 1_000
PAIR_LONG = 10_000
HEARD = 2_000
RETAINED = 50_000
SIZES = (1 * THOUSAND, 10 * THOUSAND, 100 * THOUSAND, MILLION)
JS_SIZES = (1 * THOUSAND, 10 * THOUSAND)
MICRO = {
    "insert_us": "filter of 18 752 bytes: insert an id",
    "lookup_us": "filter of 18 752 bytes: look an id up",
    "to_bytes_us": "filter of 18 752 bytes: to bytes",
    "from_bytes_us": "filter of 18 752 bytes: from bytes",
    "encode_us": "encode a message with 200 entries",
    "decode_us": "decode a message with 200 entries",
}

Values = dict[str, float]


@dataclass
class Results:
    """What every round of every workload came to."""

    rounds: dict[str, list[Values]] = field(default_factory=dict)

    def add(self, name: str, values: Values) -> None:
        self.rounds.setdefault(name, []).append(values)

    def of(self, name: str, key: str) -> list[float]:
        return [values[key] for values in self.rounds.get(name, [])]


def run(quick: bool) -> Report:
    report = Report(name="sds")
    results = Results()
    peer = _peer()
    sizes = SIZES[:-1] if quick else SIZES
    for _ in range(1 if quick else ROUNDS):
        _measure(results, sizes, peer)
    report.figures += _figures(results, sizes)
    return report


def _peer() -> Callable[..., Values] | None:
    try:
        interop.ensure()
    except (interop.InteropUnavailable, OSError) as reason:
        print(f"sds: {PEER} not run: {reason}", file=sys.stderr)
        return None
    command = [str(interop.node()), "--expose-gc", str(JS_SCRIPT), str(interop.modules())]
    return lambda *arguments: _values(command, arguments)


def _ours(*arguments: object) -> Values:
    return _values([sys.executable, "-m", "benchmarks.sds_work"], arguments)


def _values(command: Sequence[str], arguments: Sequence[object]) -> Values:
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, *map(str, arguments)], check=True, text=True, stdout=subprocess.PIPE
    )
    values: Values = json.loads(done.stdout)
    return values


def _measure(results: Results, sizes: Sequence[int], peer: Callable[..., Values] | None) -> None:
    """One round of everything."""
    results.add("pair js", _ours("pair", "js", PAIR))
    if peer:
        results.add("peer pair", peer("pair", PAIR))
    results.add("pair js full", _ours("pair", "js", PAIR, 10 * THOUSAND))
    results.add("pair ours", _ours("pair", "ours", PAIR_LONG))
    for size in sizes:
        results.add(f"receive {size}", _ours("receive", "ours", size, HEARD))
    results.add("load", _ours("load", "ours", sizes[-1]))
    results.add("receive js", _ours("receive", "js", 10 * THOUSAND, 500))
    if peer:
        for size in JS_SIZES:
            results.add(f"peer receive {size}", peer("receive", size, 20))
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        path = Path(place) / "messages"
        _ours("write", "ours", RETAINED, path)
        results.add("memory", _ours("memory", "ours", RETAINED, path))
    if peer:
        results.add("peer memory", peer("memory", 2 * THOUSAND))
    results.add("micro", _ours("micro"))
    if peer:
        results.add("peer micro", peer("micro"))
    if "quiet" not in results.rounds:
        results.add("quiet", _ours("quiet", 20, 20))  # virtual time: every run is the same


def _figures(results: Results, sizes: Sequence[int]) -> list[Figure]:
    figures = [
        *_throughput(results),
        *_receiving(results, sizes),
        *_sizes(results, sizes),
    ]
    for key, name in MICRO.items():
        figures += _figure(name, results.of("micro", key), "µs")
        figures += _figure(name, results.of("peer micro", key), "µs", peer=True)
    return figures


def _throughput(results: Results) -> list[Figure]:
    def speed(name: str) -> list[float]:
        return results.of(name, "per_cpu_second")

    same = "send + receive, histories up to 200, from empty"
    ours, theirs = speed("pair ours"), speed("peer pair")
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return [
        *_figure(same, speed("pair js"), "/CPU-s"),
        *_figure(same, theirs, "/CPU-s", peer=True),
        *_figure(
            "send + receive, full histories of 200, log of 10 000",
            speed("pair js full"),
            "/CPU-s",
        ),
        *_figure("send + receive, our default configuration", ours, "/CPU-s"),
        *_figure("… relative to what @waku/sds sends and receives", ratios, "times", at_least=15),
    ]


def _receiving(results: Results, sizes: Sequence[int]) -> list[Figure]:
    figures: list[Figure] = []
    for size in sizes:
        name = f"receive one message, log of {_thousands(size)}"
        bar = 0.05 if size == 10 * THOUSAND else None
        figures += _figure(name, results.of(f"receive {size}", "cpu_ms"), "ms", at_most=bar)
        peer = results.of(f"peer receive {size}", "cpu_ms")
        figures += _figure(f"{name}, histories of 200", peer, "ms", peer=True)
        if size == 10 * THOUSAND:
            ours = results.of("receive js", "cpu_ms")
            figures += _figure(f"{name}, histories of 200", ours, "ms")
    base, largest = results.of("receive 10000", "cpu_ms"), sizes[-1]
    ratios = [
        large / small
        for large, small in zip(results.of(f"receive {largest}", "cpu_ms"), base, strict=True)
    ]
    name = f"receive, log of {_thousands(largest)} relative to 10 000"
    return figures + _figure(name, ratios, "times", at_most=1.3 if largest == MILLION else None)


def _sizes(results: Results, sizes: Sequence[int]) -> list[Figure]:
    def kib(name: str, key: str) -> list[float]:
        return [value / 1_024 for value in results.of(name, key)]

    message = "wire bytes of a message of 100 bytes, quiet group of 20"
    return [
        *_figure(message, kib("quiet", "message_bytes"), "KiB", at_most=2),
        *_figure(
            "wire bytes of a message of 100 bytes, 200 entries",
            kib("peer receive 10000", "message_bytes"),
            "KiB",
            peer=True,
        ),
        *_figure(
            "… and of everything that it causes in that group",
            kib("quiet", "all_bytes"),
            "KiB",
        ),
        *_figure(
            "memory per retained message, heard one by one",
            kib("memory", "bytes_per_message"),
            "KiB",
            at_most=0.5,
        ),
        *_figure(
            "memory per retained message, heard one by one",
            kib("peer memory", "bytes_per_message"),
            "KiB",
            peer=True,
        ),
        *_figure(
            f"memory per old message, log of {_thousands(sizes[-1])} loaded",
            results.of("load", "bytes_per_message"),
            "bytes",
            at_most=40 if sizes[-1] == MILLION else None,  # The newest weigh little among many.
        ),
    ]


def _thousands(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _figure(  # noqa: PLR0913 - a row of the table
    name: str,
    values: Sequence[float],
    unit: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    peer: bool = False,
) -> list[Figure]:
    """Median and spread; nothing if it was not measured."""
    if not values:
        return []
    bar_is: Literal["at most", "at least"] = "at least" if at_least is not None else "at most"
    return [
        Figure(
            figure=name,
            value=statistics.median(values),
            unit=unit,
            spread=(min(values), max(values)),
            bar=at_least if at_least is not None else at_most,
            bar_is=bar_is,
            peer=PEER if peer else None,
        )
    ]
