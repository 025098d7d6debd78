"""The gate: every check runs, one failure hides no other, and what did not run is red."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from scripts.check import CHECKS, run_all
from scripts.testing import (
    NO_TESTS_COLLECTED,
    Counts,
    chosen,
    counts_of,
    run_again_alone,
    run_with,
    surroundings,
    verdict,
)
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


def test_a_failed_check_hides_neither_the_next_nor_its_own_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    checks = {
        "bad": (sys.executable, "-c", "print('the reason'); raise SystemExit(3)"),
        "good": (sys.executable, "-c", "print('nothing to see')"),
    }
    assert run_all(checks, ROOT) == {"bad": 3, "good": 0}
    said = capsys.readouterr().out
    assert "FAILED  bad" in said
    assert "the reason" in said
    assert "ok  good" in said
    assert "nothing to see" not in said


def test_the_gate_holds_every_kind_of_check() -> None:
    tools = {command[0] for command in CHECKS.values()}
    assert {"ruff", "mypy", "lint-imports", "pytest"} <= tools
    assert any("scripts/proto.py" in command for command in CHECKS.values())


REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="1.5"/>
</testsuites>
"""


def test_counts_come_from_the_report(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT, encoding="utf-8")
    counts = counts_of(path)
    assert counts == Counts(ran=7, failed=3, skipped=3, seconds=1.5)
    assert counts.line("test") == "test: 7 ran, 3 failed, 3 skipped in 2 s"


@pytest.mark.parametrize(
    ("code", "ran", "skipped", "strict", "expected"),
    [
        (0, 5, 0, True, 0),
        (0, 5, 1, False, 0),
        (0, 5, 1, True, 1),
        (0, 0, 0, False, NO_TESTS_COLLECTED),
        (1, 5, 0, False, 1),
        (2, 0, 0, True, 2),
    ],
)
def test_nothing_that_did_not_run_counts_as_passed(
    code: int, ran: int, skipped: int, strict: bool, expected: int
) -> None:
    counts = Counts(ran=ran, failed=0, skipped=skipped, seconds=0)
    assert verdict(code, counts, strict=strict) == expected


FAILS_AT_FIRST = """
from pathlib import Path

def test_unsteady():
    been_here = Path(__file__).with_suffix(".been")
    was_here, _ = been_here.exists(), been_here.touch()
    assert was_here

def test_right():
    assert True
"""
ALWAYS_FAILS = "def test_wrong():\n    assert False\n"


@pytest.mark.parametrize(
    ("tests", "unsteady"),
    [(FAILS_AT_FIRST, ["test_it::test_unsteady"]), (FAILS_AT_FIRST + ALWAYS_FAILS, [])],
    ids=["unsteady", "one of two is wrong"],
)
def test_only_what_failed_is_run_again_and_all_of_it_has_to_pass(
    tmp_path: Path, tests: str, unsteady: list[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_it.py").write_text(tests, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q"]
    first = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True)
    assert first.returncode == 1
    assert run_again_alone(tmp_path, tmp_path / "again.xml") == unsteady


def test_directories_are_in_memory_where_there_is_room_and_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"HOME": "alice"}
    given = kept | {"PYTHONDONTWRITEBYTECODE": "1"}
    named = {"PYTEST_DEBUG_TEMPROOT": "/elsewhere"}
    monkeypatch.setattr("scripts.testing.ROOM_IN_MEMORY", 1)
    assert surroundings(given, tmp_path) == kept | {"PYTEST_DEBUG_TEMPROOT": str(tmp_path)}
    assert surroundings(named, tmp_path) == named
    assert surroundings(given, tmp_path / "none") == kept
    monkeypatch.setattr("scripts.testing.ROOM_IN_MEMORY", 2**70)
    assert surroundings(given, tmp_path) == kept


def test_the_long_tests_take_turns_and_the_others_wait_beside_each_other() -> None:
    assert "-n" not in chosen([], is_long=True, seed=1)
    flag, count = chosen([], is_long=False, seed=1)
    assert flag == "-n"
    assert int(count) >= 2


def test_where_nothing_is_left_out_tests_do_not_wait_for_the_set_up() -> None:
    both = threading.Barrier(2)

    def set_up() -> list[str]:
        both.wait(PATIENCE_S)
        return ["not run"]

    def run() -> int:
        both.wait(PATIENCE_S)
        return 3

    assert run_with(set_up, run, is_beside=True) == (3, ["not run"])


def test_where_what_is_not_there_is_left_out_the_set_up_comes_first() -> None:
    runs = threading.Event()

    def set_up() -> list[str]:
        return ["too early"] if runs.wait(0.1) else []

    def run() -> int:
        runs.set()
        return 0

    assert run_with(set_up, run, is_beside=False) == (0, [])


CHECK_RUNS = "check:\n\t@mkdir -p build; echo 1 > build/check.json\n"
TEST_RUNS = "test:\n\t@mkdir -p build; echo 1 > build/test.xml\n"
CHECK_WAITS = (
    "interop-setup:\n\t@touch build/begun\n"
    "check:\n\t@timeout 60 sh -c 'until [ -e build/begun ]; do :; done'; "
    "echo $$? > build/check.json; rm build/begun\n"
)


@pytest.mark.parametrize(
    ("makefile", "expected", "said"),
    [
        (CHECK_RUNS + TEST_RUNS, 0, "passed"),
        (CHECK_WAITS + TEST_RUNS, 0, "passed"),
        ("check:\n\t@false\n" + TEST_RUNS, 1, "build/check.json is missing"),
        (CHECK_RUNS + "test:\n\t@true\n", 1, "build/test.xml is missing"),
    ],
    ids=["all ran", "set-up beside the checks", "check fell over", "test did nothing"],
)
def test_the_gate_is_green_only_if_both_parts_ran_to_their_end(
    tmp_path: Path, makefile: str, expected: int, said: str
) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / "Makefile").write_text(makefile, encoding="utf-8")
    gate = tmp_path / ".ci" / "run"
    gate.write_bytes((ROOT / ".ci" / "run").read_bytes())
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "test.xml").write_text("of an earlier run", encoding="utf-8")
    done = subprocess.run(
        ["/bin/bash", str(gate)],
        check=False,
        text=True,
        capture_output=True,
    )
    assert done.returncode == expected, done.stdout
    assert said in done.stdout
    assert re.search(r"== make check.*== make test", done.stdout, flags=re.DOTALL)


def test_the_gate_can_be_started() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111 == 0o111
