"""Where tables lie: ``bronze/`` as they were read, ``silver/`` as asked, ``audit/`` as judged.

The place is a directory, where tables are Parquet unless another format is asked for, or the URL of
an object store or of HDFS, where they are Delta tables.  A *run* has an id, is the only one that
writes, and its rows name it; ``pipeline.tables`` says what readers see meanwhile.  Names and
columns of the silver tables are in docs/pipeline.md.
"""

import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from engine.delivery.contract import Kind, Table
from pipeline.audit import Audited
from pipeline.beside import Answer
from pipeline.paths import on_this_disk
from pipeline.sources.delivery import source_schema
from pipeline.tables import (
    KEPT_RUNS,
    Format,
    Head,
    Json,
    LakeError,
    Part,
    Place,
    Told,
    count_of,
    delta,
    parquet,
)
from pipeline.tables.delta import DeltaTables
from pipeline.tables.hadoop import HadoopPlace
from pipeline.tables.local import LocalPlace
from pipeline.tables.parquet import ParquetTables, nothing

if TYPE_CHECKING:
    import pyarrow as pa

SEGMENT: Final = "segment"
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://")


class Lake:
    """``root``: a directory or a URL.  ``kind``: the format of silver tables, if it was named."""

    def __init__(self, root: Path | str, kind: str | None = None) -> None:
        if isinstance(root, str) and root.startswith("file://"):
            root = unquote(urlsplit(root).path)
        self.is_local = isinstance(root, Path) or not is_url(root)
        self.root = str(root)
        self._kind = kind

    def head(self, spark: SparkSession | None = None) -> Head:
        """Raises LakeError."""
        return self._place(spark).head()

    def silver_state(self) -> Mapping[str, Json]:
        """Of what silver was made; empty if it never was."""
        return _mapping(self.head().facts.get("silver"))

    def takes_spark(self) -> bool:
        """Whether tables are, or shall be, no Parquet in a directory.  Raises LakeError."""
        if not self.is_local or self._kind not in (None, parquet.NAME):
            return True
        return any(told["format"] != parquet.NAME for told in self.head().tables.values())

    def runs(self) -> list[Told]:
        """The newest last: ``id``, ``ended_ms``, ``rows`` by table."""
        return list(self.head().runs)

    def bronze(self, spark: SparkSession, table: Table) -> DataFrame:
        """All rows that were read, bad ones too, with the number of the reading: ``segment``."""
        return bronze_rows(self.head(spark), self._formats(spark), table, spark)

    def silver(self, spark: SparkSession, name: str) -> DataFrame:
        """Raises LakeError if nothing was ingested yet."""
        return self.table(spark, f"silver/{name}")

    def audited(self, spark: SparkSession) -> Audited:
        """What an audit reads.  Raises LakeError."""
        event = self.silver(spark, "event")
        of_channel = event.where("channel IS NOT NULL AND mid IS NOT NULL").select(
            "channel", "participant", "log_id", "seq", "mid", "kind"
        )
        sent_ms = F.coalesce("sent_ms", "lamport")
        return Audited(
            entry=self.silver(spark, "entry"),
            message=self.silver(spark, "message").withColumn("sent_ms", sent_ms),
            member=self.silver(spark, "member"),
            stay=self.silver(spark, "stay"),
            delivered=of_channel.where(F.col("kind") == Kind.DELIVERED.value),
            lost=of_channel.where(F.col("kind") == Kind.LOST.value),
        )

    @property
    def steps(self) -> str:
        """Where an audit keeps what lies between its questions."""
        root = on_this_disk(Path(self.root).absolute()) if self.is_local else self.root
        return f"{root}/steps"

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """By its whole name, such as ``audit/verdicts``.  Raises LakeError if it is not there."""
        told = self.head(spark).tables.get(name)
        if told is None:
            raise LakeError(f"there is nothing in {self.root} yet: run `causerie-pipeline ingest`")
        return self._formats(spark)[str(told["format"])].read(name, told)

    @contextmanager
    def run(self, spark: SparkSession) -> "Iterator[Run]":
        """Raises LakeError, where another process writes for one."""
        place = self._place(spark)
        with place.only_writer():
            head = place.head()
            formats = self._formats(spark)
            kind = self._kind_of(head)
            for one in formats.values():
                one.settle(head)
            yield Run(spark, place, head, formats, kind)

    def _kind_of(self, head: Head) -> str:
        there = next(
            (str(t["format"]) for name, t in head.tables.items() if name.startswith("silver/")),
            None,
        )
        if self._kind is None or there in (None, self._kind):
            return there or self._kind or (parquet.NAME if self.is_local else delta.NAME)
        raise LakeError(
            f"tables in {self.root} are of the format {there}: name another place, or"
            f" --tables {there}"
        )

    def _place(self, spark: SparkSession | None) -> Place:
        if self.is_local:
            return LocalPlace(Path(self.root))
        if self._kind == parquet.NAME:
            raise LakeError(f"{self.root}: plain Parquet needs a directory; leave out --tables")
        found = spark or SparkSession.getActiveSession()
        if found is None or not hasattr(found, "_jsc"):
            raise LakeError(
                f"{self.root}: over Spark Connect tables lie in a directory that the server sees"
            )
        return HadoopPlace(self.root, found)

    def _formats(self, spark: SparkSession) -> Mapping[str, Format]:
        if not self.is_local:
            return {delta.NAME: DeltaTables(self.root, spark)}
        root = Path(self.root).absolute()
        return {
            parquet.NAME: ParquetTables(root, spark),
            delta.NAME: DeltaTables(on_this_disk(root), spark),
        }


def is_url(text: str) -> bool:
    return _URL.match(text) is not None


def bronze_rows(
    head: Head, formats: Mapping[str, Format], table: Table, spark: SparkSession
) -> DataFrame:
    schema = source_schema(table).add(SEGMENT, "integer")
    name = f"bronze/{table.name}"
    told = head.tables.get(name)
    if told is None:
        return nothing(spark, schema)
    found = formats[str(told["format"])].read(name, told)
    return found.select(*schema.names) if set(schema.names) <= set(found.columns) else found


class Run:
    """One run's writing.  Nothing of it is seen before ``commit``, which may be called again."""

    def __init__(
        self,
        spark: SparkSession,
        place: Place,
        head: Head,
        formats: Mapping[str, Format],
        kind: str,
    ) -> None:
        self.id = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"
        self._spark = spark
        self._place = place
        self._seen = self._head = head
        self._formats = formats
        self._kind = kind
        self._rows: dict[str, int] = {}

    @property
    def facts(self) -> Mapping[str, Json]:
        return self._head.facts

    @property
    def directory(self) -> ParquetTables | None:
        """Where files may be written as they are, if this is a directory."""
        found = self._formats.get(parquet.NAME)
        return found if isinstance(found, ParquetTables) else None

    def bronze(self, table: Table) -> DataFrame:
        return bronze_rows(self._head, self._formats, table, self._spark)

    def table(self, name: str) -> DataFrame:
        """With what this run has written."""
        told = self._head.tables[name]
        return self._formats[str(told["format"])].read(name, told)

    def few_rows(self, name: str, columns: Sequence[str]) -> "pa.Table | None":
        """Read in this process, if that is sooner than asking Spark; with nulls for what is not."""
        told = self._head.tables.get(name)
        if told is None or self.directory is None or told["format"] != parquet.NAME:
            return None
        return self.directory.few_rows(name, told, columns)

    def has(self, name: str) -> bool:
        return name in self._head.tables

    def add(self, name: str, rows: DataFrame) -> int:
        """How many there were."""
        told = self._formats[self._kind].add(name, rows, self._head.tables.get(name), self.id)
        return self._keep(name, told)

    def adopt(self, name: str, part: str, schema: StructType, rows: int) -> None:
        """A directory of Parquet that was written below ``directory``."""
        assert self.directory is not None  # noqa: S101 - callers have asked
        told = self.directory.adopt(part, schema, rows, self._head.tables.get(name))
        self._keep(name, told)

    def replace_by_all_of(self, of: str, count: int, name: str, rows: DataFrame) -> bool:
        """``rows`` are ``count`` of the table ``of``; if that is all, nothing need be written.

        False, and nothing is done, if it is not, or if tables of this format share no files.
        """
        told = self._head.tables.get(of)
        if told is None or self.directory is None or self._kind != parquet.NAME:
            return False
        if parquet.rows_of(told) != count:
            return False
        self._keep(name, self.directory.shared(of, told, rows.schema, self.id))
        return True

    def replace(self, name: str, rows: DataFrame | Answer, part: Part | None = None) -> int:
        """Of everything, or of the rows of some keys; how many new ones there are."""
        before = self._head.tables.get(name)
        table = self._formats[self._kind]
        if isinstance(table, ParquetTables) and isinstance(rows, Answer) and rows.table is not None:
            told = table.replace(name, rows.table, before, self.id, part)
        else:
            frame = rows.frame if isinstance(rows, Answer) else rows
            told = table.replace(name, frame, before, self.id, part)
        return self._keep(name, told)

    def commit(self, **facts: Json) -> None:
        """What was written so far becomes what readers see, and ``facts`` are remembered."""
        now: Told = {
            "id": self.id,
            "ended_ms": time.time_ns() // 1_000_000,
            "rows": dict(self._rows),
        }
        earlier = [one for one in self._head.runs if one.get("id") != self.id]
        head = replace(
            self._head,
            number=self._seen.number + 1,
            facts={**self._head.facts, **facts},
            runs=[*earlier, now][-KEPT_RUNS:],
        )
        self._place.commit(head)
        for one in self._formats.values():
            one.forget(head, self._seen)
        self._seen = self._head = head

    def _keep(self, name: str, told: Told) -> int:
        self._head = replace(self._head, tables={**self._head.tables, name: told})
        self._rows[name] = self._rows.get(name, 0) + count_of(told)
        return count_of(told)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
