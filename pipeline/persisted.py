"""What is asked for several times is made once; what is empty is left out of what follows."""

from uuid import uuid4

from pyspark.sql import DataFrame

from pipeline.session import is_here
from pipeline.tables.parquet import nothing


def persisted(rows: DataFrame) -> DataFrame:
    """The rows, to be made once.

    Without Java they have a name from then on.  Else each question about what is made of them would
    bring along how they are made, and to write that down took as long as all answers.
    """
    if not is_here(rows.sparkSession):
        return rows.persist()
    name = f"kept_{uuid4().hex}"
    rows.createTempView(name)
    return rows.sparkSession.table(name).persist()


def if_any(rows: DataFrame) -> DataFrame:
    """The rows, persisted; if there are none, what is known to be empty when queries are planned.

    Spark then leaves out joins with them, and whatever is read only for these.
    """
    kept = persisted(rows)
    if not kept.isEmpty():
        return kept
    kept.unpersist()
    return nothing(rows.sparkSession, kept.schema)
