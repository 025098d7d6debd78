"""Two or three people, and everything that can befall payloads and processes: by seeds.

Three hundred seeds always, ten thousand in the long run, which uses all processors.  What fails
names its seed; ``python -m engine.sim.mvds.trial SEED`` repeats it.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from msgspec.structs import replace

from engine.core.faults import FaultSpec
from engine.core.ids import ParticipantId
from engine.core.mvds.config import Mode, MvdsConfig
from engine.core.mvds.receiver import Receiver
from engine.core.mvds.vocabulary import GroupId, MvdsState
from engine.sim.mvds.participant import MvdsParticipant
from engine.sim.mvds.sessions import Rhythm, cost
from engine.sim.mvds.store import MvdsStore
from engine.sim.mvds.trial import mvds_trial
from engine.sim.mvds.world import START_MS, MvdsWorld

SEEDS = 300
LONG_SEEDS = 10_000
BLOCK = 1_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_a_bad_time_ends_well(first: int) -> None:
    outcomes = [mvds_trial(seed) for seed in range(first, first + 100)]
    assert [problem for outcome in outcomes for problem in outcome.problems] == []
    assert sum(outcome.messages for outcome in outcomes) > 400
    assert sum(outcome.lost for outcome in outcomes) > 1_000
    assert sum(outcome.crashes for outcome in outcomes) > 100
    assert sum(outcome.missed for outcome in outcomes) > 100
    assert sum(outcome.fetched for outcome in outcomes) > 20
    assert {outcome.people for outcome in outcomes} == {2, 3}


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, BLOCK))
def test_a_bad_time_ends_well_for_many_seeds(first: int) -> None:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        outcomes = list(pool.map(mvds_trial, range(first, first + BLOCK), chunksize=50))
    assert [problem for outcome in outcomes for problem in outcome.problems] == []
    assert len(outcomes) == BLOCK


def test_a_trial_repeats_bit_for_bit() -> None:
    assert [mvds_trial(seed) for seed in range(20)] == [mvds_trial(seed) for seed in range(20)]


def test_a_trial_complains_when_healing_gets_no_time() -> None:
    """A trial that always ends well proves nothing."""
    problems = [
        problem for seed in range(20) for problem in mvds_trial(seed, healing_ms=0).problems
    ]
    assert any("all is settled" in problem for problem in problems)


def test_a_trial_complains_when_duplicates_are_not_acked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect R1, put in on purpose."""
    acknowledge = Receiver.acknowledge

    def once(self: Receiver, *arguments: object) -> None:
        if arguments[1] not in self.held:
            acknowledge(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Receiver, "acknowledge", once)
    problems = [problem for seed in range(10) for problem in mvds_trial(seed).problems]
    assert any("all is settled" in problem for problem in problems)


def test_a_trial_complains_when_what_is_held_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restarted node would deliver once more, which the model of a disk refuses."""
    state = MvdsStore.state

    def forgetful(self: MvdsStore, *, limit: int) -> MvdsState:
        return replace(state(self, limit=limit), held=frozenset())

    monkeypatch.setattr(MvdsStore, "state", forgetful)
    with pytest.raises(ValueError, match="delivered twice"):
        list(map(mvds_trial, range(20)))


# --- sessions -----------------------------------------------------------------------------------

RARELY = Rhythm(offline=0.9, messages=60)


def test_people_who_are_rarely_there_get_everything_at_a_few_times_the_bytes() -> None:
    lossless = cost(MvdsConfig(), Rhythm(messages=60), seed=1)
    for store_copies in (False, True):
        rarely = cost(
            MvdsConfig(), Rhythm(offline=0.9, messages=60, store_copies=store_copies), seed=1
        )
        assert (rarely.delivered, rarely.unfinished) == (120, 0)
        assert rarely.bytes_per_message < 10 * lossless.bytes_per_message


def test_batch_mode_pays_in_bytes() -> None:
    mixed, batch = (
        cost(MvdsConfig(mode=mode), RARELY, seed=2) for mode in (Mode.MIXED, Mode.BATCH)
    )
    assert batch.copies_per_message > 3 * mixed.copies_per_message
    assert batch.bytes_per_message > 2 * mixed.bytes_per_message


def test_hints_that_a_peer_is_there_save_time() -> None:
    hinted, blind = (
        cost(MvdsConfig(), Rhythm(offline=0.9, messages=60, presence=presence), seed=3)
        for presence in (True, False)
    )
    middle = len(hinted.latencies_ms) // 2
    assert hinted.latencies_ms[middle] < blind.latencies_ms[middle]


def test_a_peer_that_never_comes_costs_little_and_less_and_less() -> None:
    """The wait grows to an hour: an afternoon costs some dozen offers, not thousands of copies."""
    names = (ParticipantId("here"), ParticipantId("away"))
    people = {
        name: MvdsParticipant(
            name,
            groups={GroupId(b"G" * 32): frozenset(names)},
            config=MvdsConfig(),
            seed=4,
            now_ms=START_MS,
        )
        for name in names
    }
    world = MvdsWorld(people=people, faults=FaultSpec(), presence=False)
    world.set_online(names[1], online=False)
    world.say(names[0], names[1:], 1_000)
    world.run_until(START_MS + 6 * HOUR_MS)
    assert world.traffic.message_copies == 3, "one more after 7 offers, and one after 15"
    assert world.traffic.payloads < 40
    world.set_online(names[1], online=True)
    assert world.run_until(START_MS + 8 * HOUR_MS, stop=lambda: not people[names[0]].store.records)
