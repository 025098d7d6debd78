"""How stages of Arrow are put in a row: by Spark, or, of very little, in this process.

A **work** turns batches into batches and sees those of its task alone.  Spark runs works in its
Python workers, moves what they make between stages, keeps it and starts again what died.  To Java a
batch is one row, some bytes: it looks at none of the rows in it, so nothing is compiled for them,
and a work that makes rows for another task groups them by task.  To start workers for a few rows
takes longer than the rows: then the same works run here, one after the other.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.audit.layout import Ints, int64s, run_starts, runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = TypeVar("Rows")
Work: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_PACKED: Final = pa.schema([("task", pa.int32()), ("batch", pa.binary())])
_NUMBERS: Final = pa.schema([("id", pa.int64())])
ROWS_TOGETHER: Final = 2**16
"""So that no row is more than some megabytes to Java."""
_SPREADING: Final = 0x9E3779B97F4A7C15


_PLAIN: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Where a batch is a row, compiling queries and planning them anew is most of what Java does."""


class Stages(Protocol, Generic[Rows]):
    def numbers(self, tasks: int) -> Rows:
        """``id``: 0 to tasks - 1, a task each."""

    def work(self, rows: Rows, work: Work, schema: pa.Schema) -> Rows:
        """What ``work`` makes of them."""

    def by(self, rows: Rows, tasks: int, key: str) -> Rows:
        """All rows of a key in one task."""

    def dealt(self, rows: Rows, tasks: int, task: str) -> Rows:
        """Rows in the task that each names."""

    def both(self, *parts: Rows) -> Rows: ...

    def kept(self, rows: Rows, tasks: int) -> Rows:
        """Made now, and once; so many tasks read it then.  It is lost with the machine it is on."""

    def told(self, rows: Rows) -> pa.Table:
        """To the driver: of few rows."""

    def frame(self, rows: Rows) -> DataFrame:
        """As rows, of which Java knows."""

    def schema(self, rows: Rows) -> pa.Schema: ...


@contextmanager
def plainly(spark: "SparkSession") -> Iterator[None]:
    """Queries are run as they are.  Of one thread at a time: these are settings of the session."""
    before = {name: spark.conf.get(name, None) for name in _PLAIN}
    try:
        for name, value in _PLAIN.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


# --- on Spark -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What is there, and what is to be made of it in the tasks that get it."""

    frame: DataFrame
    is_packed: bool
    works: tuple[Work, ...] = ()
    schema: pa.Schema


Parts: TypeAlias = tuple[_Part, ...]


class OnSpark:
    """Works that follow one another in the same tasks are one call of a worker."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def numbers(self, tasks: int) -> Parts:
        frame = self._spark.range(0, tasks, 1, tasks)
        return (_Part(frame=frame, is_packed=False, schema=_NUMBERS),)

    def work(self, rows: Parts, work: Work, schema: pa.Schema) -> Parts:
        return tuple(replace(one, works=(*one.works, work), schema=schema) for one in rows)

    def by(self, rows: Parts, tasks: int, key: str) -> Parts:
        return self._moved(rows, tasks, partial(_task_of_key, key=key, tasks=tasks))

    def dealt(self, rows: Parts, tasks: int, task: str) -> Parts:
        return self._moved(rows, tasks, partial(_task_named, task=task))

    def _moved(self, rows: Parts, tasks: int, task_of: Callable[[pa.RecordBatch], Ints]) -> Parts:
        packed = _packed(rows, partial(pack_by_task, task_of=task_of))
        frame = packed.repartitionById(tasks, "task")
        return (_Part(frame=frame, is_packed=True, schema=rows[0].schema),)

    def both(self, *parts: Parts) -> Parts:
        return tuple(one for part in parts for one in part)

    def kept(self, rows: Parts, tasks: int) -> Parts:
        frame = _packed(rows, pack).localCheckpoint().coalesce(tasks)
        return (_Part(frame=frame, is_packed=True, schema=rows[0].schema),)

    def told(self, rows: Parts) -> pa.Table:
        packed = _packed(rows, pack).toArrow()
        return pa.Table.from_batches(unpack(iter(packed.to_batches())), rows[0].schema)

    def frame(self, rows: Parts) -> DataFrame:
        made = (
            one.frame.mapInArrow(partial(_run, part=_bare(one)), from_arrow_schema(one.schema))
            for one in rows
        )
        return reduce(DataFrame.union, made)

    def schema(self, rows: Parts) -> pa.Schema:
        return rows[0].schema


def _packed(rows: Parts, pack: Work) -> DataFrame:
    schema = from_arrow_schema(_PACKED)
    made = (one.frame.mapInArrow(partial(_run, part=(*_bare(one), pack)), schema) for one in rows)
    return reduce(DataFrame.union, made)


def _bare(one: _Part) -> tuple[Work, ...]:
    return (unpack, *one.works) if one.is_packed else one.works


def _run(batches: Iterator[pa.RecordBatch], part: tuple[Work, ...]) -> Iterator[pa.RecordBatch]:
    """In a worker.

    After each task Spark looks for garbage there, through all that was ever imported, which takes
    longer than most of our tasks; what is there before one is passed over now.
    """
    gc.freeze()
    for work in part:
        batches = work(batches)
    yield from batches


def unpack(packed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in packed:
        for one in rows["batch"]:
            with pa.ipc.open_stream(one.as_buffer()) as stream:
                yield from stream


def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from _packed_rows(0, batch)


def pack_by_task(
    batches: Iterator[pa.RecordBatch], task_of: Callable[[pa.RecordBatch], Ints]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        task = task_of(batch)
        order = np.argsort(task, kind="stable")
        ordered, task = batch.take(pa.array(order)), task[order]
        for start, end in runs(run_starts(task), len(task)):
            yield from _packed_rows(int(task[start]), ordered.slice(start, end - start))


def _packed_rows(task: int, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, ROWS_TOGETHER):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch.slice(start, ROWS_TOGETHER))
        made = sink.getvalue()
        ends = pa.array([0, made.size], pa.int32()).buffers()[1]
        packed = pa.Array.from_buffers(pa.binary(), 1, [None, ends, made])
        yield pa.RecordBatch.from_arrays([pa.array([task], pa.int32()), packed], schema=_PACKED)


def _task_of_key(batch: pa.RecordBatch, key: str, tasks: int) -> Ints:
    """Neighbours go to different tasks: what is large stands often beside what is large."""
    spread = int64s(batch[key]).view(np.uint64) * np.uint64(_SPREADING) >> np.uint64(32)
    return (spread % np.uint64(tasks)).astype(np.int64)


def _task_named(batch: pa.RecordBatch, task: str) -> Ints:
    return int64s(batch[task])


# --- in this process ------------------------------------------------------------------------------


class Here:
    """``spark``: to show results to; it does none of the work."""

    def __init__(self, spark: "SparkSession | None" = None) -> None:
        self._spark = spark

    def numbers(self, tasks: int) -> pa.Table:
        return pa.table([pa.array(range(tasks))], _NUMBERS)

    def work(self, rows: pa.Table, work: Work, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(work(iter(rows.to_batches())), schema)

    def by(self, rows: pa.Table, tasks: int, key: str) -> pa.Table:  # noqa: ARG002 - there is one task
        return rows

    def dealt(self, rows: pa.Table, tasks: int, task: str) -> pa.Table:  # noqa: ARG002 - likewise
        return rows

    def both(self, *parts: pa.Table) -> pa.Table:
        return pa.concat_tables(parts)

    def kept(self, rows: pa.Table, tasks: int) -> pa.Table:  # noqa: ARG002 - likewise
        return rows

    def told(self, rows: pa.Table) -> pa.Table:
        return rows

    def frame(self, rows: pa.Table) -> DataFrame:
        if self._spark is None:
            raise ValueError("there is no session to show rows to")
        return self._spark.createDataFrame(rows)

    def schema(self, rows: pa.Table) -> pa.Schema:
        return rows.schema
