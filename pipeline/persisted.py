"""What is asked for several times is made once; what is empty is left out of what follows."""

from pyspark.sql import DataFrame

from pipeline.tables.parquet import nothing


def if_any(rows: DataFrame) -> DataFrame:
    """The rows, persisted; if there are none, what is known to be empty when queries are planned.

    Spark then leaves out joins with them, and whatever is read only for these.
    """
    kept = rows.persist()
    if not kept.isEmpty():
        return kept
    kept.unpersist()
    return nothing(rows.sparkSession, rows.schema)
