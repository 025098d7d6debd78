"""What the audit is made of: digests add up in any order, cells are where a search finds them."""

import random
import re
from bisect import bisect_right
from functools import reduce
from operator import xor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline import cli
from pipeline.audit import audit, stages
from pipeline.audit.digest import NUMBERS, P, Q, combined, digests, of_nothing
from pipeline.audit.layout import UNKNOWN, Ints, Layout
from pipeline.audit.plan import Plan
from pipeline.audit.slices import Slice, dealt, members, slices_of
from pipeline.audit.stages import Here, plainly
from pipeline.tables import LakeError
from tests.pipeline.test_audit_is_exact import Conversation, written

WORD = 2**64
INT64 = st.integers(-(2**63), 2**63 - 1)
POSITIONS = st.one_of(st.integers(0, 300), st.integers(0, 2**40), INT64)
ROWS = st.lists(st.tuples(st.integers(0, 3), POSITIONS, INT64, INT64), max_size=60)
Row = tuple[int, int, int, int]
"""Cell, position, lamport, mid."""


def signed(word: int) -> int:
    return word - WORD if word >= WORD // 2 else word


def mixed(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def by_integers(rows: list[Row], key: int) -> list[tuple[int, ...]]:
    """Each cell and its NUMBERS, by Python's integers."""
    found: list[tuple[int, ...]] = []
    for cell in sorted({row[0] for row in rows}):
        mine = [row[1:] for row in rows if row[0] == cell]
        keyed = [mixed(mixed(m % WORD ^ key) ^ lamport % WORD) for _, lamport, m in mine]
        positions = [row[0] for row in mine]
        sums: list[int] = []
        for halves, prime in (
            ([one >> 31 & P for one in keyed], P),
            ([one & P for one in keyed], Q),
        ):
            moved = (half * position for half, position in zip(halves, positions, strict=True))
            sums += [sum(halves) % prime, sum(moved) % prime]
        ids = reduce(xor, (row[2] for row in mine))
        found.append((cell, len(mine), min(positions), ids, signed(reduce(xor, keyed)), *sums))
    return found


def digested(rows: list[Row], key: int) -> dict[str, Ints]:
    columns = [np.array([row[at] for row in rows], np.int64) for at in range(4)]
    return digests(columns[0], columns[1], columns[2], columns[3], key)


@given(rows=ROWS, key=st.integers(0, WORD - 1), cut=st.integers(0, 60), order=st.randoms())
def test_digests_are_what_plain_sums_are_in_whatever_order_and_parts(
    rows: list[Row], key: int, cut: int, order: random.Random
) -> None:
    shuffled = list(rows)
    order.shuffle(shuffled)
    parts = [digested(shuffled[:cut], key), digested(shuffled[cut:], key)]
    parts.append(of_nothing(np.array(sorted({row[0] for row in rows}), np.int64)))
    names = ("cell", *NUMBERS)
    whole = combined({name: np.concatenate([part[name] for part in parts]) for name in names})
    assert list(zip(*(whole[name].tolist() for name in names), strict=True)) == by_integers(
        rows, key
    )


def test_a_long_run_and_large_steps_overflow_nothing() -> None:
    """More rows of a cell than a sum of products has room for, and each as far on as it may be."""
    steps = [(0, 0 if at == 0 else 2**20 - 1, at, at) for at in range(20_000)]
    far = [(1, at * 2**40, at, at) for at in range(50)]
    for rows in (steps, far, [*steps, *far]):
        found = digested(rows, 3)
        columns = (found[name].tolist() for name in ("cell", *NUMBERS))
        assert list(zip(*columns, strict=True)) == by_integers(rows, 3)


MEMBER = pa.schema(
    [
        ("channel", pa.string()),
        ("participant", pa.string()),
        ("joined_ms", pa.int64()),
        ("left_ms", pa.int64()),
        ("has_log", pa.bool_()),
    ]
)


@given(
    bounds=st.lists(st.lists(st.integers(0, 50), max_size=5), min_size=1, max_size=4),
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-5, 60))),
)
def test_a_cell_is_where_a_search_through_the_bounds_finds_it(
    bounds: list[list[int]], rows: list[tuple[int, int, int]]
) -> None:
    logs = [(f"c{c}", f"p{p}") for c in range(len(bounds)) for p in range(3)]
    member = [(*log, 0, None, log[1] != "p2") for log in logs]
    table = pa.table(list(map(list, zip(*member, strict=True))), schema=MEMBER)
    layout = Layout(table, 0)
    pairs = [(c, lamport) for c, found in enumerate(bounds) for lamport in found]
    channels, lamports = map(list, zip(*pairs, strict=True)) if pairs else ([], [])
    layout.give_bounds(
        pa.table(
            {"channel": pa.array(channels, pa.int64()), "lamport": pa.array(lamports, pa.int64())}
        )
    )
    names = [(f"c{c}", f"p{p}", lamport) for c, p, lamport in rows]
    channel, participant, lamport = (pa.array([row[at] for row in names]) for at in range(3))
    found = layout.logs_of(
        channel.cast(pa.string()).dictionary_encode(),
        participant.cast(pa.string()).dictionary_encode(),
    )
    known = [log for log in logs if log[1] != "p2"]
    assert [one == UNKNOWN for one in found] == [row[:2] not in known for row in names]
    at = np.flatnonzero(found != UNKNOWN)
    cells = layout.cells_of(found[at], lamport.cast(pa.int64()).to_numpy()[at])
    for row, cell, spot in zip(at.tolist(), cells, layout.spot_of(cells), strict=True):
        name, who, when = names[row]
        number = int(layout.log_of(np.array([cell]))[0])
        assert (layout.channels[int(layout.channel_of[number])], layout.participants[number]) == (
            name,
            who,
        )
        bucket = bisect_right(sorted(set(bounds[int(name[1:])])), when) - 1
        assert layout.bucket_of(np.array([cell, spot])).tolist() == [bucket, bucket]
        assert layout.participants[int(layout.log_of(np.array([spot]))[0])] is None


@given(st.lists(st.integers(1, 3_000_000), max_size=40))
def test_slices_are_dealt_each_once_and_evenly(rows: list[int]) -> None:
    found = [
        Slice(number=at, path="-", row_group=0, rows=count, is_message=False)
        for at, count in enumerate(rows)
    ]
    hands = dealt(found)
    assert sorted(one.number for hand in hands for one in hand) == list(range(len(rows)))
    loads = [sum(one.rows for one in hand) for hand in hands]
    assert max(loads) - min(loads) <= max(rows, default=0)


def test_what_is_packed_is_what_comes_out_row_by_row_to_the_task_that_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stages, "ROWS_TOGETHER", 3)
    values = [7, 1, 7, 2, 7, 1, 7, 7, 7, 2]
    batch = pa.RecordBatch.from_pydict({"task": values, "at": list(range(10))})
    packed = list(stages.pack_by_task(iter([batch]), lambda rows: rows["task"].to_numpy()))
    assert [row["task"][0].as_py() for row in packed] == [1, 2, 7, 7]
    for row in packed:
        (out,) = stages.unpack(iter([row]))
        assert out.num_rows <= 3
        assert set(out["task"].to_pylist()) == {row["task"][0].as_py()}
    rows = [row for out in stages.unpack(iter(packed)) for row in out["at"].to_pylist()]
    assert rows == sorted(range(10), key=lambda at: (values[at], at))
    assert [out.num_rows for out in stages.unpack(stages.pack(iter([batch])))] == [3, 3, 3, 1]


def test_one_missing_message_flags_one_bucket_and_none_that_follow(tmp_path: Path) -> None:
    messages: list[tuple[int, bool, list[int]]] = [(at, True, []) for at in range(40)]
    logs = [[(at, 0) for at in range(40) if at != lacks] for lacks in (9, None, 22)]
    places = written(tmp_path, Conversation(messages, logs, [(0, None)] * 3).tables("c"))
    layout = Layout(members(places), 0)
    plan = Plan(Here(), layout, slices_of(places))
    plan.find_bounds(4)
    cells = plan.cells(key=1).to_pylist()
    flagged = [row["cell"] for row in cells if row["is_flagged"] and row["c_n"]]
    whose = layout.log_of(np.array(flagged)), layout.bucket_of(np.array(flagged))
    found = [(layout.participants[log], bucket) for log, bucket in zip(*whose, strict=True)]
    assert found == [("p0", 9 // 4), ("p2", 22 // 4)]
    assert {row["shift"] for row in cells if row["is_equal"]} == {0, -1}


# --- what is broken -------------------------------------------------------------------------------


def conversation() -> Conversation:
    messages = [(at, True, [at - 1] if at else []) for at in range(20)]
    return Conversation(messages, [[(at, 0) for at in range(20)]], [(0, None)])


@pytest.mark.parametrize("name", ["entry", "message", "member"])
def test_a_damaged_silver_file_is_named(spark: SparkSession, tmp_path: Path, name: str) -> None:
    places = written(tmp_path, conversation().tables("c"))
    file = tmp_path / name / "0.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(LakeError, match=f"{name}/0.parquet cannot be read"):
        audit(spark, places, key=1)


@pytest.mark.parametrize("name", ["entry", "message"])
def test_rows_that_cannot_be_read_are_an_error_that_names_the_file(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """The file begins and ends as it should; here, and in a worker of Spark's."""
    places = written(tmp_path, conversation().tables("c"))
    file = tmp_path / name / "0.parquet"
    data = bytearray(file.read_bytes())
    data[4 : len(data) // 3] = b"\xa5" * (len(data) // 3 - 4)
    file.write_bytes(data)
    told = f"{file} cannot be read: "
    with pytest.raises(LakeError, match=re.escape(told)):
        audit(spark, places, key=1)
    with pytest.raises(PySparkException) as raised:
        audit(spark, places, key=1, few_rows=0)
    assert cli.gist(str(raised.value)).startswith(told)


def test_settings_are_what_they_were_after_a_failure(spark: SparkSession) -> None:
    names = ("spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage")
    before = [spark.conf.get(name) for name in names]
    spark.conf.set(names[0], "true")

    def fail() -> None:
        with plainly(spark):
            assert [spark.conf.get(name) for name in names] == ["false", "false"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [spark.conf.get(name) for name in names] == ["true", before[1]]
    spark.conf.set(names[0], str(before[0]))


def test_of_what_spark_says_the_first_line_is_told_unless_it_was_ours() -> None:
    assert cli.gist("\n [NO_SPACE] the disk is full\nJVM stacktrace:\n at x") == (
        "[NO_SPACE] the disk is full"
    )
    assert cli.gist("") == "it says no more"


def test_names_that_spark_passes_over_are_not_read(tmp_path: Path) -> None:
    places = written(tmp_path, conversation().tables("c"))
    whole = slices_of(places)
    for name in ("_SUCCESS", "_part.parquet", ".part.parquet.crc", "._x.parquet"):
        (tmp_path / "entry" / name).write_bytes(b"nothing")
    assert slices_of(places) == whole
    assert sum(one.rows for one in whole) == 40


def test_a_channel_without_any_message_or_entry_has_no_verdict(
    spark: SparkSession, tmp_path: Path
) -> None:
    entries, messages, members = conversation().tables("c")
    places = written(tmp_path, (entries, messages, [*members, ("empty", "p0", 0, None, True)]))
    for few_rows in (0, 1_000):
        found = audit(spark, places, key=1, few_rows=few_rows)
        assert [tuple(row)[:3] for row in found.verdicts.collect()] == [("c", "p0", "identical")]
        assert found.witnesses.collect() == []


def test_the_last_moment_there_is_belongs_to_who_never_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    latest = Conversation(
        [(at, True, []) for at in (1, 2, 2**63 - 1)], [[(0, 0), (1, 0)]], [(0, None)]
    )
    for bucket_messages in (1, 4):
        place = tmp_path / str(bucket_messages)
        places = written(place, latest.tables("c"))
        found = audit(spark, places, key=1, bucket_messages=bucket_messages)
        assert [row["lamport"] for row in found.witnesses.collect()] == [2**63 - 1]


def test_a_key_that_is_drawn_anew_decides_what_collides(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: set[int] = set()

    def seen(cell: Ints, position: Ints, lamport: Ints, mid: Ints, key: int) -> dict[str, Ints]:
        keys.add(key)
        return digests(cell, position, lamport, mid, key)

    monkeypatch.setattr("pipeline.audit.digest.digests", seen)
    places = written(tmp_path, conversation().tables("c"))
    for key in (5, 2**64 - 1):
        keys.clear()
        audit(spark, places, key=key)
        assert keys == {key}


def test_of_nothing_at_all_there_is_no_verdict(spark: SparkSession, tmp_path: Path) -> None:
    places = written(tmp_path, ([], [], []))
    for few_rows in (-1, 1_000):
        found = audit(spark, places, key=1, few_rows=few_rows)
        assert found.verdicts.collect() == []
        assert found.witnesses.collect() == []
