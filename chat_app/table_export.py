"""Tables of the contract as files in a directory: JSON lines here, Parquet by the pipeline's extra.

The directory appears whole or not at all.  In JSON lines bytes are lower-case hex, and lists are
lists.  The desktop knows neither Arrow nor the pipeline: the module that writes Parquet is looked
up by name, and where it or Arrow is not installed the user is told how to get them.
"""

import importlib
import importlib.util
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, TextIO

from engine.core.errors import ConfigError
from engine.delivery.contract import Table

PARQUET_MODULE: Final = "pipeline.parquet_table"
NEEDS_EXTRA: Final = (
    "--format parquet: needs the extra \"pipeline\": pip install 'causerie[pipeline]'; or take"
    " --format jsonl"
)

Row = Sequence[object]


class TableFile(Protocol):
    """Rows of one table, in the order of its columns."""

    def write(self, rows: Sequence[Row], /) -> None: ...

    def close(self) -> None: ...


class JsonLines:
    def __init__(self, path: Path, table: Table) -> None:
        self._names = table.names
        self._file: TextIO = path.open("x", encoding="utf-8", newline="\n")

    def write(self, rows: Sequence[Row], /) -> None:
        for row in rows:
            line = {n: _plain(v) for n, v in zip(self._names, row, strict=True) if v is not None}
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.close()


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def formats_here() -> tuple[str, ...]:
    """What this installation can write, by what is installed; nothing is loaded for it."""
    parts = (PARQUET_MODULE.partition(".")[0], "pyarrow")
    has_parquet = all(importlib.util.find_spec(part) is not None for part in parts)
    return ("parquet", "jsonl") if has_parquet else ("jsonl",)


def writer_of(format_: str) -> Callable[[Path, Table], TableFile]:
    """Raises ConfigError where that format cannot be written."""
    if format_ == "jsonl":
        return JsonLines
    try:
        make: Callable[[Path, Table], TableFile]
        make = importlib.import_module(PARQUET_MODULE).ParquetTable
        importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigError(NEEDS_EXTRA) from error
    return make


def check_place(out: Path) -> None:
    """Raises ConfigError if nothing can be made there."""
    if out.exists():
        raise ConfigError(f"--out {out}: is there already; name a directory that is not")


def export_tables(
    out: Path, format_: str, tables: Mapping[Table, Iterable[Sequence[Row]]]
) -> dict[str, int]:
    """Write each table's batches; how many rows each has.  Raises ConfigError."""
    make = writer_of(format_)
    check_place(out)
    try:
        return write_tables(out, format_, make, tables)
    except OSError as error:
        raise unwritable(out, error) from error


def unwritable(out: Path, error: OSError) -> ConfigError:
    return ConfigError(f"--out {out}: cannot be written: {error.strerror}")


def write_tables(
    out: Path,
    format_: str,
    make: Callable[[Path, Table], TableFile],
    tables: Mapping[Table, Iterable[Sequence[Row]]],
) -> dict[str, int]:
    """Likewise; raises OSError.  Whatever it raises, nothing is left behind."""
    fresh = out.with_name(out.name + ".partial")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700, parents=True)
        counts = {
            table.name: _write(make(fresh / f"{table.name}.{format_}", table), batches)
            for table, batches in tables.items()
        }
        fresh.replace(out)
    finally:
        with suppress(OSError):
            shutil.rmtree(fresh, ignore_errors=True)
    return counts


def _write(file: TableFile, batches: Iterable[Sequence[Row]]) -> int:
    count = 0
    try:
        for batch in batches:
            file.write(batch)
            count += len(batch)
    finally:
        file.close()
    return count
