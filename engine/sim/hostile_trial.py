"""One seed's whole trial with hostile members, and what must still hold for the honest ones.

During the attack, no message is claimed to be held where it is not, and no honest Lamport timestamp
runs ahead.  Afterwards, all honest logs are equal, and members look only for messages that do not
exist; once those are given up, they look for none.  ``python -m engine.sim.hostile_trial 17``
repeats a failed test's seed.
"""

import sys
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from engine.core.ids import AuthorSequence, MessageId, ParticipantId, UnixMs
from engine.core.sds.config import HOUR_MS, MINUTE_MS
from engine.sim.channel_participant import text_of
from engine.sim.hostile_world import (
    HONEST_ERROR_MS,
    MAX_AHEAD_MS,
    End,
    HostileWorld,
)
from engine.sim.judge import Verdict
from engine.sim.world import random_loss

MEMBERS = 8
MESSAGES = 100
GAP_MS = 4_000
LIES = 16
GUESTS = 3
CRASHES = 12
PARTITIONS = 8
REPLAYS = 60
HEALING_MS = 2 * HOUR_MS
"""Enough for messages an hour ahead to reach their time; losses continue meanwhile."""
PHANTOMS_LOST_MS = 6 * HOUR_MS
"""Several times as long as a phantom is sought: a member who hears of it only from those who gave
it up looks for it anew."""
LOOK_AGAIN_MS = 10 * MINUTE_MS
REFUSALS = frozenset({"another_form", "id_mismatch"})


class HostileOutcome(Struct, frozen=True, kw_only=True):
    """The result of a trial; ``problems`` is empty if all held."""

    seed: int
    loss: float
    crashes: int
    replayed: int
    forked: int
    """Sequence numbers with two messages."""
    phantoms: int
    """Dependencies that an honest member gave up."""
    lamport_ahead_ms: int
    refused: dict[str, int]
    held_aside: int
    """The most that one honest member held aside."""
    verdict: Verdict
    problems: tuple[str, ...]


def hostile_trial(
    seed: int, *, messages: int = MESSAGES, lies: int = LIES, guests: int = GUESTS
) -> HostileOutcome:
    """Run a whole trial; the same seed gives the same outcome."""
    world = HostileWorld(seed=seed, size=MEMBERS, loss=random_loss(seed))
    network = world.network
    end_ms = world.talk(messages, gap_ms=GAP_MS)
    world.befall(end_ms, crashes=CRASHES, partitions=PARTITIONS)
    world.lie(end_ms, lies=lies, guests=guests)
    world.replay(end_ms + HEALING_MS, times=REPLAYS)
    world.restart_all(end_ms + 10_000)
    network.run_until(end_ms)
    healed_ms = UnixMs(end_ms + HEALING_MS)
    network.run_until(healed_ms)
    stuck = _stuck(world)
    network.run_until(UnixMs(network.now_ms + LOOK_AGAIN_MS))
    problems = [
        f"{name} looks for what is in a log: {item}" for name, item in stuck & _stuck(world)
    ]
    world.restart_all(network.now_ms)
    while network.now_ms < healed_ms + PHANTOMS_LOST_MS:
        network.run_until(UnixMs(network.now_ms + LOOK_AGAIN_MS))
        if world.at_rest():
            break
    problems += [*_logs(world), *_at_the_end(world)]
    honest = [*world.ends(world.honest)]
    return HostileOutcome(
        seed=seed,
        loss=world.loss,
        crashes=world.network.crashes,
        replayed=world.relay.replayed,
        forked=len([*_forked(honest[0])]),
        phantoms=max(len(each.seen.lost) for each in honest),
        lamport_ahead_ms=world.lamport_ahead_ms,
        refused=network.traffic.refused,
        held_aside=max(world.people[name].counters["sds.held_ahead"] for name in world.honest),
        verdict=world.verdict(),
        problems=tuple(f"seed {seed}: {problem}" for problem in problems),
    )


def _stuck(world: HostileWorld) -> set[tuple[str, MessageId]]:
    """Members and the messages they look for, although a truthful member has them in its log."""
    logged = {item for end in world.ends(world.truthful) for item in end.seen.log}
    right = (*world.honest, world.put_right)
    return {(end.name, item) for end in world.ends(right) for item in end.wanted() & logged}


def _logs(world: HostileWorld) -> Iterator[str]:
    """Violations in the logs, once all messages dated ahead have reached their time."""
    honest, truthful = [*world.ends(world.honest)], [*world.ends(world.truthful)]
    logs = {end.name: [each.message.message_id for each in end.log()] for end in truthful}
    first, log = honest[0].name, logs[honest[0].name]
    for end in truthful:
        if end.name == world.never_right:
            continue
        if logs[end.name] != log:
            ours, theirs = set(log), set(logs[end.name])
            yield (
                f"the log of {end.name} has {len(theirs - ours)} messages that {first} lacks, "
                f"and lacks {len(ours - theirs)}"
            )
    latest = world.network.now_ms + MAX_AHEAD_MS + HONEST_ERROR_MS
    for end in honest:
        if len(logs[end.name]) != len(end.seen.log):
            yield f"{end.name} has delivered what is from after {latest}"
    held = set(log)
    for end in truthful:
        lacking = set(end.seen.sent) & set(logs[end.name]) - held
        if lacking:
            yield f"{first} lacks {len(lacking)} of what {end.name} said"
    yield from _texts(world, honest[0])


def _texts(world: HostileWorld, end: End) -> Iterator[str]:
    """Texts of all sincere messages, each once, however often it was repeated."""
    told: Counter[tuple[str, bytes]] = Counter(
        (str(each.message.sender_id), text_of(each.message.content or b"")) for each in end.log()
    )
    for name in (*world.honest, world.put_right):
        said: Counter[tuple[str, bytes]] = Counter(
            {(name, text): 1 for text in world.texts.get(name, [])}
        )
        found = Counter({key: number for key, number in told.items() if key[0] == name})
        if found != said:
            yield (
                f"of what {name} said {(said - found).total()} texts are missing in the log of "
                f"{end.name}, and {(found - said).total()} are there twice"
            )


def _at_the_end(world: HostileWorld) -> Iterator[str]:
    """Violations of what must hold once the phantoms are given up."""
    verdict = world.verdict()
    if verdict.false_certain_holders or world.false_claims:
        yield (
            f"false certain holders: {world.false_claims} when named, "
            f"{verdict.false_certain_holders} at the end"
        )
    if verdict.duplicate_deliveries:
        yield f"{verdict.duplicate_deliveries} duplicate deliveries"
    if world.lamport_ahead_ms > MAX_AHEAD_MS + HONEST_ERROR_MS:
        yield f"an honest Lamport timestamp was {world.lamport_ahead_ms} ms ahead"
    strange = world.network.traffic.refused.keys() - REFUSALS
    if strange:
        yield f"refused: {sorted(strange)}"
    for end in world.ends(world.honest):
        if end.wanted() or end.waiting():
            yield f"{end.name} looks for {len(end.wanted())}, and {len(end.waiting())} wait"
        accused, forked = end.seen.accused, {sender for sender, _ in _forked(end)}
        if not forked <= accused:
            yield f"{end.name} found no fork of {sorted(forked - accused)}"
        if not accused.isdisjoint(world.truthful):
            yield f"{end.name} accuses {sorted(accused & set(world.truthful))}"


def _forked(end: End) -> Iterator[tuple[ParticipantId, AuthorSequence]]:
    """Sequence numbers under which an author sent two messages."""
    numbers: Counter[tuple[ParticipantId, AuthorSequence]] = Counter(
        (each.message.sender_id, each.author) for each in end.log() if each.author is not None
    )
    return (key for key, count in numbers.items() if count > 1)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(hostile_trial(int(argument)))  # noqa: T201 - that is what it is started for
