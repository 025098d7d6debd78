"""Digests: whether a log is the canonical one, bucket by bucket, without sorting or moving it.

A channel's messages are cut into buckets of Lamport time, about 256 canonical messages each.  Per
(channel, participant, bucket) a few additive numbers are kept: how many, the xor of the ids, and
modulo a prime p the sum S of the ids and the sum D of id times position.  Where a message is
missing, everything after it stands one place further up; as D is linear, ``D - shift * S`` takes
that back, so only the bucket that lacks it differs.  The **shift** is not guessed: a bucket of a
log in order begins after as many entries as all buckets before it hold.

A second digest of the same form is made of keyed hashes of (id, Lamport timestamp), with a key that
nobody knew when the logs were written: a log crafted to collide in the first does not in the other.

What is equal here is equal but for a chance of about 2^-120 for each bucket; what differs is looked
at row by row in ``pipeline.drill``.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

BUCKET_MESSAGES: Final = 256
P: Final = 2**31 - 1
KEYED_P: Final = 2**31 - 19
BELOW: Final = -1
"""The bucket of what is older than the first canonical message, or of a channel without any."""
GRID_KEY: Final = ("channel", "participant", "bucket")
_SUMS: Final = (("s", "d", P), ("keyed_s", "keyed_d", KEYED_P))


def bounds(message: DataFrame, bucket_messages: int = BUCKET_MESSAGES) -> DataFrame:
    """channel, bounds: the Lamport timestamps at which its buckets begin, ascending."""
    begins = (F.col("position") % bucket_messages == 0) & F.col("position").isNotNull()
    return (
        message.where(begins)
        .groupBy("channel")
        .agg(F.sort_array(F.collect_set("lamport")).alias("bounds"))
    )


def search_steps(bounds: DataFrame) -> int:
    """Of a binary search in the longest; one number, whatever the input."""
    (row,) = bounds.agg(F.max(F.size("bounds")).alias("longest")).collect()
    longest: int = row["longest"] or 1
    return max(1, (longest - 1).bit_length())


def with_bucket(rows: DataFrame, bounds: DataFrame, steps: int) -> DataFrame:
    """Adds ``bucket``, by the row's channel and Lamport timestamp.

    A binary search written out, one projection for each step: compiled, and nothing is called for a
    row.  (Spark has no function that searches a sorted array.)
    """
    found = rows.join(F.broadcast(bounds), "channel", "left").withColumn("bucket", F.lit(0))
    for step in reversed(range(steps)):
        at = F.col("bucket") + (1 << step)
        further = F.get("bounds", at) <= F.col("lamport")
        found = found.withColumn("bucket", F.when(further, at).otherwise(F.col("bucket")))
    inside = F.get("bounds", F.lit(0)) <= F.col("lamport")
    bucket = F.when(inside, F.col("bucket")).otherwise(BELOW)
    return found.withColumn("bucket", bucket).drop("bounds")


def digests(rows: DataFrame, by: Sequence[str], key: int, *more: Column) -> DataFrame:
    """One row for each ``by``: n, start, x, s, d, keyed_x, keyed_s, keyed_d, and ``more``."""
    position = F.col("position")
    keyed = F.xxhash64(F.lit(key).cast("bigint"), F.col("mid"), F.col("lamport"))
    sums: list[Column] = []
    for value, (s, d, prime) in zip((F.col("mid"), keyed), _SUMS, strict=True):
        rest = F.pmod(value, F.lit(prime))
        product = rest * F.pmod(position, F.lit(prime)) % prime
        sums += [(F.sum(rest) % prime).alias(s), (F.sum(product) % prime).alias(d)]
    return rows.groupBy(*by).agg(
        F.count(F.lit(1)).alias("n"),
        F.min("position").alias("start"),
        F.bit_xor("mid").alias("x"),
        F.bit_xor(keyed).alias("keyed_x"),
        *sums,
        *more,
    )


def canonical_digests(message: DataFrame, key: int) -> DataFrame:
    """Of the canonical log: channel, bucket, c_n and so on, and ``first``, ``next``: its bounds.

    ``message`` has its ``bucket`` already.
    """
    canonical = message.where(F.col("position").isNotNull())
    found = digests(canonical, ("channel", "bucket"), key, F.min("lamport").alias("first"))
    order = Window.partitionBy("channel").orderBy("bucket")
    names = [name for name in found.columns if name not in {"channel", "bucket", "first"}]
    return found.select(
        "channel",
        "bucket",
        *(F.col(name).alias(f"c_{name}") for name in names),
        "first",
        F.lead("first").over(order).alias("next"),
    )


def compare(log: DataFrame, canonical: DataFrame, member: DataFrame, grace_ms: int) -> DataFrame:
    """A row for each bucket of each log, also empty ones: whether it is equal, or to be drilled.

    ``log``: digests by GRID_KEY.  ``member``: channel, participant, joined_ms, left_ms.  Adds
    ``begin``: at which position the bucket has to begin in this log; ``shift``: how far that is
    from the canonical one; ``is_equal``; ``is_flagged``.
    """
    whole = member.join(F.broadcast(canonical), "channel")
    grid = whole.join(log, list(GRID_KEY), "left").withColumn("n", F.coalesce("n", F.lit(0)))
    # Buckets of a log where the canonical log has nothing: strays only.
    alone = log.join(F.broadcast(canonical), ["channel", "bucket"], "left_anti").join(
        F.broadcast(member), ["channel", "participant"]
    )
    grid = grid.unionByName(alone, allowMissingColumns=True)
    before = (
        Window.partitionBy("channel", "participant")
        .orderBy("bucket")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    grid = grid.withColumn("begin", F.coalesce(F.sum("n").over(before), F.lit(0)))
    grid = grid.withColumn("shift", F.col("begin") - F.col("c_start"))
    grid = grid.withColumn("is_equal", F.coalesce(_is_equal(), F.lit(False)))
    may_lack = F.coalesce(_is_optional(grace_ms), F.lit(False)) & (F.col("n") == 0)
    return grid.withColumn("is_flagged", ~F.col("is_equal") & ~may_lack)


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
