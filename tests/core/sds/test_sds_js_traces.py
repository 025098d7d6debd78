"""js-waku's recorded conversations, replayed: its bytes from our channels, its outcome in our logs.

Where ours differs on purpose (delivery cascades at once; two filter hits are no acknowledgement),
the test says so.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.codec.sds import decode_message, encode_message
from engine.core.errors import RemoteProtocolError
from engine.core.faults import SeededRandom
from engine.core.ids import ChannelId, MessageId, ParticipantId, UnixMs
from engine.core.sds.channel import SdsChannel
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import CopyAccepted, DeadlineReached, MessageReceived, SendContent
from engine.core.sds.vocabulary import (
    Broadcast,
    ChannelState,
    Claim,
    EphemeralReceived,
    Event,
    Message,
    MessageDelivered,
    Transition,
)
from engine.sim.channel_participant import hash64

TRACES = cast(
    "dict[str, Any]",
    json.loads(
        (Path(__file__).parents[2] / "vectors" / "sds" / "traces_js_waku.json").read_text(
            encoding="utf-8"
        )
    ),
)
GENERAL = ChannelId("general")


def js_message_id(
    _sender: ParticipantId,
    _channel: ChannelId,
    _lamport: int,
    _history: Sequence[MessageId],
    content: bytes,
) -> MessageId:
    """Of the payload only."""
    return MessageId(hashlib.sha256(content).hexdigest())


def plain(message: Message, _holdings: Claim | None, _now_ms: UnixMs) -> bytes:
    return encode_message(message)


def hint(number: int) -> bytes:
    return hashlib.sha256(f"hint-{number}".encode()).digest()


def js_channel(name: str, now_ms: int, *, history: int = 200) -> SdsChannel:
    config = replace(SdsConfig.js_defaults(), causal_history_size=history)
    return SdsChannel(
        GENERAL,
        ParticipantId(name),
        config=config,
        message_id_of=js_message_id,
        sign=plain,
        random_unit=SeededRandom(1),
        hash64=hash64,
        state=ChannelState(lamport_timestamp=now_ms),
        members=frozenset(),
        online=True,
        now_ms=UnixMs(now_ms),
    )


def send(channel: SdsChannel, text: str, now_ms: int, retrieval_hint: bytes | None = None) -> str:
    transition = channel.handle(SendContent(content=text.encode()), now_ms=UnixMs(now_ms))
    (broadcast,) = transition.sends
    assert isinstance(broadcast, Broadcast)
    if retrieval_hint is not None:
        copy = CopyAccepted(message_id=broadcast.message_id, peers=1, retrieval_hint=retrieval_hint)
        channel.handle(copy, now_ms=UnixMs(now_ms))
    return broadcast.raw.hex()


def receive(
    channel: SdsChannel, data: str, now_ms: int, retrieval_hint: bytes | None = None
) -> Transition:
    received = MessageReceived(
        message=decode_message(bytes.fromhex(data)),
        raw=bytes.fromhex(data),
        verified=False,
        retrieval_hint=retrieval_hint,
    )
    return channel.handle(received, now_ms=UnixMs(now_ms))


def contents(events: Sequence[Event]) -> list[bytes | None]:
    return [event.message.content for event in events if isinstance(event, MessageDelivered)]


def log(channel: SdsChannel) -> list[str]:
    return [entry.position.message_id for entry in channel.snapshot().log]


def test_loss_acknowledgement_and_sync_as_js_waku_did_it() -> None:
    start, wire = 1_760_000_000_000, TRACES["traces"]["T1_basic_loss_acks"]["wire"]
    alice, bob, carol = (js_channel(name, start) for name in ("alice", "bob", "carol"))
    assert send(alice, "m1", start, hint(1)) == wire["M1"]
    receive(bob, wire["M1"], start + 10, hint(1))
    assert send(alice, "m2", start + 20, hint(2)) == wire["M2"]
    receive(bob, wire["M2"], start + 30, hint(2))
    assert send(bob, "m3", start + 40, hint(3)) == wire["M3"]
    receive(alice, wire["M3"], start + 50, hint(3))
    assert alice.snapshot().outgoing == ()

    assert contents(receive(carol, wire["M3"], start + 60, hint(3)).events) == []
    missing = {entry.entry.message_id: entry for entry in carol.snapshot().missing}
    js_times = {"M1": 1_760_000_093_295, "M2": 1_760_000_062_386}
    for label, at_ms in js_times.items():
        entry = missing[js_message_id(ParticipantId(""), GENERAL, 0, (), label.lower().encode())]
        assert entry.request_at_ms == at_ms
        assert entry.entry.retrieval_hint == hint(int(label[1]))
        assert entry.entry.sender_id == "alice"
    assert contents(receive(carol, wire["M2"], start + 80, hint(2)).events) == []
    # js-waku delivers M3 and M2 at its next sweep, and M3 before M2; ours at once, in causal order.
    cascade = receive(carol, wire["M1"], start + 100, hint(1))
    assert contents(cascade.events) == [b"m1", b"m2", b"m3"]

    receive(bob, wire["Y1"], start + 130)
    assert bob.snapshot().outgoing == ()
    receive(alice, wire["Y1"], start + 140)
    for channel, data in ((alice, wire["M1"]), (bob, wire["M1"]), (carol, wire["M3"])):
        assert contents(receive(channel, data, start + 150).events) == []
    assert log(alice) == log(bob) == log(carol)
    assert alice.snapshot().lamport_timestamp == start + 40


def test_our_sync_is_js_wakus_but_for_its_free_id() -> None:
    start, wire = 1_760_000_000_000, TRACES["traces"]["T1_basic_loss_acks"]["wire"]
    carol = js_channel("carol", start)
    for number, label in enumerate(("M1", "M2", "M3"), 1):
        receive(carol, wire[label], start + 110, hint(number))
    theirs = decode_message(bytes.fromhex(wire["Y1"]))
    sends: Sequence[object] = ()
    while not sends:
        at_ms = carol.next_deadline()
        assert at_ms is not None
        sends = carol.handle(DeadlineReached(), now_ms=at_ms).sends
    (broadcast,) = sends
    assert isinstance(broadcast, Broadcast)
    ours = decode_message(broadcast.raw)
    assert ours.is_sync
    assert theirs.is_sync
    assert ours.causal_history == theirs.causal_history
    assert ours.bloom_filter == theirs.bloom_filter


def test_two_filter_hits_are_possibly_for_us_though_acknowledged_for_js_waku() -> None:
    start, wire = 1_760_000_100_000, TRACES["traces"]["T2_possible_acks"]["wire"]
    alice = js_channel("alice", start, history=1)
    bob = js_channel("bob", start, history=1)
    first = send(alice, "p1", start + 10)
    receive(bob, first, start + 20)
    send(alice, "p2", start + 40)
    receive(alice, wire["P3"], start + 80)
    (left,) = alice.snapshot().outgoing
    assert left.state == "possibly_acknowledged"
    receive(alice, wire["Y1"], start + 110)
    (left,) = alice.snapshot().outgoing
    assert left.state == "possibly_acknowledged"


def test_wrong_channel_and_ephemeral() -> None:
    start = 1_760_000_000_000
    alice = js_channel("alice", start)
    ephemeral = Message(
        sender_id=ParticipantId("bob"),
        message_id=MessageId("e"),
        channel_id=GENERAL,
        content=b"x",
    )
    events = receive(alice, encode_message(ephemeral).hex(), start).events
    assert [type(event) for event in events] == [EphemeralReceived]
    other = replace(ephemeral, channel_id=ChannelId("other"))
    with pytest.raises(RemoteProtocolError):
        receive(alice, encode_message(other).hex(), start)
