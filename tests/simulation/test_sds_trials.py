"""Eight members, up to half of everything lost, crashes and partitions: by seeds.

One seed with 1 000 messages always; two hundred with 3 000 in the long run, which uses all
processors.  What fails names its seed; ``python -m engine.sim.trial SEED`` repeats it.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from engine.sim.trial import trial

LONG_SEEDS = range(1, 201)
BLOCK = 20


def test_a_bad_time_ends_well() -> None:
    outcome = trial(1, messages=1_000)
    assert outcome.problems == ()
    assert outcome.crashes > 10
    assert outcome.cut_off > 1_000


@pytest.mark.long
@pytest.mark.parametrize("first", LONG_SEEDS[::BLOCK])
def test_a_bad_time_ends_well_for_many_seeds(first: int) -> None:
    seeds = range(first, first + BLOCK)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        outcomes = list(pool.map(trial, seeds))
    assert [problem for outcome in outcomes for problem in outcome.problems] == []
    assert [outcome.seed for outcome in outcomes] == list(seeds)


def test_a_trial_repeats_bit_for_bit() -> None:
    assert trial(5, members=3, messages=60) == trial(5, members=3, messages=60)


def test_a_trial_complains_when_something_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial that always ends well proves nothing: here healing gets no time."""
    monkeypatch.setattr("engine.sim.trial.HEALING_MS", 0)
    problems = trial(6, messages=40).problems
    assert any("seed 6: everybody holds everything" in problem for problem in problems)
