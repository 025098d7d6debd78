"""Two who cannot make up their minds on a bad network end up standing alike: by seeds.

Forty always, half of them with people who remove each other and clocks that
are hours apart; two thousand in the long run, on all processors.  What fails names its seed.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.session.pair_trial import PairTrial

SEEDS = 20
LONG_SEEDS = 1_000
LONG_BLOCK = 50


def problems_of(trial: PairTrial) -> list[str]:
    what = f"seed {trial.seed}, removes={trial.removes}"
    return [f"{what}: {one}; {trial.log}" for one in trial.run()]


def problems_of_many(first: int, count: int, *, removes: bool) -> list[str]:
    trials = (PairTrial(seed, removes=removes) for seed in range(first, first + count))
    return [problem for trial in trials for problem in problems_of(trial)]


def test_whatever_happens_both_stand_alike_in_the_end() -> None:
    assert problems_of_many(0, SEEDS, removes=False) == []


def test_people_who_remove_each_other_stand_alike_too_and_the_bad_times_are_bad() -> None:
    """Each kind of end is reached, and people do remove each other."""
    trials = [PairTrial(seed, removes=True) for seed in range(SEEDS)]
    assert [problem for trial in trials for problem in problems_of(trial)] == []
    ends = {trial.states() for trial in trials}
    assert ends >= {("accepted", "accepted"), ("declined", "declined"), ("asked", "asking")}
    assert sum(trial.removals for trial in trials) > 5


@pytest.mark.parametrize("seed", [74, 91, 140])
def test_seeds_that_once_ended_apart(seed: int) -> None:
    assert problems_of(PairTrial(seed, removes=False)) == []


@pytest.mark.long
@pytest.mark.parametrize("removes", [False, True])
def test_whatever_happens_both_stand_alike_for_many_seeds(removes: bool) -> None:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        runs = [
            pool.submit(problems_of_many, first, LONG_BLOCK, removes=removes)
            for first in range(0, LONG_SEEDS, LONG_BLOCK)
        ]
        assert [problem for run in runs for problem in run.result()] == []
