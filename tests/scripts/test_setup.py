"""Set-up: whole or not there, whatever goes wrong, and the same on every machine.

Real virtual environments are built here, from a project and a lock of a few lines that need no
network; needs are looked for on the real system.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import needs, setup
from scripts.needs import Kind, Need, NeedsMissing

ROOT = Path(__file__).resolve().parents[2]
NO_SUCH_LIBRARY = Need(Kind.LIBRARY, "libno-such-thing.so.7", "libno-such-thing7")
C_LIBRARY = Need(Kind.LIBRARY, "libc.so.6", "libc6")

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1"
"""

BACKEND = '''
"""The smallest build backend: an editable wheel with nothing but metadata."""
import zipfile

METADATA = "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n"

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{wheel_directory}/{name}", "w") as wheel:
        wheel.writestr("tiny-1.dist-info/METADATA", METADATA)
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "")
        wheel.writestr("tiny.py", "")
        wheel.writestr("tiny_template.py", "{{ no Python }}")
    return name
'''


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A project without dependencies: its locks are empty."""
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "backend.py").write_text(BACKEND, encoding="utf-8")
    (tmp_path / "requirements").mkdir()
    for lock in setup.LOCKS:
        (tmp_path / "requirements" / f"{lock}.txt").write_text(f"# {lock}\n", encoding="utf-8")
    yield tmp_path
    shutil.rmtree(tmp_path / ".venv", ignore_errors=True)


def stamp(root: Path, lock: str) -> None:
    (root / ".venv").mkdir(exist_ok=True)
    text = f"{lock} {setup.fingerprint(root, lock)}\n"
    (root / ".venv" / setup.READY).write_text(text, encoding="utf-8")


def test_an_environment_is_built_and_then_left_alone(root: Path) -> None:
    setup.build_venv(root, "dev")
    python = root / ".venv" / "bin" / "python"
    told = subprocess.run(
        [python, "-c", "import importlib.metadata as m; print(m.version('tiny'))"],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    )
    assert told.stdout == "1\n"
    compiled = [path.name.split(".")[0] for path in (root / ".venv").rglob("tiny*.pyc")]
    assert compiled == ["tiny"]
    assert setup.is_ready(root, "dev")
    assert not (root / ".venv" / setup.UNFINISHED).exists()


def test_when_packages_cannot_be_had_nothing_is_left(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", (root / "empty").as_uri())
    line = f"nothing-of-this-name==1 --hash=sha256:{'0' * 64}\n"
    (root / "requirements" / "dev.txt").write_text(line, encoding="utf-8")
    with pytest.raises(setup.SetupError, match="pip failed"):
        setup.build_venv(root, "dev")
    assert not (root / ".venv").exists()
    assert "nothing-of-this-name" in capfd.readouterr().err


def test_a_killed_set_up_is_not_ready_and_is_begun_anew(root: Path) -> None:
    (root / ".venv" / "lib").mkdir(parents=True)
    (root / ".venv" / setup.UNFINISHED).touch()
    (root / ".venv" / "lib" / "half").touch()
    assert not setup.is_ready(root, "dev")
    setup.build_venv(root, "dev")
    assert setup.is_ready(root, "dev")
    assert not (root / ".venv" / "lib" / "half").exists()


def test_an_environment_that_somebody_else_made_is_not_touched(root: Path) -> None:
    (root / ".venv").mkdir()
    (root / ".venv" / "precious").touch()
    with pytest.raises(setup.SetupError, match="was not made by make"):
        setup.build_venv(root, "dev")
    assert (root / ".venv" / "precious").exists()


@pytest.mark.parametrize(
    ("stamped", "wanted", "expected"),
    [
        ("dev", "dev", True),
        ("dev", "runtime", True),
        ("dev", "pipeline", True),
        ("pipeline", "runtime", True),
        ("runtime", "pipeline", False),
        ("pipeline", "dev", False),
        ("runtime", "runtime", True),
        ("runtime", "dev", False),
    ],
)
def test_the_development_environment_serves_for_running_only_that_way_round(
    root: Path, stamped: str, wanted: str, expected: bool
) -> None:
    stamp(root, stamped)
    assert setup.is_ready(root, wanted) is expected


def test_a_changed_lock_needs_a_new_environment(root: Path) -> None:
    stamp(root, "dev")
    lock = root / "requirements" / "dev.txt"
    lock.write_text(lock.read_text(encoding="utf-8") + "# newer\n", encoding="utf-8")
    assert not setup.is_ready(root, "dev")


def test_a_moved_tree_needs_a_new_environment(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stamp(root, "dev")
    moved = tmp_path_factory.mktemp("elsewhere") / "tree"
    shutil.copytree(root, moved)
    assert not setup.is_ready(moved, "dev")


@pytest.mark.parametrize("text", ["", "dev", "dev x", "\x00", "dev {} more"])
def test_a_damaged_stamp_is_none(root: Path, text: str) -> None:
    (root / ".venv").mkdir()
    content = text.format(setup.fingerprint(root, "dev"))
    (root / ".venv" / setup.READY).write_text(content, encoding="utf-8")
    assert not setup.is_ready(root, "dev")


def test_settings_of_pip_and_python_do_not_matter_except_for_the_network() -> None:
    kept = {"PATH": "/bin", "PIP_INDEX_URL": "x", "PIP_CERT": "y", "HTTPS_PROXY": "z"}
    dropped = {"PIP_FIND_LINKS": "a", "PIP_TARGET": "b", "PYTHONPATH": "c", "PYTHONHOME": "d"}
    assert setup.clean_environment({**kept, **dropped}) == kept


def test_commands_run_from_the_environment_in_utf_8_and_without_a_screen(root: Path) -> None:
    made = setup.command_environment(root, "test", {"PATH": "/bin", "LC_ALL": "C"})
    assert made["PATH"].startswith(str(root / ".venv" / "bin"))
    assert made["QT_QPA_PLATFORM"] == "offscreen"
    assert Path(made["XDG_RUNTIME_DIR"]).stat().st_mode & 0o777 == 0o700
    if sys.platform == "linux":
        assert made["LC_ALL"] == "C.UTF-8"
    kept = setup.command_environment(
        root, "test", {"LANG": "fr_FR.UTF-8", "QT_QPA_PLATFORM": "xcb"}
    )
    assert "LC_ALL" not in kept
    assert kept["QT_QPA_PLATFORM"] == "xcb"
    assert "QT_QPA_PLATFORM" not in setup.command_environment(root, "run", {})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("causerie", True),
        ("causerie --profile bob", True),
        ("causerie demo", True),
        ("causerie demo --headless --json", False),
        ("causerie doctor --json", False),
        ("causerie node", False),
        ("causerie --version", False),
    ],
)
def test_only_what_opens_a_window_needs_a_display(arguments: str, expected: bool) -> None:
    assert setup.opens_window(arguments.split()) is expected


# --- what the system must bring -------------------------------------------------------------------


def test_what_is_there_is_found_and_what_is_not_is_not() -> None:
    assert needs.is_met(Need(Kind.PROGRAM, "python3", "python3"))
    assert needs.is_met(Need(Kind.MODULE, "json", "python3"))
    assert not needs.is_met(Need(Kind.PROGRAM, "no-such-program", "x"))
    assert not needs.is_met(Need(Kind.MODULE, "no_such_module", "x"))
    assert not needs.is_met(Need(Kind.FONT, "No Such Font*.ttf", "x"))
    assert not needs.is_met(NO_SUCH_LIBRARY)
    if sys.platform == "linux":
        assert needs.is_met(C_LIBRARY)


def test_a_packager_needs_the_interpreters_library_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on Debian, whose python3 runs without it, and PyInstaller does not."""
    shared = {"Py_ENABLE_SHARED": 1, "INSTSONAME": "libpython3.99.so.1.0"}
    monkeypatch.setattr(sysconfig, "get_config_var", shared.get)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    expected = Need(Kind.LIBRARY, "libpython3.99.so.1.0", f"libpython{version}")
    assert needs.shared_python() == (expected,)
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_ENABLE_SHARED": 0}.get)
    assert needs.shared_python() == ()


def test_whoever_may_not_install_gets_one_line_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NeedsMissing) as caught:
        needs.meet([C_LIBRARY, NO_SUCH_LIBRARY])
    assert "\n" not in caught.value.line
    assert caught.value.needs == (NO_SUCH_LIBRARY,)


def test_the_line_fits_the_package_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = (NO_SUCH_LIBRARY, Need(Kind.PROGRAM, "Xvfb", "xvfb"), Need(Kind.PROGRAM, "x", "xvfb"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert needs.line_to_run(wanted) == (
        "install with your package manager whatever holds: Xvfb libno-such-thing.so.7 x"
    )
    (tmp_path / "dnf").touch(mode=0o755)
    assert needs.line_to_run(wanted) == (
        "sudo dnf install -y 'libno-such-thing.so.7()(64bit)' /usr/bin/Xvfb /usr/bin/x"
    )
    (tmp_path / "apt-get").touch(mode=0o755)
    assert needs.line_to_run(wanted) == (
        "sudo apt-get update && sudo apt-get install --no-install-recommends -y"
        " libno-such-thing7 xvfb"
    )


def test_every_need_names_a_package_and_none_is_listed_twice() -> None:
    for level, listed in needs.LEVELS.items():
        assert all(need.package for need in listed), level
        assert len(set(listed)) == len(listed), level
    assert set(needs.LEVELS["run"]) < set(needs.LEVELS["test"]) < set(needs.LEVELS["package"])


# --- the command itself ---------------------------------------------------------------------------


def run_setup(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Set-up of a copy of the scripts in ``root``, by a Python that knows nothing of ours.

    The path holds a shell and a screen and no package manager: a test must not install anything.
    """
    shutil.copytree(ROOT / "scripts", root / "scripts")
    (root / "bin").mkdir()
    (root / "bin" / "sh").symlink_to("/bin/sh")
    for program in needs.DISPLAY_SERVER:
        (root / "bin" / program.name).symlink_to("/bin/false")
    return subprocess.run(
        [sys.executable, "-S", "-m", "scripts.setup", *arguments],
        cwd=root,
        env={"PATH": str(root / "bin"), "HOME": str(root)},
        check=False,
        text=True,
        capture_output=True,
    )


def test_a_command_that_fails_says_so_by_its_own_exit_code(root: Path) -> None:
    stamp(root, "dev")
    done = run_setup(root, "tools", "--", "sh", "-c", "echo $VIRTUAL_ENV; exit 7")
    assert (done.returncode, done.stdout) == (7, f"{root / '.venv'}\n")


def test_without_a_display_it_says_what_can_be_done_and_exits_with_2(root: Path) -> None:
    stamp(root, "runtime")
    done = run_setup(root, "run", "--", "causerie")
    assert done.returncode == 2
    assert "xvfb-run -a make run" in done.stderr
    assert "causerie demo --headless" in done.stderr


def test_an_unknown_level_is_refused(root: Path) -> None:
    assert run_setup(root, "everything").returncode == 2


def test_an_environment_is_made_by_a_python_outside_of_it() -> None:
    """Ours may be the one in use, and is removed first."""
    assert Path(sys.prefix) not in Path(setup.outside_python()).parents
    assert Path(setup.outside_python()).exists()
