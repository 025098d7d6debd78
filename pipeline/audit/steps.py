"""What lies between two questions of an audit: written, and read again.

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

    def kept(self, name: str, frame: DataFrame) -> DataFrame:
        path = f"{self._place}/{name}"
        frame.write.mode("overwrite").parquet(path)
        return self._spark.read.schema(frame.schema).parquet(to_read(path))
