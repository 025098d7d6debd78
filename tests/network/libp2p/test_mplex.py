"""mplex: two machines that talk in arbitrary pieces, and one that hears what it should not."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from engine.core.errors import LocalProtocolError, RemoteProtocolError, TransportError
from engine.network.libp2p.mplex import (
    FRAMES_PER_CALL,
    LATE_BURST,
    LATE_INTERVAL_S,
    MAX_FRAME_PAYLOAD,
    MAX_HELD_FRAMES,
    MAX_MESSAGE_BYTES,
    Flag,
    Mplex,
)
from engine.network.libp2p.muxer import (
    DataReceived,
    MuxerEvent,
    StreamEnded,
    StreamOpened,
    StreamOverflowed,
    StreamRefused,
    StreamReset,
)
from engine.network.libp2p.varint import encode_varint

MAX_UNREAD = 1_000
JS_POINTS_PER_SECOND = 5
"""Frames for streams it does not know that js-libp2p takes within a second."""


@dataclass
class Clock:
    seconds: float = 100.0

    def __call__(self) -> float:
        return self.seconds


def mplex(
    *,
    max_inbound: int = 100,
    max_outbound: int = 100,
    max_unread: int = MAX_UNREAD,
    clock: Clock | None = None,
) -> Mplex:
    return Mplex(
        max_inbound=max_inbound,
        max_outbound=max_outbound,
        max_unread=max_unread,
        now=clock or Clock(),
    )


def frame(wire_id: int, flag: int, payload: bytes = b"") -> bytes:
    return encode_varint(wire_id << 3 | flag) + encode_varint(len(payload)) + payload


def opened(wire_id: int = 0) -> bytes:
    return frame(wire_id, Flag.NEW_STREAM, b"name")


def accepted(machine: Mplex, count: int) -> list[int]:
    """Ids of streams that the peer has opened."""
    events = machine.receive(b"".join(opened(number) for number in range(count)))
    return [event.stream_id for event in events if isinstance(event, StreamOpened)]


def joined(events: list[MuxerEvent], stream_id: int) -> bytes:
    return b"".join(
        each.data
        for each in events
        if isinstance(each, DataReceived) and each.stream_id == stream_id
    )


# --- conversation ---------------------------------------------------------------------------------


def test_bytes_of_the_spec() -> None:
    """The stream's name is its id; the initiator's flags are even, the other side's odd."""
    alice, bob = mplex(), mplex()
    stream_id = alice.open_stream()
    assert alice.take_output() == b""
    alice.send(stream_id, b"hello")
    alice.close_write(stream_id)
    output = alice.take_output()
    assert output == b"\x00\x010" + b"\x02\x05hello" + b"\x04\x00"
    (bobs_id,) = {event.stream_id for event in bob.receive(output) if hasattr(event, "stream_id")}
    bob.send(bobs_id, b"world")
    bob.close_write(bobs_id)
    output = bob.take_output()
    assert output == b"\x01\x05world" + b"\x03\x00"
    assert alice.receive(output) == [DataReceived(stream_id, b"world"), StreamEnded(stream_id)]
    assert alice.open_streams == bob.open_streams == 0


def test_both_sides_number_from_0_and_do_not_mix_them_up() -> None:
    alice, bob = mplex(), mplex()
    by_alice, by_bob = alice.open_stream(), bob.open_stream()
    alice.send(by_alice, b"a")
    bob.send(by_bob, b"b")
    to_bob, to_alice = alice.take_output(), bob.take_output()
    assert to_bob.replace(b"a", b"b") == to_alice
    (_, alices) = bob.receive(to_bob)
    (_, bobs) = alice.receive(to_alice)
    assert isinstance(alices, DataReceived)
    assert isinstance(bobs, DataReceived)
    assert alices.stream_id != by_bob
    bob.send(alices.stream_id, b"for a")
    assert alice.receive(bob.take_output()) == [DataReceived(by_alice, b"for a")]


def test_half_close_leaves_the_other_half_open() -> None:
    alice, bob = mplex(), mplex()
    stream_id = alice.open_stream()
    alice.close_write(stream_id)
    events = bob.receive(alice.take_output())
    assert [type(each) for each in events] == [StreamOpened, StreamEnded]
    with pytest.raises(LocalProtocolError):
        alice.send(stream_id, b"more")
    alice.close_write(stream_id)  # twice is once
    assert alice.take_output() == b""
    (bobs_id,) = {each.stream_id for each in events if isinstance(each, StreamEnded)}
    bob.send(bobs_id, b"answer")
    assert alice.receive(bob.take_output()) == [DataReceived(stream_id, b"answer")]


def test_a_stream_that_was_never_sent_is_reset_silently() -> None:
    machine = mplex()
    machine.reset(machine.open_stream())
    assert machine.take_output() == b""
    assert machine.open_streams == 0


def test_large_writes_are_cut_into_frames() -> None:
    alice = mplex()
    stream_id = alice.open_stream()
    assert alice.send(stream_id, bytes(MAX_FRAME_PAYLOAD + 1)) == MAX_FRAME_PAYLOAD
    assert alice.send(stream_id, b"") == 0
    assert alice.queued_bytes == len(alice.take_output())
    assert alice.queued_bytes == 0


def test_it_has_neither_ping_nor_goodbye() -> None:
    machine = mplex()
    assert not machine.has_ping
    with pytest.raises(LocalProtocolError):
        machine.ping(1)
    machine.leave(0)
    assert machine.take_output() == b""


# --- bounds ---------------------------------------------------------------------------------------


def test_what_nobody_reads_is_reset_and_what_is_read_is_not() -> None:
    machine = mplex()
    first, second = accepted(machine, 2)
    for _ in range(10):
        data = frame(1, Flag.MESSAGE_INITIATOR, bytes(MAX_UNREAD))
        assert joined(machine.receive(data), second) == bytes(MAX_UNREAD)
        machine.consumed(second, MAX_UNREAD)
    machine.receive(frame(0, Flag.MESSAGE_INITIATOR, bytes(MAX_UNREAD)))
    events = machine.receive(frame(0, Flag.MESSAGE_INITIATOR, b"x"))
    assert events == [StreamOverflowed(first)]
    assert machine.take_output() == frame(0, Flag.RESET_RECEIVER)
    assert machine.receive(frame(0, Flag.MESSAGE_INITIATOR, b"on the way")) == []
    assert machine.open_streams == 1


def test_one_stream_too_many_is_reset_and_the_rest_live_on() -> None:
    machine = mplex(max_inbound=1)
    events = machine.receive(opened(0) + opened(1) + frame(0, Flag.MESSAGE_INITIATOR, b"c"))
    assert events == [StreamOpened(0), StreamRefused(), DataReceived(0, b"c")]
    assert machine.take_output() == frame(1, Flag.RESET_RECEIVER)


def test_own_limit_on_opening() -> None:
    machine = mplex(max_outbound=1)
    stream_id = machine.open_stream()
    with pytest.raises(TransportError, match="1 streams are open"):
        machine.open_stream()
    machine.reset(stream_id)
    machine.open_stream()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (frame(0, 7), "mplex_bad_flag"),
        (b"\x02" + encode_varint(MAX_MESSAGE_BYTES + 1), "mplex_frame_too_long"),
        (b"\xff" * 9, "mplex_varint_too_long"),
        (b"\x02" + b"\xff" * 9, "mplex_varint_too_long"),
        (b"\x80\x00", "mplex_varint_not_minimal"),
        (b"\x00\x80\x00", "mplex_varint_not_minimal"),
        (opened() * 2, "mplex_duplicate_stream"),
        (opened() + frame(0, Flag.RESET_INITIATOR) + opened(), "mplex_duplicate_stream"),
    ],
)
def test_a_broken_rule_ends_the_session(raw: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        mplex().receive(raw)
    assert caught.value.reason == reason


def test_frames_of_unknown_streams_and_after_the_end_are_skipped() -> None:
    machine = mplex()
    for flag in Flag:
        if flag is not Flag.NEW_STREAM:
            assert machine.receive(frame(9, flag, b"payload")) == []
    (stream_id,) = accepted(machine, 1)
    assert machine.receive(frame(0, Flag.CLOSE_INITIATOR, b"why")) == [StreamEnded(stream_id)]
    assert machine.receive(frame(0, Flag.CLOSE_INITIATOR)) == []
    assert machine.receive(frame(0, Flag.MESSAGE_INITIATOR, b"late")) == []
    assert machine.receive(frame(0, Flag.RESET_INITIATOR)) == [StreamReset(stream_id)]


def test_a_chunk_of_very_many_frames_is_handled_in_parts_and_in_order() -> None:
    machine = mplex(max_unread=10**6)
    numbers = range(3 * FRAMES_PER_CALL)
    sent = b"".join(b"%d " % number for number in numbers)
    pieces = b"".join(frame(0, Flag.MESSAGE_INITIATOR, b"%d " % number) for number in numbers)
    heard = machine.receive(opened() + pieces)
    while machine.has_unhandled:
        part = machine.receive(b"")
        assert 0 < len(part) <= FRAMES_PER_CALL
        heard += part
    assert joined(heard, 0) == sent


# --- late frames ----------------------------------------------------------------------------------


def ended_by_the_peer(machine: Mplex, count: int) -> list[int]:
    ids = accepted(machine, count)
    machine.receive(b"".join(frame(number, Flag.CLOSE_INITIATOR) for number in range(count)))
    return ids


@pytest.mark.parametrize("by_reset", [False, True])
def test_late_frames_never_come_faster_than_peers_bear(by_reset: bool) -> None:
    clock = Clock()
    machine = mplex(clock=clock)
    for stream_id in ended_by_the_peer(machine, 20):
        machine.reset(stream_id) if by_reset else machine.close_write(stream_id)
    sent_at = [clock.seconds] * (len(machine.take_output()) // 2)
    assert len(sent_at) == LATE_BURST
    while machine.next_output_at is not None:
        assert clock.seconds < machine.next_output_at <= clock.seconds + LATE_INTERVAL_S
        clock.seconds = machine.next_output_at
        sent_at += [clock.seconds] * (len(machine.take_output()) // 2)
    assert len(sent_at) == 20
    for start in sent_at:
        within = sum(start <= each < start + 1 for each in sent_at)
        assert within < JS_POINTS_PER_SECOND


def test_the_end_of_an_answer_is_never_held_back() -> None:
    machine = mplex()
    ids = ended_by_the_peer(machine, 20)
    for stream_id in ids:
        machine.send(stream_id, b"answer")
        machine.close_write(stream_id)
    assert machine.take_output().count(b"answer") == 20
    assert machine.next_output_at is None


def test_a_close_before_the_peers_is_never_held_back() -> None:
    machine = mplex()
    for stream_id in accepted(machine, 20):
        machine.close_write(stream_id)
    assert len(machine.take_output()) == 2 * 16 + 3 * 4  # ids from 16 on take two bytes
    assert machine.next_output_at is None


def test_a_reset_by_the_peer_is_not_answered() -> None:
    machine = mplex()
    (stream_id,) = accepted(machine, 1)
    machine.receive(frame(0, Flag.RESET_INITIATOR))
    machine.reset(stream_id)
    machine.close_write(stream_id)
    assert machine.take_output() == b""


def test_held_frames_are_bounded() -> None:
    clock = Clock()
    machine = mplex(max_inbound=10, clock=clock)
    for _ in range(MAX_HELD_FRAMES):
        for stream_id in ended_by_the_peer(machine, 10):
            machine.close_write(stream_id)
    frames = len(machine.take_output()) // 2
    assert frames == LATE_BURST
    while machine.next_output_at is not None:
        clock.seconds = machine.next_output_at
        frames += len(machine.take_output()) // 2
    assert frames == LATE_BURST + MAX_HELD_FRAMES


# --- anything at all ------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_garbage_is_refused_or_harmless(pieces: list[bytes]) -> None:
    machine = mplex(max_inbound=4)
    try:
        for piece in pieces:
            machine.receive(piece)
    except RemoteProtocolError:
        pass
    assert machine.open_streams <= 4


FIELDS = st.tuples(st.integers(0, 3), st.integers(0, 6), st.binary(max_size=600))


@given(st.lists(FIELDS, max_size=40), st.integers(1, 50))
def test_well_formed_nonsense_never_hands_on_more_than_the_bound(
    frames: list[tuple[int, int, bytes]], piece: int
) -> None:
    machine = mplex(max_inbound=2)
    raw = b"".join(frame(*fields) for fields in frames)
    unread: dict[int, int] = {}
    try:
        for offset in range(0, len(raw), piece):
            for event in machine.receive(raw[offset : offset + piece]):
                if isinstance(event, StreamOpened):
                    unread[event.stream_id] = 0
                elif isinstance(event, DataReceived):
                    unread[event.stream_id] += len(event.data)
    except RemoteProtocolError:
        pass
    assert machine.open_streams <= 2
    assert all(count <= MAX_UNREAD for count in unread.values())
    assert machine.queued_bytes <= 4 * (len(frames) + 1)


class Conversation(RuleBasedStateMachine):
    """Two machines; bytes travel in pieces; what is read equals what was written, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.sides = [mplex(clock=self.clock, max_unread=10**9) for _ in range(2)]
        self.wire = [b"", b""]
        self.written: dict[tuple[int, int], bytes] = {}
        self.received: dict[tuple[int, int], bytes] = {}
        self.ended: set[tuple[int, int]] = set()
        self.reset_ids: set[tuple[int, int]] = set()
        self.closed: set[tuple[int, int]] = set()

    def writable(self, side: int) -> list[int]:
        return sorted(
            stream_id
            for (owner, stream_id) in self.written
            if owner == side and not {(owner, stream_id)} & (self.reset_ids | self.closed)
        )

    @rule(side=st.integers(0, 1))
    def open(self, side: int) -> None:
        self.written[side, self.sides[side].open_stream()] = b""

    @rule(side=st.integers(0, 1), size=st.integers(1, 300_000), pick=st.integers(0, 50))
    def write(self, side: int, size: int, pick: int) -> None:
        if ids := self.writable(side):
            stream_id = ids[pick % len(ids)]
            payload = bytes([len(self.written[side, stream_id]) % 251]) * size
            count = self.sides[side].send(stream_id, payload)
            self.written[side, stream_id] += payload[:count]

    @rule(side=st.integers(0, 1), pick=st.integers(0, 50))
    def close_write(self, side: int, pick: int) -> None:
        if ids := self.writable(side):
            stream_id = ids[pick % len(ids)]
            self.sides[side].close_write(stream_id)
            self.closed.add((side, stream_id))

    @rule(side=st.integers(0, 1), pick=st.integers(0, 50))
    def reset(self, side: int, pick: int) -> None:
        if ids := self.writable(side):
            stream_id = ids[pick % len(ids)]
            self.sides[side].reset(stream_id)
            self.reset_ids.add((side, stream_id))

    @rule(seconds=st.floats(0, 3))
    def wait(self, seconds: float) -> None:
        self.clock.seconds += seconds

    @rule(sender=st.integers(0, 1), share=st.floats(0.01, 1))
    def deliver(self, sender: int, share: float) -> None:
        self.wire[sender] += self.sides[sender].take_output()
        count = max(1, int(len(self.wire[sender]) * share))
        piece, self.wire[sender] = self.wire[sender][:count], self.wire[sender][count:]
        for event in self.sides[1 - sender].receive(piece):
            self.handle(1 - sender, event)

    def handle(self, side: int, event: MuxerEvent) -> None:
        match event:
            case StreamOpened(stream_id):
                assert (side, stream_id) not in self.written
                self.written[side, stream_id] = b""
            case DataReceived(stream_id, payload):
                key = side, stream_id
                self.received[key] = self.received.get(key, b"") + payload
            case StreamEnded(stream_id):
                self.ended.add((side, stream_id))
            case StreamReset(stream_id):
                self.reset_ids.add((side, stream_id))
            case _:
                raise AssertionError(event)

    def teardown(self) -> None:
        for (side, stream_id), payload in self.received.items():
            assert self.written[1 - side, stream_id ^ 1].startswith(payload)
        for side, stream_id in self.ended:
            written = self.written[1 - side, stream_id ^ 1]
            assert self.received.get((side, stream_id), b"") == written

    @invariant()
    def no_stream_is_invented(self) -> None:
        assert all(side.open_streams <= len(self.written) for side in self.sides)


Conversation.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestConversation = Conversation.TestCase
