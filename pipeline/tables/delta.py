"""Tables in Delta Lake's format, below a path of any file system that Hadoop knows.

A table's state is its version.  Readers ask for the version that the head names, so what a run has
written to one table is not seen before it has written all of them.  What a killed run left is the
newest version and not the head's: the next run restores that one, which copies nothing.
Old versions stay for Delta's own retention; ``VACUUM`` is for the owner of the place to decide.
"""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.tables import RUN, Head, LakeError, Part, Told

NAME: Final = "delta"
OPTIONS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Of the session.  Delta's own 50 partitions are for logs of millions of files."""


@dataclass(frozen=True, slots=True)
class DeltaTables:
    root: str
    spark: SparkSession

    def read(self, name: str, told: Told) -> DataFrame:
        version = str(told["version"])
        return self.spark.read.format(NAME).option("versionAsOf", version).load(self._path(name))

    def add(self, name: str, rows: DataFrame, told: Told | None, run: str) -> Told:
        return self._write(name, rows, told, run, mode="append")

    def replace(
        self, name: str, rows: DataFrame, told: Told | None, run: str, part: Part | None
    ) -> Told:
        if part is None or told is None:
            return self._write(name, rows, told, run, mode="overwrite")
        keys = ", ".join(_quoted(key) for key in part.keys) or "NULL"
        return self._write(name, rows, told, run, mode="overwrite", where=f"{part.by} IN ({keys})")

    def settle(self, head: Head) -> None:
        """A table that no head names yet is restored when it is first written: ``_write``."""
        for name, told in head.tables.items():
            if told.get("format") == NAME and self._newest(name)[0] != told["version"]:
                self.spark.sql(
                    f"RESTORE TABLE delta.{_name(self._path(name))}"
                    f" TO VERSION AS OF {told['version']}"
                )

    def forget(self, head: Head, before: Head) -> None:
        """Nothing: Delta keeps and forgets versions by its own rules."""

    def _write(  # noqa: PLR0913 -- what, where, by whom, and how
        self,
        name: str,
        rows: DataFrame,
        told: Told | None,
        run: str,
        *,
        mode: str,
        where: str | None = None,
    ) -> Told:
        is_new = told is None  # What is there nevertheless, a killed run has left.
        writer = (
            rows.withColumn(RUN, F.lit(run))
            .write.format(NAME)
            .mode("overwrite" if is_new else mode)
            .option("userMetadata", run)
        )
        if where is not None:
            writer = writer.option("replaceWhere", where).option("mergeSchema", "true")
        elif is_new or mode == "overwrite":
            writer = writer.option("overwriteSchema", "true")
        else:
            writer = writer.option("mergeSchema", "true")
        writer.save(self._path(name))
        version, added, by = self._newest(name)
        if told is not None and version == told["version"]:
            return {**told, "added": 0}  # What changes nothing makes no version.
        if by != run:
            raise LakeError(f"another process has written to {self._path(name)} meanwhile")
        return {"format": NAME, "version": version, "added": added}

    def _newest(self, name: str) -> tuple[int, int, str | None]:
        """Version, rows written, and the run that wrote it."""
        path = _name(self._path(name))
        (row,) = self.spark.sql(f"DESCRIBE HISTORY delta.{path} LIMIT 1").collect()
        rows = (row["operationMetrics"] or {}).get("numOutputRows", "0")
        return row["version"], int(rows), row["userMetadata"]

    def _path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"


def _quoted(text: str) -> str:
    """As a literal of SQL: names come from files of others."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _name(path: str) -> str:
    escaped = path.replace("`", "``")
    return f"`{escaped}`"
