"""Who answers whom, and who does not: groups, partial and old claims, filters that err, bounds."""

import pytest
from msgspec.structs import replace

from engine.core.ids import MessageId
from engine.core.sds.bloom import BloomFilter
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import MessageReceived
from engine.sim.channel_participant import ChannelParticipant, hash64
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    SMALL,
    after,
    content,
    dep,
    holds,
    id_of,
    member,
    opened,
    run_until,
    sync,
)

SETTLED = after(2 * SMALL.repair_t_min_ms + 100)


def repairs(participant: ChannelParticipant, end_ms: int) -> list[MessageId]:
    sent = opened([item for _, item in run_until(participant, end_ms)])
    return [id_of(received) for received in sent if received.repaired_by is not None]


def carols(count: int) -> list[MessageReceived]:
    return [
        content(CAROL, str(number), lamport=NOW + number, sequence=number + 1)
        for number in range(count)
    ]


def knows(messages: list[MessageReceived], config: SdsConfig = SMALL) -> ChannelParticipant:
    alice = member(config=config)
    for message in messages:
        alice.handle(message, now_ms=NOW)
    return alice


def filter_of(*messages: MessageReceived) -> bytes:
    bloom = BloomFilter(capacity=256, fixed=False)
    bloom.include([id_of(message) for message in messages])
    return bytes(bloom)


@pytest.mark.parametrize("asked", [True, False])
def test_only_the_messages_response_group_answers(asked: bool) -> None:
    """Three groups among three members; T_resp is another matter."""
    messages = carols(20)
    alice = knows(messages, replace(SMALL, repair_group_size=1))
    if asked:
        for number, message in enumerate(messages):
            request = sync(BOB, lamport=NOW + number, requests=dep(message))
            alice.handle(request, now_ms=SETTLED)
    else:
        alice.handle(sync(BOB, holdings=holds()), now_ms=SETTLED)
    ids = [id_of(message) for message in messages]
    group = {i for i in ids if hash64(ALICE + i) % 3 == hash64(CAROL + i) % 3}
    assert 0 < len(group) < 20
    assert set(repairs(alice, after(8_000))) == group


def test_a_request_is_answered_though_the_askers_filter_errs() -> None:
    """It errs in the claims that follow as well, and those are other claims each time."""
    message, *others = carols(5)
    alice = knows([message, *others])
    claim = holds((CAROL, 2, 2))
    filter_ = filter_of(message, others[0])
    asked = sync(BOB, holdings=claim, bloom=filter_, requests=dep(message))
    alice.handle(asked, now_ms=SETTLED)
    filter_ = filter_of(message, *others)
    claim = holds((CAROL, 2, 5))
    alice.handle(sync(BOB, lamport=NOW + 1, holdings=claim, bloom=filter_), now_ms=SETTLED)
    assert repairs(alice, after(8_000)) == [id_of(message)]


def test_who_has_received_it_since_it_asked_gets_no_answer() -> None:
    """By its filter: it waits there for another message."""
    (message,) = carols(1)
    alice = knows([message])
    alice.handle(sync(BOB, holdings=holds(), requests=dep(message)), now_ms=NOW)
    received = sync(BOB, lamport=NOW + 1, holdings=holds(), bloom=filter_of(message))
    alice.handle(received, now_ms=NOW)
    assert repairs(alice, after(8_000)) == []


def test_what_waits_at_the_other_takes_no_room_among_what_is_sent() -> None:
    messages = carols(6)
    alice = knows(messages, replace(SMALL, push_per_claim=2))
    claim = sync(BOB, holdings=holds(), bloom=filter_of(*messages[:4]))
    alice.handle(claim, now_ms=SETTLED)
    assert set(repairs(alice, after(8_000))) == {id_of(message) for message in messages[4:]}


def test_what_its_author_sends_again_is_not_answered() -> None:
    (message,) = carols(1)
    alice = knows([message])
    alice.handle(sync(BOB, requests=dep(message)), now_ms=NOW)
    alice.handle(message, now_ms=NOW)
    assert repairs(alice, after(8_000)) == []


def test_an_old_claim_that_comes_late_makes_nobody_send() -> None:
    alice = knows(carols(1))
    alice.handle(sync(BOB, lamport=NOW + 10, holdings=holds((CAROL, 1, 1))), now_ms=SETTLED)
    alice.handle(sync(BOB, lamport=NOW + 9, holdings=holds()), now_ms=SETTLED)
    assert repairs(alice, after(8_000)) == []


def test_a_claim_from_far_ahead_gives_way_once_its_time_is_over() -> None:
    alice = knows(carols(1))
    year_ahead = NOW + 31_536_000_000
    alice.handle(sync(BOB, lamport=year_ahead, holdings=holds((CAROL, 1, 1))), now_ms=NOW)
    later = after(SMALL.max_ahead_ms + 1)
    alice.handle(sync(BOB, lamport=later, holdings=holds()), now_ms=later)
    assert repairs(alice, later + 8_000) == [id_of(carols(1)[0])]


def test_silence_beyond_the_limits_of_a_claim_says_nothing() -> None:
    ranges = replace(SMALL, holdings_max_ranges=2)
    messages = carols(6)
    alice = knows(messages, ranges)
    one, three = holds((CAROL, 1, 1)), holds((CAROL, 3, 3))
    claim = {key: one[key] + three[key] for key in one}
    alice.handle(sync(BOB, holdings=claim), now_ms=SETTLED)
    assert repairs(alice, after(8_000)) == [id_of(messages[1])]
    alice = knows(messages, replace(SMALL, holdings_max_instances=1))
    alice.handle(sync(BOB, holdings=holds((BOB, 1, 1))), now_ms=SETTLED)
    assert repairs(alice, after(8_000)) == []


def test_only_so_many_answers_are_planned_and_an_eighth_of_them_for_one_member() -> None:
    messages = carols(12)
    alice = knows(messages, replace(SMALL, repair_buffer=32))
    for number, message in enumerate(messages[:10]):
        request = sync(BOB, lamport=NOW + number, requests=dep(message))
        alice.handle(request, now_ms=SETTLED)
    assert alice.counters["sds.repair_answer_refused"] == 6
    for number, message in enumerate(messages[10:]):
        request = sync(CAROL, lamport=NOW + number, requests=dep(message))
        alice.handle(request, now_ms=SETTLED)
    expected = {id_of(message) for message in messages[:4] + messages[10:]}
    assert set(repairs(alice, after(8_000))) == expected


def test_only_so_many_copies_are_remembered() -> None:
    messages = carols(27)
    alice = knows(messages, replace(SMALL, repair_buffer=24))
    for message in messages:
        alice.handle(replace(message, repaired_by=CAROL), now_ms=SETTLED)
    for number, message in enumerate(messages):
        request = sync(BOB, lamport=NOW + number, requests=dep(message))
        alice.handle(request, now_ms=SETTLED)
    assert set(repairs(alice, after(8_000))) == {id_of(message) for message in messages[:3]}
