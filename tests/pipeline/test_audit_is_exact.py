"""The digest audit finds what looking at every row finds, neither more nor less.

Many conversations are audited at once, a channel each; buckets are four messages long, so that
every fault meets a bucket's edge now and then, and rows lie in any order in files and row groups of
any size.  Beside it runs the same by plain Spark and, written apart, by DuckDB.
"""

import hashlib
import random
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from benchmarks.pipeline import naive, oracle
from pipeline.audit import FEW_ROWS, Audit, Places, audit

BUCKET = 4
KEY = 7
ENTRY = "channel string, participant string, position bigint, lamport bigint, mid bigint"
MESSAGE = (
    "channel string, mid bigint, lamport bigint, message_id string, parent_mids array<bigint>,"
    " place bigint, position bigint"
)
MEMBER = "channel string, participant string, joined_ms bigint, left_ms bigint, has_log boolean"
VERDICT = (
    "channel", "participant", "verdict", "held", "missing", "extra", "reordered", "causal",
    "first_place",
)  # fmt: skip

Tables = tuple[list[Any], list[Any], list[Any]]


@dataclass
class Conversation:
    """Messages as (lamport, is canonical, indexes of parents); logs as lists of indexes."""

    messages: list[tuple[int, bool, list[int]]]
    logs: list[list[tuple[int, int]]]
    """Index and how far the log's Lamport timestamp is off."""
    stays: list[tuple[int | None, int | None]]

    def tables(self, channel: str) -> Tables:
        mids = [hash_of(channel, at) for at in range(len(self.messages))]
        order = sorted(range(len(mids)), key=lambda at: (self.messages[at][0], name_of(at)))
        rows, position = [], 0
        for place, at in enumerate(order):
            lamport, is_canonical, parents = self.messages[at]
            parent_mids = [mids[parent] for parent in parents]
            where = position if is_canonical else None
            rows.append((channel, mids[at], lamport, name_of(at), parent_mids, place, where))
            position += is_canonical
        entries = [
            (channel, f"p{who}", position, self.messages[at][0] + off, mids[at])
            for who, log in enumerate(self.logs)
            for position, (at, off) in enumerate(log)
        ]
        members = [(channel, f"p{who}", *stay, True) for who, stay in enumerate(self.stays)]
        return entries, rows, members


def name_of(at: int) -> str:
    return f"m{at:03}"


def hash_of(channel: str, at: int) -> int:
    digest = hashlib.sha256(f"{channel} {at}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    count = draw(st.integers(0, 24))
    lamports = sorted(draw(st.lists(st.integers(0, 60), min_size=count, max_size=count)))
    messages: list[tuple[int, bool, list[int]]] = []
    for at, lamport in enumerate(lamports):
        parents = draw(st.lists(st.integers(0, at - 1), max_size=3)) if at else []
        messages.append((lamport, draw(st.integers(0, 9)) > 0, parents))
    canonical = [(at, 0) for at in range(count) if messages[at][1]]
    logs, stays = [], []
    for _ in range(draw(st.integers(1, 3))):
        log = list(canonical)
        for fault in draw(st.lists(st.sampled_from("dddsssmmxxtta"), max_size=3)):
            spoil(draw, log, fault, count)
        logs.append(log)
        joined = draw(st.sampled_from([0, 0, 0, None, 10, 30]))
        left = draw(st.sampled_from([None, None, None, 40]))
        stays.append((joined, None if joined is None else left))
    return Conversation(messages, logs, stays)


def spoil(draw: st.DrawFn, log: list[tuple[int, int]], fault: str, count: int) -> None:
    """Drop, swap, move, put in what may be there already, cut the tail or the head off, alter."""
    if not log:
        return
    at, other = (draw(st.integers(0, len(log) - 1)) for _ in range(2))
    if fault == "d":
        del log[at]
    elif fault == "s":
        log[at], log[other] = log[other], log[at]
    elif fault == "m":
        log.insert(other, log.pop(at))
    elif fault == "x":
        log.insert(at, (draw(st.integers(0, count - 1)), 0))
    elif fault == "t":
        log[:] = log[:at] if at % 2 else log[at:]
    else:
        log[at] = (log[at][0], draw(st.integers(-3, 3)))


SOME = {"plan.MOST_IDS": 3, "drill.ROWS_TOGETHER": 30}
FEW = {
    "plan.MOST_IDS": 0,
    "drill.ROWS_TOGETHER": 1,
    "read.MOST_WAITING": 2,
    "layout.MOST_IN_A_TABLE": 1,
    "slices.ROWS_OF_BATCH": 7,
}
KINDS = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "array<bigint>": pa.list_(pa.int64()),
}


def in_arrow(tables: Tables) -> dict[str, pa.Table]:
    made = {}
    for name, rows, schema in zip(
        ("entry", "message", "member"), tables, (ENTRY, MESSAGE, MEMBER), strict=True
    ):
        fields = [tuple(field.split()) for field in schema.split(", ")]
        typed = pa.schema([(field, KINDS[kind]) for field, kind in fields])
        columns = list(zip(*rows, strict=True)) or [()] * len(fields)
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, typed, strict=True)
        ]
        made[name] = pa.table(arrays, typed)
    return made


def written(
    place: Path, tables: Tables, *, seed: int = 0, rows_of_group: int = 1_000, files: int = 1
) -> Places:
    """Rows in an order that follows from ``seed``, as files of row groups."""
    chance = random.Random(seed)
    for name, table in in_arrow(tables).items():
        (place / name).mkdir(parents=True)
        order = list(range(table.num_rows))
        if seed:
            chance.shuffle(order)
        for number in range(files):
            part = table.take(pa.array(order[number::files], pa.int64()))
            pq.write_table(part, place / name / f"{number}.parquet", row_group_size=rows_of_group)
    return Places(entry=place / "entry", message=place / "message", member=place / "member")


def in_duckdb(tables: Tables) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, table in in_arrow(tables).items():
        connection.register(name, table)
    return connection


WHOLE = """
SELECT w.channel, w.participant, w.kind, w.place, w.position,
  CASE WHEN w.kind <> 'causal' THEN h.expected_position END, w.lamport, w.mid, w.message_id,
  w.parent_mid, p.message_id
FROM witness w
LEFT JOIN held h ON w.kind <> 'missing' AND h.channel = w.channel
  AND h.participant = w.participant AND h.mid = w.mid AND h.lamport = w.lamport
  AND h.position = w.position
LEFT JOIN (SELECT channel, mid, message_id FROM message WHERE position IS NOT NULL) p
  ON p.channel = w.channel AND p.mid = w.parent_mid
"""


def is_what_every_row_tells(
    judged: Audit, connection: duckdb.DuckDBPyConnection, grace_ms: int = 0
) -> None:
    """Witnesses in all their columns, and verdicts with what came first."""
    oracle.witnesses(connection, grace_ms)
    expected = connection.execute(WHOLE).fetchall()
    names = [name for name in judged.witnesses.columns if name != "bucket"]
    assert in_order(judged.witnesses.select(*names).collect()) == in_order(expected)
    verdicts = judged.verdicts.collect()
    found = [tuple(row[name] for name in VERDICT) for row in verdicts]
    assert in_order(found) == in_order(oracle.verdicts(connection))
    first: dict[tuple[str, str], tuple[int, str, str]] = {}
    for row in sorted((row for row in expected if row[3] is not None), key=lambda r: (r[3], r[2])):
        first.setdefault(row[:2], (row[3], row[2], row[8]))
    for row in verdicts:
        told = (row["first_place"], row["first_kind"], row["first_message_id"])
        assert told == first.get((row["channel"], row["participant"]), (None, None, None))
        assert row["expected"] == row["held"] + row["missing"] - row["extra"]


def in_order(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=lambda row: [(v is not None, v) for v in row])


def all_of(cases: Sequence[Conversation]) -> Tables:
    whole: Tables = ([], [], [])
    for number, case in enumerate(cases):
        for rows, more in zip(whole, case.tables(f"c{number}"), strict=True):
            rows.extend(more)
    return whole


@pytest.mark.parametrize("limits", [{}, FEW, SOME], ids=["as it is", "more than few", "about few"])
@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    cases=st.lists(conversations(), min_size=1, max_size=60),
    seed=st.integers(0, 3),
    rows_of_group=st.sampled_from([3, 40, 1_000]),
    grace_ms=st.sampled_from([0, 0, 1, 7]),
)
def test_in_this_process_by_digests_and_by_duckdb_it_is_the_same(  # noqa: PLR0913, PLR0917 -- what is drawn
    spark: SparkSession,
    limits: dict[str, int],
    cases: list[Conversation],
    seed: int,
    rows_of_group: int,
    grace_ms: int,
) -> None:
    tables = all_of(cases)
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        places = written(
            Path(made), tables, seed=seed, rows_of_group=rows_of_group, files=1 + seed % 3
        )
        for name, limit in limits.items():
            patch.setattr(f"pipeline.audit.{name}", limit)
        judged = audit(
            spark, places, key=KEY, bucket_messages=BUCKET, few_rows=FEW_ROWS, grace_ms=grace_ms
        )
    is_what_every_row_tells(judged, in_duckdb(tables), grace_ms)


@pytest.mark.parametrize("most_ids", [0, 2, 6, 50_000])
def test_few_were_moved_that_many_depend_on(
    spark: SparkSession, tmp_path: Path, most_ids: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ids and six edges: few of the one may be many of the other."""
    messages = [(at, True, [10] if 10 < at <= 16 else []) for at in range(20)]
    order = [*range(10), 11, 10, *range(12, 20)]
    case = Conversation(messages, [[(at, 0) for at in order]], [(0, None)])
    monkeypatch.setattr("pipeline.audit.plan.MOST_IDS", most_ids)
    judged = audit(spark, written(tmp_path, case.tables("c")), key=KEY, bucket_messages=BUCKET)
    is_what_every_row_tells(judged, in_duckdb(case.tables("c")))
    kinds = [row["kind"] for row in judged.witnesses.collect()]
    assert sorted(kinds) == ["causal", "reordered", "reordered"]


@pytest.mark.parametrize("most_ids", [3, 50_000])
@settings(
    max_examples=2,  # The first is as small as can be.
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    cases=st.lists(conversations(), min_size=40, max_size=80),
    seed=st.integers(1, 3),
    grace_ms=st.sampled_from([0, 3]),
)
def test_on_spark_by_digests_by_rows_and_by_duckdb_it_is_the_same(
    spark: SparkSession, most_ids: int, cases: list[Conversation], seed: int, grace_ms: int
) -> None:
    tables = all_of(cases)
    limits = {"MOST_IDS": most_ids, "_CELLS_OF_TASK": 50, "_LOGS_OF_TASK": 20, "_HANDS_OF_TASK": 1}
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        places = written(Path(made), tables, seed=seed, rows_of_group=200)
        for name, limit in limits.items():
            patch.setattr(f"pipeline.audit.plan.{name}", limit)
        judged = audit(
            spark, places, key=KEY, bucket_messages=BUCKET, few_rows=0, grace_ms=grace_ms
        )
        is_what_every_row_tells(judged, connection := in_duckdb(tables), grace_ms)
        read = (spark.read.parquet(str(place)) for place in astuple(places))
        plain = naive.witnesses(*read, grace_ms=grace_ms).collect()
    assert in_order(plain) == in_order(oracle.witnesses(connection, grace_ms))
