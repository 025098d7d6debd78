"""The installed command under ``spark-submit`` on a cluster whose executors are killed meanwhile.

``local-cluster`` is Spark's own cluster in miniature: a master, two workers, and executors that are
processes of their own.  What an executor held is gone with it; the answer must not be.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
import pytest

from pipeline.java import java_home
from pipeline.simulate.case import Case
from pipeline.simulate.sweep import COLUMNS, row_of, run_case
from tests.pipeline.log_files import conversation_log, message, name_of

DEADLINE_S = 900
LOOK_AGAIN_S = 0.2
SPARK = Path(pyspark.__file__).parent
COMMAND = Path(sys.executable).with_name("causerie-pipeline.py")
EXECUTOR = b"CoarseGrainedExecutorBackend"
DAEMON = b"daemon\0pyspark.worker"
"""What an executor starts for the first task that is Python's; ours, or Spark's own."""
TWO, ONE = "local-cluster[2,1,1024]", "local-cluster[1,1,1024]"
SPARKS_OWN_ATTEMPTS = 4
PEOPLE = ("ada", "bob", "cyd")
LACKING = 321
MANY = 3
PARENT = 1
"""Of the fields after a process' name in /proc/PID/stat (proc_pid_stat(5))."""
DONE = "TaskSetManager: Finished task"
"""What the driver says of each task."""
COMPILED_ONCE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Five processes of Java that live for seconds do not earn what the second compiler takes."""


def logs_of(place: Path, messages: int) -> str:
    """Everybody's logs of so many messages; the id of the one that bob lacks."""
    log = [(1_000 + 10 * number, f"m{number:06}") for number in range(messages)]
    rows = [message(lamport, name, PEOPLE[0]) for lamport, name in log]
    lacking = log[LACKING]
    for name in PEOPLE:
        own = [entry for entry in log if name != "bob" or entry != lacking]
        conversation_log(place / f"{name}.delivery.db", name, own, rows, PEOPLE)
    return lacking[1]


def processes(word: bytes) -> list[int]:
    """Whatever runs here with that word in its command."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It ended just now.
            if word in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


def stat_of(process: int) -> list[str]:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


class Submitted:
    """``causerie-pipeline`` as ``spark-submit`` runs it; its own processes are found and killed."""

    def __init__(self, place: Path, *words: str | Path, master: str = TWO) -> None:
        self._place = place
        self.told, self.errors = place / "out.txt", place / "errors.txt"
        launcher: list[str | Path] = [SPARK / "bin" / "spark-submit", "--driver-memory", "600m"]
        launcher += ["--master", master, COMMAND]
        with self.told.open("wb") as out, self.errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*launcher, *words], env=self._environment(), cwd=place, stdout=out, stderr=errors,
                start_new_session=True,
            )  # fmt: skip

    def _environment(self) -> Mapping[str, str]:
        """Workers keep their files in Spark's home, which must not be the installed one."""
        home = self._place / "spark"
        home.mkdir()
        for path in SPARK.iterdir():
            (home / path.name).symlink_to(path)
        return {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            "JAVA_HOME": str(java_home(os.environ)),
            "JDK_JAVA_OPTIONS": COMPILED_ONCE,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        }

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def executors(self) -> list[int]:
        """Of their processes; only those that belong to ours."""
        found = []
        for process in processes(EXECUTOR):
            with suppress(OSError):
                if os.getpgid(process) == self._process.pid:
                    found.append(process)
        return sorted(found)

    def at_work(self) -> list[int]:
        """Those that have begun a task in Python."""
        begun = set()
        for daemon in processes(DAEMON):
            with suppress(OSError):
                begun.add(int(stat_of(daemon)[PARENT]))
        return sorted(begun & set(self.executors()))

    def end(self) -> int:
        try:
            return self._process.wait(timeout=DEADLINE_S)
        finally:
            if self.is_running:
                os.killpg(self._process.pid, signal.SIGKILL)

    @property
    def words(self) -> str:
        return self.told.read_text() + self.errors.read_text()


@contextmanager
def submitted(place: Path, *words: str | Path, master: str = TWO) -> Iterator[Submitted]:
    running = Submitted(place, *words, master=master)
    try:
        yield running
    finally:
        running.end()


def assert_bob_lacks(lacking: str, printed: str) -> None:
    """By what ``--json`` prints: bob's log lacks that message, and nothing else differs."""
    # The launcher adds what the program said on standard error to its standard output.
    found = json.loads(printed[printed.index("{\n") :])
    (log,) = found["differing"]
    assert (log["participant"], log["verdict"]) == (name_of("bob"), "missing")
    assert [witness["message_id"] for witness in log["witnesses"]] == [lacking]


def test_one_dies_and_its_runs_are_made_again(tmp_path: Path) -> None:
    """A sweep, which is all Python workers and one stage; each run finished is kept in a file."""
    out, seeds = tmp_path / "sweep", 8
    words = ("simulate", "--members", "4", "--messages", "40", "--seeds", str(seeds), "--out", out)
    with submitted(tmp_path, *words) as running:
        until = time.monotonic() + DEADLINE_S
        while not any(path.is_file() for path in out.rglob("*")):
            assert running.is_running, running.words
            assert time.monotonic() < until, running.words
            time.sleep(LOOK_AGAIN_S)
        os.kill(running.executors()[0], signal.SIGKILL)
        assert running.end() == 0, running.words
    with (out / "runs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for seed, row in enumerate(rows, start=1):
        case = Case(members=4, messages=40, seed=seed)
        alone = dict(zip(COLUMNS, row_of(case, run_case(case)), strict=True))
        assert row == {name: "" if value is None else str(value) for name, value in alone.items()}
    assert len(rows) == seeds


@pytest.mark.long
def test_one_dies_and_the_verdict_is_right(tmp_path: Path) -> None:
    lacking, out = logs_of(tmp_path / "logs", 600), tmp_path / "lake"
    with submitted(tmp_path, "audit", tmp_path / "logs", "--json", "--out", out) as running:
        until = time.monotonic() + DEADLINE_S
        while not any(out.rglob("*.parquet")):
            assert running.is_running, running.words
            assert time.monotonic() < until, running.words
            time.sleep(LOOK_AGAIN_S)
        os.kill(running.executors()[0], signal.SIGKILL)
        assert running.end() == 1, running.words
    assert_bob_lacks(lacking, running.told.read_text())


@pytest.mark.long
def test_a_task_outlives_more_executors_than_spark_would_let_it(tmp_path: Path) -> None:
    """There is one executor at a time, and each dies as soon as it has begun the first task."""
    out, killed = tmp_path / "sweep", set[int]()
    words = ("simulate", "--members", "4", "--messages", "40", "--out", out)
    with submitted(tmp_path, *words, master=ONE) as running:
        until = time.monotonic() + DEADLINE_S
        while len(killed) < 2 * SPARKS_OWN_ATTEMPTS:
            assert running.is_running, running.words
            assert time.monotonic() < until, running.words
            for executor in set(running.at_work()) - killed:
                with suppress(ProcessLookupError):
                    os.kill(executor, signal.SIGKILL)
                    killed.add(executor)
            time.sleep(LOOK_AGAIN_S / 10)
        assert running.end() == 0, running.words
    assert (out / "runs.csv").is_file()


@pytest.mark.long
@pytest.mark.parametrize("each", [13, 21])
def test_they_die_all_the_time_and_the_verdict_is_right(tmp_path: Path, each: int) -> None:
    """One of them whenever so many tasks more are done, while another is somewhere in the next.

    Not by the clock: those of a busy machine would be dead before they have begun.  And with each
    goes what it has shuffled, of up to a dozen tasks, so fewer than these would be for nothing.
    """
    lacking, killed = logs_of(tmp_path / "logs", 60_000), 0
    words = ("audit", tmp_path / "logs", "--json", "--out", tmp_path / "lake")
    with submitted(tmp_path, *words) as running:
        until = time.monotonic() + DEADLINE_S
        while running.is_running and time.monotonic() < until:
            time.sleep(LOOK_AGAIN_S)
            executors = running.executors()
            if executors and running.words.count(DONE) >= each * (killed + 1):
                with suppress(ProcessLookupError):
                    os.kill(executors[killed % len(executors)], signal.SIGKILL)
                    killed += 1
        assert running.end() == 1, running.words
    assert killed > MANY
    assert_bob_lacks(lacking, running.told.read_text())
