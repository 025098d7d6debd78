"""One Spark for all tests of a process: to start one takes longer than any of them.

Expressions are interpreted here, not compiled: the data are small and compiling each query would
take most of the time.  What is compiled is tested by one test of its own and by the benchmarks.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.session import SessionSettings, session

SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = SessionSettings(
        master="local[2]", shuffle_partitions=2, driver_memory="1g", app="tests", more=SMALL
    )
    with session(settings) as running:
        yield running
