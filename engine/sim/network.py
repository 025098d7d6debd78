"""A deterministic network on virtual time: participants, faults, partitions, crashes.

One heap of events, one seed, no asyncio, no clock: the same seed gives the same run bit for bit.
Every transmission, repair or not, passes the fault plan once per receiver, so a broadcast may reach
some and not others.  A participant is any object that receives bytes and names its next deadline;
the bytes are opaque here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Protocol, TypeAlias

from msgspec import Struct

from engine.core.errors import RemoteProtocolError
from engine.core.faults import FaultPlan, FaultSpec
from engine.core.ids import UnixMs


class Outgoing(Struct, frozen=True, kw_only=True):
    """One broadcast.

    ``accepted`` is called with (number of peers that could be reached, time) right after the
    broadcast if there was at least one; its results are broadcast as well.  ``only``: the only
    receivers, for a hostile participant that tells different members different things.
    """

    payload: bytes
    ephemeral: bool = False
    accepted: "Accepted | None" = None
    only: frozenset[str] | None = None


Accepted: TypeAlias = Callable[[int, UnixMs], Sequence[Outgoing]]


class SimParticipant(Protocol):
    """A participant with a clock-driven protocol inside: a bare channel, or a whole session.

    Times never go back.  ``receive`` may raise RemoteProtocolError: the network counts it and goes
    on.
    """

    def receive(self, payload: bytes, *, now_ms: UnixMs) -> Sequence[Outgoing]: ...

    def advance(self, *, now_ms: UnixMs) -> Sequence[Outgoing]:
        """The time that ``next_deadline`` named has come."""

    def next_deadline(self) -> UnixMs | None: ...


class RestartingParticipant(SimParticipant, Protocol):
    def restart(self, *, now_ms: UnixMs) -> None:
        """The process died; only what was written remains."""


Action: TypeAlias = Callable[["SimNetwork"], None]


@dataclass(slots=True)
class Traffic:
    """What the network did, counted per receiver except for ``broadcasts``."""

    broadcasts: int = 0
    broadcast_bytes: int = 0
    arrived: int = 0
    lost: int = 0
    duplicated: int = 0
    cut_off: int = 0
    """Not transmitted: partition, or the receiver was down or offline."""
    refused: dict[str, int] = field(default_factory=dict)


class SimNetwork:
    """Carries broadcasts between named participants."""

    def __init__(self, spec: FaultSpec, *, start_ms: UnixMs) -> None:
        self.now_ms = start_ms
        self.traffic = Traffic()
        self.overhear: Callable[[str, bytes], None] | None = None
        """Called for every broadcast with sender and bytes."""
        self.crashes = 0
        """Of participants that start again."""
        self._spec = spec
        self._participants: dict[str, SimParticipant] = {}
        self._plans: dict[tuple[str, str], FaultPlan] = {}
        self._islands: Mapping[str, int] = {}
        self._offline: set[str] = set()
        self._events: list[tuple[UnixMs, int, Action]] = []
        self._serial = 0
        self._wake: dict[str, UnixMs] = {}

    # --- who is there ---

    def add(self, name: str, participant: SimParticipant) -> None:
        """A participant starts, or starts again after a crash."""
        self._participants[name] = participant
        self._plan_wake(name)

    def crash(self, name: str) -> None:
        """It disappears with everything in transit to it, until it is added again."""
        del self._participants[name]
        self._wake.pop(name, None)

    def plan_crash(
        self, name: str, participant: RestartingParticipant, at_ms: int, *, down_ms: int
    ) -> None:
        """Kill it at a time, if it runs then, and start it again from its disk."""

        def die(network: SimNetwork) -> None:
            if network.is_up(name):
                network.crashes += 1
                network.crash(name)

        def restart(network: SimNetwork) -> None:
            if not network.is_up(name):
                participant.restart(now_ms=network.now_ms)
                network.add(name, participant)

        self.at(UnixMs(at_ms), die)
        self.at(UnixMs(at_ms + down_ms), restart)

    def is_up(self, name: str) -> bool:
        return name in self._participants

    def set_online(self, name: str, *, online: bool) -> None:
        """An offline participant runs and keeps its timers; nothing leaves or reaches it."""
        (self._offline.discard if online else self._offline.add)(name)

    def is_online(self, name: str) -> bool:
        """Whether it runs and is connected."""
        return name in self._participants and name not in self._offline

    def partition(self, *islands: Sequence[str]) -> None:
        """Only participants of the same island reach one another; unnamed ones share an island."""
        self._islands = {name: number for number, group in enumerate(islands, 1) for name in group}

    def heal(self) -> None:
        """End of the partition."""
        self._islands = {}

    # --- what happens ---

    def at(self, when_ms: UnixMs, action: Action) -> None:
        """Run ``action(network)`` at a time: a user types, a process dies, a cable is cut."""
        self._serial += 1
        heappush(self._events, (max(when_ms, self.now_ms), self._serial, action))

    def broadcast(self, sender: str, outgoing: Sequence[Outgoing]) -> None:
        """Transmit what a participant emitted, also outside ``receive`` and ``advance``."""
        queue = [] if sender in self._offline else list(outgoing)
        for item in queue:
            self.traffic.broadcasts += 1
            self.traffic.broadcast_bytes += len(item.payload)
            if self.overhear is not None:
                self.overhear(sender, item.payload)
            reachable = 0
            for receiver in self._participants:
                if receiver != sender and (item.only is None or receiver in item.only):
                    reachable += self.transmit(sender, receiver, item.payload)
            if reachable and item.accepted is not None:
                queue.extend(item.accepted(reachable, self.now_ms))
        if sender in self._participants:
            self._plan_wake(sender)

    def run_until(self, end_ms: UnixMs, *, stop: Callable[[], bool] | None = None) -> bool:
        """Advance time up to ``end_ms``; stop early, returning True, when ``stop()`` does.

        ``stop`` is called once per virtual second.
        """
        ask_ms = self.now_ms
        while self._events and self._events[0][0] <= end_ms:
            at_ms = self._events[0][0]
            if stop is not None and at_ms >= ask_ms:
                if stop():
                    return True
                ask_ms = UnixMs(at_ms + 1_000)
            at_ms, _, action = heappop(self._events)
            self.now_ms = at_ms
            action(self)
        self.now_ms = max(self.now_ms, end_ms)
        return stop is not None and stop()

    def transmit(self, sender: str, receiver: str, payload: bytes) -> bool:
        islands = self._islands
        if islands.get(sender, 0) != islands.get(receiver, 0) or receiver in self._offline:
            self.traffic.cut_off += 1
            return False
        plan = self._plans.get((sender, receiver))
        if plan is None:
            plan = self._plans[sender, receiver] = FaultPlan(self._spec, f"{sender}>{receiver}")
        delays_ms = plan.delays_ms()
        self.traffic.lost += not delays_ms
        self.traffic.duplicated += len(delays_ms) > 1
        participant = self._participants[receiver]
        for delay_ms in delays_ms:
            self.at(
                UnixMs(self.now_ms + delay_ms),
                lambda network: network.deliver(receiver, participant, payload),
            )
        return True

    def deliver(self, name: str, participant: SimParticipant, payload: bytes) -> None:
        """Deliver one copy, if its receiver still runs."""
        if self._participants.get(name) is not participant or name in self._offline:
            self.traffic.cut_off += 1
            return
        self.traffic.arrived += 1
        try:
            outgoing = participant.receive(payload, now_ms=self.now_ms)
        except RemoteProtocolError as error:
            refused = self.traffic.refused
            refused[error.reason] = refused.get(error.reason, 0) + 1
            return
        self.broadcast(name, outgoing)

    def _plan_wake(self, name: str) -> None:
        deadline_ms = self._participants[name].next_deadline()
        if deadline_ms is None:
            self._wake.pop(name, None)
            return
        deadline_ms = max(deadline_ms, self.now_ms)
        planned_ms = self._wake.get(name)
        if planned_ms == deadline_ms:
            return
        self._wake[name] = deadline_ms
        self.at(deadline_ms, lambda network: network.wake(name, deadline_ms))

    def wake(self, name: str, planned_ms: UnixMs) -> None:
        """A deadline has come, unless it was moved."""
        if self._wake.get(name) != planned_ms or name not in self._participants:
            return
        del self._wake[name]
        self.broadcast(name, self._participants[name].advance(now_ms=self.now_ms))
