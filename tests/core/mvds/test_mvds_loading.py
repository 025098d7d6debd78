"""A node that starts with a part of its records, and comes to the others when it needs them."""

import pytest
from msgspec.structs import replace

from engine.core.errors import LocalProtocolError
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.vocabulary import (
    NEVER,
    Acknowledged,
    DeadlineReached,
    Epoch,
    LoadRecords,
    MvdsTransition,
    PeerSeen,
    RecordsLoaded,
    RecordType,
    ResendRequested,
    SendPayload,
)
from tests.core.mvds.mvds_bench import ALICE, BOB, Bench, id_of, loads, payloads, text

COUNT = 10


def _slept(*, limit: int, records: int = COUNT, load_records: int = 4) -> Bench:
    """Some messages wait, each due ten epochs after the one before; ``limit`` are in memory."""
    config = replace(MvdsConfig(), load_records=load_records, at_once_per_epoch=records)
    alice = Bench(config=config)
    for number in range(records):
        alice.append(number)
        key = (BOB, id_of(number))
        record = alice.store.records[key]
        due = Epoch(alice.epoch + 10 * (number + 1))
        alice.store.records[key] = replace(record, send_epoch=due)
        alice.now_ms += 1
    return alice.restarted(limit=limit)


def _answer(alice: Bench, question: LoadRecords) -> MvdsTransition:
    return alice.handle(alice.store.load(question))


def _answer_all(alice: Bench, transition: MvdsTransition) -> list[SendPayload]:
    """Everything sent, with questions answered from the store until there are none."""
    sent = payloads(transition)
    for question in loads(transition):
        sent += _answer_all(alice, _answer(alice, question))
    return sent


def test_only_a_part_is_in_memory_at_first() -> None:
    alice = _slept(limit=3)
    state = alice.node.snapshot()
    assert [record.message_id for record in state.records] == [id_of(n) for n in range(3)]
    assert state.loaded_before == alice.epoch + 40


def test_everything_is_sent_in_its_epoch_all_the_same() -> None:
    alice = _slept(limit=3)
    start, sent = alice.epoch, []
    while alice.epoch < start + 10 * COUNT:
        deadline_ms = alice.node.next_deadline()
        assert deadline_ms is not None
        alice.now_ms = max(alice.now_ms, deadline_ms)
        for send in _answer_all(alice, alice.handle(DeadlineReached())):
            sent += [(alice.epoch - start, message_id) for message_id in send.offers]
    first = {message_id: epoch for epoch, message_id in reversed(sent)}
    assert first == {id_of(number): 10 * (number + 1) for number in range(COUNT)}


def test_one_question_is_open_at_a_time() -> None:
    alice = _slept(limit=3)
    alice.now_ms += 45_000
    (question,) = loads(alice.handle(DeadlineReached()))
    assert question == LoadRecords(Epoch(alice.epoch - 5), 4)
    assert loads(alice.receive(acks=[id_of(8), id_of(9)])) == []
    (next_question,) = loads(_answer(alice, question))
    assert next_question.ids == ((BOB, id_of(8)), (BOB, id_of(9)))
    assert next_question.from_epoch is None


def test_an_ack_of_a_record_on_disk_counts() -> None:
    alice = _slept(limit=3)
    transition = alice.receive(acks=[id_of(1), id_of(8)])
    assert transition.events == (Acknowledged(BOB, id_of(1)),)
    (question,) = loads(transition)
    assert question.ids == ((BOB, id_of(8)),)
    assert _answer(alice, question).events == (Acknowledged(BOB, id_of(8)),)
    assert (BOB, id_of(8)) not in alice.store.records
    assert id_of(8) not in alice.store.bodies
    state = alice.node.snapshot()
    assert state.loaded_before is not None, "the others are still on disk"


def test_a_request_of_a_record_on_disk_is_answered() -> None:
    alice = _slept(limit=3)
    for number in (5, 6):
        key = (BOB, id_of(number))
        alice.store.records[key] = replace(alice.store.records[key], type=RecordType.OFFER)
    (question,) = loads(alice.receive(requests=[id_of(6)]))
    (sent,) = payloads(_answer(alice, question))
    assert sent.message_ids == (id_of(6),)


def test_what_is_not_on_disk_either_is_unknown() -> None:
    alice = _slept(limit=3)
    transition = alice.receive(acks=[id_of(77)], requests=[id_of(77), id_of(78)])
    (question,) = loads(transition)
    answered = _answer(alice, question)
    assert (answered.writes, answered.sends, answered.events) == ((), (), ())
    assert alice.counters["mvds.unknown_ack"] == 1
    assert alice.counters["mvds.unknown_request"] == 2


def test_ids_to_look_for_are_bounded() -> None:
    alice = _slept(limit=3)
    alice.config = replace(alice.config, max_wanted_ids=20)
    alice = alice.restarted(limit=3)
    (question,) = loads(alice.receive(acks=[id_of(number) for number in range(100, 120)]))
    assert len(question.ids) == 20
    alice.receive(acks=[id_of(number) for number in range(200, 300)])
    assert alice.counters["mvds.too_many_wanted"] == 80
    (next_question,) = loads(_answer(alice, question))
    assert len(next_question.ids) == 20


def test_what_was_acknowledged_meanwhile_does_not_come_back() -> None:
    """The answer was read from disk before the acknowledgement was written."""
    alice = _slept(limit=3)
    alice.now_ms += 45_000
    (question,) = loads(alice.handle(DeadlineReached()))
    stale = alice.store.load(LoadRecords(Epoch(0), 100))
    alice.receive(acks=[id_of(0)])
    alice.handle(RecordsLoaded(records=stale.records, loaded_before=None, asked_ids=question.ids))
    assert (BOB, id_of(0)) not in alice.store.records
    ids = {record.message_id for record in alice.node.snapshot().records}
    assert ids == {id_of(number) for number in range(1, COUNT)}
    for message_id in ids:
        assert message_id in alice.store.bodies


def test_what_is_in_memory_is_newer_than_what_is_on_disk() -> None:
    alice = _slept(limit=3)
    old = alice.store.records[BOB, id_of(0)]
    alice.now_ms += 45_000
    alice.handle(DeadlineReached())
    sent = alice.store.records[BOB, id_of(0)]
    assert sent.send_count == old.send_count + 1
    alice.handle(RecordsLoaded(records=(old,), loaded_before=None))
    record = next(r for r in alice.node.snapshot().records if r.message_id == id_of(0))
    assert record == sent


def test_a_peer_that_is_seen_gets_what_is_on_disk_too() -> None:
    alice = _slept(limit=3)
    alice.now_ms += 1_000
    sent = _answer_all(alice, alice.handle(PeerSeen(peer_id=BOB)))
    for _ in range(4):
        alice.now_ms += 1_000
        sent += _answer_all(alice, alice.handle(DeadlineReached()))
    assert alice.node.snapshot().loaded_before is None
    assert [item for send in sent for item in send.offers] == [id_of(n) for n in range(COUNT)]


def test_the_user_can_resend_what_is_on_disk() -> None:
    alice = _slept(limit=3)
    for key, record in alice.store.records.items():
        if key != (BOB, id_of(0)):
            alice.store.records[key] = replace(record, send_epoch=NEVER)
    alice = alice.restarted(limit=1)
    assert alice.node.snapshot().loaded_before == NEVER
    deadline_ms = alice.node.next_deadline()
    assert deadline_ms is not None
    assert deadline_ms < alice.now_ms + 60_000, "given up ones wake nobody"
    assert alice.resend(5) == []
    transition = alice.receive(acks=[id_of(0)])
    assert transition.events == (Acknowledged(BOB, id_of(0)),)


def test_a_resend_of_what_is_on_disk_is_sent_when_it_is_loaded() -> None:
    alice = _slept(limit=3)
    state = alice.node.snapshot()
    assert state.loaded_before is not None
    transition = alice.handle(_resend(7))
    (question,) = loads(transition)
    (sent,) = payloads(_answer(alice, question))
    assert sent.message_ids == (id_of(7),)


def test_a_resend_of_nothing_is_refused_where_all_is_in_memory() -> None:
    alice = _slept(limit=100)
    with pytest.raises(LocalProtocolError):
        alice.resend(77)


def test_a_request_left_on_disk_goes_when_its_message_has_come() -> None:
    bob = Bench(BOB, groups={text(0).group_id: frozenset({ALICE, BOB})})
    for number in range(4):
        bob.receive(ALICE, offers=[id_of(number)])
        bob.now_ms += 20
    bob = bob.restarted(limit=0)
    bob.receive(ALICE, messages=[text(2)])
    bob = bob.restarted(limit=100)
    bob.handle(DeadlineReached())
    assert (ALICE, id_of(2)) not in bob.store.records
    assert len(bob.store.records) == 3


def test_what_is_on_disk_only_is_unacknowledged_too() -> None:
    assert not Bench().node.awaits
    assert _slept(limit=0).node.awaits


def test_what_was_given_up_has_a_place_on_disk() -> None:
    assert NEVER < 2**63


def _resend(number: int) -> ResendRequested:
    return ResendRequested(peer_id=BOB, message_id=id_of(number))
