"""Spark's data source ``causerie_delivery``: participants' logs and exports, batch and stream.

Options: ``path`` (or ``paths``, a JSON list): files and directories; ``table``: one of the
contract's, ``delivery_event`` unless named, or ``log``: one row for each file, whose it is and how
far it goes; ``pieces``: a JSON list of ``Piece``s, when somebody has chosen what to read already;
``slots``: how many tasks run at once.

Rows have the contract's columns and ``problem`` (none: the row keeps to the contract) and ``file``.
A file that cannot be read, or not to its end, is one row with the problem ``file.<reason>``;
nothing that stands in a file makes a job fail.  A stream's offset is the last ``seq`` of each log,
so what was read once is never read again, and a killed query goes on where its checkpoint says.
"""

import json
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from engine.delivery.contract import DELIVERY_EVENT, TABLES_BY_NAME, Table
from engine.delivery.sqlite_log import DeliveryLogError, LogReader
from pipeline.sources import arrow_rows, exports, log_text
from pipeline.sources.files import LOG, Piece, find_pieces, pack, sliced

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

FORMAT: Final = "causerie_delivery"
LOG_ROWS: Final = "log"
LOG_ROWS_SCHEMA: Final = (
    "file STRING, kind STRING, bytes BIGINT, changed STRING, log_id STRING, participant STRING,"
    " key_id STRING, app_version STRING, network STRING, created_ms BIGINT, last_seq BIGINT,"
    " problem STRING"
)
_LOG_ROW_NAMES: Final = [field.split()[0] for field in LOG_ROWS_SCHEMA.split(",")]
_OF_HEADER: Final = ("log_id", "participant", "key_id", "app_version", "network")
DEFAULT_SLOTS: Final = 2
FILES_PER_TASK: Final = 200


def register(spark: "SparkSession") -> None:
    """So that ``spark.read.format("causerie_delivery")`` is known; again does no harm."""
    spark.dataSource.register(DeliverySource)


class Pieces(InputPartition):
    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(None)
        self.pieces = list(pieces)


class DeliverySource(DataSource):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._table = options.get("table", DELIVERY_EVENT.name)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> "StructType | str":
        if self._table == LOG_ROWS:
            return LOG_ROWS_SCHEMA
        return source_schema(_table_named(self._table))

    def reader(self, schema: "StructType") -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        if self._table == LOG_ROWS:
            return LogRowsReader(self.options)
        return DeliveryReader(self.options, _table_named(self._table))

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's signature
        if self._table != DELIVERY_EVENT.name:
            raise ValueError(f"only {DELIVERY_EVENT.name} can be read as a stream")
        return DeliveryStreamReader(self.options)


def source_schema(table: Table) -> "StructType":
    """As ``arrow_rows.source_schema``."""
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415

    from pipeline.schema import spark_schema  # noqa: PLC0415

    fields = [
        StructField(field.name, field.dataType, nullable=True) for field in spark_schema(table)
    ]
    more = [StructField(name, StringType()) for name in (arrow_rows.PROBLEM, arrow_rows.FILE)]
    return StructType([*fields, *more])


def _table_named(name: str) -> Table:
    if name not in TABLES_BY_NAME:
        raise ValueError(f"no such table: {name}; there are {', '.join(TABLES_BY_NAME)}, log")
    return TABLES_BY_NAME[name]


def _pieces(options: MutableMapping[str, str]) -> list[Piece]:
    if (chosen := options.get("pieces")) is not None:
        return [Piece(**piece) for piece in json.loads(chosen)]
    places = json.loads(options["paths"]) if "paths" in options else [options["path"]]
    return find_pieces(map(Path, places))


def _slots(options: MutableMapping[str, str]) -> int:
    return int(options.get("slots", DEFAULT_SLOTS))


# --- batch ----------------------------------------------------------------------------------------


class DeliveryReader(DataSourceReader):
    def __init__(self, options: MutableMapping[str, str], table: Table) -> None:
        self._pieces = _pieces(options)
        self._slots = _slots(options)
        self._table = table

    def partitions(self) -> Sequence[InputPartition]:
        pieces: list[Piece] = []
        for piece in self._pieces:
            is_whole = piece.kind == LOG and piece.through_seq is None
            if is_whole and self._table is DELIVERY_EVENT and len(self._pieces) < FILES_PER_TASK:
                pieces += _cut(piece)
            else:
                pieces.append(piece)
        # Spark asks for at least one.
        return [Pieces(group) for group in pack(pieces, self._slots)] or [Pieces(())]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        pieces = partition.pieces if isinstance(partition, Pieces) else []
        for piece in pieces:
            yield from read_piece(piece, self._table)


def _cut(piece: Piece) -> list[Piece]:
    """A log that cannot be read stays whole: its reader says why."""
    try:
        with LogReader(Path(piece.path)) as log:
            return sliced(piece, log.last_seq())
    except DeliveryLogError:
        return [piece]


def read_piece(piece: Piece, table: Table) -> Iterator["pa.RecordBatch"]:
    """Never raises for what stands in a file."""
    try:
        if piece.kind == LOG:
            yield from _log_batches(piece, table)
        else:
            yield from exports.batches(piece, table)
    except (DeliveryLogError, exports.ExportError) as error:
        if table is DELIVERY_EVENT or not isinstance(error, exports.ExportError):
            yield arrow_rows.refused(table, piece.path, f"file.{error.reason}")


class _Bounds(TypedDict):
    after_seq: int
    through_seq: int | None


def _log_batches(piece: Piece, table: Table) -> Iterator["pa.RecordBatch"]:
    if table.name not in _IN_LOGS:
        return
    own = [column.name for column in table.row_columns]
    with LogReader(Path(piece.path)) as log:
        header = {c.name: log.header.value(c.name) for c in table.columns if c.per_log}
        bounds: _Bounds = {"after_seq": piece.after_seq, "through_seq": piece.through_seq}
        with log.one_moment():
            done = 0
            for columns in log_text.blocks(log, table, **bounds):
                batch = arrow_rows.of_columns(table, columns, piece.path, header)
                done += batch.num_rows
                yield batch
            for rows in log.batches(table, own, **bounds, passed_over=done):
                yield arrow_rows.batch_of(table, rows, piece.path, header)


_IN_LOGS: Final = {"delivery_event", "log_snapshot", "message", "membership"}


# --- which logs -----------------------------------------------------------------------------------


class LogRowsReader(DataSourceReader):
    """One row for each file: what a later reading is planned with."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._pieces = _pieces(options)
        self._slots = _slots(options)

    def partitions(self) -> Sequence[InputPartition]:
        groups = max(min(self._slots, len(self._pieces)), -(-len(self._pieces) // FILES_PER_TASK))
        return [Pieces(self._pieces[at::groups]) for at in range(groups)] or [Pieces(())]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        pieces = partition.pieces if isinstance(partition, Pieces) else []
        for piece in pieces:
            yield tuple(log_row(piece).values())


def log_row(piece: Piece) -> dict[str, str | int | None]:
    """A row of ``LOG_ROWS_SCHEMA``."""
    row: dict[str, str | int | None] = dict.fromkeys(_LOG_ROW_NAMES)
    row |= {"file": piece.path, "kind": piece.kind, "bytes": piece.bytes}
    row["changed"] = _changed(Path(piece.path))
    try:
        if piece.kind != LOG:
            exports.table_in(piece)
            return row
        with LogReader(Path(piece.path)) as log:
            header = log.header
            row |= {name: header.value(name) for name in _LOG_ROW_NAMES if name in _OF_HEADER}
            row |= {"created_ms": header.created_ms, "last_seq": log.last_seq()}
    except (DeliveryLogError, exports.ExportError) as error:
        row |= dict.fromkeys(_OF_HEADER)
        row["problem"] = f"file.{error.reason}"
    return row


def _changed(path: Path) -> str:
    """Another text as soon as somebody wrote to the file or to its write-ahead log."""
    marks = []
    for name in (path, path.with_name(path.name + "-wal")):
        try:
            found = name.stat()
            marks.append(f"{found.st_size}@{found.st_mtime_ns}" if found.st_size else "-")
        except OSError:
            marks.append("-")
    return " ".join(marks)


# --- stream ---------------------------------------------------------------------------------------


class DeliveryStreamReader(DataSourceStreamReader):
    """Offsets: path -> last ``seq`` that was read; of an export -> 1 once it was."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._options = dict(options)
        self._slots = _slots(options)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # noqa: ARG002, N802 - Spark's signature
        end = dict(start)
        for piece in _pieces(self._options):
            if piece.kind == LOG:
                end[piece.path] = max(start.get(piece.path, 0), _last_seq(piece))
            else:
                end[piece.path] = 1
        return end

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        wanted: list[Piece] = []
        for piece in _pieces({**self._options, "paths": json.dumps(sorted(end))}):
            begin, stop = start.get(piece.path, 0), end.get(piece.path, 0)
            if piece.kind != LOG:
                wanted += [] if begin else [piece]
            elif stop > begin:
                part = Piece(path=piece.path, kind=LOG, bytes=piece.bytes, after_seq=begin)
                wanted += sliced(part, stop)
        return [Pieces(group) for group in pack(wanted, self._slots)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        pieces = partition.pieces if isinstance(partition, Pieces) else []
        for piece in pieces:
            yield from read_piece(piece, DELIVERY_EVENT)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept but what the checkpoint holds."""

    def stop(self) -> None:
        """Nothing is open between batches."""


def _last_seq(piece: Piece) -> int:
    """0 of a log that cannot be read now: it is tried again at the next batch."""
    try:
        with LogReader(Path(piece.path)) as log:
            return log.last_seq()
    except DeliveryLogError:
        return 0
