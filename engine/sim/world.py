"""A group of users on a bad network, and their hazards.

One seed decides everything: who writes what and when, which members crash and for how long, who is
cut off from whom.  A member crashes between any two steps of its machine and comes back with what
its disk holds.  A claim that a member certainly holds a message is checked when it is made, not
only at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.core.faults import FaultSpec, SeededRandom
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.sim.channel_participant import ChannelParticipant
from engine.sim.judge import Verdict, judge
from engine.sim.network import SimNetwork
from engine.sim.sessions import sessions

START_MS = UnixMs(1_760_000_000_000)
MOST_LOSS = 0.5
_DOWN_MS = (500, 60_000)
_CUT_OFF_MS = (2_000, 90_000)


@dataclass
class World:
    """A group of bare channels, its network, and its users' planned actions."""

    seed: int
    size: int
    loss: float
    network: SimNetwork = field(init=False)
    people: dict[str, ChannelParticipant] = field(init=False)
    messages: int = 0
    """Messages sent so far."""
    false_claims: int = 0
    """Certain holders that did not hold the message when they were named."""
    texts: dict[str, list[bytes]] = field(init=False, default_factory=dict)
    """What each member wrote."""

    def __post_init__(self) -> None:
        spec = FaultSpec(loss=self.loss, delay_ms=(50, 400), dup=0.05, reorder=0.1, seed=self.seed)
        self.network = SimNetwork(spec, start_ms=START_MS)
        names = [ParticipantId(f"member-{number}") for number in range(self.size)]
        self.people = {name: self._person(name, frozenset(names)) for name in names}
        for name, person in self.people.items():
            person.on_certain_holders = self._check_claim
            self.network.add(name, person)

    def _person(self, name: ParticipantId, members: frozenset[ParticipantId]) -> ChannelParticipant:
        return ChannelParticipant(
            name,
            members=members,
            config=SdsConfig.for_small_group(),
            seed=self.seed,
            now_ms=self.network.now_ms,
        )

    # --- what users do ---

    def talk(self, messages: int, *, gap_ms: int = 500) -> UnixMs:
        """Plan a message of a random member every ``gap_ms`` on average; return when it ends."""
        random = SeededRandom(self.seed, "users")
        names, at_ms = list(self.people), self.network.now_ms
        for number in range(messages):
            at_ms = UnixMs(at_ms + random.between(0, 2 * gap_ms))
            self.network.at(at_ms, self.say(names[random.between(0, self.size - 1)], number))
        return at_ms

    def say(self, name: str, number: int) -> Callable[[SimNetwork], None]:
        """An action that sends a message, from the next member who can."""

        def act(network: SimNetwork) -> None:
            names = list(self.people)
            first = names.index(name)
            for speaker in names[first:] + names[:first]:
                if network.is_online(speaker):
                    self.messages += 1
                    text = f"text {number}"
                    self.texts.setdefault(speaker, []).append(text.encode())
                    outgoing = self.people[speaker].send(text, now_ms=network.now_ms)
                    network.broadcast(speaker, outgoing)
                    return

        return act

    # --- what befalls them ---

    def crash(self, name: str, at_ms: int, *, down_ms: int) -> None:
        self.network.plan_crash(name, self.people[name], at_ms, down_ms=down_ms)

    def befall(self, end_ms: int, *, crashes: int, partitions: int) -> None:
        """Plan crashes and partitions up to ``end_ms``; after it, all members run, connected."""
        random = SeededRandom(self.seed, "hazards")
        names = list(self.people)
        for _ in range(crashes):
            down_ms = random.between(*_DOWN_MS)
            at_ms = random.between(self.network.now_ms, max(end_ms - down_ms, 0))
            self.crash(names[random.between(0, self.size - 1)], at_ms, down_ms=down_ms)
        for _ in range(partitions):
            islands: list[list[str]] = [[], [], []]
            for name in names:
                islands[random.between(0, 2)].append(name)
            cut_off_ms = random.between(*_CUT_OFF_MS)
            at_ms = random.between(self.network.now_ms, max(end_ms - cut_off_ms, 0))
            self.network.at(UnixMs(at_ms), _partition(islands))
            self.network.at(UnixMs(at_ms + cut_off_ms), SimNetwork.heal)

    def come_and_go(self, end_ms: int, *, offline: float, session_ms: float) -> None:
        """Plan sessions for all members up to ``end_ms``; all are online from then on.

        ``offline`` is the share of the time that each member is offline, ``session_ms`` the mean
        length of a session.  An offline member sends nothing, but keeps its state.
        """
        for name in self.people:
            random = SeededRandom(self.seed, f"presence of {name}")
            for at_ms, online in sessions(
                random, self.network.now_ms, end_ms, offline=offline, session_ms=session_ms
            ):
                self.network.at(UnixMs(at_ms), self._connection(name, online=online))

    def _connection(self, name: str, *, online: bool) -> Callable[[SimNetwork], None]:
        def act(network: SimNetwork) -> None:
            person = self.people[name]
            network.set_online(name, online=online)
            if network.is_up(name):
                network.broadcast(name, person.set_online(online, now_ms=network.now_ms))
            else:
                person.online = online  # used at its restart

        return act

    # --- what came of it ---

    def verdict(self) -> Verdict:
        return judge(person.observation() for person in self.people.values())

    def all_held(self) -> bool:
        """Whether all members hold all messages, and every sender knows it."""
        if any(len(person.store) != self.messages for person in self.people.values()):
            return False
        verdict = self.verdict()
        return verdict.converged and verdict.held_by_all == self.messages

    def _check_claim(self, message_id: MessageId, holders: set[ParticipantId]) -> None:
        self.false_claims += sum(message_id not in self.people[name].store for name in holders)


def random_world(seed: int, *, size: int) -> World:
    """A world whose loss, up to one half, follows from its seed."""
    return World(seed=seed, size=size, loss=random_loss(seed))


def random_loss(seed: int) -> float:
    return SeededRandom(seed, "loss")() * MOST_LOSS


def _partition(islands: list[list[str]]) -> Callable[[SimNetwork], None]:
    return lambda network: network.partition(*islands)
