"""The same work on a cluster of two workers, over Spark Connect and under spark-submit.

Real processes of the Spark that is installed: a master and two workers, a Connect server, the
launcher.  Each runs the same small program; its answer must be that of the session of this process.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from pipeline.audit import audit
from pipeline.java import java_home
from pipeline.simulate.case import Case
from pipeline.simulate.sweep import sweep
from pipeline.sources.delivery import FORMAT, register

pytestmark = pytest.mark.long

DEADLINE_S = 600
SPARK_HOME = Path(pyspark.__file__).parent
PROJECT = Path(__file__).resolve().parents[2]
CASES = [Case(members=3, messages=6, loss=0.2, seed=seed) for seed in range(1, 7)]
PROGRAM = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from pipeline.session import SessionSettings, session
from tests.pipeline.test_spark_elsewhere import answer
if __name__ == "__main__":
    told = json.loads(sys.argv[2])
    with session(SessionSettings(**told)) as spark:
        found = answer(spark, sys.argv[3])
    with open(sys.argv[4], "w") as file:
        json.dump(found, file)
"""

SUBMITTED = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pipeline.session import SessionSettings, session
with session(SessionSettings()) as spark:
    context = spark.sparkContext
    told = [context.master, context.getConf().get("spark.driver.host"), spark.range(10).count()]
with open(sys.argv[2], "w") as file:
    json.dump(told, file)
"""


def answer(spark: SparkSession, logs: str) -> list[list[str]]:
    """A sweep by Python workers, logs by our own reader, a shuffle of both, and an audit."""
    register(spark)
    rows = sorted(repr(tuple(row)) for row in sweep(spark, CASES, tasks=4).collect())
    events = spark.read.format(FORMAT).option("path", logs).option("slots", "2").load()
    kinds = events.groupBy("participant", "kind").count().collect()
    return [rows, sorted(repr(tuple(row)) for row in kinds), audited(spark)]


def audited(spark: SparkSession) -> list[str]:
    """Forty messages; one log lacks one, another has a child before its parent."""
    # The same module under the same name in every process, which pytest's own import is not.
    from tests.pipeline.test_audit_is_exact import ON_SPARK, Conversation, on_spark  # noqa: PLC0415

    whole = [(at, 0) for at in range(40)]
    swapped = [*whole[:20], whole[21], whole[20], *whole[22:]]
    messages = [(at, True, [at - 1] if at else []) for at in range(40)]
    case = Conversation(messages, [whole, whole[:9] + whole[10:], swapped], [[(0, None)]] * 3)
    with tempfile.TemporaryDirectory() as steps:
        tables = on_spark(spark, case.tables("c"))
        found = audit(tables, steps, bucket_messages=4, few_rows=ON_SPARK)
        rows = found.witnesses.collect() + found.verdicts.collect()
    return sorted(repr(tuple(row)) for row in rows)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from pipeline.simulate.sweep import run_case  # noqa: PLC0415 - only here

    place = tmp_path_factory.mktemp("logs")
    run_case(CASES[0], place)
    return place


@pytest.fixture(scope="module")
def here(spark: SparkSession, logs: Path) -> list[list[str]]:
    found = answer(spark, str(logs))
    assert len(found[0]) == len(CASES)
    assert found[1]
    assert len(found[2]) == 1 + 3 + 3  # missing; two reordered, one causal; verdicts
    return found


def _environment() -> Mapping[str, str]:
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "JAVA_HOME": str(java_home(os.environ)),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT),
    }


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def _running(*command: str, told: Path) -> Iterator[None]:
    with told.open("wb") as file:
        process = subprocess.Popen(
            command, env=_environment(), stdout=file, stderr=file, start_new_session=True,
            cwd=told.parent,
        )  # fmt: skip
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _await_port(port: int, told: Path) -> None:
    until = time.monotonic() + DEADLINE_S
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < until, told.read_text(errors="replace")
        time.sleep(0.1)


def _await_text(told: Path, text: str) -> None:
    until = time.monotonic() + DEADLINE_S
    while text not in told.read_text(errors="replace"):
        assert time.monotonic() < until, told.read_text(errors="replace")
        time.sleep(0.1)


def _ask(
    settings: Mapping[str, object], logs: Path, place: Path, *launcher: str
) -> list[list[str]]:
    program, out = place / "program.py", place / "answer.json"
    program.write_text(PROGRAM)
    arguments = [str(PROJECT), json.dumps(settings), str(logs), str(out)]
    done = subprocess.run(
        [*(launcher or (sys.executable,)), str(program), *arguments],
        env=_environment(),
        cwd=place,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    found: list[list[str]] = json.loads(out.read_text())
    return found


def _is_asked_by_spark_submit(master: str, place: Path) -> None:
    """What the launcher was told counts: who believed to be alone would hide from executors."""
    program, out = place / "submitted.py", place / "submitted.json"
    program.write_text(SUBMITTED)
    where = {"spark.driver.host": "127.0.0.1", "spark.cores.max": "1"}
    where |= {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
    conf = [word for name, value in where.items() for word in ("--conf", f"{name}={value}")]
    submit = str(SPARK_HOME / "bin" / "spark-submit")
    command = [submit, "--master", master, "--driver-memory", "512m", *conf, str(program)]
    done = subprocess.run(
        [*command, str(PROJECT), str(out)],
        env=_environment(),
        cwd=place,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    assert json.loads(out.read_text()) == [master, "127.0.0.1", 10]


def test_a_cluster_of_two_workers(here: list[list[str]], logs: Path, tmp_path: Path) -> None:
    port = _free_port()
    run = str(SPARK_HOME / "bin" / "spark-class")
    master, web = f"spark://127.0.0.1:{port}", str(_free_port())
    names = ["master.log", "worker-1.log", "worker-2.log"]
    told = [tmp_path / name for name in names]
    where = ("--host", "127.0.0.1", "--webui-port", "0")
    worker = ("org.apache.spark.deploy.worker.Worker", *where, "--cores", "1", "--memory", "600m")
    with _running(
        run, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port),
        "--webui-port", web, told=told[0],
    ):  # fmt: skip
        _await_port(port, told[0])
        with (
            _running(run, *worker, master, told=told[1]),
            _running(run, *worker, master, told=told[2]),
        ):
            for one in told[1:]:
                _await_text(one, "Successfully registered with master")
            more = {
                "spark.executor.memory": "512m",
                "spark.cores.max": "2",
                "spark.executor.cores": "1",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
            }
            settings = {
                "master": master, "driver_memory": "512m", "shuffle_partitions": 3, "more": more,
            }  # fmt: skip
            assert _ask(settings, logs, tmp_path) == here
            _is_asked_by_spark_submit(master, tmp_path)
    assert told[0].read_text(errors="replace").count("Launching executor") >= 2


def test_over_spark_connect(here: list[list[str]], logs: Path, tmp_path: Path) -> None:
    port, told = _free_port(), tmp_path / "server.log"
    command = (
        str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[1]", "--driver-memory", "600m",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1", "spark-internal",
    )  # fmt: skip
    with _running(*command, told=told):
        _await_port(port, told)
        settings = {"remote": f"sc://127.0.0.1:{port}", "shuffle_partitions": 3}
        assert _ask(settings, logs, tmp_path) == here


def test_under_spark_submit(here: list[list[str]], logs: Path, tmp_path: Path) -> None:
    submit = str(SPARK_HOME / "bin" / "spark-submit")
    launcher = (submit, "--master", "local[1]", "--driver-memory", "600m")
    assert _ask({"shuffle_partitions": 1}, logs, tmp_path, *launcher) == here
