"""Participants of MVDS on a bad network, and their hazards; all of it follows from one seed.

Payloads travel between two participants and pass ``engine/core/faults.py``.  A receiver that is
down or offline misses them, unless a Store keeps copies for when it is online again.  A process
dies between any two steps, or within one, and restarts from its disk.  A participant that comes
online may announce it, and those who hear it answer: that is the hint that a peer can be reached.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from engine.core.faults import FaultPlan, FaultSpec
from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.vocabulary import ConnectivityChanged, DeadlineReached, PeerSeen
from engine.sim.mvds.participant import Fate, MvdsParticipant, Parcel

START_MS: Final = UnixMs(1_760_000_000_000)
ENVELOPE_BYTES: Final = 260
"""Approximate size that seal, signature, keys and the Waku message add to every payload."""
PRESENCE_BYTES: Final = ENVELOPE_BYTES + 4
PRESENCE_AGAIN_MS: Final = 30_000

Action = Callable[[], None]


@dataclass(slots=True)
class Traffic:
    """Traffic sent; a Store's copies are counted once, when they were sent."""

    payloads: int = 0
    bytes: int = 0
    message_copies: int = 0
    """A payload may hold several."""
    syncs: int = 0
    """Payloads that hold no message."""
    presences: int = 0
    lost: int = 0
    missed: int = 0
    """The receiver was down or offline."""
    fetched: int = 0
    """Copies that a Store kept until the receiver came."""


@dataclass
class MvdsWorld:
    """Virtual time, a network of links, and its participants."""

    people: dict[ParticipantId, MvdsParticipant]
    faults: FaultSpec
    store_copies: bool = False
    presence: bool = True
    now_ms: UnixMs = START_MS
    traffic: Traffic = field(default_factory=Traffic)
    fate: Callable[[], Fate] = field(default=lambda: Fate.FINE)
    """Called at every step of every participant."""
    _events: list[tuple[UnixMs, int, Action]] = field(default_factory=list)
    _serial: int = 0
    _wake: dict[ParticipantId, UnixMs] = field(default_factory=dict)
    _plans: dict[tuple[ParticipantId, ParticipantId], FaultPlan] = field(default_factory=dict)
    _kept: dict[ParticipantId, list[tuple[ParticipantId, bytes]]] = field(default_factory=dict)
    _down: set[ParticipantId] = field(default_factory=set)
    _answered_ms: dict[ParticipantId, UnixMs] = field(default_factory=dict)

    # --- time ---

    def at(self, when_ms: int, action: Action) -> None:
        self._serial += 1
        heappush(self._events, (UnixMs(max(when_ms, self.now_ms)), self._serial, action))

    def run_until(self, end_ms: int, *, stop: Callable[[], bool] | None = None) -> bool:
        """Advance time; stop early, returning True, when ``stop()`` is true after an event."""
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, action = heappop(self._events)
            action()
            if stop is not None and stop():
                return True
        self.now_ms = UnixMs(max(self.now_ms, end_ms))
        return stop is not None and stop()

    @property
    def idle(self) -> bool:
        """Whether nothing is in transit and no participant has a deadline."""
        return not self._events

    # --- what users do ---

    def say(self, name: ParticipantId, peer_ids: Sequence[ParticipantId], size: int) -> None:
        """Send a message in the only group."""
        if name in self._down:
            return
        person = self.people[name]
        (group_id,) = person.groups
        self._send(
            name,
            person.append(group_id, peer_ids, size, now_ms=self.now_ms, fate=self._fate(name)),
        )

    # --- who is there ---

    def reachable(self, name: ParticipantId) -> bool:
        return name not in self._down and self.people[name].online

    def set_online(self, name: ParticipantId, online: bool) -> None:
        person = self.people[name]
        if person.online == online:
            return
        person.online = online
        if person.recording is not None:
            person.recording.online(self.now_ms, online=online)
        if name in self._down:
            return
        change = ConnectivityChanged(online=online)
        self._send(name, person.handle(change, now_ms=self.now_ms))
        if online:
            self._arrive(name)

    def stop(self, name: ParticipantId) -> None:
        """The process ends, for any reason."""
        self._down.add(name)

    def start(self, name: ParticipantId) -> None:
        if name in self._down:
            self._down.remove(name)
            self.people[name].restart(now_ms=self.now_ms)
            self._plan_wake(name)
            if self.people[name].online:
                self._arrive(name)

    def heal(self) -> None:
        """From now on nothing is lost, nothing crashes, and all participants run online."""
        self.faults = FaultSpec(delay_ms=self.faults.delay_ms, seed=self.faults.seed)
        self._plans.clear()
        self.fate = lambda: Fate.FINE
        for name in self.people:
            self.start(name)
            self.set_online(name, online=True)

    def _arrive(self, name: ParticipantId) -> None:
        """Fetch from the Store, and announce the participant to the others."""
        for sender, data in self._kept.pop(name, []):
            self.traffic.fetched += 1
            self.at(self.now_ms, lambda s=sender, d=data: self._deliver(s, name, d))  # type: ignore[misc]
        if self.presence:
            self.say_hello(name, answer=True)

    def say_hello(self, name: ParticipantId, *, answer: bool) -> None:
        """Announce it to all others; ``answer``: and ask whether they are online."""
        if self.reachable(name):
            for peer in self.people:
                if peer != name:
                    self._tell_presence(name, peer, answer=answer)

    def _tell_presence(self, name: ParticipantId, peer: ParticipantId, *, answer: bool) -> None:
        self.traffic.presences += 1

        def hear() -> None:
            if not self.reachable(peer):
                return
            seen = PeerSeen(peer_id=name)
            self._send(peer, self.people[peer].handle(seen, now_ms=self.now_ms))
            last_ms = self._answered_ms.get(peer)
            if answer and (last_ms is None or self.now_ms - last_ms >= PRESENCE_AGAIN_MS):
                self._answered_ms[peer] = self.now_ms
                self._tell_presence(peer, name, answer=False)

        for delay_ms in self._delays(name, peer):
            self.at(self.now_ms + delay_ms, hear)

    # --- the network ---

    def _send(self, sender: ParticipantId, parcels: Sequence[Parcel]) -> None:
        for parcel in parcels:
            self.traffic.payloads += 1
            self.traffic.bytes += ENVELOPE_BYTES + len(parcel.data)
            self.traffic.message_copies += parcel.copies
            self.traffic.syncs += not parcel.copies
            delays = self._delays(sender, parcel.to)
            self.traffic.lost += not delays
            for delay_ms in delays:
                self.at(self.now_ms + delay_ms, self._delivery(sender, parcel))
        self._plan_wake(sender)

    def _delivery(self, sender: ParticipantId, parcel: Parcel) -> Action:
        return lambda: self._deliver(sender, parcel.to, parcel.data)

    def _deliver(self, sender: ParticipantId, name: ParticipantId, data: bytes) -> None:
        if not self.reachable(name):
            self.traffic.missed += 1
            if self.store_copies:
                self._kept.setdefault(name, []).append((sender, data))
            return
        person, fate = self.people[name], self._fate(name)
        self._send(name, person.receive(sender, data, now_ms=self.now_ms, fate=fate))

    def _delays(self, sender: ParticipantId, to: ParticipantId) -> tuple[int, ...]:
        plan = self._plans.get((sender, to))
        if plan is None:
            plan = self._plans[sender, to] = FaultPlan(self.faults, f"{sender}>{to}")
        return plan.delays_ms()

    # --- deadlines ---

    def _plan_wake(self, name: ParticipantId) -> None:
        deadline_ms = self.people[name].node.next_deadline()
        if deadline_ms is None:
            return
        planned_ms = self._wake.get(name)
        if planned_ms is None or deadline_ms < planned_ms:
            self._wake[name] = UnixMs(max(deadline_ms, self.now_ms))
            self.at(deadline_ms, lambda: self._wake_up(name))

    def _wake_up(self, name: ParticipantId) -> None:
        planned_ms = self._wake.get(name)
        if planned_ms is None or planned_ms > self.now_ms:
            return  # An earlier or later one has replaced it.
        del self._wake[name]
        if name in self._down:
            return
        person, fate = self.people[name], self._fate(name)
        self._send(name, person.handle(DeadlineReached(), now_ms=self.now_ms, fate=fate))

    def _fate(self, name: ParticipantId) -> Fate:
        fate = self.fate()
        if fate is not Fate.FINE:
            self._wake.pop(name, None)
        return fate
