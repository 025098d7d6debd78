"""What the benchmark measures with: the faults it injects are there, and nothing else is wrong."""

from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.pipeline import handed_in, oracle, told_in
from benchmarks.pipeline.generator import Injected, generate
from benchmarks.pipeline.hash_join import views
from benchmarks.pipeline.spark_work import tables
from pipeline.audit import audit
from pipeline.cli import main

EVENTS = 60_000
COLUMNS = ("channel", "participant", "kind", "mid", "parent_mid")

Row = tuple[object, ...]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Injected]:
    place = tmp_path_factory.mktemp("made")
    return place, generate(place, EVENTS)


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


def truth(place: Path) -> list[Row]:
    table = pq.read_table(place / "truth.parquet", columns=list(COLUMNS))
    return in_order([tuple(row.values()) for row in table.to_pylist()])


def test_of_each_kind_there_are_as_many_as_it_says(made: tuple[Path, Injected]) -> None:
    place, injected = made
    kinds = [row[2] for row in truth(place)]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == injected.as_counts()
    assert min(injected.as_counts().values()) > 0
    entries = pq.read_table(place / "entry", columns=["position"]).num_rows
    assert entries == injected.events
    assert EVENTS * 0.9 < entries < EVENTS * 1.1


def test_plain_sql_finds_what_was_injected_and_nothing_else(made: tuple[Path, Injected]) -> None:
    place, _ = made
    with duckdb.connect() as connection:
        views(connection, place)
        found = oracle.witnesses(connection)
    assert in_order([(*row[:4], row[6]) for row in found]) == truth(place)


def test_the_audit_finds_what_was_injected_and_nothing_else(
    spark: SparkSession, made: tuple[Path, Injected], tmp_path: Path
) -> None:
    place, _ = made
    found = audit(tables(spark, place), str(tmp_path), few_rows=0)
    assert in_order([tuple(row) for row in found.witnesses.select(*COLUMNS).collect()]) == truth(
        place
    )
    verdicts = found.verdicts.groupBy("verdict").count().collect()
    assert sum(row["count"] for row in verdicts) == (
        pq.read_table(place / "member.parquet").num_rows
    )


def test_of_the_logs_that_are_handed_in_both_say_what_was_injected(
    made: tuple[Path, Injected], tmp_path: Path
) -> None:
    place, injected = made
    rows = handed_in.hand_in(place, tmp_path / "logs")
    assert rows > 3 * injected.events
    assert in_order(list(handed_in.witnesses(tmp_path / "logs"))) == truth(place)
    assert main(["audit", str(tmp_path / "logs"), "--out", str(tmp_path / "out")]) == 1
    assert in_order(list(told_in(tmp_path / "out"))) == truth(place)
