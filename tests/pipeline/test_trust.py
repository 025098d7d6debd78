"""A verdict that one can trust: every case of ``trust_cases``, through the real stages.

All conversations that can be in one input are written down as files and judged in one run, by Spark
and by DuckDB; each case is then looked at by itself.  What is right stands in the cases, written
from the contract.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from engine.delivery.contract import LOG_SNAPSHOT
from pipeline import beside
from pipeline.audit import FEW_ROWS, audit
from pipeline.lake import Lake
from pipeline.prepare import prepare
from pipeline.session import SessionSettings, session
from pipeline.trust import Observed, gated
from tests.pipeline.test_tables import OF_THE_RUN, SILVER
from tests.pipeline.told_groups import (
    DELAY_MS,
    Log,
    Story,
    write_jsonl,
    write_parquet,
    write_sqlite,
)
from tests.pipeline.trust_cases import OF_THE_AUDIT, OTHER_KEYS, TOGETHER, Case
from tests.pipeline.trust_logs import but, under_another_key

Rows = list[dict[str, Any]]
Found = Mapping[str, Rows]
"""The tables of one run."""
SPARK, BESIDE, MIXED, DUCKDB = "Spark", "Spark and DuckDB", "by number of rows", "DuckDB"
ALL_HERE = {SPARK: 0, MIXED: 5, BESIDE: beside.MOST_ROWS}
"""Of Spark's: how many rows, at most, are carried out beside it."""
WITHOUT_JAVA: Final = SessionSettings(needs_java=False)


def write(case: Case, place: Path) -> None:
    for number, log in enumerate(case.logs(case.story)):
        form = case.forms[number % len(case.forms)]
        name = f"{case.name} {number:02}"
        if form == "sqlite":
            write_sqlite(log, place / f"{name}.delivery.db")
        elif form == "jsonl":
            write_jsonl([log], place / name)
        else:
            write_parquet([log], place / name)


def found_in(spark: SparkSession, lake: Lake, **way: int) -> Found:
    audited = audit(lake.audited(spark), lake.steps, **way)
    with beside.beside(spark) as ask:
        verdicts, witnesses = gated(audited, Observed.of(spark, lake), ask)
        tables = {name: lake.silver(spark, name) for name in SILVER}
        tables |= {"verdicts": verdicts.frame, "witnesses": witnesses.frame}
        return {name: [row.asDict() for row in table.collect()] for name, table in tables.items()}


def but_when(found: Found) -> dict[str, list[str]]:
    """Everything that is told of what was read, but when it was made."""
    return {
        name: sorted(
            repr(tuple(row[column] for column in sorted(row) if column not in OF_THE_RUN))
            for row in rows
        )
        for name, rows in found.items()
    }


def judged(spark: SparkSession, lake: Lake, **way: int) -> dict[str, list[str]]:
    return but_when(found_in(spark, lake, **way))


@contextmanager
def engine(name: str, spark: SparkSession) -> Iterator[SparkSession]:
    """That of all tests, or a session of its own that starts no Java."""
    if name == DUCKDB:
        with session(WITHOUT_JAVA) as running:
            yield running
        return
    with patch.object(beside, "MOST_ROWS", ALL_HERE[name]):
        yield spark


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """What each engine made of the same logs."""
    place = tmp_path_factory.mktemp("together")
    for case in (*TOGETHER, *OF_THE_AUDIT, *OTHER_KEYS):
        write(case, place / "logs")
    made = {name: place / name for name in (*ALL_HERE, DUCKDB)}
    for name, out in made.items():
        with engine(name, spark) as running:
            prepare(running, [place / "logs"], Lake(out))
    return made


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, lakes: Mapping[str, Path]) -> Mapping[str, Found]:
    """What Spark alone tells of that which each made."""
    with engine(SPARK, spark) as running:
        return {name: found_in(running, Lake(place)) for name, place in lakes.items()}


@pytest.fixture(scope="module", params=[BESIDE, DUCKDB])
def together(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    lakes: Mapping[str, Path],
) -> Found:
    with engine(request.param, spark) as running:
        return found_in(running, Lake(lakes[request.param]))


def assert_right(case: Case, found: Found) -> None:
    story = case.story
    names = {story.pseudonym(person): person for person in (*story.people, "gus")}
    numbers = {story.id_of(number): number for number in (*range(story.count), 90)}

    def of_case(rows: Rows) -> Rows:
        return [row for row in rows if row["channel"] == story.channel]

    absent = {name for name in case.absent if name in names.values()}
    judged_people = {person for person in names.values() if person not in absent} - {"gus"}
    wanted = {person: case.verdicts.get(person, "identical") for person in judged_people}
    verdicts = of_case(found["verdicts"])
    got = {names[row["participant"]]: row["verdict"] for row in verdicts}
    told = {
        (names[row["participant"]], row["kind"], numbers[row["message_id"]])
        for row in of_case(found["witnesses"])
    }
    sources: dict[str, set[str]] = {person: set() for person in got}
    for log in case.logs(story):
        if (owner := names.get(log.header.participant)) in got:
            sources[owner].add(log.header.log_id)
    assert {names[row["participant"]]: set(row["log_ids"]) for row in verdicts} == sources
    cover = {names[row["participant"]]: row for row in of_case(found["coverage"])}
    problems = {who: frozenset(row["problems"]) for who, row in cover.items() if row["problems"]}
    assert {"verdicts": got, "witnesses": told, "problems": problems} == {
        "verdicts": wanted,
        "witnesses": case.witnesses,
        "problems": case.problems,
    }
    without = {who for who, row in cover.items() if not row["has_log"] and not row["problems"]}
    assert without == absent
    clocks = {
        names[row["participant"]]: row["offset_ms"]
        for row in found["clock"]
        if row["participant"] in names
    }
    assert clocks.keys() == case.clocks.keys()
    for person, offset_ms in clocks.items():
        assert abs(offset_ms - case.clocks[person]) <= DELAY_MS
    conflicts = {(numbers[row["message_id"]], row["reason"]) for row in of_case(found["conflict"])}
    assert conflicts == case.conflicts


@pytest.mark.parametrize(
    ("name", "few_rows"), [(BESIDE, 0), (MIXED, 0), (DUCKDB, 0), (DUCKDB, FEW_ROWS)]
)
def test_all_engines_make_the_same_tables(
    spark: SparkSession,
    lakes: Mapping[str, Path],
    by_spark: Mapping[str, Found],
    name: str,
    few_rows: int,
) -> None:
    """Silver row by row, verdicts and witnesses, and each reads what the other has written."""
    expected = but_when(by_spark[SPARK])
    with engine(name, spark) as running:
        for maker in (SPARK, name):
            found = judged(running, Lake(lakes[maker]), few_rows=few_rows)
            for table, rows in expected.items():
                assert found[table] == rows, (maker, table)
    assert but_when(by_spark[name]) == expected


@pytest.mark.parametrize("case", [*TOGETHER, *OF_THE_AUDIT], ids=lambda case: case.name)
def test_a_case_in_one_input_with_others(case: Case, together: Found) -> None:
    assert_right(case, together)


@pytest.mark.parametrize("case", OTHER_KEYS, ids=lambda case: case.name)
def test_logs_under_another_key_take_no_part(case: Case, together: Found) -> None:
    """The log that is under it may tell of a channel that nobody else knows."""
    channels = {case.story.channel, under_another_key(case.story).channel}
    verdicts, coverage = (
        [row for row in rows if row["channel"] in channels]
        for rows in (together["verdicts"], together["coverage"])
    )
    odd = [row for row in verdicts if row["verdict"] == "not comparable"]
    assert len(odd) == 1
    rest = [row for row in verdicts if row not in odd]
    assert {row["verdict"] for row in rest} == {"identical"}
    assert len(rest) == len(case.story.people) - 1
    assert {tuple(row["problems"]) for row in coverage if row["problems"]} == {("other key",)}


def three_at_one_place(_: Story, log: Log) -> Log:
    """At place 6 are also those of 5 and 7: as many as there should be, of the same average."""
    return log.but(
        LOG_SNAPSHOT, lambda row: row | ({"position": 6} if row["position"] in (5, 7) else {})
    )


def test_what_stands_at_one_place_is_seen_in_a_long_log_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    story = Story("long", people=("ada", "bob"), count=2_500)
    case = Case(
        story,
        but("bob", three_at_one_place),
        forms=("parquet",),
        verdicts={"bob": "not comparable"},
        problems={"bob": frozenset({"clash"})},
    )
    write(case, tmp_path / "logs")
    with engine(DUCKDB, spark) as running:
        lake = Lake(tmp_path / "out")
        prepare(running, [tmp_path / "logs"], lake)
        assert_right(case, found_in(running, lake))
