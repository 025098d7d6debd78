"""All figures from the silver tables, and where they are written: Parquet, and CSV beside it.

What has as many rows as there were messages stays on the cluster.  What is written and read by a
report has as many as there are channels, participants and hours; CSV is for those who want a table
in a spreadsheet, infinity is ``inf`` there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from pipeline.metrics.cost import cost, recovery
from pipeline.metrics.delivery import acks, delivery, held_by_all, histogram, trailing
from pipeline.metrics.false_acks import false_acks
from pipeline.metrics.flow import activity, links, worst_messages
from pipeline.metrics.pairs import clock, pairs
from pipeline.persisted import persisted


@dataclass(frozen=True, slots=True, kw_only=True)
class Silver:
    """What figures are made from; columns as the stage ``silver`` writes them."""

    event: DataFrame
    message: DataFrame
    member: DataFrame
    log: DataFrame


@dataclass(frozen=True, slots=True)
class Metrics:
    """Tables by name.  ``release`` frees what they share."""

    tables: Mapping[str, DataFrame]
    shared: DataFrame

    def release(self) -> None:
        self.shared.unpersist()


def metrics(silver: Silver) -> Metrics:
    found = persisted(pairs(silver.event, silver.message, silver.member, silver.log))
    tables = {
        "delivery": delivery(found),
        "acks": acks(found),
        "held_by_all": held_by_all(found),
        "histogram": histogram(found),
        "trailing": trailing(found),
        "cost": cost(silver.event),
        "recovery": recovery(silver.event),
        "false_acks": false_acks(silver.event, silver.log),
        "clock": clock(found),
        "links": links(found),
        "messages": worst_messages(found),
        "activity": activity(silver.event),
    }
    return Metrics(tables, found)
