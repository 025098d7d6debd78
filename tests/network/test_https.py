"""One file from a real web server, over real TLS: had whole, or refused with a reason."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509

from engine.core.releases import ReleaseError, ReleaseFlaw
from engine.network.https import HttpsAddress, fetch, parse_https
from engine.network.libp2p.proxy import parse_proxy
from tests.network.libp2p.test_socks import FAR, SocksServer
from tests.network.libp2p.tls_proxy import LOCALHOST, certificate, trusting

MOST = 1_000
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class WebServer:
    """Answers everybody with the same bytes, and keeps what was asked."""

    def __init__(self, folder: Path, *, name: str = "") -> None:
        names = [x509.DNSName(name)] if name else [LOCALHOST]
        self.pem = certificate(folder, names)
        self.answer = WHOLE
        self.asked: list[bytes] = []
        self.sent = 0
        self.port = 0
        self.ends = True
        """Whether it closes when all is said."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["WebServer"]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.pem)
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        yield self
        server.close()
        await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            for start in range(0, len(self.answer), 16_384):
                writer.write(self.answer[start : start + 16_384])
                await writer.drain()
                self.sent = start
            if not self.ends:
                await reader.read()
        except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def address(self, host: str = "127.0.0.1") -> HttpsAddress:
        return parse_https(f"https://{host}:{self.port}/releases/newest.txt")

    async def fetched(self, *, trusted: bool = True) -> bytes:
        trust = trusting(self.pem) if trusted else ssl.create_default_context
        return await fetch(self.address(), most=MOST, make_tls=trust)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[WebServer]:
    async with WebServer(tmp_path).running() as running:
        yield running


async def refused(fetched: Callable[[], object]) -> ReleaseError:
    with pytest.raises(ReleaseError) as error:
        await fetched()  # type: ignore[misc]
    return error.value


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nhello",
    ],
    ids=["length", "chunks", "until the end"],
)
async def test_the_file_is_had_whichever_way_it_comes(server: WebServer, answer: bytes) -> None:
    server.answer = answer
    assert await server.fetched() == b"hello"


async def test_a_server_that_does_not_hang_up_is_left(server: WebServer) -> None:
    server.ends = False
    assert await server.fetched() == b"hello"


async def test_what_is_asked_tells_nothing_of_who_asks(server: WebServer) -> None:
    await server.fetched()
    (asked,) = server.asked
    assert asked == (
        b"GET /releases/newest.txt HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: */*\r\n"
        b"Accept-Encoding: identity\r\nConnection: close\r\n\r\n" % server.port
    )
    assert parse_https("https://releases.example/x").authority == "releases.example"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_it_follows_nobody_elsewhere(server: WebServer, status: int) -> None:
    server.answer = (
        b"HTTP/1.1 %d Over there\r\nLocation: https://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n"
        % (status, server.port)
    )
    assert (await refused(server.fetched)).flaw is ReleaseFlaw.ELSEWHERE
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404"),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "500"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "EOFError"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", "ValueError"),
        (b"SSH-2.0-nothing here\r\n", "ValueError"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", "NotImplementedError"),
        (b"", "EOFError"),
    ],
)
async def test_an_answer_that_is_none_is_said(
    server: WebServer, answer: bytes, detail: str
) -> None:
    server.answer = answer
    error = await refused(server.fetched)
    assert (error.flaw, error.detail) == (ReleaseFlaw.STATUS, detail)


@pytest.mark.parametrize("length", [b"Content-Length: 9999999\r\n", b""])
async def test_a_mebibyte_is_left_where_it_is(server: WebServer, length: bytes) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\n" + length + b"\r\n" + bytes(8 * 1024 * 1024)
    assert (await refused(server.fetched)).flaw is ReleaseFlaw.TOO_LARGE


async def test_one_byte_too_many_is_too_large(server: WebServer) -> None:
    for more, fits in ((0, True), (1, False)):
        body = bytes(MOST + more)
        server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        if fits:
            assert await server.fetched() == body
        else:
            assert (await refused(server.fetched)).flaw is ReleaseFlaw.TOO_LARGE


async def test_a_certificate_of_somebody_else_is_refused(server: WebServer) -> None:
    error = await refused(lambda: server.fetched(trusted=False))
    assert error.flaw is ReleaseFlaw.UNREACHABLE
    assert "certificate" in error.detail
    assert server.asked == []


async def test_nobody_there_is_said() -> None:
    address = parse_https("https://127.0.0.1:9/releases.txt")
    error = await refused(lambda: fetch(address, most=MOST))
    assert error.flaw is ReleaseFlaw.UNREACHABLE


async def test_a_proxy_carries_it_and_resolves_the_name(tmp_path: Path) -> None:
    async with (
        WebServer(tmp_path, name=FAR).running() as server,
        SocksServer() as socks,
    ):
        got = await fetch(
            server.address(FAR),
            most=MOST,
            proxy=parse_proxy(socks.address),
            make_tls=trusting(server.pem),
        )
    assert got == b"hello"
    assert socks.asked == [f"{FAR}:{server.port}"]


@pytest.mark.parametrize(
    "text",
    [
        "http://releases.example/file",
        "https://user@releases.example/file",
        "https://releases.example",
        "https://releases.example/file?x=1",
        "https://releases.example/file#x",
        "https://releases.example:0/file",
        "https://-x.example/file",
        "https://RELEASES.example/file",
        "https://releases.example/fi le",
        "https://releases.example/file\r\nHost: other",
        "file:///etc/passwd",
        "",
    ],
)
def test_no_other_address_is_one(text: str) -> None:
    with pytest.raises(ValueError, match="no https address"):
        parse_https(text)
