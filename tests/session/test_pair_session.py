"""A pair's session: what is refused, what survives, how far own messages came."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from engine.codec.content import encode_content, encode_ephemeral
from engine.codec.mvds import encode_payload
from engine.core.contacts import ContactState
from engine.core.content import ContactRequest, Content, Created, Presence, Text
from engine.core.errors import LocalProtocolError
from engine.core.ids import AuthorSequence, DeliveryState, InstanceId, MessageId, UnixMs
from engine.core.mvds.config import DAY_MS, MvdsConfig
from engine.core.mvds.vocabulary import GroupId, MvdsMessage, Payload
from engine.core.problems import FailureReason
from engine.core.sds.inputs import ResendRequested
from engine.core.waku import WakuMessage
from engine.crypto.links import parse_contact_link
from engine.crypto.pair import (
    EphemeralPart,
    MvdsPart,
    PairBody,
    PairSeal,
    inbox_topic_of,
    open_from_anybody,
)
from engine.runtime.request_inbox import request_in
from engine.session.inputs import (
    AcceptContact,
    AskToTalk,
    CopiesAccepted,
    DeclineContact,
    MessageArrived,
    ProfileChanged,
    Say,
    SetBlocked,
    TypeNow,
)
from engine.session.pair.channel import MOST_BEFORE_AGREEING
from engine.session.transitions import (
    MembersNoted,
    RowAdded,
    RowChanged,
    SessionTransition,
    TypingNoted,
)
from tests.session.pair_stage import HASH, NOW, PairPerson, exchange, friends, live, with_payload


def seal_from(author: PairPerson, to: PairPerson, body: PairBody, at_ms: int = NOW) -> WakuMessage:
    """Anything at all, sealed and signed by ``author`` as it should be."""
    seal = PairSeal(
        author.identity,
        peer_public_key=to.identity.public_key,
        peer_encryption_key=to.identity.encryption_public_key,
    )
    return WakuMessage(
        payload=seal.seal(body, signed_ms=UnixMs(at_ms)), content_topic=seal.content_topic
    )


def state_of(person: PairPerson) -> ContactState:
    (stored,) = person.store.contacts()
    assert stored.state is person.session.record.state
    return stored.state


# --- strangers and junk ---------------------------------------------------------------------------


@settings(deadline=None)
@given(payload=st.binary(max_size=300))
def test_garbage_is_counted_and_changes_nothing(payload: bytes) -> None:
    alice, _ = friends()
    before = (alice.session.channel.node.snapshot(), alice.counters.snapshot(), len(alice.rows()))
    message = WakuMessage(payload=payload, content_topic=alice.session.content_topic)
    transition = alice.session.handle(MessageArrived(message, HASH), now_ms=NOW)
    assert transition == SessionTransition()
    assert alice.session.channel.node.snapshot() == before[0]
    assert sum(alice.counters.snapshot().values()) == sum(before[1].values()) + 1


@settings(deadline=None)
@given(flip=st.integers(0, 10_000))
def test_one_changed_bit_anywhere_is_refused(flip: int) -> None:
    alice, bob = friends()
    (message,) = bob.say("hi")
    payload = bytearray(message.payload)
    payload[flip // 8 % len(payload)] ^= 1 << flip % 8
    transition = alice.session.handle(
        MessageArrived(with_payload(message, bytes(payload)), HASH), now_ms=alice.now_ms
    )
    assert alice.perform(transition) == []
    assert alice.texts() == [] or alice.texts() == ["hi"], "an unknown field may be flipped"


def test_somebody_else_s_sealed_words_are_not_the_peer_s() -> None:
    alice, _ = friends()
    mallory = PairPerson("Mallory")
    forged = seal_from(mallory, alice, MvdsPart(payload=b"\x0a"))
    assert alice.hear(forged) == []
    assert alice.counters["pair.forged_sender"] == 1


def test_the_same_bytes_twice_are_looked_at_once() -> None:
    alice, bob = friends()
    (message,) = bob.say("once")
    alice.hear(message)
    assert alice.session.precheck(message, HASH) is None
    assert alice.hear(message) == []
    assert alice.texts() == ["once"]
    assert alice.counters["pair.replayed"] == 2


def test_a_foreign_group_and_an_unreadable_body_are_refused_and_counted() -> None:
    alice, bob = friends(olm=False)
    group_id = bob.session.channel.wire.group_id
    foreign = MvdsMessage(GroupId(bytes(32)), NOW // 1000, b"hello")
    unreadable = MvdsMessage(group_id, NOW // 1000, b"\xff\xff\xff")
    for body in (foreign, unreadable):
        payload = encode_payload(Payload(messages=(body,)))
        alice.hear(seal_from(bob, alice, MvdsPart(payload=payload)))
    assert alice.counters["pair.mvds_foreign_group"] == 1
    assert alice.counters["pair.content_malformed"] == 1
    assert len(alice.rows()) == 2


def test_what_belongs_to_groups_is_shown_as_unsupported_and_nothing_more() -> None:
    alice, bob = friends(olm=False)
    body = encode_content(
        Content(
            author=AuthorSequence(instance_id=InstanceId(bytes(16)), sequence=1),
            previous_id=None,
            nonce=bytes(16),
            sent_ms=NOW,
            body=Created(name="not here"),
        )
    )
    message = MvdsMessage(bob.session.channel.wire.group_id, NOW // 1000, body)
    alice.hear(
        seal_from(bob, alice, MvdsPart(payload=encode_payload(Payload(messages=(message,)))))
    )
    assert alice.rows()[0].record.kind == "unsupported", "it claims no time, so it stands first"
    assert state_of(alice) is ContactState.ACCEPTED


# --- presence and typing --------------------------------------------------------------------------


def test_old_and_far_ahead_ephemerals_are_dropped() -> None:
    alice, bob = friends()
    hello = EphemeralPart(content=encode_ephemeral(Presence(answer_wanted=True)))
    alice.hear(seal_from(bob, alice, hello, NOW - 31_000))
    alice.hear(seal_from(bob, alice, hello, NOW + 301_000))
    assert alice.counters["pair.ephemeral_stale"] == 1
    assert alice.counters["pair.ephemeral_ahead"] == 1


def test_a_presence_is_answered_at_most_every_half_minute() -> None:
    alice, bob = friends()
    hello = EphemeralPart(content=encode_ephemeral(Presence(answer_wanted=True)))
    answers = 0
    for second in range(61):
        alice.now_ms = UnixMs(NOW + 100_000 + second * 1_000)
        answers += len(alice.hear(seal_from(bob, alice, hello, alice.now_ms)))
    assert answers == 3


def test_who_does_not_want_it_known_announces_and_answers_nothing() -> None:
    alice, bob = friends()
    alice.announces = False
    hello = EphemeralPart(content=encode_ephemeral(Presence(answer_wanted=True)))
    assert alice.hear(seal_from(bob, alice, hello, NOW)) == []
    said: list[WakuMessage] = []
    for _ in range(200):
        deadline = alice.session.next_deadline()
        if deadline is None or deadline > NOW + 3_600_000:
            break
        alice.now_ms = UnixMs(max(deadline, alice.now_ms))
        said += alice.advance()
    assert said == []
    alice.announces = True
    deadline = alice.session.next_deadline()
    assert deadline is not None
    alice.now_ms = deadline
    assert [message.ephemeral for message in alice.advance()] == [True]


def test_who_falls_silent_is_told_as_gone() -> None:
    alice, _ = friends()
    assert alice.session.record.last_seen_ms == NOW
    alice.notes.clear()
    deadline = alice.session.next_deadline()
    while deadline is not None and deadline < NOW + 120_000:
        alice.now_ms = deadline
        alice.advance()
        deadline = alice.session.next_deadline()
    assert MembersNoted() not in alice.notes
    alice.now_ms = UnixMs(NOW + 120_000)
    alice.advance()
    assert MembersNoted() in alice.notes


def test_last_seen_is_written_at_most_once_a_minute() -> None:
    alice, bob = friends()
    writes = 0
    for second in range(1, 121):
        alice.now_ms = bob.now_ms = UnixMs(NOW + second * 1_000)
        for message in bob.say(f"n{second}"):
            transition = alice.session.handle(MessageArrived(message, HASH), now_ms=alice.now_ms)
            writes += sum(type(write).__name__ == "PutContact" for write in transition.writes)
            alice.perform(transition)
    assert writes == 2


def test_typing_ends_with_what_was_typed() -> None:
    alice, bob = friends()
    sent = bob.perform(bob.session.handle(TypeNow(active=True), now_ms=NOW))
    alice.hear(*sent)
    assert alice.session.typing_now() == (bob.identity.participant_id,)
    alice.hear(*bob.say("done"))
    assert alice.session.typing_now() == ()
    assert TypingNoted() in alice.notes


def test_nothing_is_told_of_presence_or_typing_before_both_want_it() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    sent = alice.ask(bob.link())
    assert [m.ephemeral for m in sent] == [None, None], "our keys and the request"
    assert alice.perform(alice.session.handle(TypeNow(active=True), now_ms=NOW)) == []
    bob.hear(*sent)
    for body in (Presence(answer_wanted=True),):
        part = EphemeralPart(content=encode_ephemeral(body))
        assert bob.hear(seal_from(alice, bob, part)) == []
    assert bob.counters["pair.not_accepted"] == 1
    assert bob.session.record.last_seen_ms is None


# --- how far an own message came ------------------------------------------------------------------


def test_saved_sent_delivered_and_never_back() -> None:
    alice, bob = friends()
    transition = alice.session.handle(Say(Text(text="hi")), now_ms=NOW)
    assert transition.message_id is not None
    out = alice.perform(transition)
    assert alice.delivery("hi") is DeliveryState.SAVED
    ids = [transition.message_id]
    alice.perform(
        alice.session.handle(
            CopiesAccepted(message_ids=tuple(ids), peers=0, waku_hash=HASH), now_ms=NOW
        )
    )
    assert alice.delivery("hi") is DeliveryState.SAVED
    alice.perform(
        alice.session.handle(
            CopiesAccepted(message_ids=tuple(ids), peers=1, waku_hash=HASH), now_ms=NOW
        )
    )
    assert alice.delivery("hi") is DeliveryState.SENT
    exchange(alice, bob, out)
    assert alice.delivery("hi") is DeliveryState.HELD
    alice.perform(
        alice.session.handle(
            CopiesAccepted(message_ids=tuple(ids), peers=1, waku_hash=HASH), now_ms=NOW
        )
    )
    assert alice.delivery("hi") is DeliveryState.HELD


@pytest.mark.slow
def test_what_nobody_fetched_for_a_month_has_failed_and_can_be_sent_again() -> None:
    alice, bob = friends()
    said = alice.session.handle(Say(Text(text="hello?")), now_ms=NOW)
    alice.perform(said)
    assert said.message_id is not None
    with pytest.raises(LocalProtocolError):
        alice.session.handle(ResendRequested(message_id=MessageId("nonsense")), now_ms=NOW)
    deadline = alice.session.next_deadline()
    while deadline is not None and alice.delivery("hello?") is not DeliveryState.FAILED:
        assert deadline < NOW + 40 * DAY_MS, "looking so rarely, short waits count for less"
        alice.now_ms = UnixMs(max(deadline, alice.now_ms + 600_000))
        alice.advance()
        deadline = alice.session.next_deadline()
    (row,) = (row for row in alice.rows() if row.record.text == "hello?")
    assert row.delivery is not None
    assert row.delivery.failure == FailureReason.NOT_REACHED
    alice.restart()
    out = alice.perform(
        alice.session.handle(ResendRequested(message_id=said.message_id), now_ms=alice.now_ms)
    )
    assert alice.delivery("hello?") is DeliveryState.SAVED
    bob.now_ms = alice.now_ms
    exchange(alice, bob, out)
    live(alice, bob, 5)
    assert bob.texts() == ["hello?"]
    assert alice.delivery("hello?") is DeliveryState.HELD


def test_bodies_that_left_memory_are_read_and_needed_ones_are_sent() -> None:
    alice, bob = friends()
    big = "x" * 3_000
    for number in range(400):
        alice.say(f"{number} {big}")  # More than is remembered; all copies are lost.
    alice.restart()
    live(alice, bob, 60)
    assert [text.split()[0] for text in bob.texts()] == [str(n) for n in range(400)]
    assert alice.session.channel.node.snapshot().records == ()


def test_a_start_with_few_records_in_memory_loses_none_of_the_others() -> None:
    config = MvdsConfig(load_records=10, seen_again_ms=4_000)
    alice, bob = PairPerson("Alice", config=config), PairPerson("Bob")
    exchange(alice, bob, alice.ask(bob.link()))
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=NOW)))
    for number in range(120):
        alice.now_ms = UnixMs(NOW + number)
        alice.say(f"n{number}")
    alice.restart()
    assert len(alice.session.channel.node.snapshot().records) < 120
    live(alice, bob, 120)
    assert bob.texts() == [f"n{number}" for number in range(120)]
    assert {row.delivery.state for row in alice.rows() if row.delivery} == {DeliveryState.HELD}


# --- who may say what -----------------------------------------------------------------------------


def test_a_text_waits_at_its_sender_until_we_accepted() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    exchange(alice, bob, alice.ask(bob.link()))
    text = encode_content(
        Content(
            author=AuthorSequence(instance_id=InstanceId(b"m" * 16), sequence=1),
            previous_id=None,
            nonce=bytes(16),
            sent_ms=NOW,
            body=Text(text="buy this"),
            lamport_timestamp=NOW,
        )
    )
    message = MvdsMessage(alice.session.channel.wire.group_id, NOW // 1000, text)
    payload = encode_payload(Payload(messages=(message,)))
    assert bob.hear(seal_from(alice, bob, MvdsPart(payload=payload))) == [], "not acknowledged"
    assert bob.texts() == []
    assert bob.counters["pair.before_agreeing"] == 1
    assert state_of(bob) is ContactState.ASKING
    bob.perform(bob.session.handle(AcceptContact(), now_ms=NOW))
    assert bob.hear(seal_from(alice, bob, MvdsPart(payload=payload))) != []
    assert bob.texts() == ["buy this"]


def test_before_we_agreed_nobody_makes_us_keep_much() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    exchange(alice, bob, alice.ask(bob.link()))
    group_id = alice.session.channel.wire.group_id
    for number in range(200):
        request = encode_content(
            Content(
                author=AuthorSequence(instance_id=InstanceId(b"m" * 16), sequence=number + 1),
                previous_id=MessageId("before") if number else None,
                nonce=number.to_bytes(16, "big"),
                sent_ms=NOW,
                body=ContactRequest(name="Alice", picture=b"", round=1),
                lamport_timestamp=NOW,
            )
        )
        message = MvdsMessage(group_id, NOW // 1000, request)
        payload = encode_payload(Payload(messages=(message,)))
        bob.hear(seal_from(alice, bob, MvdsPart(payload=payload)))
    state = bob.store.mvds_state(bob.session.record.conversation_id, limit=10)
    assert len(state.held) == MOST_BEFORE_AGREEING
    assert bob.counters["pair.before_agreeing"] == 200 + 1 - MOST_BEFORE_AGREEING


def test_nobody_accepts_in_our_place() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    exchange(alice, bob, alice.ask(bob.link()))
    exchange(bob, alice, bob.perform(bob.session.handle(DeclineContact(), now_ms=NOW)))
    assert (state_of(alice), state_of(bob)) == (ContactState.DECLINED, ContactState.DECLINED)
    lie = structs.replace(alice.session.agreement, state=ContactState.ASKING)
    alice.believe(lie)
    exchange(alice, bob, alice.perform(alice.session.handle(AcceptContact(), now_ms=NOW)))
    assert (state_of(alice), state_of(bob)) == (ContactState.DECLINED, ContactState.DECLINED)
    assert bob.counters["pair.known_statement"] == 1
    assert bob.counters["pair.not_accepted"] == 1, "a sign of life"


def test_a_blocked_person_is_not_answered_and_heard_again_after() -> None:
    alice, bob = friends()
    bob.perform(bob.session.handle(SetBlocked(blocked=True), now_ms=NOW))
    out = alice.say("hello?")
    assert bob.hear(*out) == []
    assert bob.counters["pair.blocked"] == 1
    bob.restart()
    assert bob.advance(by_ms=120_000) == []
    assert state_of(bob) is ContactState.BLOCKED
    bob.perform(bob.session.handle(SetBlocked(blocked=False), now_ms=bob.now_ms))
    assert state_of(bob) is ContactState.ACCEPTED
    alice.now_ms = bob.now_ms
    live(alice, bob, 60)
    assert bob.texts() == ["hello?"]
    assert alice.delivery("hello?") is DeliveryState.HELD


def test_a_crash_between_the_record_and_the_request_asks_at_the_next_start() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    contact = alice.book.asked(parse_contact_link(bob.link(), now_ms=NOW))
    alice.store.apply(alice.book.beginning(contact))
    alice.restart()
    exchange(alice, bob, alice.advance())
    assert bob.session.record.name == "Alice"
    assert state_of(bob) is ContactState.ASKING
    assert alice.advance(by_ms=1_000) == []


def test_a_request_travels_on_the_inbox_until_it_is_answered_and_whole_each_time() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    alice.book.own = replace(alice.book.own, picture=b"\x89PNG\r\n\x1a\n" + bytes(20_000))
    inbox = inbox_topic_of(bob.identity.public_key)
    lost = alice.ask(bob.link())
    for _ in range(20):
        lost = alice.advance(by_ms=1_000) or lost
    assert {message.content_topic for message in lost} == {inbox}
    bob.now_ms = alice.now_ms
    exchange(alice, bob, lost)
    assert len(bob.session.record.picture) > 20_000
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms)))
    assert {message.content_topic for message in alice.say("hi")} == {bob.session.content_topic}


def test_a_request_after_a_friendship_ended_goes_alone_whatever_else_waits() -> None:
    alice, bob = friends()
    for number in range(200):
        alice.now_ms = UnixMs(NOW + number * 1_000)
        alice.say(f"{number} {'x' * 2_000}")  # All copies are lost.
    bob.now_ms = alice.now_ms
    exchange(bob, alice, bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms)))
    assert state_of(alice) is ContactState.DECLINED
    inbox = inbox_topic_of(bob.identity.public_key)
    sent = alice.perform(alice.session.handle(AskToTalk(), now_ms=alice.now_ms))
    for _ in range(30):
        sent += alice.advance(by_ms=1_000)
    to_inbox = [message for message in sent if message.content_topic == inbox]
    assert to_inbox
    assert all(len(message.payload) < 1024 for message in to_inbox)
    opened = open_from_anybody(bob.identity, to_inbox[-1].payload)
    assert request_in(bob.identity, opened).name == "Alice"
    bob.now_ms = alice.now_ms
    bob.hear(*to_inbox)
    assert bob.texts() == []
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms)))
    live(alice, bob, 120)
    assert len(bob.texts()) == 200


def test_a_name_changed_while_the_request_waits_is_told_after_the_answer() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    asked = alice.ask(bob.link())
    alice.book.own = replace(alice.book.own, name="Alicia")
    assert alice.perform(alice.session.handle(ProfileChanged(), now_ms=NOW)) == []
    exchange(alice, bob, asked)
    assert bob.session.record.name == "Alice"
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=NOW)))
    live(alice, bob, 10)
    assert bob.session.record.name == "Alicia"


def test_who_was_not_answered_can_ask_again_after_a_day_and_not_before() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    exchange(alice, bob, alice.ask(bob.link()))
    assert alice.perform(alice.session.handle(AskToTalk(), now_ms=alice.now_ms)) == []
    alice.now_ms = bob.now_ms = UnixMs(NOW + DAY_MS + 60_000)
    exchange(alice, bob, alice.perform(alice.session.handle(AskToTalk(), now_ms=alice.now_ms)))
    assert [row.record.kind for row in bob.rows()] == ["asked", "asked"]


# --- order ----------------------------------------------------------------------------------------


def test_out_of_order_arrival_waits_is_shown_after_a_minute_and_heals() -> None:
    alice, bob = friends()
    first, second, third = (alice.say(text) for text in ("one", "two", "three"))
    bob.hear(*second, *third)
    assert bob.texts() == []
    assert bob.session.gap() is None
    bob.notes.clear()
    bob.restart()
    bob.advance(by_ms=60_000)
    assert bob.texts(waiting=True) == ["two", "three"]
    gap = bob.session.gap()
    assert gap is not None
    assert (gap.missing, gap.waiting) == (1, 2)
    bob.notes.clear()
    bob.hear(*first)
    assert bob.texts() == ["one", "two", "three"]
    assert bob.session.gap() is None
    assert [type(n) for n in bob.notes if isinstance(n, RowAdded | RowChanged)] == [
        RowAdded,
        RowChanged,
        RowChanged,
    ]


def test_a_clock_far_ahead_counts_as_now_and_keeps_the_order_of_its_author() -> None:
    alice, bob = friends()
    alice.now_ms = UnixMs(NOW + DAY_MS)
    for text in ("one", "two", "three"):
        bob.hear(*alice.say(text))
    assert bob.texts() == ["one", "two", "three"]
    lamports = [row.record.position.lamport_timestamp for row in bob.rows()]
    assert max(lamports) < NOW + 60_000
    bob.hear(*bob.say("mine"))
    assert bob.texts()[-1] == "mine"
    assert bob.counters["pair.clock_ahead"] == 3
