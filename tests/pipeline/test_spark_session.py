"""The session: this Python, ANSI, UTC, and which Java."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.session import options_by_path, shares


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


def test_no_task_reads_most_of_the_exports_of_groups(spark: SparkSession, tmp_path: Path) -> None:
    """The k-th has a k-th of the largest's rows; were the largest one task, others would wait."""
    for number in range(1, 101):
        rows = pa.table({"text": [os.urandom(1_000) for _ in range(6_000 // number)]})
        pq.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=500)
    other = spark.newSession()
    for name, value in shares(2).items():
        other.conf.set(name, value)
    read = other.read.parquet(str(tmp_path))
    tasks = read.groupBy(F.spark_partition_id()).count().collect()
    counts = [row["count"] for row in tasks]
    assert max(counts) * 3 < sum(counts)
