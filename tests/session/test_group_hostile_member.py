"""A member who has the key and signs well, and means harm; and somebody who only repeats bytes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import pytest
from msgspec.structs import replace

from engine.codec.content import encode_content, encode_ephemeral
from engine.codec.envelope import decode_envelope, decode_header, encode_envelope
from engine.codec.message_id import message_id_in
from engine.codec.sds import decode_message, encode_message
from engine.codec.waku import decode_waku_message
from engine.core.content import NONCE_BYTES, Content, Leave, Text, Typing
from engine.core.ids import AuthorSequence, ChannelId, InstanceId, MessageId, UnixMs, WakuHash
from engine.core.invite import group_id_of
from engine.core.sds.inputs import DeadlineReached
from engine.core.sds.vocabulary import HistoryEntry, Message, SendPurpose
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.sealed import MAX_SIGNED_PART_BYTES, SealedGroup
from engine.session.group.wire import EPHEMERAL_MAX_AHEAD_MS
from engine.session.inputs import MessageArrived
from engine.session.transitions import LoadForRepair, Publish, RawLoaded, SessionTransition
from engine.sim.session_participant import SessionParticipant
from tests.forging import sealed_group_of, signed_message, signed_repair

NOW = UnixMs(1_800_000_000_000)
CHANNEL = ChannelId("0")
INSTANCE = InstanceId(b"m" * 16)


@dataclass
class Mallory:
    """Signs and seals whatever it likes, as a member of Alice's group."""

    alice: SessionParticipant = field(
        default_factory=lambda: SessionParticipant("Alice", seed=11, now_ms=NOW)
    )
    me: SessionParticipant = field(
        default_factory=lambda: SessionParticipant("Mallory", seed=11, now_ms=NOW)
    )
    sequence: int = 100

    def __post_init__(self) -> None:
        self.alice.create_group("Tide", now_ms=NOW)
        for sent in self.me.join_group(self.alice.invite_link(), now_ms=NOW):
            self.alice.receive(sent.payload, now_ms=NOW)
        self.conversation_id = self.alice.store.groups()[0].conversation_id
        self.group_id = group_id_of(self.conversation_id)

    @property
    def identity(self) -> Identity:
        return self.me.identity

    @property
    def group(self) -> SealedGroup:
        return sealed_group_of(self.me.store.groups()[0])

    def content(
        self, text: str, lamport: int, history: Sequence[HistoryEntry] = (), **changes: object
    ) -> Message:
        self.sequence += 1
        content = encode_content(
            Content(
                author=AuthorSequence(instance_id=INSTANCE, sequence=self.sequence),
                previous_id=None if self.sequence == 1 else MessageId("before"),
                nonce=bytes(NONCE_BYTES),
                sent_ms=NOW,
                body=Text(text=text),
            )
        )
        message = Message(
            sender_id=self.identity.participant_id,
            message_id=message_id_in(self.group_id)(
                self.identity.participant_id,
                CHANNEL,
                lamport,
                [entry.message_id for entry in history],
                content,
            ),
            channel_id=CHANNEL,
            lamport_timestamp=lamport,
            causal_history=tuple(history),
            content=content,
        )
        return replace(message, **changes)

    def sync(self, lamport: int, wanted: Sequence[MessageId]) -> Message:
        return Message(
            sender_id=self.identity.participant_id,
            message_id=MessageId(f"sync-{lamport}"),
            channel_id=CHANNEL,
            lamport_timestamp=lamport,
            repair_request=tuple(HistoryEntry(message_id=one) for one in wanted),
        )

    def sealed(self, message: Message, *, signed_ms: int = NOW) -> bytes:
        return self.sealed_bytes(encode_message(message), signed_ms=signed_ms)

    def sealed_bytes(self, sds_bytes: bytes, *, signed_ms: int = NOW) -> bytes:
        signed = signed_message(self.group, self.identity, sds_bytes, signed_ms=UnixMs(signed_ms))
        return self.group.seal(signed, random_bytes=os.urandom)

    def under_the_header_of(self, payload: bytes, message: Message) -> bytes:
        """Another seal with somebody's salt: a member has the epoch key."""
        salt = decode_header(decode_envelope(payload)[0]).salt
        signed = self.group.sign(self.identity, encode_message(message), None, NOW)
        return self.group.seal(signed, random_bytes=lambda _: salt)

    def hand_over(
        self, payload: bytes, *, at_ms: int = NOW, stored: bool = False
    ) -> SessionTransition:
        session = self.alice.session
        message = WakuMessage(
            payload=payload, content_topic=session.content_topic, timestamp_ns=at_ms
        )
        now_ms, waku_hash = UnixMs(at_ms), WakuHash(sha256(payload).digest())
        transition = session.handle(
            MessageArrived(message, waku_hash, stored=stored), now_ms=now_ms
        )
        self.alice.perform(transition)
        return transition

    def tell(self, message: Message, *, at_ms: int = NOW) -> SessionTransition:
        return self.hand_over(self.sealed(message, signed_ms=at_ms), at_ms=at_ms)

    def logged(self) -> set[MessageId]:
        log = self.alice.session.channel.snapshot().log
        return {entry.position.message_id for entry in log}


def live(someone: SessionParticipant, start_ms: int, end_ms: int) -> list[SessionTransition]:
    """Everything that falls due in a while; every step must move time on or do something."""
    done: list[SessionTransition] = []
    now_ms, idle = start_ms, 0
    while (deadline := someone.session.next_deadline()) is not None and deadline <= end_ms:
        idle = idle + 1 if deadline <= now_ms else 0
        assert idle < 100, "it spins"
        now_ms = max(now_ms, deadline)
        transition = someone.session.handle(DeadlineReached(), now_ms=UnixMs(now_ms))
        someone.perform(transition)
        done.append(transition)
    return done


def test_what_nobody_could_repair_is_not_taken_in() -> None:
    mallory = Mallory()
    known = next(iter(mallory.logged()))
    fat = HistoryEntry(message_id=known, retrieval_hint=bytes(64))
    message = mallory.content(
        "x" * 60_000, NOW, causal_history=(fat,) * 200, bloom_filter=bytes(60_000)
    )
    assert MAX_SIGNED_PART_BYTES < len(mallory.sealed(message)) < 150 * 1024
    mallory.tell(message)
    assert message.message_id not in mallory.logged()
    assert mallory.alice.counters["group.oversized"] == 1


def test_the_largest_message_that_is_taken_in_can_be_repaired() -> None:
    mallory = Mallory()
    message = mallory.content("x" * 60_000, NOW)
    room = MAX_SIGNED_PART_BYTES - len(encode_message(message)) - 300
    message = replace(message, bloom_filter=bytes(room))
    mallory.tell(message)
    assert message.message_id in mallory.logged()
    store, group = mallory.alice.store, mallory.alice.store.groups()[0].conversation_id
    raw = store.raw(group, message.message_id)
    assert raw is not None
    loaded = RawLoaded(load=LoadForRepair(message_id=message.message_id), raw=raw)
    (repair,) = mallory.alice.session.handle(loaded, now_ms=NOW).sends
    assert isinstance(repair, Publish)
    assert repair.purpose is SendPurpose.RETRANSMISSION


def test_bytes_that_are_sent_again_are_dropped_at_the_door() -> None:
    mallory = Mallory()
    payload = mallory.sealed(mallory.content("once", NOW))
    assert mallory.hand_over(payload).writes
    before = mallory.alice.session.channel.snapshot(), mallory.alice.session.next_deadline()
    for number in range(1, 4):
        assert mallory.hand_over(payload) == SessionTransition()
        # Bytes that the seal does not cover make no other payload of it.
        assert mallory.hand_over(payload + b"\x7a\x01" + bytes([number])) == SessionTransition()
        assert mallory.alice.counters["group.replayed"] == number
        assert mallory.alice.counters["group.not_canonical"] == number
    now = mallory.alice.session.channel.snapshot(), mallory.alice.session.next_deadline()
    assert now == before


def test_what_waits_or_was_refused_for_want_of_room_may_come_again_in_the_same_bytes() -> None:
    mallory = Mallory()
    first = mallory.content("first", NOW)
    second = mallory.content(
        "second", NOW + 1, history=(HistoryEntry(message_id=first.message_id),)
    )
    early = mallory.sealed(second)
    for _ in range(2):
        mallory.hand_over(early)
    assert mallory.alice.counters["group.replayed"] == 0
    mallory.tell(first)
    assert {first.message_id, second.message_id} <= mallory.logged()


def test_an_altered_copy_does_not_keep_the_true_one_out() -> None:
    mallory = Mallory()
    payload = mallory.sealed(mallory.content("true", NOW))
    header, _ = decode_envelope(payload)
    mallory.hand_over(encode_envelope(header, b"not the ciphertext"))
    assert mallory.alice.counters["group.bad_seal"] == 1
    mallory.hand_over(payload)
    assert len(mallory.logged()) == 3


@pytest.mark.parametrize("stored", [False, True])
def test_who_seals_something_else_under_a_header_that_was_seen_silences_nobody(
    *, stored: bool
) -> None:
    """20 of 20 of Bob's messages were refused as replayed: Mallory was faster each time."""
    mallory = Mallory()
    bob = SessionParticipant("Bob", seed=12, now_ms=NOW)
    for sent in bob.join_group(mallory.alice.invite_link(), now_ms=NOW):
        mallory.alice.receive(sent.payload, now_ms=NOW)
    before = mallory.logged()
    for number in range(20):
        (said,) = bob.say(Text(text=f"Bob {number}"), now_ms=UnixMs(NOW + number))
        genuine = decode_waku_message(said.payload).payload
        shadow = mallory.under_the_header_of(genuine, mallory.content(f"n{number}", NOW + number))
        assert decode_envelope(shadow)[0] == decode_envelope(genuine)[0]
        assert shadow != genuine
        for payload in (shadow, genuine, genuine):
            mallory.hand_over(payload, stored=stored)
    texts = {
        message.record.text
        for message in mallory.alice.store.latest_page(mallory.conversation_id, limit=100).messages
    }
    assert len(texts & {f"Bob {number}" for number in range(20)}) == 20
    assert len(mallory.logged() - before) == 40
    assert mallory.alice.counters["group.replayed"] == 20, "the second copies"


def test_what_is_hung_on_to_bobs_words_is_neither_kept_nor_passed_on() -> None:
    mallory = Mallory()
    bob = SessionParticipant("Bob", seed=12, now_ms=NOW)
    for sent in bob.join_group(mallory.alice.invite_link(), now_ms=NOW):
        mallory.alice.receive(sent.payload, now_ms=NOW)
    before = mallory.logged()
    (said,) = bob.say(Text(text="short"), now_ms=NOW)
    genuine = decode_waku_message(said.payload).payload
    group = mallory.group
    raw = group.open(genuine).raw
    grown = raw + b"\x7a\xa0\x8d\x06" + bytes(100_000)
    for part in (grown, signed_repair(group, mallory.identity, grown, signed_ms=NOW)):
        mallory.hand_over(group.seal(part, random_bytes=os.urandom))
    assert mallory.logged() == before
    assert mallory.alice.counters["group.not_canonical"] == 2
    mallory.hand_over(genuine)
    (bobs,) = mallory.logged() - before
    assert mallory.alice.store.raw(mallory.conversation_id, bobs) == raw


def test_a_member_cannot_write_its_own_sds_message_in_two_ways() -> None:
    mallory = Mallory()
    message = mallory.content("one", NOW)
    encoded = encode_message(message)
    sender = len(mallory.identity.participant_id) + 2
    for other in (
        encoded + b"\x7a\x01x",
        encoded[sender:] + encoded[:sender],
        encoded[:sender] + encoded,
        encoded[:1] + bytes([encoded[1] | 0x80, 0]) + encoded[2:],  # a longer way to write it
    ):
        assert decode_message(other) == message
        mallory.hand_over(mallory.sealed_bytes(other))
        assert message.message_id not in mallory.logged()
    assert mallory.alice.counters["group.not_canonical"] == 4
    mallory.tell(message)
    assert message.message_id in mallory.logged()


@pytest.mark.slow
def test_thousands_of_requests_cost_a_bounded_number_of_answers() -> None:
    mallory = Mallory()
    alice = mallory.alice
    own = []
    for number in range(640):
        alice.say(Text(text="x" * 1000), now_ms=UnixMs(NOW + number))
        own.append(alice.session.channel.snapshot().log[-1].position.message_id)
    answers, now_ms = 0, NOW + 60_000
    for turn in range(100):
        transitions = [
            mallory.tell(mallory.sync(now_ms + part, own[start : start + 64]), at_ms=now_ms)
            for part, start in enumerate(range(0, 640, 64))
        ]
        transitions += live(alice, now_ms, now_ms + 99)
        answers += sum(isinstance(s, LoadForRepair) for t in transitions for s in t.sends)
        now_ms = NOW + 60_000 + 100 * (turn + 1)
    assert 0 < answers <= 8 * 102, "10 seconds, 64 000 requests"


def test_a_typing_note_from_the_future_cannot_be_kept_for_then() -> None:
    mallory = Mallory()
    typing = Message(
        sender_id=mallory.identity.participant_id,
        message_id=MessageId("e"),
        channel_id=CHANNEL,
        content=encode_ephemeral(Typing(active=True)),
    )
    ahead = NOW + EPHEMERAL_MAX_AHEAD_MS + 1
    mallory.hand_over(mallory.sealed(typing, signed_ms=ahead))
    assert mallory.alice.session.typing_now() == ()
    assert mallory.alice.counters["group.ephemeral_ahead"] == 1
    mallory.hand_over(mallory.sealed(typing, signed_ms=ahead - 1))
    assert mallory.alice.session.typing_now() != ()


def test_an_absurd_time_is_never_adopted_and_a_fast_clock_is_heard_later() -> None:
    mallory = Mallory()
    absurd, fast = mallory.content("absurd", 2**53 - 1), mallory.content("fast", NOW + 600_000)
    mallory.tell(absurd)
    mallory.tell(fast)
    assert mallory.alice.session.channel.snapshot().lamport_timestamp <= NOW + 1
    live(mallory.alice, NOW, NOW + 301_000)
    assert fast.message_id in mallory.logged()
    assert absurd.message_id not in mallory.logged()
    lamport = mallory.alice.session.channel.snapshot().lamport_timestamp
    assert NOW + 600_000 <= lamport < NOW + 601_000
    deadline = mallory.alice.session.next_deadline()
    assert deadline is not None


def test_phantom_dependencies_are_bounded_and_asking_for_them_is_no_flood() -> None:
    mallory = Mallory()
    for number in range(40):
        phantoms = tuple(
            HistoryEntry(message_id=MessageId(f"phantom {number}/{n}")) for n in range(256)
        )
        mallory.tell(mallory.content(f"n{number}", NOW + number, history=phantoms))
    state = mallory.alice.session.channel.snapshot()
    assert len(state.missing) <= 1_000
    done = live(mallory.alice, NOW, NOW + 600_000)
    sends = sum(len(transition.sends) for transition in done)
    assert 0 < sends <= 2 * 600, "ten minutes"


def test_who_is_alone_with_a_gap_does_not_wake_up_to_ask_nobody() -> None:
    mallory = Mallory()
    phantom = HistoryEntry(message_id=MessageId("phantom"))
    mallory.tell(mallory.content("and gone", NOW, history=(phantom,)))
    for sent in mallory.me.say(Leave(), now_ms=UnixMs(NOW + 1)):
        mallory.alice.receive(sent.payload, now_ms=UnixMs(NOW + 1))
    assert mallory.alice.session.membership.n == 1
    assert len(mallory.alice.session.channel.snapshot().missing) == 1
    live(mallory.alice, NOW, NOW + 600_000)
    assert len(live(mallory.alice, NOW + 600_000, NOW + 1_200_000)) < 20
