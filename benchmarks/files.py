"""Files beyond 96 KiB: how fast, at what cost, and whether texts wait for them.

Three processes, put together as the application is, on loopback.  One sends files of 20 MiB; the
others fetch them, alone and both at once.  Then the sender writes texts, in turns with nothing else
and while one of the two fetches a file of 100 MiB from it: how long a text takes from ``send_text``
until the row is published by either, durable in both.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.report import Figure, Report, percentile

MIB = 1024 * 1024
SIZE, LARGE = 20 * MIB, 100 * MIB
ROUNDS, QUICK = 5, 2
TEXTS = 100
BYTES_BAR = 1.1
SPEED_BAR_MB = 40.0
TEXT_BAR = 2.0

Line = dict[str, Any]


class Peer:
    """One ``benchmarks.files_peer``."""

    def __init__(self, place: Path, name: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "benchmarks.files_peer", str(place / name), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.wait("ready")

    def tell(self, **command: str | int) -> None:
        if self._process.stdin is None:
            raise RuntimeError("the peer has no input")
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def wait(self, answer: str) -> Line:
        if self._process.stdout is None:
            raise RuntimeError("the peer has no output")
        for text in self._process.stdout:
            line: Line = json.loads(text)
            if line["answer"] == answer:
                return line
        raise RuntimeError(f"a peer ended before it said {answer}")

    def ask(self, answer: str, **command: str | int) -> Line:
        self.tell(**command)
        return self.wait(answer)

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=60)


@dataclass(slots=True)
class Measured:
    alone: list[float] = field(default_factory=list)
    both: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    idle_ms: list[float] = field(default_factory=list)
    busy_ms: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)


class Stage:
    """A sender and two receivers in one group."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.sender, self.first, self.second = (
            Peer(place, name) for name in ("Ines", "Maya", "Otto")
        )
        created = self.sender.ask("created", do="create")
        self._group: str = created["group"]
        for receiver in (self.first, self.second):
            receiver.ask("joined", do="join", link=created["link"])
        self._files = 0

    def send(self, size: int) -> str:
        self._files += 1
        path = self._place / f"{self._files}.bin"
        path.write_bytes(random.Random(self._files).randbytes(size))  # noqa: S311 - no secret
        sent: str = self.sender.ask("sent", do="send", group=self._group, path=str(path))["id"]
        return sent

    def get(self, receivers: Sequence[Peer], message_id: str) -> list[Line]:
        for receiver in receivers:
            receiver.tell(do="get", group=self._group, id=message_id)
        return [receiver.wait("got") for receiver in receivers]

    def begin_to_get(self, receiver: Peer, message_id: str) -> None:
        receiver.ask("begun", do="begin", group=self._group, id=message_id)

    def say(self, about: str) -> dict[str, int]:
        said: dict[str, int] = self.sender.ask(
            "said", do="say", group=self._group, about=about, count=TEXTS
        )["ns"]
        return said

    def heard_ms(self, about: str, said: dict[str, int]) -> float:
        """The 99th percentile, at both."""
        times_ms: list[float] = []
        for receiver in (self.first, self.second):
            heard = receiver.ask("heard", do="hear", about=about, count=TEXTS)["ns"]
            times_ms += [(heard[text] - said[text]) / 1e6 for text in said]
        return percentile(times_ms, 0.99)

    def stop(self) -> None:
        for peer in (self.sender, self.first, self.second):
            peer.stop()


def run(quick: bool) -> Report:
    measured = Measured()
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        stage = Stage(Path(place))
        for number in range(QUICK if quick else ROUNDS):
            measure_speed(stage, measured)
            measure_texts(stage, measured, number)
        stage.stop()
    return report_of(measured)


def measure_speed(stage: Stage, measured: Measured) -> None:
    [alone] = stage.get([stage.first], stage.send(SIZE))
    both = stage.get([stage.first, stage.second], stage.send(SIZE))
    measured.alone.append(SIZE / alone["seconds"] / 1e6)
    measured.both.append(min(SIZE / each["seconds"] / 1e6 for each in both))
    measured.costs += [each["bytes"] / SIZE for each in (alone, *both)]


def measure_texts(stage: Stage, measured: Measured, number: int) -> None:
    idle, busy = f"idle {number}", f"busy {number}"
    idle_ms = stage.heard_ms(idle, stage.say(idle))
    message_id = stage.send(LARGE)
    stage.begin_to_get(stage.second, message_id)
    said = stage.say(busy)
    stage.second.wait("got")
    busy_ms = stage.heard_ms(busy, said)
    measured.idle_ms.append(idle_ms)
    measured.busy_ms.append(busy_ms)
    measured.ratios.append(busy_ms / idle_ms)


def report_of(measured: Measured) -> Report:
    def figure(
        name: str,
        values: Sequence[float],
        unit: str,
        bar: float | None = None,
        bar_is: Literal["at most", "at least"] = "at most",
    ) -> Figure:
        return Figure(
            figure=name,
            value=statistics.median(values),
            unit=unit,
            spread=(min(values), max(values)),
            bar=bar,
            bar_is=bar_is,
        )

    return Report(
        name="files",
        figures=[
            figure("20 MiB to one", measured.alone, "MB/s", SPEED_BAR_MB, "at least"),
            figure("20 MiB to two at once, the slower", measured.both, "MB/s"),
            figure("bytes a receiver read, of those of the file", measured.costs, "", BYTES_BAR),
            figure("a text with nothing else, p99", measured.idle_ms, "ms"),
            figure("a text while its sender serves 100 MiB, p99", measured.busy_ms, "ms"),
            figure("the latter, of the former", measured.ratios, "", TEXT_BAR),
        ],
    )
