"""One multiplexed stream, as protocols use it: ``ports.Stream`` over a muxer.

Reading returns window to the peer only for bytes that were really read, so an application that does
not read stops its own peer only.  Writing goes straight into the muxer while the peer's window and
the connection's queue have room, and waits otherwise.  There is one reader; writers queue up.
"""

import asyncio
from collections import deque
from typing import Protocol

from engine.core.errors import LocalProtocolError, TransportError, TransportFault
from engine.network.libp2p.muxer import Muxer
from engine.network.libp2p.pipe import ReadBuffer
from engine.network.libp2p.ports import PeerId, ProtocolId


class StreamOwner(Protocol):
    """The connection, as its streams see it."""

    @property
    def peer_id(self) -> PeerId: ...

    @property
    def muxer(self) -> Muxer: ...

    @property
    def congested(self) -> bool:
        """More is queued than the peer accepts at the moment."""

    async def drained(self) -> None:
        """Wait until ``congested`` may be over."""

    async def confirm(self) -> None:
        """See ``ports.Stream``."""

    def flush_soon(self) -> None: ...

    def bytes_read(self, count: int, /) -> None: ...

    def forget_stream(self, stream_id: int, /) -> None:
        """The stream accepts no more events."""


class MuxedStream:
    def __init__(
        self,
        owner: StreamOwner,
        stream_id: int,
        *,
        write_timeout_ms: int,
        linger_timeout_ms: int,
    ) -> None:
        self._owner = owner
        self._stream_id = stream_id
        self._write_timeout = write_timeout_ms / 1_000
        self._linger_timeout = linger_timeout_ms / 1_000
        self._protocol: ProtocolId | None = None
        self._buffer = ReadBuffer()
        self._error: TransportError | None = None
        self._write_closed = False
        self._write_lock = asyncio.Lock()
        self._window_waiters: deque[asyncio.Future[None]] = deque()
        self._finished = False
        self._linger: asyncio.TimerHandle | None = None

    # --- ports.Stream ---------------------------------------------------------------------------

    @property
    def peer_id(self) -> PeerId:
        return self._owner.peer_id

    @property
    def protocol(self) -> ProtocolId:
        if self._protocol is None:
            raise LocalProtocolError("the stream's protocol is still being negotiated")
        return self._protocol

    @property
    def returns_window(self) -> bool:
        return self._owner.muxer.returns_window

    async def read_some(self, limit: int) -> bytes:
        if limit < 1:
            raise LocalProtocolError("a read of less than one byte")
        data = await self._buffer.read_some(limit)
        self._consumed(len(data))
        return data

    async def read_exactly(self, count: int) -> bytes:
        """Counts above the window are read piece by piece, so that the peer can go on."""
        pieces: list[bytes] = []
        missing = count
        while missing:
            piece = await self._buffer.read_some(missing)
            if not piece:
                text = f"the stream ended {missing} bytes too early"
                raise TransportError(text, TransportFault.LOST)
            self._consumed(len(piece))
            pieces.append(piece)
            missing -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def write(self, data: bytes) -> None:
        self._check_writable()
        rest: bytes | memoryview = data
        if not self._write_lock.locked() and not self._owner.congested:
            sent = self._owner.muxer.send(self._stream_id, data)
            self._owner.flush_soon()
            if sent == len(data):
                return
            rest = memoryview(data)[sent:]
        await self._write_rest(memoryview(rest), started=len(rest) < len(data))

    async def confirm(self) -> None:
        self._check_writable()
        await self._owner.confirm()

    async def close_write(self) -> None:
        async with self._write_lock:
            if self._error is not None:
                raise self._error
            self._close_write_now()

    async def reset(self) -> None:
        self.reset_now("the stream was reset by this side")

    # --- for the host ---------------------------------------------------------------------------

    @property
    def owner(self) -> StreamOwner:
        return self._owner

    @property
    def finished(self) -> bool:
        """The handler is done with it, or it is broken."""
        return self._finished or self._error is not None

    def select(self, protocol: ProtocolId) -> None:
        self._protocol = protocol

    def reset_now(self, reason: str) -> None:
        if self._error is None:
            self._owner.muxer.reset(self._stream_id)
            self._owner.flush_soon()
            self._break(TransportError(reason, TransportFault.LOST), keep_what_came=False)

    def finish(self) -> None:
        """The handler has returned: close our half, and skip further input."""
        if self._error is not None or self._finished:
            return
        self._finished = True
        self._close_write_now()
        self._consumed(len(self._buffer.take(len(self._buffer))))
        if not self._buffer.ended:
            self._linger = asyncio.get_running_loop().call_later(
                self._linger_timeout, self.reset_now, "the peer never closed its half"
            )

    # --- events of the muxer --------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._finished:
            self._owner.bytes_read(len(data))
            self._owner.muxer.consumed(self._stream_id, len(data))
        else:
            self._buffer.feed(data)

    def ended(self) -> None:
        self._buffer.end()
        if self._write_closed:
            self._done()

    def window_opened(self) -> None:
        while self._window_waiters:
            waiter = self._window_waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: TransportError) -> None:
        """Both halves are gone.  If the peer had ended its half, what came can still be read."""
        if self._error is None:
            self._break(error, keep_what_came=self._buffer.ended)

    # --- inside ---------------------------------------------------------------------------------

    def _break(self, error: TransportError, *, keep_what_came: bool) -> None:
        self._error = error
        if not keep_what_came:
            self._owner.bytes_read(len(self._buffer))
            self._buffer.fail(error)
        self.window_opened()
        self._done()

    def _done(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        self._owner.forget_stream(self._stream_id)

    def _consumed(self, count: int) -> None:
        if count:
            self._owner.bytes_read(count)
            self._owner.muxer.consumed(self._stream_id, count)
            self._owner.flush_soon()

    def _check_writable(self) -> None:
        if self._error is not None:
            raise self._error
        if self._write_closed:
            raise LocalProtocolError("a write after close_write")

    def _close_write_now(self) -> None:
        if self._write_closed:
            return
        self._write_closed = True
        self._owner.muxer.close_write(self._stream_id)
        self._owner.flush_soon()
        if self._buffer.ended:
            self._done()

    async def _write_rest(self, rest: memoryview, *, started: bool) -> None:
        """``started``: part of the data was sent, so giving up must break the stream."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._write_timeout) as progress, self._write_lock:
                while rest:
                    if self._owner.congested:
                        await self._owner.drained()
                    self._check_writable()
                    sent = 0
                    if not self._owner.congested:
                        sent = self._owner.muxer.send(self._stream_id, rest)
                        self._owner.flush_soon()
                        if not sent:
                            await self._wait_for_window()
                    if sent:
                        started = True
                        rest = rest[sent:]
                        progress.reschedule(loop.time() + self._write_timeout)
        except TimeoutError:
            self.reset_now("the peer took no bytes in time")
            raise TransportError(
                "the peer took no bytes in time", TransportFault.NO_ANSWER
            ) from None
        except asyncio.CancelledError:
            if started:
                self.reset_now("a write was cancelled half-way")
            raise

    async def _wait_for_window(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._window_waiters.append(waiter)
        await waiter
