"""A device with a real database that dies anywhere, beside a twin in memory that never does."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.content import Text
from engine.core.ids import UnixMs
from engine.core.sds.inputs import ConnectivityChanged, DeadlineReached
from engine.core.waku import WakuMessage
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.session.inputs import AcceptContact, MessageArrived, Say
from engine.session.transitions import SessionTransition
from tests.persistence.new_database import new_database
from tests.session.pair_stage import HASH, NOW, PairPerson, exchange, friends

KEY = bytes(range(32))
HEARD = 6


class Device(PairPerson):
    """Alice's, which dies now and then: before its writes are durable, or before it sends."""

    def __init__(self, path: Path) -> None:
        super().__init__("Alice", reopen=lambda: SqliteProfileStore.open(path, KEY))
        self.saved: list[str] = []

    def live_through(self, transition: SessionTransition, death: str) -> list[WakuMessage]:
        if death == "before the disk":
            self.revive()
            return []
        if death == "after the disk":
            self.store.apply(transition.writes)
            self.revive()
            return []
        return self.perform(transition)

    def revive(self) -> None:
        self.store.close()
        self.restart()

    def check(self) -> None:
        """Memory is what was written."""
        channel = self.session.channel
        stored = self.store.mvds_state(self.conversation_id, limit=10_000)
        held = channel.node.snapshot()
        assert set(held.records) == set(stored.records)
        assert set(held.pending_acks) == set(stored.pending_acks)
        assert held.held == stored.held
        order = self.store.pair_state(self.conversation_id)
        ours = channel.order.snapshot()
        assert ours.authors == order.authors
        assert ours.lamport_timestamp == order.lamport_timestamp
        assert set(ours.waiting) == set(order.waiting)
        assert ours.lost == order.lost
        (contact,) = self.store.contacts()
        assert contact.state is self.session.record.state


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "hear", "hear", "advance", "restart", "blink"]),
        st.integers(0, HEARD),
        st.sampled_from([0, 1, 1_000, 4_000, 61_000]),
        st.sampled_from(["", "", "", "before the disk", "after the disk"]),
    ),
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_a_device_that_dies_anywhere_ends_with_all_that_was_saved(
    steps: list[tuple[str, int, int, str]],
) -> None:
    with TemporaryDirectory() as place:
        alice, bob = Device(new_database(Path(place) / "causerie.db", KEY)), PairPerson("Bob")
        exchange(alice, bob, alice.ask(bob.link()))
        exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=NOW)))
        bobs = [message for number in range(HEARD) for message in bob.say(f"bob {number}")]
        bobs.append(bobs[0])
        for number, (step, which, pause_ms, death) in enumerate(steps):
            alice.now_ms = UnixMs(alice.now_ms + pause_ms)
            act(alice, step, number, bobs[which % len(bobs)], death)
            alice.check()
        bob.now_ms = alice.now_ms
        alice.perform(alice.session.handle(ConnectivityChanged(online=True), now_ms=alice.now_ms))
        for _ in range(240):
            for person, peer in ((alice, bob), (bob, alice)):
                exchange(person, peer, person.advance(by_ms=1_000))
        alice.check()
        assert alice.texts() == bob.texts()
        assert [text for text in bob.texts() if text.startswith("own")] == alice.saved
        assert [text for text in bob.texts() if text.startswith("bob")] == [
            f"bob {number}" for number in range(HEARD)
        ]
        assert alice.session.channel.node.snapshot().records == ()
        assert bob.session.channel.node.snapshot().records == ()
        alice.store.close()


def act(alice: Device, step: str, number: int, message: WakuMessage, death: str) -> None:
    """One step; whatever alice sends meanwhile is lost on the way."""
    session, now_ms = alice.session, alice.now_ms
    match step:
        case "say":
            alice.live_through(
                session.handle(Say(Text(text=f"own {number}")), now_ms=now_ms), death
            )
            if death != "before the disk":
                alice.saved.append(f"own {number}")
        case "hear":
            alice.live_through(session.handle(MessageArrived(message, HASH), now_ms=now_ms), death)
        case "advance":
            alice.live_through(session.handle(DeadlineReached(), now_ms=now_ms), death)
        case "blink":
            alice.live_through(
                session.handle(ConnectivityChanged(online=False), now_ms=now_ms), death
            )
            alice.live_through(
                alice.session.handle(ConnectivityChanged(online=True), now_ms=now_ms), ""
            )
        case _:
            alice.revive()


@settings(max_examples=25, deadline=None)
@given(order=st.permutations(range(8)), twice=st.sets(st.integers(0, 7)))
def test_whatever_order_and_however_often_both_end_with_the_same(
    order: list[int], twice: set[int]
) -> None:
    alice, bob = friends()
    sent = []
    for number in range(8):
        alice.now_ms = bob.now_ms = UnixMs(NOW + (number + 1) * 1_000)
        sent.append(alice.say(f"n{number}"))
    for number in order:
        for _ in range(2 if number in twice else 1):
            bob.hear(*sent[number])
    exchange(bob, alice, bob.advance(by_ms=1_000))
    assert bob.texts() == [f"n{number}" for number in range(8)]
    assert [row.record.position for row in alice.rows()] == [
        row.record.position for row in bob.rows()
    ]
