"""Rows of logs and exports into Parquet, by Spark's tasks, without passing through Java.

Handing every row to Java, to be written there, costs more than reading and checking it: so a task
reads its pieces as ``pipeline.sources.delivery`` does and writes what it has read with Arrow.  Very
little is not worth starting Python's workers: the driver does it.  A task is told of its own pieces
alone: all of them told to each are the work, where there are thousands.  Back comes one line for
each file that was written.  A task that is started a second time writes files of other names, and
whatever nobody told of is removed before the directory counts; the place has to be one that all
workers share, as for whatever else Spark writes.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from engine.delivery.contract import TABLES_BY_NAME, Table, Type
from pipeline.session import is_here
from pipeline.sources import arrow_rows
from pipeline.sources.arrow_rows import FILE, PROBLEM
from pipeline.sources.delivery import read_piece
from pipeline.sources.files import Piece, pack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_GROUP_ROWS: Final = 200_000
SMALL_BYTES: Final = 4 * 1024 * 1024
"""Less than this is not worth a task of its own."""
COPIED_HERE_BYTES: Final = 32 * 1024 * 1024
"""Files of less than this, all together, are read sooner than Python's workers are started."""
_WRITTEN: Final = "table_name string, file string, rows bigint"
_WRITTEN_ARROW: Final = pa.schema(
    [("table_name", pa.string()), ("file", pa.string()), ("rows", pa.int64())]
)

_NUMBER: Final = "number"
_TOLD_OF: Final = pa.schema([(_NUMBER, pa.int64()), ("parts", pa.string())])

_Work: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_Told: TypeAlias = tuple[str, str, int]
"""Table, file and rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Pieces of which one table is read, into one file."""

    table: str
    pieces: Sequence[Piece]

    @property
    def bytes(self) -> int:
        return sum(piece.bytes for piece in self.pieces)

    def as_json(self) -> dict[str, object]:
        return {"table": self.table, "pieces": [piece.as_json() for piece in self.pieces]}

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> "Part":
        return cls(table=told["table"], pieces=[Piece(**piece) for piece in told["pieces"]])


def copy(
    spark: "SparkSession",
    pieces: Mapping[Table, Sequence[Piece]],
    places: Mapping[Table, Path],
    slots: int,
) -> dict[Table, int]:
    """Into Parquet files in these directories; how many rows each table has got."""
    tasks = tasks_for(pieces, slots)
    if not tasks:
        return {}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    told_of = _told_of(tasks)
    work = _writer({table.name: str(place) for table, place in places.items()})
    files = {piece.path: piece.bytes for some in pieces.values() for piece in some}
    if sum(files.values()) < COPIED_HERE_BYTES or is_here(spark):
        told = _here(work, told_of)
    else:
        told = _by_workers(spark, work, told_of)
    rows = dict.fromkeys(pieces, 0)
    known = {file for _, file, _ in told}
    for table_name, _, count in told:
        rows[TABLES_BY_NAME[table_name]] += count
    for place in places.values():
        for file in place.iterdir():
            if file.name not in known:
                file.unlink()
    return rows


def _told_of(tasks: Sequence[Sequence[Part]]) -> pa.Table:
    """A row for each task: its number, and its parts as JSON."""
    parts = [json.dumps([part.as_json() for part in task]) for task in tasks]
    return pa.table({_NUMBER: range(len(tasks)), "parts": parts}, _TOLD_OF)


def _here(work: _Work, told_of: pa.Table) -> list[_Told]:
    """Without Spark, whose workers take seconds to start; the driver sees the files as they do."""
    told = pa.Table.from_batches(work(iter(told_of.to_batches())), _WRITTEN_ARROW)
    return list(zip(*(column.to_pylist() for column in told.columns), strict=True))


def _by_workers(spark: "SparkSession", work: _Work, told_of: pa.Table) -> list[_Told]:
    """Only ``range`` deals rows out one by one; and what a number stands for stays in Java."""
    numbers = spark.range(0, told_of.num_rows, 1, told_of.num_rows).toDF(_NUMBER)
    tasks = numbers.join(F.broadcast(spark.createDataFrame(told_of)), _NUMBER)
    return list(map(tuple, tasks.mapInArrow(work, _WRITTEN).collect()))


def tasks_for(pieces: Mapping[Table, Sequence[Piece]], slots: int) -> list[list[Part]]:
    """Which parts each task writes: a large one alone, small ones together."""
    tasks: list[list[Part]] = []
    few: list[Part] = []
    for table, all_of_it in pieces.items():
        if sum(piece.bytes for piece in all_of_it) < SMALL_BYTES:
            few += [Part(table=table.name, pieces=group) for group in pack(all_of_it, 1)]
        else:
            groups = pack(all_of_it, slots)
            tasks += [[Part(table=table.name, pieces=group)] for group in groups]
    if few:
        tasks.append(few)
    return sorted(tasks, key=lambda parts: -sum(part.bytes for part in parts))


def _writer(places: Mapping[str, str]) -> _Work:
    def work(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # It keeps memory that the next block needs again; the usual one gives it back meanwhile.
        with suppress(NotImplementedError):  # Not every system's Arrow has it.
            pa.set_memory_pool(pa.jemalloc_memory_pool())
        for task in (row for batch in tasks for row in batch.to_pylist()):
            for part in map(Part.of_json, json.loads(task["parts"])):
                name = f"part-{task[_NUMBER]:05}-{uuid.uuid4().hex}.parquet"
                rows = write_part(part, Path(places[part.table]) / name)
                told = {"table_name": [part.table], "file": [name], "rows": [rows]}
                yield pa.RecordBatch.from_pydict(told, schema=_WRITTEN_ARROW)

    return work


def write_part(part: Part, path: Path) -> int:
    """How many rows there were."""
    table = TABLES_BY_NAME[part.table]
    rows = waiting_rows = 0
    waiting: list[pa.RecordBatch] = []
    schema = arrow_rows.batch_schema(table)
    few = [c.name for c in table.columns if c.type in {Type.INT16, Type.INT32}]
    few += [*arrow_rows.repeating_texts(table), PROBLEM, FILE]
    options = {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": few,
        "write_statistics": few,  # Between the least id and the greatest lie all others.
        "store_schema": False,  # Else they are dictionaries for whoever reads them, too.
    }
    with pq.ParquetWriter(path, schema, **options) as file:

        def write() -> None:
            if waiting:
                # A second dictionary in a row group would leave the rest of it without one.
                whole = pa.Table.from_batches(waiting, schema).unify_dictionaries()
                file.write_table(whole, ROW_GROUP_ROWS)
                waiting.clear()

        for piece in part.pieces:
            for batch in read_piece(piece, table):
                waiting.append(batch)
                rows += batch.num_rows
                waiting_rows += batch.num_rows
                if waiting_rows >= ROW_GROUP_ROWS:
                    write()
                    waiting_rows = 0
        write()
    return rows
