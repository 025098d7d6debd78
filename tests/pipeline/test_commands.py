"""The commands as a tester runs them: logs in, words and an exit code out.

What needs Spark runs in this process, through the command's own code; that the installed command
does the same is shown by ``test_bad_input``.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.delivery.sqlite_log import find_logs
from pipeline.cli import Command, gist, parser
from pipeline.commands import complain, say
from pipeline.simulate.case import Case
from tests.pipeline.log_files import remove_entry, swap_entries
from tests.pipeline.recorded_group import RecordedGroup

MEMBERS, MESSAGES = 3, 12


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Of a simulated group that lost a fifth of all copies and healed."""
    place = tmp_path / "logs"
    place.mkdir()
    case = Case(members=MEMBERS, messages=MESSAGES, loss=0.2, seed=3)
    for member in RecordedGroup(case).group.members.values():
        assert member.recording is not None
        member.recording.write(place)
    return place


def audit(spark: SparkSession, *words: str | Path) -> int:
    asked = parser().parse_args(["audit", *map(str, words)])
    command: Command = asked.command
    return command.run(asked, spark)


def test_an_audit_names_what_was_tampered_with_and_says_who_agrees_otherwise(
    spark: SparkSession, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other, *_ = find_logs(logs)
    taken, swapped = remove_entry(one, 5), swap_entries(other, 7)
    (logs / "junk.delivery.db").write_bytes(b"no database at all")
    junit = tmp_path / "ci" / "audit.xml"
    assert audit(spark, logs, "--out", tmp_path / "lake", "--junit", junit) == 1
    told = capsys.readouterr()
    assert "junk.delivery.db: this is neither a delivery log" in told.err
    assert f"{MEMBERS} logs of channels: {MEMBERS - 2} agree, 2 differ" in told.out
    assert told.out.count("  identical  ") == MEMBERS - 2
    assert f"missing: {taken} at place" in told.out
    assert "it was there and is gone" in told.out
    for message_id in swapped:
        assert f"reordered: {message_id} at place" in told.out
    assert 'failures="2"' in junit.read_text(encoding="utf-8")


def test_what_others_named_makes_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    say("missing: id\n5 logs of channels: 5 agree")
    complain("x\r\n.delivery.db: fine")
    told = capsys.readouterr()
    assert told.out == "missing: id\ufffd5 logs of channels: 5 agree\n"
    assert told.err == "causerie-pipeline: x\ufffd\ufffd.delivery.db: fine\n"


LOUD = """
import sys
from pipeline.commands import complain, say
sys.stdin.read()
for number in range(3):
    say(str(number))
    complain(str(number))
sys.exit(3)
"""


def test_who_stops_reading_stops_nothing_else() -> None:
    """As ``| head -1`` does."""
    with subprocess.Popen(
        [sys.executable, "-c", LOUD],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdin
        assert child.stdout
        assert child.stderr
        child.stdout.close()
        child.stdin.close()
        told = child.stderr.read()
        assert child.wait(timeout=60) == 3
    assert told.splitlines() == [f"causerie-pipeline: {number}" for number in range(3)]


def test_what_a_disk_refused_is_a_line_with_a_way_out() -> None:
    trace = (
        "An error occurred while calling o907.parquet.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 7.0\n"
        "\tat org.apache.spark.rdd.RDD.iterator(RDD.scala:338)\n"
        "Caused by: java.io.IOException: No space left on device\n"
        "\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n"
    )
    assert gist(trace).startswith("No space left on device; make room")
    assert gist(trace.replace("No space left on device", "odd")) == "java.io.IOException: odd"
    assert gist("only this\nand a trace") == "only this"
