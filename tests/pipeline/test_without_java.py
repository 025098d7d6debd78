"""Small inputs are judged without Java, and nobody can tell by what is said.

The same commands run with Spark and with DuckDB: terminal, JSON, JUnit XML and the tables of a
report have to be the same.  That silver is the same, row by row, is held by ``test_trust`` and
``test_one_more_log``; that the audit is exact on both, by ``test_audit_is_exact``.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from engine.delivery.sqlite_log import find_logs
from pipeline import cli, session
from pipeline.beside import Answer, Beside
from pipeline.cli import Command, parser
from pipeline.commands import audit, report
from pipeline.duck import channel
from pipeline.duck.channel import Call, DuckChannel
from pipeline.duck.errors import DuckError
from pipeline.lake import Lake
from pipeline.persisted import persisted
from pipeline.simulate.case import Case
from pipeline.tables import LakeError
from pipeline.tables.delta import NAME as DELTA
from tests.pipeline.log_files import remove_entry, swap_entries
from tests.pipeline.recorded_group import RecordedGroup
from tests.pipeline.test_trust import DUCKDB, SPARK, WITHOUT_JAVA, engine

MEMBERS = 3


@dataclass(frozen=True)
class Tampered:
    """Logs of which two were changed, and the ids of the messages that this is about."""

    place: Path
    taken: str
    swapped: tuple[str, str]


@pytest.fixture(scope="module")
def tampered(tmp_path_factory: pytest.TempPathFactory) -> Tampered:
    """Of a simulated group that lost a fifth of all copies and healed."""
    place = tmp_path_factory.mktemp("logs")
    group = RecordedGroup(Case(members=MEMBERS, messages=12, loss=0.2, seed=3)).group
    for member in group.members.values():
        assert member.recording is not None
        member.recording.write(place)
    one, other, *_ = find_logs(place)
    taken, swapped = remove_entry(one, 5), swap_entries(other, 7)
    (place / "junk.delivery.db").write_bytes(b"no database at all")
    return Tampered(place=place, taken=taken, swapped=swapped)


@pytest.fixture(scope="module")
def logs(tampered: Tampered) -> Path:
    return tampered.place


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> Path:
        pytest.fail("Java is looked for")

    monkeypatch.setattr(session, "java_home", refuse)
    monkeypatch.delenv("MASTER", raising=False)


def said_by(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], *words: str | Path
) -> tuple[int, str, str]:
    asked = parser().parse_args(list(map(str, words)))
    command: Command = asked.command
    code = command.run(asked, spark)
    told = capsys.readouterr()
    return code, re.sub(r'"run": "[^"]+"', '"run": ""', told.out), told.err


def files_below(place: Path) -> Iterator[tuple[str, list[str]]]:
    """Each with its rows: not all have an order."""
    for path in sorted(place.rglob("*.csv")):
        yield str(path.relative_to(place)), sorted(path.read_text(encoding="utf-8").splitlines())


@dataclass(frozen=True)
class Told:
    """By one engine, of the same logs: an audit, another one, and a report."""

    audit: tuple[int, str, str]
    as_json: tuple[int, str, str]
    junit: str
    report: tuple[int, str]
    """Exit code and errors."""
    figures: Mapping[str, Sequence[str]]


def told_by(spark: SparkSession, capsys: pytest.CaptureFixture[str], logs: Path, out: Path) -> Told:
    """The first audit reads the logs; what it has read serves the others."""
    junit = out / "ci" / "audit.xml"
    audit = said_by(spark, capsys, "audit", logs, "--out", out)
    as_json = said_by(spark, capsys, "audit", logs, "--out", out, "--json", "--junit", junit)
    code, _, errors = said_by(spark, capsys, "report", logs, "--out", out)
    assert (out / "report.html").exists()
    figures = dict(files_below(out / "tables"))
    assert figures
    return Told(audit, as_json, junit.read_text(encoding="utf-8"), (code, errors), figures)


def test_they_say_the_same_and_name_what_was_tampered_with(
    spark: SparkSession, tampered: Tampered, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for name in (SPARK, DUCKDB):
        with engine(name, spark) as running:
            found[name] = told_by(running, capsys, tampered.place, tmp_path / name)
    told = found[SPARK]
    assert found[DUCKDB] == told
    assert json.loads(told.as_json[1])["verdicts"] == {
        "causal violation": 1,
        "identical": 1,
        "missing": 1,
    }
    code, out, errors = told.audit
    assert code == 1
    assert "junk.delivery.db: this is neither a delivery log" in errors
    assert f"{MEMBERS} logs of channels: {MEMBERS - 2} agree, 2 differ" in out
    assert out.count("  identical  ") == MEMBERS - 2
    assert f"missing: {tampered.taken} at place" in out
    assert "it was there and is gone" in out
    for message_id in tampered.swapped:
        assert f"reordered: {message_id} at place" in out
    assert 'failures="2"' in told.junit


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("command", ["ingest", "audit", "report"])
def test_a_command_for_few_logs_looks_for_no_java(
    command: str, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = next(path for path in find_logs(logs) if "junk" not in path.name)
    code = cli.main([command, str(whole), "--out", str(tmp_path / "out")])
    assert code == (0 if command == "ingest" else 1)  # It lacks what was removed.
    assert "read 1 files" in capsys.readouterr().out


@pytest.mark.parametrize("command", [audit, report])
def test_nobody_writes_there_before_what_was_found_is_told(
    command: ModuleType, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next runs take the place of what is told of, and remove it."""
    refused: list[str] = []
    notices = command.notices

    def meanwhile(spark: SparkSession, lake: Lake, verdicts: Answer, ask: Beside) -> list[str]:
        with pytest.raises(LakeError) as told, lake.run(spark):
            pass
        refused.append(str(told.value))
        found: list[str] = notices(spark, lake, verdicts, ask)
        return found

    monkeypatch.setattr(command, "notices", meanwhile)
    assert cli.main([command.NAME, str(logs), "--out", str(tmp_path / "out")]) == 1
    assert refused == [f"another process is writing to {tmp_path / 'out'}"]


@pytest.mark.parametrize(
    ("words", "can"),
    [
        ((), True),
        (("--tables", "parquet"), True),
        (("--tables", DELTA), False),
        (("--lake", "s3a://bucket/place"), False),
        (("--master", "local[2]"), False),
        (("--remote", "sc://localhost"), False),
        (("--driver-memory", "2g"), False),
    ],
)
def test_spark_is_started_where_it_is_asked_for_or_has_to_be(
    words: tuple[str, ...], can: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MASTER", raising=False)
    arguments = parser().parse_args(["audit", "logs", "--out", str(tmp_path), *words])
    assert cli.can_do_without_java(arguments) == can
    monkeypatch.setenv("MASTER", "local[2]")
    assert not cli.can_do_without_java(arguments)


@pytest.mark.parametrize(
    ("name", "megabytes", "without_java", "is_small"),
    [
        ("a.delivery.db", 60, True, True),
        ("a.jsonl", 60, True, True),
        ("delivery_event.parquet", 20, True, True),
        ("delivery_event.parquet", 60, True, False),
        ("delivery_event.parquet", 70, False, False),
    ],
)
def test_what_is_little_for_spark_goes_by_rows_rather_than_bytes(  # noqa: PLR0913, PLR0917 -- a table
    name: str,
    megabytes: int,
    without_java: bool,
    is_small: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exports are packed, so as many bytes are more rows; DuckDB takes more of them than Spark."""
    monkeypatch.delenv("MASTER", raising=False)
    with (tmp_path / name).open("wb") as file:
        file.truncate(megabytes * 10**6)  # It has no content, and takes no room.
    words = ["audit", str(tmp_path), "--out", str(tmp_path / "out")]
    assert cli.settings_for(cli.parser().parse_args(words)).needs_java == (not without_java)
    on_spark = cli.settings_for(cli.parser().parse_args([*words, "--master", "local[2]"]))
    assert on_spark.needs_java
    assert on_spark.is_small == is_small


def test_tables_that_only_spark_has_are_left_to_it(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(
        json.dumps({"format": 2, "tables": {"silver/log": {"format": DELTA}}}), encoding="utf-8"
    )
    assert Lake(tmp_path).takes_spark()


def test_a_question_does_not_tell_how_what_was_kept_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However much of that there is: each step would make it twice as long."""
    sizes: list[int] = []

    class Weighed(DuckChannel):
        def unary_stream(self, method: str, *arguments: object, **options: object) -> Call:
            call = super().unary_stream(method, *arguments, **options)

            def weighed(request: Message, **more: object) -> Message | Iterator[Message]:
                sizes.append(request.ByteSize())
                return call(request, **more)

            return weighed

    monkeypatch.setattr(channel, "DuckChannel", Weighed)
    with session.session(WITHOUT_JAVA) as here:
        rows = here.range(3)
        for _ in range(8):
            rows = persisted(rows.union(rows))
            assert rows.columns == ["id"]
        assert len(rows.collect()) == 3 * 2**8
        assert sizes[-1] < 300
        with pytest.raises(DuckError, match="table unheard_of"):
            here.table("unheard_of").collect()


def test_what_nobody_has_said_in_its_words_is_refused_in_a_line() -> None:
    with session.session(WITHOUT_JAVA) as here, pytest.raises(DuckError) as refused:
        here.range(3).select(F.soundex(F.lit("a"))).collect()
    assert refused.value.text == ("soundex of 1: this takes Spark, --master local[*] starts it")


BEYOND: Mapping[str, Callable[[], Column]] = {
    "sha2 of 512 bits": lambda: F.sha2("word", 512),
    "array_join of 3": lambda: F.array_join(F.array("word"), ",", "-"),
    "to_date of 2": lambda: F.to_date("word", "yyyy"),
    "sum of 1": lambda: F.sum_distinct("id"),
}


@pytest.mark.parametrize("refused", BEYOND)
def test_no_argument_is_left_out_in_silence(refused: str) -> None:
    with session.session(WITHOUT_JAVA) as here, pytest.raises(DuckError, match=refused):
        here.range(3).withColumn("word", F.lit("a")).select(BEYOND[refused]()).collect()


def test_two_columns_of_one_name_do_not_become_one() -> None:
    with session.session(WITHOUT_JAVA) as here, pytest.raises(DuckError, match="of one name"):
        here.range(3).select("id", F.lit("a").alias("id")).collect()


def test_only_columns_of_a_values_type_are_filled_with_it() -> None:
    with session.session(WITHOUT_JAVA) as here:
        rows = here.createDataFrame([(None, None, None)], "n bigint, is_so boolean, text string")
        assert rows.fillna(0).collect() == [(0, None, None)]
        assert rows.fillna(True).collect() == [(None, True, None)]
        with pytest.raises(DuckError, match="filling with a string"):
            rows.fillna("x").collect()


def test_what_was_written_there_before_is_replaced_where_that_is_asked_for(tmp_path: Path) -> None:
    """As when Spark judged the same logs before, in as many files as it has processors."""
    place = tmp_path / "steps"
    with session.session(WITHOUT_JAVA) as here:
        here.range(5).write.parquet(str(place))
        (place / "part-0.parquet").rename(place / "part-00000-of-spark.parquet")
        with pytest.raises(DuckError, match="is there already"):
            here.range(3).write.parquet(str(place))
        with pytest.raises(DuckError, match="adding to what is written"):
            here.range(3).write.mode("append").parquet(str(place))
        with pytest.raises(DuckError, match="writing by values"):
            here.range(3).write.partitionBy("id").parquet(str(tmp_path / "other"))
        here.range(3).write.mode("overwrite").parquet(str(place))
        assert here.read.schema("id bigint").parquet(str(place)).count() == 3


def test_a_fraction_becomes_an_integer_as_in_spark() -> None:
    with session.session(WITHOUT_JAVA) as here:
        (row,) = here.range(1).select(*(F.lit(x).cast("bigint") for x in (2.7, -2.7))).collect()
    assert tuple(row) == (2, -2)


def test_an_overflow_is_an_error_here_as_well() -> None:
    with session.session(WITHOUT_JAVA) as here, pytest.raises(DuckError, match="DuckDB could not"):
        here.range(3).select(F.sum(F.lit(2**62) + F.lit(2**61))).collect()


AUDIT = """
import sys
from pipeline import cli
code = cli.main(["audit", sys.argv[1], "--out", sys.argv[2]])
assert "py4j.java_gateway" not in sys.modules or not __import__("pyspark").SparkContext._gateway
sys.exit(code)
"""


def test_the_program_starts_no_java(logs: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AUDIT, str(logs), str(tmp_path / "out")],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert all(line.startswith("causerie-pipeline: ") for line in done.stderr.splitlines())


def test_an_answer_of_many_rows_comes_in_parts_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """As are texts of more than 2 GB."""
    monkeypatch.setattr(channel, "BATCH_ROWS", 7)
    with session.session(WITHOUT_JAVA) as here:
        rows = here.createDataFrame(pa.table({"n": range(100)}))
        assert rows.toArrow().column("n").to_pylist() == list(range(100))
        assert rows.where("n < 0").toArrow().num_rows == 0
