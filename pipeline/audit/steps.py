"""What lies between two questions of an audit, where it is many rows: written, and read again.

So each is asked once, what follows is planned knowing how little there is and not how it came
about, and an executor that dies takes nothing along.
"""

from pyspark.sql import DataFrame, SparkSession

from pipeline.paths import to_read


class Steps:
    def __init__(self, spark: SparkSession, place: str) -> None:
        """``place``: anything that Spark can write to."""
        self._spark = spark
        self._place = place
        self._number = 0

    def kept(self, frame: DataFrame) -> DataFrame:
        self._number += 1
        path = f"{self._place}/{self._number}"
        frame.write.mode("overwrite").parquet(path)
        return self._spark.read.schema(frame.schema).parquet(to_read(path))
