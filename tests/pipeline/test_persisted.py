"""What is made once: few rows stand in the plans of what is made of them, more are persisted."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.persisted import FEW_BYTES, FEW_ROWS, if_any, persisted


def test_few_rows_stand_in_the_plan_as_they_are(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    of_each = "id", F.array(F.lit("a"), F.lit(None)).alias("words"), F.struct("id").alias("inner")
    rows = spark.range(3).select(*of_each, F.lit(None).cast("boolean").alias("is_so"))
    kept = persisted(rows)
    assert sorted(kept.collect()) == sorted(rows.collect())
    assert kept.dtypes == rows.dtypes
    assert not kept.storageLevel.useMemory
    kept.explain()
    told = capsys.readouterr().out
    assert "LocalTableScan" in told
    assert "Range" not in told


@pytest.mark.parametrize(("rows", "length"), [(FEW_ROWS + 1, 1), (2, FEW_BYTES)])
def test_more_are_persisted(spark: SparkSession, rows: int, length: int) -> None:
    kept = if_any(spark.range(rows).select(F.lit("a" * length).alias("word")))
    assert kept.storageLevel.useMemory
    assert kept.count() == rows
    kept.unpersist()


def test_of_none_it_is_known_that_there_are_none(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    none = if_any(spark.range(FEW_ROWS).where("id < 0"))
    spark.range(3).join(none, "id", "left_anti").explain()
    assert "Join" not in capsys.readouterr().out
