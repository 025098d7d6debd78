"""Logs as they grow: what is read once is counted once, however often this is killed.

Structured Streaming remembers in its checkpoint how far each log was read, and names every batch.
A batch is written under its name, its rows and its sums, before it counts as done; one that is
repeated after a death replaces what it wrote.  All sums together are what the live page shows; they
have as many rows as there are channels, participants and kinds of event.  Every so many batches
their sums are folded into one, so that years of them stay readable.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from engine.delivery.contract import Kind
from pipeline.sources.delivery import FORMAT, register

BATCH: Final = "batch"
FOLD_AFTER: Final = 200
_SUMS: Final = (
    "channel string, participant string, kind string, events bigint, wire_bytes bigint,"
    " newest_ms bigint, problem string"
)
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
    """``written`` is shown all sums after each batch, from a thread of Spark's."""
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


def write_batch(batch: DataFrame, number: int, places: StreamPlaces) -> None:
    """Rows and sums of a batch; the same number again replaces them."""
    name = f"{BATCH}={number}"
    batch.persist()
    try:
        batch.write.mode("overwrite").parquet(str(places.events / name))
        _summed(batch).coalesce(1).write.mode("overwrite").parquet(str(places.sums / name))
    finally:
        batch.unpersist()


def _summed(batch: DataFrame) -> DataFrame:
    return batch.groupBy(*_KEYS).agg(
        F.count(F.lit(1)).alias("events"),
        F.sum(F.coalesce("wire_bytes", F.lit(0))).cast("bigint").alias("wire_bytes"),
        F.max("at_ms").alias("newest_ms"),
    )


def sums(spark: SparkSession, places: StreamPlaces) -> DataFrame:
    """Of all batches so far: what was counted, by channel, participant, kind and problem."""
    written = sorted(places.sums.glob(f"{BATCH}=*/_SUCCESS"))
    if not written:
        return spark.createDataFrame([], _SUMS)
    paths = [str(path.parent) for path in written]
    found = spark.read.schema(_SUMS).parquet(*paths)
    return found.groupBy(*_KEYS).agg(
        F.sum("events").alias("events"),
        F.sum("wire_bytes").alias("wire_bytes"),
        F.max("newest_ms").alias("newest_ms"),
    )


def events(spark: SparkSession, places: StreamPlaces) -> DataFrame:
    """All rows so far, each once."""
    written = sorted(places.events.glob(f"{BATCH}=*/_SUCCESS"))
    return spark.read.parquet(*(str(path.parent) for path in written))


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
        named = spark.read.schema(_SUMS).parquet(*map(str, done))
        whole = named.groupBy(*_KEYS).agg(
            F.sum("events").alias("events"),
            F.sum("wire_bytes").alias("wire_bytes"),
            F.max("newest_ms").alias("newest_ms"),
        )
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
