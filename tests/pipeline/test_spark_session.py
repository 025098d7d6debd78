"""The session: this Python, ANSI, UTC, and which Java."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.session import options_by_path


def test_an_overflow_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(ArithmeticException):
        spark.range(3).select(F.sum(F.lit(2**62) + F.lit(2**61))).collect()


def test_times_are_utc(spark: SparkSession) -> None:
    (row,) = spark.sql("SELECT string(timestamp_millis(0)) AS at").collect()
    assert row["at"] == "1970-01-01 00:00:00"


SESSIONS = """
from pipeline.session import SessionSettings, session
settings = SessionSettings(master="local[2]", driver_memory="600m", is_small=True)
for _ in range(2):
    with session(settings) as spark:
        rows = spark.range(0, 4, 1, 4).mapInArrow(lambda batches: batches, "id bigint")
        assert rows.toArrow()["id"].to_pylist() == [0, 1, 2, 3]
"""


def test_workers_end_with_their_session_and_in_silence() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SESSIONS], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_sockets_lie_where_their_names_have_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path("/tmp/causerie-x")  # noqa: S108 - a name alone
    assert options_by_path(short)["spark.python.unix.domain.socket.dir"] == str(short)
    assert options_by_path(tmp_path / ("x" * 60)) == {}
    monkeypatch.delattr(socket, "AF_UNIX")
    assert options_by_path(short) == {}
