"""What the commands say, and to whom.

What an audit says is asserted by ``test_without_java``, through the command's own code; that the
installed command does the same is shown by ``test_bad_input``.
"""

import subprocess
import sys

import pytest

from pipeline.cli import gist
from pipeline.commands import complain, say


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
