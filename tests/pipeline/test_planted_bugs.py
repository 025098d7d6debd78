"""A bug planted in any stage before the audit, and in the gate behind it, makes some case wrong.

The cases of ``trust_cases`` are written from the contract; that they are sharp enough is shown
here, as it is for the audit itself in ``test_audit_is_exact``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from pipeline import bronze, clock, comparable, coverage, lake, silver, trust
from pipeline.lake import Lake
from pipeline.prepare import prepare
from pipeline.session import session
from pipeline.sources import arrow_rows
from tests.pipeline.planted import Bug, each_of, plant
from tests.pipeline.test_trust import WITHOUT_JAVA, assert_right, found_in, write
from tests.pipeline.trust_cases import OF_THE_AUDIT, OTHER_KEYS, TOGETHER

BUGS: Final = [
    Bug(arrow_rows, "pc.coalesce(problems, here)", "problems"),
    Bug(bronze, "(-log.last_seq, log.file)", "(log.last_seq, log.file)"),
    Bug(comparable, 'F.desc("people"), F.desc("rows")', 'F.asc("people"), F.asc("rows")'),
    Bug(comparable, '.where("one <> other")', '.where("one <> one")'),
    Bug(comparable, "- OVERLAP_MS)", "+ OVERLAP_MS * 1_000_000)"),
    Bug(comparable, "beginnings > 1", "beginnings > 2"),
    Bug(comparable, "if not repeats.is_empty", "if False"),
    Bug(silver, 'F.col("rows") > F.bit_count("marks")', "F.lit(False)"),
    Bug(comparable, '"channel", "snapshot_ms"]', '"channel"]'),
    Bug(comparable, '[*shot, "position", "mid"]', '[*shot, "position"]'),
    Bug(silver, "F.max(F.struct(*SNAPSHOT))", "F.min(F.struct(*SNAPSHOT))"),
    Bug(silver, 'F.col("seq") > F.col("after_seq")', 'F.col("seq") < F.col("after_seq")'),
    Bug(silver, "own = 1 AND", ""),
    Bug(silver, "AND said_0 = said_1", ""),
    Bug(silver, 'F.try_subtract("sent_ms"', 'F.try_add("sent_ms"'),
    Bug(silver, '(F.col("yes") * 2 > F.col("all"))', "F.lit(True)"),
    Bug(silver, "~denies, MINORITY", "denies, MINORITY"),
    Bug(silver, 'F.col("participant") != sender', 'F.col("participant") == sender'),
    Bug(silver, '.where("NOT is_best OR bests > 1")', '.where("is_best")'),
    Bug(silver, 'F.array_join("parent_mids", ",")', 'F.lit("")'),
    Bug(lake, "parquet.rows_of(told) != count", "False"),
    Bug(coverage, 'F.col("first_seq") > 1', "F.lit(False)"),
    Bug(coverage, 'F.col("has_previous").isNull())', 'F.col("has_previous").isNotNull())'),
    Bug(coverage, 'F.col("gaps") > 0, GAP', "F.lit(False), GAP"),
    Bug(coverage, '& ~F.col("is_gap_later")', ""),
    Bug(coverage, '& ~F.col("is_bad")', ""),
    Bug(coverage, '(F.col("joined_ms") <= sent_ms) &', ""),
    Bug(coverage, 'F.try_subtract("joined_ms", offset_ms)', 'F.col("joined_ms")'),
    Bug(coverage, 'F.col("sent_ms") > F.col("until_ms")', 'F.col("sent_ms") < F.col("until_ms")'),
    Bug(clock, "(there - back) // 2", "(there + back) // 2"),
    Bug(clock, "(-len(apart[who]) / partners[who],", "(not apart[who],  len(apart[who]),"),
    Bug(clock, "F.min(apart_ms(", "F.max(apart_ms("),
    Bug(trust, 'F.col("vouched_by") == MINORITY', 'F.col("vouched_by") != MINORITY'),
    Bug(trust, '"is_unseen", ~F.col("is_whole")', '"is_unseen", F.lit(False)'),
    Bug(trust, 'F.coalesce("is_partly", F.lit(False))', "F.lit(False)"),
    Bug(trust, '| (F.col("unobserved") > 0)', ""),
    Bug(trust, 'F.when(F.col(f"n_{CONFLICT}") > 0, CONFLICT)', "F.when(F.lit(False), CONFLICT)"),
    Bug(trust, 'F.array_contains("problems", NOTHING)', "F.lit(False)"),
]  # fmt: skip


@pytest.fixture(scope="module")
def here() -> Iterator[SparkSession]:
    with session(WITHOUT_JAVA) as running:
        yield running


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("logs")
    for case in (*TOGETHER, *OF_THE_AUDIT, *OTHER_KEYS):
        write(case, place)
    return place


def judge(here: SparkSession, logs: Path, out: Path) -> None:
    """Raises AssertionError, or KeyError for names that nobody has, if a case is judged wrongly."""
    place = Lake(out)
    prepare(here, [logs], place)
    found = found_in(here, place)
    events = [(row["log_id"], row["seq"]) for row in found["event"]]
    assert len(events) == len(set(events))
    for case in (*TOGETHER, *OF_THE_AUDIT):
        assert_right(case, found)


@pytest.mark.long
def test_without_a_bug_all_are_right(here: SparkSession, logs: Path, tmp_path: Path) -> None:
    judge(here, logs, tmp_path)


@pytest.mark.long
@each_of(BUGS)
def test_a_planted_bug_is_found(
    here: SparkSession, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: Bug
) -> None:
    plant(monkeypatch, bug)
    with pytest.raises((AssertionError, KeyError)):
        judge(here, logs, tmp_path)
