"""What members lacked when they said what comes from a Store now.

Whoever was away for a month hears a month of claims and requests, nearly all of them long settled:
only each member's last word counts, and only once the Stores have told all.
"""

import pytest
from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId
from engine.core.sds.inputs import MessageReceived, StoreAnswered
from engine.core.sds.vocabulary import HeldByChanged
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    after,
    content,
    dep,
    holds,
    id_of,
    member,
    opened,
    run_until,
    said,
    sync,
    syncs,
)

SETTLED = after(10 * 60_000)
PATIENCE = after(3_600_000)


def _stored(received: MessageReceived) -> MessageReceived:
    return replace(received, stored=True)


def _repairs(alice: ChannelParticipant) -> list[MessageId]:
    sent = opened(item for _, item in run_until(alice, PATIENCE))
    return [id_of(received) for received in sent if received.repaired_by is not None]


def _answered(alice: ChannelParticipant) -> list[MessageId]:
    sent = opened(alice.handle(StoreAnswered(through_ms=SETTLED), now_ms=SETTLED))
    return [id_of(one) for one in sent if one.repaired_by is not None] + _repairs(alice)


def _fetched(*, requests: bool = False, settled: bool = True) -> ChannelParticipant:
    """Alice was away; of twenty messages of Carol's Bob was always short of the last."""
    alice = member()
    for number in range(1, 21):
        theirs = content(CAROL, f"x {number}", lamport=NOW + number, sequence=number)
        alice.handle(_stored(theirs), now_ms=SETTLED)
        claim = sync(
            BOB,
            lamport=NOW + number,
            holdings=None if requests else holds((CAROL, 1, max(number - 1, 1))),
            requests=dep(theirs) if requests else (),
        )
        alice.handle(_stored(claim), now_ms=SETTLED)
    if settled:
        alice.handle(
            _stored(sync(BOB, lamport=NOW + 30, holdings=holds((CAROL, 1, 20)))), now_ms=SETTLED
        )
    return alice


def test_what_was_settled_since_is_sent_to_nobody() -> None:
    assert _answered(_fetched()) == []
    assert _answered(_fetched(requests=True)) == []


def test_the_last_word_of_who_may_never_meet_us_is_answered() -> None:
    last = id_of(content(CAROL, "x 20", lamport=NOW + 20, sequence=20))
    assert _answered(_fetched(settled=False)) == [last]
    assert _answered(_fetched(requests=True, settled=False)) == [last]


def test_nothing_is_sent_before_the_stores_have_told_all() -> None:
    assert _repairs(_fetched(settled=False)) == []
    assert _repairs(_fetched(requests=True, settled=False)) == []


def test_the_same_said_live_is_answered() -> None:
    """The counterpart, so that the others can fail."""
    alice = _fetched()
    alice.handle(sync(BOB, lamport=NOW + 40, holdings=holds((CAROL, 1, 19))), now_ms=SETTLED)
    assert len(_repairs(alice)) == 1


def test_who_was_heard_live_meanwhile_has_said_a_later_word() -> None:
    alice = _fetched(settled=False, requests=True)
    alice.handle(sync(BOB, lamport=NOW + 40, holdings=holds((CAROL, 1, 20))), now_ms=SETTLED)
    assert _answered(alice) == []


def test_a_member_who_answered_a_sync_long_ago_is_not_answered_again() -> None:
    """A duplicate says live that an acknowledgement was lost; from a Store it says nothing."""
    alice, other = member(), member()
    theirs = content(BOB, "x")
    for person in (alice, other):
        person.handle(theirs, now_ms=NOW)
        run_until(person, after(120_000))
    alice.handle(_stored(theirs), now_ms=after(120_000))
    other.handle(theirs, now_ms=after(120_000))
    soon = after(125_000)
    assert len(syncs(run_until(alice, soon))) < len(syncs(run_until(other, soon)))


@pytest.mark.parametrize(("others", "answered"), [(1_023, True), (1_024, False)])
def test_the_last_words_of_a_thousand_members_are_kept_and_the_oldest_gives_way(
    others: int, answered: bool
) -> None:
    crowd = [ParticipantId(f"member {number}") for number in range(others)]
    alice = member(members=frozenset({ALICE, BOB, *crowd}))
    (mine,) = opened(alice.send("mine", now_ms=NOW))
    request = sync(BOB, lamport=NOW + 1, requests=dep(mine))
    alice.handle(_stored(request), now_ms=SETTLED)
    for who in crowd:
        level = sync(who, lamport=NOW + 1, holdings=holds((ALICE, 1, 1)))
        alice.handle(_stored(level), now_ms=SETTLED)
    sent = opened(alice.handle(StoreAnswered(through_ms=SETTLED), now_ms=SETTLED))
    sent += opened(alice.advance(now_ms=SETTLED))
    assert any(one.repaired_by == ALICE for one in sent) is answered


def test_a_copy_from_before_our_oldest_message_says_nothing_about_it() -> None:
    """Whoever has a message goes on from its Lamport timestamp, so only a liar could say more."""
    alice = member()
    (mine,) = opened(alice.send("mine", now_ms=NOW))
    lie = content(BOB, "before", lamport=NOW - 1, history=dep(mine))
    alice.handle(_stored(lie), now_ms=SETTLED)
    assert not said(alice, HeldByChanged)
    alice.handle(_stored(content(BOB, "after", lamport=NOW + 1, history=dep(mine))), now_ms=SETTLED)
    assert said(alice, HeldByChanged)
