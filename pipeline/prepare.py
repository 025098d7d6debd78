"""From files to silver tables: read what is new, and make silver anew if anything was.

The one place where stages are put in a row and written.  Stages themselves are pure functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_SNAPSHOT,
    MEMBERSHIP,
    MESSAGE,
    STORE_MESSAGE,
    TABLES,
)
from pipeline import bronze as bronze_stage
from pipeline import coverage, manifest, silver
from pipeline.clock import clocks
from pipeline.comparable import Comparable
from pipeline.lake import Lake
from pipeline.manifest import Json
from pipeline.sources.files import LOG

SHOWN: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """``is_new``: something was read and written.  ``refused``: the first of what was not."""

    files: int
    rows: Mapping[str, int]
    copies: Sequence[str]
    is_new: bool
    quarantined: int
    refused: Sequence[tuple[str, str, int]]
    """(file, reason, rows)."""


def prepare(spark: SparkSession, places: Sequence[Path], lake: Lake) -> Prepared:
    """Raises LakeError."""
    read = bronze_stage.ingest(spark, places, lake)
    state = lake.bronze_state()
    is_new = bool(state) and lake.silver_state().get("made_of") != state.get("newest")
    if is_new:
        with manifest.only_writer(lake.root):
            lake.swap_silver(lambda place: write_silver(spark, lake, place), state.get("newest"))
    if not lake.silver_state():
        return Prepared(
            files=read.files, rows={}, copies=(), is_new=False, quarantined=0, refused=()
        )
    refused = lake.silver(spark, "quarantine")
    worst = refused.orderBy("file", "reason").limit(SHOWN).collect()
    total = sum(row["rows"] for row in worst)
    if len(worst) == SHOWN:
        total = refused.groupBy().sum("rows").collect()[0][0]
    return Prepared(
        files=read.files,
        rows=read.rows,
        copies=read.copies,
        is_new=is_new,
        quarantined=total,
        refused=[(row["file"], row["reason"], row["rows"]) for row in worst],
    )


def write_silver(spark: SparkSession, lake: Lake, place: Path) -> Mapping[str, Json]:
    """All silver tables below ``place``; of each its schema is told.

    Readers know it then.  Spark would look into files for it, by a job for each table, and would
    find none where an empty table is kept in directories.
    """
    rows = {table: lake.bronze(spark, table) for table in TABLES}
    told: dict[str, Json] = {}

    def keep(name: str, table: DataFrame, *partitions: str) -> DataFrame:
        path = str(place / name)
        table.write.partitionBy(*partitions).parquet(path)
        told[name] = table.schema.jsonValue()
        return spark.read.schema(table.schema).parquet(path)

    may_repeat = _has_repeats(lake)
    told_event = silver.events(rows[DELIVERY_EVENT], may_repeat=may_repeat)
    log = keep("log", coverage.logs(told_event).coalesce(1))
    told_order = silver.snapshots(rows[LOG_SNAPSHOT], may_repeat=may_repeat)
    told_twice = rows[DELIVERY_EVENT] if may_repeat else None
    gate = Comparable(log, told_event, told_order, told_twice=told_twice)
    event = keep("event", gate.only(told_event).drop("file"), "day", "hash_bucket")
    entry = keep("entry", gate.entries(event))
    message = gate.only(rows[MESSAGE])
    clock = keep("clock", clocks(spark, event, message))
    stay = keep("stay", coverage.stays(gate.only(rows[MEMBERSHIP]), clock).coalesce(1))
    seen = gate.observed(rows, clock).persist()
    placed = keep("message", silver.messages(entry, message, seen, stay, clock))
    keep("conflict", silver.conflicts(entry, message).coalesce(1))
    late = coverage.sent_after_the_end(placed, entry, seen, stay)
    cover = keep("coverage", gate.coverage(seen, stay, late).coalesce(1))
    keep("member", silver.members(cover, stay).coalesce(1))
    keep("store_message", silver.store_messages(rows[STORE_MESSAGE]))
    refused = bronze_stage.quarantine({table.name: found for table, found in rows.items()})
    keep("quarantine", refused.unionByName(gate.quarantine()).coalesce(1))
    seen.unpersist()
    gate.release()
    return told


def _has_repeats(lake: Lake) -> bool:
    """Whether rows may have come by two ways."""
    files = lake.bronze_state().get("files")
    kinds = files.values() if isinstance(files, Mapping) else ()
    return any(isinstance(file, Mapping) and file.get("kind") != LOG for file in kinds)
