"""A group with hostile members among its honest ones, and what must hold for the honest.

The seed decides who lies, how and when, like all else (see ``world``).  Four of eight members are
honest, their clocks a few seconds apart.  Two have a clock that is wrong by an hour or a year, and
one of these puts it right.  One tells different members different things, and one names messages
that do not exist.  Guests with a clock a year ahead join, send once and leave.  A relay replays
what it carried.

The judge sees what the members transmitted, what they showed their users, and what is on their
disks.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from msgspec import structs

from engine.core.faults import SeededRandom
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.config import HOUR_MS, MINUTE_MS, SdsConfig
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import MissingState
from engine.sim.channel_participant import (
    ChannelParticipant,
    frame,
    open_payload,
)
from engine.sim.hostile import Equivocator, HostileMember, PhantomNamer, ReplayingRelay
from engine.sim.judge import Verdict, judge
from engine.sim.network import Outgoing, SimNetwork
from engine.sim.world import World

YEAR_MS = 365 * 24 * HOUR_MS
HONEST_ERROR_MS = 20_000
"""Error of honest clocks, either way."""
MAX_AHEAD_MS = 5 * MINUTE_MS
_ALMOST_AHEAD_MS = MAX_AHEAD_MS - 10_000
"""Not far enough ahead to be held aside."""
_OFFSETS_MS = (HOUR_MS, -HOUR_MS, YEAR_MS, -YEAR_MS)
CONFIG = structs.replace(SdsConfig.for_small_group(), lost_after_ms=HOUR_MS)
"""A phantom is given up after an hour, which saves the simulation the rest of the day."""
_SHARE = 0.03
_GUEST_STAYS_MS = 30_000
_AGAIN_MS = 10_000
_GOES_AFTER_MS = 2 * MINUTE_MS


@dataclass
class HostileWorld(World):
    """Eight members, of whom four are honest.  The others come last, in this order."""

    lamport_ahead_ms: int = field(init=False, default=0)
    """The most that an honest member's own message was ahead of the true time."""

    def __post_init__(self) -> None:
        self._random = SeededRandom(self.seed, "hostility")
        self.relay = ReplayingRelay(SeededRandom(self.seed, "relay"), share=_SHARE)
        self.guests: dict[str, ChannelParticipant] = {}
        kind = self.seed % len(_OFFSETS_MS)
        self.put_right, self.never_right, self.equivocator, self.namer = (
            ParticipantId(f"member-{self.size - number}") for number in (4, 3, 2, 1)
        )
        other = (self.seed + self.seed // len(_OFFSETS_MS) + 1) % len(_OFFSETS_MS)
        self.offsets_ms: dict[str, int] = {
            self.put_right: _OFFSETS_MS[kind],
            self.never_right: _OFFSETS_MS[other],
            self.equivocator: _ALMOST_AHEAD_MS,
            self.namer: 0,
        }
        super().__post_init__()
        self.honest = tuple(self.people)[: self.size - 4]
        self.truthful = (*self.honest, self.put_right, self.never_right)
        """Members whose machines do not lie, whatever their clocks say."""
        self.network.overhear = self._overhear
        for name in (self.equivocator, self.namer):
            self._liar(name).later = self._later(name)
            self._liar(name).on_certain_holders = None

    def _person(self, name: ParticipantId, members: frozenset[ParticipantId]) -> ChannelParticipant:
        error_ms = self._random.between(-HONEST_ERROR_MS, HONEST_ERROR_MS)
        offset_ms = self.offsets_ms.get(name, error_ms)
        now_ms = self.network.now_ms
        liars = {self.equivocator: Equivocator, self.namer: PhantomNamer}
        if name in liars:
            return liars[name](
                name,
                members=members,
                config=CONFIG,
                seed=self.seed,
                now_ms=now_ms,
                clock_offset_ms=offset_ms,
            )
        return ChannelParticipant(
            name,
            members=members,
            config=CONFIG,
            seed=self.seed,
            now_ms=now_ms,
            clock_offset_ms=offset_ms,
        )

    def _liar(self, name: str) -> HostileMember:
        liar = self.people[name]
        assert isinstance(liar, HostileMember)  # noqa: S101 - for the type checker
        return liar

    def _later(self, name: str) -> Callable[[int, Outgoing], None]:
        def later(delay_ms: int, outgoing: Outgoing) -> None:
            self.network.at(
                UnixMs(self.network.now_ms + delay_ms),
                lambda network: network.broadcast(name, [outgoing] * network.is_online(name)),
            )

        return later

    # --- what they do ---

    def lie(self, end_ms: int, *, lies: int, guests: int) -> None:
        """Plan all attacks up to ``end_ms``, and replays for hours after."""
        network, start_ms = self.network, self.network.now_ms
        for name in (self.equivocator, self.namer):
            for _ in range(lies):
                network.at(self._between(start_ms, end_ms), self._misbehave(name))
            network.at(UnixMs(end_ms), self._stop_lying(name))
        network.at(self._between((start_ms + end_ms) // 2, end_ms), self._set_right)
        if self.offsets_ms[self.never_right] < 0:
            # It can keep nothing that it receives, so others resend it all: the largest cost.
            network.at(
                UnixMs(end_ms + _GOES_AFTER_MS), self._connection(self.never_right, online=False)
            )
        for number in range(guests):
            at_ms = self._between(start_ms, end_ms - _GUEST_STAYS_MS)
            network.at(at_ms, self._guest(ParticipantId(f"guest-{number}")))

    def replay(self, end_ms: int, *, times: int) -> None:
        """Plan replays up to ``end_ms``."""
        for _ in range(times):
            name = list(self.people)[self._random.between(0, self.size - 1)]
            at_ms = self._between(self.network.now_ms, end_ms)
            self.network.at(at_ms, self.relay.replay(name, self.people[name], 10))

    def restart_all(self, at_ms: int) -> None:
        """Restart all members, and replay earlier messages to them."""
        for name, person in self.people.items():
            self.crash(name, at_ms, down_ms=1_000)
            self.network.at(UnixMs(at_ms + 2_000), self.relay.replay(name, person, 50))

    def _between(self, low: float, high: float) -> UnixMs:
        return UnixMs(self._random.between(int(low), int(high)))

    def _misbehave(self, name: str) -> Callable[[SimNetwork], None]:
        def act(network: SimNetwork) -> None:
            if network.is_online(name):
                network.broadcast(name, self._liar(name).misbehave(now_ms=network.now_ms))
            else:
                network.at(UnixMs(network.now_ms + _AGAIN_MS), act)

        return act

    def _stop_lying(self, name: str) -> Callable[[SimNetwork], None]:
        def act(_network: SimNetwork) -> None:
            self._liar(name).lies = False

        return act

    def _set_right(self, network: SimNetwork) -> None:
        """A user corrects it, or it is right when the machine restarts."""
        name = self.put_right
        if self.seed // len(_OFFSETS_MS) % 2 == 0 and network.is_up(name):
            network.broadcast(name, self.people[name].set_clock(0, now_ms=network.now_ms))
            return
        self.people[name].clock_offset_ms = 0
        self.crash(name, network.now_ms, down_ms=1_000)

    def _guest(self, name: ParticipantId) -> Callable[[SimNetwork], None]:
        """Joins, sends once with a clock a year ahead, and leaves."""

        def come(network: SimNetwork) -> None:
            members = frozenset(map(ParticipantId, (*self.people, *self.guests, name)))
            guest = self.guests[name] = ChannelParticipant(
                name,
                members=members,
                config=CONFIG,
                seed=self.seed,
                now_ms=network.now_ms,
                clock_offset_ms=YEAR_MS,
            )
            self._set_members(members)
            network.add(name, guest)
            network.broadcast(name, guest.send("next year", now_ms=network.now_ms))
            network.at(UnixMs(network.now_ms + _GUEST_STAYS_MS), leave)

        def leave(network: SimNetwork) -> None:
            network.crash(name)
            staying = (each for each in self.guests if network.is_up(each))
            self._set_members(frozenset(map(ParticipantId, (*self.people, *staying))))

        return come

    def _set_members(self, members: frozenset[ParticipantId]) -> None:
        network = self.network
        for name, person in self.people.items():
            if network.is_up(name):
                network.broadcast(name, person.set_members(members, now_ms=network.now_ms))
            else:
                person.members = members  # used at its restart

    def _overhear(self, sender: str, payload: bytes) -> None:
        self.relay.overhear(payload)
        if sender in self.honest:
            received = open_payload(payload)
            if received.repaired_by is None and received.message.lamport_timestamp is not None:
                ahead_ms = received.message.lamport_timestamp - self.network.now_ms
                self.lamport_ahead_ms = max(self.lamport_ahead_ms, ahead_ms)

    # --- what came of it ---

    def _check_claim(self, message_id: MessageId, holders: set[ParticipantId]) -> None:
        for name in holders.intersection(self.truthful):
            if message_id not in self.people[name].store:
                self.false_claims += 1

    def verdict(self) -> Verdict:
        """Covers the honest members and their claims about one another."""
        honest = {ParticipantId(name) for name in self.honest}
        observations = []
        for name in self.honest:
            seen = self.people[name].observation()
            certain = {key: held & honest for key, held in seen.certain_holders.items()}
            observations.append(replace(seen, certain_holders=certain))
        return judge(observations)

    def at_rest(self) -> bool:
        """No truthful member with a right clock waits or looks for anything."""
        right = (*self.honest, self.put_right)
        return not any(end.waiting() or end.wanted() for end in self.ends(right))

    def ends(self, names: Iterable[str]) -> Iterator["End"]:
        return (End(self.people[name], self.network.now_ms) for name in names)


class End:
    """What one member has on its disk."""

    def __init__(self, person: ChannelParticipant, now_ms: UnixMs) -> None:
        self.name = person.participant_id
        self.seen = person.observation()
        self._store = person.store
        self._now_ms = now_ms

    def log(self) -> list[MessageReceived]:
        """All messages that are not from the future, in order."""
        latest = self._now_ms + MAX_AHEAD_MS + HONEST_ERROR_MS
        said = (open_payload(frame(self._store.raw[item], None)) for item in self.seen.log)
        return [each for each in said if (each.message.lamport_timestamp or 0) <= latest]

    def waiting(self) -> set[MessageId]:
        """Messages that arrived and are not from the future, but are not in the log."""
        latest = self._now_ms + MAX_AHEAD_MS - HONEST_ERROR_MS
        return {
            entry.message.message_id
            for entry in self._store.state().incoming
            if (entry.message.lamport_timestamp or 0) <= latest
        }

    def wanted(self) -> set[MessageId]:
        """The messages it looks for."""
        missing = self._store.state().missing
        return {each.entry.message_id for each in missing if each.state is MissingState.WANTED}
