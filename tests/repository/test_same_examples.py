"""``make test`` draws the same random examples everywhere, ``make test-long`` new ones."""

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

from scripts.testing import chosen

ROOT = Path(__file__).resolve().parents[2]
DRAWING = "tests/codec/test_tuple_bytes.py::test_every_tuple_can_be_read_back"
MANY_MODULES = ("-p", "engine.runtime.profile_services")


def examples(*arguments: str, **environment: str) -> list[str]:
    """What a test of any texts, bytes and numbers draws, in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-n0", "-p", "no:cacheprovider"]
    told = [DRAWING, "--hypothesis-verbosity=verbose", *arguments]
    done = subprocess.run(
        [*command, *told],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = done.stdout.decode().splitlines()[:-1]  # The last says how long it took.
    assert sum(line.startswith("Test case:") for line in lines) >= 100, lines[-5:]
    return lines


def test_the_gate_draws_the_same_whatever_is_imported_and_wherever_it_runs(tmp_path: Path) -> None:
    elsewhere = {"CI": "true", "PYTHONHASHSEED": "5", "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path)}
    assert examples() == examples(*MANY_MODULES, **elsewhere)


def test_the_long_run_draws_others_for_each_seed_and_the_same_for_one() -> None:
    first, again, second = (
        examples(*chosen([], is_long=True, seed=seed)[2:]) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != second


def test_the_long_run_takes_in_all_that_draw() -> None:
    told = chosen(["-k", "bloom"], is_long=True, seed=7)
    assert told[:2] == ["-m", "long or hypothesis"]
    assert "--hypothesis-seed=7" in told
    assert not [one for one in chosen([], is_long=False, seed=7) if "hypothesis" in one]


def test_the_gate_is_in_force_and_no_busy_machine_fails_an_example() -> None:
    assert settings.get_current_profile_name() == "gate"
    for profile in (settings.get_profile("gate"), settings.get_profile("explore")):
        assert profile.deadline is None
        assert profile.print_blob
        assert HealthCheck.too_slow in profile.suppress_health_check
    assert settings().derandomize
    assert not settings.get_profile("explore").derandomize
