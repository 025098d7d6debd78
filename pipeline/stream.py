"""Logs as they grow: what is read once is counted once, however often this is killed.

Structured Streaming remembers in its checkpoint how far each log was read, and names every batch.
An event is (``log_id``, ``seq``) wherever it comes from: a log under two paths, its export beside
it, an export that grew.  Which of them were counted is kept as ranges of ``seq`` for each log.  A
batch is written under its name, its rows, sums and ranges, before it counts as done; one that is
repeated after a death replaces what it wrote.  All sums together are what the live page shows; they
have as many rows as there are channels, participants and kinds of event, and tell by a digest which
messages these were.  Every so many batches they are folded into one, so that years of them stay
readable.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from engine.delivery.contract import Kind
from pipeline.paths import to_read
from pipeline.report.live import write_whole
from pipeline.sources.delivery import FORMAT, register
from pipeline.tables import LakeError

BATCH: Final = "batch"
FORMAT_NUMBER: Final = 2
FOLD_AFTER: Final = 200
KEPT_RANGES: Final = 3
"""Of so many batches; a batch that is repeated needs those of the one before it."""
MOST_RANGES: Final = 1_000
"""Of one log.  Only an export of parts makes more than one; the nearest are joined beyond that."""
_SUMS: Final = (
    "channel string, participant string, kind string, events bigint, wire_bytes bigint,"
    " newest_ms bigint, ids bigint, marks bigint, problem string"
)
_HAS_IDENTITY: Final = (Kind.SENT.value, Kind.DELIVERED.value)
_KEYS: Final = ("channel", "participant", "kind", "problem")


@dataclass(frozen=True, slots=True)
class StreamPlaces:
    root: Path

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def events(self) -> Path:
        return self.root / "events"

    @property
    def sums(self) -> Path:
        return self.root / "sums"

    @property
    def ranges(self) -> Path:
        return self.root / "ranges"

    @property
    def format(self) -> Path:
        return self.root / "stream.json"

    @property
    def page(self) -> Path:
        return self.root / "live.html"


def start(
    spark: SparkSession,
    source: Path,
    places: StreamPlaces,
    *,
    every_s: int,
    written: Callable[[DataFrame], None],
) -> StreamingQuery:
    """``written`` is shown all sums after each batch, from a thread of Spark's.

    Raises LakeError for what another version of the program left there.
    """
    _begin(places)
    register(spark)
    rows = spark.readStream.format(FORMAT).option("path", str(source)).load()

    def write(batch: DataFrame, number: int) -> None:
        write_batch(batch, number, places)
        fold(batch.sparkSession, number, places)
        written(sums(batch.sparkSession, places))

    return (
        rows.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(places.checkpoint))
        .trigger(processingTime=f"{every_s} seconds")
        .queryName("causerie-pipeline stream")
        .start()
    )


def _begin(places: StreamPlaces) -> None:
    """Raises LakeError."""
    try:
        found = json.loads(places.format.read_text(encoding="utf-8"))
    except FileNotFoundError:
        found = None
    except (OSError, ValueError) as error:
        raise LakeError(f"{places.format} cannot be read: {error}") from error
    if found is None and not places.checkpoint.exists():
        write_whole(places.format, json.dumps({"format": FORMAT_NUMBER}))
    elif found != {"format": FORMAT_NUMBER}:
        raise LakeError(
            f"{places.root} was written by another version: name another --out, or delete it and"
            " the logs are read anew"
        )


def write_batch(batch: DataFrame, number: int, places: StreamPlaces) -> None:
    """Rows, sums and ranges of a batch; the same number again replaces them."""
    name, before = f"{BATCH}={number}", _ranges_before(number, places)
    fresh = _not_yet(batch, before).persist()
    try:
        fresh.write.mode("overwrite").parquet(str(places.events / name))
        _summed(fresh).coalesce(1).write.mode("overwrite").parquet(str(places.sums / name))
        after = joined(before, _ranges_in(fresh))
    finally:
        fresh.unpersist()
    write_whole(places.ranges / f"{name}.json", json.dumps(after))
    for path in places.ranges.glob(f"{BATCH}=*.json"):
        if _number(path.with_suffix("")) <= number - KEPT_RANGES:
            path.unlink()


# --- each event once ------------------------------------------------------------------------------

Ranges: TypeAlias = Mapping[str, Sequence[Sequence[int]]]
"""log_id -> [first, last] of each range of ``seq`` that was counted, in order."""


def _ranges_before(number: int, places: StreamPlaces) -> Ranges:
    done = {_number(path.with_suffix("")): path for path in places.ranges.glob(f"{BATCH}=*.json")}
    newest = max((one for one in done if one < number), default=None)
    if newest is None:
        return {}
    found: Ranges = json.loads(done[newest].read_text(encoding="utf-8"))
    return found


def _not_yet(batch: DataFrame, counted: Ranges) -> DataFrame:
    """Rows that were not counted, each once; those that name no event are kept."""
    has_key = F.col("log_id").isNotNull() & F.col("seq").isNotNull()
    keyed = batch.where(has_key).dropDuplicates(["log_id", "seq"])
    rows = [(log_id, first, last) for log_id, all_ in counted.items() for first, last in all_]
    if rows:
        of = batch.sparkSession.createDataFrame(rows, "of string, first bigint, last bigint")
        is_counted = (F.col("log_id") == F.col("of")) & F.col("seq").between(
            F.col("first"), F.col("last")
        )
        keyed = keyed.join(F.broadcast(of), is_counted, "left_anti")
    return keyed.unionByName(batch.where(~has_key))


def _ranges_in(fresh: DataFrame) -> Ranges:
    """``seq`` less its rank is the same for all of a run without a gap."""
    rank = F.row_number().over(Window.partitionBy("log_id").orderBy("seq"))
    keyed = fresh.where("log_id IS NOT NULL AND seq IS NOT NULL").select("log_id", "seq")
    runs = keyed.select("log_id", "seq", (F.col("seq") - rank).alias("run"))
    bounds = runs.groupBy("log_id", "run").agg(F.min("seq"), F.max("seq"))
    found: dict[str, list[list[int]]] = {}
    for log_id, _, first, last in bounds.toLocalIterator():
        found.setdefault(log_id, []).append([first, last])
    return found


def joined(one: Ranges, other: Ranges) -> dict[str, list[list[int]]]:
    """Both together, as few ranges as possible and no more than ``MOST_RANGES`` of a log."""
    return {
        log_id: _joined([*one.get(log_id, ()), *other.get(log_id, ())])
        for log_id in sorted(one.keys() | other.keys())
    }


def _joined(ranges: Iterable[Sequence[int]]) -> list[list[int]]:
    found: list[list[int]] = []
    for first, last in sorted(ranges, key=list):
        if found and first <= found[-1][1] + 1:
            found[-1][1] = max(found[-1][1], last)
        else:
            found.append([first, last])
    while len(found) > MOST_RANGES:
        gaps = [found[at + 1][0] - found[at][1] for at in range(len(found) - 1)]
        at = gaps.index(min(gaps))
        found[at : at + 2] = [[found[at][0], found[at + 1][1]]]
    return found


# --- sums -----------------------------------------------------------------------------------------


def _summed(batch: DataFrame) -> DataFrame:
    """``ids`` and ``marks`` say by two hashes which messages these rows are about, and add up."""
    names_one = F.col("kind").isin(*_HAS_IDENTITY)
    return batch.groupBy(*_KEYS).agg(
        F.count(F.lit(1)).alias("events"),
        F.sum(F.coalesce("wire_bytes", F.lit(0))).cast("bigint").alias("wire_bytes"),
        F.max("at_ms").alias("newest_ms"),
        F.bit_xor(F.when(names_one, F.col("mid"))).alias("ids"),
        F.bit_xor(F.when(names_one, F.xxhash64("message_id"))).alias("marks"),
    )


def _added_up(sums: DataFrame) -> DataFrame:
    return sums.groupBy(*_KEYS).agg(
        F.sum("events").alias("events"),
        F.sum("wire_bytes").alias("wire_bytes"),
        F.max("newest_ms").alias("newest_ms"),
        F.bit_xor("ids").alias("ids"),
        F.bit_xor("marks").alias("marks"),
    )


def sums(spark: SparkSession, places: StreamPlaces) -> DataFrame:
    """Of all batches so far: what was counted, by channel, participant, kind and problem."""
    written = sorted(places.sums.glob(f"{BATCH}=*/_SUCCESS"))
    if not written:
        return spark.createDataFrame([], _SUMS)
    paths = [str(path.parent) for path in written]
    return _added_up(spark.read.schema(_SUMS).parquet(*map(to_read, paths)))


def events(spark: SparkSession, places: StreamPlaces) -> DataFrame:
    """All rows so far, each event once; and those that could not be used and name none."""
    written = sorted(places.events.glob(f"{BATCH}=*/_SUCCESS"))
    return spark.read.parquet(*(to_read(path.parent) for path in written))


def fold(spark: SparkSession, number: int, places: StreamPlaces) -> None:
    """Sums of old batches into those of the oldest of them.

    Batches before the last one are done and are never repeated.  The new sums are made beside the
    others and take their place in one rename; what they stand for is removed before, and
    a death in between is seen by the folded directory's waiting there under its own name.
    """
    waiting = places.sums / "folded"
    done = sorted(
        (path for path in places.sums.glob(f"{BATCH}=*") if _number(path) < number), key=_number
    )
    if (waiting / "_SUCCESS").exists():
        _take_place(waiting, places)
    elif len(done) > FOLD_AFTER:
        last = _number(done[-1])
        whole = _added_up(spark.read.schema(_SUMS).parquet(*map(to_read, done)))
        whole.coalesce(1).write.mode("overwrite").parquet(str(waiting / f"{last}"))
        (waiting / "_SUCCESS").touch()
        _take_place(waiting, places)


def _take_place(waiting: Path, places: StreamPlaces) -> None:
    for made in [path for path in waiting.iterdir() if path.is_dir()]:
        last = int(made.name)
        for path in places.sums.glob(f"{BATCH}=*"):
            if _number(path) <= last:
                shutil.rmtree(path)
        made.rename(places.sums / f"{BATCH}={last}")
    shutil.rmtree(waiting)


def _number(path: Path) -> int:
    return int(path.name.removeprefix(f"{BATCH}="))


LIVE_KINDS: Final = (
    Kind.SENT,
    Kind.DELIVERED,
    Kind.ACKED,
    Kind.MISSING,
    Kind.LOST,
    Kind.RETRANSMITTED,
    Kind.REPAIR_SENT,
    Kind.REJECTED,
)
"""What the live page has a column for."""
