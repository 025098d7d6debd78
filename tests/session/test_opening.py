"""A page that is opened without the session says the same as the session would."""

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.waku import decode_waku_message
from engine.core.content import (
    Attachment,
    Body,
    Edit,
    Leave,
    Profile,
    Reaction,
    Retraction,
    Text,
)
from engine.core.ids import MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.invite import group_id_of
from engine.core.waku import WakuMessage
from engine.session.group.opening import (
    OpenedPage,
    PageToOpen,
    decode_opened,
    encode_page,
    open_page,
)
from engine.session.inputs import MessageArrived
from engine.sim.session_participant import SessionParticipant
from tests.session.test_group_session import NOW, conversation_of, pair, settle

HASH = WakuHash(bytes(32))


def said(count: int) -> tuple[SessionParticipant, list[WakuMessage]]:
    """Bob, and what Alice says after both know each other."""
    return told(*(Text(text=f"text {number}") for number in range(count)))


def told(*bodies: Body) -> tuple[SessionParticipant, list[WakuMessage]]:
    alice, bob = pair()
    at_ms = settle(alice, bob, NOW, 90)
    outgoing = [
        out
        for number, body in enumerate(bodies)
        for out in alice.say(body, now_ms=UnixMs(at_ms + number))
    ]
    return bob, [decode_waku_message(out.payload) for out in outgoing]


def page_of(receiver: SessionParticipant, messages: list[WakuMessage]) -> PageToOpen:
    return PageToOpen(
        group_id=group_id_of(conversation_of(receiver)),
        epoch_keys=receiver.store.groups()[0].epoch_keys,
        payloads=tuple(message.payload for message in messages),
    )


def opened(receiver: SessionParticipant, messages: list[WakuMessage]) -> OpenedPage:
    return decode_opened(open_page(encode_page(page_of(receiver, messages))))


SOMEBODY = ParticipantId("A" * 22)
EVERYTHING: list[Body] = [
    Text(text="text"),
    Text(text="*bold* and https://example.org", reply_to=MessageId("B" * 22), forwarded=True),
    Text(text="\U0001f642 @Bob", mentions=(SOMEBODY,), mention_places=((3, 4),)),
    Attachment(name="note.txt", media_type="text/plain", data=b"note", caption=Text(text="*c*")),
    Reaction(target_id=MessageId("B" * 22), emoji="\U0001f44d"),
    Edit(target_id=MessageId("B" * 22), text=Text(text="*better*")),
    Retraction(target_id=MessageId("B" * 22)),
    Profile(name="Alicia"),
    Leave(),
]


def test_the_session_does_the_same_with_what_was_opened_before() -> None:
    bob, messages = told(*EVERYTHING)
    twin, same = told(*EVERYTHING)
    assert messages == same
    for message, before in zip(messages, opened(bob, messages), strict=True):
        assert before is not None
        plain = MessageArrived(message, HASH, stored=True)
        done = bob.session.handle(replace(plain, opened=before), now_ms=UnixMs(NOW + 100_000))
        assert done == twin.session.handle(plain, now_ms=UnixMs(NOW + 100_000))
        bob.store.apply(done.writes)
    rows = bob.store.latest_page(conversation_of(bob), limit=100).messages
    assert [row.record.kind for row in rows[-6:]] == [
        "text", "text", "text", "file", "renamed", "left"
    ]  # fmt: skip
    assert [len(row.record.spans) for row in rows[-6:-2]] == [0, 4, 1, 3]


def test_what_fails_a_check_is_left_to_the_session_which_counts_it() -> None:
    bob, [message] = said(1)
    junk = replace(message, payload=message.payload[:-1] + bytes([message.payload[-1] ^ 1]))
    assert opened(bob, [junk, message, replace(message, payload=b"")])[0::2] == (None, None)
    bob.session.handle(MessageArrived(junk, HASH, stored=True), now_ms=NOW)
    assert bob.counters["group.bad_seal"] == 1


def test_a_copy_that_was_opened_before_counts_as_replayed() -> None:
    bob, [message] = said(1)
    arrived = MessageArrived(message, HASH, stored=True, opened=opened(bob, [message])[0])
    now_ms = UnixMs(NOW + 100_000)
    bob.store.apply(bob.session.handle(arrived, now_ms=now_ms).writes)
    assert bob.session.handle(arrived, now_ms=now_ms).writes == ()
    assert bob.counters["group.replayed"] == 1


def test_other_keys_open_nothing() -> None:
    bob, messages = said(1)
    page = replace(page_of(bob, messages), epoch_keys=(bytes(32),))
    assert decode_opened(open_page(encode_page(page))) == (None,)


def test_entries_of_a_history_are_shared_and_in_their_order() -> None:
    bob, messages = said(12)
    whole = opened(bob, messages)
    alone = [one for message in messages for one in opened(bob, [message])]
    assert list(whole) == alone
    histories = [one.message.causal_history for one in whole if one is not None]
    assert histories[-1][0] in histories[-2]
    assert len({id(entry) for each in histories for entry in each}) < sum(map(len, histories))


@pytest.fixture(scope="module")
def answer() -> bytes:
    bob, messages = said(3)
    return open_page(encode_page(page_of(bob, messages)))


@given(place=st.integers(min_value=0), byte=st.integers(0, 255))
def test_an_answer_with_another_byte_is_decoded_or_a_decode_error(
    answer: bytes, place: int, byte: int
) -> None:
    changed = bytearray(answer)
    changed[place % len(answer)] = byte
    with contextlib.suppress(msgspec.DecodeError):
        decode_opened(bytes(changed))


def test_an_entry_that_is_not_in_the_answer_is_a_decode_error() -> None:
    bob, messages = said(1)
    entries, envelopes = msgspec.msgpack.decode(open_page(encode_page(page_of(bob, messages))))
    assert decode_opened(msgspec.msgpack.encode((entries, envelopes)))[0] is not None
    with pytest.raises(msgspec.DecodeError):
        decode_opened(msgspec.msgpack.encode((entries[:-1], envelopes)))
