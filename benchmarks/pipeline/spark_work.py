"""A process that measures one thing on Spark and prints what it saw as a line of JSON.

``python -m benchmarks.pipeline.spark_work WHAT PLACE [WORKERS]``: one process for each, so that
none finds warm code or a full heap of another's.  With WORKERS it is a cluster in miniature of so
many, each a process of its own with one core.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
import pyspark

from benchmarks.pipeline.costs import Cost, cost_of
from pipeline import bronze
from pipeline.audit import Audited, audit
from pipeline.lake import Lake
from pipeline.session import SessionSettings, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAP: Final = "4g"
WORKER_MIB: Final = 2_048
WARM: Final = 3
COLUMNS: Final = ("channel", "participant", "kind", "mid", "parent_mid")
LOG: Final = "channel string, participant string"
LIVE: Final = f"{LOG}, log_id string, seq bigint, mid bigint"
SCHEMAS: Final = {
    "entry": f"{LOG}, position bigint, lamport bigint, mid bigint",
    "message": "channel string, mid bigint, lamport bigint, message_id string,"
    " parent_mids array<bigint>, place bigint, position bigint, sent_ms bigint",
    "member.parquet": f"{LOG}, has_log boolean, joined_ms bigint, left_ms bigint",
    "delivered": LIVE,
}

Seen = dict[str, Any]


def tables(spark: "SparkSession", place: Path) -> Audited:
    """With their schemas, as a lake tells them: else Spark would read files to find them out."""
    entry, message, member, delivered = (
        spark.read.schema(schema).parquet(str(place / name)) for name, schema in SCHEMAS.items()
    )
    lost = spark.createDataFrame([], LIVE)
    return Audited(
        entry=entry, message=message, member=member, stay=member, delivered=delivered, lost=lost
    )


def audited(spark: "SparkSession", place: Path) -> set[tuple[object, ...]]:
    """All witnesses; the verdicts are made too.  Spark looks at all rows, however few there are."""
    found = audit(tables(spark, place), str(place / "steps"), few_rows=0)
    found.verdicts.write.format("noop").mode("overwrite").save()
    return {tuple(row) for row in found.witnesses.select(*COLUMNS).collect()}


def truth(place: Path) -> set[tuple[object, ...]]:
    rows = pq.read_table(place / "truth.parquet", columns=list(COLUMNS)).to_pylist()
    return {tuple(row.values()) for row in rows}


def wrong(place: Path, found: set[tuple[object, ...]]) -> int:
    """How many injected faults were not found, and how many found that were not injected."""
    return len(truth(place) ^ found)


def measure_audit(spark: "SparkSession", place: Path) -> Seen:
    found, first = cost_of(spark, lambda: audited(spark, place))
    most_wrong, warm = wrong(place, found), []
    for _ in range(WARM):
        found, cost = cost_of(spark, lambda: audited(spark, place))
        most_wrong = max(most_wrong, wrong(place, found))
        warm.append(asdict(cost))
    return {"first": asdict(first), "warm": warm, "wrong": most_wrong}


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
    "ingest": measure_ingest,
}


def cluster_of(workers: int, home: Path) -> SessionSettings:
    """Its workers keep their files in Spark's home, which must not be the installed one."""
    for path in Path(pyspark.__file__).parent.iterdir():
        (home / path.name).symlink_to(path)
    os.environ["SPARK_HOME"] = str(home)
    return SessionSettings(
        master=f"local-cluster[{workers},1,{WORKER_MIB}]",
        driver_memory="1g",
        app="benchmark",
        more={"spark.executor.memory": f"{WORKER_MIB}m"},
    )


def main() -> None:
    what, place, *workers = sys.argv[1:]
    with ExitStack() as stack:
        settings = SessionSettings(driver_memory=HEAP, app="benchmark")
        if workers:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="causerie-spark-")))
            settings = cluster_of(int(workers[0]), home)
        began = time.perf_counter()
        spark = stack.enter_context(session(settings))
        up = time.perf_counter() - began
        _, first_job = cost_of(spark, lambda: spark.range(1_000).groupBy().sum("id").collect())
        seen = WORK[what](spark, Path(place))
    print(json.dumps({"session_s": up, "first_job_s": first_job.seconds, **seen}))


if __name__ == "__main__":
    main()
