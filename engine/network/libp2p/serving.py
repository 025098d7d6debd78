"""Matches streams with protocols: our proposals, and handlers for the peers'.

An inbound stream is a task from its first byte to the return of its handler.  The stream is closed
when the handler returns and reset when it raises.  A handler is not started before the peer has
been identified, so "connected" is always the first event that a protocol gets about a peer.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence

from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError, TransportError, TransportFault, broken_protocol
from engine.network.libp2p.connection import Connection
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multistream import Initiator, Responder, negotiate
from engine.network.libp2p.ports import ProtocolId, StreamHandler
from engine.network.libp2p.stream import MuxedStream

_LOGGER = logging.getLogger(__name__)


class StreamServer:
    def __init__(
        self,
        *,
        limits: HostLimits,
        counters: Counters,
        open_to_strangers: Collection[ProtocolId],
    ) -> None:
        self._limits = limits
        self._counters = counters
        self._open_to_strangers = open_to_strangers
        self._handlers: dict[ProtocolId, StreamHandler] = {}

    def set_handler(self, protocol: ProtocolId, handler: StreamHandler) -> None:
        self._handlers[protocol] = handler

    def protocols(self) -> Collection[ProtocolId]:
        return self._handlers.keys()

    async def propose(self, stream: MuxedStream, protocols: Sequence[ProtocolId]) -> None:
        """Agree on one of ``protocols``.  Raises TransportError; the stream is then reset."""
        try:
            async with asyncio.timeout(self._limits.stream_timeout_ms / 1_000):
                stream.select(await negotiate(Initiator(protocols), stream, stream.write))
        except BaseException as error:
            stream.reset_now("no protocol was agreed on")
            match error:
                case RemoteProtocolError():
                    self._counters.add(f"libp2p.{error.reason}")
                    text = f"the peer broke the protocol: {error}"
                    raise broken_protocol(text, error) from error
                case TimeoutError():
                    self._counters.add("libp2p.stream_timeout")
                    text = "the peer did not answer a new stream"
                    raise TransportError(text, TransportFault.NO_ANSWER) from None
                case _:
                    raise

    def admit(self, connection: Connection, stream: MuxedStream) -> bool:
        """Whether ``serve`` may be started for the stream.

        A peer can open and reset streams faster than their tasks end, so tasks are counted before
        they run.
        """
        if connection.handlers >= self._limits.max_inbound_streams:
            self._counters.add("libp2p.stream_handlers_limit")
            stream.reset_now("too many streams are being served")
            return False
        connection.handlers += 1
        return True

    async def serve(self, connection: Connection, stream: MuxedStream) -> None:
        """Run an admitted stream's handler.  Raises only CancelledError."""
        try:
            handler = await self._select(connection, stream)
            await handler(stream)
            stream.finish()
        except RemoteProtocolError as error:
            self._counters.add(f"libp2p.{error.reason}")
        except TransportError:
            self._counters.add("libp2p.inbound_stream_broken")
        except Exception:
            self._counters.add("libp2p.stream_handler_failed")
            _LOGGER.exception("a stream handler failed")
        finally:
            connection.handlers -= 1
            if not stream.finished:
                stream.reset_now("the handler of the stream failed")

    async def _select(self, connection: Connection, stream: MuxedStream) -> StreamHandler:
        try:
            async with asyncio.timeout(self._limits.stream_timeout_ms / 1_000):
                protocol = await negotiate(Responder(self._handlers), stream, stream.write)
        except TimeoutError:
            raise RemoteProtocolError("inbound_stream_timeout") from None
        stream.select(protocol)
        if protocol not in self._open_to_strangers:
            await connection.identified.wait()
            if connection.lost:
                raise TransportError("the peer was never identified")
        return self._handlers[protocol]
