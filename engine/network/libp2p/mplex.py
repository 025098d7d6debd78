"""mplex 6.7.0 (libp2p "mplex" spec): frames and stream states, for peers without yamux.

A frame is a varint (stream id · 8 + flag), a varint length and the payload.  Both sides number
their streams from 0, so the flag's parity completes the id: the side that opened the stream sends
even flags, the other side odd ones.  Our internal id is the wire's, doubled, plus one for streams
that we opened.

mplex has no windows, ping or goodbye.  A stream with more than ``max_unread`` unread bytes is
reset, as the spec's "Implementation notes" suggest.  Payload is passed on as it arrives, so no
frame is ever held whole.

Nor can a peer say that it is done with both halves: it sends CLOSE as for one half and forgets the
stream.  Our own CLOSE then counts as a frame of an unknown stream, and js-libp2p cuts the
connection at the sixth of those within a second.  A CLOSE or RESET that we send after the peer's
CLOSE, without a write in between, is therefore *late* and rate-limited.  One that ends an answer is
sent immediately, because the peer is reading.  The clock is injected; sans-I/O, see ``muxer.py``.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from engine.core.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
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

MAX_MESSAGE_BYTES = 1024 * 1024
"""Per frame; the spec's bound."""
MAX_FRAME_PAYLOAD = 256 * 1024
"""Of our own frames.  It is large because a peer that has forgotten a stream counts its frames."""
FRAMES_PER_CALL = 256
LATE_BURST = 2
LATE_INTERVAL_S = 0.5
"""At most ``LATE_BURST`` late frames at once and one more in each interval: 4 in any second."""
MAX_HELD_FRAMES = 1_024
_MAX_VARINT_BYTES = 9
_CONTINUATION = 0x80


class Flag(IntEnum):
    """Odd flags come from the side that accepted the stream."""

    NEW_STREAM = 0
    MESSAGE_RECEIVER = 1
    MESSAGE_INITIATOR = 2
    CLOSE_RECEIVER = 3
    CLOSE_INITIATOR = 4
    RESET_RECEIVER = 5
    RESET_INITIATOR = 6


_NEW_STREAM, _MESSAGE, _CLOSE, _RESET = 0, 2, 4, 6
_MAX_FLAG = 6


@dataclass(slots=True)
class _StreamState:
    announced: bool
    """False: opened by us, and not announced to the peer yet."""
    unread: int = 0
    write_closed: bool = False
    read_closed: bool = False
    answered: bool = False
    """We have written since the peer closed its half, so it still reads the stream."""


class Mplex:
    """One side of an mplex session; both sides are alike."""

    def __init__(
        self,
        *,
        max_inbound: int,
        max_outbound: int,
        max_unread: int,
        now: Callable[[], float],
    ) -> None:
        self._max_inbound = max_inbound
        self._max_outbound = max_outbound
        self._max_unread = max_unread
        self._now = now
        self._streams: dict[int, _StreamState] = {}
        self._inbound = 0
        self._outbound = 0
        self._next_id = 0
        self._output: list[bytes | memoryview] = []
        self._queued_bytes = 0
        self._held: deque[bytes] = deque(maxlen=MAX_HELD_FRAMES)
        self._late_tokens = float(LATE_BURST)
        self._refilled_at = now()
        self._rest = b""
        self._has_unhandled = False
        self._payload_left = 0
        self._payload_stream: int | None = None
        self._events: list[MuxerEvent] = []
        self._just_gone: set[int] = set()
        """Streams that ended in this call; their owners have not been notified yet."""

    has_ping = False
    returns_window = False

    @property
    def queued_bytes(self) -> int:
        return self._queued_bytes

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    @property
    def next_output_at(self) -> float | None:
        if not self._held:
            return None
        return self._refilled_at + max(0.0, 1 - self._late_tokens) * LATE_INTERVAL_S

    def take_output(self) -> bytes:
        self._release_held()
        output = b"".join(self._output)
        self._output.clear()
        self._queued_bytes = 0
        return output

    # --- receiving ------------------------------------------------------------------------------

    @property
    def has_unhandled(self) -> bool:
        return self._has_unhandled

    def receive(self, data: bytes) -> list[MuxerEvent]:
        if self._rest:
            data = self._rest + data
        self._just_gone.clear()
        offset, end, steps, partial = 0, len(data), 0, False
        while offset < end and steps < FRAMES_PER_CALL and not partial:
            steps += 1
            if self._payload_left:
                offset = self._receive_payload(data, offset)
                continue
            header = _varint(data, offset)
            length = None if header is None else _varint(data, header[1])
            if header is None or length is None:
                partial = True
            else:
                self._receive_header(header[0] >> 3, header[0] & 7, length[0])
                offset = length[1]
        self._rest = data[offset:]
        self._has_unhandled = bool(self._rest) and not partial
        events, self._events = self._events, []
        return events

    def _receive_header(self, wire_id: int, flag: int, length: int) -> None:
        if flag > _MAX_FLAG:
            raise RemoteProtocolError("mplex_bad_flag")
        if length > MAX_MESSAGE_BYTES:
            raise RemoteProtocolError("mplex_frame_too_long")
        self._payload_left = length
        self._payload_stream = None  # skip unneeded payload, such as stream names
        stream_id = wire_id << 1 | flag & 1
        if flag == _NEW_STREAM:
            self._receive_new_stream(wire_id << 1)
            return
        state = self._streams.get(stream_id)
        if state is None:
            return  # sent before the peer knew that the stream is gone
        kind = flag + (flag & 1)
        if kind == _MESSAGE and not state.read_closed:
            self._payload_stream = stream_id
        elif kind == _CLOSE and not state.read_closed:
            state.read_closed = True
            self._events.append(StreamEnded(stream_id))
            self._forget_if_done(stream_id, state)
        elif kind == _RESET:
            self._forget(stream_id)
            self._events.append(StreamReset(stream_id))

    def _receive_new_stream(self, stream_id: int) -> None:
        if stream_id in self._streams or stream_id in self._just_gone:
            raise RemoteProtocolError("mplex_duplicate_stream")
        if self._inbound >= self._max_inbound:
            self._queue(stream_id, _RESET)
            self._events.append(StreamRefused())
            return
        self._streams[stream_id] = _StreamState(announced=True)
        self._inbound += 1
        self._events.append(StreamOpened(stream_id))

    def _receive_payload(self, data: bytes, offset: int) -> int:
        piece = data[offset : offset + self._payload_left]
        self._payload_left -= len(piece)
        stream_id = self._payload_stream
        state = None if stream_id is None else self._streams.get(stream_id)
        if stream_id is not None and state is not None:
            state.unread += len(piece)
            if state.unread > self._max_unread:
                self.reset(stream_id)
                self._events.append(StreamOverflowed(stream_id))
            else:
                self._events.append(DataReceived(stream_id, piece))
        return offset + len(piece)

    # --- sending --------------------------------------------------------------------------------

    def open_stream(self) -> int:
        if self._outbound >= self._max_outbound:
            text = f"{self._max_outbound} streams are open on the connection"
            raise TransportError(text, TransportFault.FULL)
        stream_id = self._next_id << 1 | 1
        self._next_id += 1
        self._streams[stream_id] = _StreamState(announced=False)
        self._outbound += 1
        return stream_id

    def send(self, stream_id: int, data: bytes | memoryview) -> int:
        state = self._streams.get(stream_id)
        if state is None or state.write_closed:
            raise LocalProtocolError("a write to a stream whose writing half is closed")
        count = min(len(data), MAX_FRAME_PAYLOAD)
        if count == 0:
            return 0
        self._announce(stream_id, state)
        state.answered = state.read_closed
        self._queue(stream_id, _MESSAGE, count)
        self._output.append(data if count == len(data) else data[:count])
        self._queued_bytes += count
        return count

    def consumed(self, stream_id: int, count: int) -> None:
        state = self._streams.get(stream_id)
        if state is not None:
            state.unread -= count

    def close_write(self, stream_id: int) -> None:
        state = self._streams.get(stream_id)
        if state is None or state.write_closed:
            return
        state.write_closed = True
        self._announce(stream_id, state)
        self._queue_end(stream_id, state, _CLOSE)
        self._forget_if_done(stream_id, state)

    def reset(self, stream_id: int) -> None:
        state = self._streams.get(stream_id)
        if state is None:
            return
        if state.announced:  # otherwise the peer does not know it
            self._queue_end(stream_id, state, _RESET)
        self._forget(stream_id)

    def ping(self, opaque: int) -> None:
        del opaque
        raise LocalProtocolError("mplex has no ping")

    def leave(self, code: int) -> None:
        """Do nothing: mplex has no goodbye, the connection just ends."""

    def _announce(self, stream_id: int, state: _StreamState) -> None:
        if not state.announced:
            state.announced = True
            name = b"%d" % (stream_id >> 1)
            self._queue(stream_id, _NEW_STREAM, len(name))
            self._output.append(name)
            self._queued_bytes += len(name)

    def _queue(self, stream_id: int, kind: int, length: int = 0) -> None:
        header = _header(stream_id, kind) + encode_varint(length)
        self._output.append(header)
        self._queued_bytes += len(header)

    def _queue_end(self, stream_id: int, state: _StreamState, kind: int) -> None:
        """Queue CLOSE or RESET.  At most one of each stream is ever late."""
        if state.read_closed and not state.answered:
            self._held.append(_header(stream_id, kind) + b"\0")
            self._release_held()
        else:
            self._queue(stream_id, kind)

    def _release_held(self) -> None:
        if not self._held:
            return
        now = self._now()
        refill = max(0.0, now - self._refilled_at) / LATE_INTERVAL_S
        self._late_tokens = min(LATE_BURST, self._late_tokens + refill)
        self._refilled_at = now
        while self._held and self._late_tokens >= 1:
            self._late_tokens -= 1
            frame = self._held.pop()
            self._output.append(frame)
            self._queued_bytes += len(frame)

    def _forget_if_done(self, stream_id: int, state: _StreamState) -> None:
        if state.read_closed and state.write_closed:
            self._forget(stream_id)

    def _forget(self, stream_id: int) -> None:
        del self._streams[stream_id]
        self._just_gone.add(stream_id)
        if stream_id & 1:
            self._outbound -= 1
        else:
            self._inbound -= 1


def _header(stream_id: int, kind: int) -> bytes:
    """``kind`` is the initiator's flag; the accepting side's is one less."""
    flag = kind if stream_id & 1 or kind == _NEW_STREAM else kind - 1
    return encode_varint(stream_id >> 1 << 3 | flag)


def _varint(data: bytes, offset: int) -> tuple[int, int] | None:
    """Value and next offset; None if the varint is incomplete."""
    value = 0
    for position, byte in enumerate(data[offset : offset + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < _CONTINUATION:
            if byte == 0 and position > 0:
                raise RemoteProtocolError("mplex_varint_not_minimal")
            return value, offset + position + 1
    if len(data) - offset >= _MAX_VARINT_BYTES:
        raise RemoteProtocolError("mplex_varint_too_long")
    return None
