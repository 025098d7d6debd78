"""One seed's bad time for two people who cannot make up their minds; then everything heals.

Both ask, accept, decline, withdraw, remove each other and write, at random; payloads are lost,
doubled and reordered, and processes die before their writes or before their sends.  After healing,
longer than the day for which somebody declined is not heard, both stand alike, and of what was
written all is there once, in order, that counts as delivered.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from engine.core.contacts import ContactState
from engine.core.errors import ChatError, LocalProtocolError
from engine.core.ids import DeliveryState, UnixMs
from engine.core.waku import WakuMessage
from engine.session.inputs import (
    AcceptContact,
    AskToTalk,
    ContactInput,
    DeclineContact,
    MessageArrived,
    WithdrawRequest,
)
from engine.session.transitions import SessionTransition
from tests.session.pair_stage import HASH, PairPerson

COMPATIBLE = {
    ("accepted", "accepted"),
    ("declined", "declined"),
    ("asked", "asking"),
    ("asking", "asked"),
}
STEPS = 60
LOSS = 0.3
DOUBLED = 0.1
DEATH = 0.03
PAUSES_MS = (0, 100, 1_000, 5_000)
WISHES: Final[tuple[ContactInput, ...]] = (
    AskToTalk(),
    AcceptContact(),
    DeclineContact(),
    WithdrawRequest(),
    AcceptContact(),
    AskToTalk(),
)
SETTLING_MS = (1_000,) * 100
HEALING_MS = (1_000,) * 60 + (60_000,) * 60 + (1_800_000,) * 60
Flight = list[tuple[PairPerson, WakuMessage]]


@dataclass(slots=True)
class PairTrial:
    seed: int
    removes: bool = False
    """They also remove each other and begin anew, with clocks that are hours apart."""
    random: Random = field(init=False)
    people: tuple[PairPerson, PairPerson] = field(init=False)
    flight: Flight = field(default_factory=list)
    said: dict[str, PairPerson] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    removals: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.people = (PairPerson(f"A{self.seed}"), PairPerson(f"B{self.seed}"))
        if self.removes:
            for one in self.people:
                one.now_ms = UnixMs(one.now_ms + self.random.randrange(-8, 8) * 3_600_000)

    def run(self) -> list[str]:
        """What is wrong in the end."""
        self._begin()
        for _ in range(STEPS):
            self._step()
        for pause_ms in HEALING_MS:
            self._heal(pause_ms)
        if self.removals and self.states() not in COMPATIBLE:
            self._settle()
        return self._problems()

    # --- the bad time -------------------------------------------------------------------------

    def _begin(self) -> None:
        one, other = self.people
        self._send(one, one.ask(other.link()))
        if self.random.random() < 0.5:
            self._send(other, other.ask(one.link()))

    def _step(self) -> None:
        who = self.random.choice(self.people)
        self._act(who)
        pause_ms = self.random.choice(PAUSES_MS)
        for one in self.people:
            one.now_ms = UnixMs(one.now_ms + pause_ms)
            self._live(one, one.advancing)
        self.random.shuffle(self.flight)
        arrives = self.random.randrange(len(self.flight) + 1)
        arriving, self.flight = self.flight[:arrives], self.flight[arrives:]
        for to, message in arriving:
            if self.random.random() < LOSS:
                continue
            if self.random.random() < DOUBLED:
                self.flight.append((to, message))
            self._arrive(to, message)

    def _act(self, who: PairPerson) -> None:
        what = self.random.random()
        if not who.knows_the_other:
            if self.removes and what < 0.5:
                self._send(who, who.ask(self._other(who).link()))
        elif what < 0.4:
            self._write(who, f"t{len(self.said) + 1}")
        elif what < 0.6:
            wish = self.random.choice(WISHES)
            self._wish(who, wish)
        elif what < 0.64:
            who.restart()
        elif self.removes and what < 0.67:
            self.removals += 1
            self.log.append(f"{who.name} removes")
            who.remove()

    def _write(self, who: PairPerson, text: str) -> None:
        if self._live(who, lambda: who.saying(text)):
            self.said[text] = who

    def _wish(self, who: PairPerson, wish: ContactInput) -> None:
        if self._live(who, lambda: who.session.handle(wish, now_ms=who.now_ms)):
            self.log.append(f"{who.name} {type(wish).__name__} -> {who.session.record.state}")

    def _live(self, who: PairPerson, act: Callable[[], SessionTransition]) -> bool:
        """Whether it is on disk."""
        if not who.knows_the_other:
            return False
        try:
            transition = act()
        except LocalProtocolError:
            return False
        if self.random.random() < DEATH:
            who.restart()
            return False
        out = who.perform(transition)
        if self.random.random() < DEATH:
            who.restart()
        else:
            self._send(who, out)
        return True

    def _arrive(self, to: PairPerson, message: WakuMessage) -> None:
        if to.knows_the_other:
            self._live(
                to, lambda: to.session.handle(MessageArrived(message, HASH), now_ms=to.now_ms)
            )
            return
        try:
            self._send(to, to.hear(message))
        except ChatError:  # A stranger said something else than a request.
            return

    def _send(self, who: PairPerson, out: list[WakuMessage]) -> None:
        self.flight += ((self._other(who), message) for message in out)

    def _other(self, who: PairPerson) -> PairPerson:
        one, other = self.people
        return other if who is one else one

    # --- healing ------------------------------------------------------------------------------

    def _heal(self, pause_ms: int) -> None:
        for one in self.people:
            one.now_ms = UnixMs(one.now_ms + pause_ms)
            if one.knows_the_other:
                self._send(one, one.advance())
        arriving, self.flight = self.flight, []
        for to, message in arriving:
            try:
                self._send(to, to.hear(message))
            except ChatError:
                continue

    def _settle(self) -> None:
        """Who removed the other may hear a request of before: one answer settles it.

        Who takes it for agreed writes something, and learns of it.
        """
        for one in self.people:
            if not one.knows_the_other:
                return
            if one.session.record.state is ContactState.ASKING:
                self._send(one, one.perform(one.session.handle(AcceptContact(), now_ms=one.now_ms)))
            if one.session.record.state is ContactState.ACCEPTED:
                self._send(one, one.say("are you there?"))
        for pause_ms in SETTLING_MS:
            self._heal(pause_ms)

    # --- what is wrong ------------------------------------------------------------------------

    def states(self) -> tuple[str, str]:
        one, other = (
            person.session.record.state.value if person.knows_the_other else "unknown"
            for person in self.people
        )
        return one, other

    def _problems(self) -> list[str]:
        states = self.states()
        if "unknown" in states:
            return []  # Who removed the other does not tell.
        problems = [] if states in COMPATIBLE else [f"they stand at {states}"]
        if self.removals:
            return problems
        for text, who in self.said.items():
            (own,) = (row for row in who.rows() if row.record.text == text)
            there = sum(row.record.text == text for row in self._other(who).rows())
            state = own.delivery.state if own.delivery else None
            if there > 1 or (state is DeliveryState.HELD and not there):
                problems.append(f"{text} is {state} and there {there} times")
            if states == ("accepted", "accepted") and state is not DeliveryState.HELD:
                problems.append(f"{text} is {state}")
        for one in self.people:
            heard = [
                int(r.record.text[1:]) for r in one.rows() if self._is_theirs(r.record.text, one)
            ]
            if heard != sorted(heard):
                problems.append(f"{one.name} reads {heard}")
        return problems

    def _is_theirs(self, text: str, reader: PairPerson) -> bool:
        return self.said.get(text, reader) is not reader
