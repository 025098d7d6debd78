"""Which transport carries an address: TCP or WebSocket, under one time-out.

Another transport is another class with ``carries``, ``listen`` and ``dial``, named here.
"""

import asyncio
import ssl
from collections.abc import Callable

from engine.core.errors import TransportError
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.tcp import Listener, TcpTransport, Traffic, Transport
from engine.network.libp2p.websocket import WebSocketTransport


class Transports:
    def __init__(
        self, traffic: Traffic, *, make_tls: Callable[[], ssl.SSLContext], limits: HostLimits
    ) -> None:
        tcp = TcpTransport(traffic)
        self._transports: tuple[Transport, ...] = (tcp, WebSocketTransport(tcp, make_tls=make_tls))
        self._dial_timeout_ms = limits.dial_timeout_ms

    async def listen(self, address: Multiaddr, accept: Callable[[Pipe], None]) -> Listener:
        """Raises TransportError that names address and reason."""
        return await self._transport_for(address).listen(address, accept)

    async def dial(self, address: Multiaddr) -> Pipe:
        """Raises TransportError that names address and reason."""
        transport = self._transport_for(address)
        try:
            async with asyncio.timeout(self._dial_timeout_ms / 1_000):
                return await transport.dial(address)
        except TimeoutError:
            waited = f"{self._dial_timeout_ms} ms"
            raise TransportError(f"cannot connect to {address}: no answer in {waited}") from None

    def _transport_for(self, address: Multiaddr) -> Transport:
        for transport in self._transports:
            if transport.carries(address):
                return transport
        raise TransportError(f"{address}: this node has no transport for /{address.layer}")
