"""Fetch py-libp2p, which tests and benchmarks talk to, into ``build/interop-python``.

A virtual environment of its own: nothing of ours meets its dependencies.  It holds exactly what
``tests/interop/py_libp2p/requirements.txt`` pins with hashes.  All of it comes as wheels but two
packages of one Python module each, which the locked setuptools (``build.txt``) packs; so no
compiler and no library of the system is needed.  An environment is ready only if it names the lock,
the Python and the place that it was made from; what was interrupted is begun anew.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.interop import InteropUnavailable
from scripts.setup import clean_environment

ROOT = Path(__file__).resolve().parent.parent
LOCKED = ROOT / "tests" / "interop" / "py_libp2p"
FILES = ("build.txt", "requirements.txt")
PLACE = ROOT / "build" / "interop-python"
READY = "ready"
NOT_AS_WHEELS = "varint,python-baseconv"
TIMEOUT_S = 600
INSTALL = (
    *("-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "1", "install", "-q"),
    *("--require-hashes", "--no-deps", "--no-build-isolation"),
    *("--only-binary", ":all:", "--no-binary", NOT_AS_WHEELS),
)


def python() -> Path:
    """The interpreter, once ``ensure`` has been called."""
    return PLACE / "bin" / "python"


def fingerprint() -> str:
    parts = [(LOCKED / name).read_bytes() for name in FILES]
    parts += [sys.version.encode(), str(PLACE).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_ready() -> bool:
    try:
        return (PLACE / READY).read_text(encoding="utf-8") == fingerprint()
    except OSError:
        return False


def ensure() -> None:
    """Install what the lock says unless it is there: InteropUnavailable."""
    PLACE.parent.mkdir(exist_ok=True)
    with (PLACE.parent / "interop-python.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_ready():
            _install()


def _install() -> None:
    print("set-up: packages of tests/interop/py_libp2p into build/interop-python", flush=True)
    shutil.rmtree(PLACE, ignore_errors=True)
    _must_run(sys.executable, "-m", "venv", str(PLACE))
    for name in FILES:
        _must_run(str(python()), *INSTALL, "-r", str(LOCKED / name))
    (PLACE / READY).write_text(fingerprint(), encoding="utf-8")


def _must_run(*command: str) -> None:
    try:
        done = subprocess.run(
            command,
            env=clean_environment(os.environ),
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as slow:
        raise InteropUnavailable(f"pip did not end within {TIMEOUT_S} s") from slow
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise InteropUnavailable(f"python -m {command[2]} failed; see above")
