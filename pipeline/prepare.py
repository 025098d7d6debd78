"""From files to silver tables: read what is new, and make anew what that touches.

The one place where stages are put in a row and written; they themselves are pure functions.
Participants and channels hang together by who has a log of what and who belongs where.  Whatever
silver says of one depends on those that it hangs together with, and on no others but for the key
that most recorded under.  So a run makes anew what hangs together with something that it has read,
by the same functions that make everything when nothing is there yet.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final, TypeAlias

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
from pipeline.comparable import Comparable, main_key
from pipeline.lake import SEGMENT, Lake, Run
from pipeline.sources.files import LOG
from pipeline.tables import RUN, Json, Part

SHOWN: Final = 20
MOST_TOUCHED: Final = 500
"""Of more keys everything is made anew: that is one pass, and these would be half of it."""
MOST_LINKS: Final = 200_000
_LINKS: Final = ("file", "log_id", "participant", "channel")
_Node: TypeAlias = tuple[str, str]
"""One of ``_LINKS``, and which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """``is_new``: something was read and written.  ``refused``: the first of what was not."""

    files: int
    rows: Mapping[str, int]
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
            touched = _touched(run, made_of) if isinstance(made_of, int) else None
            key = write_silver(spark, run, touched)
            if touched is not None and key != _mapping(run.facts.get("silver")).get("key"):
                write_silver(spark, run, None)
            run.commit(silver={"made_of": newest, "key": key})
        if not run.has("silver/quarantine"):
            return Prepared(files=read.files, rows={}, is_new=False, quarantined=0, refused=())
        refused = run.table("silver/quarantine")
        worst = refused.orderBy("file", "reason").limit(SHOWN).collect()
        total = sum(row["rows"] for row in worst)
        if len(worst) == SHOWN:
            total = refused.groupBy().sum("rows").collect()[0][0]
    return Prepared(
        files=read.files,
        rows=read.rows,
        is_new=is_new,
        quarantined=total,
        refused=[(row["file"], row["reason"], row["rows"]) for row in worst],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """What hangs together with something new; ``stores``: whether any of Stores was read."""

    file: Sequence[str]
    log_id: Sequence[str]
    participant: Sequence[str]
    channel: Sequence[str]
    stores: bool


def _touched(run: Run, made_of: int) -> Touched | None:
    """By what was read after that segment.  None: everything, or too much to be told by keys."""
    is_new = (F.col(SEGMENT) > made_of).alias("is_new")
    rows = {table: run.bronze(table) for table in TABLES}
    links = [rows[table].select(*_LINKS, is_new) for table in TABLES if table is not STORE_MESSAGE]
    belonging = rows[MEMBERSHIP].withColumn("participant", F.col("member"))
    links += [
        belonging.select(*_LINKS, is_new),
        rows[STORE_MESSAGE].select(
            "file", *(F.lit(None).cast("string").alias(name) for name in _LINKS[1:]), is_new
        ),
    ]
    whole = reduce(DataFrame.union, links).groupBy(*_LINKS).agg(F.max("is_new").alias("is_new"))
    found = whole.limit(MOST_LINKS + 1).collect()
    if len(found) > MOST_LINKS:
        return None
    together = _hanging_together(
        (row["is_new"], [(name, row[name]) for name in _LINKS if row[name] is not None])
        for row in found
    )
    keys = {name: sorted(value for kind, value in together if kind == name) for name in _LINKS}
    if any(len(values) > MOST_TOUCHED for values in keys.values()):
        return None
    stores = rows[STORE_MESSAGE].where(is_new).limit(1).collect()
    return Touched(**keys, stores=bool(stores))


def _hanging_together(links: Iterable[tuple[bool, Sequence[_Node]]]) -> set[_Node]:
    """Everything that is linked, over however many others, with a node of a new link."""
    neighbours: dict[_Node, set[_Node]] = {}
    waiting: list[_Node] = []
    for is_new, nodes in links:
        for node in nodes:
            neighbours.setdefault(node, set()).update(nodes)
        waiting += nodes if is_new else ()
    reached = set(waiting)
    while waiting:
        more = neighbours[waiting.pop()] - reached
        reached |= more
        waiting += more
    return reached


def write_silver(spark: SparkSession, run: Run, touched: Touched | None) -> str | None:
    """All tables, or of each what was touched; under which key most have recorded."""

    def of(table: DataFrame, by: str) -> DataFrame:
        return table if touched is None else table.where(F.col(by).isin(_keys(touched, by)))

    def keep(name: str, table: DataFrame, by: str) -> DataFrame:
        part = None if touched is None else Part(by=by, keys=_keys(touched, by))
        run.replace(f"silver/{name}", table, part)
        return of(run.table(f"silver/{name}").drop(RUN), by)

    rows = {table: of(run.bronze(table), "file") for table in TABLES}
    may_repeat = _has_repeats(run)
    told_event = silver.events(rows[DELIVERY_EVENT], may_repeat=may_repeat)
    log = keep("log", coverage.logs(told_event).coalesce(1), "log_id")
    told_order = silver.snapshots(rows[LOG_SNAPSHOT], may_repeat=may_repeat)
    told_twice = rows[DELIVERY_EVENT] if may_repeat else None
    key = main_key(run.table("silver/log"))
    gate = Comparable(log, told_event, told_order, told_twice=told_twice, key=key)
    event = keep("event", gate.only(told_event).drop("file"), "log_id")
    entry = keep("entry", gate.entries(event), "channel")
    message = gate.only(_as_last_read(rows[MESSAGE]))
    clock = keep("clock", clocks(spark, event, message), "participant")
    membership = gate.only(_as_last_read(rows[MEMBERSHIP]))
    stay = keep("stay", coverage.stays(membership, clock).coalesce(1), "channel")
    seen = gate.observed(rows, clock).persist()
    placed = keep("message", silver.messages(entry, message, seen, stay, clock), "channel")
    keep("conflict", silver.conflicts(entry, message).coalesce(1), "channel")
    late = coverage.sent_after_the_end(placed, entry, seen, stay)
    cover = keep("coverage", gate.coverage(seen, stay, late).coalesce(1), "channel")
    keep("member", silver.members(cover, stay).coalesce(1), "channel")
    if touched is None or touched.stores:
        run.replace("silver/store_message", silver.store_messages(run.bronze(STORE_MESSAGE)))
    refused = bronze_stage.quarantine({table.name: found for table, found in rows.items()})
    keep("quarantine", refused.unionByName(gate.quarantine()).coalesce(1), "file")
    seen.unpersist()
    gate.release()
    return key


def _keys(touched: Touched, by: str) -> list[str]:
    return list(getattr(touched, by))


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
