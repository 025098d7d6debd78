"""Few rows are asked of DuckDB, many of Spark, and nobody can tell from the answers."""

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import beside as module
from pipeline.beside import beside

ROWS = 5


def words(rows: DataFrame) -> DataFrame:
    """Everything that a table of ours has: texts, numbers, lists, records, truths, nulls."""
    return rows.select(
        "id",
        F.when(F.col("id") % 2 == 0, F.lit("even")).alias("word"),
        F.array(F.lit("a"), F.col("id").cast("string")).alias("words"),
        F.struct("id", F.lit(None).cast("bigint").alias("none")).alias("inner"),
        (F.col("id") > 1).alias("is_more"),
        F.col("id").cast("int").alias("number"),
    )


def by_word(rows: DataFrame, numbers: DataFrame) -> DataFrame:
    return (
        rows.join(numbers.select("id"), "id", "left_semi")
        .groupBy("word")
        .agg(F.sum("id").alias("n"))
    )


@pytest.mark.parametrize("most", [0, ROWS - 1, ROWS], ids=["none", "too many", "few"])
def test_the_answer_is_the_same_wherever_it_was_asked(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", most)
    monkeypatch.setattr(module, "WITH_LISTS", 1)
    rows = words(spark.range(ROWS))
    with beside(spark) as ask:
        kept = ask.fetched(rows)
        assert (kept.table is not None) == (most == ROWS)
        found = ask.ask(by_word, kept, spark.range(1, ROWS))
        assert sorted(map(str, found.dicts())) == [
            "{'word': 'even', 'n': 6}",
            "{'word': None, 'n': 4}",
        ]
        assert kept.frame.dtypes == rows.dtypes
        assert sorted(kept.frame.collect()) == sorted(rows.collect())
        assert kept.schema.names == rows.columns
        assert not kept.is_empty
        again = ask.ask(lambda told: told.orderBy("id"), kept)
        assert again.frame.dtypes == rows.dtypes
        assert again.frame.orderBy("id").collect() == rows.orderBy("id").collect()
        told = ask.told(lambda rows: [tuple(row) for row in rows.orderBy("id").collect()], kept)
        assert told == [tuple(row) for row in rows.orderBy("id").collect()]


def test_of_none_spark_knows_that_there_are_none(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with beside(spark) as ask:
        none = ask.ask(lambda rows: rows.where("id < 0"), words(spark.range(ROWS)))
        assert none.is_empty
        assert none.dicts() == []
        assert none.frame.dtypes == words(spark.range(ROWS)).dtypes
        ask.only(spark.range(3), none, ["id"]).explain()
    assert "Join" not in capsys.readouterr().out


def test_many_rows_are_made_once_and_let_go_of_at_the_end(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", ROWS - 1)
    with beside(spark, keep=DataFrame.persist) as ask:
        many = ask.fetched(spark.range(ROWS)).frame
        assert many.storageLevel.useMemory
        assert ask.only(spark.range(9), ask.fetched(many), ["id"]).count() == ROWS
    assert not many.storageLevel.useMemory


def test_an_answer_of_many_rows_is_sparks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", ROWS)
    with beside(spark) as ask:
        few = ask.fetched(spark.range(ROWS))
        pairs = ask.ask(lambda rows: rows.alias("a").crossJoin(rows.toDF("other")), few)
        assert few.table is not None
        assert pairs.table is None
        assert pairs.frame.count() == ROWS * ROWS
        assert len(pairs.dicts()) == ROWS * ROWS


def test_of_rows_with_lists_fewer_are_few(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 2 * module.WITH_LISTS)
    with beside(spark) as ask:
        listed = spark.range(3).select("id", F.array("id").alias("ids"))
        assert ask.fetched(listed).table is None
        assert ask.fetched(listed.limit(2)).table is not None
        assert ask.fetched(listed.select("id")).table is not None
        assert ask.fetched(listed.select("id"), about=1_000).table is None


def test_spark_is_spoken_to_as_before_when_duckdb_was_asked_or_refused(spark: SparkSession) -> None:
    with beside(spark) as ask:
        kept = ask.fetched(spark.range(ROWS))
        with pytest.raises(Exception, match="nobody"):
            ask.ask(lambda rows: rows.select("nobody"), kept)
        assert spark.range(2).select(F.col("id") + 1).count() == 2
        assert ask.ask(lambda rows: rows.select(F.max("id").alias("m")), kept).dicts() == [{"m": 4}]
    assert spark.range(2).select(F.lit(1)).count() == 2
