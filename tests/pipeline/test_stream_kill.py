"""A stream that is killed in the middle, and its live page: nothing lost, nothing twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.core.ids import UnixMs
from engine.delivery.contract import Kind
from engine.delivery.sqlite_log import LogReader, find_logs
from engine.sim.world import START_MS
from pipeline.report.live import live_page, live_rows, write_whole
from pipeline.simulate.case import Case
from pipeline.simulate.sds_run import Group
from pipeline.stream import LIVE_KINDS, StreamPlaces, events, fold, start, sums

DEADLINE_S = 300
CHILD = """
import sys
from pathlib import Path
from pipeline.session import SessionSettings, session
from pipeline.stream import StreamPlaces, start
settings = SessionSettings(master="local[1]", shuffle_partitions=1, driver_memory="512m")
with session(settings) as spark:
    places = StreamPlaces(Path(sys.argv[2]))
    query = start(spark, Path(sys.argv[1]), places, every_s=1, written=lambda sums: None)
    query.awaitTermination()
"""


@pytest.fixture(scope="module")
def group() -> Group:
    case = Case(members=4, messages=15, loss=0.2)
    group = Group(seed=1, size=4, loss=0.2, case=case)
    for member in group.members.values():
        member.record("stream", now_ms=START_MS)
    end_ms = group.talk(case.messages)
    group.network.run_until(UnixMs(end_ms + case.heal_ms), stop=group.is_over)
    return group


def _write(group: Group, place: Path, *numbers: int) -> None:
    for member in [list(group.members.values())[number] for number in numbers]:
        assert member.recording is not None
        member.recording.write(place)


def _recorded(place: Path) -> list[tuple[str, int]]:
    found = []
    for path in find_logs(place):
        with LogReader(path) as log:
            found += [(log.header.log_id, seq) for seq in range(1, log.last_seq() + 1)]
    return sorted(found)


def test_killed_and_started_again_it_has_every_event_once(
    spark: SparkSession, group: Group, tmp_path: Path
) -> None:
    logs, places = tmp_path / "logs", StreamPlaces(tmp_path / "out")
    _write(group, logs, 0, 1)
    command = [sys.executable, "-c", CHILD, str(logs), str(places.root)]
    with (tmp_path / "child.log").open("wb") as told:
        child = subprocess.Popen(command, stdout=told, stderr=told, start_new_session=True)
    try:
        until = time.monotonic() + DEADLINE_S
        # Written, and as likely as not uncommitted still: that is when it dies.
        while not (places.events / "batch=0" / "_SUCCESS").exists():
            assert child.poll() is None, (tmp_path / "child.log").read_text()
            assert time.monotonic() < until
            time.sleep(0.02)
        _write(group, logs, 2)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    _write(group, logs, 0)  # A log that was read grows.
    _write(group, logs, 3)  # And one more comes.
    shown: list[int] = []

    def show(_sums: object) -> None:
        rows = [row.asDict() for row in sums(spark, places).collect()]
        shown.append(sum(row["events"] for row in rows))

    query = start(spark, logs, places, every_s=0, written=show)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    read = [(row["log_id"], row["seq"]) for row in events(spark, places).collect()]
    assert sorted(read) == _recorded(logs)
    assert shown[-1] == len(read)
    before = sorted(map(tuple, sums(spark, places).collect()), key=repr)
    fold(spark, 10**6, places)
    assert sorted(map(tuple, sums(spark, places).collect()), key=repr) == before


def test_old_sums_are_folded_even_if_it_dies_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.stream.FOLD_AFTER", 1)
    places = StreamPlaces(tmp_path)
    columns = "channel string, participant string, kind string, events bigint, wire_bytes bigint, newest_ms bigint, problem string"  # noqa: E501
    for number in range(3):
        row = [("c", "p", "sent", 1, 10, number, None)]
        frame = spark.createDataFrame(row, columns).coalesce(1)
        frame.write.parquet(str(places.sums / f"batch={number}"))

    def die(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pipeline.stream._take_place", die)
        with pytest.raises(KeyboardInterrupt):
            fold(spark, 2, places)
    fold(spark, 2, places)
    assert sorted(path.name for path in places.sums.iterdir()) == ["batch=1", "batch=2"]
    (total,) = sums(spark, places).collect()
    assert (total["events"], total["wire_bytes"], total["newest_ms"]) == (3, 30, 2)


def test_the_live_page_says_who_is_behind_and_escapes_what_it_shows(tmp_path: Path) -> None:
    def row(
        participant: str, kind: Kind, events: int, problem: str | None = None
    ) -> dict[str, object]:
        return {
            "channel": "<c>", "participant": participant, "kind": kind.value, "events": events,
            "wire_bytes": 0, "newest_ms": 1_760_000_000_000, "problem": problem,
        }  # fmt: skip

    found = [
        row("a", Kind.SENT, 5),
        row("a", Kind.DELIVERED, 7),
        row("b", Kind.SENT, 2),
        row("b", Kind.DELIVERED, 4),
        row("b", Kind.RECEIVED, 9, "kind.choice"),
    ]
    rows, total, refused = live_rows(found)
    assert [(r.participant, r.behind) for r in rows] == [("b", 3), ("a", 0)]
    assert (total, refused) == (27, 9)
    text = live_page(found, LIVE_KINDS, now_ms=0, every_s=5)
    assert "1 of 2 logs are behind" in text
    assert "&lt;c&gt;" in text
    assert "<c>" not in text
    assert "http-equiv=refresh content=5" in text
    path = tmp_path / "live.html"
    write_whole(path, "old")
    write_whole(path, text)
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]
