"""A small simulated group with its recordings, as the silver tables have them.

The tables are made here by plain Python and not by the stages under test elsewhere: what figures
are counted from is then known to be right.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from engine.core.ids import UnixMs
from engine.delivery.contract import DELIVERY_EVENT, MEMBERSHIP, MESSAGE, Table
from engine.sim.world import START_MS
from pipeline.schema import spark_schema
from pipeline.simulate.case import Case
from pipeline.simulate.sds_run import Group

_MESSAGE = (
    "channel string, mid bigint, lamport bigint, message_id string, protocol string,"
    " sender string, sent_ms bigint, parent_mids array<bigint>, holders int, place bigint,"
    " position bigint"
)
_MEMBER = (
    "channel string, participant string, joined_ms bigint, left_ms bigint,"
    " stays array<struct<joined_ms:bigint,left_ms:bigint>>, has_log boolean"
)
_LOG = (
    "log_id string, participant string, key_id string, app_version string, network string,"
    " last_seq bigint, file string"
)


@dataclass
class Silver:
    event: DataFrame
    message: DataFrame
    member: DataFrame
    log: DataFrame


@dataclass
class RecordedGroup:
    case: Case
    silent: int = 0
    """So many members' logs are not there."""
    group: Group = field(init=False)

    def __post_init__(self) -> None:
        self.group = Group(
            seed=self.case.seed, size=self.case.members, loss=self.case.loss, case=self.case
        )
        members = list(self.group.members.values())
        for member in members:
            member.record("test", now_ms=START_MS)
        end_ms = self.group.talk(self.case.messages, gap_ms=self.case.gap_ms)
        self.group.network.run_until(end_ms)
        self.group.network.run_until(UnixMs(end_ms + self.case.heal_ms), stop=self.group.is_over)
        for member in members:
            member.finish_recording(START_MS, now_ms=self.group.network.now_ms)

    def rows(self, table: Table) -> list[dict[str, Any]]:
        members = list(self.group.members.values())[self.silent :]
        found: list[dict[str, Any]] = []
        for member in members:
            assert member.recording is not None
            rows = member.recording.tables()[table]
            found += [dict(zip(table.names, row, strict=True)) for row in rows]
        return found

    def silver(self, spark: SparkSession, events: Iterable[dict[str, Any]] | None = None) -> Silver:
        names = DELIVERY_EVENT.names
        event = [tuple(row[n] for n in names) for row in (events or self.rows(DELIVERY_EVENT))]
        messages = {row["mid"]: row for row in self.rows(MESSAGE)}
        ordered = sorted(messages.values(), key=lambda row: (row["lamport"], row["message_id"]))
        members = {row["member"]: row for row in self.rows(MEMBERSHIP)}
        logs = {row["log_id"]: row for row in self.rows(DELIVERY_EVENT)}
        with_log = {row["participant"] for row in logs.values()}
        return Silver(
            event=spark.createDataFrame(event, spark_schema(DELIVERY_EVENT)),
            message=spark.createDataFrame(
                [
                    (
                        r["channel"],
                        r["mid"],
                        r["lamport"],
                        r["message_id"],
                        r["protocol"],
                        r["sender"],
                        r["sent_ms"],
                        json.loads(r["parent_mids"] or "[]"),
                        1,
                        i,
                        i,
                    )
                    for i, r in enumerate(ordered)
                ],
                _MESSAGE,
            ),
            member=spark.createDataFrame(
                [
                    (r["channel"], m, *stay, [stay], m in with_log)
                    for m, r in members.items()
                    for stay in [(r["joined_ms"], r["left_ms"])]
                ],
                _MEMBER,
            ),
            log=spark.createDataFrame(
                [
                    (i, r["participant"], r["key_id"], r["app_version"], r["network"], 1, "f")
                    for i, r in logs.items()
                ],
                _LOG,
            ),
        )
