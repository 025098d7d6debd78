"""Tables change by runs, of which nobody sees a part, and come out the same in any order."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT, MEMBERSHIP, MESSAGE
from pipeline import beside
from pipeline.audit import audit
from pipeline.bronze import ingest
from pipeline.lake import Lake
from pipeline.prepare import prepare
from pipeline.session import SessionSettings, session
from pipeline.tables import RUN, Head, LakeError, Part, parquet
from pipeline.tables.hadoop import HadoopPlace
from pipeline.tables.local import LocalPlace
from tests.pipeline.log_files import (
    KEY_ID,
    event,
    header,
    membership,
    message,
    name_of,
    snapshot,
    write_log,
)

SILVER = (
    *("event", "entry", "message", "conflict", "log", "member", "quarantine"),
    *("stay", "clock", "coverage", "odd", "seen"),
)
SEEN = ("event", "entry", "member")
"""Of those, by which a run that is not over would be seen; it writes the second."""
OF_THE_RUN = (RUN, "file")
"""Columns that tell how rows came, not what they say."""


def log_of(
    place: Path, owner: str, channel: str, ids: Sequence[str], members: Sequence[str]
) -> Path:
    """Of one channel; ``m2`` is told with another sender by each owner, which is a conflict."""

    def here(rows: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
        return [{**row, "channel": channel * 16} for row in rows]

    entries = [(10 * int(one[1:]), f"{channel}-{one}") for one in ids]
    events = [
        event(seq, "delivered", message_id=message_id, lamport=lamport, position=seq - 1)
        for seq, (lamport, message_id) in enumerate(entries, start=1)
    ]
    told = [message(lamport, name, members[0], ()) for lamport, name in entries]
    if owner == members[-1] and told:
        told[-1]["sender"] = name_of(owner)
    tables = {
        DELIVERY_EVENT: here(events),
        LOG_SNAPSHOT: here(snapshot(entries)),
        MESSAGE: here(told),
        MEMBERSHIP: here(membership(members)),
    }
    return write_log(place / f"{owner}.delivery.db", header(owner), tables)


def five_logs(place: Path) -> list[Path]:
    """Of two channels; ada belongs to both and has a log of one."""
    return [
        log_of(place, "ada", "a", ["m1", "m2", "m3"], ["ada", "bob", "cyd"]),
        log_of(place, "bob", "a", ["m1", "m3"], ["ada", "bob", "cyd"]),
        log_of(place, "cyd", "a", ["m1", "m2", "m3"], ["ada", "bob", "cyd"]),
        log_of(place, "dan", "b", ["m1", "m2"], ["dan", "eve", "ada"]),
        log_of(place, "eve", "b", ["m2"], ["dan", "eve", "ada"]),
    ]


def rows_of(table: DataFrame) -> list[str]:
    there = [name for name in sorted(table.columns) if name not in OF_THE_RUN]
    return sorted(repr(tuple(row)) for row in table.select(*there).collect())


def silver_of(
    spark: SparkSession, lake: Lake, names: Sequence[str] = SILVER
) -> dict[str, list[str]]:
    return {name: rows_of(lake.silver(spark, name)) for name in names}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Written under three contracts."""
    made = five_logs(tmp_path_factory.mktemp("logs"))
    write_as(1, made[4])
    write_as(2, made[1])
    for owner in ("fay", "gus"):  # They hang together with nobody else.
        made.append(log_of(made[0].parent, owner, "c", ["m1", "m2"], ["fay", "gus"]))
    return made


@pytest.fixture(scope="module")
def at_once(logs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Silver of one run over all, without Java: that Spark makes the same, ``test_trust`` holds."""
    lake = Lake(tmp_path_factory.mktemp("at-once"))
    with session(SessionSettings(needs_java=False)) as here:
        prepare(here, logs, lake)
        return silver_of(here, lake)


@pytest.mark.long
def test_one_at_a_time_and_growing_comes_to_the_same(
    spark: SparkSession,
    logs: list[Path],
    at_once: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each log changes what others are compared with; cyd's is read twice, and has grown.

    The tables are begun under the first contract and get the columns of the third.  Spark reads and
    writes all of it, as if there were much.
    """
    monkeypatch.setattr(parquet, "FEW_ROWS", -1)
    ada, bob, cyd, dan, eve, fay, gus = logs
    grown = make_young(cyd)
    lake = Lake(tmp_path / "lake")
    steps = ([eve, fay, gus], [cyd], [bob], [dan], [ada], [cyd])
    for number, paths in enumerate(steps, start=1):
        if number == len(steps):
            cyd.write_bytes(grown)
        prepare(spark, paths, lake)
        if number == 1:
            forget_column(lake, "bronze/message", "content")
    assert_as_at_once(spark, lake, at_once, runs=len(steps))


def test_a_directory_is_its_name_whatever_signs_that_holds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To Spark brackets are patterns; and a name that is percent-encoded is another one."""
    monkeypatch.setattr(parquet, "FEW_BYTES", 0)  # So Spark reads every table by itself.
    monkeypatch.setattr(beside, "MOST_ROWS", 0)
    logs = tmp_path / "logs"
    logs.mkdir()
    five_logs(logs)

    def judged(running: SparkSession, name: str) -> list[list[str]]:
        lake = Lake(tmp_path / name)
        prepare(running, [logs], lake)
        found = audit(lake.audited(running), lake.steps, few_rows=-1)
        assert (tmp_path / name / "steps" / "0" / "1").is_dir()
        return [sorted(map(str, rows.collect())) for rows in (found.verdicts, found.witnesses)]

    with session(SessionSettings(needs_java=False)) as here:
        plain = judged(here, "plain")
    assert judged(spark, "o dd [1] {a} %41 é*?\\") == plain
    assert len(plain[0]) == 5
    assert len(list(tmp_path.iterdir())) == 3, "nothing lies beside them"


def test_a_killed_run_is_not_seen_and_the_next_one_goes_on(
    spark: SparkSession, logs: list[Path], at_once: dict[str, list[str]], tmp_path: Path
) -> None:
    """Meanwhile cyd's log has grown, and a contract with more columns has come.

    The new log of ada, who belongs to two channels, changes what everybody else in them is
    compared with.
    """
    grown = make_young(logs[2])
    lake = Lake(tmp_path)
    prepare(spark, logs[1:], lake)
    forget_column(lake, "bronze/message", "content")
    before = silver_of(spark, lake, SEEN)
    with pytest.raises(KeyboardInterrupt):
        write_two_and_die(spark, lake)
    assert silver_of(spark, lake, SEEN) == before
    logs[2].write_bytes(grown)
    ingest(spark, logs, lake)  # Here the process died between bronze and silver.
    assert silver_of(spark, lake, SEEN) == before
    assert prepare(spark, logs, lake).is_new
    assert_as_at_once(spark, lake, at_once, runs=3)
    assert not list((tmp_path / "silver" / "more").iterdir())


def make_young(cyd: Path) -> bytes:
    """Its log as it once was; what it is now."""
    grown = cyd.read_bytes()
    cyd.unlink()
    log_of(cyd.parent, "cyd", "a", ["m1"], ["ada", "bob", "cyd"])
    return grown


def assert_as_at_once(
    spark: SparkSession, lake: Lake, at_once: Mapping[str, Sequence[str]], *, runs: int
) -> None:
    assert silver_of(spark, lake) == at_once
    ids = [str(run["id"]) for run in lake.runs()]
    assert len(set(ids)) == len(ids) == runs

    told = lake.silver(spark, "event").select("schema_version").distinct().collect()
    assert sorted(row["schema_version"] for row in told) == [1, 2, 3]
    assert "content" in lake.bronze(spark, MESSAGE).columns

    # What the last touches is of its run, and what fay and gus say is of the first still.
    for name in ("message", "stay", "coverage", "member"):
        found = lake.silver(spark, name).select(F.left("channel", F.lit(1)), RUN).distinct()
        told_by = {tuple(row) for row in found.collect()}
        assert told_by == {("a", ids[-1]), ("b", ids[-1]), ("c", ids[0])}, name


def write_two_and_die(spark: SparkSession, lake: Lake) -> None:
    with lake.run(spark) as run:
        run.replace("silver/entry", lake.silver(spark, "entry").limit(1))
        run.replace("silver/more", spark.range(3))
        raise KeyboardInterrupt


def test_the_second_of_two_writers_is_told(
    spark: SparkSession, logs: list[Path], tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    with lake.run(spark), pytest.raises(LakeError, match="another process is writing to"):
        prepare(spark, logs, lake)
    with lake.run(spark) as first:
        LocalPlace(tmp_path).commit(Head(number=1))  # By one that knew of no lock.
        with pytest.raises(LakeError, match=r"has written to .* meanwhile: start again"):
            first.commit()


def test_of_writers_behind_a_url_the_living_keep_their_lease_and_the_dead_lose_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = HadoopPlace(tmp_path.as_uri(), spark)
    with place.only_writer():
        with pytest.raises(LakeError, match=f"{os.getpid()} on"), place.only_writer():
            pass
        place.commit(Head(number=1))
    with pytest.raises(LakeError, match=r"has written to .* meanwhile: start again"):
        place.commit(Head(number=1))  # By one that began at the same head.
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    lease = tmp_path / "_lease" / "00000007.json"
    here = socket.gethostname()
    for host, pid, age_s, is_taken in (
        (here, dead.pid, 0, True),
        ("elsewhere", 1, 0, False),
        ("elsewhere", 1, 3_600, True),
    ):
        lease.write_text(json.dumps({"host": host, "pid": pid}), encoding="utf-8")
        os.utime(lease, (time.time() - age_s,) * 2)
        if is_taken:
            with place.only_writer():
                assert not lease.exists()
        else:
            with pytest.raises(LakeError, match="1 on elsewhere; if"), place.only_writer():
                pass
    assert place.head().number == 1


def test_what_is_all_of_another_table_is_not_written_a_second_time(
    logs: list[Path], at_once: dict[str, list[str]], tmp_path: Path
) -> None:
    """Without Java, in a tenth of the time."""
    lake = Lake(tmp_path / "lake")
    silver = tmp_path / "lake" / "silver"
    with session(SessionSettings(needs_java=False)) as here:
        prepare(here, logs[:4], lake)
        (first,) = (str(run["id"]) for run in lake.runs())
        for name in ("event", "entry"):
            assert not (silver / name).exists()
            assert {row[RUN] for row in lake.silver(here, name).select(RUN).collect()} == {first}

        # What comes later is a part of its own, and takes the place of what it makes anew.
        prepare(here, logs, lake)
        assert silver_of(here, lake) == at_once
        assert len(list((silver / "event").iterdir())) == 1

        # Of two logs under two keys only one takes part.
        other = header("hal", key_id="f" * 16)
        write_log(tmp_path / "hal.delivery.db", other, {DELIVERY_EVENT: [event(1, "started")]})
        lake = Lake(tmp_path / "keys")
        prepare(here, [logs[0], tmp_path / "hal.delivery.db"], lake)
        assert (tmp_path / "keys" / "silver" / "event").exists()
        found = lake.silver(here, "event").select("key_id").distinct().collect()
        assert [row["key_id"] for row in found] == [KEY_ID]


def test_without_java_a_plan_holds_no_rows(tmp_path: Path) -> None:
    """It is copied for each of its steps, and DuckDB reads files by itself."""
    count = 10_000
    lake = Lake(tmp_path)
    with session(SessionSettings(needs_java=False)) as here:
        with lake.run(here) as run:
            run.replace("silver/t", here.range(count))
            run.commit()
        (file,) = (tmp_path / "silver" / "t").rglob("*.parquet")
        assert file.stat().st_size <= parquet.FEW_BYTES < 8 * count
        found = lake.silver(here, "t")
        plan = vars(found)["_plan"].to_proto(vars(here)["_client"])
        assert plan.ByteSize() < 8 * count / 10
        assert found.count() == count


@pytest.mark.parametrize(("few_rows", "few_bytes"), [(100, 10**6), (1, 0)], ids=["here", "Spark"])
def test_parts_are_replaced_widened_and_put_together(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    few_rows: int,
    few_bytes: int,
) -> None:
    """Against a dictionary.  A column comes later, as with a newer contract."""
    monkeypatch.setattr(parquet, "MOST_PARTS", 3)
    monkeypatch.setattr(parquet, "FEW_ROWS", few_rows)
    monkeypatch.setattr(parquet, "FEW_BYTES", few_bytes)
    lake = Lake(tmp_path)
    held: dict[str, list[tuple[int, str | None]]] = {}
    for number, keys in enumerate(["abc", "b", "bd", "", "cde", "a"]):
        is_wide = number > 2
        columns = "k string, n int" + (", later string" if is_wide else "")
        pair = (number, "x" if is_wide else None)
        new = {key: [pair] * 2 for key in keys if key != "d"}
        rows = [(key, *pair) if is_wide else (key, number) for key in new for _ in range(2)]
        with lake.run(spark) as run:
            made = spark.createDataFrame(rows, columns)
            part = Part(by="k", keys=list(keys)) if number else None
            assert run.replace("silver/t", made, part) == len(rows)
            run.commit()
        held = {key: pairs for key, pairs in held.items() if key not in keys} | new
        found = lake.silver(spark, "t")
        later = "later" if "later" in found.columns else "NULL"
        seen = [tuple(row) for row in found.selectExpr("k", "n", later).collect()]
        expected = [(key, *pair) for key, pairs in held.items() for pair in pairs]
        assert sorted(seen, key=repr) == sorted(expected, key=repr)


def write_as(version: int, path: Path) -> None:
    """As a program of an earlier contract has left it."""
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("ALTER TABLE message DROP COLUMN content")
        log.execute(f"PRAGMA user_version = {version}")
        log.execute("UPDATE log SET schema_version = ?", [version])


def forget_column(lake: Lake, name: str, column: str) -> None:
    """As tables are that a program wrote which did not know it yet."""
    path = Path(lake.root) / "manifest.json"
    head = json.loads(path.read_text(encoding="utf-8"))
    schema = head["tables"][name]["schema"]
    schema["fields"] = [field for field in schema["fields"] if field["name"] != column]
    path.write_text(json.dumps(head), encoding="utf-8")
