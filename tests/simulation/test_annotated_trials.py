"""Members show the same texts, edits, deletions, reactions and quotes after a bad time: by seeds.

Two seeds always, more in the long run.  What fails names its seed;
``python -m engine.sim.annotated_trial SEED`` repeats it.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from engine.persistence import annotation_tables
from engine.session.group.whole_files import WholeFiles
from engine.sim.annotated_trial import annotated_trial
from engine.sim.shared_files import SharedFiles

SEEDS = range(1, 3)
LONG_SEEDS = (*range(3, 11), *range(101, 201))


@pytest.mark.parametrize("seed", SEEDS)
def test_all_members_show_the_same_and_what_the_rules_say(seed: int) -> None:
    outcome = annotated_trial(seed)
    print(outcome)  # noqa: T201 - the figures of this seed
    assert outcome.problems == ()
    assert outcome.crashes > 0
    assert outcome.early > 0
    assert outcome.claims > 0
    kinds = {"text", "file", "reaction", "edit", "edit of another", "retraction of another"}
    assert kinds <= outcome.said.keys()


@pytest.mark.long
def test_all_members_show_the_same_for_many_seeds() -> None:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        outcomes = list(pool.map(annotated_trial, LONG_SEEDS))
    assert [problem for outcome in outcomes for problem in outcome.problems] == []


# --- the judge sees: a rule that is broken on purpose makes it complain ---------------------------


def assert_seen(complaint: str) -> None:
    """Within a few seeds, of which the second makes the shortest trial."""
    seeds = (2, 1, 3, 4, 5)
    assert any(complaint in problem for seed in seeds for problem in annotated_trial(seed).problems)


def test_the_judge_sees_that_a_stranger_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    anybody = annotation_tables.NEWEST_VERSION.replace("sender_key = ?", "sender_key <> -?")
    monkeypatch.setattr(annotation_tables, "NEWEST_VERSION", anybody)
    assert_seen("than the rules say")


def test_the_judge_sees_that_a_claim_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WholeFiles, "hear", lambda *_, **__: None)
    outcome = annotated_trial(1)
    assert any("than those who said so" in problem for problem in outcome.problems)


def test_the_judge_sees_that_a_lie_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedFiles, "fetch", lambda *_: True)
    assert_seen("lies believed")


def test_the_judge_sees_that_what_came_early_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {size: f"{sql} AND 0" for size, sql in annotation_tables.REACTED_TO.items()}
    monkeypatch.setattr(annotation_tables, "REACTED_TO", nothing)
    assert_seen("show something else")
