"""Digests: whether a log is the canonical one, bucket by bucket, without sorting or moving it.

A channel's messages are cut into buckets of Lamport time, about 256 canonical messages each.  Per
(channel, participant, bucket) a few additive numbers are kept: how many, the xor of the ids, and
modulo a prime p the sum S of the ids and the sum D of id times position.  Where a message is
missing, everything after it stands one place further up; as D is linear, ``D - shift * S`` takes
that back, so only the bucket that lacks it differs.  The **shift** is not guessed: a bucket of a
log in order begins after as many entries as all buckets before it hold.

A second digest of the same form is made of keyed hashes of (id, Lamport timestamp), with a key that
nobody knew when the logs were written: a log crafted to collide in the first does not in the other.

A row of a log is known by its log's number, found by one hash of channel and participant: in a pass
over every entry, comparing texts would take longer than everything else.  And almost always an
entry's position tells its bucket, which a look at the bounds confirms; the few others are searched
in a pass of their own.

What is equal here is equal but for a chance of about 2^-120 for each bucket; what differs is looked
at row by row in ``pipeline.drill``.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

BUCKET_MESSAGES: Final = 256
P: Final = 2**31 - 1
KEYED_P: Final = 2**31 - 19
BELOW: Final = -1
"""The bucket of what is older than the first canonical message, or of a channel without any."""
FAR: Final = -2
"""Of an entry that does not stand about where its Lamport timestamp would have it."""
GRID_KEY: Final = ("log", "bucket")
_OF_ENTRY: Final = ("position", "lamport", "mid")
_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1
_SUMS: Final = (("s", "d", P), ("keyed_s", "keyed_d", KEYED_P))
_NUMBERS: Final = ("n", "start", "x", "keyed_x", "s", "d", "keyed_s", "keyed_d")
_MOST_POSITIONS: Final = 2**30
_LOGS: Final = pa.schema(
    [
        ("log", pa.int32()),
        ("hash", pa.int64()),
        ("channel", pa.string()),
        ("participant", pa.string()),
        ("joined_ms", pa.int64()),
        ("left_ms", pa.int64()),
        ("bounds", pa.list_(pa.int64())),
        ("base", pa.int32()),
    ]
)
_CHANNELS: Final = pa.schema(
    [("channel", pa.string()), ("bounds", pa.list_(pa.int64())), ("base", pa.int32())]
)


class Buckets:
    """Where each channel's buckets begin, and the logs that are compared, both in few rows.

    A Lamport timestamp for each 256 messages and a row for each log: so little that the driver
    holds it, which saves Spark several jobs.  ``bounds`` stand between the lowest number there is
    and the highest: what has the index n belongs to the bucket n - 1.
    """

    def __init__(self, message: DataFrame, member: DataFrame, bucket_messages: int) -> None:
        spark = message.sparkSession
        self._shift = bucket_messages.bit_length() - 1
        begins = message.where(F.col("position") % bucket_messages == 0)
        bounds: dict[str, list[int]] = {}
        for row in begins.select("channel", "lamport").toArrow().to_pylist():
            bounds.setdefault(row["channel"], []).append(row["lamport"])
        rising = {channel: [_LOWEST, *sorted(found), _HIGHEST] for channel, found in bounds.items()}
        self._steps = max(map(len, rising.values()), default=2).bit_length()
        self._salt, rows = _logs(member)
        for row in rows:
            row["bounds"] = rising.get(row["channel"], [_LOWEST, _HIGHEST])
            # A log begins where its member joined.
            row["base"] = max(1, bisect_right(row["bounds"], row["joined_ms"] or 0) - 1)
        self.cells: Final = sum(len(row["bounds"]) - 1 for row in rows)
        """How many rows ``of_logs`` has."""
        # Checkpoints: else the rows are part of every plan, and planned anew with each.
        self.logs: Final = _kept(spark, pa.Table.from_pylist(rows, _LOGS))
        """log, hash, channel, participant, joined_ms, left_ms, bounds, base."""
        channels = [{"channel": name, "bounds": rising[name], "base": 1} for name in rising]
        self._channels: Final = _kept(spark, pa.Table.from_pylist(channels, _CHANNELS))

    def of_entries(self, entry: DataFrame) -> DataFrame:
        """log, bucket, position, lamport, mid.  ``bucket`` is FAR where a look does not tell."""
        bucket = F.coalesce(self._looked_up("position"), F.lit(FAR))
        return self._known(entry).select("log", bucket.alias("bucket"), *_OF_ENTRY)

    def of_all_entries(self, entry: DataFrame) -> DataFrame:
        """The same without FAR: those are read apart, and searched, which takes longer."""
        rows = self._known(entry).withColumn("bucket", self._looked_up("position"))
        far = rows.where(F.col("bucket").isNull()).withColumn("bucket", self._searched())
        near = rows.where(F.col("bucket").isNotNull()).select(*GRID_KEY, *_OF_ENTRY)
        return near.unionByName(far.select(*GRID_KEY, *_OF_ENTRY))

    def of_messages(self, message: DataFrame) -> DataFrame:
        """With ``bucket``, by the row's channel and Lamport timestamp."""
        found = message.join(F.broadcast(self._channels), "channel", "left")
        bucket = F.coalesce(self._looked_up("place"), self._searched())
        return found.withColumn("bucket", bucket).drop("bounds", "base")

    def of_logs(self) -> DataFrame:
        """A row for each log and bucket that there is, with ``first`` and ``next``: its bounds."""
        last = F.size("bounds") - 3
        rows = self.logs.withColumn("bucket", F.explode(F.sequence(F.lit(BELOW), last)))
        bucket = F.col("bucket")
        return rows.select(
            *GRID_KEY,
            "channel",
            "joined_ms",
            "left_ms",
            F.when(bucket >= 0, F.get("bounds", bucket + 1)).alias("first"),
            F.when(bucket < last, F.get("bounds", bucket + 2)).alias("next"),
        )

    def _known(self, entry: DataFrame) -> DataFrame:
        known = F.broadcast(self.logs.select("log", "hash", "bounds", "base"))
        return entry.select(_hash(self._salt).alias("hash"), *_OF_ENTRY).join(known, "hash")

    def _looked_up(self, position: str) -> Column:
        """The bucket, if it is the one that the position tells or a neighbour of that; else null.

        A few comparisons for each row, and no text of expressions that grows with the bounds:
        Spark puts an expression in wherever its name is used.
        """
        most = F.lit(_MOST_POSITIONS).cast("bigint")
        index = F.shiftright(F.least(position, most), self._shift).cast("int") + F.col("base")
        lamport = F.col("lamport")
        found = F.when(F.lit(False), F.lit(BELOW))
        for at in (index, index + 1, index - 1):
            is_within = (F.get("bounds", at) <= lamport) & (lamport < F.get("bounds", at + 1))
            found = found.when(is_within, at - 1)
        return found

    def _searched(self) -> Column:
        """The last bucket that is not later than ``lamport``, by a binary search.

        (Spark has no function that searches a sorted array; folding over the steps is one
        expression, but called for each row and not compiled.)
        """
        steps = F.array(*(F.lit(1 << step) for step in reversed(range(self._steps))))

        def further(at: Column, step: Column) -> Column:
            is_not_later = F.get("bounds", at + step) <= F.col("lamport")
            return F.when(is_not_later, at + step).otherwise(at)

        found = F.reduce(steps, F.lit(0), further)
        return F.least(found, F.size("bounds") - 2) - 1


def _kept(spark: SparkSession, table: pa.Table) -> DataFrame:
    rows = spark.createDataFrame(table).coalesce(1).localCheckpoint()
    return rows.coalesce(1)  # Said again: a checkpoint forgets it.


def _logs(member: DataFrame) -> tuple[int, list[dict[str, Any]]]:
    """Under which salt no two logs have the same hash, and the logs."""
    salt = 0
    while True:
        rows = member.where("has_log").select(
            _hash(salt).alias("hash"), "channel", "participant", "joined_ms", "left_ms"
        )
        found = rows.toArrow().to_pylist()
        if len({row["hash"] for row in found}) == len(found):
            return salt, [{"log": number, **row} for number, row in enumerate(found)]
        salt += 1


def _hash(salt: int) -> Column:
    return F.xxhash64(F.lit(salt), F.col("channel"), F.col("participant"))


def digests(rows: DataFrame, by: Sequence[str], key: int) -> DataFrame:
    """One row for each ``by``: n, start, x, s, d, keyed_x, keyed_s, keyed_d."""
    position = F.col("position")
    keyed = F.xxhash64(F.col("mid").bitwiseXOR(F.lit(key).cast("bigint")), F.col("lamport"))
    rests = F.pmod("mid", F.lit(P)), keyed.bitwiseAND(F.lit(P).cast("bigint"))
    sums: list[Column] = []
    for rest, (s, d, prime) in zip(rests, _SUMS, strict=True):
        product = rest * F.pmod(position, F.lit(prime)) % prime
        sums += [(F.sum(rest) % prime).alias(s), (F.sum(product) % prime).alias(d)]
    return rows.groupBy(*by).agg(
        F.count(F.lit(1)).alias("n"),
        F.min("position").alias("start"),
        F.bit_xor("mid").alias("x"),
        F.bit_xor(keyed).alias("keyed_x"),
        *sums,
    )


def canonical_digests(message: DataFrame, key: int) -> DataFrame:
    """Of the canonical log: channel, bucket, c_n and so on.  ``message`` has its ``bucket``."""
    canonical = message.where(F.col("position").isNotNull())
    found = digests(canonical, ("channel", "bucket"), key)
    return found.select("channel", "bucket", *(F.col(name).alias(f"c_{name}") for name in _NUMBERS))


def compare(
    log: DataFrame, canonical: DataFrame, buckets: DataFrame, grace_ms: int, *, is_few: bool
) -> DataFrame:
    """A row for each bucket of each log, also empty ones: whether it is equal, or to be drilled.

    ``log``: digests by GRID_KEY.  ``buckets``: of ``Buckets.of_logs``.  Has ``begin``: at which
    position the bucket has to begin in this log; ``shift``: how far that is from the canonical one;
    ``is_equal``; ``is_flagged``.  ``is_few``: each of the three is in one partition.
    """
    if is_few:
        buckets, canonical = buckets.coalesce(1), canonical.hint("shuffle_hash")
    else:
        # Of one log all that is needed is brought together once, for the join and the sum alike.
        buckets, log = buckets.repartition("log"), log.repartition("log")
        canonical = F.broadcast(canonical)
    whole = buckets.join(log.hint("shuffle_hash"), list(GRID_KEY), "left")
    grid = whole.join(canonical, ["channel", "bucket"], "left")
    grid = grid.withColumn("n", F.coalesce("n", F.lit(0)))
    before = Window.partitionBy("log").orderBy("bucket").rowsBetween(Window.unboundedPreceding, -1)
    grid = grid.withColumn("begin", F.coalesce(F.sum("n").over(before), F.lit(0)))
    grid = grid.withColumn("shift", F.col("begin") - F.col("c_start"))
    grid = grid.withColumn("is_equal", F.coalesce(_is_equal(), F.lit(False)))
    may_lack = F.coalesce(_is_optional(grace_ms), F.lit(False)) & (F.col("n") == 0)
    return grid.select(
        *GRID_KEY,
        "channel",
        "n",
        "c_n",
        "begin",
        "shift",
        "joined_ms",
        "left_ms",
        "is_equal",
        (~F.col("is_equal") & ~may_lack).alias("is_flagged"),
    )


def _is_equal() -> Column:
    """Null where the canonical log has nothing."""
    same = F.col("start") == F.col("begin")
    for name in ("n", "x", "s", "keyed_x", "keyed_s"):
        same &= F.col(name) == F.col(f"c_{name}")
    for s, d, prime in _SUMS:
        moved = F.pmod("shift", F.lit(prime)) * F.col(f"c_{s}") + F.col(f"c_{d}")
        same &= F.col(d) == F.pmod(moved, F.lit(prime))
    return same


def _is_optional(grace_ms: int) -> Column:
    """No message of the bucket has to be in the log: it lies before the joining or after leaving.

    Null in the newest bucket, which has no end.
    """
    is_before = F.col("next") <= F.col("joined_ms") + grace_ms
    is_after = F.col("first") >= F.col("left_ms") - grace_ms
    is_alone = F.col("c_n").isNull()
    return F.col("joined_ms").isNull() | is_alone | is_before | is_after


def is_required(grace_ms: int) -> Column:
    """Whether a message must be in the log of a member: it lies in the time of the membership."""
    since = F.col("lamport") >= F.col("joined_ms") + grace_ms
    until = F.col("left_ms").isNull() | (F.col("lamport") < F.col("left_ms") - grace_ms)
    return F.col("joined_ms").isNotNull() & since & until
