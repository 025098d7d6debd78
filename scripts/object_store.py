"""An S3 on this machine, for tests of tables behind a URL, in ``build/object-store``.

It is moto's server, in an environment of its own: its clients take an older package than the
application's lock has.  ``tests/pipeline/s3/requirements.txt`` pins all of it with hashes (`make
lock` makes it of ``requirements.in``).  An environment is ready only if it names the lock, the
Python and the place that it was made from; what was interrupted is begun anew.

``jars`` fetches what Spark needs for such tables, which are pinned in ``pipeline/tables/jars.txt``.
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
LOCK = ROOT / "tests" / "pipeline" / "s3" / "requirements.txt"
PLACE = ROOT / "build" / "object-store"
READY = "ready"
TIMEOUT_S = 600
INSTALL = (
    *("-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "1", "install", "-q"),
    *("--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(LOCK)),
)
JARS = ("-m", "pipeline.tables.jars")


def python() -> Path:
    """The interpreter, once ``ensure`` has been called."""
    return PLACE / "bin" / "python"


def fingerprint() -> str:
    parts = (LOCK.read_bytes(), sys.version.encode(), str(PLACE).encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_ready() -> bool:
    try:
        return (PLACE / READY).read_text(encoding="utf-8") == fingerprint()
    except OSError:
        return False


def ensure() -> None:
    """Install what the lock says unless it is there: InteropUnavailable."""
    PLACE.parent.mkdir(exist_ok=True)
    with (PLACE.parent / "object-store.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_ready():
            print("set-up: packages of tests/pipeline/s3 into build/object-store", flush=True)
            shutil.rmtree(PLACE, ignore_errors=True)
            _must_run(sys.executable, "-m", "venv", str(PLACE))
            _must_run(str(python()), *INSTALL)
            (PLACE / READY).write_text(fingerprint(), encoding="utf-8")


def have_jars() -> bool:
    return subprocess.run([sys.executable, *JARS, "--have"], cwd=ROOT, check=False).returncode == 0


def ensure_jars() -> None:
    """Fetch them unless they are there: InteropUnavailable."""
    _must_run(sys.executable, *JARS)


def _must_run(*command: str) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=clean_environment(os.environ),
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as slow:
        raise InteropUnavailable(f"{command[2]} did not end within {TIMEOUT_S} s") from slow
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ["it says no more"])[-1]
        raise InteropUnavailable(f"python -m {command[2]}: {last}")
