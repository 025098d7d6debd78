"""A process that measures one thing on Spark and prints what it saw as a line of JSON.

``python -m benchmarks.pipeline.spark_work WHAT PLACE``: one process for each, so that none finds
warm code or a full heap of another's.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

from benchmarks.pipeline import naive
from benchmarks.pipeline.costs import Cost, cost_of
from benchmarks.pipeline.generator import places
from pipeline import bronze
from pipeline.audit import audit
from pipeline.audit.digest import BUCKET_MESSAGES
from pipeline.audit.layout import Layout
from pipeline.audit.plan import Plan
from pipeline.audit.slices import slices_of
from pipeline.audit.stages import OnSpark, plainly
from pipeline.lake import Lake
from pipeline.session import SessionSettings, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEAP: Final = "4g"
KEY: Final = 0x5EED
COLUMNS: Final = ("channel", "participant", "kind", "mid", "parent_mid")
DIGESTS: Final = 3
SCHEMAS: Final = {
    "entry": "channel string, participant string, position bigint, lamport bigint, mid bigint",
    "message": "channel string, mid bigint, lamport bigint, message_id string,"
    " parent_mids array<bigint>, place bigint, position bigint",
    "member.parquet": "channel string, participant string, joined_ms bigint, left_ms bigint,"
    " has_log boolean",
}

Tables = tuple["DataFrame", "DataFrame", "DataFrame"]
Seen = dict[str, Any]


def tables(spark: "SparkSession", place: Path) -> Tables:
    """With their schemas, as a lake tells them: else Spark would read files to find them out."""
    entry, message, member = (
        spark.read.schema(schema).parquet(str(place / name)) for name, schema in SCHEMAS.items()
    )
    return entry, message, member


def audited(spark: "SparkSession", place: Path) -> set[tuple[object, ...]]:
    """All witnesses; the verdicts are made too."""
    found = audit(spark, places(place), key=KEY)
    found.verdicts.write.format("noop").mode("overwrite").save()
    return {tuple(row) for row in found.witnesses.select(*COLUMNS).collect()}


def digested(spark: "SparkSession", place: Path) -> None:
    """What an audit begins with: every cell's digest made, moved and compared, and nothing else."""
    stages, member = OnSpark(spark), pq.read_table(place / "member.parquet")
    plan = Plan(stages, Layout(member, 0), slices_of(places(place)))
    with plainly(spark):
        plan.find_bounds(BUCKET_MESSAGES)
        stages.kept(plan.cells(KEY), plan.few_tasks)


def truth(place: Path) -> set[tuple[object, ...]]:
    rows = pq.read_table(place / "truth.parquet", columns=list(COLUMNS)).to_pylist()
    return {tuple(row.values()) for row in rows}


def wrong(place: Path, found: set[tuple[object, ...]]) -> int:
    """How many injected faults were not found, and how many found that were not injected."""
    return len(truth(place) ^ found)


def measure_audit(spark: "SparkSession", place: Path) -> Seen:
    found, first = cost_of(spark, lambda: audited(spark, place))
    passes = [cost_of(spark, lambda: digested(spark, place))[1] for _ in range(DIGESTS)]
    again, warm = cost_of(spark, lambda: audited(spark, place))
    return {
        "first": asdict(first),
        "warm": asdict(warm),
        "digest": [asdict(one) for one in passes],
        "wrong": max(wrong(place, found), wrong(place, again)),
    }


def measure_naive(spark: "SparkSession", place: Path) -> Seen:
    def work() -> set[tuple[object, ...]]:
        rows = naive.witnesses(*tables(spark, place)).select(*COLUMNS)
        return {tuple(row) for row in rows.toLocalIterator()}

    found, cost = cost_of(spark, work)
    return {"first": asdict(cost), "wrong": wrong(place, found)}


def measure_ingest(spark: "SparkSession", place: Path) -> Seen:
    """Into an empty lake three times, and once more without anything new."""
    costs: list[Cost] = []
    rows = 0
    for _ in range(3):
        shutil.rmtree(place / "lake", ignore_errors=True)
        lake = Lake(place / "lake")
        read, cost = cost_of(spark, lambda lake=lake: bronze.ingest(spark, [place / "logs"], lake))  # type: ignore[misc]
        rows = read.total
        costs.append(cost)
    again, rerun = cost_of(spark, lambda: bronze.ingest(spark, [place / "logs"], lake))
    return {
        "ingest": [asdict(one) for one in costs],
        "rows": rows,
        "again": asdict(rerun),
        "added": again.total,
    }


WORK: Final[dict[str, Callable[["SparkSession", Path], Seen]]] = {
    "audit": measure_audit,
    "naive": measure_naive,
    "ingest": measure_ingest,
}


def main() -> None:
    what, place = sys.argv[1], Path(sys.argv[2])
    began = time.perf_counter()
    with session(SessionSettings(driver_memory=HEAP, app="benchmark")) as spark:
        up = time.perf_counter() - began
        _, first_job = cost_of(spark, lambda: spark.range(1_000).groupBy().sum("id").collect())
        seen = WORK[what](spark, place)
    print(json.dumps({"session_s": up, "first_job_s": first_job.seconds, **seen}))


if __name__ == "__main__":
    main()
