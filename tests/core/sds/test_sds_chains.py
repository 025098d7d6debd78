"""Who tells different people different things is found out, and everybody ends with all of it."""

from collections import Counter
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import HolderSource, MessageId, ParticipantId, Position, UnixMs
from engine.core.sds.forks import ForkFound
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.log import LogIndex
from engine.core.sds.vocabulary import LogEntry
from engine.sim.channel_participant import ChannelParticipant, open_payload
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    MEMBERS,
    NOW,
    after,
    content,
    id_of,
    log_of,
    member,
    run_until,
    said,
    syncs,
)

MALLORY = ParticipantId("mallory")
EVERYBODY = MEMBERS | {MALLORY}
HOUR = 3_600_000


def of_mallory(
    sequence: int, text: str, previous: MessageReceived | None = None, *, lamport: int = 0
) -> MessageReceived:
    return content(
        MALLORY, text, lamport=NOW + (lamport or sequence), sequence=sequence, previous=previous
    )


FIRST = of_mallory(1, "first")
TO_ALICE = of_mallory(2, "I said yes", FIRST)
TO_BOB = of_mallory(2, "I said no", FIRST)
AFTER_ALICE = of_mallory(3, "as I said", TO_ALICE)
AFTER_BOB = of_mallory(3, "as I told you", TO_BOB)


def forks(who: ChannelParticipant) -> list[set[MessageId]]:
    return [{fork.first_id, fork.second_id} for fork in who.channel.forks()]


def test_one_number_for_two_messages_is_a_fork_with_both_as_proof() -> None:
    alice = member(members=EVERYBODY)
    for message in (FIRST, TO_ALICE):
        alice.handle(message, now_ms=after(9))
    assert forks(alice) == []
    alice.handle(TO_BOB, now_ms=after(9))
    (found,) = said(alice, ForkFound)
    assert isinstance(found, ForkFound)
    assert (found.fork.sender_id, found.fork.sequence) == (MALLORY, 2)
    assert forks(alice) == [{id_of(TO_ALICE), id_of(TO_BOB)}]
    assert set(log_of(alice)) == {id_of(FIRST), id_of(TO_ALICE), id_of(TO_BOB)}
    alice.restart(now_ms=after(9))
    assert alice.channel.snapshot() == alice.store.state()
    assert forks(alice) == [{id_of(TO_ALICE), id_of(TO_BOB)}]


def test_a_predecessor_that_is_another_is_a_fork_and_the_other_branch_is_looked_for() -> None:
    alice = member(members=EVERYBODY)
    for message in (FIRST, TO_ALICE, AFTER_BOB):
        alice.handle(message, now_ms=after(9))
    assert forks(alice) == [{id_of(TO_ALICE), id_of(AFTER_BOB)}]
    (missing,) = alice.store.state().missing
    assert (missing.entry.message_id, missing.entry.sender_id) == (id_of(TO_BOB), MALLORY)
    assert id_of(AFTER_BOB) in log_of(alice)  # It is shown all the same.


@pytest.mark.parametrize("restarted", [False, True])
def test_it_is_found_too_when_the_later_message_came_first(*, restarted: bool) -> None:
    alice = member(members=EVERYBODY)
    for message in (FIRST, AFTER_BOB):
        alice.handle(message, now_ms=after(9))
    if restarted:
        alice.restart(now_ms=after(9))
    alice.handle(TO_ALICE, now_ms=after(9))
    assert forks(alice) == [{id_of(TO_ALICE), id_of(AFTER_BOB)}]
    assert [entry.entry.message_id for entry in alice.store.state().missing] == [id_of(TO_BOB)]


@pytest.mark.parametrize("order", list(permutations([FIRST, TO_ALICE, AFTER_ALICE])))
def test_a_chain_that_comes_in_any_order_is_no_fork(order: tuple[MessageReceived, ...]) -> None:
    alice = member(members=EVERYBODY)
    for message in order:
        alice.handle(message, now_ms=after(9))
        alice.handle(message, now_ms=after(9))
    assert forks(alice) == []
    assert alice.store.state().missing == ()


def test_a_message_that_names_its_last_but_one_as_the_one_before_is_a_fork() -> None:
    alice = member(members=EVERYBODY)
    for message in (FIRST, TO_ALICE, of_mallory(3, "skips one", FIRST)):
        alice.handle(message, now_ms=after(9))
    assert len(forks(alice)) == 1
    assert alice.store.state().missing == ()


# --- everybody ends with all of it --------------------------------------------------------------


def talk(people: list[ChannelParticipant], end_ms: int) -> None:
    """Everybody hears everybody, at once."""
    while True:
        due = [
            (deadline_ms, number)
            for number, person in enumerate(people)
            if (deadline_ms := person.next_deadline()) is not None
        ]
        at_ms, speaker = min(due, default=(UnixMs(end_ms), 0))
        if at_ms >= end_ms:
            return
        for sent in people[speaker].advance(now_ms=at_ms):
            for number, person in enumerate(people):
                if number != speaker:
                    person.handle(open_payload(sent.payload), now_ms=at_ms)


@pytest.mark.parametrize(
    ("to_alice", "to_bob"),
    [
        ((FIRST, TO_ALICE), (FIRST, TO_BOB)),
        ((FIRST, TO_ALICE, AFTER_ALICE), (FIRST, TO_BOB)),
        ((FIRST, TO_ALICE), (FIRST, TO_BOB, AFTER_BOB)),
        ((FIRST, TO_ALICE, AFTER_ALICE), (FIRST, TO_BOB, AFTER_BOB)),
        ((FIRST, TO_ALICE, AFTER_BOB), (FIRST, TO_BOB, AFTER_BOB)),
        ((FIRST, TO_ALICE, AFTER_BOB), (FIRST, AFTER_BOB)),
        ((TO_ALICE,), (TO_BOB,)),
        ((AFTER_ALICE,), (AFTER_BOB,)),
    ],
)
def test_two_who_were_told_different_things_end_with_both(
    to_alice: tuple[MessageReceived, ...], to_bob: tuple[MessageReceived, ...]
) -> None:
    """Nobody else speaks, and Mallory is gone."""
    people = [member(name, members=EVERYBODY) for name in (ALICE, BOB, CAROL)]
    for person, told in zip(people, (to_alice, to_bob, ()), strict=True):
        for message in told:
            person.handle(message, now_ms=after(9))
    talk(people, NOW + HOUR)
    expected = {id_of(message) for message in (*to_alice, *to_bob)}
    assert [set(log_of(person)) for person in people] == [expected] * 3
    assert len({tuple(log_of(person)) for person in people}) == 1
    assert all(forks(person) for person in people)
    # And then there is nothing more to say: all claims are equal.
    before = [dict(person.sends) for person in people]
    talk(people, NOW + 2 * HOUR)
    repairs = [person.sends.get("repair", 0) for person in people]
    assert repairs == [sent.get("repair", 0) for sent in before]


IDS = [id_of(content(BOB, f"{number}")) for number in range(12)]
ROWS = st.lists(
    st.tuples(st.sampled_from(IDS), st.integers(1, 4), st.integers(0, 5)),
    max_size=12,
    unique_by=lambda row: row[0],
)


def _entry(message_id: MessageId, sequence: int, lamport: int) -> LogEntry:
    author = of_mallory(sequence, "x").author
    return LogEntry(Position(lamport, message_id), MALLORY, None, author)


@given(ROWS, st.randoms(use_true_random=False), st.sets(st.sampled_from(IDS)))
def test_who_holds_the_same_claims_the_same_however_it_came_and_went(
    rows: list[tuple[MessageId, int, int]], random: Random, gone: set[MessageId]
) -> None:
    entries = [_entry(*row) for row in rows]
    shuffled = list(entries)
    random.shuffle(shuffled)
    index = LogIndex()
    for entry in shuffled:
        index.insert(entry)
    left = [entry for entry in entries if entry.position.message_id not in gone]
    for entry in shuffled:
        if entry not in left:
            index.remove(entry.position.message_id)
    fresh = LogIndex(sorted(left, key=lambda entry: entry.position))
    limits = {"max_instances": 64, "max_ranges": 32}
    assert index.holdings(**limits) == fresh.holdings(**limits)
    assert [e.position for e in index.entries()] == [e.position for e in fresh.entries()]
    told = [item for ranges in fresh.holdings(**limits).values() for item in ranges]
    by_number = Counter(entry.author for entry in left)
    shared = sum(count for count in by_number.values() if count > 1)
    assert sum(item.last - item.first + 1 for item in told) == len(by_number) + shared


def test_holders_of_a_forked_message_are_those_who_hold_it() -> None:
    """A fork of our own: our profile was copied, and both copies spoke."""
    alice = member()
    copy = member()
    alice.send("here", now_ms=NOW)
    (there,) = copy.send("there", now_ms=NOW)
    bob = member(BOB)
    bob.receive(there.payload, now_ms=NOW)
    (mine,) = alice.seen.sent
    (_, claim), *_ = syncs(run_until(bob, after(2_000)))
    alice.handle(claim, now_ms=after(2_000))
    assert alice.seen.certain_holders.get(mine, set()) == set()
    assert HolderSource.HOLDINGS not in {entry.source for entry in alice.store.state().holders}
