"""A crash at any moment of a transition: before it is written, or written and not yet sent."""

from collections import deque
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.ids import ParticipantId, UnixMs
from engine.core.sds.inputs import SendContent
from engine.sim.channel_participant import ChannelParticipant
from engine.sim.network import Outgoing
from tests.core.sds.sds_bench import ALICE, BOB, NOW, log_of, member

FINE, UNWRITTEN, UNSENT = "fine", "unwritten", "unsent"
PAIR = frozenset({ALICE, BOB})


@dataclass
class _Pair:
    """Two members on a network that loses nothing; only crashes do."""

    people: dict[ParticipantId, ChannelParticipant] = field(
        default_factory=lambda: {
            name: member(name, members=PAIR, seed=seed) for seed, name in enumerate((ALICE, BOB))
        }
    )
    on_the_way: deque[tuple[ParticipantId, bytes]] = field(default_factory=deque)
    now_ms: UnixMs = NOW

    def send(self, name: ParticipantId, text: str, how: str) -> None:
        person = self.people[name]
        if how == UNWRITTEN:
            # Past the store: as if the process died before the transaction.
            person.channel.handle(SendContent(content=text.encode()), now_ms=self.now_ms)
            person.restart(now_ms=self.now_ms)
        else:
            self._after(person, person.send(text, now_ms=self.now_ms), how)

    def deliver(self, how: str) -> None:
        if not self.on_the_way:
            return
        name, payload = self.on_the_way.popleft()
        person = self.people[name]
        if how == UNWRITTEN:
            person.restart(now_ms=self.now_ms)
        else:
            self._after(person, list(person.receive(payload, now_ms=self.now_ms)), how)

    def _after(self, person: ChannelParticipant, sends: list[Outgoing], how: str) -> None:
        if how == UNSENT:
            person.restart(now_ms=self.now_ms)
            return
        for item in sends:
            other = BOB if person.participant_id == ALICE else ALICE
            self.on_the_way.append((other, item.payload))
            if item.accepted is not None:
                item.accepted(1, self.now_ms)

    def settle(self, until_ms: int) -> None:
        """Everything that becomes due, until nothing is on its way."""
        while True:
            while self.on_the_way:
                self.deliver(FINE)
            due = [
                (deadline_ms, name)
                for name, person in self.people.items()
                if (deadline_ms := person.next_deadline()) is not None and deadline_ms <= until_ms
            ]
            if not due:
                return
            deadline_ms, name = min(due)
            self.now_ms = max(self.now_ms, deadline_ms)
            person = self.people[name]
            self._after(person, list(person.advance(now_ms=self.now_ms)), FINE)


STEPS = st.lists(
    st.tuples(
        st.sampled_from([ALICE, BOB, None]),
        st.sampled_from([FINE, FINE, UNWRITTEN, UNSENT]),
        st.integers(0, 3_000),
    ),
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_whatever_was_written_arrives_and_whatever_was_not_never_was(
    steps: list[tuple[ParticipantId | None, str, int]],
) -> None:
    pair = _Pair()
    for number, (who, how, delay_ms) in enumerate(steps):
        pair.now_ms = UnixMs(pair.now_ms + delay_ms)
        if who is None:
            pair.deliver(how)
        else:
            pair.send(who, str(number), how)
    written = {item for person in pair.people.values() for item in person.seen.sent}
    pair.settle(pair.now_ms + 3_600_000)
    alice, bob = pair.people.values()
    assert log_of(alice) == log_of(bob)
    assert set(log_of(alice)) == written
    for person in (alice, bob):
        state = person.store.state()
        assert (state.outgoing, state.incoming, state.missing) == ((), (), ())
