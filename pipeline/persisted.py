"""What is asked for several times is made once; what is empty is left out of what follows."""

from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from pipeline.session import is_here, is_small
from pipeline.tables.parquet import nothing

FEW_ROWS: Final = 10_000
FEW_BYTES: Final = 2**20
"""Not more than so many are part of a plan: they go to each task anew."""


def persisted(rows: DataFrame) -> DataFrame:
    """The rows, to be made once.

    Where there is little input, planning is most of the work, and each question about what is made
    of them would bring along how they are made.  So few rows stand in the plans themselves, and
    without Java all have a name there.
    """
    spark = rows.sparkSession
    if is_here(spark):
        name = f"kept_{uuid4().hex}"
        rows.createTempView(name)
        return spark.table(name).persist()
    kept = rows.persist()
    if not is_small(spark):
        return kept
    few = kept.limit(FEW_ROWS + 1).toArrow()
    if few.num_rows > FEW_ROWS or few.nbytes > FEW_BYTES:
        return kept
    kept.unpersist()
    schema = StructType([StructField(one.name, one.dataType) for one in rows.schema])
    return spark.createDataFrame(few, schema)


def if_any(rows: DataFrame) -> DataFrame:
    """The rows, persisted; if there are none, what is known to be empty when queries are planned.

    Spark then leaves out joins with them, and whatever is read only for these.
    """
    kept = persisted(rows)
    if not kept.isEmpty():
        return kept
    kept.unpersist()
    return nothing(rows.sparkSession, kept.schema)
