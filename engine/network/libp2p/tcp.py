"""TCP: the transport below all others.  Listens and dials; each connection is a ``Pipe``.

Addresses are multiaddrs; errors name the address and the operating system's reason.  Other layers
have their own class with ``listen`` and ``dial`` (``websocket.py`` dials its sockets here, with TLS
or without).  The layers above add libp2p.
"""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from engine.core.errors import RemoteProtocolError, TransportError, TransportFault
from engine.network.libp2p.multiaddr import HostKind, Layer, Multiaddr, multiaddr_of_socket
from engine.network.libp2p.pipe import EarlyBytes, Pipe

_FAMILIES = {
    HostKind.IP4: socket.AF_INET,
    HostKind.DNS4: socket.AF_INET,
    HostKind.IP6: socket.AF_INET6,
    HostKind.DNS6: socket.AF_INET6,
    HostKind.DNS: socket.AF_UNSPEC,
}
_WRITE_HIGH_WATER = 256 * 1024
_SMALL_READ, _LARGE_READ = 8 * 1024, 256 * 1024
_LOST_EARLY = "the connection was lost before it was established"
_CLOSED = "the other side closed the connection"
_BACKLOG = 256
_HAPPY_EYEBALLS_S = 0.25  # RFC 8305
# Documentation addresses (RFC 5737, RFC 3849): routed like any far host, but unused.
_FAR_IP4, _FAR_IP6 = "192.0.2.1", "2001:db8::1"


@dataclass(slots=True)
class Traffic:
    """Bytes on all connections since the start."""

    received: int = 0
    sent: int = 0


class Listener(Protocol):
    @property
    def address(self) -> Multiaddr:
        """Where it listens, with the actual port."""

    def close(self) -> None: ...

    async def wait_closed(self) -> None: ...


class Transport(Protocol):
    def carries(self, address: Multiaddr, /) -> bool: ...

    async def listen(self, address: Multiaddr, accept: Callable[[Pipe], None], /) -> Listener:
        """Raises TransportError."""

    async def dial(self, address: Multiaddr, /) -> Pipe:
        """Raises TransportError."""


class TcpPipe(EarlyBytes, asyncio.BufferedProtocol):
    """One TCP connection.

    It has its own read buffer. asyncio's would be 256 KiB, allocated for every read: with the C
    library's allocator that is three system calls, and a third of the time of a short message.
    """

    def __init__(
        self,
        traffic: Traffic,
        accept: Callable[[Pipe], None] | None = None,
        *,
        reached: Multiaddr | None = None,
    ) -> None:
        """``reached``: the peer's address, if it is not what the socket is connected to."""
        super().__init__()
        self._traffic = traffic
        self._accept = accept
        self._transport: asyncio.Transport | None = None
        self._remote_address = reached
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = memoryview(bytearray(_SMALL_READ))

    # --- asyncio.BufferedProtocol ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        peer = self._transport.get_extra_info("peername")
        connection = self._transport.get_extra_info("socket")
        if peer is None or connection is None:  # gone before it was accepted
            self._transport.abort()
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._remote_address is None:
            self._remote_address = multiaddr_of_socket(peer[0], peer[1])
        if self._accept is not None:
            self._accept(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 -- the loop's idea of it
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """A peer that sends much gets a larger buffer, and loses it when it stops."""
        data = bytes(self._buffer[:nbytes])
        if nbytes == len(self._buffer) < _LARGE_READ:
            self._buffer = memoryview(bytearray(_LARGE_READ))
        elif nbytes < _SMALL_READ < len(self._buffer):
            self._buffer = memoryview(bytearray(_SMALL_READ))
        self.data_received(data)

    def data_received(self, data: bytes) -> None:
        self._traffic.received += len(data)
        try:
            self.deliver(data)
        except RemoteProtocolError as error:
            self.abort()
            self.lost(error)

    def connection_lost(self, exc: Exception | None) -> None:
        error = (
            None if exc is None else TransportError(f"connection lost: {exc}", TransportFault.LOST)
        )
        self.lost(error)
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        self.writing_paused()

    def resume_writing(self) -> None:
        self.writing_resumed()

    async def start_tls(self, tls: ssl.SSLContext, server_hostname: str) -> None:
        """Send and receive all further bytes under TLS.  Raises OSError, TransportError."""
        if self._transport is None:
            raise TransportError(_LOST_EARLY, TransportFault.LOST)
        upgraded = await asyncio.get_running_loop().start_tls(
            self._transport, self, tls, server_hostname=server_hostname
        )
        if upgraded is None:
            raise TransportError(_LOST_EARLY, TransportFault.LOST)
        self._transport = upgraded
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)

    # --- Pipe -----------------------------------------------------------------------------------

    @property
    def remote_address(self) -> Multiaddr:
        if self._remote_address is None:
            raise TransportError(_LOST_EARLY, TransportFault.LOST)
        return self._remote_address

    @property
    def queued_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._traffic.sent += len(data)
            self._transport.write(data)

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def wait_closed(self) -> None:
        await asyncio.shield(self._closed)


class TcpListener(Struct, frozen=True):
    address: Multiaddr
    server: asyncio.Server

    def close(self) -> None:
        self.server.close()

    async def wait_closed(self) -> None:
        await self.server.wait_closed()


class TcpTransport:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def carries(self, address: Multiaddr) -> bool:
        return address.layer is Layer.RAW

    async def listen(self, address: Multiaddr, accept: Callable[[Pipe], None]) -> TcpListener:
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                lambda: TcpPipe(self._traffic, accept),
                address.host,
                address.port,
                family=_FAMILIES[address.host_kind],
                backlog=_BACKLOG,
            )
        except OSError as error:
            where = f"{address}: {reason_of(error)}"
            fault = TransportFault.CANNOT_LISTEN
            raise TransportError(f"cannot listen on {where}", fault, where) from error
        host, port = server.sockets[0].getsockname()[:2]
        return TcpListener(multiaddr_of_socket(host, port), server)

    async def dial(self, address: Multiaddr, *, tls: ssl.SSLContext | None = None) -> Pipe:
        loop = asyncio.get_running_loop()
        try:
            _, pipe = await loop.create_connection(
                lambda: TcpPipe(self._traffic),
                address.host,
                address.port,
                family=_FAMILIES[address.host_kind],
                happy_eyeballs_delay=None if address.is_ip else _HAPPY_EYEBALLS_S,
                ssl=tls,
                server_hostname=None if tls is None else address.host.rstrip("."),
            )
        except OSError as error:
            raise system_error(error).during(f"cannot connect to {address}") from error
        return pipe


def reason_of(error: OSError) -> str:
    """The system's error text, without asyncio's own."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error.strerror})"
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or _CLOSED


def system_error(error: OSError) -> TransportError:
    """A failed dial or handshake, without the address."""
    fault, detail = TransportFault.SYSTEM, reason_of(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        fault, detail = TransportFault.CERTIFICATE, error.verify_message
    elif isinstance(error, ssl.SSLError):
        fault, detail = TransportFault.TLS, error.reason or error.strerror or ""
    elif detail == _CLOSED:
        fault, detail = TransportFault.CLOSED, ""
    return TransportError(reason_of(error), fault, detail)


def own_addresses(listening: Multiaddr) -> list[Multiaddr]:
    """Where others can reach a listener.

    Its own address or, if it listens on all, the outward address and loopback.
    """
    if not listening.is_unspecified:
        return [listening]
    family, loopback, far = (
        (socket.AF_INET, "127.0.0.1", _FAR_IP4)
        if listening.host_kind is HostKind.IP4
        else (socket.AF_INET6, "::1", _FAR_IP6)
    )
    hosts: list[str] = []
    with socket.socket(family, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect((far, 9))  # sends nothing: it only asks the routing table, if there is one
        hosts.append(probe.getsockname()[0])
    hosts.append(loopback)  # last, because it is of no use to others
    addresses = (multiaddr_of_socket(host, listening.port) for host in hosts)
    return [replace(address, layer=listening.layer) for address in addresses]
