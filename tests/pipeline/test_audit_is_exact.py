"""The audit finds what looking at every row finds, neither more nor less.

Many conversations are audited at once, a channel each; buckets are four messages long, so that
every fault meets a bucket's edge now and then.  Beside it runs the same audit by DuckDB, written
apart and without buckets.  That these tests are sharp enough is shown by planting a bug in each
stage, which they have to find.
"""

import hashlib
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from benchmarks.pipeline import oracle
from pipeline.audit import Audited, audit, causal, cells, drill, local, verdict
from pipeline.audit.parts import ALL, parts_of
from pipeline.session import SessionSettings, session
from tests.pipeline.planted import Bug, each_of, plant

BUCKET = 4
LOG: Final = {"channel": pa.string(), "participant": pa.string()}
LIVE: Final = {**LOG, "log_id": pa.string(), "seq": pa.int64(), "mid": pa.int64()}
SCHEMAS: Final = {
    "entry": {**LOG, "position": pa.int64(), "lamport": pa.int64(), "mid": pa.int64()},
    "message": {
        "channel": pa.string(),
        "mid": pa.int64(),
        "lamport": pa.int64(),
        "message_id": pa.string(),
        "parent_mids": pa.list_(pa.int64()),
        "place": pa.int64(),
        "position": pa.int64(),
        "sent_ms": pa.int64(),
    },
    "member": {**LOG, "has_log": pa.bool_()},
    "stay": {**LOG, "joined_ms": pa.int64(), "left_ms": pa.int64()},
    "delivered": LIVE,
    "lost": LIVE,
}
VERDICT: Final = verdict.VERDICT.names
TOLD: Final = (
    "channel", "participant", "verdict", "held", "missing", "extra", "reordered", "causal", "early",
    "first_place",
)  # fmt: skip
Tables: TypeAlias = dict[str, list[tuple[Any, ...]]]


@dataclass
class Conversation:
    """Messages as (lamport, is canonical, indexes of parents); logs as lists of indexes."""

    messages: list[tuple[int, bool, list[int]]]
    logs: list[list[tuple[int, int]]]
    """Index and how far the log's Lamport timestamp is off."""
    stays: list[list[tuple[int, int | None]]]
    live: list[list[tuple[str, int]]] = field(default_factory=list)
    """Of each log ("delivered" or "lost", index)."""

    def tables(self, channel: str) -> Tables:
        mids = [hash_of(channel, at) for at in range(len(self.messages))]
        order = sorted(range(len(mids)), key=lambda at: (self.messages[at][0], name_of(at)))
        made: Tables = {name: [] for name in SCHEMAS}
        position = 0
        for place, at in enumerate(order):
            lamport, is_canonical, parents = self.messages[at]
            parent_mids = [mids[parent] for parent in parents]
            where = position if is_canonical else None
            row = (channel, mids[at], lamport, name_of(at), parent_mids, place, where, lamport)
            made["message"].append(row)
            position += is_canonical
        for who, log in enumerate(self.logs):
            made["member"].append((channel, f"p{who}", True))
            made["stay"] += [(channel, f"p{who}", *stay) for stay in self.stays[who]]
            made["entry"] += [
                (channel, f"p{who}", position, self.messages[at][0] + off, mids[at])
                for position, (at, off) in enumerate(log)
            ]
        for who, events in enumerate(self.live):
            for seq, (kind, at) in enumerate(events):
                made[kind].append((channel, f"p{who}", f"log {seq % 17 > 12}", seq, mids[at]))
        return made


def name_of(at: int) -> str:
    return f"m{at:03}"


def hash_of(channel: str, at: int) -> int:
    digest = hashlib.sha256(f"{channel} {at}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def conversation(chance: random.Random) -> Conversation:
    count = chance.randrange(25)
    lamports = [chance.randrange(60) for _ in range(count)]
    if chance.random() < 0.8:
        lamports.sort()  # Else a child may be older than its parent, whoever agrees.
    messages = [
        (
            lamport,
            chance.random() < 0.9,
            chance.choices(range(at), k=chance.randrange(4)) if at else [],
        )
        for at, lamport in enumerate(lamports)
    ]
    order = sorted(range(count), key=lambda at: (lamports[at], name_of(at)))
    canonical = [(at, 0) for at in order if messages[at][1]]
    made = Conversation(messages, [], [])
    for _ in range(chance.randrange(1, 4)):
        log = list(canonical)
        for fault in chance.choices("dddsssmmxxttaf", k=chance.randrange(4)):
            spoil(chance, log, fault, count)
        made.logs.append(log)
        made.stays.append(chance.choice(STAYS))
        made.live.append(live(chance, count))
    return made


def far_swaps() -> Conversation:
    """Of messages far apart, so that the places of one bucket's lie among those of others."""
    messages = [(10 * at, True, [at - 1] if at else []) for at in range(28)]
    log = [(at, 0) for at in range(28)]
    for at, other in ((0, 20), (4, 24)):
        log[at], log[other] = log[other], log[at]
    return Conversation(messages, [log], [[(0, None)]], [[]])


STAYS: Final[list[list[tuple[int, int | None]]]] = [
    [(0, None)], [(0, None)], [(0, None)], [], [(10, None)], [(30, 40)], [(0, 15), (35, None)],
    [(5, 20), (18, 30), (50, 51)],
]  # fmt: skip


def live(chance: random.Random, count: int) -> list[tuple[str, int]]:
    """Mostly in order; some come late, some twice, and some had been given up."""
    at = list(range(count))
    for _ in range(chance.randrange(3) if count else 0):
        at.insert(chance.randrange(count), at.pop(chance.randrange(count)))
    events = [("delivered", one) for one in at]
    for _ in range(chance.randrange(3) if count else 0):
        kind = chance.choice(["lost", "lost", "delivered"])
        events.insert(chance.randrange(count + 1), (kind, chance.randrange(count)))
    return events


def spoil(chance: random.Random, log: list[tuple[int, int]], fault: str, count: int) -> None:
    """Drop, swap, move, put in what may be there already, cut off, alter, turn around."""
    if not log:
        return
    at, other = chance.randrange(len(log)), chance.randrange(len(log))
    if fault == "d":
        del log[at]
    elif fault == "s":
        log[at], log[other] = log[other], log[at]
    elif fault == "m":
        log.insert(other, log.pop(at))
    elif fault == "x":
        log.insert(at, (chance.randrange(count), 0))
    elif fault == "t":
        log[:] = log[:at] if at % 2 else log[at:]
    elif fault == "f":
        log.reverse()
    else:
        log[at] = (log[at][0], chance.randrange(-3, 4))


# --- both audits ----------------------------------------------------------------------------------


def in_arrow(tables: Tables) -> dict[str, pa.Table]:
    made = {}
    for name, rows in tables.items():
        fields = SCHEMAS[name]
        columns = list(zip(*rows, strict=True)) or [()] * len(fields)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, fields.values(), strict=True)]
        made[name] = pa.table(arrays, list(fields))
    return made


def on_spark(spark: SparkSession, tables: Tables) -> Audited:
    """Over Connect a table of no rows has no schema of its own."""
    return Audited(
        **{
            name: spark.createDataFrame(table, from_arrow_schema(table.schema))
            for name, table in in_arrow(tables).items()
        }
    )


def in_duckdb(tables: Tables) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, table in in_arrow(tables).items():
        connection.register(name, table)
    return connection


WHOLE = """
SELECT w.channel, w.participant, w.kind, w.place, w.position,
  CASE WHEN w.kind NOT IN ('causal', 'early') THEN h.expected_position END, w.lamport, w.mid,
  w.message_id, w.parent_mid, p.message_id
FROM witness w
LEFT JOIN held h ON w.kind <> 'missing' AND h.channel = w.channel
  AND h.participant = w.participant AND h.mid = w.mid AND h.lamport = w.lamport
  AND h.position = w.position
LEFT JOIN (SELECT channel, mid, message_id FROM message WHERE position IS NOT NULL) p
  ON p.channel = w.channel AND p.mid = w.parent_mid
"""


def is_what_every_row_tells(
    verdicts: Sequence[Any], witnesses: Sequence[Any], tables: Tables, grace_ms: int = 0
) -> set[str]:
    """Witnesses in all their columns, and verdicts with what came first.  Returns the kinds."""
    connection = in_duckdb(tables)
    oracle.witnesses(connection, grace_ms)
    expected = connection.execute(WHOLE).fetchall()
    assert in_order(witnesses) == in_order(expected)
    found = [dict(zip(VERDICT, row, strict=True)) for row in verdicts]
    told = [tuple(row[name] for name in TOLD) for row in found]
    assert in_order(told) == in_order(oracle.verdicts(connection))
    first: dict[Any, Any] = {}
    for row in sorted((row for row in expected if row[3] is not None), key=lambda r: (r[3], r[2])):
        first.setdefault(row[:2], (row[3], row[2], row[8]))
    for one in found:
        about = (one["first_place"], one["first_kind"], one["first_message_id"])
        assert about == first.get((one["channel"], one["participant"]), (None, None, None))
        assert one["expected"] == one["held"] + one["missing"] - one["extra"]
    return {row[2] for row in expected}


def in_order(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=lambda row: [(v is not None, v) for v in row])


def all_of(cases: Sequence[Conversation]) -> Tables:
    whole: Tables = {name: [] for name in SCHEMAS}
    for number, case in enumerate(cases):
        for name, rows in case.tables(f"c{number}").items():
            whole[name] += rows
    return whole


def many(seed: int, count: int = 400) -> Tables:
    chance = random.Random(seed)
    return all_of([far_swaps(), *(conversation(chance) for _ in range(count))])


ALL_KINDS: Final = {"missing", "extra", "reordered", "causal", "early"}
ON_SPARK: Final = -1
"""However few rows there are, they are not few."""


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), grace_ms=st.sampled_from([0, 0, 1, 7]))
def test_few_rows_are_audited_in_this_process_exactly(seed: int, grace_ms: int) -> None:
    tables = many(seed, 100)
    verdicts, witnesses = local.audited(in_arrow(tables), grace_ms)
    is_what_every_row_tells(verdicts, witnesses, tables, grace_ms)


def audited(
    spark: SparkSession, tables: Tables, steps: Path, grace_ms: int = 0, few_rows: int = ON_SPARK
) -> set[str]:
    judged = audit(
        on_spark(spark, tables),
        str(steps),
        grace_ms=grace_ms,
        bucket_messages=BUCKET,
        few_rows=few_rows,
    )
    return is_what_every_row_tells(
        judged.verdicts.collect(), judged.witnesses.collect(), tables, grace_ms
    )


@pytest.mark.parametrize(("seed", "grace_ms"), [(1, 0), (2, 1), (3, 7)])
def test_duckdb_carries_out_the_same_audit(seed: int, grace_ms: int, tmp_path: Path) -> None:
    with session(SessionSettings(needs_java=False)) as here:
        assert audited(here, many(seed, 100), tmp_path, grace_ms) == ALL_KINDS


@pytest.mark.parametrize("seed", [4, 5])
def test_in_parts_of_whole_channels_it_is_the_same_audit(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = many(seed, 100)
    monkeypatch.setattr(cells, "MOST_BROADCAST", most := len(tables["message"]) // 4)
    with session(SessionSettings(needs_java=False)) as here:
        whole = on_spark(here, tables)
        sizes = [part.of(whole).message.count() for part in parts_of(whole)]
        assert audited(here, tables, tmp_path) == ALL_KINDS
    assert len(sizes) > 3
    assert sum(sizes) == len(tables["message"])
    assert max(sizes) <= most


@pytest.mark.long
@pytest.mark.parametrize("way", ["broadcast", "shuffled", "in parts"])
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), grace_ms=st.sampled_from([0, 1, 7]))
def test_whichever_way_they_are_joined(
    spark: SparkSession, way: str, seed: int, grace_ms: int
) -> None:
    tables = many(seed)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as steps:
        if way == "shuffled":
            patch.setattr(cells, "MOST_BROADCAST", 0)
            patch.setattr("pipeline.audit.parts_of", lambda _: [ALL])
        if way == "in parts":
            patch.setattr(cells, "MOST_BROADCAST", len(tables["message"]) // 3)
        assert audited(spark, tables, Path(steps), grace_ms) <= ALL_KINDS


# --- planted bugs ---------------------------------------------------------------------------------

BUGS: Final = [
    Bug(cells, "last_ms >= stay", "last_ms > stay"),
    Bug(cells, "first_ms < stay", "first_ms <= stay"),
    Bug(cells, "F.max(ahead)", "F.min(ahead)"),
    Bug(cells, '(F.col("matched") == F.col("c_n"))', "F.lit(True)"),
    Bug(cells, '- F.col("n"))', "- F.lit(0))"),
    Bug(cells, "asc_nulls_last", "asc_nulls_first"),
    Bug(cells, 'and not known["unknown"]', "or True"),
    Bug(drill, '"low"), F.max("high")', '"low"), F.min("high")'),
    Bug(drill, '| F.col("is_copy")', ""),
    Bug(drill, "+ F.row_number().over(in_order) - 1", "+ F.row_number().over(in_order)"),
    Bug(drill, '"left_anti"', '"left_semi"'),
    Bug(causal, 'F.col("place") < F.col("parent_place")', "F.lit(False)"),
    Bug(causal, "moved.frame.union(_late(tables, order, canonical))", "moved.frame"),
    Bug(causal, 'F.col("position") - F.col("shift")', 'F.col("position")'),
    Bug(causal, '"at < parent_at"', '"at > parent_at"'),
    Bug(causal, '& ~F.col("is_copy")', ""),
    Bug(causal, "given_up.log_id <> early.log_id OR ", ""),
    Bug(causal, "OR given_up.seq < early.seq", "OR given_up.seq > early.seq"),
    Bug(causal, 'F.min("seq").alias("seq")', 'F.max("seq").alias("seq")'),
    Bug(verdict, "F.min(first)", "F.max(first)"),
    Bug(verdict, 'F.col("last_equal") < F.col("gap_bucket")', "F.lit(True)"),
    Bug(verdict, '(F.size("stays") == 0) &', ""),
]  # fmt: skip


@pytest.mark.long
@each_of(BUGS)
def test_a_planted_bug_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: Bug
) -> None:
    plant(monkeypatch, bug)
    with pytest.raises(AssertionError):
        audited(spark, many(seed=1), tmp_path, grace_ms=1)
