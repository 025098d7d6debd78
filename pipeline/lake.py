"""Where tables lie below ``--out``: bronze as it was read, silver as it is asked.

Bronze grows by a segment for each run that finds something new, silver is made anew from it and
swapped in as a whole.  Names and columns of the silver tables are in docs/pipeline.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from engine.delivery.contract import Table
from pipeline import manifest
from pipeline.audit.slices import Places
from pipeline.manifest import Json, LakeError
from pipeline.sources.delivery import source_schema

KEPT_VERSIONS: Final = 2
"""The last but one stays for those who are reading it."""
SEGMENT: Final = "segment"


@dataclass(frozen=True, slots=True)
class Lake:
    root: Path

    @property
    def bronze_place(self) -> Path:
        return self.root / "bronze"

    @property
    def silver_place(self) -> Path:
        return self.root / "silver"

    # --- bronze -------------------------------------------------------------------------------

    def bronze_state(self) -> dict[str, Json]:
        return manifest.read_manifest(self.bronze_place)

    def bronze(self, spark: SparkSession, table: Table) -> DataFrame:
        """All rows that were read, bad ones too, with the number of the run: ``segment``."""
        schema = source_schema(table).add(SEGMENT, "integer")
        place = self.bronze_place / table.name
        segments = self.bronze_state().get("segments", {})
        names = segments.get(table.name, []) if isinstance(segments, dict) else []
        paths = [str(place / str(name)) for name in names] if isinstance(names, list) else []
        if not paths:
            # Known to be empty when a query is planned, so whatever only it feeds is left out.
            nothing = (F.lit(None).cast(field.dataType).alias(field.name) for field in schema)
            return spark.range(0).select(*nothing)
        return spark.read.schema(schema).option("basePath", str(place)).parquet(*paths)

    # --- silver -------------------------------------------------------------------------------

    def silver_state(self) -> dict[str, Json]:
        return manifest.read_manifest(self.silver_place)

    def silver(self, spark: SparkSession, name: str) -> DataFrame:
        """Raises LakeError if nothing was ingested yet."""
        path = str(self.silver_path(name))
        tables = self.silver_state().get("tables")
        schema = tables.get(name) if isinstance(tables, Mapping) else None
        if not isinstance(schema, Mapping):
            return spark.read.parquet(path)  # Written before schemas were told.
        return spark.read.schema(StructType.fromJson(dict(schema))).parquet(path)

    def audited(self) -> Places:
        """What an audit reads.  Raises LakeError likewise."""
        entry, message, member = map(self.silver_path, ("entry", "message", "member"))
        return Places(entry=entry, message=message, member=member)

    def silver_path(self, name: str) -> Path:
        state = self.silver_state()
        version = state.get("version")
        if version is None:
            raise LakeError(f"there is nothing in {self.root} yet: run `causerie-pipeline ingest`")
        return self.silver_place / f"v{version}" / name

    def swap_silver(
        self, write: Callable[[Path], Mapping[str, Json]], made_of: Json
    ) -> Mapping[str, Json]:
        """``write`` fills a directory and tells about it; then it becomes what readers see."""
        state = self.silver_state()
        before = state.get("version")
        version = before + 1 if isinstance(before, int) else 1
        place = self.silver_place / f"v{version}"
        told = write(manifest.unfinished(place))
        manifest.finish(place)
        content = {"version": version, "made_of": made_of, "tables": told}
        manifest.write_manifest(self.silver_place, content)
        kept = {f"v{number}" for number in range(version - KEPT_VERSIONS + 1, version + 1)}
        manifest.remove_but(self.silver_place, kept)
        return content
