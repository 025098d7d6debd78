"""One small file from a web server: one GET over TLS, bounded, and no other address than this one.

It goes over the same transports as everything else, so a proxy of the user's carries it, too, and
resolves the name.  No cookie, no language and no name of ours is sent.  The library ``websockets``
parses the answer, without I/O, as it does for upgrades.  RFC 9112.
"""

import asyncio
import re
import ssl
from collections.abc import Callable, Generator
from typing import Final

from msgspec import Struct
from websockets.exceptions import SecurityError
from websockets.http11 import Response
from websockets.streams import StreamReader

from engine.core.errors import TransportError
from engine.core.releases import ReleaseError, ReleaseFlaw
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.proxy import Proxy
from engine.network.libp2p.socks import SocksTransport
from engine.network.libp2p.tcp import TcpTransport, Traffic

ALL_OF_IT_S: Final = 60.0
"""From the name to the last byte, through Tor, too."""
_MOST_HEADERS: Final = 16 * 1024
_OK: Final = 200
_PORT: Final = 443
_ADDRESS: Final = re.compile(
    r"https://(?P<host>[a-z0-9](?:[a-z0-9.-]{0,200}[a-z0-9])?)(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?P<path>/[A-Za-z0-9._~/+-]{0,500})"
)
_IP4: Final = re.compile(r"[0-9.]+")


class HttpsAddress(Struct, frozen=True, kw_only=True):
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """RFC 9110, section 7.2: without the port that goes without saying."""
        return self.host if self.port == _PORT else f"{self.host}:{self.port}"

    @property
    def dialled(self) -> Multiaddr:
        """Raises AddressError if the host is none."""
        kind = "ip4" if _IP4.fullmatch(self.host) else "dns"
        return parse_multiaddr(f"/{kind}/{self.host}/tcp/{self.port}/wss")


def parse_https(text: str) -> HttpsAddress:
    """An address without user, query and fragment.  Raises ValueError."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise ValueError("no https address of a file")
    return HttpsAddress(host=found["host"], port=int(found["port"] or _PORT), path=found["path"])


class HttpsAnswer:
    """A ``PipeSink``; ``done`` has the whole answer."""

    def __init__(self, most: int) -> None:
        self.done: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._left = most + _MOST_HEADERS
        self._reader = StreamReader()
        self._parser: Generator[None, None, Response] = Response.parse(
            self._reader.read_line, self._reader.read_exact, self._reader.read_to_eof
        )

    def bytes_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._fail(ReleaseError(ReleaseFlaw.TOO_LARGE))
        elif not self.done.done():
            self._reader.feed_data(data)
            self._go_on()

    def pipe_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self._reader.feed_eof()
            self._go_on()
        if error is not None:
            self._fail(ReleaseError(ReleaseFlaw.UNREACHABLE, str(error)))

    def writing_paused(self) -> None:
        """One request is small."""

    def writing_resumed(self) -> None:
        """Likewise."""

    def _go_on(self) -> None:
        try:
            next(self._parser)
        except StopIteration as end:
            self.done.set_result(end.value)
        except SecurityError:
            self._fail(ReleaseError(ReleaseFlaw.TOO_LARGE))
        except (EOFError, LookupError, ValueError, NotImplementedError, RuntimeError) as error:
            self._fail(ReleaseError(ReleaseFlaw.STATUS, type(error).__name__))

    def _fail(self, error: ReleaseError) -> None:
        if not self.done.done():
            self.done.set_exception(error)


async def fetch(
    address: HttpsAddress,
    *,
    most: int,
    proxy: Proxy | None = None,
    make_tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
) -> bytes:
    """What the file holds, at most ``most`` bytes.  Raises ReleaseError."""
    try:
        async with asyncio.timeout(ALL_OF_IT_S):
            # Reads a hundred certificates, so not on the loop.
            tls = await asyncio.to_thread(make_tls)
            transport = (
                TcpTransport(Traffic()) if proxy is None else SocksTransport(Traffic(), proxy)
            )
            pipe = await transport.dial(address.dialled, tls=tls)
            answer = await _ask(pipe, address, most)
    except TransportError as error:
        raise ReleaseError(ReleaseFlaw.UNREACHABLE, str(error)) from error
    except TimeoutError:
        raise ReleaseError(ReleaseFlaw.UNREACHABLE, "no answer") from None
    if 300 <= answer.status_code < 400:  # noqa: PLR2004 - redirections
        raise ReleaseError(ReleaseFlaw.ELSEWHERE)
    if answer.status_code != _OK:
        raise ReleaseError(ReleaseFlaw.STATUS, str(answer.status_code))
    if len(answer.body) > most:
        raise ReleaseError(ReleaseFlaw.TOO_LARGE)
    return bytes(answer.body)


async def _ask(pipe: Pipe, address: HttpsAddress, most: int) -> Response:
    answer = HttpsAnswer(most)
    try:
        pipe.attach(answer)
        pipe.write(
            f"GET {address.path} HTTP/1.1\r\nHost: {address.authority}\r\nAccept: */*\r\n"
            "Accept-Encoding: identity\r\nConnection: close\r\n\r\n".encode("ascii")
        )
        return await answer.done
    finally:
        pipe.abort()
