"""Whose clock is off, and by how much: the one correction that everything else goes by.

A copy takes some time, never less than none.  So the quickest copy from a to b bounds how far b's
clock can be behind a's, and the quickest one back how far it can be ahead; half of their sum is how
well that is known.  Clocks are compared pair by pair, and blame goes to as few people as possible:
first to the one whose clock disagrees with most others.  Of two people who are apart one is chosen,
and the notice says that it may be the other.  What is less than a second cannot be told from a
network that is slower in one direction, and is left alone.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from engine.delivery.contract import INT64

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

SKEW_MS: Final = 1_000
MOST_SAMPLES: Final = 1_000_000
"""So many copies are looked at; of more, those of a part of the messages."""
MOST_PAIRS: Final = 200_000
LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""
MOST_APART_MS: Final = INT64 - 1


@dataclass(frozen=True, slots=True)
class OneWay:
    """The quickest copy: the receiver's time of receipt less the sender's of sending."""

    sender: str
    receiver: str
    least_ms: int


@dataclass(frozen=True, slots=True)
class Clock:
    """``offset_ms``: how far it is ahead, give or take ``within_ms``.

    ``partners``: with how many others it was compared; ``others``: who of them disagreed with it.
    """

    participant: str
    offset_ms: int
    within_ms: int
    partners: int
    others: int


def solved(found: Iterable[OneWay]) -> list[Clock]:
    """The clocks that are off, by participant."""
    skews = _skews(found)
    partners = {who: len(others) for who, others in skews.items()}
    apart = {
        who: {other for other, (skew, _) in others.items() if abs(skew) >= SKEW_MS}
        for who, others in skews.items()
    }
    clocks: list[Clock] = []
    while any(apart.values()):
        worst = min(
            apart, key=lambda who: (-len(apart[who]) / partners[who], -len(apart[who]), who)
        )
        right = apart[worst]
        offsets = sorted(skews[worst][other] for other in right)
        offset_ms, within_ms = offsets[len(offsets) // 2]
        bounded = max(-INT64, min(offset_ms, INT64)), min(within_ms, INT64)
        clocks.append(Clock(worst, *bounded, partners[worst], len(right)))
        for other in right:
            apart[other].discard(worst)
        apart[worst] = set()
    return sorted(clocks, key=lambda clock: clock.participant)


def _skews(found: Iterable[OneWay]) -> dict[str, dict[str, tuple[int, int]]]:
    """Of each, by each other: how far it is ahead, and how well that is known.

    Seen in one direction only, a copy that came before it was sent is proof enough, and one that
    took long is none.
    """
    least = {(one.sender, one.receiver): one.least_ms for one in found}
    skews: dict[str, dict[str, tuple[int, int]]] = {}
    for (sender, receiver), there in least.items():
        back = least.get((receiver, sender))
        if back is None:
            ahead, within = min(there, 0), 0
        else:
            ahead, within = (there - back) // 2, max(0, -(-(there + back) // 2))
        skews.setdefault(receiver, {})[sender] = ahead, within
        skews.setdefault(sender, {})[receiver] = -ahead, within
    return skews


def moment(at_ms: "Column") -> "Column":
    """As Spark's time, null if there is none; beyond any calendar it is the calendar's end."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - loads Spark

    within = F.greatest(F.least(at_ms, F.lit(LAST_MS)), F.lit(0))
    return F.timestamp_millis(F.when(at_ms.isNotNull(), within))


def apart_ms(later: "Column", earlier: "Column") -> "Column":
    """Their difference; of clocks that are off by ages it is as much as there can be."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - loads Spark

    return F.coalesce(
        F.try_subtract(later, earlier),
        F.when(later > earlier, F.lit(MOST_APART_MS)),
        F.when(later < earlier, F.lit(-MOST_APART_MS)),
    )


# --- from events ----------------------------------------------------------------------------------


def one_way(event: "DataFrame", message: "DataFrame") -> "DataFrame":
    """sender, receiver, least_ms: of first copies; each device's time as it told it.

    ``event``: every event once; ``message``: as logs tell of it, for senders without one.
    """
    from pyspark.sql import functions as F  # noqa: PLC0415 - loads Spark

    received = event.where("kind = 'received' AND mid IS NOT NULL AND channel IS NOT NULL")
    received = received.select(
        "channel", "mid", F.col("participant").alias("receiver"), F.col("at_ms").alias("got_ms")
    )
    total = received.count()
    if not total:
        nobody = F.col("receiver").alias("sender"), "receiver", F.col("got_ms").alias("least_ms")
        return received.select(*nobody)
    every = max(1, total // MOST_SAMPLES)
    sent = event.where("kind = 'sent' AND mid IS NOT NULL AND channel IS NOT NULL").select(
        "channel", "mid", F.col("participant").alias("sender"), F.col("at_ms").alias("sent_ms")
    )
    claimed = message.where("sent_ms IS NOT NULL").select("channel", "mid", "sender", "sent_ms")
    if every > 1:
        is_sampled = F.pmod(F.xxhash64("mid"), F.lit(every)) == 0
        received, sent, claimed = (rows.where(is_sampled) for rows in (received, sent, claimed))
    logged = sent.groupBy("channel", "mid", "sender").agg(F.min("sent_ms").alias("logged_ms"))
    times = claimed.groupBy("channel", "mid", "sender").agg(F.min("sent_ms").alias("claimed_ms"))
    known = times.join(logged, ["channel", "mid", "sender"], "full").select(
        "channel", "mid", "sender", F.coalesce("logged_ms", "claimed_ms").alias("sent_ms")
    )
    return (
        received.join(known, ["channel", "mid"])
        .where("sender <> receiver")
        .groupBy("sender", "receiver")
        .agg(F.min(apart_ms(F.col("got_ms"), F.col("sent_ms"))).alias("least_ms"))
    )


def clocks(event: "DataFrame", message: "DataFrame") -> "pa.Table":
    """The silver table ``clock``: whose are off.  Who is not in it has the right time."""
    import pyarrow as pa  # noqa: PLC0415 - only here

    rows = one_way(event, message).limit(MOST_PAIRS).collect()
    found = solved(OneWay(row["sender"], row["receiver"], row["least_ms"]) for row in rows)
    fields = {
        "participant": pa.string(),
        "offset_ms": pa.int64(),
        "within_ms": pa.int64(),
        "partners": pa.int32(),
        "others": pa.int32(),
    }
    return pa.Table.from_pylist(list(map(asdict, found)), pa.schema(list(fields.items())))
