"""Pipes: ordered bytes to and from one peer, before anything is multiplexed.

A transport gives a ``Pipe``; WebSocket and Noise are each a ``PipeOnPipe``.  During the upgrade a
pipe is read with ``read_exactly``.  Then ``attach`` hands it to a ``PipeSink``, which is called on
the loop as bytes arrive, without a task in between.  ``write`` never blocks; the writer must watch
how much is queued.  The bytes are opaque here.
"""

import asyncio
from abc import abstractmethod
from typing import Protocol

from engine.core.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
)
from engine.network.libp2p.multiaddr import Multiaddr

MAX_EARLY_BYTES = 1024 * 1024
"""What may arrive before the pipe is attached."""


class PipeSink(Protocol):
    """Owner of an attached pipe.  Called on the loop; must not raise."""

    def bytes_received(self, data: bytes, /) -> None: ...

    def pipe_lost(self, error: Exception | None, /) -> None:
        """Called at least once; None means that the peer closed it."""

    def writing_paused(self) -> None: ...

    def writing_resumed(self) -> None: ...


class Pipe(Protocol):
    @property
    def remote_address(self) -> Multiaddr: ...

    @property
    def queued_bytes(self) -> int: ...

    async def read_exactly(self, count: int, /) -> bytes:
        """Raises TransportError, RemoteProtocolError.  Call only before ``attach``."""

    def write(self, data: bytes, /) -> None: ...

    def attach(self, sink: PipeSink, /) -> None: ...

    def pause_reading(self) -> None:
        """Give the sink no more bytes until ``resume_reading``; the peer is slowed down in time."""

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """Send what is queued, then close."""

    def abort(self) -> None: ...

    async def wait_closed(self) -> None: ...


class ReadBuffer:
    """Bytes that arrived and were not read yet; one reader at a time."""

    __slots__ = ("_data", "_ended", "_error", "_waiter")

    def __init__(self) -> None:
        self._data = bytearray()
        self._ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._data)

    @property
    def ended(self) -> bool:
        return self._ended

    def feed(self, data: bytes) -> None:
        self._data += data
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """Unread bytes are dropped.  The first error stays."""
        if self._error is None:
            self._error = error
            self._data.clear()
        self._wake()

    def take(self, limit: int) -> bytes:
        taken = bytes(self._data[:limit])
        del self._data[:limit]
        return taken

    async def read_some(self, limit: int) -> bytes:
        """b"" at the end.  Raises what ``fail`` was given."""
        while not self._data:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            await self._wait()
        return self.take(limit)

    async def wait_for(self, count: int) -> None:
        """Wait until ``count`` bytes are there.  Raises TransportError if the end comes first."""
        while len(self._data) < count:
            if self._error is not None:
                raise self._error
            if self._ended:
                text = f"the peer closed after {len(self._data)} of {count} bytes"
                raise TransportError(text, TransportFault.LOST)
            await self._wait()

    async def _wait(self) -> None:
        if self._waiter is not None:
            raise LocalProtocolError("two tasks read the same stream")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class EarlyBytes:
    """The part that all pipes share: buffers until attached, then pushes to the sink."""

    def __init__(self) -> None:
        self._early = ReadBuffer()
        self._sink: PipeSink | None = None
        self._is_lost = False
        self._loss: Exception | None = None

    async def read_exactly(self, count: int) -> bytes:
        await self._early.wait_for(count)
        return self._early.take(count)

    def attach(self, sink: PipeSink) -> None:
        """If the pipe is already lost, the sink is told so during this call."""
        self._sink = sink
        if len(self._early):
            sink.bytes_received(self._early.take(len(self._early)))
        if self._is_lost:
            sink.pipe_lost(self._loss)

    def deliver(self, data: bytes) -> None:
        """Raises RemoteProtocolError("early_bytes_limit")."""
        if self._sink is not None:
            self._sink.bytes_received(data)
        elif len(self._early) + len(data) > MAX_EARLY_BYTES:
            raise RemoteProtocolError("early_bytes_limit")
        else:
            self._early.feed(data)

    def lost(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost, self._loss = True, error
        if error is None:
            self._early.end()  # what came before can still be read
        else:
            self._early.fail(error)
        if self._sink is not None:
            self._sink.pipe_lost(error)

    def writing_paused(self) -> None:
        if self._sink is not None:
            self._sink.writing_paused()

    def writing_resumed(self) -> None:
        if self._sink is not None:
            self._sink.writing_resumed()


class PipeOnPipe(EarlyBytes):
    """A pipe whose bytes travel in messages of its own on an inner pipe.

    Part of a chunk with very many messages is left for later turns of the loop.  Until it is done,
    and while the sink is paused, nothing is read from the inner pipe.
    """

    def __init__(self, inner: Pipe) -> None:
        super().__init__()
        self._inner = inner
        self._broken = False
        """Whatever arrives is ignored."""
        self._held_by_sink = False
        self._has_unhandled = False
        self._turn_scheduled = False

    @abstractmethod
    def _handle(self, data: bytes) -> bool:
        """Handle some of what was left and of ``data``; return whether a later turn goes on."""

    # --- Pipe -----------------------------------------------------------------------------------

    @property
    def remote_address(self) -> Multiaddr:
        return self._inner.remote_address

    @property
    def queued_bytes(self) -> int:
        return self._inner.queued_bytes

    def pause_reading(self) -> None:
        self._held_by_sink = True
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._held_by_sink = False
        if self._has_unhandled:
            self._handle_later()
        else:
            self._inner.resume_reading()

    def close(self) -> None:
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()

    async def wait_closed(self) -> None:
        await self._inner.wait_closed()

    # --- PipeSink of the inner pipe -------------------------------------------------------------

    def bytes_received(self, data: bytes) -> None:
        if self._broken:
            return
        had_unhandled = self._has_unhandled
        self._has_unhandled = self._handle(data)
        if self._has_unhandled:
            self._inner.pause_reading()
            self._handle_later()
        elif had_unhandled and not self._stopped:
            self._inner.resume_reading()

    @property
    def _stopped(self) -> bool:
        return self._broken or self._held_by_sink

    def _handle_later(self) -> None:
        if not self._turn_scheduled:
            self._turn_scheduled = True
            asyncio.get_running_loop().call_soon(self._handle_more)

    def _handle_more(self) -> None:
        self._turn_scheduled = False
        if not self._held_by_sink:  # otherwise ``resume_reading`` continues
            self.bytes_received(b"")
