"""Whatever values a member signs: no exception, and the database takes what the channel took.

A value that the database refused would be worse than a crash: the session would be built anew, hear
it again, and never come to rest.
"""

import contextlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.message_id import message_id_in
from engine.codec.sds import encode_message
from engine.core.content import NONCE_BYTES
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ChannelId, InstanceId, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.invite import group_id_of
from engine.core.ports import PutGroup, PutMember
from engine.core.sds.inputs import DeadlineReached
from engine.core.sds.vocabulary import (
    ChannelState,
    Claim,
    HistoryEntry,
    Holdings,
    Message,
    SequenceRange,
)
from engine.core.waku import WakuMessage
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.session.inputs import MessageArrived
from engine.sim.session_participant import SessionParticipant
from proto import content_pb2
from tests.forging import sealed_group_of, signed_message
from tests.persistence.new_database import new_database

KEY = bytes(range(32))
NOW = UnixMs(1_800_000_000_000)
CHANNEL = ChannelId("0")
NUMBERS = st.sampled_from([0, 1, 7, NOW, NOW + 299_999, NOW + 10**9, 2**53 - 1, 2**53, 2**64 - 1])
WORDS = st.text(max_size=12) | st.sampled_from(["\x00", "'; --", "\u202e", "\U0010ffff", "e" * 200])
INSTANCES = st.sampled_from([bytes(16), b"m" * 16, b"\xff" * 16, b"short"])
ENTRIES = st.builds(
    HistoryEntry,
    message_id=WORDS.map(MessageId),
    retrieval_hint=st.none() | st.binary(max_size=70),
    sender_id=st.none() | WORDS.map(ParticipantId),
)
BODIES = st.one_of(
    st.builds(lambda text: content_pb2.Body(text=content_pb2.Text(text=text)), WORDS),
    st.builds(lambda name: content_pb2.Body(created=content_pb2.Created(name=name)), WORDS),
    st.just(content_pb2.Body(leave=content_pb2.Leave())),
    st.just(content_pb2.Body(join=content_pb2.Join(name="x"))),
    st.just(content_pb2.Body()),
)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    wire = content_pb2.Content()
    wire.body = draw(BODIES).SerializeToString(deterministic=True)
    wire.instance_id = draw(INSTANCES)
    wire.sequence = draw(NUMBERS)
    if wire.sequence != 1 or draw(st.booleans()):
        wire.previous_id = draw(WORDS)
    wire.replaces = draw(st.just("") | WORDS)
    wire.nonce = bytes(NONCE_BYTES)
    wire.sent_ms = draw(NUMBERS)
    return wire.SerializeToString(deterministic=True)


@st.composite
def holdings(draw: st.DrawFn) -> Holdings | None:
    first, last = sorted((draw(NUMBERS), draw(NUMBERS)))
    if not 1 <= first <= last < 2**53:
        return None
    return {
        InstanceId(draw(st.binary(min_size=16, max_size=16))): (
            SequenceRange(first=first, last=last, head=draw(st.binary(min_size=8, max_size=8))),
        )
    }


@st.composite
def messages(draw: st.DrawFn) -> Message:
    return Message(
        sender_id=ParticipantId("set later"),
        message_id=MessageId(draw(WORDS)),
        channel_id=CHANNEL,
        lamport_timestamp=draw(st.none() | NUMBERS),
        causal_history=tuple(draw(st.lists(ENTRIES, max_size=4))),
        bloom_filter=draw(st.none() | st.binary(max_size=64)),
        repair_request=tuple(draw(st.lists(ENTRIES, max_size=3))),
        content=draw(st.none() | contents()),
    )


@settings(max_examples=60, deadline=None)
@given(said=st.lists(st.tuples(messages(), holdings(), st.sampled_from([0, 61_000])), max_size=6))
def test_no_signed_value_breaks_the_session_or_the_database(
    said: list[tuple[Message, Holdings | None, int]],
) -> None:
    alice = SessionParticipant("Alice", seed=2, now_ms=NOW)
    mallory = SessionParticipant("Mallory", seed=2, now_ms=NOW)
    alice.create_group("Tide", now_ms=NOW)
    group = alice.store.groups()[0]
    group_id = group_id_of(group.conversation_id)
    for sent in mallory.join_group(alice.invite_link(), now_ms=NOW):
        alice.receive(sent.payload, now_ms=NOW)
    sealed, me = sealed_group_of(group), mallory.participant_id
    with TemporaryDirectory() as place:
        path = new_database(Path(place) / "causerie.db", KEY)
        store = SqliteProfileStore.open(path, KEY)
        store.apply([PutGroup(group=group, initial_state=ChannelState(lamport_timestamp=NOW))])
        store.apply([PutMember(member=m) for m in alice.store.members(group.conversation_id)])
        for member in alice.session.membership.everyone():
            store.apply([PutMember(member=member)])
        now_ms = NOW
        for message, held, pause_ms in said:
            now_ms = UnixMs(now_ms + pause_ms)
            lamport, content = message.lamport_timestamp, message.content
            message_id = message.message_id
            if lamport is not None and content:
                with contextlib.suppress(RemoteProtocolError):  # Then any id is refused.
                    history = [entry.message_id for entry in message.causal_history]
                    message_id = message_id_in(group_id)(me, CHANNEL, lamport, history, content)
            whole = replace(message, sender_id=me, message_id=message_id)
            part = signed_message(
                sealed,
                mallory.identity,
                encode_message(whole),
                claim=Claim(held),
                signed_ms=now_ms,
            )
            payload = sealed.seal(part, random_bytes=os.urandom)
            waku = WakuMessage(
                payload=payload, content_topic=alice.session.content_topic, timestamp_ns=1
            )
            for transition in (
                alice.session.handle(MessageArrived(waku, WakuHash(bytes(32))), now_ms=now_ms),
                alice.session.handle(DeadlineReached(), now_ms=now_ms),
            ):
                store.apply(transition.writes)
        store.latest_page(group.conversation_id, limit=100)
        store.summary(group.conversation_id)
        assert store.channel_state(group.conversation_id).incoming == (
            alice.session.channel.snapshot().incoming
        )
        store.close()
