"""Receive Message, Deliver Message, Resolve Conflicts: causal order, and what is refused."""

import pytest
from msgspec.structs import replace

from engine.core.errors import RemoteProtocolError
from engine.core.ids import ChannelId, MessageId, ParticipantId
from engine.core.sds.bloom import ReceivedBloom, base_hashes
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import (
    EphemeralReceived,
    GapChanged,
    Holdings,
    Message,
    MessageDelivered,
    SequenceRange,
)
from engine.sim.channel_participant import CHANNEL, instance_of
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    after,
    content,
    dep,
    entries,
    holds,
    id_of,
    log_of,
    member,
    opened,
    said,
    sync,
)


def delivered(participant: object) -> list[MessageId]:
    events = getattr(participant, "events", [])
    return [e.position.message_id for e in events if isinstance(e, MessageDelivered)]


def test_dependencies_met_is_delivered_and_the_clock_adopted() -> None:
    alice = member()
    message = content(BOB, "hi", lamport=NOW + 1_000)
    alice.handle(message, now_ms=NOW)
    assert delivered(alice) == [id_of(message)]
    assert alice.channel.snapshot().lamport_timestamp == NOW + 1_000


def test_a_message_waits_and_is_delivered_with_all_that_waited_in_log_order() -> None:
    alice = member()
    first = content(BOB, "1", lamport=NOW)
    second = content(BOB, "2", lamport=NOW + 1, history=dep(first))
    third = content(CAROL, "3", lamport=NOW + 2, history=dep(second))
    other = content(CAROL, "4", lamport=NOW + 3, history=dep(first))
    for message in (other, third, second):
        alice.handle(message, now_ms=NOW)
        assert delivered(alice) == []
    assert said(alice, GapChanged) == [GapChanged(waiting=3)]
    missing = alice.channel.snapshot().missing
    assert [each.entry.message_id for each in missing] == [id_of(first)]
    alice.handle(first, now_ms=NOW)
    assert delivered(alice) == [id_of(m) for m in (first, second, third, other)]
    assert said(alice, GapChanged) == [GapChanged(waiting=0)]
    state = alice.channel.snapshot()
    assert (state.missing, state.incoming) == ((), ())


def test_a_dependency_that_only_waits_itself_is_not_met_nor_looked_for() -> None:
    alice = member()
    first = content(BOB, "1")
    second = content(BOB, "2", lamport=NOW + 1, history=dep(first))
    third = content(BOB, "3", lamport=NOW + 2, history=dep(second))
    alice.handle(second, now_ms=NOW)
    alice.handle(third, now_ms=NOW)
    assert delivered(alice) == []
    assert [e.entry.message_id for e in alice.channel.snapshot().missing] == [id_of(first)]


def test_duplicates_are_delivered_once_in_every_state() -> None:
    alice = member()
    first = content(BOB, "1")
    second = content(BOB, "2", lamport=NOW + 1, history=dep(first))
    alice.handle(second, now_ms=NOW)
    assert not alice.channel.handle(second, now_ms=NOW).writes, "it waits already"
    for message in (first, first, second):
        alice.handle(message, now_ms=NOW)
    assert [i for i, _ in alice.seen.deliveries] == [id_of(first), id_of(second)]


def test_the_id_of_a_message_that_waits_is_in_our_filter() -> None:
    alice = member()
    waiting = content(BOB, "2", history=entries("missing"))
    alice.handle(waiting, now_ms=NOW)
    (mine,) = opened(alice.send("mine", now_ms=after(1)))
    assert mine.message.bloom_filter is not None
    assert ReceivedBloom(mine.message.bloom_filter).may_contain(base_hashes(id_of(waiting)))


def test_equal_lamport_timestamps_are_ordered_by_id_and_late_ones_say_so() -> None:
    alice = member()
    messages = [content(BOB, str(number)) for number in range(8)]
    for message in messages:
        alice.handle(message, now_ms=NOW)
    assert log_of(alice) == sorted(id_of(message) for message in messages)
    early = content(BOB, "early", lamport=NOW - 10)
    alice.handle(early, now_ms=NOW)
    (event,) = said(alice, MessageDelivered)
    assert isinstance(event, MessageDelivered)
    assert event.late
    assert log_of(alice)[0] == id_of(early)
    assert alice.channel.snapshot().lamport_timestamp == NOW


def test_a_sync_is_never_kept_but_its_dependencies_are_looked_for() -> None:
    alice = member()
    lost = content(BOB, "lost newest")
    alice.handle(sync(BOB, lamport=NOW + 5_000, history=dep(lost)), now_ms=NOW)
    state = alice.channel.snapshot()
    assert (state.log, state.incoming) == ((), ())
    assert state.lamport_timestamp < NOW + 5_000
    assert [e.entry.message_id for e in state.missing] == [id_of(lost)]
    alice.handle(lost, now_ms=NOW)
    assert delivered(alice) == [id_of(lost)]
    assert alice.channel.snapshot().missing == ()


def test_own_verified_history_comes_back_and_unverified_is_ignored() -> None:
    alice = member()
    forged = content(ALICE, "forged", verified=False)
    alice.handle(forged, now_ms=NOW)
    assert delivered(alice) == []
    restored = content(ALICE, "mine", sequence=1, repaired_by=BOB)
    alice.handle(restored, now_ms=NOW)
    (event,) = said(alice, MessageDelivered)
    assert isinstance(event, MessageDelivered)
    assert event.is_own
    assert alice.channel.snapshot().outgoing == ()
    assert [e.participant_id for e in alice.channel.snapshot().holders] == [BOB]


def test_own_sync_and_own_ephemeral_are_ignored() -> None:
    alice = member()
    before = alice.channel.snapshot()
    alice.handle(sync(ALICE, history=entries("x")), now_ms=NOW)
    assert alice.channel.snapshot() == before


def _ephemeral(sender: ParticipantId) -> MessageReceived:
    message = Message(
        sender_id=sender, message_id=MessageId("e"), channel_id=CHANNEL, content=b"typing"
    )
    return MessageReceived(message=message, raw=b"")


def test_ephemeral_is_delivered_at_once_and_not_logged() -> None:
    alice = member()
    before = alice.channel.snapshot()
    alice.handle(_ephemeral(BOB), now_ms=NOW)
    assert len(said(alice, EphemeralReceived)) == 1
    alice.handle(_ephemeral(ALICE), now_ms=NOW)
    assert said(alice, EphemeralReceived) == []
    assert alice.channel.snapshot() == before


def _changed(received: MessageReceived, **changes: object) -> MessageReceived:
    return replace(received, message=replace(received.message, **changes))


GOOD = content(BOB, "good", history=entries("dependency"))
BACKWARDS: Holdings = {instance_of(BOB): (SequenceRange(first=5, last=3),)}
OVERLAPPING: Holdings = {
    instance_of(BOB): (SequenceRange(first=1, last=5), SequenceRange(first=5, last=9))
}


@pytest.mark.parametrize(
    ("received", "reason"),
    [
        (_changed(GOOD, channel_id=ChannelId("other")), "wrong_channel"),
        (_changed(GOOD, sender_id=""), "empty_id"),
        (_changed(GOOD, message_id=""), "empty_id"),
        (_changed(GOOD, causal_history=entries("")), "empty_id"),
        (_changed(GOOD, causal_history=dep(GOOD)), "self_dependent"),
        (_changed(GOOD, message_id=MessageId("somebody else's")), "id_mismatch"),
        (_changed(GOOD, content=b"changed"), "id_mismatch"),
        (_changed(GOOD, lamport_timestamp=2**53), "lamport_too_large"),
        (sync(BOB, lamport=2**64 - 1), "lamport_too_large"),
        (_changed(GOOD, lamport_timestamp=None, content=None), "no_kind"),
        (sync(BOB, holdings=BACKWARDS), "bad_holdings"),
        (sync(BOB, holdings=holds((BOB, 0, 3))), "bad_holdings"),
        (sync(BOB, holdings=OVERLAPPING), "bad_holdings"),
        (content(BOB, "none", sequence=0), "bad_sequence"),
        (content(BOB, "too many", sequence=2**53), "bad_sequence"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_breaks_a_rule_is_refused_by_name_and_changes_nothing(
    received: MessageReceived, reason: str
) -> None:
    alice = member()
    alice.send("mine", now_ms=NOW)
    before = alice.channel.snapshot()
    with pytest.raises(RemoteProtocolError) as caught:
        alice.handle(received, now_ms=NOW)
    assert caught.value.reason == reason
    assert alice.channel.snapshot() == before


def test_an_unverified_channel_takes_foreign_ids_as_they_are() -> None:
    alice = member()
    foreign = _changed(content(BOB, "js", verified=False), message_id=MessageId("sha256"))
    alice.handle(foreign, now_ms=NOW)
    assert delivered(alice) == [MessageId("sha256")]


def test_a_far_future_message_is_held_aside_never_adopted_and_released_later() -> None:
    alice = member()
    future = content(BOB, "future", lamport=NOW + 301_000)
    alice.handle(future, now_ms=NOW)
    alice.handle(future, now_ms=NOW)
    assert delivered(alice) == []
    assert alice.channel.snapshot().lamport_timestamp < NOW + 301_000
    assert alice.counters["sds.held_ahead"] == 1
    later = after(1_000)
    assert alice.next_deadline() is not None
    alice.advance(now_ms=later)
    assert delivered(alice) == [id_of(future)]
