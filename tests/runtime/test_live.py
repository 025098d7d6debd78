"""Watching conversations of real engines: what is counted is what passed, while it is watched."""

import pytest

from engine.core.errors import CommandError, LocalProtocolError
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.mvds.vocabulary import MvdsTransition, PayloadReceived
from engine.core.mvds.vocabulary import Payload as MvdsPayload
from engine.delivery.steps import Arrived, MvdsStep, Refused
from engine.events import ConversationRemoved, MessageAdded
from engine.live_views import LiveSample, TrafficKind
from engine.runtime.inspection.live import Tap, Taps
from tests.runtime.conftest import MakePerson, Person
from tests.runtime.test_engine_contacts import friends
from tests.runtime.test_inspection import is_held, look, together


def copies(sample: LiveSample, kind: TrafficKind) -> tuple[int, int]:
    sent, received = sample.sent.get(kind), sample.received.get(kind)
    return (sent.copies if sent else 0), (received.copies if received else 0)


async def says(who: Person, other: Person, place: ConversationId, text: str) -> MessageId:
    said = await who.engine.timeline.send_text(place, text)
    await other.until(lambda e: isinstance(e, MessageAdded) and e.message.message_id == said)
    return said


async def test_what_passes_in_a_group_is_counted_at_both_ends(person: MakePerson) -> None:
    alice, bob, group = await together(person)
    here, there = alice.engine.inspection.watch(group), bob.engine.inspection.watch(group)
    before = await here.sample()
    assert not before.sent
    assert not before.received
    assert before.earlier, "what was written down before the watch"
    said = await says(alice, bob, group, "does it talk?")
    await says(bob, alice, group, "it does")
    await alice.until(lambda e: is_held(e, said))
    mine, theirs = await here.sample(), await there.sample()
    here.close()
    there.close()
    assert mine.placed == 2
    assert not mine.earlier
    found = await look(alice, group, said)
    own = {each.message_id: each for each in mine.own}[said]
    assert own.copies == len(found.copies)
    assert own.held_after_ms is not None
    assert copies(mine, TrafficKind.CONTENT) == (1, 1)
    assert copies(theirs, TrafficKind.CONTENT) == (1, 1)
    assert mine.sent[TrafficKind.CONTENT].size == found.copies[0].size
    assert theirs.received[TrafficKind.CONTENT].size == found.copies[0].size
    assert theirs.skew is not None
    assert theirs.skew.lowest_ms <= theirs.skew.highest_ms
    assert theirs.buffers is not None
    assert theirs.buffers.filter_fill is not None
    assert 0 < theirs.buffers.filter_fill < 1


async def test_nothing_is_counted_that_nobody_watches(person: MakePerson) -> None:
    alice, bob, group = await together(person)
    first = alice.engine.inspection.watch(group)
    first.close()
    await says(alice, bob, group, "does it talk?")
    assert not (await first.sample()).sent
    with pytest.raises(CommandError):
        alice.engine.inspection.watch(ConversationId("nowhere"))
    await alice.engine.groups.leave(group)
    await alice.until(lambda e: isinstance(e, ConversationRemoved))
    with pytest.raises(CommandError):
        await first.sample()


async def test_between_two_the_records_say_when_the_next_attempt_is(person: MakePerson) -> None:
    alice, bob, pair = await friends(person)
    watch = alice.engine.inspection.watch(pair)
    bob.transport.set_online(False)
    said = await alice.engine.timeline.send_text(pair, "are you there?")
    found = await alice.engine.inspection.pair(pair)
    record = next(each for each in found.records if each.message_id == said)
    assert record.record in {"message", "offer"}
    assert record.is_shown
    assert record.next_ms is not None
    assert record.next_ms == (record.send_epoch or 0) * found.epoch_ms
    assert found.is_all
    sample = await watch.sample()
    watch.close()
    assert sample.buffers is not None
    assert sample.buffers.outgoing == len(found.records)
    assert sample.buffers.filter_fill is None
    assert [each.message_id for each in sample.own][-1:] == [said]


async def test_a_group_has_no_records_of_mvds(person: MakePerson) -> None:
    alice, _, group = await together(person)
    with pytest.raises(LocalProtocolError):
        await alice.engine.inspection.pair(group)


def test_a_copy_that_led_to_nothing_or_was_refused_is_told_as_such() -> None:
    tap = Tap(UnixMs(0))
    nothing = PayloadReceived(peer_id=ParticipantId("bob"), payload=MvdsPayload())
    acks = MvdsStep(UnixMs(1), nothing, MvdsTransition())
    tap.took(
        [
            arrived(100),
            arrived(200),
            Refused(UnixMs(1), "bad_signature"),
            arrived(400),
            acks,
            arrived(800, from_store=True),
        ],
        clock_offset_ms=0,
    )
    sizes = {kind: each.size for kind, each in tap.received.view().items()}
    assert sizes == {
        TrafficKind.AGAIN: 100,
        TrafficKind.REFUSED: 200,
        TrafficKind.SYNC: 400,
        TrafficKind.HISTORY: 800,
    }


def test_two_who_watch_one_conversation_do_not_end_each_other() -> None:
    taps, place = Taps(), ConversationId("tide")
    first, second = taps.open(place, UnixMs(0)), taps.open(place, UnixMs(1))
    taps.close(place, first)
    taps.close(place, first)
    assert taps.of(place) == (second,)
    taps.close(place, second)
    assert not taps.of(place)


def arrived(size: int, *, from_store: bool = False) -> Arrived:
    return Arrived(UnixMs(1), WakuHash(b"x"), size, from_store)
