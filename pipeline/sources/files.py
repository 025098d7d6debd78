"""Which files there are to read, what each is, and how many go into one partition.

A participant's delivery log is a SQLite file; exports are Parquet or JSON lines, whose columns tell
which table they hold.  Logs are many and mostly small: one for each task would cost six times as
much as the reading, so small ones are packed together and a large one is cut by ``seq``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from engine.delivery.contract import TABLES, Table
from engine.delivery.sqlite_log import SUFFIX

LOG: Final = "log"
PARQUET: Final = "parquet"
JSONL: Final = "jsonl"
SUFFIXES: Final = {SUFFIX: LOG, ".parquet": PARQUET, ".jsonl": JSONL}

LOGS_PER_PARTITION: Final = 50
BYTES_PER_PARTITION: Final = 64 * 1024 * 1024
ROWS_PER_SLICE: Final = 500_000
BYTES_PER_ROW: Final = 200
"""About what an event takes in a log file."""
LEAST_BYTES_PER_ROW: Final = 16
"""Less takes none: a file says what it likes about its last ``seq``, but not about its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A file, or the events of a log with ``after_seq < seq <= through_seq``."""

    path: str
    kind: str
    bytes: int = 0
    after_seq: int = 0
    through_seq: int | None = None

    def as_json(self) -> dict[str, str | int | None]:
        return asdict(self)


def kind_of(path: Path) -> str | None:
    return next((kind for suffix, kind in SUFFIXES.items() if path.name.endswith(suffix)), None)


def find_pieces(places: Iterable[Path]) -> list[Piece]:
    """Files themselves and whatever lies below directories, sorted, each once.

    A named file of another kind is taken for a log, so that it is reported and not passed over.
    """
    found: dict[str, Piece] = {}
    for place in places:
        for path in _files(place):
            kind = kind_of(path) or LOG
            size = path.stat().st_size if path.exists() else 0
            found[str(path)] = Piece(path=str(path), kind=kind, bytes=size)
    return [found[path] for path in sorted(found)]


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    return [path for path in place.rglob("*") if kind_of(path) and not _is_hidden(path, place)]


def _is_hidden(path: Path, place: Path) -> bool:
    """Spark's and our own unfinished files begin so."""
    return any(part.startswith((".", "_")) for part in path.relative_to(place).parts)


def sliced(piece: Piece, last_seq: int) -> list[Piece]:
    """A log's events up to ``last_seq``, in slices of about equal length."""
    count = max(0, last_seq - piece.after_seq)
    if not count:
        return []
    slices = min(
        -(-count // ROWS_PER_SLICE), 1 + piece.bytes // (ROWS_PER_SLICE * LEAST_BYTES_PER_ROW)
    )
    bounds = [piece.after_seq + count * at // slices for at in range(slices + 1)]
    return [
        replace(piece, after_seq=low, through_seq=high, bytes=(high - low) * BYTES_PER_ROW)
        for low, high in pairwise(bounds)
    ]


def pack(pieces: Sequence[Piece], slots: int) -> list[list[Piece]]:
    """Into few groups of about equal size: the largest first, each to the smallest group."""
    total = sum(piece.bytes for piece in pieces)
    wanted = max(
        -(-total // BYTES_PER_PARTITION), -(-len(pieces) // LOGS_PER_PARTITION), min(slots, 64)
    )
    groups: list[list[Piece]] = [[] for _ in range(min(wanted, len(pieces)))]
    sizes = [0] * len(groups)
    for piece in sorted(pieces, key=lambda piece: -piece.bytes):
        smallest = min(range(len(groups)), key=lambda at: (sizes[at], len(groups[at])))
        groups[smallest].append(piece)
        sizes[smallest] += piece.bytes + BYTES_PER_ROW * 100
    return groups


def table_of(names: Iterable[str]) -> Table | None:
    """The table whose columns these are; those that may be null may be left out."""
    there = set(names)
    fitting = [table for table in TABLES if there >= table.needed]
    return max(fitting, key=lambda table: len(table.columns), default=None)
