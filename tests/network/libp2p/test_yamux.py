"""yamux: two machines that talk in arbitrary pieces, and one that hears what it should not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.core.errors import LocalProtocolError, RemoteProtocolError, TransportError
from engine.network.libp2p.muxer import (
    DataReceived,
    MuxerEvent,
    PeerLeaves,
    PongReceived,
    StreamEnded,
    StreamOpened,
    StreamRefused,
    StreamReset,
    WindowOpened,
)
from engine.network.libp2p.yamux import (
    ACK_BACKLOG,
    FRAMES_PER_CALL,
    HEADER,
    INITIAL_WINDOW,
    MAX_FRAME_PAYLOAD,
    Flag,
    FrameType,
    Yamux,
)


def yamux(*, client: bool, max_inbound: int = 1_000, max_outbound: int = 1_000) -> Yamux:
    return Yamux(client=client, max_inbound=max_inbound, max_outbound=max_outbound)


def frame(kind: int, flags: int, stream_id: int, length: int) -> bytes:
    return HEADER.pack(0, kind, flags, stream_id, length)


def data(stream_id: int, payload: bytes, flags: int = 0) -> bytes:
    return frame(FrameType.DATA, flags, stream_id, len(payload)) + payload


def joined(events: list[MuxerEvent], stream_id: int) -> bytes:
    return b"".join(
        each.data
        for each in events
        if isinstance(each, DataReceived) and each.stream_id == stream_id
    )


def test_syn_and_ack_ride_on_the_first_frames() -> None:
    client, server = yamux(client=True), yamux(client=False)
    stream_id = client.open_stream()
    assert client.take_output() == b""
    client.send(stream_id, b"hello")
    output = client.take_output()
    assert output == data(1, b"hello", Flag.SYN)
    assert server.receive(output) == [StreamOpened(1), DataReceived(1, b"hello")]
    server.send(1, b"world")
    output = server.take_output()
    assert output == data(1, b"world", Flag.ACK)
    assert client.receive(output) == [DataReceived(1, b"world")]


def test_ids_are_odd_for_the_client_and_even_for_the_server() -> None:
    client, server = yamux(client=True), yamux(client=False)
    assert [client.open_stream() for _ in range(3)] == [1, 3, 5]
    assert [server.open_stream() for _ in range(3)] == [2, 4, 6]


def test_half_close_leaves_the_other_half_open() -> None:
    client, server = yamux(client=True), yamux(client=False)
    stream_id = client.open_stream()
    client.send(stream_id, b"question")
    client.close_write(stream_id)
    events = server.receive(client.take_output())
    assert events == [StreamOpened(1), DataReceived(1, b"question"), StreamEnded(1)]
    server.send(stream_id, b"answer")
    server.close_write(stream_id)
    assert client.receive(server.take_output()) == [DataReceived(1, b"answer"), StreamEnded(1)]
    assert client.open_streams == server.open_streams == 0
    with pytest.raises(LocalProtocolError):
        client.send(stream_id, b"more")


def test_fin_on_a_data_frame_comes_after_its_payload() -> None:
    server = yamux(client=False)
    raw = data(1, b"abc", Flag.SYN | Flag.FIN)
    events: list[MuxerEvent] = []
    for byte in raw:
        events += server.receive(bytes([byte]))
    assert events[0] == StreamOpened(1)
    assert joined(events, 1) == b"abc"
    assert events[-1] == StreamEnded(1)


def test_the_window_is_given_back_only_for_what_was_read() -> None:
    client, server = yamux(client=True), yamux(client=False)
    stream_id = client.open_stream()
    payload = memoryview(bytes(2 * INITIAL_WINDOW))
    sent = 0
    while count := client.send(stream_id, payload[sent:]):
        assert count <= MAX_FRAME_PAYLOAD
        sent += count
    assert sent == INITIAL_WINDOW
    server.receive(client.take_output())
    assert server.take_output() == b""
    server.consumed(stream_id, INITIAL_WINDOW // 2 - 1)
    assert server.take_output() == b""
    server.consumed(stream_id, 1)
    update = server.take_output()
    assert update == frame(FrameType.WINDOW_UPDATE, Flag.ACK, 1, INITIAL_WINDOW // 2)
    assert client.receive(update) == [WindowOpened(1)]


def test_ping_is_answered_with_its_value() -> None:
    client, server = yamux(client=True), yamux(client=False)
    client.ping(77)
    assert server.receive(client.take_output()) == []
    assert client.receive(server.take_output()) == [PongReceived(77)]


def test_after_go_away_no_stream_is_opened() -> None:
    client, server = yamux(client=True), yamux(client=False)
    server.leave(0)
    assert client.receive(server.take_output()) == [PeerLeaves(0)]
    with pytest.raises(TransportError):
        client.open_stream()


def test_reset_ends_both_halves_and_late_frames_are_skipped() -> None:
    client, server = yamux(client=True), yamux(client=False)
    stream_id = client.open_stream()
    client.send(stream_id, b"x")
    server.receive(client.take_output())
    server.reset(stream_id)
    reset = server.take_output()
    client.send(stream_id, b"late")
    late = client.take_output()
    assert client.receive(reset) == [StreamReset(1)]
    assert server.receive(late + frame(FrameType.WINDOW_UPDATE, 0, 1, 5)) == []
    assert client.open_streams == server.open_streams == 0


def test_a_stream_that_was_never_sent_is_reset_silently() -> None:
    client = yamux(client=True)
    client.reset(client.open_stream())
    assert client.take_output() == b""
    assert client.open_streams == 0


def test_one_stream_too_many_is_reset_and_the_rest_live_on() -> None:
    server = yamux(client=False, max_inbound=1)
    events = server.receive(data(1, b"a", Flag.SYN) + data(3, b"b", Flag.SYN) + data(1, b"c"))
    assert events == [
        StreamOpened(1),
        DataReceived(1, b"a"),
        StreamRefused(),
        DataReceived(1, b"c"),
    ]
    assert server.take_output() == frame(FrameType.WINDOW_UPDATE, Flag.RST, 3, 0)


def test_own_limits_on_opening() -> None:
    client = yamux(client=True, max_outbound=1)
    client.open_stream()
    with pytest.raises(TransportError, match="1 streams are open"):
        client.open_stream()
    client = yamux(client=True)
    for _ in range(ACK_BACKLOG):
        client.open_stream()
    with pytest.raises(TransportError, match="has not answered"):
        client.open_stream()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x01" + bytes(11), "yamux_bad_version"),
        (frame(4, 0, 0, 0), "yamux_bad_type"),
        (frame(FrameType.DATA, 0x10, 1, 0), "yamux_bad_flags"),
        (frame(FrameType.DATA, Flag.SYN, 0, 0), "yamux_bad_stream_id"),
        (frame(FrameType.PING, Flag.SYN, 1, 0), "yamux_bad_stream_id"),
        (frame(FrameType.GO_AWAY, 0, 1, 0), "yamux_bad_stream_id"),
        (frame(FrameType.DATA, Flag.SYN, 2, 0), "yamux_bad_parity"),
        (frame(FrameType.DATA, Flag.SYN, 1, 0) * 2, "yamux_duplicate_stream"),
        (frame(FrameType.DATA, Flag.SYN, 1, INITIAL_WINDOW + 1), "yamux_window_exceeded"),
        (frame(FrameType.DATA, 0, 1, INITIAL_WINDOW + 1), "yamux_window_exceeded"),
        (
            data(1, bytes(INITIAL_WINDOW), Flag.SYN) + frame(FrameType.DATA, 0, 1, 1),
            "yamux_window_exceeded",
        ),
        (data(1, b"", Flag.SYN | Flag.FIN) + data(1, b"x"), "yamux_data_after_fin"),
        (
            frame(FrameType.WINDOW_UPDATE, Flag.SYN, 1, 2**32 - 1),
            "yamux_window_overflow",
        ),
    ],
)
def test_a_broken_rule_ends_the_session_with_a_go_away(raw: bytes, reason: str) -> None:
    server = yamux(client=False)
    with pytest.raises(RemoteProtocolError) as caught:
        server.receive(raw)
    assert caught.value.reason == reason
    assert server.take_output().endswith(frame(FrameType.GO_AWAY, 0, 0, 1))


def test_a_stream_that_has_ended_can_still_be_reset_by_an_empty_data_frame() -> None:
    server = yamux(client=False)
    server.receive(data(1, b"a", Flag.SYN | Flag.FIN))
    assert server.receive(data(1, b"", Flag.RST)) == [StreamReset(1)]
    assert server.open_streams == 0


def test_a_stream_id_is_not_used_again_before_anybody_knows_that_it_is_free() -> None:
    server = yamux(client=False)
    opened = frame(FrameType.WINDOW_UPDATE, Flag.SYN, 1, 0)
    reset = frame(FrameType.WINDOW_UPDATE, Flag.RST, 1, 0)
    assert server.receive(opened + reset) == [StreamOpened(1), StreamReset(1)]
    assert server.receive(opened + reset) == [StreamOpened(1), StreamReset(1)]
    with pytest.raises(RemoteProtocolError, match="yamux_duplicate_stream"):
        server.receive(opened + reset + opened)


def test_a_chunk_of_very_many_frames_is_handled_in_parts_and_in_order() -> None:
    server = yamux(client=False)
    numbers = range(3 * FRAMES_PER_CALL)
    pings = b"".join(frame(FrameType.PING, Flag.ACK, 0, number) for number in numbers)
    heard = server.receive(pings[:-5])
    while server.has_unhandled:
        part = server.receive(b"")
        assert 0 < len(part) <= FRAMES_PER_CALL
        heard += part
    heard += server.receive(pings[-5:])
    assert heard == [PongReceived(number) for number in numbers]


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_garbage_is_refused_or_harmless(pieces: list[bytes]) -> None:
    server = yamux(client=False, max_inbound=4)
    try:
        for piece in pieces:
            server.receive(piece)
    except RemoteProtocolError:
        pass
    assert server.open_streams <= 4


FIELDS = st.tuples(
    st.sampled_from([0, 0, 0, 1, 2, 3, 9]),
    st.integers(0, 15),
    st.sampled_from([0, 1, 2, 3, 5]),
    st.sampled_from([0, 1, 30, INITIAL_WINDOW, 2**32 - 1]),
)


@given(st.lists(FIELDS, max_size=30))
def test_well_formed_nonsense_never_buffers_more_than_it_is_sent(
    frames: list[tuple[int, int, int, int]],
) -> None:
    server = yamux(client=False, max_inbound=2)
    try:
        for kind, flags, stream_id, length in frames:
            server.receive(frame(kind, flags, stream_id, length) + bytes(min(length, 30)))
    except RemoteProtocolError:
        pass
    assert server.open_streams <= 2
    assert server.queued_bytes <= (len(frames) * 31 + 1) * HEADER.size


class Conversation(RuleBasedStateMachine):
    """Two machines; bytes travel in pieces; what is read equals what was written, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.sides = [yamux(client=True), yamux(client=False)]
        self.wire = [b"", b""]
        self.written: dict[tuple[int, int], bytes] = {}
        self.received: dict[tuple[int, int], bytes] = {}
        self.unread: dict[tuple[int, int], int] = {}
        self.reset_ids: set[int] = set()
        self.closed: set[tuple[int, int]] = set()
        self.ended: set[tuple[int, int]] = set()

    def known(self, side: int) -> list[int]:
        return sorted(
            stream_id for (owner, stream_id) in self.written
            if owner == side and stream_id not in self.reset_ids
        )  # fmt: skip

    @rule(side=st.integers(0, 1))
    def open(self, side: int) -> None:
        stream_id = self.sides[side].open_stream()
        self.written[side, stream_id] = b""

    @rule(side=st.integers(0, 1), size=st.integers(1, 100_000), pick=st.integers(0, 50))
    def write(self, side: int, size: int, pick: int) -> None:
        open_ids = [each for each in self.known(side) if (side, each) not in self.closed]
        if open_ids:
            stream_id = open_ids[pick % len(open_ids)]
            payload = bytes([len(self.written[side, stream_id]) % 251]) * size
            count = self.sides[side].send(stream_id, payload)
            self.written[side, stream_id] += payload[:count]

    @rule(side=st.integers(0, 1), pick=st.integers(0, 50))
    def close_write(self, side: int, pick: int) -> None:
        if ids := self.known(side):
            stream_id = ids[pick % len(ids)]
            self.sides[side].close_write(stream_id)
            self.closed.add((side, stream_id))

    @rule(side=st.integers(0, 1), pick=st.integers(0, 50))
    def reset(self, side: int, pick: int) -> None:
        if ids := self.known(side):
            stream_id = ids[pick % len(ids)]
            self.sides[side].reset(stream_id)
            self.reset_ids.add(stream_id)

    @rule(side=st.integers(0, 1), share=st.floats(0, 1))
    def read(self, side: int, share: float) -> None:
        for (owner, stream_id), count in self.unread.items():
            if owner == side:
                taken = int(count * share)
                self.sides[side].consumed(stream_id, taken)
                self.unread[owner, stream_id] -= taken

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
                self.written.setdefault((side, stream_id), b"")
            case DataReceived(stream_id, payload):
                key = side, stream_id
                self.received[key] = self.received.get(key, b"") + payload
                self.unread[key] = self.unread.get(key, 0) + len(payload)
            case StreamEnded(stream_id):
                self.ended.add((side, stream_id))
            case StreamReset(stream_id):
                self.reset_ids.add(stream_id)
            case _:
                pass

    def teardown(self) -> None:
        for (side, stream_id), payload in self.received.items():
            assert self.written[1 - side, stream_id].startswith(payload)
        for side, stream_id in self.ended:
            assert self.received.get((side, stream_id), b"") == self.written[1 - side, stream_id]

    @invariant()
    def nothing_is_buffered_beyond_the_window(self) -> None:
        assert all(count <= INITIAL_WINDOW for count in self.unread.values())

    @precondition(lambda self: bool(self.written))
    @invariant()
    def no_stream_is_invented(self) -> None:
        assert all(side.open_streams <= len(self.written) for side in self.sides)


Conversation.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestConversation = Conversation.TestCase
