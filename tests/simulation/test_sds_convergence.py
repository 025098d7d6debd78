"""Bare channels on a bad network: safety while it is bad, everything everywhere once it heals.

A failing run names its seed and can be repeated with it.
"""

import pytest

from engine.core.ids import ParticipantId, UnixMs
from engine.sim.judge import Observation, Verdict, judge
from engine.sim.world import START_MS, World

HOUR = 3_600_000
LONG = pytest.mark.long


def check_safety(world: World) -> Verdict:
    verdict = world.verdict()
    assert verdict.causal_violations == 0, world.seed
    assert verdict.duplicate_deliveries == 0, world.seed
    assert verdict.false_certain_holders == 0, world.seed
    assert world.false_claims == 0, world.seed
    assert world.network.traffic.refused == {}, world.seed
    return verdict


def check_liveness(world: World, end_ms: int) -> Verdict:
    assert world.network.run_until(UnixMs(end_ms), stop=world.all_held), world.seed
    verdict = check_safety(world)
    assert verdict.messages_delivered == world.messages * (world.size - 1)
    return verdict


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=LONG), pytest.param(3, marks=LONG)])
def test_five_members_and_thirty_percent_loss_converge(seed: int) -> None:
    world = World(seed=seed, size=5, loss=0.3)
    end_ms = world.talk(500)
    world.network.run_until(end_ms)
    assert check_safety(world).messages_delivered > 1_500
    verdict = check_liveness(world, end_ms + HOUR)
    assert verdict.messages_sent == 500
    assert world.network.traffic.lost > 1_000
    assert world.network.traffic.duplicated > 100


@pytest.mark.parametrize(("seed", "size", "loss"), [(4, 2, 0.5), (5, 3, 0.5), (6, 8, 0.5)])
def test_half_of_everything_lost(seed: int, size: int, loss: float) -> None:
    world = World(seed=seed, size=size, loss=loss)
    check_liveness(world, world.talk(150) + 2 * HOUR)


@pytest.mark.parametrize("seed", [7, pytest.param(8, marks=LONG)])
def test_crashes_and_partitions(seed: int) -> None:
    world = World(seed=seed, size=5, loss=0.2)
    end_ms = world.talk(200)
    names = list(world.people)
    for number, name in enumerate(names):
        world.crash(name, START_MS + 7_000 * (number + 1), down_ms=4_000 * number + 1)
    world.network.at(UnixMs(START_MS + 20_000), lambda network: network.partition(names[:2]))
    world.network.at(UnixMs(START_MS + 60_000), lambda network: network.heal())
    world.network.run_until(end_ms)
    check_safety(world)
    check_liveness(world, end_ms + 2 * HOUR)


def test_a_member_that_was_away_catches_up_from_nothing_but_holdings() -> None:
    """It missed everything and nobody speaks again: what it lacks is sent when it says hello."""
    world = World(seed=9, size=3, loss=0.1)
    world.network.crash("member-2")
    end_ms = world.talk(0)
    for number in range(120):
        world.network.at(UnixMs(START_MS + number * 400), world.say(f"member-{number % 2}", number))
    world.network.run_until(UnixMs(START_MS + 120_000))
    world.people["member-2"].restart(now_ms=world.network.now_ms)
    world.network.add("member-2", world.people["member-2"])
    check_liveness(world, end_ms + HOUR)


def test_a_lost_newest_message_is_healed_within_a_minute_without_anybody_speaking() -> None:
    world = World(seed=10, size=3, loss=0.0)
    world.network.run_until(UnixMs(START_MS + 200_000))
    world.network.partition(["member-2"])
    at_ms = world.network.now_ms
    world.say("member-0", 1)(world.network)
    world.network.run_until(UnixMs(at_ms + 5_000))
    world.network.heal()
    assert world.verdict().messages_delivered == 1
    world.network.run_until(UnixMs(at_ms + 65_000), stop=lambda: world.verdict().converged)
    assert world.verdict().converged


def test_a_healthy_quiet_group_falls_silent() -> None:
    world = World(seed=11, size=5, loss=0.0)
    end_ms = world.talk(50)
    check_liveness(world, end_ms + HOUR)
    world.network.run_until(UnixMs(end_ms + HOUR))
    before = world.network.traffic.broadcasts
    world.network.run_until(UnixMs(end_ms + 10 * HOUR))
    assert world.network.traffic.broadcasts == before


def test_the_same_seed_is_the_same_run_and_another_is_not() -> None:
    def run(seed: int) -> tuple[object, ...]:
        world = World(seed=seed, size=4, loss=0.3)
        world.network.run_until(UnixMs(world.talk(40) + 30_000))
        logs = [person.observation().log for person in world.people.values()]
        return world.network.traffic, world.verdict(), logs

    assert run(12) == run(12)
    assert run(12) != run(13)


def test_the_judge_sees_what_is_wrong() -> None:
    """A judge that always acquits proves nothing."""
    a, b, x, y = ParticipantId("a"), ParticipantId("b"), "x", "y"
    fine = Observation(participant_id=a)
    fine.log, fine.sent = [x, y], [x, y]  # type: ignore[list-item]
    wrong = Observation(participant_id=b)
    wrong.log = [x]  # type: ignore[list-item]
    fine.certain_holders = {y: {b}}  # type: ignore[dict-item]
    wrong.deliveries = [(y, (x,)), (x, ()), (x, ())]  # type: ignore[list-item]
    verdict = judge([fine, wrong])
    assert not verdict.converged
    assert verdict.causal_violations == 1
    assert verdict.duplicate_deliveries == 1
    assert verdict.false_certain_holders == 1
    assert verdict.held_by_all == 1
    assert verdict.messages_delivered == 1
