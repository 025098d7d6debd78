"""The Spark session, the same wherever it runs: ANSI, UTC, this very Python, no web page.

Results must not depend on the machine's time zone, nor an overflow pass in silence; the Python that
workers start is the one that started the driver, because any other lacks our modules.  Over
Spark Connect (``remote``) only what a client may set is set, and no Java is needed here.
"""

import atexit
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from pipeline.duck import duck_session
from pipeline.java import java_home

LOCAL: Final = "local[*]"
_PROJECT: Final = Path(__file__).resolve().parent.parent

SEMANTICS: Final[Mapping[str, str]] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""What results may depend on."""
_PLANNING: Final[Mapping[str, str]] = {
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""The first three follow a join's key back to its columns, which here finds nothing, the others
check plans again, describe them and note who asked: all of it takes its time."""

_ATTEMPTS: Final = "16"
"""Of a task, and of a stage in a row.

Spark counts an executor that died against the task on it, whoever killed it, and stops at four.
Tasks here take seconds, so each has its chance where executors live a little longer than that.
"""
_PROCESS: Final[Mapping[str, str]] = {
    "spark.task.maxFailures": _ATTEMPTS,
    "spark.stage.maxConsecutiveAttempts": _ATTEMPTS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.python.worker.faulthandler.enabled": "true",
}
_BY_PATH: Final = "spark.python.unix.domain.socket"
"""Java and its Python workers: over TCP each task waits 40 ms for an acknowledgement that is held
back."""
_LONGEST_PATH: Final = 60
"""Of the directory for such sockets: a whole path may have about 100 characters."""
_LOCAL_ONLY: Final[Mapping[str, str]] = {
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
}
_SMALL: Final = "spark.causerie.smallInput"
_HERE: Final = "spark.causerie.here"
_FEW_ROWS: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
_SMALL_INPUT: Final[Mapping[str, str]] = {
    **_FEW_ROWS,
    _SMALL: "true",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.broadcast.blockSize": "1m",
    "spark.broadcast.checksum": "false",
    "spark.broadcast.compress": "false",
    "spark.shuffle.compress": "false",
}
"""Where there are few rows, compiling queries, and again what was compiled, is most of the work.

What is left is planning, and handing a few rows to threads of this very process: one task does, and
what is handed on is not worth packing, nor blocks of 4 MB, which would be zeroed each time.
"""
_SMALL_INPUT_JAVA: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m -XX:ReservedCodeCacheSize=240m"
)
"""As much room for compiled code as with both compilers: with the 48 MB of one alone, a session of
many queries sweeps out what it compiles again soon after."""
_LARGE_INPUT_JAVA: Final = (
    "-XX:+UseParallelGC -XX:MetaspaceSize=256m -XX:Tier4InvocationThreshold=15000"
    " -XX:Tier4MinInvocationThreshold=2000 -XX:Tier4CompileThreshold=45000"
)
"""Three times Java's own thresholds: loops over many rows get there anyway, and most of what plans
queries is not worth the second compiler."""
_SHUFFLES_PER_PROCESSOR: Final = 8
"""Spark's own 200 are made for clusters: here most would be empty, and each costs its time."""
_SCANS_PER_PROCESSOR: Final = 4
_OPENED_BYTES: Final = 128 * 1024
"""As many could be read while a file is opened, which is what Spark deals files out by.

By its own 4 MB, right for a distant store, the thirty largest of two hundred exports of groups were
one task: two thirds of all rows, for which the other processors wait.
"""
_SHUFFLED_BYTES: Final = 8 * 1024 * 1024
"""By Spark's own 64 MB, entries that are looked at row by row were one task too."""
_QUIET: Final = Path(__file__).parent / "log4j2.properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """``remote``: of Spark Connect, ``sc://host:port``; then ``master`` does not count."""

    master: str | None = None
    """None: what ``spark-submit`` was told, else this machine's processors."""
    remote: str | None = None
    app: str = "causerie-pipeline"
    shuffle_partitions: int | None = None
    driver_memory: str | None = None
    is_small: bool = False
    """The input is so small that starting counts for more than throughput."""
    needs_java: bool = True
    """False: DuckDB carries out the plans, in this process; then only ``more`` counts."""
    more: Mapping[str, str] = field(default_factory=dict)


def open_session(settings: SessionSettings) -> SparkSession:
    """Raises JavaMissing where Spark would run here and cannot."""
    builder = SparkSession.Builder().appName(settings.app)
    options = {**_PLANNING, **SEMANTICS, **settings.more}
    if settings.shuffle_partitions is not None:
        options["spark.sql.shuffle.partitions"] = str(settings.shuffle_partitions)
    if settings.remote is not None:
        builder = builder.remote(settings.remote)
    else:
        options = _options_here(settings, options)
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _options_here(settings: SessionSettings, asked: Mapping[str, str]) -> dict[str, str]:
    """Of a driver in this process: what was asked for, what ``spark-submit`` was told, ours."""
    _prepare_python()
    told = _told_by_launcher()
    master = settings.master or told.get("spark.master") or os.environ.get("MASTER") or LOCAL
    is_local = master.startswith("local")
    if not _is_submitted():
        _prepare_java(is_local=is_local)
    is_for_little = settings.is_small and is_local
    options = {**_PROCESS, **_java_options(is_small=is_for_little)}
    if is_local:
        options |= {**_LOCAL_ONLY, **options_by_path(_sockets())}
        options |= _SMALL_INPUT if is_for_little else shares(_processors())
    options |= {**told, **asked, "spark.master": master}
    if settings.driver_memory is not None:
        options["spark.driver.memory"] = settings.driver_memory
    return options


def is_small(spark: SparkSession) -> bool:
    """Whether that session was opened for little input in this process."""
    return spark.conf.get(_SMALL, "false") == "true"


@contextmanager
def for_few_rows(spark: SparkSession) -> Iterator[None]:
    """What is planned meanwhile is not compiled, which takes longer than to look at few rows.

    Plans of what was persisted before stay as they are.
    """
    asked = {} if is_here(spark) else _FEW_ROWS
    before = {name: spark.conf.get(name) or "" for name in asked}
    try:
        for name, value in asked.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def is_here(spark: SparkSession) -> bool:
    """Whether DuckDB in this process carries out its plans."""
    return spark.conf.get(_HERE, "false") == "true"


@contextmanager
def session(settings: SessionSettings) -> Iterator[SparkSession]:
    if not settings.needs_java:
        with duck_session({**settings.more, _SMALL: "true", _HERE: "true"}) as here:
            yield here
        return
    spark = open_session(settings)
    try:
        yield spark
    finally:
        spark.stop()


def is_asked_for() -> bool:
    """Whether something outside the program names a Spark to run on."""
    return _is_submitted() or bool(os.environ.get("MASTER") or os.environ.get("SPARK_REMOTE"))


def _is_submitted() -> bool:
    """Whether ``spark-submit`` started this, and Java with it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _told_by_launcher() -> dict[str, str]:
    """What stands on the command line of ``spark-submit`` and in its file of defaults."""
    if not _is_submitted():
        return {}
    SparkContext._ensure_initialized()  # noqa: SLF001 - else nobody asks Java, who was told
    return dict(SparkConf().getAll())


def _processors() -> int:
    return os.cpu_count() or 1


def shares(processors: int) -> dict[str, str]:
    """Into how many tasks work is divided, so that none of so many processors waits long."""
    return {
        "spark.sql.shuffle.partitions": str(_SHUFFLES_PER_PROCESSOR * processors),
        "spark.sql.files.minPartitionNum": str(_SCANS_PER_PROCESSOR * processors),
        "spark.sql.files.openCostInBytes": str(_OPENED_BYTES),
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(_SHUFFLED_BYTES),
    }


@cache
def _sockets() -> Path:
    """A directory that nobody else may enter, as long as this process and so Java lives."""
    place = tempfile.mkdtemp(prefix="causerie-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Path(place)


def options_by_path(sockets: Path) -> dict[str, str]:
    """Not everywhere are there such sockets, nor have their names room for every directory."""
    if not hasattr(socket, "AF_UNIX") or len(str(sockets)) > _LONGEST_PATH:
        return {}
    return {
        f"{_BY_PATH}.enabled": "true",
        f"{_BY_PATH}.dir": str(sockets),
        "spark.python.daemon.module": "pipeline.worker_daemon",
    }


def _java_options(*, is_small: bool) -> dict[str, str]:
    quiet = f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
    way = _SMALL_INPUT_JAVA if is_small else _LARGE_INPUT_JAVA
    return {"spark.driver.extraJavaOptions": f"{quiet} {way}"}


def _prepare_python() -> None:
    """Which Python with which modules workers start; of a launcher's own choice it is that."""
    if not _is_submitted():
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    before = os.environ.get("PYTHONPATH", "")
    if str(_PROJECT) not in before.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_PROJECT), before]))


def _prepare_java(*, is_local: bool) -> None:
    """Before it starts: which one, and that nobody calls it from elsewhere where nobody has to."""
    os.environ["JAVA_HOME"] = str(java_home(os.environ))
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
