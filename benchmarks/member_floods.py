"""What honest members notice while a member of their group attacks it.

Four processes: three devices with real engines, profiles on disk and nodes on loopback, which each
say four texts a second, and a member who attacks them in one of four ways.  Each run is a group of
its own that talks twice, first in peace and then under the attack.  A text is in time if it has its
place at another device within a second of when it was due to be said.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from benchmarks.report import Figure, Report, percentile

if TYPE_CHECKING:
    from benchmarks.member_floods_work import Told

ATTACKS: Final = {
    "phantoms": "texts that each name 250 ids that nobody has",
    "requests": "for the same 12 texts of 60 KB",
    "claims": "to hold nothing",
    "texts": "of 60 KB",
}
ATTACKS_PER_SECOND: Final = 104
NAMES: Final = ("Alice", "Bob", "Carol")
PER_SECOND: Final = 4
LARGE_TEXTS: Final = 12
ROUNDS: Final = 3
SECONDS: Final = 10
QUICK_SECONDS: Final = 5
IN_TIME_MS: Final = 1_000.0
NEVER_MS: Final = 1e6
SHARE_BAR: Final = 0.95
LATE_BAR_MS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What three people noticed who talked for a while."""

    in_time: float
    p50_ms: float
    p99_ms: float
    late_p99_ms: float
    gap_ms: float
    processor: float


def run(quick: bool) -> Report:
    report = Report(name="member_floods")
    seconds = QUICK_SECONDS if quick else SECONDS
    for kind, words in ATTACKS.items():
        report.notes.append(f"{kind}: {ATTACKS_PER_SECOND} a second, {words}")
    rounds = [
        {kind: one_run(kind, seconds) for kind in ATTACKS} for _ in range(1 if quick else ROUNDS)
    ]
    for kind in ATTACKS:
        _add_figures(report, kind, [each[kind] for each in rounds])
    return report


def _add_figures(report: Report, kind: str, runs: Sequence[tuple[Talk, Talk]]) -> None:
    shares = [attacked.in_time / calm.in_time for calm, attacked in runs]
    report.figures.append(
        _figure(
            f"{kind}: texts placed within a second, attacked to calm",
            shares,
            bar=SHARE_BAR,
            least=True,
        )
    )
    calm, attacked = zip(*runs, strict=True)
    for words, talks, bar in (("calm", calm, None), ("attacked", attacked, LATE_BAR_MS)):
        begin = f"{kind}, {words}"
        p50, p99 = [talk.p50_ms for talk in talks], [talk.p99_ms for talk in talks]
        report.figures += [
            _figure(f"{begin}: from due to placed, p50", p50, "ms"),
            _figure(f"{begin}: from due to placed, p99", p99, "ms"),
            _figure(
                f"{begin}: a loop wakes late, p99", [talk.late_p99_ms for talk in talks], "ms", bar
            ),
            _figure(f"{begin}: a loop wakes late, longest", [talk.gap_ms for talk in talks], "ms"),
            _figure(f"{begin}: of a core, each device", [talk.processor for talk in talks]),
        ]


def one_run(kind: str, seconds: int) -> tuple[Talk, Talk]:
    """In peace, and attacked."""
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place, ExitStack() as stack:
        devices: list[Peer] = []
        links: list[str] = []
        for number, name in enumerate(NAMES):
            arguments = (Path(place) / name, name, f"127.0.0.{number + 2}", "".join(links[:1]))
            devices.append(stack.enter_context(Peer("device", *arguments)))
            links.append(json.loads(devices[-1].answer())["link"])
        for one in devices:
            one.ask(members=len(NAMES))
        ids: list[str] = json.loads(devices[0].ask(say_large=LARGE_TEXTS))
        attacker = stack.enter_context(Peer("attack", kind, *links))
        attacker.answer()
        for one in devices:
            one.ask(members=len(NAMES) + 1)
        calm = _talk(devices, "in peace", seconds)
        attacker.tell(ids=ids, seconds=seconds + 1, per_second=ATTACKS_PER_SECOND)
        attacked = _talk(devices, "attacked", seconds)
    return calm, attacked


def _figure(
    name: str,
    values: Sequence[float],
    unit: str = "",
    bar: float | None = None,
    *,
    least: bool = False,
) -> Figure:
    return Figure(
        figure=name,
        value=statistics.median(values),
        unit=unit,
        spread=(min(values), max(values)),
        bar=bar,
        bar_is="at least" if least else "at most",
    )


def _talk(devices: Sequence["Peer"], words: str, seconds: int) -> Talk:
    times = seconds * PER_SECOND
    for one in devices:
        one.tell(talk=words, times=times, per_second=PER_SECOND)
    told: list[Told] = [json.loads(one.answer()) for one in devices]
    waits_ms = [
        (hearer["shown_ns"][text] - due_ns) / 1e6 if text in hearer["shown_ns"] else NEVER_MS
        for speaker in told
        for hearer in told
        if hearer is not speaker
        for text, due_ns in speaker["said_ns"].items()
    ]
    return Talk(
        in_time=sum(each <= IN_TIME_MS for each in waits_ms) / len(waits_ms),
        p50_ms=percentile(waits_ms, 0.5),
        p99_ms=percentile(waits_ms, 0.99),
        late_p99_ms=max(one["late_p99_ms"] for one in told),
        gap_ms=max(one["gap_ms"] for one in told),
        processor=statistics.mean(one["processor"] for one in told),
    )


class Peer:
    """A process of the benchmark, which is told and answers by lines of JSON."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "benchmarks.member_floods_work", *map(str, arguments)]
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def tell(self, **what: object) -> None:
        pipe = self._process.stdin
        if pipe is not None:
            pipe.write(json.dumps(what) + "\n")
            pipe.flush()

    def answer(self) -> str:
        pipe = self._process.stdout
        line = "" if pipe is None else pipe.readline()
        if not line:
            raise RuntimeError("a process of the benchmark ended early")
        return line

    def ask(self, **what: object) -> str:
        self.tell(**what)
        return self.answer()
