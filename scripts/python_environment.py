"""A virtual environment below ``build`` that holds exactly what lock files pin with hashes.

For programs that tests talk to and that must not meet our own dependencies.  It is ready only if it
names the locks, the Python and the place that it was made from; what was interrupted is begun anew.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.interop import InteropUnavailable
from scripts.setup import clean_environment

ROOT: Final = Path(__file__).resolve().parent.parent
READY: Final = "ready"
TIMEOUT_S: Final = 600
PIP: Final = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonEnvironment:
    place: Path
    locks: Sequence[Path]
    """Installed one after the other."""
    options: Sequence[str] = ("--only-binary", ":all:")
    """Told to pip."""

    @property
    def python(self) -> Path:
        """The interpreter, once ``ensure`` has been called."""
        return self.place / "bin" / "python"

    @property
    def fingerprint(self) -> str:
        parts = [lock.read_bytes() for lock in self.locks]
        parts += [sys.version.encode(), str(self.place).encode()]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    def is_ready(self) -> bool:
        try:
            return (self.place / READY).read_text(encoding="utf-8") == self.fingerprint
        except OSError:
            return False

    def ensure(self) -> None:
        """Install what the locks say unless it is there: InteropUnavailable."""
        self.place.parent.mkdir(exist_ok=True)
        with self.place.with_name(f"{self.place.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_ready():
                self._install()

    def _install(self) -> None:
        print(f"set-up: Python packages into build/{self.place.name}", flush=True)
        shutil.rmtree(self.place, ignore_errors=True)
        must_run(sys.executable, "-m", "venv", "--without-pip", str(self.place))
        for lock in self.locks:
            asked = ("--require-hashes", "--no-deps", *self.options, "-r", str(lock))
            must_run(sys.executable, *PIP, "--python", str(self.python), "install", "-q", *asked)
        (self.place / READY).write_text(self.fingerprint, encoding="utf-8")


def must_run(python: str, *arguments: str) -> None:
    """Run ``python -m module ...`` from the project's root: InteropUnavailable."""
    module = arguments[1]
    try:
        done = subprocess.run(
            (python, *arguments),
            cwd=ROOT,
            env=clean_environment(os.environ),
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as slow:
        raise InteropUnavailable(f"{module} did not end within {TIMEOUT_S} s") from slow
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        last = (done.stdout.strip().splitlines() or ["it says no more"])[-1]
        raise InteropUnavailable(f"python -m {module}: {last}")
