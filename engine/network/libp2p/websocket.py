"""WebSocket (RFC 6455): the transport of peers in browsers and behind HTTP proxies.

libp2p "websockets" spec: after the upgrade, binary frames carry the same bytes as a TCP connection,
and frame boundaries have no meaning.  A ``WebSocketPipe`` is a ``Pipe`` on a ``Pipe``, like the
secured channel.  The library ``websockets`` parses and makes the frames, without I/O.  The host
gets an inbound pipe before its HTTP upgrade is done, so that its limits on handshakes cover the
upgrade; writes until then wait.

``/ws`` is listened on and dialled.  ``/wss`` is only dialled, with certificates checked against the
system's; to be reached by it, put a TLS proxy before ``/ws``.  All origins are accepted, because
Noise proves the peer's identity.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable

from msgspec.structs import replace
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.uri import WebSocketURI

from engine.core.errors import RemoteProtocolError, TransportError, TransportFault, broken_protocol
from engine.network.libp2p.multiaddr import Layer, Multiaddr
from engine.network.libp2p.pipe import Pipe, PipeOnPipe
from engine.network.libp2p.tcp import Listener, TcpTransport

MAX_FRAME_BYTES = 1024 * 1024
"""Of received frames; a frame is held until it is complete."""
SENT_FRAME_BYTES = 128 * 1024
MAX_UPGRADE_BYTES = 64 * 1024
"""Of HTTP: request or response, including the page of a server without WebSocket."""
MAX_QUEUED_BYTES = 8 * 1024 * 1024
"""For pongs to a peer that does not read; a connection's own bound is lower."""
EVENTS_PER_TURN = 256
_STEP_BYTES = 2 * 1024  # 1 000 empty frames: the most for the parser at once
_MAX_EARLY_WRITES = 64
_NORMAL_CLOSURE = 1000
_LINGER_S = 1.0

_QUIET = logging.getLogger(f"{__name__}.frames")
_QUIET.setLevel(logging.CRITICAL)  # its debug lines hold frames; its errors reach us as exceptions


class WebSocketPipe(PipeOnPipe):
    """One WebSocket, on top of a TCP or TLS connection."""

    def __init__(
        self, inner: Pipe, frames: ClientProtocol | ServerProtocol, *, layer: Layer
    ) -> None:
        super().__init__(inner)
        self._frames = frames
        self._layer = layer
        self._early_writes: list[bytes] = []
        self._upgrade_bytes = 0
        self._error: Exception | None = None
        self._closing_timer: asyncio.TimerHandle | None = None
        self._unhandled = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the upgrade is; holds its error if it fails."""
        self.opened.add_done_callback(_retrieve)  # an accepting caller does not await it
        if isinstance(frames, ClientProtocol):
            frames.send_request(frames.connect())
            self._flush()
        inner.attach(self)

    # --- Pipe -----------------------------------------------------------------------------------

    @property
    def remote_address(self) -> Multiaddr:
        return replace(self._inner.remote_address, layer=self._layer)

    def write(self, data: bytes) -> None:
        if self._frames.state is State.OPEN:
            for start in range(0, len(data), SENT_FRAME_BYTES):
                self._frames.send_binary(memoryview(data)[start : start + SENT_FRAME_BYTES])
            self._flush()
        elif self._frames.state is State.CONNECTING and not self._broken:
            self._early_writes.append(data)
            if len(self._early_writes) > _MAX_EARLY_WRITES:
                self._break(
                    TransportError("too much was written before the upgrade", TransportFault.FULL)
                )

    def close(self) -> None:
        if self._frames.state is State.OPEN:
            self._frames.send_close(_NORMAL_CLOSURE)
            self._flush()
        self._inner.close()

    # --- PipeSink of the inner pipe -------------------------------------------------------------

    def _handle(self, data: bytes) -> bool:
        data = self._unhandled + data if self._unhandled else data
        offset = events = 0
        while offset < len(data) and events < EVENTS_PER_TURN and not self._stopped:
            end = offset + _STEP_BYTES
            if self._frames.state is State.CONNECTING:  # frames wait until the upgrade is done
                end = data.find(b"\n", offset, end) + 1 or end
            events += self._receive(data[offset:end])
            offset = end
        self._unhandled = data[offset:]
        return bool(self._unhandled) and not self._broken

    def pipe_lost(self, error: Exception | None) -> None:
        self._broken = True
        if self._closing_timer is not None:
            self._closing_timer.cancel()
        if not self.opened.done():
            reason = "the connection ended before the WebSocket was open"
            self.opened.set_exception(error or TransportError(reason, TransportFault.LOST))
        self.lost(self._error or error)

    # --- inside ---------------------------------------------------------------------------------

    def _receive(self, data: bytes) -> int:
        """Return the number of frames."""
        if self._frames.state is State.CONNECTING:
            self._upgrade_bytes += len(data)
            if self._upgrade_bytes > MAX_UPGRADE_BYTES:
                self._break(RemoteProtocolError("websocket_upgrade_too_long"))
                return 0
        self._frames.receive_data(data)
        events = self._frames.events_received()
        for event in events:
            if isinstance(event, Frame):
                self._receive_frame(event)
            else:
                self._receive_upgrade(event)
        self._flush()
        if self._frames.handshake_exc is not None:
            self._break(_refusal(self._frames.handshake_exc))
        elif self._frames.parser_exc is not None:
            self._break(RemoteProtocolError("websocket_bad_frame"))
        return len(events)

    def _receive_frame(self, frame: Frame) -> None:
        if self._broken:
            return
        match frame.opcode:
            case Opcode.BINARY | Opcode.CONT:
                try:
                    self.deliver(bytes(frame.data))
                except RemoteProtocolError as error:
                    self._break(error)
            case Opcode.TEXT:
                self._break(RemoteProtocolError("websocket_text"))
            case Opcode.CLOSE:
                self._flush()
                self._broken = True
                self._close_soon()
            case _:
                pass  # a ping has been answered by the parser

    def _receive_upgrade(self, event: Request | Response) -> None:
        if isinstance(self._frames, ServerProtocol) and isinstance(event, Request):
            self._frames.send_response(self._frames.accept(event))
        if self._frames.state is State.OPEN:
            early, self._early_writes = self._early_writes, []
            for data in early:
                self._frames.send_binary(data)
            if not self.opened.done():
                self.opened.set_result(None)

    def _flush(self) -> None:
        output = b"".join(self._frames.data_to_send())
        if output:
            self._inner.write(output)
        if self._inner.queued_bytes > MAX_QUEUED_BYTES:
            self._break(RemoteProtocolError("websocket_queue_limit"))

    def _break(self, error: Exception) -> None:
        """Send what is queued (perhaps the reason), then notify the sink."""
        if self._broken:
            return
        self._broken, self._error = True, error
        if not self.opened.done():
            self.opened.set_exception(error)
        self._close_soon()

    def _close_soon(self) -> None:
        self._inner.close()
        if self._closing_timer is None:
            loop = asyncio.get_running_loop()
            self._closing_timer = loop.call_later(_LINGER_S, self._inner.abort)


class WebSocketTransport:
    """``make_tls`` makes the TLS context; called once, in a thread."""

    def __init__(
        self,
        tcp: TcpTransport,
        *,
        make_tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._tcp = tcp
        self._make_tls = make_tls
        self._tls: ssl.SSLContext | None = None

    def carries(self, address: Multiaddr) -> bool:
        return address.layer in (Layer.WS, Layer.WSS)

    async def listen(self, address: Multiaddr, accept: Callable[[Pipe], None]) -> Listener:
        if address.layer is Layer.WSS:
            raise TransportError(
                f"cannot listen on {address}: use /ws, and a proxy before it for TLS",
                TransportFault.CANNOT_LISTEN_TLS,
                str(address),
            )

        def accept_socket(pipe: Pipe) -> None:
            frames = ServerProtocol(max_size=(None, MAX_FRAME_BYTES), logger=_QUIET)
            accept(WebSocketPipe(pipe, frames, layer=Layer.WS))

        listener = await self._tcp.listen(address, accept_socket)
        return replace(listener, address=replace(listener.address, layer=Layer.WS))

    async def dial(self, address: Multiaddr) -> Pipe:
        secure = address.layer is Layer.WSS
        inner = await self._tcp.dial(address, tls=await self._tls_context() if secure else None)
        frames = ClientProtocol(_uri(address), max_size=(None, MAX_FRAME_BYTES), logger=_QUIET)
        pipe = WebSocketPipe(inner, frames, layer=address.layer)
        try:
            await pipe.opened
        except BaseException as error:
            pipe.abort()
            if isinstance(error, TransportError):
                raise error.during(f"cannot connect to {address}") from error
            if isinstance(error, RemoteProtocolError):
                raise broken_protocol(f"cannot connect to {address}: {error}", error) from error
            raise
        return pipe

    async def _tls_context(self) -> ssl.SSLContext:
        # Reads a hundred certificates, so not on the loop.
        if self._tls is None:
            self._tls = await asyncio.to_thread(self._make_tls)
        return self._tls


def _uri(address: Multiaddr) -> WebSocketURI:
    secure = address.layer is Layer.WSS
    return WebSocketURI(secure=secure, host=address.host, port=address.port, path="/", query="")


def _refusal(error: Exception) -> RemoteProtocolError | TransportError:
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        text = f"a web server answered {status} and opened no WebSocket"
        return TransportError(text, TransportFault.NO_WEBSOCKET, str(status))
    return RemoteProtocolError("websocket_bad_upgrade", type(error).__name__)


def _retrieve(future: "asyncio.Future[None]") -> None:
    if not future.cancelled():
        future.exception()
