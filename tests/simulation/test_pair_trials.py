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
BLOCK = 20
LONG_BLOCK = 50


def problems_of(seed: int, *, removes: bool) -> list[str]:
    trial = PairTrial(seed, removes=removes)
    return [f"seed {seed}, removes={removes}: {one}; {trial.log}" for one in trial.run()]


def problems_of_many(first: int, count: int, *, removes: bool) -> list[str]:
    seeds = range(first, first + count)
    return [problem for seed in seeds for problem in problems_of(seed, removes=removes)]


@pytest.mark.parametrize("removes", [False, True])
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_whatever_happens_both_stand_alike_in_the_end(first: int, removes: bool) -> None:
    assert problems_of_many(first, BLOCK, removes=removes) == []


@pytest.mark.parametrize("seed", [74, 91, 140])
def test_seeds_that_once_ended_apart(seed: int) -> None:
    assert problems_of(seed, removes=False) == []


def test_the_bad_times_are_bad() -> None:
    """Each kind of end is reached, and people do remove each other."""
    ends, removals = set(), 0
    for seed in range(20):
        trial = PairTrial(seed, removes=True)
        trial.run()
        ends.add(trial.states())
        removals += trial.removals
    assert ends >= {("accepted", "accepted"), ("declined", "declined"), ("asked", "asking")}
    assert removals > 5


@pytest.mark.long
@pytest.mark.parametrize("removes", [False, True])
def test_whatever_happens_both_stand_alike_for_many_seeds(removes: bool) -> None:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        runs = [
            pool.submit(problems_of_many, first, LONG_BLOCK, removes=removes)
            for first in range(0, LONG_SEEDS, LONG_BLOCK)
        ]
        assert [problem for run in runs for problem in run.result()] == []
