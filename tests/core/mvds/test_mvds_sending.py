"""When payloads go and what is in them: epochs, back-off, modes, size, being seen."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.mvds import encode_payload
from engine.core.errors import LocalProtocolError
from engine.core.faults import SeededRandom
from engine.core.ids import ParticipantId
from engine.core.mvds.config import LOWER_BACK_OFF, UPPER_BACK_OFF, Mode, MvdsConfig, back_off
from engine.core.mvds.vocabulary import (
    AppendMessage,
    DeadlineReached,
    GroupId,
    MvdsId,
    Payload,
    PeerSeen,
    PutRecord,
    RecordType,
    ResendRequested,
    SendPayload,
)
from tests.core.mvds.mvds_bench import (
    ALICE,
    BOB,
    CAROL,
    STRICT,
    TRIO,
    Bench,
    id_of,
    payloads,
    text,
)

BATCH = MvdsConfig(mode=Mode.BATCH)
INTERACTIVE = MvdsConfig(mode=Mode.INTERACTIVE)
LARGE = 50_000


ONCE = replace(STRICT, mode=Mode.BATCH, backoff=lambda _count, _random: 1_000_000)
"""Nothing is repeated by itself."""


def _messages(sends: list[SendPayload]) -> list[MvdsId]:
    return [message_id for send in sends for message_id in send.message_ids]


# --- at once, and the epoch's payload -----------------------------------------------------------


def test_something_new_goes_at_once() -> None:
    (sent,) = Bench().append(1)
    assert sent == SendPayload(BOB, (), (), (), (id_of(1),), sent.generation)


def test_only_so_many_payloads_go_ahead_of_the_epoch_and_the_rest_in_one() -> None:
    alice = Bench(config=replace(BATCH, at_once_per_epoch=3))
    sent = [alice.append(number) for number in range(6)]
    assert [len(sends) for sends in sent] == [1, 1, 1, 0, 0, 0]
    (rest,) = alice.wait()
    assert rest.message_ids == tuple(id_of(number) for number in (3, 4, 5))
    assert len(alice.append(7)) == 1


def test_strictly_one_payload_per_peer_and_epoch() -> None:
    alice = Bench(config=STRICT)
    for number in range(5):
        assert alice.append(number) == []
    alice.receive(messages=[text(9)])
    (sent,) = alice.wait()
    assert sent.message_ids == tuple(id_of(number) for number in range(5))
    assert sent.acks == (id_of(9),)
    assert alice.append(6) == []
    assert payloads(alice.handle(DeadlineReached())) == []
    assert len(alice.wait()) == 1


def test_a_retransmission_never_goes_ahead_of_its_epoch() -> None:
    alice = Bench(config=BATCH)
    alice.append(1)
    alice.now_ms += 500
    (sent,) = alice.append(2)
    assert sent.message_ids == (id_of(2),)
    assert payloads(alice.handle(DeadlineReached())) == []


def test_what_is_due_travels_with_what_is_new() -> None:
    alice = Bench(config=replace(STRICT, mode=Mode.BATCH))
    alice.append(1)
    alice.wait()
    alice.wait(3)
    alice.append(2)
    (sent,) = alice.wait()
    assert sent.message_ids == (id_of(1), id_of(2))


def test_each_peer_has_its_own_payload() -> None:
    alice = Bench(groups=TRIO)
    sent = alice.append(1, to=(BOB, CAROL))
    assert [send.peer_id for send in sent] == [BOB, CAROL]
    alice.receive(BOB, acks=[id_of(1)])
    assert id_of(1) in alice.store.bodies
    alice.receive(CAROL, acks=[id_of(1)])
    assert alice.store.leftovers() == ()


@pytest.mark.parametrize("size", [10, 3_000, 20_000, 100 * 1_024])
def test_a_payload_is_split_so_that_its_encoding_stays_within_the_bound(size: int) -> None:
    alice = Bench(config=replace(ONCE, heard_repeats=0))
    count = max(3, 300_000 // (size + 100))
    for number in range(count):
        alice.append(number, size=size)
    alice.receive(messages=[text(1_000_000 + number) for number in range(300)])
    sent: list[SendPayload] = []
    while sends := alice.wait():
        assert len(sends) == 1
        sent += sends
    assert _messages(sent) == [id_of(number, size) for number in range(count)]
    assert len([ack for send in sent for ack in send.acks]) == 300
    for send in sent:
        messages = tuple(alice.store.bodies[message_id] for message_id in send.message_ids)
        payload = Payload(send.acks, send.offers, send.requests, messages)
        assert len(encode_payload(payload, send.generation)) <= alice.config.max_payload_bytes
    assert sent[0].acks, "acknowledgements wait for no message"


def test_what_did_not_fit_waits_for_the_next_epoch() -> None:
    alice = Bench(config=ONCE)
    for number in range(3):
        alice.append(number, size=90_000)
    for number in range(3):
        assert _messages(alice.wait()) == [id_of(number, 90_000)]
        assert payloads(alice.handle(DeadlineReached())) == []


def test_what_is_requested_while_its_offer_waits_goes_once() -> None:
    alice = Bench(config=replace(INTERACTIVE, max_payload_bytes=200))
    for number in range(8):
        alice.append(number)
    alice.now_ms += 3_600_000
    (first,) = payloads(alice.handle(DeadlineReached()))
    assert len(first.offers) == 5, "three are due and did not fit"
    alice.receive(requests=[id_of(7)])
    sent = alice.wait(2)
    assert id_of(7) not in [*_messages(sent), *[item for send in sent for item in send.offers]]


# --- back-off -----------------------------------------------------------------------------------


def test_each_send_raises_count_and_epoch() -> None:
    alice = Bench(config=BATCH)
    alice.append(1)
    counts, epochs = [], [alice.epoch]
    for _ in range(15):
        record = alice.record(1)
        assert record is not None
        counts.append(record.send_count)
        epochs.append(record.send_epoch)
        assert record.waited_epochs == record.send_epoch - epochs[0]
        (sent,) = alice.next_sends()
        assert sent.message_ids == (id_of(1),)
        assert alice.epoch == record.send_epoch
    assert counts == list(range(1, 16))
    waits = [later - earlier for earlier, later in pairwise(epochs)]
    assert waits == [4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 3_600, 60, 120, 240, 480]


@given(st.integers(1, 10_000), st.integers(0, 2**32))
def test_the_wait_stays_within_its_bounds(send_count: int, seed: int) -> None:
    wait = back_off(send_count, SeededRandom(seed))
    assert 3 <= wait <= UPPER_BACK_OFF * 1.25
    if send_count > 11:
        assert wait >= LOWER_BACK_OFF * 0.75


def test_waits_are_not_the_same_for_all() -> None:
    random = SeededRandom(1)
    waits = {back_off(11, random) for _ in range(1_000)}
    assert min(waits) < 2_800
    assert max(waits) > 4_400


# --- modes --------------------------------------------------------------------------------------


def test_batch_mode_repeats_the_message() -> None:
    alice = Bench(config=BATCH)
    for sends in (alice.append(1, size=LARGE), alice.next_sends(), alice.next_sends()):
        assert [send.message_ids for send in sends] == [(id_of(1, LARGE),)]


def test_interactive_mode_offers_until_it_is_asked() -> None:
    alice = Bench(config=INTERACTIVE)
    for sends in (alice.append(1), alice.next_sends(), alice.next_sends()):
        assert [(send.offers, send.message_ids) for send in sends] == [((id_of(1),), ())]
    for sends in (payloads(alice.receive(requests=[id_of(1)])), alice.next_sends()):
        assert [(send.offers, send.message_ids) for send in sends] == [((), (id_of(1),))]


def _kinds(alice: Bench, sends: int) -> str:
    """As what the next repeats go: O is an OFFER, M the message whole."""
    return "".join("O" if alice.next_sends()[0].offers else "M" for _ in range(sends))


def test_mixed_mode_sends_a_small_one_at_once_and_then_offers_it() -> None:
    """To a peer that nothing was heard of: it may be away for long."""
    alice = Bench()
    assert alice.append(1)[0].message_ids == (id_of(1),)
    for _ in range(7):
        assert alice.next_sends()[0].offers == (id_of(1),)
    assert payloads(alice.receive(requests=[id_of(1)]))[0].message_ids == (id_of(1),)


@pytest.mark.parametrize("config", [MvdsConfig(), INTERACTIVE])
def test_after_unanswered_offers_the_message_goes_again_and_ever_more_seldom(
    config: MvdsConfig,
) -> None:
    """A peer may ignore offers of what it holds, and we wait for its acknowledgement for ever."""
    alice = Bench(config=config)
    alice.append(1)
    alice.next_sends()
    wholes = [number for number, kind in enumerate(_kinds(alice, 40), 3) if kind == "M"]
    assert wholes == [9, 17, 33]


def test_after_one_offer_that_a_peer_who_is_there_left_unanswered_the_message_goes_again() -> None:
    alice = Bench(config=INTERACTIVE)
    alice.receive(messages=[text(9)])
    alice.append(1)
    repeated = [send for _ in range(6) for send in _heard_again(alice)]
    assert ["O" if send.offers else "M" for send in repeated] == [*"OMOMOM"]


def test_what_is_requested_goes_on_as_a_message_in_interactive_mode() -> None:
    alice = Bench(config=INTERACTIVE)
    alice.append(1)
    alice.receive(requests=[id_of(1)])
    assert _kinds(alice, 5) == "MMMMM"


def test_mixed_mode_repeats_a_small_one_as_it_is_to_a_peer_who_is_there() -> None:
    """Many times: an offer would cost about the same and two trips more."""
    alice = Bench()
    alice.receive(messages=[text(9)])
    alice.append(1)
    alice.append(2, size=5_000)
    repeated = [send for _ in range(6) for send in _heard_again(alice)]
    assert _messages(repeated).count(id_of(1)) == 6
    assert _messages(repeated).count(id_of(2, 5_000)) == 3


@pytest.mark.parametrize("mode", list(Mode))
def test_a_peer_who_is_there_is_told_again_soon_for_a_minute(mode: Mode) -> None:
    """Once it is not heard any more, or has not answered for long, the waits grow."""
    alice = Bench(config=MvdsConfig(mode=mode))
    alice.receive(messages=[text(9)])
    alice.append(1)
    waits: list[int] = []
    for _ in range(alice.config.heard_repeats + 1):
        before = alice.epoch
        _heard_again(alice)
        waits.append(alice.epoch - before)
    assert waits[1:-1] == [alice.config.heard_retry_epochs] * (alice.config.heard_repeats - 1)
    before = alice.epoch
    alice.next_sends()
    assert alice.epoch - before > 60


def test_an_empty_payload_tells_that_a_peer_is_there() -> None:
    alice = Bench()
    alice.append(1)
    alice.receive()
    assert alice.next_sends()[0].message_ids == (id_of(1),)


def _heard_again(alice: Bench) -> list[SendPayload]:
    sends = alice.next_sends()
    alice.receive(messages=[text(9)])
    return sends


def test_a_peer_who_went_is_offered_again() -> None:
    alice = Bench()
    alice.receive(messages=[text(9)])
    alice.now_ms += alice.config.heard_lately_ms
    alice.append(1)
    assert alice.next_sends()[0].offers == (id_of(1),)


def test_mixed_mode_offers_a_large_one_from_the_start() -> None:
    alice = Bench()
    limit = alice.config.batch_up_to_bytes
    assert alice.append(1, size=limit)[0].message_ids != ()
    assert alice.append(2, size=limit + 1)[0].offers == (id_of(2, limit + 1),)


def test_a_message_that_was_just_sent_is_not_sent_again_for_every_request() -> None:
    alice = Bench()
    alice.append(1)
    alice.next_sends()
    sent = [payloads(alice.receive(requests=[id_of(1)] * 5)) for _ in range(5)]
    assert [len(sends) for sends in sent] == [1, 0, 0, 0, 0]
    alice.wait()
    assert len(payloads(alice.receive(requests=[id_of(1)]))) == 1


def test_a_request_is_honoured_only_for_what_was_offered_to_that_peer() -> None:
    alice = Bench(groups=TRIO)
    alice.append(1, to=(BOB,))
    assert alice.receive(CAROL, requests=[id_of(1), id_of(2)]).sends == ()
    assert alice.counters["mvds.unknown_request"] == 2


def test_a_request_for_what_was_not_offered_yet_is_ignored() -> None:
    alice = Bench(config=replace(STRICT, mode=Mode.INTERACTIVE))
    alice.append(1)
    alice.receive(requests=[id_of(1)])
    record = alice.record(1)
    assert record is not None
    assert record.type is RecordType.OFFER


def test_an_ack_beats_a_request_in_the_same_payload() -> None:
    alice = Bench(config=INTERACTIVE)
    alice.append(1)
    transition = alice.receive(acks=[id_of(1)], requests=[id_of(1)])
    assert transition.sends == ()
    assert alice.store.leftovers() == ()


def test_a_repeated_offer_hastens_our_request() -> None:
    bob = Bench(BOB)
    bob.receive(ALICE, offers=[id_of(1)])
    for _ in range(30):
        bob.next_sends()
    deadline_ms = bob.node.next_deadline()
    assert deadline_ms is not None
    assert deadline_ms > bob.now_ms + 100_000
    bob.now_ms += 2_000
    (sent,) = payloads(bob.receive(ALICE, offers=[id_of(1)]))
    assert sent.requests == (id_of(1),)


def test_whoever_offered_it_too_is_told_that_we_have_it() -> None:
    bob = Bench(BOB, groups=TRIO)
    bob.receive(ALICE, offers=[id_of(1)])
    bob.receive(CAROL, offers=[id_of(1)])
    sent = payloads(bob.receive(ALICE, messages=[text(1)]))
    assert {send.peer_id: send.acks for send in sent} == {ALICE: (id_of(1),), CAROL: (id_of(1),)}
    assert bob.store.records == {}


# --- offline and being seen ---------------------------------------------------------------------


def test_offline_nothing_is_sent_and_nothing_counts() -> None:
    alice = Bench(online=False)
    assert alice.append(1) == []
    assert alice.node.next_deadline() is None
    alice.now_ms += 40 * 24 * 3_600_000
    assert payloads(alice.handle(DeadlineReached())) == []
    record = alice.record(1)
    assert record is not None
    assert record.send_count == 0
    (sent,) = alice.set_online(online=True)
    assert sent.message_ids == (id_of(1),)


def test_time_offline_is_no_reason_to_give_up() -> None:
    alice = Bench()
    alice.append(1)
    alice.set_online(online=False)
    alice = alice.restarted(online=False, now_ms=alice.now_ms + 40 * 24 * 3_600_000)
    (sent,) = alice.set_online(online=True)
    assert sent.offers == (id_of(1),)
    record = alice.record(1)
    assert record is not None
    assert not record.given_up
    assert alice.next_sends() != []


def test_what_waited_long_enough_is_tried_once_more_after_a_start_before_it_is_given_up() -> None:
    alice = Bench()
    alice.append(1)
    record = alice.record(1)
    assert record is not None
    waited = 30 * 24 * 3_600
    alice.store.apply([PutRecord(replace(record, waited_epochs=waited))])
    alice = alice.restarted(now_ms=alice.now_ms + 3_600_000)
    (sent,) = payloads(alice.handle(DeadlineReached()))
    assert sent.offers == (id_of(1),)
    record = alice.record(1)
    assert record is not None
    assert not record.given_up
    assert alice.next_sends() == []
    record = alice.record(1)
    assert record is not None
    assert record.given_up


def _backed_off(count: int) -> Bench:
    alice = Bench()
    for number in range(count):
        alice.append(number)
    for _ in range(8):
        alice.next_sends()
    alice.now_ms += 10_000
    return alice


def test_a_peer_that_is_seen_gets_what_waits_in_order_of_creation() -> None:
    alice = _backed_off(5)
    (sent,) = alice.seen()
    assert sent.offers == tuple(id_of(number) for number in range(5))
    assert alice.seen() == [], "not again so soon"
    for number in range(5):
        record = alice.record(number)
        assert record is not None
        assert record.send_epoch <= alice.epoch + alice.config.seen_retry_epochs


def test_what_was_just_sent_is_not_brought_forward() -> None:
    alice = Bench()
    alice.append(1)
    alice.now_ms += 1_000
    assert alice.seen() == []


def test_what_was_brought_forward_forgets_when_it_was_due() -> None:
    alice = Bench(config=replace(BATCH, backoff=lambda _count, _random: 50, seen_retry_epochs=40))
    alice.append(1)
    alice.now_ms += 30_000
    assert len(alice.seen()) == 1
    assert alice.wait(39) == []
    assert len(alice.wait()) == 1


def test_bringing_forward_is_paced() -> None:
    alice = Bench(config=ONCE)
    for number in range(40):
        alice.append(number, size=10_000)
    assert len(_messages(alice.wait(10))) == 40
    sent = [alice.seen(), *[alice.wait() for _ in range(6)]]
    assert [len(sends) for sends in sent] == [1, 1, 1, 1, 0, 0, 0]
    forwarded = [message_id for sends in sent for message_id in _messages(sends)]
    assert forwarded == [id_of(number, 10_000) for number in range(40)]


def test_the_users_resend_does_not_wait() -> None:
    alice = _backed_off(2)
    (sent,) = alice.resend(1)
    assert sent.message_ids == (id_of(1),)
    record = alice.record(1)
    assert record is not None
    assert record.send_count == 1


# --- what the caller may not ask ----------------------------------------------------------------


@pytest.mark.parametrize(
    "input_",
    [
        AppendMessage(message=text(1), peer_ids=()),
        AppendMessage(message=text(1), peer_ids=(CAROL,)),
        AppendMessage(message=replace(text(1), group_id=GroupId(b"x" * 32)), peer_ids=(BOB,)),
        AppendMessage(message=text(1, 100 * 1_024 + 1), peer_ids=(BOB,)),
        PeerSeen(peer_id=CAROL),
        PeerSeen(peer_id=ParticipantId("")),
        ResendRequested(peer_id=BOB, message_id=id_of(1)),
        ResendRequested(peer_id=CAROL, message_id=id_of(1)),
    ],
)
def test_what_the_caller_may_not_ask(
    input_: AppendMessage | PeerSeen | ResendRequested,
) -> None:
    alice = Bench()
    with pytest.raises(LocalProtocolError):
        alice.handle(input_)
    assert alice.store.leftovers() == ()
    assert alice.node.snapshot().records == ()


def test_unacknowledged_messages_are_bounded() -> None:
    alice = Bench(groups=TRIO, config=replace(MvdsConfig(), max_live=3))
    alice.append(1, to=(BOB, CAROL))
    with pytest.raises(LocalProtocolError, match="too many"):
        alice.append(2, to=(BOB, CAROL))
    alice.append(2)
