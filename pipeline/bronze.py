"""Bronze: rows as they were read, each once, and which logs were read how far.

Key of an event is (log_id, seq), and a log only grows, so a log is read on from the last ``seq``
that was read.  Its other tables are small and are read anew when the log has changed; the number
of the reading, ``segment``, tells the newer.  What a run read counts once it is committed, together
with how far each log is read, so that a run that was killed never happened.  Rows that do not keep
to the contract, and files that cannot be read, are in there too and are what ``quarantine`` shows.
A run that finds nothing new writes nothing.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.delivery.contract import DELIVERY_EVENT, LOG_TABLES, STORE_MESSAGE, TABLES, Table
from pipeline import copying
from pipeline.lake import SEGMENT, Lake, Run
from pipeline.session import is_here
from pipeline.sources.delivery import (
    FORMAT,
    LOG_ROWS,
    log_row,
    register,
    source_schema,
)
from pipeline.sources.files import LOG, Piece, find_pieces, sliced
from pipeline.tables import Json

SLOTS: Final = 4
"""Into so many tasks few logs are divided; many are packed by their number and size."""
LOOKED_AT_HERE: Final = 1_000
"""So many files: each takes a millisecond, and to start Python's workers takes seconds."""


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
    logs: Mapping[str, Json]
    files: Mapping[str, Json]

    @property
    def is_empty(self) -> bool:
        return not self.events and not self.others


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    files: int
    rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def ingest(spark: SparkSession, places: Sequence[Path], lake: Lake) -> Ingested:
    """Read whatever is new, as a run of its own.  Raises LakeError."""
    with lake.run(spark) as run:
        return ingest_into(spark, places, run)


def ingest_into(spark: SparkSession, places: Sequence[Path], run: Run) -> Ingested:
    """Read whatever is new; it counts from then on, whatever else the run does."""
    state = _mapping(run.facts.get("bronze"))
    found = _found(spark, places)
    plan = planned(found, state)
    if plan.is_empty:
        return Ingested(files=len(found))
    return _read_new(spark, run, plan, state, len(found))


def _found(spark: SparkSession, places: Sequence[Path]) -> list[FoundLog]:
    """One row for each file: that much a driver must know.  A few it looks at by itself."""
    absolute = [place.absolute() for place in places]
    pieces = find_pieces(absolute)
    rows: Iterable[Mapping[str, Any]]
    if len(pieces) <= LOOKED_AT_HERE or is_here(spark):
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
    return Plan(events=plan.events, others=plan.others, logs=plan.logs, files=plan.files)


class _Planning:
    def __init__(self, state: Mapping[str, Json]) -> None:
        self.logs = dict(_mapping(state.get("logs")))
        self.files = dict(_mapping(state.get("files")))
        self.events: list[Piece] = []
        self.others: list[Piece] = []
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
            return  # It holds no more than another file of the same log.
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
    spark: SparkSession, run: Run, plan: Plan, state: Mapping[str, Json], files: int
) -> Ingested:
    newest = state.get("newest")
    number = newest + 1 if isinstance(newest, int) else 1
    wanted = {table: _pieces_for(plan, table) for table in TABLES}
    wanted = {table: pieces for table, pieces in wanted.items() if pieces}
    write = _through_spark if run.directory is None else _as_files
    rows = write(spark, run, wanted, number)
    run.commit(bronze={"newest": number, "logs": plan.logs, "files": plan.files})
    return Ingested(files=files, rows=rows)


def _as_files(
    spark: SparkSession, run: Run, wanted: Mapping[Table, Sequence[Piece]], number: int
) -> dict[str, int]:
    """Tasks write Parquet as they read: rows never pass through Java."""
    assert run.directory is not None  # noqa: S101 - the caller has asked
    part = f"{SEGMENT}={number}"
    places = {table: run.directory.place(f"bronze/{table.name}", part) for table in wanted}
    for place in places.values():
        shutil.rmtree(place, ignore_errors=True)  # Of a run that was killed.
    rows: dict[str, int] = {}
    for table, count in copying.copy(spark, wanted, places, SLOTS).items():
        if count:
            schema = source_schema(table).add(SEGMENT, "integer")
            run.adopt(f"bronze/{table.name}", part, schema, count)
            rows[table.name] = count
    return rows


def _through_spark(
    spark: SparkSession, run: Run, wanted: Mapping[Table, Sequence[Piece]], number: int
) -> dict[str, int]:
    """Into tables anywhere: workers need see nothing but the logs."""
    register(spark)
    rows: dict[str, int] = {}
    for table, pieces in wanted.items():
        chosen = json.dumps([piece.as_json() for piece in pieces])
        reader = spark.read.format(FORMAT).option("table", table.name).option("slots", str(SLOTS))
        found = reader.option("pieces", chosen).load().withColumn(SEGMENT, F.lit(number))
        if count := run.add(f"bronze/{table.name}", found):
            rows[table.name] = count
    return rows


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
