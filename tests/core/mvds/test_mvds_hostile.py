"""A peer may say anything: it is refused with a reason or ignored, and what it costs is bounded."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.mvds import decode_payload
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ParticipantId
from engine.core.mvds.config import Mode, MvdsConfig
from engine.core.mvds.vocabulary import (
    ConnectivityChanged,
    DeadlineReached,
    GroupId,
    MvdsId,
    MvdsMessage,
    Payload,
    PayloadReceived,
    PeerSeen,
    RecordType,
)
from tests.core.mvds.mvds_bench import (
    ALICE,
    BOB,
    CAROL,
    TRIO,
    Bench,
    id_of,
    payloads,
    text,
)

MALLORY = ParticipantId("mallory")
FULL = Payload((id_of(1),), (id_of(2),), (id_of(1),), (text(3),))


@pytest.mark.parametrize("stranger", [MALLORY, CAROL, ALICE, ParticipantId("")])
def test_an_unknown_peer_is_refused(stranger: ParticipantId) -> None:
    """So are we ourselves: nobody sends to themselves."""
    alice = Bench()
    alice.append(1)
    before = alice.node.snapshot()
    with pytest.raises(RemoteProtocolError) as caught:
        alice.handle(PayloadReceived(peer_id=stranger, payload=FULL))
    assert caught.value.reason == "mvds_unknown_peer"
    assert alice.node.snapshot() == before


def test_a_refused_payload_leaves_no_trace() -> None:
    """Not even the acknowledgement in it counts."""
    alice = Bench()
    alice.append(1)
    before, deadline_ms = alice.node.snapshot(), alice.node.next_deadline()
    foreign = replace(FULL, messages=(text(3), MvdsMessage(GroupId(b"F" * 32), 1, b"x")))
    with pytest.raises(RemoteProtocolError):
        alice.handle(PayloadReceived(peer_id=BOB, payload=foreign))
    assert alice.node.snapshot() == before
    assert alice.node.next_deadline() == deadline_ms


def test_offers_without_end_are_bounded() -> None:
    alice = Bench(groups=TRIO, config=replace(MvdsConfig(), max_requests_per_peer=50))
    for start in range(0, 500, 100):
        alice.receive(BOB, offers=[id_of(number) for number in range(start, start + 100)])
    assert len(alice.store.records) == 50
    assert alice.counters["mvds.too_many_requests"] == 450
    alice.receive(CAROL, offers=[id_of(1_000)])
    assert alice.record(1_000, CAROL) is not None
    for number in range(50):
        alice.receive(BOB, messages=[text(number)])
    alice.receive(BOB, offers=[id_of(400)])
    assert alice.record(400) is not None


def test_requests_that_nobody_answers_end() -> None:
    alice = Bench(config=replace(MvdsConfig(), give_up_after_ms=3_600_000))
    alice.receive(offers=[id_of(1)])
    while alice.next_sends():
        assert alice.now_ms < Bench().now_ms + 4 * 3_600_000
    assert alice.store.leftovers() == ()
    alice.receive(offers=[id_of(1)])
    assert alice.record(1) is not None


def test_what_requests_can_make_us_send_in_an_epoch_is_bounded() -> None:
    alice = Bench(config=replace(MvdsConfig(), mode=Mode.INTERACTIVE))
    for number in range(200):
        alice.append(number, size=90_000)
    alice.wait(4)
    sent = [
        send
        for number in range(200)
        for send in payloads(alice.receive(requests=[id_of(number, 90_000)]))
    ]
    assert len(sent) <= alice.config.at_once_per_epoch + 1


def test_our_own_message_sent_back_to_us_is_acked_and_not_delivered() -> None:
    alice = Bench()
    alice.append(1)
    transition = alice.receive(messages=[text(1)], offers=[id_of(1)])
    assert transition.events == ()
    assert [send.acks for send in payloads(transition)] == [(id_of(1),)]
    assert alice.record(1) is not None


def test_an_offer_and_its_message_in_one_payload_leave_nothing() -> None:
    alice = Bench()
    transition = alice.receive(offers=[id_of(1)], messages=[text(1)])
    assert [send.acks for send in payloads(transition)] == [(id_of(1),)]
    assert alice.store.leftovers() == ()


def test_a_peer_that_is_seen_all_the_time_does_not_make_us_repeat_all_the_time() -> None:
    alice = Bench()
    alice.append(1)
    sent = []
    for _ in range(600):
        alice.now_ms += 100
        sent += alice.seen()
    assert 2 <= len(sent) <= 6


@given(st.binary(max_size=300))
def test_garbage_is_refused_or_harmless(data: bytes) -> None:
    alice = Bench()
    alice.append(1)
    try:
        payload, generation = decode_payload(data)
        alice.handle(PayloadReceived(peer_id=BOB, payload=payload, generation=generation))
    except RemoteProtocolError:
        assert alice.record(1) is not None


# --- anything in any order ----------------------------------------------------------------------

NUMBERS = st.integers(0, 4) | st.integers(100, 104)
"""Ours, as far as they were appended, and theirs."""
FOREIGN = MvdsMessage(GroupId(b"F" * 32), 1, b"foreign")
PAYLOADS = st.builds(
    Payload,
    *[st.lists(NUMBERS.map(id_of), max_size=4).map(tuple) for _ in range(3)],
    st.lists(NUMBERS.map(text) | st.just(FOREIGN), max_size=3).map(tuple),
)


@dataclass
class _Watched:
    """A node, and what must be true of it after every step."""

    bench: Bench
    delivered: list[MvdsId] = field(default_factory=list)
    appended: int = 0

    def check(self) -> None:
        """Memory is what was written; a deadline never lies in a time that is dealt with."""
        bench = self.bench
        state, written = bench.node.snapshot(), bench.store.state(limit=10_000)
        assert sorted(state.records, key=repr) == sorted(written.records, key=repr)
        assert sorted(state.pending_acks) == sorted(written.pending_acks)
        assert state.held == written.held == set(self.delivered)
        assert len(self.delivered) == len(set(self.delivered))
        needed = {r.message_id for r in state.records if r.type is not RecordType.REQUEST}
        assert needed == set(bench.store.bodies)
        deadline_ms = bench.node.next_deadline()
        assert deadline_ms is None or deadline_ms > bench.now_ms

    def take(self, act: Callable[[Bench], object]) -> None:
        bench = self.bench
        before = bench.node.snapshot()
        try:
            act(bench)
        except RemoteProtocolError:
            assert bench.node.snapshot() == before
        else:
            self.check()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("receive"), st.sampled_from([BOB, CAROL, MALLORY]), PAYLOADS),
        st.tuples(st.just("append"), st.sampled_from([(BOB,), (BOB, CAROL)])),
        st.tuples(st.just("wait"), st.integers(1, 9_000)),
        st.tuples(st.just("seen"), st.sampled_from([BOB, CAROL])),
        st.tuples(st.just("online"), st.booleans()),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)
CONFIGS = st.builds(
    MvdsConfig,
    mode=st.sampled_from(list(Mode)),
    at_once_per_epoch=st.sampled_from([0, 1, 8]),
    request_again=st.booleans(),
    max_requests_per_peer=st.sampled_from([2, 100]),
)


@settings(max_examples=100, deadline=None)
@given(STEPS, CONFIGS)
def test_whatever_is_said_in_whatever_order(
    steps: list[tuple[object, ...]], config: MvdsConfig
) -> None:
    watched = _Watched(Bench(groups=TRIO, config=config))
    for step in steps:
        bench = watched.bench
        match step:
            case ("receive", str() as peer, Payload() as payload):
                sender = ParticipantId(peer)
                watched.take(lambda bench, s=sender, p=payload: _receive(watched, bench, s, p))  # type: ignore[misc]
            case ("append", tuple() as peers):
                number, watched.appended = watched.appended, watched.appended + 1
                if not bench.node.is_held(id_of(number)):
                    watched.take(lambda bench, n=number, p=peers: bench.append(n, to=p))  # type: ignore[misc]
            case ("wait", int() as milliseconds):
                bench.now_ms += milliseconds
                watched.take(lambda bench: bench.handle(DeadlineReached()))
            case ("seen", str() as peer):
                watched.take(
                    lambda bench, p=peer: bench.handle(PeerSeen(peer_id=ParticipantId(p)))  # type: ignore[misc]
                )
            case ("online", bool() as online):
                watched.take(
                    lambda bench, o=online: bench.handle(ConnectivityChanged(online=o))  # type: ignore[misc]
                )
            case _:
                watched.bench = bench.restarted()
                watched.take(lambda bench: bench.handle(DeadlineReached()))


def _receive(watched: _Watched, bench: Bench, sender: ParticipantId, payload: Payload) -> None:
    watched.delivered += [
        event.message_id
        for event in bench.handle(PayloadReceived(peer_id=sender, payload=payload)).events
        if type(event).__name__ == "MvdsDelivered"
    ]
