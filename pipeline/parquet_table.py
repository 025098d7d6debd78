"""Rows of a contract's table as a Parquet file, for the application's exports.

Arrow alone, no Spark.  What is not written through to the end is no Parquet file, so a reader never
takes a part for the whole.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.delivery.contract import Table
from pipeline.schema import arrow_schema


class ParquetTable:
    """One file; rows in the order of the table's columns."""

    def __init__(self, path: Path, table: Table) -> None:
        self._schema = arrow_schema(table)
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, rows: Sequence[Sequence[object]], /) -> None:
        if rows:
            columns = [
                pa.array(values, type=field.type)
                for field, values in zip(self._schema, zip(*rows, strict=True), strict=True)
            ]
            self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()
