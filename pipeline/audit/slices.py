"""Silver tables read by tasks themselves, a row group at a time, without passing through Java.

Java would compile a loop for each question, hand rows over one by one, and take several times as
long as reading them does.  Arrow decodes a row group's columns as they lie.  The place has to be
one that all workers share, as for whatever else the lake holds.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heapify, heapreplace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.tables import LakeError

ROWS_OF_BATCH: Final = 2**17
ROWS_OF_TASK: Final = 1_000_000
LEAST_TASKS: Final = 4
_NAMES: Final = ("channel", "participant")
"""Of few different values: told by their place among these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where silver tables are: Parquet files, or directories of them, that all workers see."""

    entry: Path
    message: Path
    member: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A row group of a file of the table ``entry`` or, if ``is_message``, of ``message``."""

    number: int
    path: str
    row_group: int
    rows: int
    is_message: bool


def slices_of(places: Places) -> list[Slice]:
    """Of entries and of messages.  Raises LakeError."""
    found: list[Slice] = []
    for place, is_message in ((places.entry, False), (places.message, True)):
        for path in files(place):
            with _named(path):
                metadata = pq.read_metadata(path)
            for group in range(metadata.num_row_groups):
                rows = metadata.row_group(group).num_rows
                if rows:
                    one = Slice(
                        number=len(found),
                        path=str(path),
                        row_group=group,
                        rows=rows,
                        is_message=is_message,
                    )
                    found.append(one)
    return found


def members(places: Places) -> pa.Table:
    """Raises LakeError."""
    tables = []
    for path in files(places.member):
        with _named(path):
            tables.append(pq.read_table(path))
    if not tables:
        raise LakeError(f"{places.member} holds no table; remove the directory silver")
    return pa.concat_tables(tables)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Raises LakeError."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise LakeError(
            f"{path} cannot be read: {error}; remove the directory silver, it is made anew"
        ) from error


def files(place: Path) -> list[Path]:
    """What Spark would read there: names with a dot or line before them are unfinished."""
    if not place.is_dir():
        return [place]
    return sorted(path for path in place.glob("*.parquet") if not path.name.startswith((".", "_")))


def dealt(found: Sequence[Slice]) -> list[list[Slice]]:
    """What each task reads: the largest first, each to the task that has least."""
    rows = sum(one.rows for one in found)
    tasks = max(1, min(len(found), max(LEAST_TASKS, rows // ROWS_OF_TASK)))
    hands: list[list[Slice]] = [[] for _ in range(tasks)]
    least = [(0, number) for number in range(tasks)]
    heapify(least)
    for one in sorted(found, key=lambda one: -one.rows):
        load, number = least[0]
        hands[number].append(one)
        heapreplace(least, (load + one.rows, number))
    return hands


def batches(one: Slice, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Raises LakeError."""
    names = [name for name in _NAMES if name in columns]
    with _named(Path(one.path)), pq.ParquetFile(one.path, read_dictionary=names) as file:
        yield from file.iter_batches(
            ROWS_OF_BATCH, row_groups=[one.row_group], columns=list(columns), use_threads=False
        )
