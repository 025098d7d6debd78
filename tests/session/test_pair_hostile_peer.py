"""Somebody with a good key and bad intentions: what they can make of a one-to-one conversation."""

from engine.codec.content import encode_content
from engine.codec.mvds import decode_payload, encode_payload
from engine.core.content import Body, ContactRequest, Content, Text
from engine.core.ids import AuthorSequence, DeliveryState, InstanceId, MessageId, UnixMs
from engine.core.mvds.vocabulary import KeepMessage, MvdsMessage, Payload
from engine.core.ports import ApplyMvds
from engine.core.waku import WakuMessage
from engine.crypto.pair import MvdsPart, PairSeal
from engine.session.inputs import CopiesAccepted, MessageArrived, Say
from engine.session.pair.channel import MOST_BEFORE_AGREEING
from engine.session.pair.saved import OwnProfile
from engine.session.transitions import Publish, RowAdded
from tests.session.pair_stage import HASH, NOW, PairPerson, exchange, friends, with_payload

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(20_000)
YEAR_MS = 365 * 24 * 3_600_000
FOREIGN = InstanceId(b"H" * 16)


def seal_of(one: PairPerson, other: PairPerson) -> PairSeal:
    return PairSeal(
        one.identity,
        peer_public_key=other.identity.public_key,
        peer_encryption_key=other.identity.encryption_public_key,
    )


def forged(
    one: PairPerson, other: PairPerson, like: WakuMessage, messages: tuple[MvdsMessage, ...]
) -> WakuMessage:
    """What ``one`` can make ``other`` open, whatever is in it."""
    part = MvdsPart(payload=encode_payload(Payload(messages=messages)))
    return with_payload(like, seal_of(one, other).seal(part, signed_ms=one.now_ms))


def said(one: PairPerson, body: Body, sequence: int, *, sent_ms: int = NOW) -> MvdsMessage:
    content = Content(
        author=AuthorSequence(instance_id=FOREIGN, sequence=sequence),
        previous_id=None if sequence == 1 else MessageId("before"),
        nonce=sequence.to_bytes(16, "big"),
        sent_ms=UnixMs(sent_ms),
        body=body,
        lamport_timestamp=NOW + sequence,
    )
    return MvdsMessage(one.session.channel.wire.group_id, 1, encode_content(content))


def request(to: PairPerson, name: str = "B", *, later: int = 0) -> ContactRequest:
    """Of the round that ``to`` is in, or of a later one."""
    return ContactRequest(name=name, round=to.session.agreement.round + later)


def messages_in(receiver: PairPerson, sender: PairPerson, sent: WakuMessage) -> Payload:
    opened = seal_of(receiver, sender).open(sent.payload)
    assert isinstance(opened.body, MvdsPart)
    return decode_payload(opened.body.payload)[0]


def test_what_we_said_ourselves_does_not_become_theirs_when_they_send_it_back() -> None:
    alice, bob = friends(olm=False)
    sent = alice.say("I said this")
    (message,) = messages_in(bob, alice, sent[0]).messages
    exchange(alice, bob, sent)
    (before,) = (row for row in alice.rows() if row.record.text == "I said this")
    assert before.delivery is not None
    assert before.delivery.state is DeliveryState.HELD
    alice.hear(forged(bob, alice, sent[0], (message,)))
    alice.restart()
    (after,) = (row for row in alice.rows() if row.record.text == "I said this")
    assert after == before
    assert after.record.is_own
    assert alice.counters.snapshot()["pair.own_returned"] == 1


def test_many_small_requests_are_answered_once_and_not_with_a_picture_each() -> None:
    alice, bob = friends(olm=False)
    alice.book.own = OwnProfile(name="Alice", picture=PICTURE)
    like = bob.say("like this")[0]
    flood = forged(
        bob, alice, like, tuple(said(bob, request(alice, later=n), n) for n in range(1, 300))
    )
    transition = alice.session.handle(MessageArrived(flood, HASH), now_ms=alice.now_ms)
    kept = [
        mvds
        for write in transition.writes
        if isinstance(write, ApplyMvds)
        for mvds in write.writes
        if isinstance(mvds, KeepMessage)
    ]
    assert len(kept) == 1
    out = sum(len(s.message.payload) for s in transition.sends if isinstance(s, Publish))
    assert out < 2 * len(PICTURE) + len(flood.payload)


def test_a_request_after_the_answer_was_acknowledged_is_answered_again() -> None:
    alice, bob = friends(olm=False)
    like = bob.say("like this")[0]
    for sequence in (1, 2):
        out = alice.hear(forged(bob, alice, like, (said(bob, request(alice), sequence),)))
        exchange(alice, bob, out)
    kinds = [row.record.kind for row in bob.rows()]
    assert kinds.count("accepted") == 1, "it is nothing new"
    assert bob.counters.snapshot()["pair.known_statement"] == 2


def test_a_stranger_is_one_row_and_one_notification_however_often_they_ask() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    first = alice.ask(bob.link())
    exchange(alice, bob, first)
    flood = tuple(said(alice, request(bob, f"A{n}", later=n), n) for n in range(1, 200))
    bob.hear(forged(alice, bob, first[0], flood))
    assert [row.record.kind for row in bob.rows()] == ["asked"]
    assert sum(isinstance(note, RowAdded) for note in bob.notes) == 1
    assert bob.counters.snapshot()["pair.asked_again"] == MOST_BEFORE_AGREEING - 1
    bob.restart()
    bob.hear(forged(alice, bob, first[0], (said(alice, request(bob, later=900), 900),)))
    assert [row.record.kind for row in bob.rows()] == ["asked"]


def test_a_message_from_the_far_future_is_of_now() -> None:
    alice, bob = friends(olm=False)
    like = bob.say("like this")[0]
    for sequence, sent_ms in ((1, 2**53 - 1), (2, NOW + YEAR_MS), (3, NOW - YEAR_MS)):
        text = said(bob, Text(text=f"{sequence}"), sequence, sent_ms=sent_ms)
        alice.hear(forged(bob, alice, like, (text,)))
    times = [row.record.sent_ms for row in alice.rows() if row.record.text in {"1", "2", "3"}]
    assert times == [NOW, NOW, NOW - YEAR_MS]


def test_a_receipt_that_comes_late_does_not_take_delivered_back() -> None:
    alice, bob = friends(olm=False)
    transition = alice.session.handle(Say(Text(text="hi")), now_ms=alice.now_ms)
    (publish,) = (send for send in transition.sends if isinstance(send, Publish))
    exchange(alice, bob, alice.perform(transition))
    assert alice.delivery("hi") is DeliveryState.HELD
    alice.restart()
    alice.perform(
        alice.session.handle(
            CopiesAccepted(message_ids=tuple(publish.message_ids), peers=1, waku_hash=HASH),
            now_ms=alice.now_ms,
        )
    )
    assert alice.delivery("hi") is DeliveryState.HELD
