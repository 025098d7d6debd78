"""A clock that was ahead is put right: what it dated is said again, and dropped by everybody."""

from collections.abc import Sequence

import pytest

from engine.core.ids import ParticipantId, UnixMs
from engine.core.sds.channel import SdsChannel
from engine.core.sds.inputs import DeadlineReached
from engine.core.sds.vocabulary import MessageReplaced, OwnFromFuture
from engine.sim.channel_participant import (
    CHANNEL,
    ChannelParticipant,
    hash64,
    message_id_of,
    open_payload,
    sign,
    text_of,
)
from engine.sim.network import Outgoing
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    MEMBERS,
    NOW,
    SMALL,
    after,
    content,
    dep,
    entries,
    id_of,
    log_of,
    member,
    opened,
    said,
)

HOUR = 3_600_000
YEAR = 365 * 24 * HOUR
DAVE = ParticipantId("dave")
EVERYBODY = MEMBERS | {DAVE}


def deliver(sent: Sequence[Outgoing], *people: ChannelParticipant, now_ms: UnixMs) -> None:
    for item in sent:
        for person in people:
            person.handle(open_payload(item.payload), now_ms=now_ms)


def texts(who: ChannelParticipant) -> list[bytes]:
    """What the log says, in its order."""
    raws = [who.store.raw[message_id] for message_id in log_of(who)]
    return [text_of(open_payload(b"\0" + raw).message.content or b"") for raw in raws]


@pytest.mark.parametrize("ahead", [HOUR, YEAR])
@pytest.mark.parametrize("how", ["clock set", "restarted"])
def test_what_a_fast_clock_dated_is_said_again_and_everybody_ends_alike(
    ahead: int, how: str
) -> None:
    alice, bob = member(clock_offset_ms=ahead), member(BOB)
    before = bob.send("before", now_ms=NOW)
    deliver(before, alice, now_ms=NOW)
    wrong = [*alice.send("one", now_ms=after(1)), *alice.send("two", now_ms=after(2))]
    deliver(wrong, bob, now_ms=after(3))
    assert texts(bob) == [b"before"]
    assert len(bob.store.state().incoming) == 2
    if how == "restarted":
        alice.clock_offset_ms = 0
        alice.restart(now_ms=after(10))
        again = alice.advance(now_ms=after(10))
    else:
        again = alice.set_clock(0, now_ms=after(10))
    deliver(again, bob, now_ms=after(11))
    assert texts(alice) == texts(bob) == [b"before", b"one", b"two"]
    assert log_of(alice) == log_of(bob)
    assert bob.store.state().incoming == ()
    assert max(e.position.lamport_timestamp for e in bob.store.state().log) <= NOW + 300_000
    # What comes twice, from a Store say, is dropped, also after a restart.
    bob.restart(now_ms=after(12))
    deliver(wrong, bob, now_ms=after(12))
    bob.advance(now_ms=after(2 * ahead))
    assert texts(bob) == [b"before", b"one", b"two"]
    assert bob.counters["sds.replaced"] == 2
    for person in (alice, bob):
        assert person.channel.snapshot() == person.store.state()
    # A third speaks: nobody waits for anything.
    deliver(bob.send("after", now_ms=after(20)), alice, now_ms=after(20))
    assert texts(alice)[-1] == b"after"
    assert alice.store.state().missing == ()


def test_who_delivered_it_in_its_time_takes_it_out_again() -> None:
    """Carol's clock is as wrong as Alice's."""
    alice, carol = member(clock_offset_ms=HOUR), member(CAROL, clock_offset_ms=HOUR)
    deliver(alice.send("one", now_ms=NOW), carol, now_ms=NOW)
    assert texts(carol) == [b"one"]
    (old,) = log_of(carol)
    again = alice.set_clock(0, now_ms=after(1_000))
    deliver(again, carol, now_ms=after(1_000))
    assert texts(carol) == [b"one"]
    assert log_of(carol) == log_of(alice) != [old]
    (replaced,) = said(carol, MessageReplaced)
    assert isinstance(replaced, MessageReplaced)
    assert replaced.message_id == old
    assert carol.channel.snapshot() == carol.store.state()


def test_the_history_leaves_out_what_others_hold_aside() -> None:
    alice, bob = member(clock_offset_ms=HOUR), member(BOB)
    theirs = content(CAROL, "an hour ahead as we are", lamport=NOW + HOUR)
    alice.handle(theirs, now_ms=NOW)
    assert log_of(alice) == [id_of(theirs)]
    alice.set_clock(0, now_ms=after(1))
    sent = alice.send("now", now_ms=after(2))
    assert opened(sent)[0].message.causal_history == ()
    deliver(sent, bob, now_ms=after(2))
    assert texts(bob) == [b"now"]


def test_a_clock_that_was_behind_needs_nothing_said_again() -> None:
    alice, bob = member(clock_offset_ms=-YEAR), member(BOB)
    deliver(bob.send("today", now_ms=NOW), alice, now_ms=NOW)
    assert log_of(alice) == []
    assert len(alice.store.state().incoming) == 1
    deliver(alice.send("hello", now_ms=after(1)), bob, now_ms=after(1))
    assert set(texts(bob)) == {b"hello", b"today"}
    alice.set_clock(0, now_ms=after(2))
    assert said(alice, OwnFromFuture) == []
    assert log_of(alice) == log_of(bob)


def test_it_is_told_at_every_start_until_it_was_said() -> None:
    alice = member(clock_offset_ms=HOUR)
    alice.send("one", now_ms=NOW)
    (old,) = log_of(alice)
    for _ in range(2):
        transition = _started_anew(alice).handle(DeadlineReached(), now_ms=after(1))
        (told,) = [event for event in transition.events if isinstance(event, OwnFromFuture)]
        assert told.message_ids == (old,)
    alice.clock_offset_ms = 0
    alice.restart(now_ms=after(1))
    alice.advance(now_ms=after(1))
    transition = _started_anew(alice).handle(DeadlineReached(), now_ms=after(1))
    assert not [event for event in transition.events if isinstance(event, OwnFromFuture)]


def _started_anew(alice: ChannelParticipant) -> SdsChannel:
    """A machine with a right clock, from what is on the disk."""
    return SdsChannel(
        CHANNEL,
        ALICE,
        config=SMALL,
        message_id_of=message_id_of,
        sign=sign,
        random_unit=lambda: 0.5,
        hash64=hash64,
        state=alice.store.state(),
        members=MEMBERS,
        online=True,
        now_ms=after(1),
    )


# --- liars ----------------------------------------------------------------------------------------


def test_nobody_replaces_what_somebody_else_said() -> None:
    alice = member(members=EVERYBODY)
    carols = content(CAROL, "hers", lamport=NOW + 9)
    alice.handle(carols, now_ms=NOW)
    alice.handle(content(BOB, "not hers", lamport=NOW + 1, replaces=carols), now_ms=NOW)
    assert id_of(carols) in log_of(alice)
    assert alice.counters["sds.false_replacement"] == 1


def test_nobody_replaces_what_somebody_else_will_say() -> None:
    """Bob names Carol's message before it comes; a message that waits for it goes on waiting."""
    alice = member(members=EVERYBODY)
    carols = content(CAROL, "hers", lamport=NOW + 9)
    known = dep(carols)[0]._replace(sender_id=CAROL)
    waits = content(DAVE, "answers her", lamport=NOW + 10, history=(known,))
    alice.handle(waits, now_ms=NOW)
    alice.handle(content(BOB, "steals", lamport=NOW + 1, replaces=carols), now_ms=NOW)
    assert id_of(waits) not in log_of(alice)
    alice.handle(carols, now_ms=NOW)
    assert log_of(alice)[1:] == [id_of(carols), id_of(waits)]


def test_what_is_not_further_ahead_is_not_replaced() -> None:
    """So this is no way to take back what was said."""
    alice = member(members=EVERYBODY)
    said_before = content(BOB, "a promise", lamport=NOW)
    later = content(BOB, "no promise", lamport=NOW + 1, replaces=said_before)
    alice.handle(said_before, now_ms=NOW)
    alice.handle(later, now_ms=NOW)
    assert log_of(alice) == [id_of(said_before), id_of(later)]
    carol = member(CAROL, members=EVERYBODY)
    for message in (later, said_before):
        carol.handle(message, now_ms=NOW)
    assert log_of(carol) == log_of(alice)


@pytest.mark.parametrize("how", ["clock set", "restarted"])
def test_dependencies_of_what_was_held_aside_are_looked_for_once_the_clock_is_right(
    how: str,
) -> None:
    """Else what depends on them would wait for ever."""
    alice = member(clock_offset_ms=-HOUR)
    before = content(BOB, "before", lamport=NOW - 2)
    answer = content(CAROL, "answer", lamport=NOW - 1, history=dep(before))
    alice.handle(answer, now_ms=NOW)
    assert alice.store.state().missing == ()
    if how == "restarted":
        alice.clock_offset_ms = 0
        alice.restart(now_ms=after(1))
        alice.advance(now_ms=after(1))
    else:
        alice.set_clock(0, now_ms=after(1))
    assert [each.entry.message_id for each in alice.store.state().missing] == [id_of(before)]
    alice.handle(before, now_ms=after(2))
    assert log_of(alice) == [id_of(before), id_of(answer)]
    assert alice.channel.snapshot() == alice.store.state()


@pytest.mark.parametrize("stage", ["held aside", "waiting", "missing"])
def test_wherever_it_is_it_is_dropped(stage: str) -> None:
    alice = member(members=EVERYBODY, clock_offset_ms=HOUR if stage != "held aside" else 0)
    history = entries("unknown") if stage == "waiting" else ()
    old = content(BOB, "one", lamport=NOW + HOUR, history=history)
    named = dep(old)[0]._replace(sender_id=BOB)
    waits = content(CAROL, "answer", lamport=NOW + HOUR + 1, history=(named,))
    if stage != "missing":
        alice.handle(old, now_ms=NOW)
    alice.handle(waits, now_ms=NOW)
    new = content(BOB, "one again", lamport=NOW, replaces=old)
    alice.handle(new, now_ms=NOW)
    alice.set_clock(HOUR, now_ms=NOW)
    alice.handle(old, now_ms=NOW)
    assert log_of(alice) == [id_of(new), id_of(waits)]
    assert alice.store.state().incoming == ()
    alice.restart(now_ms=NOW)
    assert alice.channel.snapshot() == alice.store.state()


def test_a_lie_about_somebody_elses_message_does_not_stand_before_their_own_word() -> None:
    """Bob tells only Alice that he replaces what is Carol's; then Carol does so herself."""
    alice, dave = member(members=EVERYBODY), member(DAVE, members=EVERYBODY)
    old = content(CAROL, "dated wrongly", lamport=NOW + HOUR)
    alice.handle(content(BOB, "a lie", lamport=NOW + 1, replaces=old), now_ms=NOW)
    for person in (alice, dave):
        person.handle(content(CAROL, "dated rightly", lamport=NOW + 2, replaces=old), now_ms=NOW)
        person.restart(now_ms=NOW)
        person.handle(old, now_ms=NOW)
        person.advance(now_ms=after(2 * HOUR))
        assert id_of(old) not in log_of(person)
        assert person.channel.snapshot() == person.store.state()
