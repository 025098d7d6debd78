"""Whatever is said again how often and comes in whatever order, all end with the same."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import ParticipantId
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import MessageDelivered
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    BOB,
    CAROL,
    MEMBERS,
    NOW,
    after,
    content,
    dep,
    id_of,
    log_of,
    member,
    run_until,
    said,
)

MALLORY = ParticipantId("mallory")
EVERYBODY = MEMBERS | {MALLORY}
MINUTE = 60_000
HOUR = 60 * MINUTE


def of_mallory(text: str, lamport: int, replaces: MessageReceived | None = None) -> MessageReceived:
    return content(MALLORY, text, lamport=NOW + lamport, sequence=lamport, replaces=replaces)


FIRST = of_mallory("first", 9_000)
SOONER = of_mallory("sooner", 5_000, FIRST)
LATER = of_mallory("later", 9_500, FIRST)
AGAIN = of_mallory("again", 2_000, SOONER)
DENIED = content(CAROL, "not hers", lamport=NOW + 1_000, sequence=1, replaces=FIRST)


def hear(*messages: MessageReceived) -> ChannelParticipant:
    alice = member(members=EVERYBODY)
    for message in messages:
        alice.handle(message, now_ms=NOW)
    return alice


@pytest.mark.parametrize("order", list(permutations([FIRST, SOONER, LATER, DENIED])))
def test_of_several_that_replace_one_any_counts_and_others_hide_none(
    order: tuple[MessageReceived, ...],
) -> None:
    alice = hear(*order, FIRST)
    assert log_of(alice) == [id_of(DENIED), id_of(SOONER), id_of(LATER)]
    assert alice.channel.snapshot() == alice.store.state()


@pytest.mark.parametrize("order", list(permutations([FIRST, SOONER, AGAIN])))
def test_what_replaces_another_stays(order: tuple[MessageReceived, ...]) -> None:
    """Else whoever did not get it before it was dropped would keep the one that it replaced."""
    alice = hear(*order, FIRST)
    assert log_of(alice) == [id_of(AGAIN), id_of(SOONER)]
    alice.restart(now_ms=after(1))
    assert alice.channel.snapshot() == alice.store.state()
    alice.handle(FIRST, now_ms=after(2))
    alice.handle(of_mallory("and again", 1_000, SOONER), now_ms=after(2))
    assert len(log_of(alice)) == 3


@given(st.permutations([FIRST, SOONER, LATER, AGAIN, DENIED]), st.integers(0, 5))
def test_any_order_and_a_restart_between_end_alike(
    order: list[MessageReceived], restart_after: int
) -> None:
    alice = member(members=EVERYBODY)
    for number, message in enumerate([*order, *order]):
        if number == restart_after:
            alice.restart(now_ms=NOW)
        alice.handle(message, now_ms=NOW)
    expected = [id_of(each) for each in (DENIED, AGAIN, SOONER, LATER)]
    assert log_of(alice) == expected


def test_what_was_released_together_with_what_replaces_it_is_dropped() -> None:
    """Both were held aside, because our clock was an hour behind."""
    alice = member(members=EVERYBODY, clock_offset_ms=-HOUR)
    for message in (FIRST, SOONER):
        alice.handle(message, now_ms=NOW)
    assert log_of(alice) == []
    alice.set_clock(0, now_ms=after(10_000))
    assert log_of(alice) == [id_of(SOONER)]
    assert alice.channel.snapshot() == alice.store.state()


def test_what_waited_together_with_what_replaces_it_is_dropped() -> None:
    alice = member(members=EVERYBODY)
    before = content(BOB, "before", lamport=NOW)
    first = content(MALLORY, "1", lamport=NOW + 9, sequence=1, history=dep(before))
    again = content(MALLORY, "2", lamport=NOW + 5, sequence=2, history=dep(before), replaces=first)
    answer = content(CAROL, "answer", lamport=NOW + 10, history=dep(first))
    for message in (first, again, answer, before):
        alice.handle(message, now_ms=NOW)
    assert log_of(alice) == [id_of(before), id_of(again), id_of(answer)]
    delivered = [each.message.message_id for each in said(alice, MessageDelivered)]  # type: ignore[union-attr]
    assert delivered == [id_of(before), id_of(again), id_of(answer)]


def test_nobody_waits_longer_than_a_minute_for_what_others_dropped() -> None:
    """Mallory tells Alice another sender of it than the others: ids do not cover that."""
    alice = hear(SOONER)
    named = dep(FIRST)[0]._replace(sender_id=BOB)
    after_it = content(MALLORY, "x", lamport=NOW + 9_600, sequence=1, history=(named,))
    bobs = content(BOB, "y", lamport=NOW + 9_700, history=dep(after_it))
    for message in (after_it, bobs):
        alice.handle(message, now_ms=NOW)
    assert log_of(alice) == [id_of(SOONER)]
    run_until(alice, after(MINUTE))
    assert log_of(alice) == [id_of(SOONER), id_of(after_it), id_of(bobs)]
    assert alice.channel.snapshot() == alice.store.state()


def test_a_form_that_was_not_kept_does_not_keep_out_the_one_that_others_have() -> None:
    """Mallory sends Bob alone another form of what others get, and so much that it gives way."""
    bob = member(BOB, members=EVERYBODY)
    theirs = content(MALLORY, "in two forms", lamport=NOW + 10 * MINUTE, sequence=1)
    to_bob = content(
        MALLORY, "in two forms", lamport=NOW + 10 * MINUTE, sequence=1, requests=dep(FIRST)
    )
    assert id_of(theirs) == id_of(to_bob)
    bob.handle(to_bob, now_ms=NOW)
    for number in range(32):
        sooner = content(MALLORY, f"{number}", lamport=NOW + 9 * MINUTE, sequence=2 + number)
        bob.handle(sooner, now_ms=NOW)
    assert bob.counters["sds.held_ahead_gave_way"] == 1
    bob.handle(theirs, now_ms=after(10 * MINUTE))
    assert id_of(theirs) in log_of(bob)
