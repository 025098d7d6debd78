"""What silver knows of a few witnesses: fetched in a handful of queries, whatever the input holds.

Of each log that differs the first witnesses are taken, and of each of these the message, who holds
it, what the log itself recorded of its id, and what its owner's device did when the message was
written.  ``pipeline.witness`` has the types and makes sentences of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from engine.delivery.contract import Kind
from pipeline.coverage import HOLE, REFUSED
from pipeline.summary import IDENTICAL, Tried, Verdict
from pipeline.summary import MOST_LOGS as MOST_JUDGED
from pipeline.witness import AGREEING, COUNTED, MOST_HOLDERS, Device, Step, Story, Witness

Row: TypeAlias = Mapping[str, object]
Key: TypeAlias = tuple[str, str, int]
"""Channel, participant, ``mid``."""

FEW: Final = 3
"""Witnesses of each log that are explained."""
MOST_LOGS: Final = 20
_MOST_STEPS: Final = 24
_MOST_ROWS: Final = 4_000
"""A crafted log may tell any number of reasons for one id."""
_TOLD: Final = (
    Kind.SENT,
    Kind.RECEIVED,
    Kind.DELIVERED,
    Kind.MISSING,
    Kind.LOST,
    Kind.REPAIR_REQUESTED,
    Kind.STORE_HIT,
    Kind.REJECTED,
    Kind.FAULT,
    Kind.SNAPSHOT,
)
_PRESENCE: Final = (Kind.ONLINE, Kind.OFFLINE, Kind.STARTED, Kind.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The silver tables that witnesses are explained from."""

    coverage: DataFrame
    event: DataFrame
    entry: DataFrame
    message: DataFrame


# --- verdicts -------------------------------------------------------------------------------------


def counted(verdicts: DataFrame) -> dict[str, int]:
    """Logs by verdict."""
    return {row[0]: row[1] for row in verdicts.groupBy("verdict").count().collect()}


def judged(verdicts: DataFrame, most: int = MOST_JUDGED) -> list[Verdict]:
    """Those that differ first, then those that cannot be judged."""
    known = [name for name in Verdict.__dataclass_fields__ if name in verdicts.columns]
    order = F.when(~F.col("verdict").isin(*AGREEING), 0).when(F.col("verdict") != IDENTICAL, 1)
    rows = (
        verdicts.orderBy(F.coalesce(order, F.lit(2)), "channel", "participant")
        .select(*known)
        .limit(most)
        .collect()
    )
    return [
        Verdict(**{name: value for name, value in row.asDict().items() if value is not None})
        for row in rows
    ]


def covered(coverage: DataFrame, most: int = MOST_JUDGED) -> list[Row]:
    """What was observed of whom; what limits it comes first, then members without a log."""
    order = (F.size("problems") == 0, "has_log", "channel", "participant")
    return [row.asDict() for row in coverage.orderBy(*order).limit(most).collect()]


def tried(event: DataFrame, most: int = MOST_JUDGED) -> list[Tried]:
    """What was done to the network on purpose, by whom; recorded since contract 2."""
    rows = (
        event.where(F.col("kind") == Kind.FAULT.value)
        .groupBy("participant", F.coalesce("detail", F.lit("")).alias("detail"))
        .agg(
            F.count(F.lit(1)).alias("times"),
            F.min("at_ms").alias("first_ms"),
            F.max("at_ms").alias("last_ms"),
        )
        .orderBy("participant", "first_ms", "detail")
        .limit(most)
        .collect()
    )
    return [Tried(**row.asDict()) for row in rows]


# --- what differs ---------------------------------------------------------------------------------


def differing(
    verdicts: DataFrame, witnesses: DataFrame, *, few: int = FEW, most_logs: int = MOST_LOGS
) -> tuple[Sequence[Row], Sequence[Row]]:
    """The worst logs, and the first witnesses of each; none if all agree."""
    logs = _worst(verdicts, most_logs)
    return logs, _first(witnesses, logs, few) if logs else []


def stories(evidence: Evidence, logs: Sequence[Row], rows: Sequence[Row]) -> list[Story]:
    """The logs, each with its witnesses (``rows``); both as ``differing`` has them."""
    if not logs:
        return []
    known = _Known.of(evidence, rows)
    explained: dict[tuple[str, str], list[Witness]] = {}
    for row in rows:
        one = known.explained(row)
        explained.setdefault((one.channel, one.participant), []).append(one)
    totals = {(str(row["channel"]), str(row["participant"])): _int(row["total"]) for row in rows}
    found = []
    for log in logs:
        key = str(log["channel"]), str(log["participant"])
        first = log.get("first_place")
        found.append(
            Story(
                channel=key[0],
                participant=key[1],
                verdict=str(log["verdict"]),
                counts={
                    name: _int(log[name]) for name in ("expected", "held", *COUNTED) if name in log
                },
                witnesses=tuple(explained.get(key, ())),
                total=totals.get(key, 0),
                first_place=first if isinstance(first, int) else None,
            )
        )
    return found


def _worst(verdicts: DataFrame, most: int) -> list[Row]:

    there = [name for name in COUNTED if name in verdicts.columns]
    wrong = sum((F.coalesce(name, F.lit(0)) for name in there), F.lit(0))
    differing = verdicts.where(~F.col("verdict").isin(*AGREEING))
    order = (F.desc(wrong), "channel", "participant")
    return [row.asDict() for row in differing.orderBy(*order).limit(most).collect()]


def _first(witnesses: DataFrame, logs: Sequence[Row], few: int) -> list[Row]:
    """The first of each log by place, and ``total``: how many it has."""
    whose = Window.partitionBy("channel", "participant")
    shown = {(log["channel"], log["participant"]) for log in logs}
    rows = (
        _among(witnesses, channel=(key[0] for key in shown), participant=(key[1] for key in shown))
        .withColumn("total", F.count(F.lit(1)).over(whose))
        .withColumn("_nth", F.row_number().over(whose.orderBy("place", "kind", "message_id")))
        .where(F.col("_nth") <= few)
        .orderBy("channel", "participant", "_nth")
        .drop("_nth")
        .collect()
    )
    return [row.asDict() for row in rows if (row["channel"], row["participant"]) in shown]


# --- what is known of it --------------------------------------------------------------------------


@dataclass
class _Known:
    """By channel and ``mid``, or by whose log and ``mid``."""

    messages: Mapping[tuple[str, int, str], Row]
    holders: Mapping[tuple[str, int], tuple[int, Sequence[str]]]
    logs: Mapping[str, frozenset[str]]
    steps: Mapping[Key, Sequence[Step]]
    snapshots: Mapping[tuple[str, str], int]
    lacking: frozenset[tuple[str, str]]
    """Whose logs of what lack rows."""
    devices: Mapping[tuple[str, int], Device] = field(default_factory=dict)

    @classmethod
    def of(cls, evidence: Evidence, rows: Sequence[Row]) -> "_Known":
        mids = {_int(row["mid"]) for row in rows}
        channels = {str(row["channel"]) for row in rows}
        people = {str(row["participant"]) for row in rows}
        steps, snapshots = _steps(evidence.event, channels, people, mids)
        known = cls(
            messages=_messages(evidence.message, channels, mids),
            holders=_holders(evidence.entry, channels, mids),
            logs=_logs(evidence.coverage, channels),
            steps=steps,
            snapshots=snapshots,
            lacking=_lacking(evidence.coverage, channels, people),
        )
        written = {
            (str(row["participant"]), sent_ms)
            for row in rows
            if (sent_ms := known.message(row).get("sent_ms")) is not None
        }
        known.devices = _devices(evidence.event, {(who, _int(ms)) for who, ms in written})
        return known

    def message(self, row: Row) -> Row:
        """Of variants under one id the one that is meant."""
        key = str(row["channel"]), _int(row["mid"])
        return self.messages.get((*key, str(row["message_id"])), {})

    def explained(self, row: Row) -> Witness:
        channel, participant, mid = str(row["channel"]), str(row["participant"]), _int(row["mid"])
        message = self.message(row)
        sender, sent_ms = str(message.get("sender") or ""), _maybe(message.get("sent_ms"))
        holding, holders = self.holders.get((channel, mid), (0, ()))
        logs = self.logs.get(channel, frozenset())
        return Witness(
            channel=channel,
            participant=participant,
            kind=str(row["kind"]),
            message_id=str(row["message_id"] or ""),
            mid=mid,
            place=_maybe(row.get("place")),
            position=_maybe(row.get("position")),
            expected_position=_maybe(row.get("expected_position")),
            lamport=_maybe(row.get("lamport")),
            parent_message_id=str(row.get("parent_message_id") or ""),
            sender=sender,
            sent_ms=sent_ms,
            is_canonical=message.get("position") is not None,
            sender_has_log=sender in logs,
            holders=holders,
            holding=holding,
            logs=len(logs | {participant}),
            steps=self.steps.get((channel, participant, mid), ()),
            snapshot_ms=self.snapshots.get((channel, participant)),
            device=replace(
                self.devices.get((participant, sent_ms or 0), Device()),
                tells_all=(channel, participant) not in self.lacking,
            ),
        )


def _messages(
    message: DataFrame, channels: Iterable[str], mids: Iterable[int]
) -> dict[tuple[str, int, str], Row]:
    columns = ("channel", "mid", "message_id", "sender", "sent_ms", "position")
    rows = _among(message, channel=channels, mid=mids).select(*columns).limit(_MOST_ROWS).collect()
    # The canonical one of several is the last and stays.
    ordered = sorted(rows, key=lambda row: row["position"] is not None)
    return {(row["channel"], row["mid"], row["message_id"]): row.asDict() for row in ordered}


def _holders(
    entry: DataFrame, channels: Iterable[str], mids: Iterable[int]
) -> dict[tuple[str, int], tuple[int, Sequence[str]]]:

    whose = F.array_sort(F.collect_set("participant"))
    rows = (
        _among(entry, channel=channels, mid=mids)
        .groupBy("channel", "mid")
        .agg(F.size(whose).alias("holding"), F.slice(whose, 1, MOST_HOLDERS).alias("holders"))
        .collect()
    )
    return {(row[0], row[1]): (row["holding"], tuple(row["holders"])) for row in rows}


def _logs(coverage: DataFrame, channels: Iterable[str]) -> dict[str, frozenset[str]]:
    rows = _among(coverage.where("has_log"), channel=channels).collect()
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["channel"], set()).add(row["participant"])
    return {channel: frozenset(names) for channel, names in found.items()}


def _lacking(
    coverage: DataFrame, channels: Iterable[str], people: Iterable[str]
) -> frozenset[tuple[str, str]]:
    is_lacking = F.arrays_overlap("problems", F.array(F.lit(HOLE), F.lit(REFUSED)))
    rows = _among(coverage.where(is_lacking), channel=channels, participant=people)
    return frozenset((row["channel"], row["participant"]) for row in rows.collect())


def _steps(
    event: DataFrame, channels: Iterable[str], people: Iterable[str], mids: Iterable[int]
) -> tuple[dict[Key, tuple[Step, ...]], dict[tuple[str, str], int]]:
    """What each log says of each id, in its own order; and when its last snapshot was taken."""
    is_snapshot = F.col("kind") == Kind.SNAPSHOT.value
    detail = F.when(F.col("kind").isin(Kind.FAULT.value, Kind.REJECTED.value), F.col("detail"))
    rows = (
        _among(event, channel=channels, participant=people, kind=(kind.value for kind in _TOLD))
        .where(F.col("mid").isin(*mids) | is_snapshot)
        .groupBy(
            "channel",
            "participant",
            F.when(~is_snapshot, F.col("mid")).alias("mid"),
            "kind",
            F.coalesce(detail, F.lit("")).alias("detail"),
        )
        .agg(
            F.min(F.struct("log_id", "seq")).alias("order"),
            F.min("at_ms").alias("first_ms"),
            F.max("at_ms").alias("last_ms"),
            F.count(F.lit(1)).alias("times"),
            F.min_by("via", "at_ms").alias("via"),
            F.min_by("peer", "at_ms").alias("peer"),
        )
        .orderBy("channel", "participant", "mid", "first_ms", "order")
        .limit(_MOST_ROWS)
        .collect()
    )
    steps: dict[Key, tuple[Step, ...]] = {}
    snapshots: dict[tuple[str, str], int] = {}
    for row in rows:
        whose = row["channel"], row["participant"]
        if row["mid"] is None:
            snapshots[whose] = row["last_ms"]
            continue
        step = Step(
            kind=row["kind"],
            first_ms=row["first_ms"],
            last_ms=row["last_ms"],
            times=row["times"],
            via=row["via"] or "",
            peer=row["peer"] or "",
            detail=row["detail"],
        )
        key = (*whose, row["mid"])
        steps[key] = (*steps.get(key, ()), step)[:_MOST_STEPS]
    return steps, snapshots


def _devices(event: DataFrame, written: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Device]:
    """By participant and time: whether anybody was reachable then."""
    asked = sorted(written)
    if not asked:
        return {}
    names = pa.schema([("participant", pa.string()), ("sent_ms", pa.int64())])
    when = event.sparkSession.createDataFrame(
        pa.table(list(map(list, zip(*asked, strict=True))), names)
    )
    kinds = [kind.value for kind in (*_PRESENCE, Kind.GAP, Kind.FAULT)]
    was = F.col("kind").isin(*(kind.value for kind in _PRESENCE)) & (
        F.col("at_ms") <= F.col("sent_ms")
    )
    tries = F.col("detail").isin("begun", "changed", "ended") & (F.col("at_ms") <= F.col("sent_ms"))
    rows = (
        event.where(F.col("channel").isNull() & F.col("kind").isin(*kinds))
        .join(F.broadcast(when), "participant")
        .groupBy("participant", "sent_ms")
        .agg(
            F.max_by("kind", F.when(was, F.struct("at_ms", "seq"))).alias("presence"),
            F.max(F.when(was, F.col("at_ms"))).alias("presence_ms"),
            F.sum(F.when(F.col("kind") == Kind.GAP.value, F.col("amount"))).alias("dropped"),
            F.max_by("detail", F.when(tries, F.struct("at_ms", "seq"))).alias("faults"),
        )
        .collect()
    )
    return {
        (row["participant"], row["sent_ms"]): Device(
            presence=row["presence"] or "" if row["presence_ms"] is not None else "",
            presence_ms=row["presence_ms"] or 0,
            dropped_rows=row["dropped"] or 0,
            tries_faults=row["faults"] in ("begun", "changed"),
        )
        for row in rows
    }


def _among(table: DataFrame, **wanted: Iterable[object]) -> DataFrame:
    """Rows whose columns are among these: pushed down to the files, unlike a join."""
    for column, values in wanted.items():
        table = table.where(F.col(column).isin(*sorted(set(values), key=str)))
    return table


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _maybe(value: object) -> int | None:
    return value if isinstance(value, int) else None
