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
entry's position tells its bucket, which a look at the bounds confirms; else it is searched.

What is equal here is equal but for a chance of about 2^-120 for each bucket; what differs is looked
at row by row in ``pipeline.drill``.
"""

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
GRID_KEY: Final = ("log", "bucket")
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
    ]
)
_CHANNELS: Final = pa.schema([("channel", pa.string()), ("bounds", pa.list_(pa.int64()))])


class Buckets:
    """Where each channel's buckets begin, and the logs that are compared, both in few rows.

    A Lamport timestamp for each 256 messages and a row for each log: so little that the driver
    holds it, which saves Spark several jobs.
    """

    def __init__(self, message: DataFrame, member: DataFrame, bucket_messages: int) -> None:
        spark = message.sparkSession
        self._size = bucket_messages
        begins = message.where(F.col("position") % bucket_messages == 0)
        bounds: dict[str, set[int]] = {}
        for row in begins.select("channel", "lamport").toArrow().to_pylist():
            bounds.setdefault(row["channel"], set()).add(row["lamport"])
        rising = {channel: sorted(found) for channel, found in bounds.items()}
        longest = max(map(len, rising.values()), default=1)
        self._steps = max(1, (longest - 1).bit_length())
        self._salt, rows = _logs(member)
        for row in rows:
            row["bounds"] = rising.get(row["channel"])
        # Checkpoints: else the rows are part of every plan, and planned anew with each.
        self.logs: Final = _kept(spark, pa.Table.from_pylist(rows, _LOGS))
        """log, hash, channel, participant, joined_ms, left_ms, bounds."""
        channels = [{"channel": name, "bounds": rising[name]} for name in rising]
        self._channels: Final = _kept(spark, pa.Table.from_pylist(channels, _CHANNELS))

    def of_entries(self, entry: DataFrame) -> DataFrame:
        """log, bucket, position, lamport, mid."""
        known = F.broadcast(self.logs.select("log", "hash", "bounds"))
        rows = entry.select(_hash(self._salt).alias("hash"), "position", "lamport", "mid")
        found = self._with_bucket(rows.join(known, "hash"))
        return found.select(*GRID_KEY, "position", "lamport", "mid")

    def of_messages(self, message: DataFrame) -> DataFrame:
        """With ``bucket``, by the row's channel and Lamport timestamp."""
        return self._with_bucket(message.join(F.broadcast(self._channels), "channel", "left"))

    def of_logs(self) -> DataFrame:
        """A row for each log and bucket that there is, with ``first`` and ``next``: its bounds."""
        last = F.coalesce(F.size("bounds"), F.lit(0)) - 1
        rows = self.logs.withColumn("bucket", F.explode(F.sequence(F.lit(BELOW), last)))
        bucket = F.col("bucket")
        first = F.when(bucket >= 0, F.get("bounds", bucket))
        return rows.select(
            *GRID_KEY,
            "channel",
            "joined_ms",
            "left_ms",
            first.alias("first"),
            F.get("bounds", bucket + 1).alias("next"),
        )

    def _with_bucket(self, found: DataFrame) -> DataFrame:
        """Of rows with ``bounds``, ascending: the last that is not later than ``lamport``.

        A look where the position says, or one further; else a binary search written out, one
        projection for each step: compiled, and nothing is called for a row.  (Spark has no function
        that searches a sorted array.)
        """
        most = F.lit(_MOST_POSITIONS).cast("bigint")
        guess = F.least("position", most).cast("bigint")
        found = found.withColumn("guess", (F.floor(guess / self._size)).cast("int"))
        found = found.withColumn(
            "guess",
            F.when(_is_within(0), F.col("guess")).when(_is_within(1), F.col("guess") + 1),
        ).withColumn("bucket", F.coalesce("guess", F.lit(0)))
        for step in reversed(range(self._steps)):
            at = F.col("bucket") + (1 << step)
            further = F.col("guess").isNull() & (F.get("bounds", at) <= F.col("lamport"))
            found = found.withColumn("bucket", F.when(further, at).otherwise(F.col("bucket")))
        inside = F.get("bounds", F.lit(0)) <= F.col("lamport")
        bucket = F.when(inside, F.col("bucket")).otherwise(BELOW)
        return found.withColumn("bucket", bucket).drop("bounds", "guess")


def _kept(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table).coalesce(1).localCheckpoint()


def _is_within(more: int) -> Column:
    """Null where there is no such bucket."""
    at = F.col("guess") + more
    is_before_next = F.coalesce(F.col("lamport") < F.get("bounds", at + 1), F.lit(True))
    return (F.get("bounds", at) <= F.col("lamport")) & is_before_next


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


def compare(log: DataFrame, canonical: DataFrame, buckets: DataFrame, grace_ms: int) -> DataFrame:
    """A row for each bucket of each log, also empty ones: whether it is equal, or to be drilled.

    ``log``: digests by GRID_KEY.  ``buckets``: of ``Buckets.of_logs``.  Has ``begin``: at which
    position the bucket has to begin in this log; ``shift``: how far that is from the canonical one;
    ``is_equal``; ``is_flagged``.
    """
    # Of one log all that is needed is brought together once, for the join and the sum alike.
    whole = buckets.repartition("log").join(
        log.repartition("log").hint("shuffle_hash"), list(GRID_KEY), "left"
    )
    grid = whole.join(F.broadcast(canonical), ["channel", "bucket"], "left")
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
