"""yamux 1.0.0 (libp2p "yamux" spec, after hashicorp's): frames, windows and stream states.

Framing: version, type, flags, stream id, length; 12 bytes, big endian.  Each direction of a stream
starts with a window of 256 KiB.  We return window when the application has read half of it, so a
stream never buffers more than 256 KiB here.  A peer that sends more breaks the protocol.  Payload
is passed on as it arrives, so no frame is ever held whole.

A chunk from the socket can hold 20 000 frames of 12 bytes.  One call of ``receive`` handles a
limited number, to give other tasks a turn, and keeps the rest.

Our SYN and ACK are set on the stream's first regular frame.  Frames for closed streams are skipped:
the peer may have sent them before it knew.  Sans-I/O, see ``muxer.py``.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from engine.core.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
)
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

INITIAL_WINDOW = 256 * 1024
HEADER = struct.Struct(">BBHII")
MAX_FRAME_PAYLOAD = 65_507
"""A full frame and its header fill one Noise message; other implementations read up to a window."""
ACK_BACKLOG = 256
FRAMES_PER_CALL = 256
_MAX_WINDOW = 2**32 - 1
_MAX_STREAM_ID = 2**32 - 1


class FrameType(IntEnum):
    DATA = 0
    WINDOW_UPDATE = 1
    PING = 2
    GO_AWAY = 3


class Flag(IntFlag):
    SYN = 1
    ACK = 2
    FIN = 4
    RST = 8


_SYN, _ACK, _FIN, _RST = (int(flag) for flag in Flag)
_DATA, _WINDOW_UPDATE, _PING, _GO_AWAY = (int(kind) for kind in FrameType)
_ALL_FLAGS = _SYN | _ACK | _FIN | _RST


@dataclass(slots=True)
class _StreamState:
    pending_flags: int
    """SYN or ACK, until the first frame has carried it."""
    outbound: bool
    acknowledged: bool = False
    send_window: int = INITIAL_WINDOW
    receive_window: int = INITIAL_WINDOW
    unreturned: int = 0
    """Bytes that the application has read and that were not returned to the peer yet."""
    write_closed: bool = False
    read_closed: bool = False


class Yamux:
    """One side of a yamux session.  ``client`` is the side that dialled: its stream ids are odd."""

    def __init__(self, *, client: bool, max_inbound: int, max_outbound: int) -> None:
        self._client = client
        self._max_inbound = max_inbound
        self._max_outbound = max_outbound
        self._streams: dict[int, _StreamState] = {}
        self._inbound = 0
        self._outbound = 0
        self._unacknowledged = 0
        self._next_id = 1 if client else 2
        self._output: list[bytes | memoryview] = []
        self._queued_bytes = 0
        self._unhandled = b""
        self._header = bytearray()
        self._payload_left = 0
        self._payload_stream = 0
        self._payload_ends = False
        self._peer_leaves = False
        self._events: list[MuxerEvent] = []
        self._just_gone: set[int] = set()
        """Streams that ended in this call; their owners have not been notified yet."""

    has_ping = True
    returns_window = True
    next_output_at = None
    """Nothing is ever held back."""

    @property
    def queued_bytes(self) -> int:
        return self._queued_bytes

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def take_output(self) -> bytes:
        output = b"".join(self._output)
        self._output.clear()
        self._queued_bytes = 0
        return output

    # --- receiving ------------------------------------------------------------------------------

    @property
    def has_unhandled(self) -> bool:
        return bool(self._unhandled)

    def receive(self, data: bytes) -> list[MuxerEvent]:
        if self._unhandled:
            data = self._unhandled + data
        self._just_gone.clear()
        offset, end, steps = 0, len(data), 0
        try:
            while offset < end and steps < FRAMES_PER_CALL:
                steps += 1
                if self._payload_left:
                    offset = self._receive_payload(data, offset)
                elif not self._header and end - offset >= HEADER.size:
                    self._receive_header(*HEADER.unpack_from(data, offset))
                    offset += HEADER.size
                else:
                    missing = HEADER.size - len(self._header)
                    self._header += data[offset : offset + missing]
                    offset += missing
                    if len(self._header) == HEADER.size:
                        fields = HEADER.unpack(self._header)
                        self._header.clear()
                        self._receive_header(*fields)
        except RemoteProtocolError:
            self.leave(1)
            raise
        self._unhandled = data[offset:]
        events, self._events = self._events, []
        return events

    def _receive_payload(self, data: bytes, offset: int) -> int:
        piece = data[offset : offset + self._payload_left]
        self._payload_left -= len(piece)
        state = self._streams.get(self._payload_stream)
        if state is not None and not state.read_closed:
            self._events.append(DataReceived(self._payload_stream, piece))
        if not self._payload_left and self._payload_ends:
            self._receive_fin(self._payload_stream)
        return offset + len(piece)

    def _receive_header(
        self, version: int, kind: int, flags: int, stream_id: int, length: int
    ) -> None:
        if version != 0:
            raise RemoteProtocolError("yamux_bad_version")
        if flags & ~_ALL_FLAGS:
            raise RemoteProtocolError("yamux_bad_flags")
        if kind in (_DATA, _WINDOW_UPDATE):
            self._receive_stream_frame(kind, flags, stream_id, length)
        elif kind == _PING:
            self._receive_ping(flags, stream_id, length)
        elif kind == _GO_AWAY:
            if stream_id != 0:
                raise RemoteProtocolError("yamux_bad_stream_id")
            self._peer_leaves = True
            self._events.append(PeerLeaves(length))
        else:
            raise RemoteProtocolError("yamux_bad_type")

    def _receive_ping(self, flags: int, stream_id: int, opaque: int) -> None:
        if stream_id != 0:
            raise RemoteProtocolError("yamux_bad_stream_id")
        if flags & _SYN:
            self._queue(_PING, _ACK, 0, opaque)
        elif flags & _ACK:
            self._events.append(PongReceived(opaque))

    def _receive_stream_frame(self, kind: int, flags: int, stream_id: int, length: int) -> None:
        if stream_id == 0:
            raise RemoteProtocolError("yamux_bad_stream_id")
        if flags & _SYN:
            self._receive_syn(stream_id, flags)
        state = self._streams.get(stream_id)
        if state is not None and flags & _ACK and state.outbound and not state.acknowledged:
            state.acknowledged = True
            self._unacknowledged -= 1
        if kind == _DATA:
            self._receive_data(state, stream_id, length)
        elif state is not None and length:
            state.send_window += length
            if state.send_window > _MAX_WINDOW:
                raise RemoteProtocolError("yamux_window_overflow")
            self._events.append(WindowOpened(stream_id))
        if flags & _RST:
            self._receive_rst(stream_id)
        elif flags & _FIN:
            if self._payload_left:
                self._payload_ends = True  # after the payload
            else:
                self._receive_fin(stream_id)

    def _receive_syn(self, stream_id: int, flags: int) -> None:
        if (stream_id % 2 == 1) == self._client:
            raise RemoteProtocolError("yamux_bad_parity")
        if stream_id in self._streams or stream_id in self._just_gone:
            raise RemoteProtocolError("yamux_duplicate_stream")
        if flags & _RST:
            return
        if self._inbound >= self._max_inbound:
            self._queue(_WINDOW_UPDATE, _RST, stream_id, 0)
            self._events.append(StreamRefused())
            return
        self._streams[stream_id] = _StreamState(pending_flags=_ACK, outbound=False)
        self._inbound += 1
        self._events.append(StreamOpened(stream_id))

    def _receive_data(self, state: _StreamState | None, stream_id: int, length: int) -> None:
        if state is None:
            # Sent before the peer knew that the stream was gone: at most a window, skipped.
            if length > INITIAL_WINDOW:
                raise RemoteProtocolError("yamux_window_exceeded")
        elif state.read_closed:
            if length:  # an empty frame has only flags, such as a reset
                raise RemoteProtocolError("yamux_data_after_fin")
        elif length > state.receive_window:
            raise RemoteProtocolError("yamux_window_exceeded")
        else:
            state.receive_window -= length
        self._payload_left = length
        self._payload_stream = stream_id
        self._payload_ends = False

    def _receive_fin(self, stream_id: int) -> None:
        self._payload_ends = False
        state = self._streams.get(stream_id)
        if state is None or state.read_closed:
            return
        state.read_closed = True
        self._events.append(StreamEnded(stream_id))
        self._forget_if_done(stream_id, state)

    def _receive_rst(self, stream_id: int) -> None:
        if stream_id in self._streams:
            self._forget(stream_id)
            self._events.append(StreamReset(stream_id))

    # --- sending --------------------------------------------------------------------------------

    def open_stream(self) -> int:
        if self._peer_leaves:
            raise TransportError("the peer is closing the connection", TransportFault.LOST)
        if self._outbound >= self._max_outbound:
            text = f"{self._max_outbound} streams are open on the connection"
            raise TransportError(text, TransportFault.FULL)
        if self._unacknowledged >= ACK_BACKLOG:
            text = f"the peer has not answered {ACK_BACKLOG} new streams"
            raise TransportError(text, TransportFault.FULL)
        if self._next_id > _MAX_STREAM_ID:
            text = "the stream ids of the connection are used up"
            raise TransportError(text, TransportFault.FULL)
        stream_id = self._next_id
        self._next_id += 2
        self._streams[stream_id] = _StreamState(pending_flags=_SYN, outbound=True)
        self._outbound += 1
        self._unacknowledged += 1
        return stream_id

    def send(self, stream_id: int, data: bytes | memoryview) -> int:
        state = self._streams.get(stream_id)
        if state is None or state.write_closed:
            raise LocalProtocolError("a write to a stream whose writing half is closed")
        count = min(len(data), state.send_window, MAX_FRAME_PAYLOAD)
        if count == 0:
            return 0
        state.send_window -= count
        self._queue(_DATA, self._take_flags(state), stream_id, count)
        self._output.append(data if count == len(data) else data[:count])
        self._queued_bytes += count
        return count

    def consumed(self, stream_id: int, count: int) -> None:
        state = self._streams.get(stream_id)
        if state is None or state.read_closed:
            return
        state.unreturned += count
        if state.unreturned >= INITIAL_WINDOW // 2:
            flags = self._take_flags(state)
            self._queue(_WINDOW_UPDATE, flags, stream_id, state.unreturned)
            state.receive_window += state.unreturned
            state.unreturned = 0

    def close_write(self, stream_id: int) -> None:
        state = self._streams.get(stream_id)
        if state is None or state.write_closed:
            return
        state.write_closed = True
        self._queue(_WINDOW_UPDATE, _FIN | self._take_flags(state), stream_id, 0)
        self._forget_if_done(stream_id, state)

    def reset(self, stream_id: int) -> None:
        state = self._streams.get(stream_id)
        if state is None:
            return
        if not state.pending_flags & _SYN:  # otherwise the peer does not know it
            self._queue(_WINDOW_UPDATE, _RST | self._take_flags(state), stream_id, 0)
        self._forget(stream_id)

    def ping(self, opaque: int) -> None:
        self._queue(_PING, _SYN, 0, opaque)

    def leave(self, code: int) -> None:
        self._queue(_GO_AWAY, 0, 0, code)

    def _take_flags(self, state: _StreamState) -> int:
        flags, state.pending_flags = state.pending_flags, 0
        return flags

    def _queue(self, kind: int, flags: int, stream_id: int, length: int) -> None:
        self._output.append(HEADER.pack(0, kind, flags, stream_id, length))
        self._queued_bytes += HEADER.size

    def _forget_if_done(self, stream_id: int, state: _StreamState) -> None:
        if state.read_closed and state.write_closed:
            self._forget(stream_id)

    def _forget(self, stream_id: int) -> None:
        state = self._streams.pop(stream_id)
        self._just_gone.add(stream_id)
        if state.outbound:
            self._outbound -= 1
            if not state.acknowledged:
                self._unacknowledged -= 1
        else:
            self._inbound -= 1
