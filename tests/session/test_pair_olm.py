"""A pair that speaks Olm, through session and database: what is sent, survives and is refused.

Keys that were used are read from what was sent (``olm_keys``), so that a key that encrypts twice is
noticed whatever the state says of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest

from engine.codec.content import encode_content
from engine.codec.mvds import encode_payload
from engine.codec.pair import OLM_VERSION, decode_any_pair_envelope
from engine.core.contacts import ContactState
from engine.core.content import Content, Text
from engine.core.ids import AuthorSequence, DeliveryState, InstanceId, UnixMs
from engine.core.mvds.vocabulary import MvdsMessage, Payload
from engine.core.sds.inputs import ConnectivityChanged
from engine.core.waku import WakuMessage
from engine.crypto.pair import KeysPart, MvdsPart, PairSeal, open_from_anybody
from engine.session.inputs import AcceptContact, MessageArrived, TypeNow
from engine.session.pair.ratchet import ROTATE_EVERY_MS
from engine.session.transitions import SessionTransition
from tests.session.olm_keys import key_used
from tests.session.pair_stage import HASH, NOW, PairPerson, exchange, friends, live, with_payload

LOSS, DOUBLED, LATE, DEATH = 0.3, 0.2, 0.3, 0.2


def seal_of(one: PairPerson, other: PairPerson) -> PairSeal:
    return PairSeal(
        one.identity,
        peer_public_key=other.identity.public_key,
        peer_encryption_key=other.identity.encryption_public_key,
    )


def is_olm(message: WakuMessage) -> bool:
    return decode_any_pair_envelope(message.payload).version == OLM_VERSION


def are_keys(message: WakuMessage, receiver: PairPerson) -> bool:
    if is_olm(message):
        return False
    return isinstance(open_from_anybody(receiver.identity, message.payload).body, KeysPart)


def sealed_in(message: WakuMessage) -> bytes:
    return decode_any_pair_envelope(message.payload).sealed


# --- what is sent -----------------------------------------------------------------------------


def test_from_the_answer_on_nothing_is_under_the_long_term_keys() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    keys, request = alice.ask(bob.link())
    assert are_keys(keys, bob)
    assert not is_olm(request), "a stranger has no session"
    exchange(alice, bob, [keys, request])
    keys, *answer = bob.perform(bob.session.handle(AcceptContact(), now_ms=NOW))
    assert are_keys(keys, alice)
    assert all(map(is_olm, answer))
    exchange(bob, alice, [keys, *answer])
    exchange(alice, bob, alice.advance())
    for one, other in ((alice, bob), (bob, alice)):
        assert one.session.forward_secret_since == NOW
        (said,) = one.say(f"a word of {one.name}")
        typing = one.perform(one.session.handle(TypeNow(active=True), now_ms=NOW))
        for message in (said, *typing):
            assert is_olm(message)
        exchange(one, other, [said, *typing])
    assert alice.texts() == bob.texts() == ["a word of Alice", "a word of Bob"]


def test_the_same_words_are_encrypted_afresh_and_a_copy_is_dropped_after_a_restart_too() -> None:
    alice, bob = friends()
    (first,) = alice.say("once")
    (again,) = alice.advance(by_ms=10_000)
    assert key_used(sealed_in(first)) != key_used(sealed_in(again))
    bob.hear(again, first)
    bob.restart()
    bob.hear(first, first, again)
    assert bob.texts() == ["once"]
    assert bob.counters.snapshot()["pair.repeated"] == 2
    assert bob.counters.snapshot()["pair.replayed"] == 1, "it is remembered meanwhile"


def test_who_has_an_older_program_is_spoken_to_as_before_and_told_our_keys_less_and_less() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob", olm=False)
    exchange(alice, bob, alice.ask(bob.link()))
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=NOW)))
    told = 0
    for number in range(60):
        out = alice.say(f"{number}") + alice.advance(by_ms=1_000)
        told += sum(are_keys(message, bob) for message in out)
        bob.now_ms = alice.now_ms
        exchange(alice, bob, out)
    assert len(bob.texts()) == 60
    assert 3 <= told <= 6
    assert alice.session.forward_secret_since is None
    bob.olm = True
    bob.restart()
    exchange(bob, alice, bob.say("a new program"))
    exchange(alice, bob, alice.say("at last"))
    for person in (alice, bob):
        assert person.session.forward_secret_since is not None
        (said,) = person.say("secret")
        assert is_olm(said)


def test_a_thief_of_the_long_term_keys_can_not_go_back_to_the_old_seal() -> None:
    alice, bob = friends()
    (like,) = bob.say("like this")
    content = Content(
        author=AuthorSequence(instance_id=InstanceId(b"T" * 16), sequence=1),
        previous_id=None,
        nonce=bytes(16),
        sent_ms=NOW,
        body=Text(text="stolen"),
        lamport_timestamp=NOW,
    )
    message = MvdsMessage(bob.session.channel.wire.group_id, 1, encode_content(content))
    part = MvdsPart(payload=encode_payload(Payload(messages=(message,))))
    stolen = with_payload(like, seal_of(bob, alice).seal(part, signed_ms=NOW))
    assert alice.hear(stolen) == []
    assert alice.counters.snapshot()["pair.below_olm"] == 1
    assert alice.texts() == []


def test_who_went_back_to_a_program_without_olm_is_told_from_what_was_recorded() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob", olm=False)
    exchange(alice, bob, alice.ask(bob.link()))
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=NOW)))
    (recorded,) = bob.say("of before")
    bob.olm = True
    bob.restart()
    alice.now_ms = bob.now_ms = UnixMs(NOW + 60_000)
    exchange(bob, alice, bob.say("a new program"))
    exchange(alice, bob, alice.say("at last"))
    exchange(bob, alice, bob.say("by Olm"))
    assert alice.session.forward_secret_since is not None
    below = [alice.session.below_olm_ms]
    alice.hear(recorded)
    below.append(alice.session.below_olm_ms)
    alice.now_ms = bob.now_ms = UnixMs(NOW + 120_000)
    bob.olm = False
    bob.restart()
    exchange(bob, alice, bob.say("the old one again"))
    below.append(alice.session.below_olm_ms)
    assert below == [None, None, alice.now_ms]
    assert "the old one again" not in alice.texts()
    bob.olm = True
    bob.restart()
    alice.now_ms = bob.now_ms = UnixMs(NOW + 180_000)
    exchange(bob, alice, bob.say("and back"))
    assert alice.session.below_olm_ms is None
    exchange(bob, alice, bob.advance(by_ms=60_000))
    assert {"the old one again", "and back"} <= set(alice.texts())


def test_keys_have_a_successor_after_a_week_that_the_other_learns_of() -> None:
    alice, bob = friends()
    before = alice.session.channel.wire.sealing.state
    later = UnixMs(NOW + ROTATE_EVERY_MS)
    alice.now_ms = bob.now_ms = later
    exchange(alice, bob, alice.say("a week later"))
    exchange(bob, alice, bob.say("indeed"))
    after, theirs = alice.session.channel.wire.sealing.state, bob.session.channel.wire.sealing.state
    assert before is not None
    assert after is not None
    assert theirs is not None
    assert after.ours.number > before.ours.number
    assert after.ours.identity_key == before.ours.identity_key
    assert theirs.theirs is not None
    assert theirs.theirs.fallback_key == after.ours.fallback_key != before.ours.fallback_key
    assert after.told == after.ours.number
    assert sum(are_keys(message, bob) for message in alice.say("and again")) == 0


# --- what survives ----------------------------------------------------------------------------


def test_a_profile_from_a_backup_comes_back_and_uses_no_key_again() -> None:
    alice, bob = friends()
    sent = alice.say("before")
    exchange(alice, bob, sent)
    alice.instance_id = InstanceId(b"from a backup...")
    alice.restart()
    alice.perform(alice.session.handle(ConnectivityChanged(online=False), now_ms=NOW))
    sent += (
        out := alice.perform(alice.session.handle(ConnectivityChanged(online=True), now_ms=NOW))
    )
    exchange(alice, bob, out)
    for one, other in ((alice, bob), (bob, alice)):
        sent += (out := one.say(f"after, {one.name}"))
        exchange(one, other, out)
        live(alice, bob, 2)
    assert bob.texts() == ["before", "after, Alice", "after, Bob"]
    assert set(alice.texts()) == set(bob.texts())
    used = [key_used(sealed_in(message)) for message in sent if is_held(message)]
    assert len(set(used)) == len(used)
    assert alice.session.forward_secret_since is not None


def test_who_lost_all_and_speaks_without_olm_is_told_our_keys_and_heard_again() -> None:
    """Removed and added again: the other still has the old session."""
    alice, bob = friends()
    alice.remove()
    exchange(alice, bob, alice.ask(bob.link()))
    assert alice.session.record.state is ContactState.ACCEPTED
    for one, other in ((alice, bob), (bob, alice)):
        (said,) = one.say(f"again, {one.name}")
        assert is_olm(said)
        exchange(one, other, [said])
    assert alice.texts() == bob.texts() == ["again, Alice", "again, Bob"]


@dataclass(slots=True)
class BadTime:
    """Both say ``count`` texts over a bad network and die now and then; what was sent is kept."""

    count: int
    random: Random
    death: float = DEATH
    people: tuple[PairPerson, PairPerson] = field(default_factory=friends)
    flight: list[tuple[PairPerson, WakuMessage]] = field(default_factory=list)
    sent: list[WakuMessage] = field(default_factory=list)
    deaths: int = 0

    def run(self, *, at_once: int = 8) -> None:
        said = dict.fromkeys((0, 1), 0)
        for step in range(200 * self.count):
            for who, one in enumerate(self.people):
                one.now_ms = UnixMs(one.now_ms + 1_000)
                for _ in range(min(at_once, self.count - said[who])):
                    text = f"{one.name} {said[who]}"
                    said[who] += self._live(one, partial(one.saying, text))
                self._live(one, one.advancing)
            self._deliver()
            if step % 8 == 0 and all(n == self.count for n in said.values()) and self._settled():
                return

    def _settled(self) -> bool:
        return not any(one.session.channel.awaits for one in self.people)

    def _deliver(self) -> None:
        self.random.shuffle(self.flight)
        arriving, self.flight = self.flight, []
        for to, message in arriving:
            if self.random.random() < LOSS:
                continue
            if self.random.random() < LATE:
                self.flight.append((to, message))
                continue
            if self.random.random() < DOUBLED:
                self.flight.append((to, message))
            arrived = MessageArrived(message, HASH)
            self._live(to, partial(to.session.handle, arrived, now_ms=to.now_ms))

    def _live(self, one: PairPerson, act: Callable[[], SessionTransition]) -> bool:
        """Whether it is on disk."""
        transition = act()
        if self.random.random() < self.death:
            self._die(one)
            return False
        out = one.perform(transition)
        if self.random.random() < self.death:
            self._die(one)
            return True
        self.sent += out
        ann, bob = self.people
        self.flight += [(bob if one is ann else ann, message) for message in out]
        return True

    def _die(self, one: PairPerson) -> None:
        self.deaths += 1
        one.restart()

    def check(self) -> None:
        for one, other in (self.people, self.people[::-1]):
            own = [f"{one.name} {number}" for number in range(self.count)]
            assert [text for text, _ in said_in(other) if text.startswith(one.name)] == own
            states = {text: state for text, state in said_in(one) if text in set(own[-5:])}
            assert set(states.values()) == {DeliveryState.HELD}
        used = [key_used(sealed_in(message)) for message in self.sent if is_held(message)]
        assert len(set(used)) == len(used), "a key encrypted twice"


def said_in(person: PairPerson) -> list[tuple[str, DeliveryState | None]]:
    """All texts, page by page, oldest first."""
    page = person.store.latest_page(person.conversation_id, limit=1_000)
    rows = list(page.messages)
    while page.has_older:
        before = page.messages[0].record.position
        page = person.store.page_before(person.conversation_id, before, limit=1_000)
        rows[:0] = page.messages
    return [
        (row.record.text, row.delivery.state if row.delivery else None)
        for row in rows
        if row.record.kind == "text"
    ]


def is_held(message: WakuMessage) -> bool:
    return is_olm(message) and not message.ephemeral


@pytest.mark.slow
def test_nothing_is_lost_and_no_key_used_twice_whenever_they_die() -> None:
    bad = BadTime(60, Random(24))
    bad.run(at_once=2)
    bad.check()
    assert bad.deaths >= 120


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_ten_thousand_each_way_through_session_and_database(seed: int) -> None:
    bad = BadTime(10_000, Random(seed), death=0.01)
    bad.run(at_once=40)
    bad.check()


# --- what is refused --------------------------------------------------------------------------


def test_a_changed_bit_is_refused_and_leads_to_no_new_session() -> None:
    alice, bob = friends()
    (message,) = bob.say("hi")
    before = alice.session.channel.wire.sealing.state
    for flip in range(0, 8 * len(message.payload), 61):
        payload = bytearray(message.payload)
        payload[flip // 8] ^= 1 << flip % 8
        alice.hear(with_payload(message, bytes(payload)))
    assert alice.session.channel.wire.sealing.state is before
    alice.hear(message)
    assert alice.texts() == ["hi"]


def test_what_one_said_is_not_taken_when_it_is_sent_back() -> None:
    alice, _ = friends()
    sent = alice.say("mine")
    typing = alice.perform(alice.session.handle(TypeNow(active=True), now_ms=NOW))
    alice.hear(*sent, *typing)
    assert alice.counters.snapshot()["pair.bad_proof"] == 2
    assert alice.session.typing_now() == ()
