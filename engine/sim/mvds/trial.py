"""One seed's whole trial of MVDS: hazards for two or three participants, and what must still hold.

Modes, faults, messages, crashes, offline times, Store copies and the records a node keeps in memory
all follow from the seed, and so does the outcome: ``python -m engine.sim.mvds.trial 17`` repeats a
failed test's seed.
"""

import sys
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.core.faults import FaultSpec, SeededRandom
from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.config import Mode, MvdsConfig, linear_back_off
from engine.core.mvds.vocabulary import GroupId
from engine.sim.mvds.participant import ALL, Fate, MvdsParticipant
from engine.sim.mvds.world import START_MS, MvdsWorld

GROUP: Final = GroupId(b"the one group of this simulation")
HEALING_MS: Final = 12 * 3_600_000
"""Virtual time after the last fault; the longest back-off is an hour and a quarter."""
_MINUTE_MS: Final = 60_000
_MOST_LOSS: Final = 0.7
_SIZES: Final = (40, 400, 4_096, 5_000, 60_000)


class MvdsOutcome(Struct, frozen=True, kw_only=True):
    """The result of a trial; ``problems`` is empty if all held."""

    seed: int
    people: int
    messages: int
    crashes: int
    payloads: int
    lost: int
    missed: int
    fetched: int
    healed_after_ms: int
    problems: tuple[str, ...]


class _Trial:
    """A world and its planned events."""

    def __init__(self, seed: int) -> None:
        self.random = random = SeededRandom(seed, "trial")
        names = [ParticipantId(f"peer-{number}") for number in range(random.between(2, 3))]
        low_ms = random.between(0, 300)
        faults = FaultSpec(
            loss=random() * _MOST_LOSS,
            delay_ms=(low_ms, low_ms + random.between(0, 3_000)),
            dup=random() / 3,
            reorder=random() / 2,
            seed=seed,
        )
        self.seed, self.names, self.crashes = seed, names, 0
        people = {name: self._person(name, seed) for name in names}
        self.world = MvdsWorld(
            people=people,
            faults=faults,
            store_copies=random() < 1 / 3,
            presence=random() < 1 / 2,
            fate=self._fate,
        )
        self._crash_share = random() / 20 if random() < 1 / 2 else 0.0

    def _person(self, name: ParticipantId, seed: int) -> MvdsParticipant:
        random = self.random
        config = MvdsConfig(
            mode=tuple(Mode)[random.between(0, 2)],
            at_once_per_epoch=(0, 1, 8)[random.between(0, 2)],
            max_payload_bytes=(100 * 1_024, 70_000)[random.between(0, 1)],
            load_records=random.between(1, 5),
        )
        if random() < 1 / 4:
            config = replace(config, backoff=linear_back_off, request_again=False)
        return MvdsParticipant(
            name,
            groups={GROUP: frozenset(self.names)},
            config=config,
            seed=seed,
            now_ms=START_MS,
            load_limit=(ALL, random.between(1, 4))[random.between(0, 1)],
        )

    def _fate(self) -> Fate:
        unit = self.random()
        if unit >= self._crash_share:
            return Fate.FINE
        self.crashes += 1
        return Fate.UNWRITTEN if unit < self._crash_share / 2 else Fate.UNSENT

    def plan(self) -> UnixMs:
        """Plan the messages and hazards; return when all of them are over."""
        random, world = self.random, self.world
        end_ms = START_MS + random.between(1, 5) * _MINUTE_MS
        for _ in range(random.between(1, 12)):
            world.at(random.between(START_MS, end_ms), self._saying())
        for _ in range(random.between(0, 4)):
            name = self._anybody()
            at_ms, away_ms = random.between(START_MS, end_ms), random.between(100, _MINUTE_MS)
            if random() < 1 / 2:
                world.at(at_ms, lambda name=name: world.set_online(name, online=False))  # type: ignore[misc]
                world.at(at_ms + away_ms, lambda name=name: world.set_online(name, online=True))  # type: ignore[misc]
            else:
                self.crashes += 1
                world.at(at_ms, lambda name=name: world.stop(name))  # type: ignore[misc]
                world.at(at_ms + away_ms, lambda name=name: world.start(name))  # type: ignore[misc]
        return UnixMs(end_ms + _MINUTE_MS)

    def _anybody(self) -> ParticipantId:
        return self.names[self.random.between(0, len(self.names) - 1)]

    def _saying(self) -> Callable[[], None]:
        random, name = self.random, self._anybody()
        others = [other for other in self.names if other != name]
        peer_ids = others if random() < 1 / 2 else others[:1]
        size = _SIZES[random.between(0, len(_SIZES) - 1)]
        return lambda: self.world.say(name, peer_ids, size)

    def settled(self) -> bool:
        return all(not person.store.records for person in self.world.people.values())

    def problems(self) -> list[tuple[str, object, object]]:
        """Return (what is checked, what is, what was expected)."""
        checks: list[tuple[str, object, object]] = []
        people = self.world.people
        for name, person in people.items():
            addressed = {
                message_id: 1
                for other in people.values()
                for message_id, peer_ids in other.appended.items()
                if name in peer_ids
            }
            state = person.node.snapshot()
            in_memory = (state.records, state.pending_acks, state.loaded_before)
            checks += [
                (f"{name} got each once", dict(person.delivered), addressed),
                (f"{name} is still on disk", person.store.leftovers(), ()),
                (f"{name} is still in memory", in_memory, ((), (), None)),
                (f"{name} is woken", person.node.next_deadline(), None),
                (f"{name} refused", dict(person.refused), {}),
                (f"{name} sent hollow payloads", person.hollow, 0),
                (f"{name} gave up", person.given_up, set()),
            ]
        return checks


def mvds_trial(seed: int, *, healing_ms: int = HEALING_MS) -> MvdsOutcome:
    """Run a whole trial; the same seed gives the same outcome."""
    trial = _Trial(seed)
    world = trial.world
    world.run_until(trial.plan())
    world.heal()
    healed_ms = world.now_ms
    settled = world.run_until(healed_ms + healing_ms, stop=trial.settled) or trial.settled()
    settled_ms = world.now_ms
    world.run_until(settled_ms + healing_ms)  # This must change nothing more.
    checks = [("all is settled", settled, True), ("all is quiet", world.idle, True)]
    return MvdsOutcome(
        seed=seed,
        people=len(trial.names),
        messages=sum(len(person.appended) for person in world.people.values()),
        crashes=trial.crashes,
        payloads=world.traffic.payloads,
        lost=world.traffic.lost,
        missed=world.traffic.missed,
        fetched=world.traffic.fetched,
        healed_after_ms=settled_ms - healed_ms,
        problems=tuple(
            f"seed {seed}: {what}: {found}, not {wanted}"
            for what, found, wanted in [*checks, *trial.problems()]
            if found != wanted
        ),
    )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(mvds_trial(int(argument)))  # noqa: T201 - that is what it is started for
