"""Bronze: rows as they were read, each once, and which logs were read how far.

Key of an event is (log_id, seq), and a log only grows, so a log is read on from the last ``seq``
that was read.  Its other tables are small and are read anew when the log has changed; the run's
number, ``segment``, tells the newer.  What a run read is one segment for each table; it counts once
the manifest names it, together with how far each log is read, so that a run that was killed never
happened.  Rows that do not keep to the contract, and files that cannot be read, are in there too
and are what ``quarantine`` shows.  A run that finds nothing new writes nothing.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.delivery.contract import DELIVERY_EVENT, LOG_TABLES, STORE_MESSAGE, TABLES, Table
from pipeline import copying, manifest
from pipeline.lake import SEGMENT, Lake
from pipeline.manifest import Json
from pipeline.sources.delivery import FILES_PER_TASK, FORMAT, LOG_ROWS, log_row, register
from pipeline.sources.files import LOG, Piece, find_pieces, sliced

SLOTS: Final = 4
"""Into so many tasks few logs are divided; many are packed by their number and size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLog:
    """A file as ``LOG_ROWS`` tells of it."""

    file: str
    kind: str
    bytes: int
    changed: str
    log_id: str | None
    last_seq: int
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be read: of logs that grew their new events, and all of their other tables."""

    events: Sequence[Piece]
    others: Sequence[Piece]
    copies: Sequence[str]
    """Files that hold no more than another one of the same log."""
    logs: Mapping[str, Json]
    files: Mapping[str, Json]

    @property
    def is_empty(self) -> bool:
        return not self.events and not self.others


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    files: int
    rows: Mapping[str, int] = field(default_factory=dict)
    copies: Sequence[str] = ()

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def ingest(spark: SparkSession, places: Sequence[Path], lake: Lake) -> Ingested:
    """Read whatever is new.  Raises LakeError."""
    with manifest.only_writer(lake.root):
        state = lake.bronze_state()
        found = _found(spark, places)
        plan = planned(found, state)
        if plan.is_empty:
            return Ingested(files=len(found), copies=plan.copies)
        return _read_new(spark, lake, plan, state, len(found))


def _found(spark: SparkSession, places: Sequence[Path]) -> list[FoundLog]:
    """One row for each file: that much a driver must know.  A few it looks at by itself."""
    absolute = [place.absolute() for place in places]
    pieces = find_pieces(absolute)
    rows: Iterable[Mapping[str, Any]]
    if len(pieces) <= FILES_PER_TASK:
        rows = map(log_row, pieces)
    else:
        register(spark)
        reader = spark.read.format(FORMAT).option("table", LOG_ROWS).option("slots", str(SLOTS))
        paths = json.dumps(list(map(str, absolute)))
        rows = (row.asDict() for row in reader.option("paths", paths).load().collect())
    return [
        FoundLog(
            file=row["file"],
            kind=row["kind"],
            bytes=row["bytes"],
            changed=row["changed"],
            log_id=row["log_id"],
            last_seq=row["last_seq"] or 0,
            problem=row["problem"],
        )
        for row in rows
    ]


def planned(found: Sequence[FoundLog], state: Mapping[str, Json]) -> Plan:
    """Pure: what of that is new, given what was read before."""
    plan = _Planning(state)
    for log in sorted(found, key=lambda log: (-log.last_seq, log.file)):
        if log.kind == LOG and log.log_id is not None:
            plan.add_log(log, log.log_id)
        else:
            plan.add_file(log)
    return Plan(
        events=plan.events, others=plan.others, copies=plan.copies, logs=plan.logs, files=plan.files
    )


class _Planning:
    def __init__(self, state: Mapping[str, Json]) -> None:
        self.logs = dict(_mapping(state.get("logs")))
        self.files = dict(_mapping(state.get("files")))
        self.events: list[Piece] = []
        self.others: list[Piece] = []
        self.copies: list[str] = []
        self._taken: set[str] = set()

    def add_file(self, log: FoundLog) -> None:
        """An export, or a log that cannot be read."""
        now: Json = {"kind": log.kind, "changed": log.changed, "problem": log.problem}
        if self.files.get(log.file) == now:
            return
        self.files[log.file] = now
        piece = Piece(path=log.file, kind=log.kind, bytes=log.bytes)
        self.events.append(piece)
        if log.kind != LOG:
            self.others.append(piece)

    def add_log(self, log: FoundLog, log_id: str) -> None:
        self.files.pop(log.file, None)
        if log_id in self._taken:
            self.copies.append(log.file)
            return
        self._taken.add(log_id)
        before = _mapping(self.logs.get(log_id))
        read = before.get("last_seq")
        after = read if isinstance(read, int) else 0
        grown = Piece(path=log.file, kind=LOG, bytes=log.bytes, after_seq=after)
        self.events += sliced(grown, log.last_seq)
        if log.last_seq > after or before.get("changed") != log.changed:
            self.others.append(Piece(path=log.file, kind=LOG, bytes=log.bytes))
            last = max(after, log.last_seq)
            self.logs[log_id] = {"file": log.file, "last_seq": last, "changed": log.changed}


def _read_new(
    spark: SparkSession, lake: Lake, plan: Plan, state: Mapping[str, Json], files: int
) -> Ingested:
    newest = state.get("newest")
    number = newest + 1 if isinstance(newest, int) else 1
    before = _mapping(state.get("segments"))
    segments = {name: list(value) for name, value in before.items() if isinstance(value, list)}
    wanted = {table: _pieces_for(plan, table) for table in TABLES}
    wanted = {table: pieces for table, pieces in wanted.items() if pieces}
    places = {table: lake.bronze_place / table.name / f"{SEGMENT}={number}" for table in wanted}
    unfinished = {table: manifest.unfinished(place) for table, place in places.items()}
    rows: dict[str, int] = {}
    for table, count in copying.copy(spark, wanted, unfinished, SLOTS).items():
        if count:
            manifest.finish(places[table])
            segments.setdefault(table.name, []).append(places[table].name)
            rows[table.name] = count
    manifest.write_manifest(
        lake.bronze_place,
        {"newest": number, "segments": segments, "logs": plan.logs, "files": plan.files},
    )
    for table in TABLES:
        manifest.remove_but(
            lake.bronze_place / table.name, {str(name) for name in segments.get(table.name, [])}
        )
    return Ingested(files=files, rows=rows, copies=plan.copies)


def _pieces_for(plan: Plan, table: Table) -> list[Piece]:
    if table is DELIVERY_EVENT:
        return list(plan.events)
    is_of_logs = table in LOG_TABLES and table is not STORE_MESSAGE
    return [piece for piece in plan.others if is_of_logs or piece.kind != LOG]


def quarantine(bronze: Mapping[str, DataFrame]) -> DataFrame:
    """Whatever was read and does not count, and why: table, file, reason, log_id, seq, rows."""
    parts = [
        rows.where(F.col("problem").isNotNull())
        .groupBy(
            F.lit(name).alias("table"),
            "file",
            F.col("problem").alias("reason"),
            (F.col("log_id") if "log_id" in rows.columns else F.lit(None).cast("string")).alias(
                "log_id"
            ),
        )
        .agg(
            (F.min("seq") if "seq" in rows.columns else F.lit(None).cast("bigint")).alias("seq"),
            F.count(F.lit(1)).alias("rows"),
        )
        for name, rows in bronze.items()
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
