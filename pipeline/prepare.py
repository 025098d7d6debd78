"""From files to silver tables: read what is new, and make anew what that touches.

The one place where stages are put in a row and written; they themselves are pure functions.
Events, final logs and what was observed depend on the logs of one participant and on no others, but
for the key that most recorded under: those of who has a new log are made anew.  Clocks, messages,
stays and coverage depend on all who hang together by channels, who has a log of what and who
belongs where: a new log has its say on every message in them, so they are made anew for these, from
what the others' logs were made into before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    Table,
)
from pipeline import bronze as bronze_stage
from pipeline import coverage, silver
from pipeline.audit.cells import MOST_BROADCAST
from pipeline.beside import Answer, Beside, beside
from pipeline.clock import clocks
from pipeline.comparable import Comparable, events_once, main_key, snapshots_once, taking_part
from pipeline.lake import SEGMENT, Lake, Run
from pipeline.persisted import if_any, persisted
from pipeline.tables import RUN, Json, Part

SHOWN: Final = 20
MOST_TOUCHED: Final = 500
"""Of more keys everything is made anew: that is one pass, and these would be half of it."""
MOST_LINKS: Final = 200_000
_KINDS: Final = ("file", "log_id", "participant", "channel")
_NODES: Final = {
    **{name: name for name in _KINDS},
    "previous_log_id": "log_id",
    "member": "participant",
}
_LINKS: Final = tuple(_NODES)
_Node: TypeAlias = tuple[str, str]
"""One of ``_KINDS``, and which."""
_Link: TypeAlias = tuple[Mapping[str, str | None], bool]
"""Values of some of ``_LINKS``, and whether that was read since."""
_LINKED: Final = (
    (DELIVERY_EVENT, ["file", "log_id", "participant", "channel", "previous_log_id"]),
    *((one, ["file", "log_id", "participant", "channel"]) for one in (LOG_SNAPSHOT, MESSAGE)),
    (MEMBERSHIP, ["file", "log_id", "participant", "channel"]),
    (MEMBERSHIP, ["channel", "member"]),
    (STORE_MESSAGE, ["file"]),
)
"""Whatever stands in one row belongs together; a member, only with the channel."""
_OWN: Final = ("log", "event", "entry", "odd", "seen", "quarantine")
"""Tables that are made of the logs of single participants."""


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
class Keys:
    """Whose rows of a table are made anew."""

    file: Sequence[str]
    log_id: Sequence[str]
    participant: Sequence[str]
    channel: Sequence[str]

    @property
    def are_few(self) -> bool:
        return all(len(getattr(self, name)) <= MOST_TOUCHED for name in _KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """By what was read.  ``stores``: whether any of that is of Stores."""

    own: Keys
    """Logs that something was read of, and others of their files and owners."""
    together: Keys | None
    """What hangs together with these by channels; None: so much that it is made as a whole."""
    stores: bool


def _touched(run: Run, made_of: int) -> Touched | None:
    """By what was read after that segment.  None: everything, or too much to be told by keys."""
    if not all(run.has(f"silver/{name}") for name in _OWN):
        return None  # Another release has made it.
    links = _links(run, made_of)
    if len(links) > MOST_LINKS:
        return None
    own = _hanging_together(links, ("file", "log_id", "previous_log_id", "participant"))
    together = _hanging_together(links, _LINKS)
    if not own.are_few:
        return None
    return Touched(
        own=own,
        together=together if together.are_few else None,
        stores=run.has(f"bronze/{STORE_MESSAGE.name}") and _has_new(run, STORE_MESSAGE, made_of),
    )


def _has_new(run: Run, table: Table, made_of: int) -> bool:
    return not run.bronze(table).where(F.col(SEGMENT) > made_of).isEmpty()


def _links(run: Run, made_of: int) -> list[_Link]:
    """What stands in one row, each once; not many more than ``MOST_LINKS``."""
    found: list[_Link] = []
    for table, names in _LINKED:
        name = f"bronze/{table.name}"
        if not run.has(name):
            continue
        few = run.few_rows(name, [*names, SEGMENT])
        if few is not None:
            rows = few.group_by(names).aggregate([(SEGMENT, "max")]).to_pylist()
        else:
            known = run.bronze(table)
            absent = (n for n in names if n not in known.columns)
            known = known.withColumns({n: F.lit(None).cast("string") for n in absent})
            newest = known.groupBy(*names).agg(F.max(SEGMENT).alias(f"{SEGMENT}_max"))
            rows = [row.asDict() for row in newest.limit(MOST_LINKS + 1).collect()]
        found += [
            (
                {name: row[name] for name in names},
                "file" in names and row[f"{SEGMENT}_max"] > made_of,
            )
            for row in rows
        ]
    return found


def _hanging_together(links: Iterable[_Link], by: Sequence[str]) -> Keys:
    """Everything that is linked, over however many others, with what is new."""
    neighbours: dict[_Node, set[_Node]] = {}
    waiting: list[_Node] = []
    for link, is_new in links:
        nodes = [(_NODES[name], value) for name in by if (value := link.get(name)) is not None]
        for node in nodes:
            neighbours.setdefault(node, set()).update(nodes)
        waiting += nodes if is_new else ()
    reached = set(waiting)
    while waiting:
        more = neighbours[waiting.pop()] - reached
        reached |= more
        waiting += more
    return Keys(
        **{name: sorted(value for kind, value in reached if kind == name) for name in _KINDS}
    )


def write_silver(spark: SparkSession, run: Run, touched: Touched | None) -> str | None:
    """All tables, or of each what was touched; under which key most have recorded."""
    with beside(spark) as ask:
        own = touched.own if touched is not None else None
        key = _write_own(ask, run, own)
        together = touched.together if touched is not None else None
        _write_together(ask, run, together, key)
    if touched is None or touched.stores:
        run.replace("silver/store_message", silver.store_messages(run.bronze(STORE_MESSAGE)))
    return key


def _write_own(ask: Beside, run: Run, keys: Keys | None) -> str | None:
    """What depends on the logs of one participant alone."""
    rows = {table: _among(run.bronze(table), "file", keys) for table in TABLES}
    events, shots = silver.events(rows[DELIVERY_EVENT]), silver.good(rows[LOG_SNAPSHOT])
    told, shot = events_once(events, ask), snapshots_once(shots, ask)
    log = _keep(run, "log", ask.ask(coverage.logs, told.summed), "log_id", keys)
    key = main_key(log if keys is None else run.table("silver/log"), ask)
    gate = Comparable(log, told, shot, key, ask)
    _keep(run, "odd", gate.odd, "participant", keys)
    of_events, of_shots = (f"bronze/{table.name}" for table in (DELIVERY_EVENT, LOG_SNAPSHOT))
    ours = gate.only(told.rows).drop("file")
    event = _keep_or_share(run, of_events, gate.events(), "event", ours, "log_id", keys)
    entry, as_read = gate.entries(event)
    _keep_or_share(run, of_shots, as_read, "entry", entry, "participant", keys)
    refused = bronze_stage.quarantine({table.name: found for table, found in rows.items()})
    _keep(run, "seen", gate.seen(rows), "participant", keys)
    _keep(run, "quarantine", gate.quarantine(refused), "file", keys)
    return key


def _write_together(ask: Beside, run: Run, keys: Keys | None, key: str | None) -> None:
    """What depends on everybody in a channel, or who was there in another with one of them."""

    def there(name: str, by: str) -> DataFrame:
        return _among(run.table(f"silver/{name}").drop(RUN), by, keys)

    def told(table: Table) -> DataFrame:
        rows = _among(run.bronze(table), "file", keys)
        if not is_first:
            rows = _as_last_read(rows)
        return taking_part(rows, key, None if odd.is_empty else odd.frame)

    is_first = _mapping(run.facts.get("bronze")).get("newest") == 1
    odd, entry = ask.fetched(there("odd", "participant")), there("entry", "channel")
    message = told(MESSAGE)
    off = ask.given(clocks(there("event", "log_id"), message))
    clock = _keep(run, "clock", off, "participant", keys)
    stay = _keep(run, "stay", ask.ask(coverage.stays, told(MEMBERSHIP), clock), "channel", keys)
    seen = ask.ask(coverage.corrected, there("seen", "participant"), clock)
    told_of = persisted(silver.told_of(entry, message))
    several = ask.fetched(told_of.where("NOT is_plain").select("mid"))
    alike = ask.fetched(silver.told_alike(ask.only(message, several, ["mid"])))
    holding = ask.fetched(ask.only(entry, several, ["mid"]))
    others = ask.ask(silver.known_messages, holding, alike, clock)
    by_others = ask.ask(
        silver.vouched_by_others, ask.ask(silver.told_of_by_others, others), holding, seen, stay
    )
    various = ask.ask(silver.told_variously, others)
    is_plain = told_of.where("is_plain")
    if is_plain.count() <= MOST_BROADCAST:
        is_plain = F.broadcast(is_plain)
    plain = silver.plain_messages(message, is_plain, clock.frame)
    vouched = silver.vouched(plain.unionByName(others.frame), by_others.frame)
    placed = silver.messages(vouched, various.frame)
    run.replace("silver/message", placed, _part("channel", keys))
    told_of.unpersist()
    placed = there("message", "channel")
    wrong = ask.fetched(silver.wrong_mids(placed))
    misnamed = ask.fetched(silver.told_alike(ask.only(message, wrong, ["channel", "message_id"])))
    both = ask.ask(DataFrame.union, alike, misnamed)
    differing = ask.ask(silver.differing, both)
    conflict = silver.conflicts(entry, message, differing.frame, wrong.frame)
    _keep(run, "conflict", ask.fetched(conflict), "channel", keys)
    late = coverage.sent_after_the_end(placed, entry, seen.frame, stay.frame)
    log = there("log", "log_id").where(F.col("key_id") == F.lit(key))
    covered = ask.ask(coverage.coverage, seen, stay, odd, log, late)
    cover = _keep(run, "coverage", covered, "channel", keys)
    _keep(run, "member", ask.ask(silver.members, cover, stay), "channel", keys)


def _keep(run: Run, name: str, made: Answer, by: str, keys: Keys | None) -> Answer:
    """Written; a table of few rows."""
    run.replace(f"silver/{name}", made, _part(by, keys))
    return made


def _part(by: str, keys: Keys | None) -> Part | None:
    return None if keys is None else Part(by=by, keys=getattr(keys, by))


def _keep_or_share(  # noqa: PLR0913, PLR0917 -- as ``_keep``, and what it may be a part of
    run: Run, of: str, count: int, name: str, table: DataFrame, by: str, keys: Keys | None
) -> DataFrame:
    """Not written again, if all that was read is in it: so many rows of ``of``."""
    if keys is not None or not run.replace_by_all_of(of, count, f"silver/{name}", table):
        run.replace(f"silver/{name}", table, _part(by, keys))
    return _among(run.table(f"silver/{name}").drop(RUN), by, keys)


def _among(table: DataFrame, by: str, keys: Keys | None) -> DataFrame:
    return table if keys is None else table.where(F.col(by).isin(list(getattr(keys, by))))


def _as_last_read(table: DataFrame) -> DataFrame:
    """Of a file that was read again, because its log has grown, what it says now."""
    read = table.select("log_id", "file", SEGMENT).distinct()
    newest = read.groupBy("log_id", "file").agg(F.max(SEGMENT).alias(SEGMENT))
    older = if_any(read.join(newest, ["log_id", "file", SEGMENT], "left_anti"))
    return table.join(F.broadcast(older), ["log_id", "file", SEGMENT], "left_anti")


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
