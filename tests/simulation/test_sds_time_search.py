"""Members who are gone repair nothing, and no Store has their hints: a Store's times fill the gaps.

A failing run names its seed and can be repeated with it.
"""

import pytest

from engine.core.faults import FaultSpec, SeededRandom
from engine.core.ids import ParticipantId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.sim.archive import SimArchive
from engine.sim.channel_participant import ChannelParticipant
from engine.sim.judge import causal_violations
from engine.sim.network import SimNetwork
from engine.sim.world import START_MS

MESSAGES = 60
HALF_AN_HOUR = 1_800_000


@pytest.mark.parametrize(
    "seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 9))]
)
def test_what_a_member_said_who_is_gone_comes_from_the_store_by_its_time(seed: int) -> None:
    network = SimNetwork(FaultSpec(loss=0.4, delay_ms=(50, 400), seed=seed), start_ms=START_MS)
    alice, bob = ParticipantId("alice"), ParticipantId("bob")
    archive, people = SimArchive(), dict[ParticipantId, ChannelParticipant]()
    for name in (alice, bob):
        people[name] = ChannelParticipant(
            name,
            members=frozenset({alice, bob}),
            config=SdsConfig.for_small_group(),
            seed=seed,
            now_ms=START_MS,
        )
        network.add(name, people[name])
    network.add("store", archive)
    people[bob].use_store(archive, now_ms=START_MS)
    random, at_ms = SeededRandom(seed, "users"), START_MS
    for number in range(MESSAGES):
        at_ms = UnixMs(at_ms + random.between(100, 20_000))
        network.run_until(at_ms)
        network.broadcast(alice, people[alice].send(f"{number}", now_ms=at_ms))
    network.crash(alice)
    said, held = people[alice].store.log_ids(), people[bob]

    def has_all_that_it_heard_of() -> bool:
        state = held.store.state()
        return not state.missing and not state.incoming

    assert network.run_until(UnixMs(at_ms + HALF_AN_HOUR), stop=has_all_that_it_heard_of), seed
    assert held.store.log_ids() == said[: len(held.store)], seed
    assert len(held.store) >= MESSAGES // 2, seed
    assert causal_violations(held.observation()) == 0, seed
    assert held.observation().lost == set(), seed
    assert archive.asked_windows, seed
