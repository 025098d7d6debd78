"""What simulated people would have recorded passes the audit, and does not once it is changed.

The simulator is known ground truth in the contract that real logs have: where everybody got
everything, every log of every run is "identical", whatever the network and people did; where they
did not, and where a log is changed afterwards, the audit says whose, and what.
"""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.delivery.contract import DELIVERY_EVENT
from engine.delivery.sqlite_log import LogReader, find_logs
from pipeline.audit import audit
from pipeline.lake import Lake
from pipeline.prepare import prepare
from pipeline.simulate.case import Case
from pipeline.simulate.sweep import run_case, sweep
from tests.pipeline.log_files import remove_entry

CASES = [
    Case(members=4, messages=15, loss=0.3, duplication=0.1, reorder=0.2, crashes=2, partitions=1),
    Case(members=3, messages=8, gap_ms=20_000, offline=0.4, churn=30.0, heal_ms=3_600_000),
    Case(members=3, messages=8, loss=0.2, sealed=False, latency_ms=500),
    Case(protocol="mvds", messages=8, offline=0.5, churn=30.0, mode="interactive"),
    Case(protocol="mvds", messages=8, loss=0.5, mode="batch", config="reference"),
]
LOGS = 4 + 3 + 3 + 2 + 2


LACKING = Case(members=3, messages=8, loss=0.8, heal_ms=1_000, seed=4)
"""It ends before everybody has everything."""


@pytest.fixture(scope="module")
def logs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written by Spark's workers."""
    place = tmp_path_factory.mktemp("swept") / "logs"
    rows = sweep(spark, CASES, tasks=2, logs=place).collect()
    assert all(row["converged"] for row in rows)
    assert {row["run"] for row in rows} == {path.name for path in place.iterdir()}
    return place


def channels_in(place: Path) -> set[object]:
    found = set()
    for path in find_logs(place):
        with LogReader(path) as log:
            found |= {row[0] for rows in log.batches(DELIVERY_EVENT, ["channel"]) for row in rows}
    return found - {None}


def take_one(path: Path, position: int) -> tuple[str, str]:
    """Out of a log's final order; whose log, and which message."""
    with LogReader(path) as log:
        participant = log.header.participant
    return participant, remove_entry(path, position)


def test_what_was_changed_and_who_did_not_get_everything_are_named_and_all_others_agree(
    spark: SparkSession, logs: Path, tmp_path: Path
) -> None:
    changed = {
        take_one(min(find_logs(logs / CASES[number].run)), position)
        for number, position in ((1, 2), (3, 3))
    }
    outcome = run_case(LACKING, logs)
    assert not outcome.converged
    (behind,) = channels_in(logs / LACKING.run)

    lake = Lake(tmp_path / "out")
    assert prepare(spark, [logs], lake).quarantined == 0
    judged = audit(lake.audited(spark), lake.steps)
    found, witnesses = judged.verdicts.collect(), judged.witnesses.collect()

    others = [row for row in found if row["channel"] != behind]
    verdict = Counter(row["verdict"] for row in others)
    assert verdict == {"identical": LOGS - len(changed), "missing": len(changed)}
    assert {row["held"] for row in others if row["verdict"] == "identical"} == {15, 8, 16}
    assert len({row["channel"] for row in others}) == len(CASES)
    assert {
        (row["participant"], row["message_id"]) for row in witnesses if row["channel"] != behind
    } == changed

    lacking = sum(row["expected"] - row["held"] for row in found if row["channel"] == behind)
    # A log says nothing of what was sent after its last row, so that is not expected of it.
    assert 0 < lacking <= outcome.expected - outcome.delivered
    missing = [row for row in witnesses if row["kind"] == "missing" and row["channel"] == behind]
    assert len(missing) == lacking
