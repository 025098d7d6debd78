"""Try a sample of mutants of the pure state machines: would the tests notice a slip of the hand.

Mutants are made by ``scripts/mutants.py``, and ``scripts/mutation_tests.py`` tries them with the
tests of their part of the core.  One that no test notices has survived: either it is equivalent,
which docs/mutations.md then says with the reason, or a test is missing.  Verdicts are written down
one by one, so a run that was interrupted goes on where it was.  They hold for the core and the
tests that they were found with.  ``python -m scripts.mutations --help`` names the options.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from scripts.mutants import Mutant, mutants_of, sample

ROOT = Path(__file__).resolve().parent.parent
CORE = Path("engine/core")
WORKSHOP = ROOT / "build" / "mutations"
PAGE = ROOT / "docs" / "mutations.md"
SIZE = 300
SEED = 18
ALLOWED_SHARE = 0.08
"""How much of the sample may survive without being equivalent."""
PATIENCE_S = 1_800
"""For the tests of a part with a mutant that was imported: some hang."""

AREAS = {
    "sds": "tests/core/sds",
    "mvds": "tests/core/mvds",
    "history": "tests/core/history",
    "membership": "tests/core/membership",
    "agreement.py": "tests/core/test_agreement.py",
}
"""The tests that are to notice a change of a part of the core."""


class Outcome(NamedTuple):
    """What became of a sample: who noticed each mutant, "" if nobody did."""

    noticed_by: dict[Mutant, str]
    equivalent: set[str]

    @property
    def survivors(self) -> list[Mutant]:
        return [
            mutant
            for mutant, by in self.noticed_by.items()
            if not by and mutant.key not in self.equivalent
        ]

    @property
    def is_good(self) -> bool:
        return len(self.survivors) <= ALLOWED_SHARE * len(self.noticed_by)

    def summary(self) -> str:
        tried, survived = len(self.noticed_by), len(self.survivors)
        unnoticed = sum(not by for by in self.noticed_by.values())
        return (
            f"mutations: {tried} tried, {tried - unnoticed} noticed,"
            f" {unnoticed - survived} equivalent, {survived} survived"
        )


def main() -> int:
    options = _options()
    outcome = run(options.size, options.seed, only=options.only, keep_killed=options.keep_killed)
    for mutant in outcome.survivors:
        print(f"survived: {mutant.module}:{mutant.line} {mutant.name}")
    print(outcome.summary())
    return 0 if outcome.is_good else 1


def run(size: int, seed: int, *, only: str = "", keep_killed: bool = False) -> Outcome:
    """Try the mutants of a sample; ``only`` those whose path has this in it."""
    WORKSHOP.mkdir(parents=True, exist_ok=True)
    chosen = [mutant for mutant in sample(all_mutants(), size, seed) if only in mutant.module]
    noticed_by: dict[Mutant, str] = {}
    for area, tests in AREAS.items():
        here = [mutant for mutant in chosen if _area_of(mutant) == area]
        if here:
            trial = _Trial(area, tests, keep_killed=keep_killed)
            trial.run(here)
            noticed_by |= {mutant: trial.noticed_by(mutant) or "" for mutant in here}
    return Outcome(noticed_by, equivalent())


def all_mutants() -> list[Mutant]:
    return [
        mutant
        for area in AREAS
        for path in _modules_of(area)
        for mutant in mutants_of(
            path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        )
    ]


def equivalent() -> set[str]:
    """Keys of the mutants that docs/mutations.md calls equivalent."""
    page = PAGE.read_text(encoding="utf-8").replace("\\|", "|")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", page, re.MULTILINE)
    return {f"{module} {name}" for module, name in rows}


class _Trial:
    """The mutants of one part of the core, its tests, and the verdicts on disk."""

    def __init__(self, area: str, tests: str, *, keep_killed: bool) -> None:
        self._tests = tests
        self._keep_killed = keep_killed
        self._fingerprint = _fingerprint(tests)
        name = area.removesuffix(".py")
        self._calls = WORKSHOP / f"{name}-calls.json"
        self._calls_of = WORKSHOP / f"{name}-calls-of"
        self._verdicts = WORKSHOP / f"{name}-{self._fingerprint}.jsonl"
        self._earlier = [*WORKSHOP.glob(f"{name}-*.jsonl")] if keep_killed else []
        self._noticed_by: dict[str, str | None] = {}
        """By key of the mutant; None: it was not possible to put it in place of a function."""

    def run(self, mutants: Iterable[Mutant]) -> None:
        """Find the verdicts that are missing."""
        self._read()
        untried = [mutant for mutant in mutants if mutant.key not in self._noticed_by]
        in_functions = [mutant for mutant in untried if mutant.function]
        if untried:
            self._record_calls()
        if in_functions:
            listed = WORKSHOP / "mutants.json"
            listed.write_text(json.dumps(in_functions), encoding="utf-8")
            self._pytest("--try-mutants", self._calls, listed, self._verdicts)
            self._read()
        for mutant in untried:
            if self._noticed_by.get(mutant.key) is None:
                self._import(mutant)

    def noticed_by(self, mutant: Mutant) -> str | None:
        return self._noticed_by[mutant.key]

    def _read(self) -> None:
        self._noticed_by = {}
        for path in [*self._earlier, self._verdicts]:
            is_earlier = path != self._verdicts
            for line in path.read_text("utf-8").splitlines() if path.exists() else []:
                *words, noticed_by = json.loads(line)
                if noticed_by or not is_earlier:
                    self._noticed_by[Mutant(*words).key] = noticed_by

    def _record_calls(self) -> None:
        """Run all tests unchanged: they must pass, and say what they call."""
        if self._calls_of.exists():
            is_of_these = self._calls_of.read_text(encoding="utf-8") == self._fingerprint
            if is_of_these or self._keep_killed:
                return
        self._calls_of.unlink(missing_ok=True)
        if code := self._pytest("--record-calls", self._calls):
            raise RuntimeError(f"{self._tests} does not pass by itself: exit code {code}")
        self._calls_of.write_text(self._fingerprint, encoding="utf-8")

    def _import(self, mutant: Mutant) -> None:
        try:
            words = (self._calls, mutant.module, mutant.name)
            code = self._pytest("-x", "--import-mutant", *words, timeout_s=PATIENCE_S)
            noticed_by = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            noticed_by = "no end"
        self._noticed_by[mutant.key] = noticed_by
        with self._verdicts.open("a", encoding="utf-8") as file:
            file.write(json.dumps([*mutant, noticed_by]) + "\n")

    def _pytest(self, *arguments: str | Path, timeout_s: float | None = None) -> int:
        """Exit code; what it prints goes to a file."""
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
        command += ["-p", "scripts.mutation_tests", "-m", "not long and not slow"]
        command += [*map(str, arguments), self._tests]
        with (WORKSHOP / "output.txt").open("w", encoding="utf-8") as output:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=dict(os.environ, PYTHONPATH=str(ROOT)),
                check=False,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
            )
        return done.returncode


def _modules_of(area: str) -> list[Path]:
    place = ROOT / CORE / area
    return sorted(place.glob("*.py")) if place.is_dir() else [place]


def _area_of(mutant: Mutant) -> str:
    return Path(mutant.module).relative_to(CORE).parts[0]


def _fingerprint(tests: str) -> str:
    """Of the core and of these tests."""
    place = ROOT / tests
    paths = [*(ROOT / CORE).rglob("*.py"), *(place.rglob("*.py") if place.is_dir() else [place])]
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(path.read_bytes())
    return whole.hexdigest()[:12]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.mutations")
    parser.add_argument("--size", type=int, default=SIZE, help="how many mutants")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="", help="only modules with this in their path")
    parser.add_argument(
        "--keep-killed",
        action="store_true",
        help="while you write tests: try again only what survived",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
