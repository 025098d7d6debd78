"""What is wrong in the references, each as a test that it is not so here.

Numbers as in docs/mvds.md.  R6, R7, R9, R12 and R18 are of 4/MVDS-META, which is not spoken here;
R11 is also held by tests/codec/test_mvds_payload_codec.py.
"""

import pytest
from msgspec.structs import replace

from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.mvds.config import Mode, MvdsConfig
from engine.core.mvds.vocabulary import (
    NEVER,
    Acknowledged,
    AppendMessage,
    DeadlineReached,
    GivenUp,
    GroupId,
    MvdsDelivered,
    MvdsMessage,
    PutPendingAck,
    RecordType,
    WireGeneration,
)
from tests.core.mvds.mvds_bench import (
    ALICE,
    BOB,
    CAROL,
    GROUP,
    STRICT,
    TRIO,
    Bench,
    id_of,
    kinds,
    payloads,
    text,
)

_DEADLINE = DeadlineReached()
INTERACTIVE = MvdsConfig(mode=Mode.INTERACTIVE)


def test_r1_a_duplicate_after_a_lost_ack_is_acked_again_and_delivered_once() -> None:
    bob = Bench(BOB)
    first = bob.receive(ALICE, messages=[text(1)])
    assert kinds(first.events) == ["MvdsDelivered"]
    for again in (bob, bob.restarted()):
        transition = again.receive(ALICE, messages=[text(1)])
        assert transition.events == ()
        assert [send.acks for send in payloads(transition)] == [(id_of(1),)]


def test_r2_a_request_replaces_the_offer_and_a_second_offer_harms_nothing() -> None:
    alice = Bench(config=INTERACTIVE)
    alice.append(1)
    (sent,) = payloads(alice.receive(requests=[id_of(1)]))
    assert sent.message_ids == (id_of(1),)
    record = alice.record(1)
    assert record is not None
    assert record.type is RecordType.MESSAGE
    assert len(alice.store.records) == 1
    bob = Bench(BOB, config=INTERACTIVE)
    bob.receive(ALICE, offers=[id_of(1)])
    bob.wait()
    bob.receive(ALICE, offers=[id_of(1), id_of(1)])
    assert len(bob.store.records) == 1


def test_r3_interactive_mode_delivers_from_disk() -> None:
    """Alice starts anew between her OFFER and the REQUEST; the MESSAGE goes all the same."""
    alice = Bench(config=INTERACTIVE)
    alice.append(1)
    alice = alice.restarted()
    (sent,) = payloads(alice.receive(requests=[id_of(1)]))
    assert sent.message_ids == (id_of(1),)
    assert alice.store.bodies[id_of(1)] == text(1)
    alice.receive(acks=[id_of(1)])
    assert alice.store.leftovers() == ()
    assert alice.next_sends() == []


def test_r4_nothing_multiplies_in_interactive_mode() -> None:
    alice, bob = Bench(config=INTERACTIVE), Bench(BOB, config=INTERACTIVE)
    alice.append(1)
    for _ in range(3):
        bob.receive(ALICE, offers=[id_of(1)])
        alice.receive(requests=[id_of(1)])
    assert [record.type for record in alice.store.records.values()] == [RecordType.MESSAGE]
    assert [record.type for record in bob.store.records.values()] == [RecordType.REQUEST]
    delivered = [
        event
        for _ in range(3)
        for event in bob.receive(ALICE, messages=[text(1)]).events
        if isinstance(event, MvdsDelivered)
    ]
    assert len(delivered) == 1
    assert bob.store.records == {}


def test_r5_an_empty_payload_is_never_sent_nor_answered() -> None:
    bob = Bench(BOB)
    assert bob.receive(ALICE).sends == ()
    assert bob.counters["mvds.empty_payload"] == 1
    assert bob.wait(100) == []
    assert bob.node.next_deadline() is None
    bob.receive(ALICE, messages=[text(1)])
    assert bob.wait(100) == []


def test_r8_one_unknown_id_does_not_stop_the_other_acks() -> None:
    alice = Bench()
    for number in (1, 2):
        alice.append(number)
    unknown = id_of(99)
    transition = alice.receive(acks=[id_of(1), id_of(1), unknown, id_of(2)])
    assert transition.events == (Acknowledged(BOB, id_of(1)), Acknowledged(BOB, id_of(2)))
    assert alice.store.leftovers() == ()
    assert alice.next_sends() == []
    assert alice.counters["mvds.unknown_ack"] == 2


def test_r10_a_message_of_a_foreign_group_is_neither_stored_nor_delivered_nor_acked() -> None:
    bob = Bench(BOB)
    foreign = MvdsMessage(GroupId(b"F" * 32), 1, b"x")
    with pytest.raises(RemoteProtocolError) as caught:
        bob.receive(ALICE, messages=[text(1), foreign])
    assert caught.value.reason == "mvds_foreign_group"
    assert not bob.node.is_held(id_of(1))
    assert bob.store.leftovers() == ()
    assert bob.wait(10) == []


def test_r10_a_group_is_foreign_to_whom_is_not_in_it() -> None:
    other = GroupId(b"O" * 32)
    bob = Bench(BOB, groups={GROUP: frozenset({BOB, CAROL}), other: frozenset({ALICE, BOB})})
    with pytest.raises(RemoteProtocolError) as caught:
        bob.receive(ALICE, messages=[text(1)])
    assert caught.value.reason == "mvds_foreign_group"


def test_r11_a_group_id_of_another_length_has_no_messages() -> None:
    group = GroupId(b"G" * 33)
    alice = Bench(groups={group: frozenset({ALICE, BOB})})
    with pytest.raises(RemoteProtocolError) as caught:
        alice.handle(AppendMessage(message=MvdsMessage(group, 1, b"x"), peer_ids=(BOB,)))
    assert caught.value.reason == "mvds_bad_group_id"
    assert alice.store.leftovers() == ()


def test_r13_the_same_body_twice_in_a_second_is_refused_instead_of_lost() -> None:
    alice = Bench()
    alice.append(1)
    with pytest.raises(LocalProtocolError, match="nonce"):
        alice.append(1)
    alice.append(2)
    assert len(alice.store.records) == 2


def test_r14_a_send_that_fails_holds_up_nobody_and_doubles_nothing() -> None:
    """Whoever performs the sends may fail at any: all are in one transition, each tried by itself.

    What did not arrive is sent again when its epoch comes, like whatever was lost.
    """
    alice = Bench(groups=TRIO, config=STRICT)
    alice.append(1, to=(BOB, CAROL))
    to_bob, to_carol = alice.wait()
    assert (to_bob.peer_id, to_carol.peer_id) == (BOB, CAROL)
    alice.receive(CAROL, acks=[id_of(1)])
    assert alice.wait(3) == []
    (again,) = alice.wait()
    assert again.peer_id == BOB
    assert again.offers == (id_of(1),)


def test_r15_an_ack_that_waits_for_its_epoch_survives_a_crash() -> None:
    bob = Bench(BOB, config=STRICT)
    transition = bob.receive(ALICE, messages=[text(1)])
    assert transition.sends == ()
    assert PutPendingAck(ALICE, id_of(1)) in transition.writes
    bob = bob.restarted()
    (sent,) = bob.wait()
    assert sent.acks == (id_of(1),)
    assert bob.store.pending_acks == {}
    assert bob.restarted().wait(10) == []


def test_r16_an_offer_of_a_held_message_is_acked() -> None:
    bob = Bench(BOB)
    bob.receive(ALICE, messages=[text(1)])
    (sent,) = payloads(bob.receive(ALICE, offers=[id_of(1)]))
    assert sent.acks == (id_of(1),)
    assert sent.requests == ()


def test_r17_the_ack_does_not_wait_for_the_application() -> None:
    """It is in the transition that delivers: nobody has to take the event first."""
    transition = Bench(BOB).receive(ALICE, messages=[text(1)])
    assert kinds(transition.events) == ["MvdsDelivered"]
    assert [send.acks for send in payloads(transition)] == [(id_of(1),)]


def test_r19_giving_up_is_told_and_the_user_may_send_again() -> None:
    config = replace(MvdsConfig(), give_up_after_ms=3_600_000)
    alice = Bench(config=config)
    alice.append(1)
    attempts, told = 1, []
    while (deadline_ms := alice.node.next_deadline()) is not None:
        alice.now_ms = deadline_ms
        transition = alice.handle(_DEADLINE)
        attempts += len(payloads(transition))
        told += list(transition.events)
    assert told == [GivenUp(BOB, id_of(1))]
    assert attempts > 5
    record = alice.record(1)
    assert record is not None
    assert record.send_epoch == NEVER
    assert id_of(1) in alice.store.bodies
    assert alice.wait(1_000) == []
    (again,) = alice.resend(1)
    assert again.message_ids == (id_of(1),)
    assert alice.next_sends() != []


def test_generations_are_answered_in_kind() -> None:
    alice = Bench()
    (first,) = alice.append(1)
    assert first.generation is WireGeneration.RFC
    (answer,) = payloads(alice.receive(messages=[text(2)], generation=WireGeneration.DRAFT))
    assert answer.generation is WireGeneration.DRAFT
