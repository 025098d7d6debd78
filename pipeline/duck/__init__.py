"""Small inputs without Java: the same DataFrames, carried out by DuckDB in this process.

Spark Connect's client makes plans of DataFrames without Java and sends them to a server.  Here the
server is DuckDB: ``relations`` and ``expressions`` say each part of a plan in its SQL,
``functions`` each function, ``channel`` speaks the protocol.  So every stage is written once, and
means the same on a laptop and on a cluster; tests hold both against each other.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"
"""Spark's own switch: its functions make parts of plans, and not objects of Java."""


@contextmanager
def duck_session(options: Mapping[str, str]) -> "Iterator[SparkSession]":
    """Until it ends, Spark's functions are of Connect."""
    with connect_mode(), opened(options) as session:
        yield session


@contextmanager
def opened(options: Mapping[str, str]) -> "Iterator[SparkSession]":
    """Beside another session: plans are for this one where they are made in ``connect_mode``."""
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415 - loads gRPC
    from pyspark.sql.connect.session import SparkSession as Session  # noqa: PLC0415 - likewise

    from pipeline.duck.channel import DuckChannel  # noqa: PLC0415 - likewise

    class Here(DefaultChannelBuilder):
        def toChannel(self) -> DuckChannel:  # noqa: N802 - Spark's name
            return DuckChannel(options)

    with connect_mode():
        session = Session(connection=Here("sc://localhost"))
    try:
        yield cast("SparkSession", session)
    finally:
        session.client.close()  # To stop it would stop whatever Connect server there is, too.


@contextmanager
def connect_mode() -> "Iterator[None]":
    before = os.environ.get(_CONNECT_MODE)
    os.environ[_CONNECT_MODE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CONNECT_MODE]
        else:
            os.environ[_CONNECT_MODE] = before
