"""How long until the window is there, and what it takes: the real command on a small profile.

The profile holds one group with some hundred messages.  The clock starts before the process does
and stops at the window's first paint, and again when the last conversation is on screen.

``start_installed`` starts the program folder of ``make package`` as well, in turns with the clone:
what is installed must not paint later.  The processor time of both says more than the clock if the
machine has other work.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
INSTALLED_BAR = 1.0
"""First paint of the installed program, relative to a clone."""

TURNS = 15
QUICK_TURNS = 5
SETTINGS = '[storage]\nkey = "file"\n'
CLONE = (sys.executable, "-m", "chat_app")
INSTALLED = Path("dist/causerie/causerie")


def run(quick: bool) -> Report:
    report = Report(name="start")
    with _small_profile() as profile:
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


def run_installed(quick: bool) -> Report:
    report = Report(name="start_installed")
    if not INSTALLED.exists():
        report.notes.append(f"not run: there is no {INSTALLED}; make package builds it")
        return report
    programs = {"clone": CLONE, "installed": (str(INSTALLED),)}
    told: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    with _small_profile() as profile:
        for turn in range(1 + (QUICK_TURNS if quick else TURNS)):
            for name in sorted(programs, reverse=turn % 2 == 1):
                told[name].append(start_once(profile, programs[name]))
    starts = {name: of_one[1:] for name, of_one in told.items()}  # The first one warms the cache.
    for key, what, unit, bar in (
        ("first_paint_ms", "first paint", "ms", INSTALLED_BAR),
        ("first_paint_processor_ms", "processor time until then", "ms", INSTALLED_BAR),
        ("resident_mib", "resident", "MiB", None),
    ):
        of_clone = [one[key] for one in starts["clone"]]
        of_installed = [one[key] for one in starts["installed"]]
        ratios = [one / other for one, other in zip(of_installed, of_clone, strict=True)]
        report.figures += [
            figure_of(f"{what}, clone", of_clone, unit),
            figure_of(f"{what}, installed", of_installed, unit),
            figure_of(f"{what}, installed relative to the clone", ratios, "times", bar),
        ]
    return report


@contextmanager
def _small_profile() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        profile = Path(place) / "profile"
        group = asyncio.run(_fill(profile))
        (profile / "settings.toml").write_text(SETTINGS)
        (profile / "window.json").write_text(json.dumps({"conversation": group}))
        yield profile


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


def start_once(profile: Path, program: Sequence[str] = CLONE) -> dict[str, float]:
    command = [*program, "--profile-dir", str(profile)]
    ended = subprocess.run(  # noqa: S603 - our own command
        [*command, "--measure-start-ns", str(time.monotonic_ns())],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=60,
        env=_surroundings(),
    )
    figures: dict[str, float] = json.loads(ended.stdout)
    return figures


def _surroundings() -> dict[str, str]:
    """Compiled files may be written, as where people start it."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"QT_QPA_PLATFORM": "offscreen"}
