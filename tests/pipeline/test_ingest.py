"""From log files to silver tables: everything once, whatever is wrong with a file."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.delivery.contract import DELIVERY_EVENT, MESSAGE, Table
from pipeline import copying
from pipeline.lake import Lake
from pipeline.prepare import prepare
from pipeline.sources import files
from pipeline.sources.delivery import DeliveryReader, LogRowsReader
from pipeline.sources.files import LOGS_PER_PARTITION, Piece, find_pieces
from tests.pipeline.log_files import (
    conversation_log,
    message,
)

PEOPLE = ("ada", "bob", "cyd")
LOG = [(10, "m1"), (20, "m2"), (30, "m3")]
MESSAGES = [
    message(10, "m1", "ada"),
    message(20, "m2", "bob", ["m1"]),
    message(30, "m3", "ada", ["m2"]),
]


def conversation(place: Path) -> None:
    for name in PEOPLE:
        conversation_log(place / f"{name}.delivery.db", name, LOG, MESSAGES, PEOPLE)


def files_below(place: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file()}


def test_logs_become_tables_and_a_rerun_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    conversation(tmp_path / "logs")
    lake = Lake(tmp_path / "out")
    first = prepare(spark, [tmp_path / "logs"], lake)
    assert first.is_new
    assert first.rows["delivery_event"] == 12
    assert first.quarantined == 0
    entries = lake.silver(spark, "entry").orderBy("participant", "position").collect()
    assert [(row["lamport"], row["message_id"]) for row in entries] == LOG * 3
    found = lake.silver(spark, "message").orderBy("place").collect()
    assert [(row["message_id"], row["position"], row["holders"]) for row in found] == [
        ("m1", 0, 3),
        ("m2", 1, 3),
        ("m3", 2, 3),
    ]
    assert found[1]["parent_mids"] == [found[0]["mid"]]

    before = files_below(tmp_path / "out")
    again = prepare(spark, [tmp_path / "logs"], lake)
    assert (again.is_new, dict(again.rows)) == (False, {})
    assert files_below(tmp_path / "out") == before


def copied(spark: SparkSession, logs: Path, out: Path, claimed: int) -> Mapping[Table, pa.Table]:
    """Both tables as they were written, whichever files they are in."""
    pieces = [replace(piece, bytes=claimed) for piece in find_pieces([logs])]
    places = {table: out / table.name for table in (DELIVERY_EVENT, MESSAGE)}
    counts = copying.copy(spark, dict.fromkeys(places, pieces), places, slots=2)
    found = {table: pq.read_table(place) for table, place in places.items()}
    assert counts == {table: rows.num_rows for table, rows in found.items()}
    return {
        table: rows.sort_by([(name, "ascending") for name in ("log_id", *table.key[1:])])
        for table, rows in found.items()
    }


def test_workers_write_what_the_driver_writes_of_little(
    spark: SparkSession, tmp_path: Path
) -> None:
    conversation(tmp_path / "logs")
    by_workers = copied(spark, tmp_path / "logs", tmp_path / "large", copying.COPIED_HERE_BYTES)
    by_driver = copied(spark, tmp_path / "logs", tmp_path / "small", 1)
    assert len(list((tmp_path / "large" / DELIVERY_EVENT.name).iterdir())) == 2
    assert len(list((tmp_path / "small" / DELIVERY_EVENT.name).iterdir())) == 1
    assert by_workers == by_driver


# --- what a task carries --------------------------------------------------------------------------

MANY = 40 * LOGS_PER_PARTITION
NAME = "no-such-log-"
pickled: Callable[[object], bytes] = cloudpickle.dumps


def many(place: Path) -> list[Piece]:
    """Of files that are not there: each is read as one row that says so."""
    return [Piece(path=f"{place}/{NAME}{at}.delivery.db", kind=files.LOG) for at in range(MANY)]


def named_in(told: object) -> int:
    """How many of them what a task is given names."""
    return (told if isinstance(told, bytes) else repr(told).encode()).count(NAME.encode())


def test_a_task_that_copies_is_told_of_its_own_files_and_of_no_others(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else there are as many times as many as there are tasks, and of many files that is the work.

    Each has a partition, and so a worker, to itself.
    """
    carried: list[int] = []
    partitions: list[int] = []
    kind = type(spark.range(1))
    mapped = kind.mapInArrow

    def seen(rows: DataFrame, work: Callable[..., Any], schema: str) -> DataFrame:
        of_all = named_in(pickled(work))
        for row in rows.withColumn("partition", F.spark_partition_id()).collect():
            carried.append(of_all + named_in(row))
            partitions.append(row["partition"])
        return mapped(rows, work, schema)

    monkeypatch.setattr(kind, "mapInArrow", seen)
    monkeypatch.setattr(copying, "COPIED_HERE_BYTES", 0)
    monkeypatch.setattr(copying, "SMALL_BYTES", 0)
    places = {DELIVERY_EVENT: tmp_path / "events"}
    assert copying.copy(spark, {DELIVERY_EVENT: many(tmp_path)}, places, 2) == {
        DELIVERY_EVENT: MANY
    }
    read = pq.read_table(tmp_path / "events", columns=["file"]).column("file").to_pylist()
    assert sorted(read) == sorted(piece.path for piece in many(tmp_path))
    assert (len(carried), sum(carried), max(carried)) == (40, MANY, LOGS_PER_PARTITION)
    assert sorted(partitions) == list(range(40))


@pytest.mark.parametrize("of_logs", [True, False])
def test_a_task_that_reads_is_told_of_no_others_either(tmp_path: Path, of_logs: bool) -> None:
    """With each goes what reads, as it is once it has planned who reads what."""
    pieces = json.dumps([piece.as_json() for piece in many(tmp_path)])
    options = {"pieces": pieces, "slots": "2"}
    reader = LogRowsReader(options) if of_logs else DeliveryReader(options, DELIVERY_EVENT)
    assert sum(named_in(pickled(task)) for task in reader.partitions()) == MANY
    assert named_in(pickled(reader.read)) == 0
