"""Spark's data source ``causerie_delivery``: participants' logs and exports, batch and stream.

Options: ``path`` (or ``paths``, a JSON list): files and directories; ``table``: one of the
contract's, ``delivery_event`` unless named, or ``log``: one row for each file, whose it is and how
far it goes; ``pieces``: a JSON list of ``Piece``s, when somebody has chosen what to read already;
``slots``: how many tasks run at once.

Rows have the contract's columns and ``problem`` (none: the row keeps to the contract) and ``file``.
A file that cannot be read, or not to its end, is one row with the problem ``file.<reason>``;
nothing that stands in a file makes a job fail.  A stream's offset is the last ``seq`` of each log,
by its ``log_id`` and not by its path, so that copies of a log are read as one, and a killed query
goes on where its checkpoint says.  An export has no such number: it is read anew when it changed.
"""

import json
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict

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

    def __getstate__(self) -> dict[str, object]:
        return _without_pieces(self)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        pieces = partition.pieces if isinstance(partition, Pieces) else []
        for piece in pieces:
            for batch in read_piece(piece, self._table):
                yield arrow_rows.plain(batch, self._table)


def _without_pieces(reader: DataSourceReader) -> dict[str, object]:
    """What goes to each task, with that one's own pieces: all of them are for who plans."""
    return {**vars(reader), "_pieces": ()}


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

    def __getstate__(self) -> dict[str, object]:
        return _without_pieces(self)

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


Offset: TypeAlias = dict[str, int | str]
_OF_LOG: Final = "log:"
_OF_FILE: Final = "file:"


class DeliveryStreamReader(DataSourceStreamReader):
    """Offsets: of a log by its id the last ``seq`` that was read; of an export, what it was."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._options = dict(options)
        self._slots = _slots(options)

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {}

    def latestOffset(self, start: Offset, limit: object) -> Offset:  # noqa: ARG002, N802 - Spark's signature
        found = {key: last for key, (last, _) in _found(_pieces(self._options)).items()}
        return {**start, **{key: _later(start.get(key), last) for key, last in found.items()}}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        found = _found(_pieces(self._options))
        wanted: list[Piece] = []
        for key, stop in sorted(end.items()):
            _, piece = found.get(key, (0, None))
            begin = start.get(key, 0)
            if piece is None or begin == stop:
                continue
            if isinstance(stop, int) and isinstance(begin, int):
                part = Piece(path=piece.path, kind=LOG, bytes=piece.bytes, after_seq=begin)
                wanted += sliced(part, stop)
            else:
                wanted.append(piece)
        return [Pieces(group) for group in pack(wanted, self._slots)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        pieces = partition.pieces if isinstance(partition, Pieces) else []
        for piece in pieces:
            for batch in read_piece(piece, DELIVERY_EVENT):
                yield arrow_rows.plain(batch, DELIVERY_EVENT)

    def commit(self, end: Offset) -> None:
        """Nothing is kept but what the checkpoint holds."""

    def stop(self) -> None:
        """Nothing is open between batches."""


def _found(pieces: Sequence[Piece]) -> dict[str, tuple[int | str, Piece]]:
    """How far each log and export goes, and in which file; of copies it is the longest.

    A log that cannot be read now is tried again at the next batch.
    """
    found: dict[str, tuple[int | str, Piece]] = {}
    for piece in pieces:
        if piece.kind != LOG:
            found[_OF_FILE + piece.path] = (_changed(Path(piece.path)), piece)
            continue
        try:
            with LogReader(Path(piece.path)) as log:
                key, last = _OF_LOG + log.header.log_id, log.last_seq()
        except DeliveryLogError:
            continue
        before, _ = found.get(key, (-1, piece))
        if isinstance(before, int) and last > before:
            found[key] = (last, piece)
    return found


def _later(before: int | str | None, now: int | str) -> int | str:
    """Of a log whose longest copy is gone, what was read of it stays read."""
    return max(before, now) if isinstance(before, int) and isinstance(now, int) else now
