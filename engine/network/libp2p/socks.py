"""SOCKS5 (RFC 1928, RFC 1929): every outgoing connection through one proxy, such as Tor.

``SocksRequest`` is the client's side without I/O: it says how many bytes it needs next and returns
what to send, so it never reads bytes of the peer behind the proxy.  The proxy resolves all names.
``SocksTransport`` is TCP whose dials go through the proxy, and never past it; WebSocket dials its
sockets here too.

Only CONNECT is implemented, without authentication or with user and password.  A proxy cannot be
asked for IPv4 or IPv6 only, so /dns4 and /dns6 are the same to it.
"""

import asyncio
import ipaddress
import ssl
from enum import Enum, auto
from typing import Final

from engine.core.errors import (
    LocalProtocolError,
    TransportError,
    TransportFault,
)
from engine.network.libp2p.multiaddr import HostKind, Multiaddr
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.proxy import Proxy
from engine.network.libp2p.tcp import TcpPipe, TcpTransport, Traffic, reason_of, system_error

DIAL_TIMEOUT_MS: Final = 30_000
"""At least this long for a dial through a proxy: Tor builds a circuit first."""

_VERSION, _AUTHENTICATION_VERSION, _CONNECT = 5, 1, 1
_NO_AUTHENTICATION, _USER_AND_PASSWORD, _NO_METHOD = 0, 2, 0xFF
_IP4, _NAME, _IP6 = 1, 3, 4
_MAX_NAME_BYTES = 255
_REFUSALS: Final = {
    0x01: (TransportFault.PROXY_SAYS_NOT_WHY, "the proxy could not connect and does not say why"),
    0x02: (TransportFault.PROXY_FORBIDS, "the proxy does not allow this connection"),
    0x03: (TransportFault.PROXY_NO_NETWORK, "the proxy cannot reach that network"),
    0x04: (TransportFault.PROXY_NO_HOST, "the proxy cannot reach that host"),
    0x05: (TransportFault.PROXY_REFUSED_BY_HOST, "the host refused the proxy's connection"),
    0x06: (TransportFault.PROXY_TOO_SLOW, "the connection took the proxy too long"),
    0x07: (
        TransportFault.PROXY_CANNOT_CONNECT,
        "the proxy cannot open connections (it knows no CONNECT)",
    ),
    0x08: (
        TransportFault.PROXY_KIND_UNSUPPORTED,
        "the proxy does not support this kind of address",
    ),
    # Tor's codes, if it is set to report exactly (ExtendedErrors).
    0xF0: (TransportFault.ONION_UNKNOWN, "the onion service is not known"),
    0xF1: (TransportFault.ONION_NOT_VALID, "the onion service's description is not valid"),
    0xF2: (TransportFault.ONION_NOT_INTRODUCED, "the onion service could not be introduced to"),
    0xF3: (TransportFault.ONION_NO_ANSWER, "the onion service did not answer"),
    0xF4: (TransportFault.ONION_NEEDS_KEY, "the onion service needs a key"),
    0xF5: (TransportFault.ONION_REFUSED_KEY, "the onion service refused the key"),
    0xF6: (TransportFault.ONION_BAD_ADDRESS, "this is no onion address"),
    0xF7: (TransportFault.ONION_TOO_SLOW, "the onion service's introduction took too long"),
}


class SocksError(TransportError):
    """The proxy reported an error or broke the protocol."""


class _Awaited(Enum):
    METHOD = auto()
    VERDICT = auto()
    REPLY = auto()
    NAME_LENGTH = auto()
    BOUND_ADDRESS = auto()
    NOTHING = auto()


class SocksRequest:
    """One CONNECT, without I/O.

    Send ``greeting``; then, while ``wanted`` is not 0, read exactly that many bytes, give them to
    ``received`` and send what it returns.  At ``wanted`` 0 the peer is at the other end.
    """

    def __init__(self, proxy: Proxy, address: Multiaddr) -> None:
        """Raises TransportError for a name that SOCKS5 cannot express."""
        self._proxy = proxy
        self._destination = _destination(address)
        self._awaited = _Awaited.METHOD
        self._offered = (
            (_NO_AUTHENTICATION, _USER_AND_PASSWORD) if proxy.username else (_NO_AUTHENTICATION,)
        )
        self._wanted = 2

    @property
    def wanted(self) -> int:
        return self._wanted

    def greeting(self) -> bytes:
        return bytes((_VERSION, len(self._offered), *self._offered))

    def received(self, data: bytes) -> bytes:
        """Raises SocksError."""
        if len(data) != self._wanted or not data:
            raise LocalProtocolError(f"{self._wanted} bytes are wanted, not {len(data)}")
        match self._awaited:
            case _Awaited.METHOD:
                return self._method(data)
            case _Awaited.VERDICT:
                if data[1] != 0:
                    raise SocksError(
                        "the proxy refuses this user and password",
                        TransportFault.PROXY_LOGIN_REFUSED,
                    )
                return self._connect()
            case _Awaited.REPLY:
                self._reply(data)
            case _Awaited.NAME_LENGTH:
                self._await(_Awaited.BOUND_ADDRESS, data[0] + 2)
            case _Awaited.BOUND_ADDRESS | _Awaited.NOTHING:
                self._await(_Awaited.NOTHING, 0)
        return b""

    def _await(self, awaited: _Awaited, count: int) -> None:
        self._awaited, self._wanted = awaited, count

    def _method(self, data: bytes) -> bytes:
        _check_version(data)
        method = data[1]
        if method == _NO_METHOD:
            if self._proxy.username:
                wants = "another user or another way to log in"
                fault = TransportFault.PROXY_WANTS_OTHER_LOGIN
            else:
                wants, fault = "a user", TransportFault.PROXY_WANTS_LOGIN
            text = f"the proxy wants {wants}: set it as socks5://USER:PASSWORD@HOST:PORT"
            raise SocksError(text, fault)
        if method not in self._offered:
            text = "the proxy chose a way to log in that was not offered"
            raise SocksError(text, TransportFault.PROXY_BROKEN)
        if method == _NO_AUTHENTICATION:
            return self._connect()
        username, password = self._proxy.username, self._proxy.password
        self._await(_Awaited.VERDICT, 2)
        return b"".join(
            (
                bytes((_AUTHENTICATION_VERSION, len(username))),
                username,
                bytes((len(password),)),
                password,
            )
        )

    def _connect(self) -> bytes:
        self._await(_Awaited.REPLY, 4)
        return bytes((_VERSION, _CONNECT, 0)) + self._destination

    def _reply(self, data: bytes) -> None:
        _check_version(data)
        _, verdict, _, kind = data
        if verdict != 0:
            unknown = f"the proxy refuses with the unknown number {verdict}"
            fault, text = _REFUSALS.get(verdict, (TransportFault.PROXY_REFUSES, unknown))
            raise SocksError(text, fault, "" if verdict in _REFUSALS else str(verdict))
        match kind:
            case 1:
                self._await(_Awaited.BOUND_ADDRESS, 4 + 2)
            case 4:
                self._await(_Awaited.BOUND_ADDRESS, 16 + 2)
            case 3:
                self._await(_Awaited.NAME_LENGTH, 1)
            case _:
                text = "the proxy answered with an unknown kind of address"
                raise SocksError(text, TransportFault.PROXY_BROKEN)


def _check_version(data: bytes) -> None:
    if data[0] != _VERSION:
        raise SocksError("what answers there is no SOCKS5 proxy", TransportFault.PROXY_NOT_SOCKS)


def _destination(address: Multiaddr) -> bytes:
    if address.is_ip:
        kind = _IP4 if address.host_kind is HostKind.IP4 else _IP6
        host = bytes((kind,)) + ipaddress.ip_address(address.host).packed
    else:
        name = address.host.rstrip(".").encode("ascii")
        if not 0 < len(name) <= _MAX_NAME_BYTES:
            text = f"{address}: this name is too long for a proxy"
            raise TransportError(text, TransportFault.PROXY_NAME_TOO_LONG)
        host = bytes((_NAME, len(name))) + name
    return host + address.port.to_bytes(2, "big")


class SocksTransport(TcpTransport):
    """Listens as TCP does, and dials through ``proxy`` only."""

    def __init__(self, traffic: Traffic, proxy: Proxy) -> None:
        super().__init__(traffic)
        self._socks_traffic = traffic
        self._proxy = proxy

    async def dial(self, address: Multiaddr, *, tls: ssl.SSLContext | None = None) -> Pipe:
        request = SocksRequest(self._proxy, address)
        pipe = await self._reach_proxy(address)
        try:
            await _ask(pipe, request)
            if tls is not None:
                await pipe.start_tls(tls, address.host.rstrip("."))
        except BaseException as error:
            pipe.abort()
            if isinstance(error, TransportError):
                raise error.during(f"cannot connect to {address}") from error
            if isinstance(error, OSError):
                raise system_error(error).during(f"cannot connect to {address}") from error
            raise
        return pipe

    async def _reach_proxy(self, address: Multiaddr) -> TcpPipe:
        loop = asyncio.get_running_loop()
        without_peer = address.with_peer(None)
        try:
            # The host is an IP address: asyncio looks nothing up.
            _, pipe = await loop.create_connection(
                lambda: TcpPipe(self._socks_traffic, reached=without_peer),
                self._proxy.host,
                self._proxy.port,
            )
        except OSError as error:
            raise TransportError(
                f"cannot connect to {address}: the proxy {self._proxy} cannot be reached:"
                f" {reason_of(error)}",
                TransportFault.PROXY_UNREACHABLE,
                reason_of(error),
            ) from error
        return pipe


async def _ask(pipe: TcpPipe, request: SocksRequest) -> None:
    sending = request.greeting()
    while True:
        if sending:
            pipe.write(sending)
        if request.wanted == 0:
            return
        try:
            data = await pipe.read_exactly(request.wanted)
        except TransportError as error:
            raise SocksError("the proxy hung up", TransportFault.PROXY_HUNG_UP) from error
        sending = request.received(data)
