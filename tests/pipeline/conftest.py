"""One Spark for all tests of a process: to start one takes longer than any of them.

It is the session of small input: expressions are interpreted, not compiled, and Java compiles in a
hurry, because to compile would take most of the time.  What is compiled is tested by one test of
its own and by the benchmarks.  Rows are in two partitions nevertheless, as what is right with one
may be wrong with more.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.session import SessionSettings, session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = SessionSettings(
        master="local[2]",
        driver_memory="1g",
        app="tests",
        shuffle_partitions=2,
        is_small=True,
        more={"spark.sql.leafNodeDefaultParallelism": "2"},
    )
    with session(settings) as running:
        yield running
