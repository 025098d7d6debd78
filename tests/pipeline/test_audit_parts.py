"""The audit at its edges: nothing, the last moment there is, ids that collide, many moves."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline import beside, cli
from pipeline.audit import audit, cells
from pipeline.audit.parts import parts_of
from tests.pipeline.test_audit_is_exact import (
    ALL_KINDS,
    ON_SPARK,
    SCHEMAS,
    Conversation,
    Tables,
    all_of,
    audited,
    in_arrow,
    many,
    on_spark,
)


def conversation(log: list[int], count: int = 20) -> Conversation:
    messages = [(at, True, [at - 1] if at else []) for at in range(count)]
    return Conversation(messages, [[(at, 0) for at in log]], [[(0, None)]])


def edges() -> Tables:
    """Each a channel of its own, so that one run answers for all."""
    whole = list(range(20))
    last = Conversation(
        [(at, True, []) for at in (1, 2, 2**63 - 1)], [[(0, 0), (1, 0)]], [[(0, None)]]
    )
    late = replace(conversation(whole), live=[[("delivered", at) for at in [1, 0, *whole[2:]]]])
    tables = all_of([
        conversation([]),
        conversation(whole[::-1]),
        conversation(whole * 2),
        conversation([*whole[:3], *whole[9:]]),
        last,
        late,
        conversation([7, *whole[:7], *whole[8:]]),
        conversation(whole, count=21),
        Conversation([], [[]], [[]]),
    ])  # fmt: skip
    # Two messages of one mid and time: one of them is another id that collides with it.
    collides = list(tables["message"][23])
    tables["message"].append((*collides[:3], "other", [], 99, None, collides[-1]))
    return tables


@pytest.mark.parametrize(
    "here",
    [
        pytest.param(0, id="Spark"),
        pytest.param(100, id="mixed", marks=pytest.mark.long),
        pytest.param(beside.MOST_ROWS, id="beside"),
    ],
)
def test_by_cells_it_is_what_looking_at_every_row_finds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: int
) -> None:
    """Many conversations, and with them the edges: ids of theirs are in two channels."""
    monkeypatch.setattr(beside, "MOST_ROWS", here)
    tables = many(seed=1, count=100)
    for name, rows in edges().items():
        tables[name] += [(f"edge {row[0]}", *row[1:]) for row in rows]
    assert audited(spark, tables, tmp_path, grace_ms=1) == ALL_KINDS


def test_edges_of_few_rows(spark: SparkSession, tmp_path: Path) -> None:
    assert audited(spark, edges(), tmp_path, few_rows=10_000) == ALL_KINDS


def test_parts_hold_whole_channels_and_each_channel_is_in_one(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a, b, d and e there are messages, of c entries only; d has more than a part may."""
    monkeypatch.setattr(cells, "MOST_BROADCAST", 5)
    tables: Tables = {name: [] for name in SCHEMAS}
    for channel, count in {"a": 2, "b": 3, "c": 0, "d": 9, "e": 1}.items():
        case = conversation(list(range(count)), count=count)
        for name, rows in case.tables(channel).items():
            tables[name] += rows
    tables["entry"].append(("c", "ada", 0, 1, 1))
    whole = on_spark(spark, tables)
    found = [part.of(whole) for part in parts_of(whole)]
    held = [
        {row["channel"] for table in (one.message, one.entry) for row in table.collect()}
        for one in found
    ]
    assert held == [{"a", "b", "c"}, {"d"}, {"e"}]


def test_of_nothing_at_all_there_is_no_verdict(spark: SparkSession, tmp_path: Path) -> None:
    nothing: Tables = {name: [] for name in SCHEMAS}
    for few_rows in (ON_SPARK, 0):
        found = audit(on_spark(spark, nothing), str(tmp_path), few_rows=few_rows)
        assert found.verdicts.collect() == []
        assert found.witnesses.collect() == []


def test_what_is_few_is_counted_with_what_it_is_compared_with(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five people who hold nothing of a hundred messages are five hundred questions."""
    case = Conversation([(at, True, []) for at in range(100)], [[]] * 5, [[(0, None)]] * 5)
    tables = on_spark(spark, case.tables("c"))
    monkeypatch.setattr(beside, "MOST_ROWS", 0)
    assert len(in_arrow(case.tables("c"))["message"]) == 100
    audit(tables, str(tmp_path / "many"), few_rows=499)
    assert (tmp_path / "many").exists()
    found = audit(tables, str(tmp_path / "few"), few_rows=500)
    assert not (tmp_path / "few").exists()
    assert found.witnesses.count() == 500


def test_of_what_spark_says_the_first_line_is_told_unless_it_was_ours() -> None:
    assert cli.gist("\n [NO_SPACE] the disk is full\nJVM stacktrace:\n at x") == (
        "[NO_SPACE] the disk is full"
    )
    assert cli.gist("") == "it says no more"
