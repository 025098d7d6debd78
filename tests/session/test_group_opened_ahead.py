"""What Stores gave may be opened before its turn: nothing comes of it but time saved."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.codec.waku import decode_waku_message
from engine.core.content import Text
from engine.core.ids import PubsubTopic, UnixMs, WakuHash
from engine.core.waku import WakuMessage
from engine.network.waku.message_hash import message_hash
from engine.session.group.verified_ahead import MAX_AHEAD, MAX_AHEAD_BYTES, VerifiedAhead
from engine.session.inputs import MessageArrived
from engine.sim.session_participant import SessionParticipant

NOW = UnixMs(1_800_000_000_000)
LATER = UnixMs(NOW + 86_400_000)
TOPIC = PubsubTopic("/waku/2/rs/42/0")


def hash_of(message: WakuMessage) -> WakuHash:
    return message_hash(TOPIC, message)


def archive() -> tuple[str, list[WakuMessage]]:
    """An invitation and what a Store has: genuine messages, and all that a Store may do to them."""
    alice = SessionParticipant("Alice", seed=3, now_ms=NOW)
    sent = alice.create_group("Tide", now_ms=NOW)
    for number in range(12):
        sent += alice.say(Text(text=f"text {number}"), now_ms=UnixMs(NOW + number + 1))
    genuine = [decode_waku_message(out.payload) for out in sent]
    forged = bytearray(genuine[3].payload)
    forged[-1] ^= 1
    spoilt = replace(genuine[3], payload=bytes(forged))
    garbage = replace(genuine[3], payload=b"no envelope")
    held_back = genuine.pop(5)
    return alice.invite_link(), [*genuine[:4], spoilt, garbage, *genuine[4:], genuine[2], held_back]


def nothing(_reader: SessionParticipant, _messages: list[WakuMessage]) -> None: ...


def once(reader: SessionParticipant, messages: list[WakuMessage]) -> None:
    for message in messages:
        reader.session.open_ahead(message, hash_of(message))


def twice(reader: SessionParticipant, messages: list[WakuMessage]) -> None:
    once(reader, messages)
    once(reader, messages)


def copies(reader: SessionParticipant, messages: list[WakuMessage]) -> None:
    """As another Store gave them: equal, not the same."""
    once(reader, [replace(message) for message in messages])


def read(ahead: Callable[[SessionParticipant, list[WakuMessage]], None]) -> list[object]:
    link, messages = archive()
    reader = SessionParticipant("Reader", seed=4, now_ms=LATER)
    reader.join_group(link, now_ms=LATER)
    seen: list[object] = []
    for first in range(0, len(messages), 5):
        ahead(reader, messages[first : first + 5])
        for message in messages[first : first + 5]:
            transition = reader.session.handle(
                MessageArrived(message, hash_of(message), stored=True), now_ms=LATER
            )
            reader.store.apply(transition.writes)
            seen.append(transition)
    group = reader.store.groups()[0].conversation_id
    shown = reader.store.latest_page(group, limit=100).messages
    assert sum(one.record.kind == "text" for one in shown) == 12
    return [
        *seen,
        reader.session.channel.snapshot(),
        reader.session.gap(),
        reader.counters.snapshot(),
    ]


@pytest.mark.parametrize("ahead", [once, twice, copies])
def test_the_same_comes_of_it(
    ahead: Callable[[SessionParticipant, list[WakuMessage]], None],
) -> None:
    assert read(ahead) == read(nothing)


def test_bytes_under_a_foreign_hash_are_opened_by_themselves() -> None:
    link, messages = archive()
    reader = SessionParticipant("Reader", seed=4, now_ms=LATER)
    reader.join_group(link, now_ms=LATER)
    spoilt = messages[4]
    for genuine in messages[:4]:
        reader.session.open_ahead(genuine, hash_of(spoilt))
        refused = reader.session.handle(
            MessageArrived(spoilt, hash_of(spoilt), stored=True), now_ms=LATER
        )
        assert not refused.writes
    assert reader.counters["group.bad_seal"] == 4


def test_what_was_opened_is_taken_once() -> None:
    ahead: VerifiedAhead[str] = VerifiedAhead()
    message = archive()[1][0]
    ahead.put(message, hash_of(message), "opened")
    assert ahead.take(message, hash_of(message)) == "opened"
    assert ahead.take(message, hash_of(message)) is None


def test_it_keeps_no_more_than_its_share() -> None:
    topic = archive()[1][0].content_topic
    many = [
        WakuMessage(payload=bytes([n % 256, n // 256]), content_topic=topic) for n in range(300)
    ]
    large = [
        WakuMessage(payload=bytes([n]) * (MAX_AHEAD_BYTES // 3), content_topic=topic)
        for n in range(5)
    ]
    for messages, kept in ((many, MAX_AHEAD), (large, 3)):
        ahead: VerifiedAhead[int] = VerifiedAhead()
        for number, message in enumerate(messages):
            ahead.put(message, hash_of(message), number)
        left = [message for message in messages if hash_of(message) in ahead]
        assert left == messages[-kept:]
