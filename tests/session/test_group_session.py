"""Whole sealed sessions: who is let in, what is refused, and what survives a restart."""

import os
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.waku import decode_waku_message, encode_waku_message
from engine.core.content import Leave, Text
from engine.core.ids import ConversationId, DeliveryState, ParticipantId, UnixMs, WakuHash
from engine.core.sds.inputs import DeadlineReached
from engine.core.waku import WakuMessage
from engine.events import ClocksAhead, NoticeCleared, NoticeRaised
from engine.runtime.held_views import held_notice, held_view
from engine.runtime.views import message_view
from engine.session.group.wire import EPHEMERAL_MAX_AGE_MS
from engine.session.inputs import MessageArrived, TypeNow
from engine.session.transitions import HeldAside, HeldAsideNoted, Publish
from engine.sim.network import Outgoing
from engine.sim.session_participant import SessionParticipant
from tests.forging import sealed_group_of

NOW = UnixMs(1_800_000_000_000)


def person(name: str) -> SessionParticipant:
    return SessionParticipant(name, seed=7, now_ms=NOW)


def pair() -> tuple[SessionParticipant, SessionParticipant]:
    """Alice made a group, Bob joined it; nobody has heard anything of the other."""
    alice, bob = person("Alice"), person("Bob")
    alice.create_group("Tide", now_ms=NOW)
    bob.join_group(alice.invite_link(), now_ms=NOW)
    return alice, bob


def give(
    receiver: SessionParticipant, sent: Sequence[Outgoing], at_ms: int = NOW
) -> list[Outgoing]:
    """Everything arrives; what the receiver says to it comes back."""
    return [out for item in sent for out in receiver.receive(item.payload, now_ms=UnixMs(at_ms))]


def conversation_of(someone: SessionParticipant) -> ConversationId:
    return someone.store.groups()[0].conversation_id


def texts(someone: SessionParticipant) -> list[str]:
    page = someone.store.latest_page(conversation_of(someone), limit=100)
    return [m.record.text for m in page.messages if m.record.kind == "text"]


def names(someone: SessionParticipant) -> set[str]:
    return {m.name for m in someone.store.members(conversation_of(someone)) if m.left_ms is None}


def settle(one: SessionParticipant, other: SessionParticipant, start_ms: int, rounds: int) -> int:
    """Let both live, without loss, for ``rounds`` seconds; returns the time then."""
    for now_ms in range(start_ms, start_ms + rounds * 1000, 250):
        for sender, receiver in ((one, other), (other, one)):
            deadline = sender.next_deadline()
            if deadline is not None and deadline <= now_ms:
                back = give(receiver, sender.advance(now_ms=UnixMs(now_ms)), now_ms)
                give(sender, back, now_ms)
    return start_ms + rounds * 1000


def test_the_first_words_of_somebody_whose_join_was_lost_are_shown_with_their_name() -> None:
    alice, bob = pair()
    said = bob.say(Text(text="hello"), now_ms=NOW)
    give(alice, said)
    assert names(alice) == {"Alice", "Bob"}
    settle(alice, bob, NOW, 90)
    assert texts(alice) == ["hello"]


def test_both_end_with_the_same_log_and_know_that_the_other_holds_it() -> None:
    alice, bob = pair()
    give(bob, alice.say(Text(text="one"), now_ms=NOW))
    give(alice, bob.say(Text(text="two"), now_ms=NOW))
    settle(alice, bob, NOW, 90)
    assert texts(alice) == texts(bob)
    assert set(texts(alice)) == {"one", "two"}
    own = alice.store.latest_page(conversation_of(alice), limit=10).messages
    views = [message_view(m, alice.session.members(), alice.participant_id) for m in own]
    delivery = next(v.delivery for v in views if v.text == "one")
    assert delivery is not None
    assert delivery.state is DeliveryState.HELD
    assert delivery.held_by == (bob.participant_id,)


def test_somebody_who_heard_nothing_of_a_third_person_gets_their_name_with_a_repair() -> None:
    alice, bob = pair()
    carol = person("Carol")
    joining = carol.join_group(alice.invite_link(), now_ms=NOW)
    give(alice, joining)
    lost_on_bob = carol.say(Text(text="only Alice hears this"), now_ms=NOW)
    give(alice, lost_on_bob)
    settle(alice, bob, NOW, 120)
    assert "only Alice hears this" in texts(bob)
    assert "Carol" in names(bob)


def test_a_stranger_with_the_key_but_without_a_join_is_parked_and_not_let_in() -> None:
    alice, bob = pair()
    said = bob.say(Text(text="let me in"), now_ms=NOW)
    payload = decode_waku_message(said[0].payload)
    group = sealed_group_of(bob.store.groups()[0])
    bare = group.seal(group.open(payload.payload).raw, random_bytes=os.urandom)
    alice.receive(encode_waku_message(replace(payload, payload=bare)), now_ms=NOW)
    assert names(alice) == {"Alice"}
    assert alice.counters["group.parked"] == 1
    assert texts(alice) == []
    give(alice, bob.say(Text(text="and again"), now_ms=NOW))
    assert "Bob" in names(alice)


@given(payload=st.binary(max_size=400))
def test_garbage_on_the_topic_changes_nothing_and_is_counted(payload: bytes) -> None:
    alice, _ = pair()
    before = alice.session.channel.snapshot()
    message = WakuMessage(
        payload=payload, content_topic=alice.session.content_topic, timestamp_ns=1
    )
    transition = alice.session.handle(MessageArrived(message, WakuHash(bytes(32))), now_ms=NOW)
    assert transition.writes == ()
    assert transition.notes == ()
    assert alice.session.channel.snapshot() == before
    assert sum(alice.counters.snapshot().values()) == 1


@given(flip=st.integers(0, 10_000))
def test_one_changed_bit_anywhere_is_refused(flip: int) -> None:
    alice, bob = pair()
    message = decode_waku_message(bob.say(Text(text="hi"), now_ms=NOW)[0].payload)
    payload = bytearray(message.payload)
    payload[flip // 8 % len(payload)] ^= 1 << flip % 8
    changed = replace(message, payload=bytes(payload))
    transition = alice.session.handle(MessageArrived(changed, WakuHash(bytes(32))), now_ms=NOW)
    assert transition.writes == ()
    assert names(alice) == {"Alice"}


def test_a_restart_between_any_two_messages_changes_nothing() -> None:
    alice, bob = pair()
    for number in range(10):
        give(bob, alice.say(Text(text=f"a{number}"), now_ms=UnixMs(NOW + number)))
        alice.restart(now_ms=UnixMs(NOW + number))
        bob.restart(now_ms=UnixMs(NOW + number))
    settle(alice, bob, NOW + 10, 120)
    assert texts(bob) == texts(alice) == [f"a{n}" for n in range(10)]
    authors = [entry.author for entry in alice.session.channel.snapshot().log]
    assert len(set(authors)) == len(authors) == 12


def test_leaving_is_told_and_takes_the_leaver_out_of_n() -> None:
    alice, bob = pair()
    settle(alice, bob, NOW, 60)
    give(alice, bob.say(Leave(), now_ms=UnixMs(NOW + 60_000)), NOW + 60_000)
    assert names(alice) == {"Alice"}
    sent = alice.say(Text(text="alone again"), now_ms=UnixMs(NOW + 61_000))
    assert sent
    stored = alice.store.latest_page(conversation_of(alice), limit=1).messages[0]
    view = message_view(stored, alice.session.members(), alice.participant_id)
    assert view.delivery is not None
    assert view.delivery.of == 0


def test_typing_is_shown_and_an_old_one_is_not() -> None:
    alice, bob = pair()
    give(alice, bob.say(Text(text="hi"), now_ms=NOW))
    (publish,) = bob.session.handle(TypeNow(active=True), now_ms=NOW).sends
    assert isinstance(publish, Publish)
    wire = publish.message
    late = UnixMs(NOW + EPHEMERAL_MAX_AGE_MS + 1)
    alice.session.handle(MessageArrived(wire, WakuHash(os.urandom(32))), now_ms=late)
    assert alice.session.typing_now() == ()
    assert alice.counters["group.ephemeral_stale"] == 1
    alice.session.handle(MessageArrived(wire, WakuHash(os.urandom(32))), now_ms=NOW)
    assert alice.session.typing_now() == (bob.participant_id,)
    alice.session.handle(DeadlineReached(), now_ms=UnixMs(NOW + 60_000))
    assert alice.session.typing_now() == ()


def test_the_senders_state_never_moves_backwards_when_somebody_joins_later() -> None:
    alice, bob = pair()
    give(alice, bob.say(Text(text="hi"), now_ms=NOW))
    said = alice.say(Text(text="news"), now_ms=UnixMs(NOW + 1))
    give(bob, said, NOW + 1)
    settle(alice, bob, NOW + 1, 60)
    carol = person("Carol")
    later = UnixMs(NOW + 70_000)
    give(alice, carol.join_group(alice.invite_link(), now_ms=later), later)
    assert "Carol" in names(alice)
    stored = next(
        m
        for m in alice.store.latest_page(conversation_of(alice), limit=20).messages
        if m.record.text == "news"
    )
    view = message_view(stored, alice.session.members(), alice.participant_id)
    assert view.delivery is not None
    assert view.delivery.state is DeliveryState.HELD
    assert view.delivery.of == 1


def test_the_gap_tells_how_often_was_asked_and_closes() -> None:
    alice, bob = pair()
    settle(alice, bob, NOW, 60)
    at_ms = NOW + 60_000
    alice.say(Text(text="lost"), now_ms=UnixMs(at_ms))
    give(bob, alice.say(Text(text="heard"), now_ms=UnixMs(at_ms + 1)), at_ms + 1)
    gap = bob.session.gap()
    assert gap is not None
    (place,) = gap.places
    assert (place.missing, place.waiting, place.requests) == (1, 1, 0)
    heard = bob.session.channel.snapshot().incoming[0].message.message_id
    assert place.before is not None
    assert place.before.message_id == heard
    while (deadline := bob.next_deadline()) is not None and deadline < at_ms + 20_000:
        bob.advance(now_ms=deadline)
    gap = bob.session.gap()
    assert gap is not None
    assert gap.places[0].requests >= 2
    bob.restart(now_ms=UnixMs(at_ms + 20_000))
    assert bob.session.gap() == gap
    settle(alice, bob, at_ms + 20_000, 60)
    assert bob.session.gap() is None
    assert texts(bob) == ["lost", "heard"]


def test_somebody_whose_clock_is_far_ahead_is_held_named_and_shown_in_time() -> None:
    alice, bob = pair()
    settle(alice, bob, NOW, 60)
    ahead_ms = NOW + 60_000 + 10 * 60_000
    said = bob.say(Text(text="from the future"), now_ms=UnixMs(ahead_ms))
    message = decode_waku_message(said[0].payload)
    now_ms = UnixMs(NOW + 60_000)
    transition = alice.session.handle(
        MessageArrived(message, WakuHash(os.urandom(32))), now_ms=now_ms
    )
    assert HeldAsideNoted() in transition.notes
    _assert_bobs_is_held(alice, bob.participant_id, ahead_ms)
    alice.store.apply(transition.writes)
    assert texts(alice) == []
    alice.restart(now_ms=UnixMs(now_ms + 1))
    assert alice.session.held_aside() == HeldAside()
    alice.advance(now_ms=UnixMs(now_ms + 1))
    _assert_bobs_is_held(alice, bob.participant_id, ahead_ms)
    while (deadline := alice.next_deadline()) is not None and deadline < ahead_ms:
        alice.advance(now_ms=deadline)
    assert texts(alice) == ["from the future"]
    assert alice.session.held_aside() == HeldAside()
    assert held_view(conversation_of(alice), HeldAside(), {}, alice.participant_id) is None
    nothing = held_notice(HeldAside(), {}, alice.store.groups()[0])
    assert nothing == NoticeCleared(key=f"clock/{conversation_of(alice)}")


def _assert_bobs_is_held(alice: SessionParticipant, bob: ParticipantId, ahead_ms: int) -> None:
    aside, members = alice.session.held_aside(), alice.session.members()
    held = held_view(conversation_of(alice), aside, members, alice.participant_id)
    assert held is not None
    (message,), (clock,) = held.messages, held.clocks
    assert (message.text, message.sender_name, message.held) == ("from the future", "Bob", True)
    assert message.sent_ms == message.position.lamport_timestamp == ahead_ms
    assert (message.is_own, message.delivery, message.waiting) == (False, None, False)
    assert (held.total, held.next_due_ms) == (1, ahead_ms - 300_000)
    assert (clock.participant_id, clock.is_self, clock.ahead_ms) == (bob, False, 600_000)
    notice = held_notice(aside, members, alice.store.groups()[0])
    assert isinstance(notice, NoticeRaised)
    assert isinstance(notice.content, ClocksAhead)
    assert (notice.content.names, notice.content.ahead_ms) == (("Bob",), 600_000)
