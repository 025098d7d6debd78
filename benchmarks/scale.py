"""A profile with a million messages: starting, reading, writing, and what it takes.

Two profiles of a million texts, one group with all of them and two hundred groups that share them,
are made once (``scale_profile``) and kept in ``build/scale``; a small one is measured in turns with
them.  Starts are those of the real command; pages and appends go through the real engine.
"""

import asyncio
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.report import Figure, Report
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
GROUPS: Final = 200
STARTS: Final = 5
APPENDS: Final = 50
JUMPS: Final = 50
PAINT_BAR: Final = 1.15
RESIDENT_BAR_MIB: Final = 190.0
RECEIVE_READY_BAR_MS: Final = 3_000.0
DISK_BAR_KB: Final = 1.0
APPEND_BAR_MS: Final = 5.0
JUMP_BAR_MS: Final = 50.0
OPEN_BAR_MS: Final = 100.0


def run(quick: bool) -> Report:
    report = Report(name="scale")
    texts = QUICK if quick else MILLION
    small, _ = _profile(1, SMALL)
    long, groups = _profile(1, texts)
    wide, many = _profile(GROUPS, texts)
    report.figures += _starts(small, long, wide, rounds=2 if quick else STARTS)
    disk = (long / "causerie.db").stat().st_size / texts / 1_000
    report.figures.append(
        _figure(f"disk per text, {texts} in one group", [disk], "KB", DISK_BAR_KB)
    )
    with tempfile.TemporaryDirectory(dir=PLACE) as copy:
        place = Path(shutil.copytree(long, Path(copy) / "long"))
        report.figures += asyncio.run(_use(place, groups[0]))
        place = Path(shutil.copytree(wide, Path(copy) / "wide"))
        opened = asyncio.run(_open_each(place, many))
    report.figures.append(_figure(f"each of {GROUPS} groups opens", opened, "ms", OPEN_BAR_MS))
    return report


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
    for name, all_starts in told.items():
        starts = all_starts[1:]  # The first one warms the disk cache.
        figures += [
            _figure(f"{name}: {what}", [one[key] for one in starts], unit, bar)
            for key, what, unit, bar in (
                ("first_paint_ms", "first paint", "ms", None),
                ("loaded_ms", "ready to receive", "ms", RECEIVE_READY_BAR_MS),
                ("resident_mib", "resident", "MiB", RESIDENT_BAR_MIB),
            )
        ]
    base = [one["first_paint_ms"] for one in told["a small profile"][1:]]
    for name in list(named)[1:]:
        paints = [one["first_paint_ms"] for one in told[name][1:]]
        ratios = [one / other for one, other in zip(paints, base, strict=True)]
        figures.append(
            _figure(f"{name}: first paint, relative to a small profile", ratios, "times", PAINT_BAR)
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
        _figure("one group: jump to a date", jumps, "ms", JUMP_BAR_MS),
        _figure("one group: a text is saved", appends, "ms", APPEND_BAR_MS),
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


def _figure(name: str, values: Sequence[float], unit: str, bar: float | None = None) -> Figure:
    return Figure(
        figure=name,
        value=statistics.median(values),
        unit=unit,
        spread=(min(values), max(values)),
        bar=bar,
    )
