"""The session: this Python, ANSI, UTC, and which Java."""

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def test_an_overflow_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(ArithmeticException):
        spark.range(3).select(F.sum(F.lit(2**62) + F.lit(2**61))).collect()


def test_times_are_utc(spark: SparkSession) -> None:
    (row,) = spark.sql("SELECT string(timestamp_millis(0)) AS at").collect()
    assert row["at"] == "1970-01-01 00:00:00"
