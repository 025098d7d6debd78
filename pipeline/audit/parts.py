"""An audit of very many messages, cut into parts of whole channels.

Nothing that is asked of a channel needs another one.  So where all messages together are more than
every task may hold, ranges of channels are audited one after the other, each with an order that is
small again: entries are then never shuffled to find their messages.  A single channel of more
messages is a part by itself, and there both sides are shuffled.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipeline.audit import cells

if TYPE_CHECKING:
    from pipeline.audit import Audited


@dataclass(frozen=True, slots=True)
class Part:
    """Channels from ``first`` on, and before ``end``, by name; None is the first or last of all."""

    first: str | None
    end: str | None

    def holds(self, channel: Column) -> Column:
        """Also of channels that no message is of: they lie in one range as all others do."""
        after = F.lit(True) if self.first is None else channel >= self.first
        return after if self.end is None else after & (channel < self.end)

    def of(self, tables: "Audited") -> "Audited":
        within = self.holds(F.col("channel"))
        return replace(
            tables,
            **{each.name: getattr(tables, each.name).where(within) for each in fields(tables)},
        )


ALL = Part(None, None)


def parts_of(tables: "Audited") -> list[Part]:
    """All channels are in one of them each."""
    if tables.message.count() <= cells.MOST_BROADCAST:
        return [ALL]
    counted = tables.message.groupBy("channel").count().orderBy("channel").collect()
    begins = list(_begins((row["channel"], row["count"]) for row in counted))
    return [Part(*ends) for ends in zip([None, *begins], [*begins, None], strict=True)]


def _begins(counted: Iterable[tuple[str, int]]) -> Iterator[str]:
    """The channels that a part begins with, but for the first."""
    held = 0
    for channel, messages in counted:
        if held and held + messages > cells.MOST_BROADCAST:
            yield channel
            held = 0
        held += messages
