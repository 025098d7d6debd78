"""Logs that come one run later, whatever they tell, leave what one run over all would have made.

Each conversation is a case of ``trust_cases`` in files, of which some are there at first and the
others come later: what is said of the old ones is right only if whatever the new ones change for
them is made anew.  Silver, verdicts and witnesses are compared row by row with a fresh run's.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from pipeline.lake import Lake
from pipeline.prepare import prepare
from pipeline.tables import RUN
from tests.pipeline.test_trust import DUCKDB, SPARK, engine, judged, write
from tests.pipeline.told_groups import Story
from tests.pipeline.trust_cases import OF_THE_AUDIT, OTHER_KEYS, TOGETHER, Case
from tests.pipeline.trust_logs import whole

LATER: Final[Mapping[str, tuple[int, ...]]] = {
    "agree": (4,),
    "lacks one": (2,),
    "late": (3,),
    "twice parquet+sqlite+jsonl": (1, 2),
    "two files": (0,),
    "first file gone": (0,),
    "refused row": (1,),
    "nothing of it": (1,),
    "stopped early": (0, 4),
    "other sender": (0,),
    "other content": (3,),
    "two of six": (5,),
    "two of six, absent": (4,),
    "another's log": (5,),
    "two stories": (5,),
    "rejoined": (3,),
    "absent members": (2,),
    "15 s behind": (4,),
    "below its parent": (1,),
    "live order": (3,),
    "given up, started anew": (3,),
    "wrong key": (4,),
    "a new channel": (0, 1, 2, 3, 4),
}
"""Which logs of which case come later, by their place in it.

Among them: more of a log that was there, in another form; what goes before and what goes on from a
log that was there; the log of who wrote what a forger told of, and the forger's; a clock that is
off, and those that it is compared with.
"""
KNOWN: Final = {case.name: case for case in (*TOGETHER, *OF_THE_AUDIT, *OTHER_KEYS)} | {
    "a new channel": Case(Story("a new channel"), whole)
}


def written(place: Path, later: Path) -> None:
    """All logs below ``place``, but those that come later."""
    for name, numbers in LATER.items():
        write(KNOWN[name], place)
        for number in numbers:
            (found,) = place.glob(f"{name} {number:02}*")
            later.mkdir(exist_ok=True)
            shutil.move(found, later / found.name)


def runs_of(spark: SparkSession, lake: Lake, name: str, channel: str) -> set[str]:
    rows = lake.silver(spark, name).where(f"channel = '{channel}'").select(RUN).distinct()
    return {row[RUN] for row in rows.collect()}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("told")
    written(place / "logs", place / "later")
    return place / "logs", place / "later"


@pytest.fixture(scope="module")
def expected(
    spark: SparkSession, logs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """Of one run over all."""
    lake = Lake(tmp_path_factory.mktemp("fresh"))
    prepare(spark, logs, lake)
    return judged(spark, lake)


@pytest.mark.long
def test_what_comes_later_changes_what_it_would_have_changed_at_once(
    spark: SparkSession,
    logs: tuple[Path, Path],
    expected: Mapping[str, list[str]],
    tmp_path: Path,
) -> None:
    lake = Lake(tmp_path / "lake")
    prepare(spark, logs[:1], lake)
    before = judged(spark, lake)
    prepare(spark, logs, lake)
    after = judged(spark, lake)
    for name, rows in expected.items():
        assert after[name] == rows, name
    assert before["verdicts"] != after["verdicts"]

    # Who was there keeps the rows of the first run, and has its say on messages anew.
    first, second = (str(run["id"]) for run in lake.runs())
    made = {"event": {first, second}, "entry": {first, second}, "message": {second}}
    for name, found in made.items():
        assert runs_of(spark, lake, name, KNOWN["agree"].story.channel) == found, name

    # The same logs once more, under other paths, tell nothing new.
    again = tmp_path / "again"
    again.mkdir()
    for path in logs[0].glob("*.delivery.db"):
        shutil.copy(path, again)
    prepare(spark, [again], lake)
    repeated = judged(spark, lake)
    for name in ("event", "entry", "message", "conflict", "coverage", "verdicts", "witnesses"):
        assert repeated[name] == expected[name], name


@pytest.mark.long
@pytest.mark.parametrize(
    "engines", [(DUCKDB, DUCKDB), (DUCKDB, SPARK), (SPARK, DUCKDB)], ids="+".join
)
def test_without_java_it_is_the_same_and_one_goes_on_where_the_other_was(
    spark: SparkSession,
    logs: tuple[Path, Path],
    expected: Mapping[str, list[str]],
    tmp_path: Path,
    engines: tuple[str, str],
) -> None:
    lake = Lake(tmp_path)
    first, second = engines
    with engine(first, spark) as running:
        prepare(running, logs[:1], lake)
    with engine(second, spark) as running:
        prepare(running, logs, lake)
        found = judged(running, lake)
    for table, rows in expected.items():
        assert found[table] == rows, table


@pytest.mark.long
def test_a_session_for_much_input_says_the_same(
    spark: SparkSession,
    logs: tuple[Path, Path],
    expected: Mapping[str, list[str]],
    tmp_path: Path,
) -> None:
    """With what is compiled, planned adaptively and cut into parts, and the audit on Spark."""
    large = spark.newSession()
    for name, value in {
        "spark.causerie.smallInput": "false",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.autoBroadcastJoinThreshold": "10m",
    }.items():
        large.conf.set(name, value)
    lake = Lake(tmp_path)
    prepare(large, logs, lake)
    found = judged(large, lake, few_rows=0)
    for name, rows in expected.items():
        assert found[name] == rows, name
