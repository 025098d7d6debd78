"""What people install, built and started: the program folder and the .deb."""

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.core.counters import Counters
from engine.runtime.history.opening_process import OpeningProcess
from tests.runtime.history.test_opening_process import a_page, once_it_runs

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long
LARGEST_DEB_MIB = 60
START_S = 60


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        check=False,
        text=True,
        capture_output=True,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", **environment},
    )


@pytest.fixture(scope="module")
def program() -> Path:
    done = subprocess.run([sys.executable, "-m", "scripts.package"], cwd=ROOT, check=False)
    assert done.returncode == 0
    return ROOT / "dist" / "causerie" / "causerie"


@pytest.fixture
def profile() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        yield Path(place) / "profile"


def version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def test_the_program_knows_its_version(program: Path) -> None:
    assert run(program, "--version").stdout.split()[-1] == version()


def test_the_package_speaks_french_and_carries_no_other_language(program: Path) -> None:
    found = {path.name for path in program.parent.rglob("*.qm")}
    assert found == {"causerie_fr.qm", "qtbase_fr.qm"}


def test_the_engine_works_in_the_package(program: Path) -> None:
    done = run(program, "demo", "--headless", "--json", "--participants", "3", "--messages", "20")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["converged"] is True


async def test_history_is_opened_by_a_second_process_of_the_package(program: Path) -> None:
    group, messages = a_page()
    process = OpeningProcess([str(program), "open-history"], Counters())
    opened = await once_it_runs(process, group, messages)
    assert None not in opened
    assert len(opened) == len(messages)
    await process.stop()


def started_window(program: Path, profile: Path) -> str:
    """Start the window, wait until its profile's database is there, end it; what it said."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "CAUSERIE_KEY_FILE": "1"}
    with subprocess.Popen(
        [program, "--profile-dir", profile],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        deadline = time.monotonic() + START_S
        while not (profile / "causerie.db").exists() and process.poll() is None:
            assert time.monotonic() < deadline, "the window did not open its profile"
            time.sleep(0.05)
        assert process.poll() is None, process.communicate()[0]
        process.terminate()
        return process.communicate(timeout=START_S)[0]


def test_the_window_opens_and_the_doctor_finds_its_profile_well(
    program: Path, profile: Path
) -> None:
    said = started_window(program, profile)
    assert "Traceback" not in said
    assert (profile / "settings.toml").exists()
    done = run(program, "doctor", "--json", "--profile-dir", profile, CAUSERIE_KEY_FILE="1")
    assert done.returncode in {0, 1}, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


def test_what_a_window_of_widgets_never_loads_is_left_out(program: Path) -> None:
    names = [str(path) for path in program.parent.rglob("*")]
    assert [name for name in names if "Qt6Qml" in name or "Qt6Quick" in name] == []
    assert not any("/site-packages/pip/" in name or "pytest" in name for name in names)
    assert any("libqxcb" in name for name in names)
    assert any("libqwayland" in name for name in names)


def test_the_deb_installs_to_the_right_places_and_is_small(program: Path, profile: Path) -> None:
    (deb,) = program.parent.parent.glob("causerie_*.deb")
    assert deb.stat().st_size < LARGEST_DEB_MIB * 2**20
    listing = run("dpkg-deb", "--contents", deb).stdout
    for place in (
        "./usr/bin/causerie -> ../lib/causerie/causerie",
        "./usr/share/applications/chat.causerie.Causerie.desktop",
        "./usr/share/metainfo/chat.causerie.Causerie.metainfo.xml",
        "./usr/share/icons/hicolor/256x256/apps/chat.causerie.Causerie.png",
        "./usr/share/icons/hicolor/scalable/apps/chat.causerie.Causerie.svg",
        "./usr/lib/systemd/system/causerie-node.service",
        "./usr/share/doc/causerie/operations.md",
    ):
        assert place in listing
    assert all(line.split()[1] == "root/root" for line in listing.splitlines())
    unpacked = profile.parent / "unpacked"
    assert run("dpkg-deb", "--extract", deb, unpacked).returncode == 0
    assert run(unpacked / "usr" / "bin" / "causerie", "--version").stdout.split()[-1] == version()
