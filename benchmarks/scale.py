"""A profile with a million messages: starting, reading, writing, and what it takes.

Two profiles of a million texts, one group with all of them and two hundred groups that share them,
are made once (``scale_profile``) and kept in ``build/scale``; a small one is measured in turns with
them.  Starts are those of the real command; flinging and waiting messages have the real window;
pages and appends go through the real engine.  What writes does so in a copy.
"""

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.report import Figure, Report, figure_of
from benchmarks.scale_profile import make_profile
from benchmarks.start import SETTINGS, start_once
from chat_app.compose import build_engine
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.core.ids import ConversationId, MessageId, Position
from engine.persistence.profile_directory import open_profile_directory
from engine.runtime.engine import Engine

PLACE: Final = Path("build/scale")
MILLION: Final = 1_000_000
QUICK: Final = 100_000
SMALL: Final = 3_000
MEDIUM: Final = 10_000
GROUPS: Final = 200
STARTS: Final = 5
APPENDS: Final = 50
JUMPS: Final = 50
RECEIVED: Final = 350
RECEIVE_ROUNDS: Final = 5
WAITING: Final = 10_000
WAITING_ROUNDS: Final = 3
PAINT_BAR: Final = 1.15
RESIDENT_BAR_MIB: Final = 190.0
RECEIVE_READY_BAR_MS: Final = 3_000.0
DISK_BAR_KB: Final = 1.0
APPEND_BAR_MS: Final = 5.0
JUMP_BAR_MS: Final = 50.0
OPEN_BAR_MS: Final = 100.0
FRAME_BAR_MS: Final = 8.0
RECEIVE_BAR: Final = 1.3
WAITING_BAR_S: Final = 5.0
PATIENCE_S: Final = 3_600
OFFSCREEN: Final = {"QT_QPA_PLATFORM": "offscreen"}


def run(quick: bool) -> Report:
    report = Report(name="scale")
    texts = QUICK if quick else MILLION
    small, _ = _profile(1, SMALL)
    long, groups = _profile(1, texts)
    wide, many = _profile(GROUPS, texts)
    report.figures += _starts(small, long, wide, rounds=2 if quick else STARTS)
    disk = (long / "causerie.db").stat().st_size / texts / 1_000
    report.figures.append(
        figure_of(f"disk per text, {texts} in one group", [disk], "KB", DISK_BAR_KB)
    )
    with _copy(long) as place:
        report.figures += asyncio.run(_use(place, groups[0]))
    with _copy(wide) as place:
        opened = asyncio.run(_open_each(place, many))
    report.figures.append(figure_of(f"each of {GROUPS} groups opens", opened, "ms", OPEN_BAR_MS))
    with _copy(long) as place:
        flung = _measured("scale_window", "fling", place, groups[0])
    report.figures.append(
        figure_of(
            "one group: frame p99 while flinging, ten parts", flung["p99_ms"], "ms", FRAME_BAR_MS
        )
    )
    report.figures += _received(long, groups[0], rounds=2 if quick else RECEIVE_ROUNDS)
    report.figures += _waited(long, groups[0], rounds=1 if quick else WAITING_ROUNDS)
    return report


@contextmanager
def _copy(place: Path) -> Iterator[Path]:
    """All of it on the disk: what is measured does not wait for the copy's being written."""
    with tempfile.TemporaryDirectory(dir=PLACE) as copy:
        copied = Path(shutil.copytree(place, Path(copy) / place.name))
        os.sync()
        yield copied


def _measured(module: str, *arguments: object) -> dict[str, list[float]]:
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=PATIENCE_S,
        env=os.environ | OFFSCREEN,
    )
    figures: dict[str, list[float]] = json.loads(done.stdout or "{}")
    return figures


def _profile(groups: int, texts: int) -> tuple[Path, Sequence[ConversationId]]:
    place = PLACE / f"{groups}-{texts}"
    made = make_profile(place, groups, texts)
    (place / "settings.toml").write_text(SETTINGS)
    (place / "window.json").write_text(json.dumps({"conversation": made[0]}))
    return place, made


def _starts(small: Path, long: Path, wide: Path, *, rounds: int) -> list[Figure]:
    named = {"a small profile": small, "one group": long, f"{GROUPS} groups": wide}
    told: dict[str, list[dict[str, float]]] = {name: [] for name in named}
    for _ in range(rounds + 1):
        for name, place in named.items():
            told[name].append(start_once(place))
    figures: list[Figure] = []
    for name, place in named.items():
        starts = told[name][1:]  # The first one warms the disk cache.
        figures += [
            figure_of(f"{name}: {what}", [one[key] for one in starts], unit, bar)
            for key, what, unit, bar in (
                ("first_paint_ms", "first paint", "ms", None),
                ("loaded_ms", "ready to receive", "ms", RECEIVE_READY_BAR_MS),
                ("processor_ms", "processor time until then", "ms", None),
                ("resident_mib", "resident", "MiB", None if place is wide else RESIDENT_BAR_MIB),
            )
        ]
    base = [one["first_paint_ms"] for one in told["a small profile"][1:]]
    for name in list(named)[1:]:
        paints = [one["first_paint_ms"] for one in told[name][1:]]
        ratios = [one / other for one, other in zip(paints, base, strict=True)]
        figures.append(
            figure_of(
                f"{name}: first paint, relative to a small profile", ratios, "times", PAINT_BAR
            )
        )
    return figures


async def _started(place: Path) -> Engine:
    settings = Settings(
        storage=StorageSettings(key="file"),
        network=NetworkSettings(listen_host="127.0.0.1", discovery=False),
    )
    engine = build_engine(open_profile_directory(place), settings)
    await engine.start()
    await engine.loaded()
    return engine


async def _use(place: Path, group: ConversationId) -> list[Figure]:
    engine = await _started(place)
    timeline = engine.timeline
    page = await timeline.latest_page(group)
    newest = page.messages[-1].position.lamport_timestamp
    oldest = newest - page.total * 60_000
    appends, jumps = [], []
    for number in range(JUMPS):
        at = Position(oldest + (newest - oldest) * number // JUMPS, MessageId(""))
        began = time.perf_counter()
        await timeline.page_around(group, at)
        jumps.append(1_000 * (time.perf_counter() - began))
    for number in range(APPENDS):
        began = time.perf_counter()
        await timeline.send_text(group, f"one more, number {number}")
        appends.append(1_000 * (time.perf_counter() - began))
    await engine.stop()
    return [
        figure_of("one group: jump to a date", jumps, "ms", JUMP_BAR_MS),
        figure_of("one group: a text is saved", appends, "ms", APPEND_BAR_MS),
    ]


async def _open_each(place: Path, groups: Sequence[ConversationId]) -> list[float]:
    engine = await _started(place)
    taken: list[float] = []
    for group in groups:
        began = time.perf_counter()
        await engine.timeline.latest_page(group)
        taken.append(1_000 * (time.perf_counter() - began))
    await engine.stop()
    return taken


def _received(long: Path, group: ConversationId, *, rounds: int) -> list[Figure]:
    """In turns with a log of ten thousand."""
    medium, (small_group,) = _profile(1, MEDIUM)
    sources = {"10 000": (medium, small_group), "the long log": (long, group)}
    told: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
    with tempfile.TemporaryDirectory(dir=PLACE) as files:
        for name, (place, which) in sources.items():
            _measured("scale_twin", place, which, RECEIVED, Path(files) / name)
        for _ in range(rounds):
            for name, (place, which) in sources.items():
                with _copy(place) as copy:
                    one = _measured("scale_receive", copy, which, Path(files) / name)
                told[name].append({key: statistics.median(each) for key, each in one.items()})
    figures = [
        figure_of(f"receive one message, log of {name}: {what}", [one[key] for one in each], "ms")
        for name, each in told.items()
        for key, what in (("handled_ms", "in its place"), ("durable_ms", "and durable"))
    ]
    pairs = list(zip(told["the long log"], told["10 000"], strict=True))
    for key, what in (("handled_ms", "in its place"), ("durable_ms", "and durable")):
        ratios = [large[key] / small[key] for large, small in pairs]
        name = f"receive, the long log relative to 10 000: {what}"
        figures.append(figure_of(name, ratios, "times", RECEIVE_BAR))
    return figures


def _waited(long: Path, group: ConversationId, *, rounds: int) -> list[Figure]:
    shown: list[float] = []
    painted: list[float] = []
    with tempfile.TemporaryDirectory(dir=PLACE) as files:
        said = Path(files) / "said"
        _measured("scale_twin", long, group, WAITING, said)
        with _store(said, Path(files)) as address:
            for _ in range(rounds):
                with _copy(long) as copy:
                    one = _measured("scale_window", "wait", copy, group, WAITING, address)
                shown += one["shown_s"]
                painted += one["painted_s"]
    return [
        figure_of("one group: painted, 10 000 wait at a Store", painted, "s"),
        figure_of("one group: all 10 000 shown, from the start", shown, "s", WAITING_BAR_S),
    ]


@contextmanager
def _store(messages: Path, place: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.scale_store", str(messages), str(place)]
    with subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as store:
        try:
            yield store.stdout.readline().strip() if store.stdout else ""
        finally:
            store.communicate("\n")
