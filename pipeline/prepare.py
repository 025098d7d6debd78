"""From files to silver tables: read what is new, and make silver anew if anything was.

The one place where stages are put in a row and written.  Stages themselves are pure functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_SNAPSHOT,
    MEMBERSHIP,
    MESSAGE,
    STORE_MESSAGE,
    TABLES,
)
from pipeline import bronze as bronze_stage
from pipeline import coverage, silver
from pipeline.clock import clocks
from pipeline.comparable import Comparable
from pipeline.lake import SEGMENT, Lake, Run
from pipeline.sources.files import LOG
from pipeline.tables import RUN, Json

SHOWN: Final = 20


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
    with lake.run(spark) as run:
        read = bronze_stage.ingest_into(spark, places, run)
        newest = _mapping(run.facts.get("bronze")).get("newest")
        made_of = _mapping(run.facts.get("silver")).get("made_of")
        is_new = isinstance(newest, int) and newest != made_of
        if is_new:
            write_silver(spark, run)
            run.commit(silver={"made_of": newest})
        if not run.has("silver/quarantine"):
            return Prepared(
                files=read.files, rows={}, copies=(), is_new=False, quarantined=0, refused=()
            )
        refused = run.table("silver/quarantine")
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


def write_silver(spark: SparkSession, run: Run) -> None:
    """All silver tables, of all that was ever read."""
    rows = {table: run.bronze(table) for table in TABLES}

    def keep(name: str, table: DataFrame) -> DataFrame:
        run.replace(f"silver/{name}", table)
        return run.table(f"silver/{name}").drop(RUN)

    may_repeat = _has_repeats(run)
    told_event = silver.events(rows[DELIVERY_EVENT], may_repeat=may_repeat)
    log = keep("log", coverage.logs(told_event).coalesce(1))
    told_order = silver.snapshots(rows[LOG_SNAPSHOT], may_repeat=may_repeat)
    told_twice = rows[DELIVERY_EVENT] if may_repeat else None
    gate = Comparable(log, told_event, told_order, told_twice=told_twice)
    event = keep("event", gate.only(told_event).drop("file"))
    entry = keep("entry", gate.entries(event))
    message = gate.only(_as_last_read(rows[MESSAGE]))
    clock = keep("clock", clocks(spark, event, message))
    membership = gate.only(_as_last_read(rows[MEMBERSHIP]))
    stay = keep("stay", coverage.stays(membership, clock).coalesce(1))
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


def _as_last_read(table: DataFrame) -> DataFrame:
    """Of a file that was read again, because its log has grown, what it says now."""
    newest = table.groupBy("log_id", "file").agg(F.max(SEGMENT).alias(SEGMENT))
    return table.join(F.broadcast(newest), ["log_id", "file", SEGMENT], "left_semi")


def _has_repeats(run: Run) -> bool:
    """Whether rows may have come by two ways."""
    files = _mapping(run.facts.get("bronze")).get("files")
    return any(_mapping(file).get("kind") != LOG for file in _mapping(files).values())


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
