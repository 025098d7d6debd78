"""The audit: of each participant's log of each channel, whether it is the canonical one.

``cells`` joins entries with the canonical order and keeps a few numbers for each bucket of a log;
``drill`` looks at the rows of buckets that differ, ``causal`` at what messages depend on,
``verdict`` sums it up.  All of it is DataFrames: tables may lie anywhere and in any format.  Very
few rows are audited in this process (``local``), very many in parts (``parts``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.audit import causal, cells, drill, local, verdict
from pipeline.audit.parts import parts_of
from pipeline.audit.steps import Steps
from pipeline.audit.verdict import UNKNOWN_SINCE as UNKNOWN
from pipeline.beside import Answer, Beside, beside

__all__ = ["UNKNOWN", "Audit", "Audited", "audit"]

BUCKET_MESSAGES: Final = 256
FEW_ROWS: Final = 100_000
"""So many are not worth a plan of Spark's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """The silver tables that an audit reads."""

    entry: DataFrame
    """channel, participant, position, lamport, mid: final logs, positions 0, 1, 2 and so on."""
    message: DataFrame
    """channel, mid, lamport, message_id, parent_mids, place, position, sent_ms: all that anybody
    knows of; at most one of each (channel, mid) is canonical, which is: has a ``position``."""
    member: DataFrame
    """channel, participant, has_log: whose logs are judged."""
    stay: DataFrame
    """channel, participant, joined_ms, left_ms: what was sent during one has to be in the log."""
    delivered: DataFrame
    """channel, participant, log_id, seq, mid: in the order of ``seq`` as it happened."""
    lost: DataFrame
    """Likewise: what was given up, so that others need not wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """``verdicts``: one row for each log and channel.  ``witnesses``: one for each anomaly."""

    verdicts: DataFrame
    witnesses: DataFrame

    def joined(self, other: "Audit") -> "Audit":
        """Of this one's channels and the other's."""
        return Audit(
            verdicts=self.verdicts.unionByName(other.verdicts),
            witnesses=self.witnesses.unionByName(other.witnesses),
        )


def audit(
    tables: Audited,
    steps: str,
    *,
    grace_ms: int = 0,
    bucket_messages: int = BUCKET_MESSAGES,
    few_rows: int = FEW_ROWS,
) -> Audit:
    """``steps``: a directory for what lies between; of the next audit there, it is overwritten.

    ``grace_ms``: how far the clocks of who joins or leaves and of who writes may differ.
    ``few_rows``: so many, at most, are looked at in this process.
    """
    found = local.fetched(tables, few_rows)
    spark = tables.entry.sparkSession
    if found is not None:
        verdicts, witnesses = local.audited(found, grace_ms)
        return Audit(
            verdicts=_frame(spark, verdicts, verdict.VERDICT),
            witnesses=_frame(spark, witnesses, verdict.WITNESS),
        )
    judged: list[Audit] = []
    for number, part in enumerate(parts_of(tables)):
        keep = Steps(spark, f"{steps}/{number}").kept
        with beside(spark, keep) as ask:
            judged.append(_on_spark(part.of(tables), ask, grace_ms, bucket_messages))
    return reduce(Audit.joined, judged)


def _frame(spark: SparkSession, rows: Sequence[local.Row], schema: pa.Schema) -> DataFrame:
    """Arrow's way: of tuples Spark makes rows in another Python, which takes a second to start."""
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return Answer(spark, None, pa.Table.from_pylist(named, schema)).frame


def _on_spark(tables: Audited, ask: Beside, grace_ms: int, bucket_messages: int) -> Audit:
    logs = ask.ask(partial(cells.logs, grace_ms=grace_ms), tables.member, tables.stay)
    order, counted = cells.counted(tables.entry, tables.message, ask, bucket_messages)
    buckets = cells.buckets(order.messages)
    compare = partial(cells.compared, bucket_messages=bucket_messages)
    compared = ask.ask(compare, counted, buckets, logs)
    looked = drill.looked_at(tables.entry, order, compared, logs, ask, bucket_messages)
    violations = causal.violations(tables, order, compared, looked, ask)
    witnesses = ask.ask(verdict.witnesses, looked, violations)
    verdicts = ask.ask(verdict.verdicts, logs, compared, looked, witnesses)
    return Audit(verdicts=verdicts.frame, witnesses=witnesses.frame)
