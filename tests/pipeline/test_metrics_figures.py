"""Figures counted on Spark against what the simulator itself saw, to the millisecond and byte."""

import math
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.delivery.contract import DELIVERY_EVENT, Kind
from pipeline.clock import MOST_APART_MS, apart_ms
from pipeline.metrics.compute import Silver as Tables
from pipeline.metrics.compute import metrics
from pipeline.metrics.figures import hour_of
from pipeline.simulate.case import Case
from pipeline.simulate.sds_run import outcome_of
from tests.pipeline.recorded_group import RecordedGroup, Silver

CASE = Case(members=5, messages=20, loss=0.2)


def _tables(silver: Silver, *only: str) -> dict[str, list[dict[str, Any]]]:
    found = metrics(
        Tables(event=silver.event, message=silver.message, member=silver.member, log=silver.log)
    )
    wanted = only or found.tables
    rows = {name: [r.asDict() for r in found.tables[name].collect()] for name in wanted}
    found.release()
    return rows


def _all(rows: list[dict[str, Any]]) -> dict[str, Any]:
    (one,) = [row for row in rows if row["dimension"] == "all"]
    return one


@pytest.fixture(scope="module")
def group() -> RecordedGroup:
    return RecordedGroup(CASE)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, group: RecordedGroup) -> dict[str, list[dict[str, Any]]]:
    return _tables(group.silver(spark))


def test_delivery_and_acks_are_what_the_simulation_saw(
    group: RecordedGroup, tables: dict[str, list[dict[str, Any]]]
) -> None:
    truth = outcome_of(group.group, 0)
    told = _all(tables["delivery"])
    assert (told["expected"], told["delivered"]) == (truth.expected, truth.delivered)
    assert told["delivery_p50_ms"] == truth.delivery_p50_ms
    assert told["delivery_p95_ms"] == truth.delivery_p95_ms
    assert told["delivery_p99_ms"] == truth.delivery_p99_ms
    ack = _all(tables["acks"])
    assert (ack["ack_p50_ms"], ack["ack_p95_ms"]) == (truth.ack_p50_ms, truth.ack_p95_ms)
    assert _all(tables["held_by_all"])["held_by_all"] == truth.messages


def test_bytes_copies_and_recoveries_are_what_the_simulation_counted(
    group: RecordedGroup, tables: dict[str, list[dict[str, Any]]]
) -> None:
    truth = outcome_of(group.group, 0)
    cost = _all(tables["cost"])
    assert cost["sent_bytes"] == truth.wire_bytes
    assert cost["repair_copies"] == truth.repairs
    assert cost["first_copies"] + cost["again_copies"] == truth.messages + truth.retransmissions
    recovery = _all(tables["recovery"])
    assert recovery["by_relay"] + recovery["by_repair"] == truth.delivered
    assert recovery["missing"] == recovery["missing_came"] > 0
    assert recovery["store_queries"] == 0
    assert recovery["wasted_share"] is None


def test_dimensions_add_up(tables: dict[str, list[dict[str, Any]]]) -> None:
    for name, column in [("delivery", "expected"), ("acks", "claimable"), ("cost", "sent_bytes")]:
        rows = tables[name]
        for dimension in ("channel", "participant", "version", "network", "hour"):
            parts = [row[column] for row in rows if row["dimension"] == dimension]
            assert sum(parts) == _all(rows)[column], (name, dimension)
    per_figure: Counter[str] = Counter()
    for row in tables["histogram"]:
        per_figure[row["figure"]] += row["pairs"] if row["dimension"] == "all" else 0
    expected = _all(tables["delivery"])["expected"]
    assert per_figure == {
        "delivery": expected, "ack": expected, "held": CASE.messages, "known": CASE.messages,
    }  # fmt: skip
    assert sum(row["expected"] for row in tables["links"]) == expected
    assert sum(row["sent"] for row in tables["activity"]) == CASE.messages
    missed = sum(row["missing"] for row in tables["activity"])
    assert missed == _all(tables["recovery"])["missing"]


def test_what_nobody_delivered_counts_as_infinite_and_as_a_gap_at_the_end(
    spark: SparkSession, group: RecordedGroup
) -> None:
    """All that one member received in the second half is taken out of its log."""
    events = group.rows(DELIVERY_EVENT)
    victim = events[0]["participant"]
    lamports = sorted({e["lamport"] for e in events if e["kind"] == Kind.SENT})
    middle = lamports[len(lamports) // 2]
    late = {e["mid"] for e in events if e["kind"] == Kind.SENT and e["lamport"] >= middle}
    own = {e["mid"] for e in events if e["kind"] == Kind.SENT and e["participant"] == victim}
    cut = [e for e in events if e["participant"] != victim or e["mid"] not in late - own]
    tables = _tables(group.silver(spark, cut), "delivery", "trailing", "false_acks")
    removed = len(late - own)
    assert removed > 0
    told = _all(tables["delivery"])
    assert told["expected"] - told["delivered"] == removed
    mine = next(
        r for r in tables["delivery"] if (r["dimension"], r["value"]) == ("participant", victim)
    )
    assert mine["delivery_p99_ms"] == math.inf
    assert told["delivery_p50_ms"] < math.inf
    trailing = _all(tables["trailing"])
    assert trailing["undelivered"] == removed
    assert trailing["logs_with_gap"] == 1
    # Certain holders that hold nothing, by their own logs: each such claim is found.
    false = sum(r["false"] for r in tables["false_acks"] if r["filters"] == 0)
    claims = {
        (e["mid"], e["ack_source"]) for e in cut if e["kind"] == Kind.ACKED and e["peer"] == victim
    }
    assert false == sum(mid in late - own for mid, _ in claims)


def test_without_a_log_nothing_is_known_of_it(spark: SparkSession) -> None:
    group = RecordedGroup(CASE, silent=2)
    tables = _tables(group.silver(spark), "delivery", "false_acks")
    told = _all(tables["delivery"])
    assert told["unobserved"] > 0
    assert told["delivered"] == told["expected"]
    for row in tables["false_acks"]:
        assert row["claims"] == row["observed"] + row["unobserved"]
    assert sum(row["unobserved"] for row in tables["false_acks"]) > 0
    assert sum(row["false"] for row in tables["false_acks"]) == 0


def test_a_clock_that_is_wrong_by_an_hour_does_not_change_the_figures(
    spark: SparkSession, group: RecordedGroup, tables: dict[str, list[dict[str, Any]]]
) -> None:
    events = group.rows(DELIVERY_EVENT)
    victim = events[0]["participant"]
    skewed = [
        {**e, "at_ms": e["at_ms"] + 3_600_000} if e["participant"] == victim else e for e in events
    ]
    told = _tables(group.silver(spark, skewed), "clock", "delivery", "acks")
    offsets = {
        (r["sender"], r["receiver"]): r["offset_ms"] for r in told["clock"] if r["corrected"]
    }
    assert {pair for pair in offsets if victim in pair} == set(offsets)
    assert all(abs(abs(offset) - 3_600_000) < 500 for offset in offsets.values())
    # The quickest copies there and back differ by less than the network's spread.
    before, after = _all(tables["delivery"]), _all(told["delivery"])
    assert abs(before["delivery_p95_ms"] - after["delivery_p95_ms"]) < 500
    assert _all(told["acks"]) == _all(tables["acks"])


def test_queries_that_brought_nothing_are_wasted(spark: SparkSession, group: RecordedGroup) -> None:
    events = [dict(e) for e in group.rows(DELIVERY_EVENT)]
    first = next(e for e in events if e["kind"] == Kind.RECEIVED)
    log = [e for e in events if e["log_id"] == first["log_id"]]
    seq = max(e["seq"] for e in log)
    query = {**first, "kind": Kind.STORE_QUERY.value, "mid": None, "message_id": None}

    def asked(number: int, hashes: int = 0, end: str = "complete") -> dict[str, Any]:
        return {**query, "attempt": number, "amount": hashes, "detail": end}

    def hit(number: int) -> dict[str, Any]:
        return {**first, "kind": Kind.STORE_HIT.value, "via": "store", "attempt": number}

    # The first two run at the same time; then the program starts again, and numbers begin anew.
    started = {**query, "kind": Kind.STARTED.value, "channel": None, "protocol": None}
    more = [hit(1), hit(2), hit(1), asked(2, hashes=3), asked(1), asked(3, end="faulted"), hit(4)]
    more += [started, asked(1), hit(4), asked(4), asked(5, end="cancelled")]
    events += [{**e, "seq": seq + number} for number, e in enumerate(more, start=1)]
    recovery = _all(_tables(group.silver(spark, events), "recovery")["recovery"])
    assert recovery["store_queries"] == 6
    assert (recovery["store_lookups"], recovery["store_failed"]) == (1, 1)
    assert recovery["store_hits"] == 4, "one is of a query that never ended"
    assert recovery["wasted_queries"] == 2


def test_figures_do_not_depend_on_partitions(
    spark: SparkSession, group: RecordedGroup, tables: dict[str, list[dict[str, Any]]]
) -> None:
    silver = group.silver(spark)
    shuffled: dict[str, DataFrame] = {
        name: getattr(silver, name).repartition(7) for name in ("event", "message", "member", "log")
    }
    again = _tables(Silver(**shuffled), "delivery", "acks", "recovery")
    for name, rows in again.items():
        assert sorted(map(repr, rows)) == sorted(map(repr, tables[name])), name


def test_a_clock_at_the_end_of_time_has_an_hour_and_a_distance(spark: SparkSession) -> None:
    times = [(2**63 - 1, 0), (-(2**63), 1), (2**63 - 1, -5), (0, None), (None, 0)]
    rows = spark.createDataFrame(times, "here bigint, there bigint")
    told = rows.select(hour_of(F.col("here")), apart_ms(F.col("here"), F.col("there"))).collect()
    assert list(map(tuple, told)) == [
        ("9999-12-31 23", 2**63 - 1),
        ("1970-01-01 00", -MOST_APART_MS),
        ("9999-12-31 23", MOST_APART_MS),
        ("1970-01-01 00", None),
        (None, None),
    ]
