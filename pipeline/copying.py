"""Rows of logs and exports into Parquet, by Spark's tasks, without passing through Java.

Handing every row to Java, to be written there, costs more than reading and checking it: so a task
reads its pieces as ``pipeline.sources.delivery`` does and writes what it has read with Arrow.  Back
come one line for each file that it wrote.  A task that is started a second time writes files of
other names, and whatever nobody told of is removed before the directory counts; the place has to be
one that all workers share, as for whatever else Spark writes.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.delivery.contract import TABLES_BY_NAME, Table
from pipeline.sources import arrow_rows
from pipeline.sources.delivery import read_piece
from pipeline.sources.files import Piece, pack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_GROUP_ROWS: Final = 200_000
SMALL_BYTES: Final = 4 * 1024 * 1024
"""Less than this is not worth a task of its own."""
_WRITTEN: Final = "table_name string, file string, rows bigint"
_WRITTEN_ARROW: Final = pa.schema(
    [("table_name", pa.string()), ("file", pa.string()), ("rows", pa.int64())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Pieces of which one table is read, into one file."""

    table: str
    pieces: Sequence[Piece]

    @property
    def bytes(self) -> int:
        return sum(piece.bytes for piece in self.pieces)


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
    work = _writer(tasks, {table.name: str(place) for table, place in places.items()})
    told = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, _WRITTEN).collect()
    rows = dict.fromkeys(pieces, 0)
    known = {row["file"] for row in told}
    for row in told:
        rows[TABLES_BY_NAME[row["table_name"]]] += row["rows"]
    for place in places.values():
        for file in place.iterdir():
            if file.name not in known:
                file.unlink()
    return rows


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


def _writer(
    tasks: Sequence[Sequence[Part]], places: Mapping[str, str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for part in tasks[number]:
                    name = f"part-{number:05}-{uuid.uuid4().hex}.parquet"
                    rows = write_part(part, Path(places[part.table]) / name)
                    told = {"table_name": [part.table], "file": [name], "rows": [rows]}
                    yield pa.RecordBatch.from_pydict(told, schema=_WRITTEN_ARROW)

    return work


def write_part(part: Part, path: Path) -> int:
    """How many rows there were."""
    table = TABLES_BY_NAME[part.table]
    rows = waiting_rows = 0
    waiting: list[pa.RecordBatch] = []
    schema = arrow_rows.source_schema(table)
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as file:

        def write() -> None:
            if waiting:
                file.write_table(pa.Table.from_batches(waiting, schema), ROW_GROUP_ROWS)
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
