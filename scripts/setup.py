"""Set up what a make target needs, then become its command.

``python3 -m scripts.setup LEVEL -- COMMAND ARGUMENT...`` sees that the system's libraries are there
(scripts/needs.py), that ``.venv`` holds exactly the packages of the lock, and then replaces itself
with COMMAND from that environment.  Levels: ``run`` takes the runtime lock, ``pipeline`` the
pipeline's, every other level the development lock, because it holds the tools too.

An environment is ready only if ``.venv/ready`` names the lock, the Python and the place that it was
made from.  The stamp comes last, so that a set-up that was interrupted is begun anew and never used
half-done.  A ``.venv`` that was not made here is its owner's and not touched.  Packages come as
wheels (but one, see scripts/source_packages.py) and are checked against the hashes in the lock; of
pip's own settings only those that describe the network count.

Translations are built if they are older than their sources (scripts/translations.py).

Only the standard library is used.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 -- this may be started by whatever python3 is
    sys.exit(
        f"Causerie needs Python 3.11 or newer, this is {sys.version.split()[0]};"
        " name one: make PYTHON=python3.12"
    )

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from scripts import needs, source_packages, translations

ROOT = Path(__file__).resolve().parent.parent
VENV_NAME = ".venv"
READY = "ready"
UNFINISHED = "unfinished"
EXIT_FAILED = 1
EXIT_USAGE = 2

NETWORK_OF_PIP = frozenset(
    {
        "PIP_CACHE_DIR",
        "PIP_CERT",
        "PIP_CLIENT_CERT",
        "PIP_CONFIG_FILE",
        "PIP_DEFAULT_TIMEOUT",
        "PIP_INDEX_URL",
        "PIP_NO_CACHE_DIR",
        "PIP_PROXY",
        "PIP_RETRIES",
        "PIP_TRUSTED_HOST",
    }
)
"""pip's variables that say how to reach packages; the rest would change what is installed."""

NO_DISPLAY = """\
make run: there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set), so no window can open.
  to open it on a virtual screen:       xvfb-run -a make run
  to see it work without any display:   .venv/bin/causerie demo --headless
"""


class SetupError(Exception):
    """Set-up cannot go on; the text says why."""


LOCK_OF: Mapping[str, str] = {"run": "runtime", "pipeline": "pipeline"}
LOCKS = ("runtime", "pipeline", "dev")
"""Each holds what the one before it does, and more."""


def lock_of(level: str) -> str:
    return LOCK_OF.get(level, "dev")


def fingerprint(root: Path, lock: str) -> str:
    """What an environment was made from: lock, Python, place and the project's own metadata."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    parts = (
        (root / "requirements" / f"{lock}.txt").read_text(encoding="utf-8"),
        json.dumps([project["project"], project["build-system"]], sort_keys=True),
        sys.version,
        str(root),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_ready(root: Path, lock: str) -> bool:
    """An environment with more serves where less is asked for, never the other way round."""
    stamp = root / VENV_NAME / READY
    try:
        found = stamp.read_text(encoding="utf-8").split()
    except OSError:
        return False
    wanted = LOCKS[LOCKS.index(lock) :]
    return any(found == [name, fingerprint(root, name)] for name in wanted)


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what would make another Python, or pip, look in places of its own."""
    return {
        name: value
        for name, value in environment.items()
        if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"}
        and (not name.startswith("PIP_") or name in NETWORK_OF_PIP)
    }


def _must_run(root: Path, *command: str | Path) -> None:
    done = subprocess.run(command, cwd=root, env=clean_environment(os.environ), check=False)
    if done.returncode:
        raise SetupError(f"python {command[1]} {command[2]} failed; see above")


def outside_python() -> str:
    """Ours, or the one it is an environment of, as an environment is removed before it is made."""
    return getattr(sys, "_base_executable", sys.executable)


def _fill(root: Path, lock: str) -> None:
    venv = root / VENV_NAME
    python = venv / "bin" / "python"

    def pip(arguments: Sequence[str | Path]) -> None:
        silent = ("--disable-pip-version-check", "--no-input")
        _must_run(root, python, "-m", "pip", *silent, *arguments)

    def install(*arguments: str | Path) -> None:
        pip(["install", "-q", "--no-compile", *arguments])

    _must_run(root, outside_python(), "-m", "venv", venv)
    locked = (root / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    wheels, sources = source_packages.split(locked)
    requirements = venv / "wheels.txt"
    requirements.write_text(wheels, encoding="utf-8")
    install("--require-hashes", "--only-binary", ":all:", "-r", requirements)
    for entry in sources:
        wheel = source_packages.wheel_of(root, entry, pip)
        install("--no-index", "--no-deps", wheel)
    install("--no-index", "--no-deps", "--no-build-isolation", "-e", root)
    _compile_all(root, venv)


def _compile_all(root: Path, venv: Path) -> None:
    """On all processors, where pip takes one; what is no module of this Python stays as it is."""
    command = (venv / "bin" / "python", "-m", "compileall", "-qq", "-j", "0", venv / "lib")
    subprocess.run(command, cwd=root, env=clean_environment(os.environ), check=False)


def build_venv(root: Path, lock: str) -> None:
    """Make ``.venv`` from nothing; on any failure nothing of it is left."""
    venv = root / VENV_NAME
    stamp, mark = venv / READY, venv / UNFINISHED
    if venv.exists() and not (stamp.exists() or mark.exists()):
        raise SetupError(f"{venv} was not made by make: remove it, then try again")
    print(f"set-up: Python packages of requirements/{lock}.txt into {VENV_NAME}", flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    venv.mkdir()
    try:
        mark.touch()
        _fill(root, lock)
        mark.write_text(f"{lock} {fingerprint(root, lock)}\n", encoding="utf-8")
        mark.replace(stamp)
    except BaseException:
        shutil.rmtree(venv, ignore_errors=True)
        raise


@contextmanager
def one_at_a_time(root: Path) -> Iterator[None]:
    """Two makes started side by side must not build the same environment."""
    directory = root / "build"
    directory.mkdir(exist_ok=True)
    with (directory / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure(root: Path, level: str, more: Sequence[needs.Need] = ()) -> None:
    """Raises NeedsMissing or SetupError."""
    with one_at_a_time(root):
        needs.meet((*needs.LEVELS[level], *more))
        if not is_ready(root, lock_of(level)):
            build_venv(root, lock_of(level))
        translations.build(root, root / VENV_NAME / "bin")


def has_display(environment: Mapping[str, str]) -> bool:
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return sys.platform != "linux" or any(environment.get(name) for name in names)


def opens_window(arguments: Sequence[str]) -> bool:
    windowless = {"node", "doctor", "--headless", "--help", "-h", "--version"}
    return not windowless.intersection(arguments)


def command_environment(root: Path, level: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What the command gets: the environment first on the path, UTF-8, and no screen in tests."""
    made = clean_environment(environment)
    made["VIRTUAL_ENV"] = str(root / VENV_NAME)
    made["PATH"] = f"{root / VENV_NAME / 'bin'}{os.pathsep}{made.get('PATH', os.defpath)}"
    locale = made.get("LC_ALL") or made.get("LC_CTYPE") or made.get("LANG") or ""
    if sys.platform == "linux" and "utf" not in locale.lower():
        # Qt warns about any other encoding, and file names and messages are UTF-8.
        made["LC_ALL"] = "C.UTF-8"
    if level != "run":
        made.setdefault("QT_QPA_PLATFORM", "offscreen")
        runtime = root / "build" / "xdg-runtime"
        if "XDG_RUNTIME_DIR" not in made:
            runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
            made["XDG_RUNTIME_DIR"] = str(runtime)
    return made


def become(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    sys.stdout.flush()
    os.chdir(ROOT)
    os.execvpe(command[0], list(command), environment)  # noqa: S606 -- the command is the caller's own


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts.setup", description="set up, then run")
    parser.add_argument("level", choices=sorted(needs.LEVELS))
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    chosen = parser.parse_args(arguments)
    command: list[str] = [part for part in chosen.command[:1] if part != "--"]
    command += chosen.command[1:]
    level: str = chosen.level

    without_display = level == "run" and opens_window(command) and not has_display(os.environ)
    try:
        ensure(ROOT, level, needs.DISPLAY_SERVER if without_display else ())
    except needs.NeedsMissing as lacking:
        print(lacking.line, file=sys.stderr)
        return EXIT_FAILED
    except (SetupError, OSError, subprocess.CalledProcessError) as failure:
        print(f"set-up: {failure}", file=sys.stderr)
        return EXIT_FAILED
    if without_display:
        print(NO_DISPLAY, end="", file=sys.stderr)
        return EXIT_USAGE
    if not command:
        return 0
    become(command, command_environment(ROOT, level, os.environ))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
