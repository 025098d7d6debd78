"""What does not fit into DuckDB's memory goes to a directory of its own, which does not stay."""

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from engine.delivery.contract import MEMBERSHIP
from pipeline.cli import Command, parser
from pipeline.duck.channel import MEMORY
from pipeline.duck.spilled import PREFIX, Spilled
from pipeline.lake import Lake
from pipeline.session import session
from tests.pipeline.test_trust import WITHOUT_JAVA
from tests.pipeline.told_groups import Log, Row, Story, logs_of, write_jsonl

LOOK_AGAIN_S = 0.005
CROWD = 400
KILLED = """
import sys
from pipeline.duck.spilled import Spilled
spilled = Spilled()
(spilled.place / "a lot").write_bytes(b"0" * 1_000)
print(spilled.place, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process and those that it starts have what is temporary."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    return place


def spilled_in(place: Path) -> list[Path]:
    return list(place.glob(f"{PREFIX}*"))


@contextmanager
def watched(place: Path) -> Iterator[set[str]]:
    """The names of all files that are seen below it meanwhile."""
    seen: set[str] = set()
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK_AGAIN_S):
            seen.update(path.name for path in place.rglob("*.tmp"))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        done.set()
        looking.join()


def test_what_does_not_fit_goes_there_and_is_gone_at_the_end(temporary: Path) -> None:
    little = replace(WITHOUT_JAVA, more={MEMORY: "32m"})
    with session(little) as here, watched(temporary) as seen:
        assert len(spilled_in(temporary)) == 1
        assert here.range(3_000_000).select(F.xxhash64("id")).distinct().count() == 3_000_000
    assert seen
    assert spilled_in(temporary) == []


def test_what_a_killed_process_left_goes_when_the_next_one_starts(temporary: Path) -> None:
    living = Spilled()
    killed = subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert killed.stdout is not None
    left = Path(killed.stdout.readline().strip())
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left.parent == temporary
    assert (left / "a lot").exists()
    next_one = Spilled()
    assert not left.exists()
    assert {*spilled_in(temporary)} == {living.place, next_one.place}
    living.close()
    next_one.close()
    assert spilled_in(temporary) == []


def crowd() -> list[Log]:
    """Of each a message, which nobody else ever got."""
    people = tuple(f"p{number:03}" for number in range(CROWD))
    every = frozenset(range(CROWD))
    lacks = {who: every - {number} for number, who in enumerate(people)}
    story = Story("crowd", people=people, count=CROWD, lacks=lacks)

    def own(log: Log) -> Log:
        def kept(row: Row) -> Row | None:
            return row if row["member"] == log.header.participant else None

        return log.but(MEMBERSHIP, kept)

    return [own(log) for log in logs_of(story).values()]


def test_a_crowd_of_whom_all_lack_everything_is_judged_with_little_memory(
    tmp_path: Path, temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """More is missing than there is input: rows of it, by the square of the members."""
    logs, out = write_jsonl(crowd(), tmp_path / "logs"), tmp_path / "out"
    asked = parser().parse_args(["audit", str(logs), "--out", str(out), "--json"])
    command: Command = asked.command
    with session(replace(WITHOUT_JAVA, more={MEMORY: "96m"})) as here, watched(temporary) as seen:
        assert command.run(asked, here) == 1
        assert Lake(out).table(here, "audit/witnesses").count() == CROWD * (CROWD - 1)
    assert seen
    told = json.loads(capsys.readouterr().out)
    assert told["verdicts"] == {"missing": CROWD - 1, "prefix": 1}
    assert len(told["differing"]) < CROWD
    assert all(one["missing"] == CROWD - 1 for one in told["differing"])
    assert all(len(one["witnesses"]) < CROWD for one in told["differing"])
