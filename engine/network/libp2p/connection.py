"""One secured, multiplexed connection: bytes in, events to streams, coalesced frames out.

Received data is decrypted, split into frames and passed to the streams in one call, without a task.
A chunk with very many frames takes several turns of the loop, and reading pauses until it is done.
Writes of streams are collected during one turn, then sealed and sent together.

A connection monitors itself.  After silence it sends a ping (the muxer's or, where it has none, on
a stream that the host opens), and drops the connection if there is no answer.  It also drops a peer
that accepts no bytes, and one that has had no stream for a long time.  Protocols and handshakes are
handled by the host.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol, assert_never

from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError, TransportError, TransportFault
from engine.core.problems import LinkEnded, LinkReason, PeerRefusal
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr
from engine.network.libp2p.muxer import (
    DataReceived,
    Muxer,
    MuxerEvent,
    PeerLeaves,
    PongReceived,
    StreamEnded,
    StreamOpened,
    StreamOverflowed,
    StreamRefused,
    StreamReset,
    WindowOpened,
)
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.ports import PeerId
from engine.network.libp2p.stream import MuxedStream

_CONGESTED_BYTES = 256 * 1024
_NORMAL = 0
_DROPPED_FOR: Mapping[str, LinkReason] = {
    "peer_takes_no_bytes": LinkReason.TAKES_NO_BYTES,
    "peer_silent": LinkReason.SILENT,
    "queued_bytes_limit": LinkReason.TOO_MUCH_QUEUED,
    "connections_per_peer_limit": LinkReason.SURPLUS,
    "connection_gave_way": LinkReason.GAVE_WAY,
}


class ConnectionOwner(Protocol):
    """The host, as its connections see it.  Called on the loop; must not raise."""

    def stream_opened(self, connection: "Connection", stream: MuxedStream, /) -> None: ...

    def connection_lost(self, connection: "Connection", reason: str, /) -> None: ...

    def probe(self, connection: "Connection", /) -> None:
        """Make the peer send something: its muxer has no ping."""

    async def round_trip(self, connection: "Connection", /) -> None:
        """The same, and return once it has.  Raises TransportError."""

    def is_kept(self, peer_id: PeerId, /) -> bool:
        """Whether the peer's connection may stay without a stream."""


class Connection:
    def __init__(  # noqa: PLR0913 - each is a different thing, and all are needed
        self,
        pipe: Pipe,
        muxer: Muxer,
        *,
        peer_id: PeerId,
        outbound: bool,
        owner: ConnectionOwner,
        limits: HostLimits,
        counters: Counters,
    ) -> None:
        self._pipe = pipe
        self._muxer = muxer
        self._peer_id = peer_id
        self.outbound = outbound
        self._owner = owner
        self._limits = limits
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self._streams: dict[int, MuxedStream] = {}
        self._unread_bytes = 0
        self._lost = False
        self._closing = False
        self._peer_leaves = False
        self._flush_scheduled = False
        self._catching_up = False
        self._turn_scheduled = False
        self._paused_at: float | None = None
        self._drain_waiters: list[asyncio.Future[None]] = []
        self._pings = 0
        self._ping_sent_at: float | None = None
        self._pinged_at: float | None = None
        """When the last ping was sent, whatever it was for; None once it is answered."""
        self._pongs_awaited: dict[int, asyncio.Future[None]] = {}
        self.established_at = self._loop.time()
        self._received_at = self._idle_since = self.established_at
        self._closing_timer: asyncio.TimerHandle | None = None
        self._watch_timer: asyncio.TimerHandle | None = None
        self._output_timer: asyncio.TimerHandle | None = None
        self._probes: set[int] = set()
        self.identified = asyncio.Event()
        """Set by the host when it knows the peer, or the connection is lost."""
        self.handlers = 0
        """Inbound streams being served, counted by the host."""
        self.bytes_in = self.bytes_out = 0
        """Inside the encryption."""
        self.round_trip_s: float | None = None
        """Of the last ping that was answered."""
        self.measured_at = 0.0
        self.ended: LinkEnded | PeerRefusal = LinkEnded(LinkReason.WE_CLOSED)
        """Why it ended, once it has."""

    def start(self) -> None:
        """Take over the pipe.  Events may be raised during this call."""
        self._pipe.attach(self)
        if not self._lost:
            self._watch_later()

    # --- for the host ---------------------------------------------------------------------------

    @property
    def remote_address(self) -> Multiaddr:
        return self._pipe.remote_address

    @property
    def usable(self) -> bool:
        """Whether opening a stream may be tried."""
        return not (self._lost or self._closing or self._peer_leaves)

    @property
    def lost(self) -> bool:
        return self._lost

    @property
    def received_at(self) -> float:
        """When anything came last, by the loop's clock."""
        return self._received_at

    def measured(self, round_trip_s: float) -> None:
        self.round_trip_s, self.measured_at = round_trip_s, self._loop.time()

    @property
    def stream_count(self) -> int:
        return len(self._streams)

    def open_stream(self, *, is_probe: bool = False) -> MuxedStream:
        """Raises TransportError.  A probe does not count as use: the connection may grow idle."""
        if not self.usable:
            raise TransportError(
                f"the connection to {self._peer_id} is closing", TransportFault.LOST
            )
        stream_id = self._muxer.open_stream()
        if is_probe:
            self._probes.add(stream_id)
        return self._add_stream(stream_id)

    def close(self, why: LinkEnded | PeerRefusal | None = None) -> None:
        """Say goodbye, send what is queued, close; abort if the peer does not accept it."""
        if self._closing or self._lost:
            return
        self._closing = True
        self.ended = why or self.ended
        self._muxer.leave(_NORMAL)
        self._flush()
        self._pipe.close()
        self._close_later(self._pipe.abort)

    def drop(self, reason: str) -> None:
        """Abort immediately; counted under ``reason``."""
        if self._lost:
            return
        self._counters.add(f"libp2p.{reason}")
        self._pipe.abort()
        self._lose(reason, LinkEnded(_DROPPED_FOR.get(reason, LinkReason.WE_CLOSED)))

    async def wait_closed(self) -> None:
        await self._pipe.wait_closed()

    # --- StreamOwner ----------------------------------------------------------------------------

    @property
    def peer_id(self) -> PeerId:
        return self._peer_id

    @property
    def muxer(self) -> Muxer:
        return self._muxer

    @property
    def congested(self) -> bool:
        return self._paused_at is not None or self._muxer.queued_bytes >= _CONGESTED_BYTES

    async def drained(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._drain_waiters.append(waiter)
        await waiter

    async def confirm(self) -> None:
        if self._lost:
            text = f"the connection to {self._peer_id} is lost"
            raise TransportError(text, TransportFault.LOST)
        if not self._muxer.has_ping:
            await self._owner.round_trip(self)
            return
        opaque, answered = self._ping(), self._loop.create_future()
        self._pongs_awaited[opaque] = answered
        try:
            await answered
        finally:
            del self._pongs_awaited[opaque]

    def flush_soon(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def bytes_read(self, count: int) -> None:
        self._unread_bytes -= count

    def forget_stream(self, stream_id: int) -> None:
        if self._streams.pop(stream_id, None) is None:
            return
        if stream_id in self._probes:
            self._probes.remove(stream_id)
        elif len(self._streams) == len(self._probes):
            self._idle_since = self._loop.time()

    # --- PipeSink -------------------------------------------------------------------------------

    def bytes_received(self, data: bytes) -> None:
        if self._lost:
            return
        self._received_at = self._loop.time()
        self.bytes_in += len(data)
        self._handle_frames(data)

    def _handle_frames(self, data: bytes) -> None:
        try:
            events = self._muxer.receive(data)
        except RemoteProtocolError as error:
            self._flush()  # the muxer has queued the reason
            self._pipe.close()
            self._close_later(self._pipe.abort)
            self._counters.add(f"libp2p.{error.reason}")
            self._lose(error.reason, LinkEnded(LinkReason.BROKE_PROTOCOL, error.reason))
            return
        for event in events:
            self._dispatch(event)
        if self._muxer.queued_bytes:
            self.flush_soon()
        self._pace()

    def _pace(self) -> None:
        """Resume reading once all received data has been handled."""
        was_catching_up = self._catching_up
        self._catching_up = self._muxer.has_unhandled
        if not self._catching_up:
            if was_catching_up:
                self._pipe.resume_reading()
        elif not self._turn_scheduled:
            self._pipe.pause_reading()
            self._turn_scheduled = True
            self._loop.call_soon(self._handle_more)

    def _handle_more(self) -> None:
        self._turn_scheduled = False
        if not self._lost:
            self._handle_frames(b"")

    def pipe_lost(self, error: Exception | None) -> None:
        if self._closing_timer is not None:
            self._closing_timer.cancel()
        if isinstance(error, RemoteProtocolError):
            self._counters.add(f"libp2p.{error.reason}")
        self._lose("the peer closed it" if error is None else str(error), _ended_by(error))

    def writing_paused(self) -> None:
        self._paused_at = self._loop.time()

    def writing_resumed(self) -> None:
        self._paused_at = None
        self._wake_writers()

    # --- inside ---------------------------------------------------------------------------------

    def _dispatch(self, event: MuxerEvent) -> None:
        match event:
            case DataReceived(stream_id, data):
                self._receive_data(stream_id, data)
            case (
                WindowOpened(stream_id)
                | StreamEnded(stream_id)
                | StreamReset(stream_id)
                | StreamOverflowed(stream_id)
            ):
                stream = self._streams.get(stream_id)
                if stream is not None:
                    self._dispatch_to(stream, event)
            case StreamOpened(stream_id):
                self._owner.stream_opened(self, self._add_stream(stream_id))
            case StreamRefused():
                self._counters.add("libp2p.inbound_streams_limit")
            case PongReceived(opaque):
                self._ponged(opaque)
            case PeerLeaves():
                if not self._peer_leaves:  # a repetition must not postpone the end
                    self._peer_leaves = True
                    self._close_later(self._pipe.close)
            case _:
                assert_never(event)

    def _ponged(self, opaque: int) -> None:
        if opaque == self._pings:
            self._ping_sent_at = None
            if self._pinged_at is not None:
                self.measured(self._loop.time() - self._pinged_at)
                self._pinged_at = None
        answered = self._pongs_awaited.get(opaque)
        if answered is not None and not answered.done():
            answered.set_result(None)

    def _dispatch_to(
        self,
        stream: MuxedStream,
        event: WindowOpened | StreamEnded | StreamReset | StreamOverflowed,
    ) -> None:
        match event:
            case WindowOpened():
                stream.window_opened()
            case StreamEnded():
                stream.ended()
            case StreamReset():
                stream.fail(TransportError("the peer reset the stream", TransportFault.LOST))
            case StreamOverflowed():
                self._counters.add("libp2p.stream_buffer_limit")
                stream.fail(
                    TransportError("too much was unread on this stream", TransportFault.LOST)
                )
            case _:
                assert_never(event)

    def _add_stream(self, stream_id: int) -> MuxedStream:
        stream = MuxedStream(
            self,
            stream_id,
            write_timeout_ms=self._limits.write_timeout_ms,
            linger_timeout_ms=self._limits.linger_timeout_ms,
        )
        self._streams[stream_id] = stream
        return stream

    def _receive_data(self, stream_id: int, data: bytes) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        self._unread_bytes += len(data)
        stream.data_received(data)
        if self._unread_bytes > self._limits.max_unread_bytes:
            self._counters.add("libp2p.unread_bytes_limit")
            stream.reset_now("too much is unread on this connection")

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._lost:
            return
        output = self._muxer.take_output()
        if output:
            self.bytes_out += len(output)
            self._pipe.write(output)
        if self._muxer.next_output_at is not None and self._output_timer is None:
            self._output_timer = self._loop.call_at(self._muxer.next_output_at, self._flush_held)
        if self._pipe.queued_bytes > self._limits.max_queued_bytes:
            self.drop("queued_bytes_limit")
        elif self._paused_at is None:
            self._wake_writers()

    def _flush_held(self) -> None:
        self._output_timer = None
        self._flush()

    def _wake_writers(self) -> None:
        waiters, self._drain_waiters = self._drain_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _lose(self, reason: str, ended: LinkEnded) -> None:
        if self._lost:
            return
        self._lost = True
        if not self._closing:
            self.ended = ended
        for timer in (self._watch_timer, self._output_timer):
            if timer is not None:
                timer.cancel()
        text = f"the connection to {self._peer_id} is lost: {reason}"
        error = TransportError(text, TransportFault.LOST)
        for stream in tuple(self._streams.values()):
            stream.fail(error)
        for answered in self._pongs_awaited.values():
            if not answered.done():
                answered.set_exception(error)
        self._wake_writers()
        self._owner.connection_lost(self, reason)

    # --- watching -------------------------------------------------------------------------------

    def _close_later(self, action: Callable[[], None]) -> None:
        """Give the peer a moment, then call ``action`` unless the pipe has closed."""
        if self._closing_timer is not None:
            self._closing_timer.cancel()
        delay = self._limits.close_timeout_ms / 1_000
        self._closing_timer = self._loop.call_later(delay, action)

    def _watch_later(self) -> None:
        self._watch_timer = self._loop.call_later(
            min(self._limits.ping_interval_ms, self._limits.ping_timeout_ms) / 2_000, self._watch
        )

    def _watch(self) -> None:
        if self._lost:
            return
        reason = self._overdue(self._loop.time())
        if reason is not None:
            self.drop(reason)
            return
        self._watch_later()

    def _overdue(self, now: float) -> str | None:
        limits = self._limits
        if self._paused_at is not None and now - self._paused_at > limits.write_timeout_ms / 1_000:
            return "peer_takes_no_bytes"
        silent = now - self._received_at
        if self._ping_sent_at is None:
            if silent >= limits.ping_interval_ms / 1_000:
                self._ping_sent_at = now
                self._probe()
        elif self._received_at > self._ping_sent_at:
            self._ping_sent_at = None
        elif now - self._ping_sent_at >= limits.ping_timeout_ms / 1_000:
            return "peer_silent"
        in_use = len(self._streams) > len(self._probes)
        idle = not in_use and now - self._idle_since > limits.idle_timeout_ms / 1_000
        if idle and not self._owner.is_kept(self._peer_id):
            self._counters.add("libp2p.idle_connection_closed")
            self.close(LinkEnded(LinkReason.UNUSED))
        return None

    def _probe(self) -> None:
        if self._muxer.has_ping:
            self._ping()
        else:
            self._owner.probe(self)

    def _ping(self) -> int:
        """Return what its answer will bear."""
        self._pings = (self._pings + 1) % 2**32
        self._pinged_at = self._loop.time()
        self._muxer.ping(self._pings)
        self.flush_soon()
        return self._pings


def _ended_by(error: Exception | None) -> LinkEnded:
    match error:
        case None:
            return LinkEnded(LinkReason.PEER_CLOSED)
        case RemoteProtocolError(reason=reason):
            return LinkEnded(LinkReason.BROKE_PROTOCOL, reason)
        case _:
            return LinkEnded(LinkReason.LOST)
