"""What simulated people would have recorded passes the audit, and does not once it is changed.

The simulator is known ground truth in the contract that real logs have: where everybody got
everything, every log of every run is "identical", whatever the network and people did; where they
did not, and where a log is changed afterwards, the audit says whose, and what.
"""

import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from engine.delivery.sqlite_log import LogReader, find_logs
from pipeline.audit import audit
from pipeline.lake import Lake
from pipeline.prepare import prepare
from pipeline.simulate.case import Case
from pipeline.simulate.sweep import run_case, sweep

CASES = [
    Case(members=4, messages=15, loss=0.3, duplication=0.1, reorder=0.2, crashes=2, partitions=1),
    Case(members=3, messages=8, gap_ms=20_000, offline=0.4, churn=30.0, heal_ms=3_600_000),
    Case(members=3, messages=8, loss=0.2, sealed=False, latency_ms=500),
    Case(protocol="mvds", messages=8, offline=0.5, churn=30.0, mode="interactive"),
    Case(protocol="mvds", messages=8, loss=0.5, mode="batch", config="reference"),
]
LOGS = 4 + 3 + 3 + 2 + 2


def verdicts(spark: SparkSession, logs: Path, out: Path) -> tuple[list[Row], list[Row]]:
    """Verdicts and witnesses."""
    lake = Lake(out)
    assert prepare(spark, [logs], lake).quarantined == 0
    judged = audit(lake.audited(spark), lake.steps)
    return judged.verdicts.collect(), judged.witnesses.collect()


@pytest.fixture(scope="module")
def logs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written by Spark's workers."""
    place = tmp_path_factory.mktemp("swept") / "logs"
    rows = sweep(spark, CASES, tasks=2, logs=place).collect()
    assert all(row["converged"] for row in rows)
    assert {row["run"] for row in rows} == {path.name for path in place.iterdir()}
    return place


def test_a_log_that_is_changed_is_named_with_its_message_and_all_others_agree(
    spark: SparkSession, logs: Path, tmp_path: Path
) -> None:
    changed = {}
    for number, case in enumerate((CASES[1], CASES[3])):
        path = min(find_logs(logs / case.run))
        with sqlite3.connect(path) as log:
            ordered = "SELECT message_id FROM log_snapshot ORDER BY position LIMIT 1 OFFSET ?"
            ((taken,),) = log.execute(ordered, (number + 2,)).fetchall()
            log.execute("DELETE FROM log_snapshot WHERE message_id = ?", (taken,))
        log.close()
        with LogReader(path) as changed_log:
            changed[changed_log.header.participant, taken] = case
    found, witnesses = verdicts(spark, logs, tmp_path / "out")
    verdict = Counter(row["verdict"] for row in found)
    assert verdict == {"identical": LOGS - len(changed), "missing": len(changed)}
    assert {row["held"] for row in found if row["verdict"] == "identical"} == {15, 8, 16}
    assert len({row["channel"] for row in found}) == len(CASES)
    assert {(row["participant"], row["message_id"]) for row in witnesses} == set(changed)


def test_who_did_not_get_everything_is_not_said_to_agree(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = Case(members=3, messages=8, loss=0.8, heal_ms=1_000, seed=4)
    outcome = run_case(case, tmp_path / "logs")
    assert not outcome.converged
    found, witnesses = verdicts(spark, tmp_path / "logs", tmp_path / "out")
    lacking = sum(row["expected"] - row["held"] for row in found)
    # A log says nothing of what was sent after its last row, so that is not expected of it.
    assert 0 < lacking <= outcome.expected - outcome.delivered
    assert len([row for row in witnesses if row["kind"] == "missing"]) == lacking
