"""Chooses an address's transport: TCP or WebSocket, under one time-out, with or without proxy.

A further transport would be a class with ``carries``, ``listen`` and ``dial``, named here.
"""

import asyncio
import ssl
from collections.abc import Callable

from engine.core.errors import TransportError, TransportFault
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.proxy import Proxy
from engine.network.libp2p.tcp import Listener, TcpTransport, Traffic, Transport


class Transports:
    def __init__(
        self,
        traffic: Traffic,
        *,
        make_tls: Callable[[], ssl.SSLContext],
        limits: HostLimits,
        proxy: Proxy | None = None,
    ) -> None:
        """``proxy``: all dials go through it."""
        self._dial_timeout_ms = limits.dial_timeout_ms
        self._tcp = TcpTransport(traffic)
        if proxy is not None:
            from engine.network.libp2p.socks import DIAL_TIMEOUT_MS, SocksTransport  # noqa: PLC0415

            self._tcp = SocksTransport(traffic, proxy)
            self._dial_timeout_ms = max(limits.dial_timeout_ms, DIAL_TIMEOUT_MS)
        self._make_tls = make_tls
        self._transports: list[Transport] = [self._tcp]

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
            text = f"cannot connect to {address}: no answer in {self._dial_timeout_ms} ms"
            raise TransportError(text, TransportFault.NO_ANSWER) from None

    def _transport_for(self, address: Multiaddr) -> Transport:
        if len(self._transports) == 1 and not self._tcp.carries(address):
            # Imported when first needed: most nodes never meet a WebSocket.
            from engine.network.libp2p.websocket import WebSocketTransport  # noqa: PLC0415

            self._transports.append(WebSocketTransport(self._tcp, make_tls=self._make_tls))
        for transport in self._transports:
            if transport.carries(address):
                return transport
        text = f"{address}: this node has no transport for /{address.layer}"
        raise TransportError(text, TransportFault.BAD_ADDRESS)
