"""Start the packaged program once, as people do first: its version, the window, the doctor.

``python -m scripts.smoke [PROGRAM]``: without an argument the program folder in ``dist``.  The
window opens without a screen, in a new profile, and ends as soon as the profile's database is
there.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from scripts.linux_packages import DIST
from scripts.release import version

START_S = 90
DOCTOR_CODES = frozenset({0, 1})
"""1: something is not well, and a new profile without a network has no peers."""


class SmokeFailed(Exception):  # noqa: N818 -- says what happened
    """The program did not do what every start does; the text says what it did."""


def surroundings() -> Mapping[str, str]:
    return {**os.environ, "QT_QPA_PLATFORM": "offscreen", "CAUSERIE_KEY_FILE": "1"}


def answer(program: Path, *words: str | Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [program, *words],
        check=False,
        text=True,
        encoding="utf-8",
        capture_output=True,
        env=surroundings(),
        timeout=START_S,
    )
    return done.returncode, done.stdout, done.stderr


def first_window(program: Path, profile: Path) -> str:
    """Start the window, wait until its profile's database is there, end it; what it said."""
    with subprocess.Popen(
        [program, "--profile-dir", profile],
        env=surroundings(),
        text=True,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        deadline = time.monotonic() + START_S
        while not (profile / "causerie.db").exists() and process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
                raise SmokeFailed("the window did not open its profile")
            time.sleep(0.05)
        if process.poll() is not None:
            raise SmokeFailed(f"the window ended by itself: {process.communicate()[0]}")
        process.terminate()
        said = process.communicate(timeout=START_S)[0]
    if "Traceback" in said:
        raise SmokeFailed(said)
    return said


def try_out(program: Path) -> None:
    """Raises SmokeFailed."""
    code, said, error = answer(program, "--version")
    if code or said.split()[-1:] != [version()]:
        raise SmokeFailed(f"--version: {code} {said}{error}")
    with tempfile.TemporaryDirectory() as place:
        profile = Path(place) / "profile"
        first_window(program, profile)
        code, said, error = answer(program, "doctor", "--json", "--profile-dir", profile)
        if code not in DOCTOR_CODES or not isinstance(json.loads(said or "null"), dict):
            raise SmokeFailed(f"doctor: {code} {said}{error}")


def main() -> int:
    name = "causerie.exe" if sys.platform == "win32" else "causerie"
    program = Path(sys.argv[1]) if len(sys.argv) > 1 else DIST / "causerie" / name
    try:
        try_out(program)
    except (SmokeFailed, OSError, ValueError, subprocess.TimeoutExpired) as failed:
        print(f"smoke: {program}: {failed}", file=sys.stderr)
        return 1
    print(f"smoke: {program}: version, window and doctor are well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
