"""The digest audit finds what looking at every row finds, neither more nor less.

Many conversations go into one Spark job, a channel each; buckets are four messages long, so that
every fault meets a bucket's edge now and then.  Beside it runs the same by plain Spark and, written
apart, by DuckDB.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from benchmarks.pipeline import naive, oracle
from pipeline.audit import FEW_CELLS, audit

BUCKET = 4
KEY = 7
COLUMNS = ("channel", "participant", "kind", "mid", "lamport", "position", "parent_mid")
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


def frames(spark: SparkSession, tables: Tables) -> tuple[DataFrame, DataFrame, DataFrame]:
    made = [
        spark.createDataFrame(rows, schema)
        for rows, schema in zip(tables, (ENTRY, MESSAGE, MEMBER), strict=True)
    ]
    return made[0], made[1], made[2]


def in_duckdb(tables: Tables) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    kinds = {"string": pa.string(), "bigint": pa.int64(), "boolean": pa.bool_()}
    for name, rows, schema in zip(
        ("entry", "message", "member"), tables, (ENTRY, MESSAGE, MEMBER), strict=True
    ):
        fields = [field.split() for field in schema.split(", ")]
        arrow = pa.table(
            {
                field: pa.array([row[at] for row in rows], kinds.get(kind, pa.list_(pa.int64())))
                for at, (field, kind) in enumerate(fields)
            }
        )
        connection.register(name, arrow)
    return connection


def in_order(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=lambda row: [(v is not None, v) for v in row])


def all_of(cases: Sequence[Conversation]) -> Tables:
    whole: Tables = ([], [], [])
    for number, case in enumerate(cases):
        for rows, more in zip(whole, case.tables(f"c{number}"), strict=True):
            rows.extend(more)
    return whole


@pytest.mark.parametrize("few_cells", [FEW_CELLS, 0], ids=["in one task", "spread"])
@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(cases=st.lists(conversations(), min_size=40, max_size=80))
def test_by_digests_by_rows_and_by_duckdb_it_is_the_same(
    spark: SparkSession, few_cells: int, cases: list[Conversation]
) -> None:
    tables = all_of(cases)
    expected = oracle.witnesses(connection := in_duckdb(tables))
    entry, message, member = frames(spark, tables)
    found = audit(entry, message, member, key=KEY, bucket_messages=BUCKET, few_cells=few_cells)
    assert in_order(found.witnesses.select(*COLUMNS).collect()) == in_order(expected)
    assert in_order(found.verdicts.select(*VERDICT).collect()) == in_order(
        oracle.verdicts(connection)
    )
    plain = naive.witnesses(entry, message, member)
    assert in_order(plain.collect()) == in_order(expected)
