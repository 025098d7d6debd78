"""The commands as a tester runs them: logs in, words and an exit code out.

What needs Spark runs in this process, through the command's own code; that the installed command
does the same is shown by ``test_bad_input``.
"""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.cli import Command, gist, parser
from pipeline.simulate.case import Case
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


def test_an_audit_says_who_agrees_and_names_what_was_taken_out_of_a_log(
    spark: SparkSession, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (logs / "junk.delivery.db").write_bytes(b"no database at all")
    assert audit(spark, logs, "--out", tmp_path / "lake") == 3
    said = capsys.readouterr()
    assert f"{MEMBERS} logs of channels: {MEMBERS} agree, 0 differ" in said.out
    assert "junk.delivery.db: this is neither a delivery log" in said.err
    (logs / "junk.delivery.db").unlink()
    first = min(logs.iterdir())
    with sqlite3.connect(first) as log:
        row = "SELECT message_id FROM log_snapshot ORDER BY position LIMIT 1 OFFSET 5"
        ((taken,),) = log.execute(row).fetchall()
        log.execute("DELETE FROM log_snapshot WHERE message_id = ?", (taken,))
    log.close()
    out, junit = tmp_path / "other lake", tmp_path / "ci" / "audit.xml"
    assert audit(spark, logs, "--out", out, "--json", "--junit", junit) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdicts"] == {"identical": MEMBERS - 1, "missing": 1}
    ((witness,),) = (log["witnesses"] for log in told["differing"])
    assert witness["message_id"] == taken
    assert "it was there and is gone" in witness["why"]
    assert 'failures="1"' in junit.read_text(encoding="utf-8")


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
