"""A stream that is killed in the middle, and its live page: nothing lost, nothing twice."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.core.ids import UnixMs
from engine.delivery.contract import DELIVERY_EVENT, Kind
from engine.delivery.sqlite_log import LogReader, find_logs
from engine.sim.world import START_MS
from pipeline.report.live import live_page, live_rows, write_whole
from pipeline.simulate.case import Case
from pipeline.simulate.sds_run import Group
from pipeline.stream import LIVE_KINDS, StreamPlaces, events, fold, joined, start, sums
from pipeline.tables import LakeError

DEADLINE_S = 300
CHILD = """
import sys
from pathlib import Path
from pipeline.session import SessionSettings, session
from pipeline.stream import StreamPlaces, start
settings = SessionSettings(master="local[1]", driver_memory="512m", is_small=True)
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
    group.network.run_until(end_ms)
    group.network.run_until(UnixMs(end_ms + case.heal_ms), stop=group.is_over)
    return group


def _write(group: Group, place: Path, *numbers: int) -> None:
    for member in [list(group.members.values())[number] for number in numbers]:
        assert member.recording is not None
        member.recording.write(place)


def _cut(path: Path, last: int) -> None:
    """As it was when it had no more events."""
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("DELETE FROM delivery_event WHERE seq > ?", [last])


def _export(group: Group, number: int, path: Path, *, first: int, last: int) -> None:
    """Of a log, events of these ``seq`` as JSON lines."""
    recording = list(group.members.values())[number].recording
    assert recording is not None
    rows = recording.tables()[DELIVERY_EVENT][first - 1 : last]
    names = DELIVERY_EVENT.names
    lines = (
        json.dumps(dict(zip(names, row, strict=True)), default=bytes.hex) + "\n" for row in rows
    )
    path.write_text("".join(lines), encoding="utf-8")


def _recorded(place: Path) -> dict[tuple[str, object], tuple[object, str, object]]:
    """Whatever the logs say: (log_id, seq) -> channel, participant, kind."""
    found: dict[tuple[str, object], tuple[object, str, object]] = {}
    for path in find_logs(place):
        with LogReader(path) as log:
            owner = log.header
            for rows in log.batches(DELIVERY_EVENT, ["seq", "channel", "kind"]):
                for seq, channel, kind in rows:
                    found[owner.log_id, seq] = (channel, owner.participant, kind)
    return found


def test_killed_and_started_again_it_has_every_event_once(
    spark: SparkSession, group: Group, tmp_path: Path
) -> None:
    logs, places = tmp_path / "logs", StreamPlaces(tmp_path / "out")
    _write(group, logs, 0, 1)
    whole, *_ = find_logs(logs)
    shutil.copy(whole, tmp_path / "whole")
    _cut(whole, 30)
    _export(group, 0, logs / "part.jsonl", first=5, last=20)
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
    (tmp_path / "whole").replace(whole)  # A log that was read grows.
    _write(group, logs, 3)  # And one more comes.
    shutil.copytree(logs, logs / "sent again")
    _export(group, 0, logs / "part.jsonl", first=1, last=40)
    _export(group, 3, logs / "all.jsonl", first=1, last=10**6)
    shown: list[int] = []

    def show(_sums: object) -> None:
        rows = [row.asDict() for row in sums(spark, places).collect()]
        shown.append(sum(row["events"] for row in rows))

    query = start(spark, logs, places, every_s=0, written=show)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    recorded = _recorded(logs)
    assert len(recorded) > 40 * len(group.members)
    rows_read = events(spark, places)
    assert [row["problem"] for row in rows_read.where("problem IS NOT NULL").collect()] == []
    read = [(row["log_id"], row["seq"]) for row in rows_read.collect()]
    assert Counter(read) == Counter(list(recorded))
    assert shown[-1] == len(read)
    totals = sums(spark, places).collect()
    assert {
        (row["channel"], row["participant"], row["kind"]): row["events"] for row in totals
    } == Counter(recorded.values())
    rows, _, _ = live_rows(row.asDict() for row in totals)
    assert [row.is_fine for row in rows] == [True] * len(group.members)
    before = sorted(map(tuple, sums(spark, places).collect()), key=repr)
    fold(spark, 10**6, places)
    assert sorted(map(tuple, sums(spark, places).collect()), key=repr) == before


def test_old_sums_are_folded_even_if_it_dies_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.stream.FOLD_AFTER", 1)
    places = StreamPlaces(tmp_path)
    columns = (
        "channel string, participant string, kind string, events bigint, wire_bytes bigint,"
        " newest_ms bigint, ids bigint, marks bigint, problem string"
    )
    for number in range(3):
        row = [("c", "p", "sent", 1, 10, number, 1 << number, 5, None)]
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
    assert (total["ids"], total["marks"]) == (7, 5)


RANGES = st.dictionaries(
    st.sampled_from("ab"),
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)).map(lambda p: [p[0], sum(p)])),
)


@given(RANGES, RANGES)
def test_ranges_together_are_what_either_holds(
    one: dict[str, list[list[int]]], other: dict[str, list[list[int]]]
) -> None:
    def numbers(ranges: dict[str, list[list[int]]]) -> set[tuple[str, int]]:
        return {
            (log_id, seq)
            for log_id, all_ in ranges.items()
            for first, last in all_
            for seq in range(first, last + 1)
        }

    both = joined(one, other)
    assert numbers(both) == numbers(one) | numbers(other)
    for all_ in both.values():
        assert all(low[1] + 1 < high[0] for low, high in pairwise(all_))


def test_of_a_log_in_a_thousand_parts_the_nearest_are_joined() -> None:
    parts = [[4 * number, 4 * number] for number in range(1_001)]
    (log,) = joined({"a": parts}, {"a": [[4_001, 4_003]]}).values()
    assert len(log) == 1_000
    assert (log[0], log[-1]) == ([0, 4], [4_000, 4_003])


def test_what_an_earlier_version_left_is_not_mixed_with(
    spark: SparkSession, tmp_path: Path
) -> None:
    places = StreamPlaces(tmp_path)
    places.checkpoint.mkdir()
    with pytest.raises(LakeError, match="another version"):
        start(spark, tmp_path, places, every_s=1, written=lambda _sums: None)


def test_the_live_page_says_who_is_behind_and_escapes_what_it_shows(tmp_path: Path) -> None:
    def row(
        participant: str, kind: Kind, events: int, problem: str | None = None, ids: int = 3
    ) -> dict[str, object]:
        return {
            "channel": "<c>", "participant": participant, "kind": kind.value, "events": events,
            "wire_bytes": 0, "newest_ms": 1_760_000_000_000, "problem": problem, "ids": ids,
            "marks": 0,
        }  # fmt: skip

    found = [
        row("a", Kind.SENT, 5, ids=1),
        row("a", Kind.DELIVERED, 7),
        row("b", Kind.SENT, 2, ids=2),
        row("b", Kind.DELIVERED, 4),
        row("b", Kind.RECEIVED, 9, "kind.choice"),
    ]
    rows, total, refused = live_rows(found)
    assert [(r.participant, r.behind) for r in rows] == [("b", 3), ("a", 0)]
    assert (total, refused) == (27, 9)
    assert [r.differs for r in rows] == [False, False]
    others = [*found, row("c", Kind.DELIVERED, 7, ids=4)]
    rows, _, _ = live_rows(others)
    assert [(r.participant, r.behind, r.differs) for r in rows if not r.is_fine] == [
        ("b", 3, False), ("c", 0, True),
    ]  # fmt: skip
    assert "1 of 3 logs hold other messages, 1 are behind" in live_page(
        others, LIVE_KINDS, now_ms=0, every_s=5
    )
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
