"""The audit: of each participant's log of each channel, whether it is the canonical one.

``read`` adds up what every cell (a bucket of a log) holds, by ``digest``; ``grid`` compares cells
with the canonical log's, ``drill`` looks at the rows of those that differ, ``causal`` at what had
been moved, ``verdict`` sums it up.  ``plan`` puts them in a row, ``stages`` runs them: on Spark, or
of very little here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.audit.digest import BUCKET_MESSAGES
from pipeline.audit.layout import Layout
from pipeline.audit.plan import Plan
from pipeline.audit.slices import Places, members, slices_of
from pipeline.audit.stages import Here, OnSpark, Rows, Stages, plainly
from pipeline.audit.verdict import UNKNOWN_SINCE as UNKNOWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["UNKNOWN", "Audit", "Places", "audit"]

FEW_ROWS: Final = 100_000
"""So many are not worth starting Spark's workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """``verdicts``: one row for each log and channel.  ``witnesses``: one for each anomaly."""

    verdicts: "DataFrame"
    witnesses: "DataFrame"


def audit(  # noqa: PLR0913 -- where it runs, of what, and four settings
    spark: "SparkSession",
    places: Places,
    *,
    key: int,
    grace_ms: int = 0,
    bucket_messages: int = BUCKET_MESSAGES,
    few_rows: int = FEW_ROWS,
) -> Audit:
    """``key``: of the second digest, new for each audit.

    ``grace_ms``: how far the clocks of who joins or leaves and of who writes may differ.
    ``few_rows``: so many, at most, are looked at in this process, by the same stages.  Two audits
    in one session at the same time would change its settings for one another.
    """
    layout = Layout(members(places), grace_ms)
    found = slices_of(places)
    each = dict.fromkeys((False, True), 0)
    for one in found:
        each[one.is_message] += one.rows
    # A log that holds nothing lacks every message.
    if each[False] + each[True] * layout.most_logs <= few_rows:
        here = Here(spark)
        return _audit(here, Plan(here, layout, found), key, bucket_messages)
    with plainly(spark):
        there = OnSpark(spark)
        return _audit(there, Plan(there, layout, found), key, bucket_messages)


def _audit(stages: Stages[Rows], plan: Plan[Rows], key: int, bucket_messages: int) -> Audit:
    plan.find_bounds(bucket_messages)
    cells = stages.kept(plan.cells(key), plan.few_tasks)
    looked = stages.kept(plan.looked(cells), plan.few_tasks)
    violations = plan.violations(cells, looked)
    if violations is not None:
        violations = stages.kept(violations, plan.few_tasks)
    return Audit(
        verdicts=stages.frame(plan.verdicts(cells, looked, violations)),
        witnesses=stages.frame(plan.witnesses(looked, violations)),
    )
