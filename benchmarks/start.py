"""How long until the window is there, and what it takes: the real command on a small profile.

The profile holds one group with some hundred messages.  The clock starts before the process does
and stops at the window's first paint, and again when the last conversation is on screen.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Report, figure_of
from chat_app.compose import build_engine
from chat_app.settings import Settings, StorageSettings
from engine.persistence.profile_directory import open_profile_directory

MESSAGES = 300
STARTS = 7
QUICK = 3
FIRST_PAINT_BAR_MS = 1_000.0
RESIDENT_BAR_MIB = 150.0
SETTINGS = '[storage]\nkey = "file"\n'


def run(quick: bool) -> Report:
    report = Report(name="start")
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        profile = Path(place) / "profile"
        group = asyncio.run(_fill(profile))
        (profile / "settings.toml").write_text(SETTINGS)
        (profile / "window.json").write_text(json.dumps({"conversation": group}))
        start_once(profile)  # warms the disk cache: a second start of the day, not of the machine
        starts = [start_once(profile) for _ in range(QUICK if quick else STARTS)]
    for key, name, unit, bar in (
        ("first_paint_ms", "first paint, existing profile", "ms", FIRST_PAINT_BAR_MS),
        ("ready_ms", "last conversation loaded, existing profile", "ms", FIRST_PAINT_BAR_MS),
        ("resident_mib", "resident, small profile", "MiB", RESIDENT_BAR_MIB),
    ):
        values = [one[key] for one in starts]
        report.figures.append(figure_of(name, values, unit, bar))
    return report


async def _fill(profile: Path) -> str:
    engine = build_engine(
        open_profile_directory(profile), Settings(storage=StorageSettings(key="file"))
    )
    await engine.start()
    await engine.create_identity("Ines")
    group = await engine.groups.create("Benchmark")
    for number in range(MESSAGES):
        await engine.timeline.send_text(
            group, f"Message number {number}, of an ordinary length, I hope."
        )
    await engine.stop()
    return group


def start_once(profile: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "chat_app", "--profile-dir", str(profile)]
    ended = subprocess.run(  # noqa: S603 - our own command
        [*command, "--measure-start-ns", str(time.monotonic_ns())],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=60,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
    )
    figures: dict[str, float] = json.loads(ended.stdout)
    return figures
