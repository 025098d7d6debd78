"""Somebody who tells two stories and sends more than a day's quota: what is aside hides neither."""

import pytest
from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.config import DAY_MS, FloodLimits
from engine.core.sds.inputs import MessageReceived, ShowSetAside
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    SMALL,
    content,
    dep,
    id_of,
    log_of,
    member,
)
from tests.core.sds.test_sds_chains import EVERYBODY, HOUR, MALLORY, forks, talk

MORNING = UnixMs(NOW - NOW % DAY_MS + DAY_MS)
TOMORROW = UnixMs(MORNING + DAY_MS)


def of_mallory(
    sequence: int,
    text: str,
    previous: MessageReceived | None = None,
    *,
    at: int = MORNING,
    names_it: bool = False,
) -> MessageReceived:
    return content(
        MALLORY,
        text,
        lamport=at + sequence,
        sequence=sequence,
        previous=previous,
        history=dep(previous) if names_it and previous is not None else (),
    )


FIRST = of_mallory(1, "first")
TO_ALICE = of_mallory(2, "I said yes", FIRST)
TO_BOB = of_mallory(2, "I said no", FIRST)
AFTER_ALICE = of_mallory(3, "as I said", TO_ALICE, at=TOMORROW)
AFTER_BOB = of_mallory(3, "as I told you", TO_BOB, at=TOMORROW)
NAMES_BOB = of_mallory(3, "as I told you all", TO_BOB, at=TOMORROW, names_it=True)


def somebody(
    participant_id: ParticipantId = ALICE, *, messages_per_day: int = 2
) -> ChannelParticipant:
    """Who takes so many of Mallory's messages a day."""
    limits = FloodLimits(messages_per_day=messages_per_day)
    return member(participant_id, members=EVERYBODY, config=replace(SMALL, flood=limits))


def aside(who: ChannelParticipant) -> set[MessageId]:
    return {entry.message_id for entry in who.channel.snapshot().set_aside}


def missing(who: ChannelParticipant) -> set[MessageId]:
    return {entry.entry.message_id for entry in who.channel.snapshot().missing}


def check_kept(who: ChannelParticipant) -> None:
    """A restart changes nothing; accounts are saved now and then only."""
    assert who.channel.snapshot() == replace(who.store.state(), spent=())


def show(who: ChannelParticipant, *messages: MessageReceived, at: int = MORNING) -> None:
    """What is kept of Mallory, as its store brings it."""
    who.handle(ShowSetAside(sender_id=MALLORY), now_ms=UnixMs(at))
    for message in messages:
        who.handle(replace(message, wanted=True), now_ms=UnixMs(at))


@pytest.mark.parametrize("restarted", [False, True])
def test_a_branch_that_is_set_aside_is_a_fork_once_it_is_shown(*, restarted: bool) -> None:
    alice = somebody()
    for message in (FIRST, TO_ALICE, TO_BOB):
        alice.handle(message, now_ms=MORNING)
    assert aside(alice) == {id_of(TO_BOB)}
    assert forks(alice) == []
    if restarted:
        alice.restart(now_ms=MORNING)
    show(alice, TO_BOB)
    assert forks(alice) == [{id_of(TO_ALICE), id_of(TO_BOB)}]
    assert log_of(alice) == [id_of(FIRST), *sorted([id_of(TO_ALICE), id_of(TO_BOB)])]
    check_kept(alice)


@pytest.mark.parametrize("successor", [AFTER_BOB, NAMES_BOB])
@pytest.mark.parametrize("restarted", [False, True])
def test_who_goes_on_from_a_branch_that_is_set_aside_forks_and_it_is_not_looked_for(
    successor: MessageReceived, *, restarted: bool
) -> None:
    alice = somebody()
    for message in (FIRST, TO_ALICE, TO_BOB):
        alice.handle(message, now_ms=MORNING)
    if restarted:
        alice.restart(now_ms=MORNING)
    alice.handle(successor, now_ms=TOMORROW)
    assert log_of(alice)[-1] == id_of(successor), "nor does it wait for it"
    assert forks(alice) == [{id_of(TO_ALICE), id_of(successor)}]
    assert not missing(alice)
    if restarted:
        alice.restart(now_ms=TOMORROW)
    show(alice, TO_BOB, at=TOMORROW)
    assert len(forks(alice)) == 1
    assert set(log_of(alice)) == {*map(id_of, (FIRST, TO_ALICE, TO_BOB, successor))}
    assert not missing(alice)
    check_kept(alice)


@pytest.mark.parametrize("restarted", [False, True])
def test_one_story_with_a_part_of_it_aside_is_no_fork(*, restarted: bool) -> None:
    alice = somebody(messages_per_day=1)
    for message in (FIRST, TO_ALICE):
        alice.handle(message, now_ms=MORNING)
    alice.handle(AFTER_ALICE, now_ms=TOMORROW)
    assert log_of(alice) == [id_of(FIRST), id_of(AFTER_ALICE)]
    if restarted:
        alice.restart(now_ms=TOMORROW)
    assert not missing(alice)
    show(alice, TO_ALICE, at=TOMORROW)
    assert log_of(alice) == [*map(id_of, (FIRST, TO_ALICE, AFTER_ALICE))]
    assert forks(alice) == []


def test_the_other_branch_of_one_that_is_aside_is_a_fork_when_both_are_shown() -> None:
    """Its successor is here, and each of the two might be what it goes on from."""
    alice = somebody(messages_per_day=1)
    for message in (FIRST, TO_ALICE, TO_BOB):
        alice.handle(message, now_ms=MORNING)
    alice.handle(AFTER_BOB, now_ms=TOMORROW)
    assert aside(alice) == {id_of(TO_ALICE), id_of(TO_BOB)}
    show(alice, TO_ALICE, at=TOMORROW)
    assert forks(alice) == [{id_of(TO_ALICE), id_of(AFTER_BOB)}]
    assert not missing(alice), "the other branch is here"
    show(alice, TO_BOB, at=TOMORROW)
    assert set(log_of(alice)) == {*map(id_of, (FIRST, TO_ALICE, TO_BOB, AFTER_BOB))}
    check_kept(alice)


def test_people_with_different_branches_aside_send_little_and_end_alike_once_shown() -> None:
    people = [somebody(name) for name in (ALICE, BOB, CAROL)]
    alice, bob, carol = people
    told = {ALICE: (FIRST, TO_ALICE, TO_BOB), BOB: (FIRST, TO_BOB, TO_ALICE), CAROL: ()}
    for person, heard in zip(people, told.values(), strict=True):
        for message in heard:
            person.handle(message, now_ms=MORNING)
    talk(people, MORNING + HOUR)
    assert len(aside(alice)) == len(aside(bob)) == 1
    before = [person.sends.get("repair", 0) for person in people]
    talk(people, MORNING + 3 * HOUR)
    repairs = [person.sends.get("repair", 0) for person in people]
    assert sum(repairs) - sum(before) <= 2 * 2 * len(people), "what is not taken, once an hour"
    show(alice, TO_BOB, at=MORNING + 3 * HOUR)
    show(bob, TO_ALICE, at=MORNING + 3 * HOUR)
    if aside(carol):
        (kept,) = [each for each in (TO_ALICE, TO_BOB) if id_of(each) in aside(carol)]
        show(carol, kept, at=MORNING + 3 * HOUR)
    talk(people, MORNING + 4 * HOUR)
    assert len({tuple(log_of(person)) for person in people}) == 1
    assert all(len(log_of(person)) == 3 and forks(person) for person in people)
    before = [person.sends.get("repair", 0) for person in people]
    talk(people, MORNING + 6 * HOUR)
    assert [person.sends.get("repair", 0) for person in people] == before
