"""Run the tests on all processors and end with one line of counts.

The long ones (``--long``) build packages and take turns instead; with them go all that draw random
examples, of a new seed.  What fails in the other ones runs once more, alone: what passes then
depends on what ran beside it, is named as unsteady, and is a defect of its own.  A skipped test
counts as a failure when ``CI`` is set: there a check that did not run must be red.  So do the tests
against other implementations where those cannot be had (scripts/peers.py).  As none is left out
there, they are still being set up when the first tests run, and those that need one wait for it;
elsewhere they come first, because what cannot be had is not collected.

There are two workers more than processors: many tests wait for a peer, a timer or a process, and
leave their processor to another.  With only one more, two processors took some 2 % longer.  Their
directories are in memory where that can be had.  Nothing is tested less by that: the program calls
``fsync`` as ever, what a killed process had written is there as on a disk, and no test can cut the
power.
"""

import os
import secrets
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from scripts import peers

ROOT = Path(__file__).resolve().parent.parent
TESTS_FAILED = 1
NO_TESTS_COLLECTED = 5
MAX_UNSTEADY = 3
"""More than so many that fail at first are no accident, however often they pass afterwards."""
SEEDS = 2**32
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
DIRECTORIES_AT = "PYTEST_DEBUG_TEMPROOT"
IN_MEMORY = Path("/dev/shm")  # noqa: S108 -- pytest makes a directory there that is ours alone
ROOM_IN_MEMORY = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Counts:
    ran: int
    failed: int
    skipped: int
    seconds: float

    def line(self, what: str) -> str:
        return (
            f"{what}: {self.ran} ran, {self.failed} failed, {self.skipped} skipped"
            f" in {self.seconds:.0f} s"
        )


def counts_of(report: Path) -> Counts:
    """Sum up a JUnit report; a suite that never started has written none: OSError."""
    suites = ET.parse(report).getroot().iter("testsuite")  # noqa: S314 -- pytest's own, just written
    ran = failed = skipped = 0
    seconds = 0.0
    for suite in suites:
        skipped_here = int(suite.get("skipped", "0"))
        skipped += skipped_here
        ran += int(suite.get("tests", "0")) - skipped_here
        failed += int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        seconds += float(suite.get("time", "0"))
    return Counts(ran=ran, failed=failed, skipped=skipped, seconds=seconds)


def verdict(code: int, counts: Counts, *, strict: bool) -> int:
    """Exit code of pytest, made worse where nothing ran or, if ``strict``, something did not."""
    if code:
        return code
    if counts.ran == 0:
        return NO_TESTS_COLLECTED
    return 1 if strict and counts.skipped else 0


def names_in(report: Path) -> list[str]:
    """What ran, by a JUnit report."""
    cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 -- pytest's own, just written
    return [f"{case.get('classname')}::{case.get('name')}" for case in cases]


def run_again_alone(
    root: Path, report: Path, environment: Mapping[str, str] | None = None
) -> list[str]:
    """Run what failed last without company; its names if all of it passes, else nothing."""
    report.unlink(missing_ok=True)
    only_failed = ["--last-failed", "--last-failed-no-failures=none", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *only_failed]
    code = subprocess.run(command, cwd=root, env=environment, check=False).returncode
    return names_in(report) if code == 0 and report.exists() else []


def workers() -> int:
    """One for each processor that is ours, and two more for while others wait."""
    ours = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return ours + 2


def is_roomy(place: Path) -> bool:
    """Whether tests can have their directories here, and start programs from there."""
    if not os.access(place, os.W_OK):
        return False
    here = os.statvfs(place)
    no_programs = here.f_flag & getattr(os, "ST_NOEXEC", 0)
    return here.f_bavail * here.f_frsize >= ROOM_IN_MEMORY and not no_programs


def surroundings(environment: Mapping[str, str], in_memory: Path) -> dict[str, str]:
    """What pytest runs in: a fast place for directories, unless there is one named already.

    Bytecode is kept, because hundreds of tests start the program.
    """
    made = {name: value for name, value in environment.items() if name != NO_BYTECODE}
    if is_roomy(in_memory):
        made.setdefault(DIRECTORIES_AT, str(in_memory))
    return made


def chosen(arguments: list[str], *, is_long: bool, seed: int) -> list[str]:
    """What pytest is told; ``seed`` is for the long ones, the others draw the same every time."""
    if not is_long:
        return ["-n", str(workers()), *arguments]
    drawn = ["--hypothesis-profile=explore", f"--hypothesis-seed={seed}"]
    return ["-m", "long or hypothesis", *drawn, *arguments]


def run_with(
    set_up: Callable[[], list[str]], run: Callable[[], int], *, is_beside: bool
) -> tuple[int, list[str]]:
    """What ``run`` ends with and ``set_up`` says, one beside the other or after it."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        said = pool.submit(set_up)
        if not is_beside:
            said.result()
        return run(), said.result()


def main() -> int:
    arguments = sys.argv[1:]
    is_long = arguments[:1] == ["--long"]
    seed = secrets.randbelow(SEEDS)
    name = "test-long" if is_long else "test"
    report = ROOT / "build" / f"{name}.xml"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    told = chosen(arguments[is_long:], is_long=is_long, seed=seed)
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *told]
    for argument in [one for one in told if one.startswith("--hypothesis-seed=")][-1:]:
        print(f"{name}: examples are drawn with {argument}", flush=True)
    environment = dict(os.environ) if is_long else surroundings(os.environ, IN_MEMORY)
    strict = bool(os.environ.get("CI"))
    code, not_run = run_with(
        lambda: peers.missing(peers.wanted(is_long=is_long)),
        lambda: subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode,
        is_beside=strict,
    )
    if not report.exists():
        print(f"{name}: did not run, exit code {code}")
        return code or 1
    counts = counts_of(report)
    if code == TESTS_FAILED and not is_long and counts.failed <= MAX_UNSTEADY:
        print(f"{name}: {counts.failed} failed and run once more, alone", flush=True)
        unsteady = run_again_alone(ROOT, report.with_name(f"{name}-again.xml"), environment)
        if len(unsteady) == counts.failed:
            code = 0
            print(f"{name}: unsteady, to be mended: {', '.join(unsteady)}")
    print(counts.line(name))
    for line in not_run:
        print(line)
    return verdict(code, counts, strict=strict) or int(strict and bool(not_run))


if __name__ == "__main__":
    sys.exit(main())
