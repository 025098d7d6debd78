"""Tables as directories of Parquet on a disk, for which Spark needs nothing more.

A table is a list of *parts*, directories that never change; each run adds one.  To replace the rows
of some keys, the run's part holds the new ones, and the older parts are told which keys of theirs
count no more.  Many small parts are put together, all but the largest, so that reading stays quick
and what is copied stays in proportion to what was written.  What is all of another table's rows is
not written again: it names the parts of that.  Rows that are here already are written here, by
Arrow, and in a session for little input few rows are read here, too: Spark's own way takes tasks,
and most of their time.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from pipeline.paths import to_read
from pipeline.session import is_here, is_small
from pipeline.tables import AREAS, RUN, Head, Json, Part, Told

NAME: Final = "parquet"
MOST_PARTS: Final = 8
MOST_KEYS: Final = 2_000
"""So many at most count no more in a part, before it is written anew without them."""
FEW_ROWS: Final = 1_000_000
"""Not more than so many are written here."""
FEW_BYTES: Final = 64 * 1024
"""Not more than so many are read here: they go to each task anew, and files need not."""


@dataclass(frozen=True, slots=True)
class ParquetTables:
    root: Path
    spark: SparkSession

    def read(self, name: str, told: Told) -> DataFrame:
        schema = StructType.fromJson(dict(_mapping(told["schema"])))
        return self._of_parts(name, _parts(told), schema)

    def add(self, name: str, rows: DataFrame, told: Told | None, run: str) -> Told:
        return self._with(name, rows, _parts(told), run, told)

    def replace(
        self, name: str, rows: DataFrame | pa.Table, told: Told | None, run: str, part: Part | None
    ) -> Told:
        if part is None or told is None:
            return self._with(name, rows, [], run, None)
        return self._with(name, rows, [_without(one, part) for one in _parts(told)], run, told)

    def few_rows(self, name: str, told: Told, columns: Sequence[str]) -> pa.Table | None:
        """These columns, in a session for little input; columns that are not there are null."""
        parts = _parts(told)
        if not is_small(self.spark) or sum(map(_rows, parts)) > FEW_ROWS:
            return None
        if any(map(_is_special, parts)):
            return None
        schema = StructType.fromJson(dict(_mapping(told["schema"])))
        there = {field.name: field for field in schema}
        wanted = StructType([there.get(n, StructField(n, StringType())) for n in columns])
        place = self.root / name
        paths = (place / str(part["place"]) for part in parts)
        files = [file for path in paths for file in sorted(path.rglob("*.parquet"))]
        return _dataset(files, place, wanted).to_table() if files else None

    def settle(self, head: Head) -> None:
        self.forget(head, head)

    def forget(self, head: Head, before: Head) -> None:
        """The parts of the head before this one stay for those who are reading them."""
        for place in (path for area in AREAS for path in (self.root / area).glob("*")):
            name = str(place.relative_to(self.root))
            kept = {
                str(part["place"])
                for tables in (head.tables, before.tables)
                for part in _parts(tables.get(name))
            }
            if (place / "_delta_log").exists():
                continue
            for path in place.iterdir() if place.is_dir() else ():
                if path.is_dir() and path.name not in kept:
                    shutil.rmtree(path, ignore_errors=True)

    @staticmethod
    def shared(of: str, told: Told, schema: StructType, run: str) -> Told:
        """All rows of another table, and some of its columns, where they lie."""
        parts = [{**part, "table": of, "run": run} for part in _parts(told)]
        return _told(StructType([*schema]).add(RUN, "string"), parts, rows_of(told))

    @staticmethod
    def adopt(place: str, schema: StructType, rows: int, told: Told | None) -> Told:
        """A directory that somebody else has filled, in the table's own, becomes a part of it."""
        parts: list[Told] = [*_parts(told), {"place": place, "rows": rows}]
        return _told(_widest(told, schema), parts, rows)

    def place(self, name: str, part: str) -> Path:
        """Where a part is, or is to be."""
        return self.root / name / part

    def _with(
        self,
        name: str,
        rows: DataFrame | pa.Table,
        before: Sequence[Told],
        run: str,
        told: Told | None,
    ) -> Told:
        if isinstance(rows, pa.Table):
            rows = rows.append_column(RUN, pa.repeat(run, rows.num_rows))
            new = from_arrow_schema(rows.schema)
        else:
            rows = rows.withColumn(RUN, F.lit(run))
            new = rows.schema
        added = self._written(name, rows, run)
        parts = [*before, *([added] if added["rows"] else [])]
        schema = _widest(told, new)
        few = max(parts, key=_rows, default=None)
        if few is not None and (len(parts) > MOST_PARTS or any(map(_is_full, parts))):
            kept = [] if _is_full(few) else [few]
            together = self._of_parts(name, [part for part in parts if part not in kept], schema)
            parts = [*kept, self._written(name, together, run)]
        return _told(schema, parts, _rows(added))

    def _written(self, name: str, rows: DataFrame | pa.Table, run: str) -> Told:
        """A new part."""
        number = sum(1 for _ in (self.root / name).glob(f"{run}*"))
        place = self.place(name, f"{run}-{number}")
        if isinstance(rows, pa.Table):
            _write_here(rows, place)
        elif not (is_small(self.spark) and _is_written_here(rows, place)):
            rows.write.parquet(str(place))
        files = place.rglob("*.parquet")
        return {
            "place": place.name,
            "rows": sum(pq.read_metadata(file).num_rows for file in files),
        }

    def _of_parts(self, name: str, parts: Sequence[Told], schema: StructType) -> DataFrame:
        whole = [part for part in parts if not _is_special(part)]
        found = [self._files(name, whole, schema)] if whole else []
        for part in parts:
            if _is_special(part):
                rows = self._files(str(part.get("table", name)), [part], schema)
                if "table" in part:
                    rows = rows.withColumn(RUN, F.lit(part["run"])).select(*schema.names)
                for by, keys in _mapping(part.get("without")).items():
                    is_gone = F.coalesce(F.col(by).isin(list(_texts(keys))), F.lit(False))
                    rows = rows.where(~is_gone)
                found.append(rows)
        return reduce(DataFrame.unionByName, found) if found else nothing(self.spark, schema)

    def _files(self, name: str, parts: Sequence[Told], schema: StructType) -> DataFrame:
        place = self.root / name
        paths = [str(place / str(part["place"])) for part in parts]
        if is_small(self.spark) and not is_here(self.spark):
            files = [file for path in paths for file in sorted(Path(path).rglob("*.parquet"))]
            if sum(file.stat().st_size for file in files) <= FEW_BYTES:
                return _read_here(self.spark, files, place, schema)
        return (
            self.spark.read.schema(schema)
            .option("basePath", str(place))
            .parquet(*map(to_read, paths))
        )


def _is_written_here(rows: DataFrame, place: Path) -> bool:
    """False, and nothing is written, if they are too many."""
    few = rows.limit(FEW_ROWS + 1).toArrow()
    if few.num_rows > FEW_ROWS:
        return False
    _write_here(few, place)
    return True


def _write_here(rows: pa.Table, place: Path) -> None:
    place.mkdir(parents=True)
    pq.write_table(rows, place / "part-0.parquet", compression="zstd")


def _read_here(
    spark: SparkSession, files: Sequence[Path], place: Path, schema: StructType
) -> DataFrame:
    """As Spark reads them."""
    wanted = StructType([StructField(one.name, one.dataType) for one in schema])
    return spark.createDataFrame(_dataset(files, place, wanted).to_table(), wanted)


def _dataset(files: Sequence[Path], place: Path, wanted: StructType) -> pyarrow.dataset.Dataset:
    """Columns by name, or by the name of a directory; else there are nulls."""
    return pyarrow.dataset.dataset(
        list(map(str, files)),
        schema=to_arrow_schema(wanted),
        format="parquet",
        partitioning="hive",
        partition_base_dir=str(place),
    )


def nothing(spark: SparkSession, schema: StructType) -> DataFrame:
    """Known to be empty when a query is planned, so whatever only it feeds is left out."""
    nulls = (F.lit(None).cast(field.dataType).alias(field.name) for field in schema)
    return spark.range(0).select(*nulls)


def rows_of(told: Told) -> int:
    """How many there are, if no part is without some."""
    return sum(map(_rows, _parts(told)))


def _told(schema: StructType, parts: Sequence[Told], added: int) -> Told:
    return {"format": NAME, "schema": schema.jsonValue(), "parts": parts, "added": added}


def _widest(told: Told | None, schema: StructType) -> StructType:
    """What was there before, and what is new in ``schema``: older rows have null there."""
    if told is None:
        return schema
    before = StructType.fromJson(dict(_mapping(told["schema"])))
    known = set(before.names)
    return StructType([*before, *(field for field in schema if field.name not in known)])


def _without(one: Told, part: Part) -> Told:
    gone = dict(_mapping(one.get("without")))
    gone[part.by] = sorted({*_texts(gone.get(part.by)), *part.keys})
    return {**one, "without": gone}


def _is_special(part: Told) -> bool:
    """Not all that lies there counts, or it lies with another table."""
    return bool(part.get("without") or part.get("table"))


def _is_full(part: Told) -> bool:
    return sum(len(_texts(keys)) for keys in _mapping(part.get("without")).values()) > MOST_KEYS


def _parts(told: Told | None) -> list[Told]:
    parts = told.get("parts") if told is not None else None
    return [_mapping(part) for part in parts] if isinstance(parts, list | tuple) else []


def _rows(part: Told) -> int:
    rows = part.get("rows")
    return rows if isinstance(rows, int) else 0


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Json) -> Sequence[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []
