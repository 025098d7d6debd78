"""Bad input: refused with a reason, counted, never fatal; the caller's own mistakes are his.

What arrives are bytes, as on the wire: the refusals of codec and channel in one table.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.sds import MAX_MESSAGE_BYTES, encode_message
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.faults import FaultSpec
from engine.core.ids import ChannelId, MessageId, ParticipantId, UnixMs
from engine.core.sds.inputs import Input, ResendRequested, SendContent, SendEphemeral
from engine.core.sds.vocabulary import Claim, HistoryEntry, Holdings, Message, SequenceRange
from engine.sim.channel_participant import CHANNEL, frame, instance_of, message_id_of, sign
from engine.sim.network import Outgoing, SimNetwork
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    SMALL,
    after,
    content,
    id_of,
    log_of,
    member,
)

MALLORY = ParticipantId("mallory")


def wire(**changes: object) -> bytes:
    """A message of Bob's that is right but for what is changed."""
    fields: dict[str, object] = {
        "sender_id": BOB,
        "channel_id": CHANNEL,
        "lamport_timestamp": NOW,
        "content": b"content",
        "causal_history": (),
        **changes,
    }
    if "message_id" not in changes:
        lamport = fields["lamport_timestamp"]
        data, history = fields["content"], fields["causal_history"]
        assert isinstance(history, tuple)
        fields["message_id"] = message_id_of(
            ParticipantId(str(fields["sender_id"])),
            ChannelId(str(fields["channel_id"])),
            lamport if isinstance(lamport, int) else 0,
            [entry.message_id for entry in history],
            data if isinstance(data, bytes) else b"",
        )
    return framed(Message(**fields))  # type: ignore[arg-type]


def framed(message: Message, holdings: Holdings | None = None) -> bytes:
    return frame(sign(message, Claim(holdings), NOW), None)


def raw_sds(data: bytes) -> bytes:
    """A frame around bytes that need not be SDS."""
    empty = Message(sender_id=BOB, message_id=MessageId("x"), channel_id=CHANNEL, content=b"x")
    whole = framed(empty)
    head = whole[: len(whole) - len(encode_message(empty))]
    return head[:1] + len(data).to_bytes(4, "big") + head[5:] + data


def history(*ids: str) -> tuple[HistoryEntry, ...]:
    return tuple(HistoryEntry(message_id=MessageId(item)) for item in ids)


GOOD = wire()
OWN_ID = id_of(content(BOB, "content"))
SYNC = Message(sender_id=BOB, message_id=MessageId("s"), channel_id=CHANNEL, lamport_timestamp=NOW)
BACKWARDS: Holdings = {instance_of(BOB): (SequenceRange(first=2, last=1),)}

REFUSED = [
    (b"", "frame"),
    (b"\x05bob", "frame"),
    (raw_sds(b"\xff\xff\xff"), "sds_undecodable"),
    (raw_sds(b"\x0a\x03bo"), "sds_undecodable"),
    (raw_sds(b""), "sds_no_kind"),
    (raw_sds(b"\x0a\x03bob"), "sds_no_kind"),
    (wire(content=b"x" * MAX_MESSAGE_BYTES), "sds_oversized"),
    (wire(causal_history=history(*map(str, range(257)))), "sds_history_too_long"),
    (wire(repair_request=history(*map(str, range(65)))), "sds_too_many_repair_requests"),
    (wire(causal_history=history("x" * 129)), "sds_id_too_long"),
    (wire(channel_id=ChannelId("another")), "wrong_channel"),
    (wire(channel_id=ChannelId("another"), lamport_timestamp=None), "wrong_channel"),
    (wire(lamport_timestamp=2**53), "lamport_too_large"),
    (wire(lamport_timestamp=2**64 - 1), "lamport_too_large"),
    (wire(lamport_timestamp=2**53, content=None), "lamport_too_large"),
    (wire(sender_id=""), "empty_id"),
    (wire(message_id=""), "empty_id"),
    (wire(causal_history=history("")), "empty_id"),
    (wire(message_id=OWN_ID, causal_history=history("a", OWN_ID)), "self_dependent"),
    (wire(message_id=MessageId("taken")), "id_mismatch"),
    (wire(message_id=OWN_ID, content=b"other content"), "id_mismatch"),
    (wire(message_id=OWN_ID, sender_id=CAROL), "id_mismatch"),
    (wire(message_id=OWN_ID, lamport_timestamp=NOW + 1), "id_mismatch"),
    (wire(message_id=OWN_ID, causal_history=history("other")), "id_mismatch"),
    (framed(SYNC, BACKWARDS), "bad_holdings"),
]


@pytest.mark.parametrize(
    ("payload", "reason"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_refused_by_name_and_nothing_has_changed(payload: bytes, reason: str) -> None:
    alice = member()
    alice.send("mine", now_ms=NOW)
    before, deadline = alice.channel.snapshot(), alice.next_deadline()
    with pytest.raises(RemoteProtocolError) as caught:
        alice.receive(payload, now_ms=NOW)
    assert caught.value.reason == reason
    assert (alice.channel.snapshot(), alice.next_deadline()) == (before, deadline)
    assert alice.store.state() == before
    alice.receive(GOOD, now_ms=NOW)
    assert OWN_ID in log_of(alice)


@given(st.binary(max_size=200))
def test_garbage_never_raises_anything_else(data: bytes) -> None:
    alice = member()
    for payload in (data, raw_sds(data)):
        try:
            alice.receive(payload, now_ms=NOW)
        except RemoteProtocolError:
            assert log_of(alice) == []


@given(st.lists(st.sampled_from([payload for payload, _ in REFUSED]), max_size=10))
def test_a_conversation_does_not_notice_what_was_refused(noise: list[bytes]) -> None:
    quiet, disturbed = member(), member()
    for number in range(3):
        for person in (quiet, disturbed):
            person.handle(content(BOB, str(number), lamport=NOW + number), now_ms=after(number))
        for payload in noise:
            with pytest.raises(RemoteProtocolError):
                disturbed.receive(payload, now_ms=after(number))
    assert disturbed.channel.snapshot() == quiet.channel.snapshot()
    assert disturbed.next_deadline() == quiet.next_deadline()


@pytest.mark.parametrize("length", [1, 7, 18_751])
def test_a_filter_of_an_impossible_length_is_counted_and_the_message_taken(length: int) -> None:
    alice = member()
    alice.send("mine", now_ms=NOW)
    alice.receive(wire(bloom_filter=b"\xff" * length), now_ms=NOW)
    assert OWN_ID in log_of(alice)
    assert alice.counters["sds.bloom_bad_length"] == 1


def test_a_filter_that_claims_everything_is_counted_and_proves_nothing() -> None:
    alice = member()
    alice.send("mine", now_ms=NOW)
    alice.receive(wire(bloom_filter=b"\xff" * 64), now_ms=NOW)
    assert alice.counters["sds.bloom_too_full"] == 1
    assert alice.channel.snapshot().holders == ()
    assert alice.channel.snapshot().outgoing[0].state == "unacknowledged"


@dataclass
class Hostile:
    """Says everything that is refused, once, over the same network."""

    said: bool = False

    def receive(self, payload: bytes, *, now_ms: UnixMs) -> list[Outgoing]:
        del payload, now_ms
        return []

    def advance(self, *, now_ms: UnixMs) -> list[Outgoing]:
        del now_ms
        self.said = True
        return [Outgoing(payload=payload) for payload, _ in REFUSED]

    def next_deadline(self) -> UnixMs | None:
        return None if self.said else after(1_000)


def test_a_group_counts_every_refusal_and_goes_on() -> None:
    network = SimNetwork(FaultSpec(delay_ms=(10, 20)), start_ms=NOW)
    people = {name: member(name) for name in (ALICE, BOB, CAROL)}
    for name, person in people.items():
        network.add(name, person)
    network.add(MALLORY, Hostile())
    for number, (name, person) in enumerate(people.items()):
        network.run_until(after(800 * number))
        network.broadcast(name, person.send(f"hello {number}", now_ms=network.now_ms))
    network.run_until(after(60_000))
    reasons = [reason for _, reason in REFUSED]
    assert network.traffic.refused == {reason: 3 * reasons.count(reason) for reason in reasons}
    logs = [log_of(person) for person in people.values()]
    assert logs[0] == logs[1] == logs[2]
    assert len(logs[0]) == 3


# --- the caller's own mistakes --------------------------------------------------------------------


MISTAKES: dict[str, Callable[[], Input]] = {
    "content without content": lambda: SendContent(content=b""),
    "ephemeral without content": lambda: SendEphemeral(content=b""),
    "somebody else's message sent again": lambda: ResendRequested(message_id=OWN_ID),
    "an unknown message sent again": lambda: ResendRequested(message_id=MessageId("unknown")),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_callers_mistake_is_a_local_error_and_nothing_has_changed(
    mistake: Callable[[], Input],
) -> None:
    alice = member()
    alice.receive(GOOD, now_ms=NOW)
    before = alice.channel.snapshot()
    with pytest.raises(LocalProtocolError):
        alice.handle(mistake(), now_ms=NOW)
    assert alice.channel.snapshot() == before
    alice.send("goes on", now_ms=NOW)


def test_the_clock_cannot_be_pushed_to_its_end() -> None:
    """Only our own clock could: what others say that far ahead is held, or refused."""
    alice = member()
    with pytest.raises(LocalProtocolError, match="Lamport"):
        alice.send("too late", now_ms=UnixMs(2**53))
    alice.send("in time", now_ms=NOW)


def test_too_many_unacknowledged_messages_are_the_callers_affair() -> None:
    alice = member(config=replace(SMALL, max_outgoing=3))
    for number in range(3):
        alice.send(str(number), now_ms=after(number))
    with pytest.raises(LocalProtocolError, match="unacknowledged"):
        alice.send("one more", now_ms=after(4))
    assert len(log_of(alice)) == 3
