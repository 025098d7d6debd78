"""Outgoing connections through a SOCKS5 proxy: its address, the protocol, and nothing beside it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Self

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import AddressError, ConfigError, TransportError
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.proxy import Proxy, parse_proxy
from engine.network.libp2p.socks import SocksError, SocksRequest
from tests.network.libp2p.tls_proxy import certificate, tls_proxy, trusting
from ui.address_words import address_words

RunningHosts = Callable[..., AbstractAsyncContextManager[list[TcpHost]]]
FAR: Final = "far.example"
"""A name that only the proxy knows."""


# --- the address of a proxy -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "host", "port", "username", "password"),
    [
        ("socks5://127.0.0.1:9050", "127.0.0.1", 9050, b"", b""),
        ("SOCKS5h://localhost:1080/", "127.0.0.1", 1080, b"", b""),
        ("socks5://[::1]:65535", "::1", 65535, b"", b""),
        ("socks5://ann:b%40d%3A%2F@192.0.2.1:1", "192.0.2.1", 1, b"ann", b"b@d:/"),
    ],
)
def test_a_proxy_is_read(text: str, host: str, port: int, username: bytes, password: bytes) -> None:
    assert parse_proxy(text) == Proxy(host=host, port=port, username=username, password=password)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must look like socks5://127.0.0.1:9050"),
        ("127.0.0.1:9050", "must look like"),
        ("http://127.0.0.1:9050", '"http" is no kind of proxy known here, only socks5'),
        ("socks5://tor.example:9050", '"tor.example" is no IP address; a name would have to be'),
        ("socks5://:9050", '"" is no IP address'),
        ("socks5://127.0.0.1", "the port is missing, as in :9050"),
        ("socks5://127.0.0.1:", "the port is missing"),
        ("socks5://127.0.0.1:0", '"0" is no port (1 to 65535)'),
        ("socks5://127.0.0.1:65536", '"65536" is no port'),
        ("socks5://127.0.0.1:٣", '"٣" is no port'),
        ("socks5://127.0.0.1:9050/path", "must look like"),
        ("socks5://ann@127.0.0.1:9050", "user and password must both be there"),
        ("socks5://ann:@127.0.0.1:9050", "user and password must both be there"),
        (f"socks5://ann:{'x' * 256}@127.0.0.1:9050", "1 to 255 bytes each"),
        ("socks5://" + "x" * 2_000, "longer than 1024 characters"),
    ],
)
def test_a_wrong_proxy_is_named(text: str, problem: str) -> None:
    with pytest.raises(AddressError) as caught:
        parse_proxy(text)
    words = address_words(caught.value)
    assert words.startswith('proxy "')
    assert problem in words


@pytest.mark.parametrize(
    "text",
    [
        "socks5://ann:hunter2@127.0.0.1",
        "socks5://ann:hun/ter2@127.0.0.1:1",
        "socks5://ann:hunter2@x@127.0.0.1:1",
        "ann:hunter2@127.0.0.1:1",
        "http://ann:hunter2@127.0.0.1:1",
    ],
)
def test_no_password_is_repeated(text: str) -> None:
    with pytest.raises(AddressError) as caught:
        parse_proxy(text)
    for told in (str(caught.value), address_words(caught.value)):
        assert "***@" in told
        assert "ter2" not in told
    known = parse_proxy("socks5://ann:hunter2@127.0.0.1:1")
    assert "hunter2" not in f"{known} {known!r}"


@given(st.text(max_size=80) | st.from_regex(r"socks5://[a-z:@\[\].0-9/%]{0,40}", fullmatch=True))
def test_any_text_is_a_proxy_or_a_complaint(text: str) -> None:
    try:
        found = parse_proxy(text)
    except ConfigError as error:
        said = str(error)
    else:
        said = str(found)
        assert parse_proxy(said).port == found.port
    assert said.isprintable()


# --- the protocol without I/O ---------------------------------------------------------------------

PLAIN = Proxy(host="127.0.0.1", port=9050)
KNOWN = Proxy(host="127.0.0.1", port=9050, username=b"ann", password=b"secret")


def request_to(text: str, proxy: Proxy = PLAIN) -> SocksRequest:
    return SocksRequest(proxy, parse_multiaddr(text))


@pytest.mark.parametrize(
    ("address", "destination"),
    [
        ("/ip4/192.0.2.7/tcp/258", "01" + "c0000207" + "0102"),
        ("/ip6/2001:db8::1/tcp/80", "04" + "20010db8" + "00" * 11 + "01" + "0050"),
        ("/dns4/a.example./tcp/443/wss", "03" + "09" + b"a.example".hex() + "01bb"),
        ("/dns/x.onion/tcp/1", "03" + "07" + b"x.onion".hex() + "0001"),
    ],
)
def test_the_bytes_of_a_request(address: str, destination: str) -> None:
    request = request_to(address)
    assert request.greeting() == bytes.fromhex("050100")
    assert request.wanted == 2
    assert request.received(bytes.fromhex("0500")) == bytes.fromhex("050100" + destination)
    assert request.wanted == 4
    assert request.received(bytes.fromhex("05000001")) == b""
    assert request.wanted == 6
    assert request.received(bytes(6)) == b""
    assert request.wanted == 0


def test_the_bytes_of_logging_in() -> None:
    request = request_to("/ip4/192.0.2.7/tcp/1", KNOWN)
    assert request.greeting() == bytes.fromhex("05020002")
    assert request.received(b"\x05\x02") == b"\x01\x03ann\x06secret"
    assert request.received(b"\x01\x00")[:4] == bytes.fromhex("05010001")


def test_an_answer_with_a_name_is_read_to_its_end() -> None:
    request = request_to("/ip4/192.0.2.7/tcp/1")
    request.received(b"\x05\x00")
    request.received(b"\x05\x00\x00\x03")
    assert request.wanted == 1
    request.received(b"\x05")
    assert request.wanted == 7
    request.received(b"local\x00\x00")
    assert request.wanted == 0


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "could not connect and does not say why"),
        (2, "does not allow this connection"),
        (3, "cannot reach that network"),
        (4, "cannot reach that host"),
        (5, "refused the proxy's connection"),
        (6, "took the proxy too long"),
        (7, "knows no CONNECT"),
        (8, "does not support this kind of address"),
        (9, "unknown number 9"),
        (0xF0, "onion service is not known"),
        (255, "unknown number 255"),
    ],
)
def test_each_refusal_is_a_sentence(number: int, words: str) -> None:
    request = request_to("/ip4/192.0.2.7/tcp/1")
    request.received(b"\x05\x00")
    with pytest.raises(SocksError, match=words):
        request.received(bytes((5, number, 0, 1)))


@pytest.mark.parametrize(
    ("proxy", "answers", "words"),
    [
        (PLAIN, [b"HT"], "is no SOCKS5 proxy"),
        (PLAIN, [b"\x04\x00"], "is no SOCKS5 proxy"),
        (PLAIN, [b"\x05\xff"], "the proxy wants a user: set it as socks5://USER"),
        (KNOWN, [b"\x05\xff"], "wants another user or another way"),
        (PLAIN, [b"\x05\x02"], "chose a way to log in that was not offered"),
        (PLAIN, [b"\x05\x01"], "chose a way to log in that was not offered"),
        (KNOWN, [b"\x05\x02", b"\x01\x01"], "refuses this user and password"),
        (PLAIN, [b"\x05\x00", b"\x04\x00\x00\x01"], "is no SOCKS5 proxy"),
        (PLAIN, [b"\x05\x00", b"\x05\x00\x00\x02"], "unknown kind of address"),
    ],
)
def test_a_strange_proxy_is_told_off(proxy: Proxy, answers: list[bytes], words: str) -> None:
    request = request_to("/ip4/192.0.2.7/tcp/1", proxy)
    *before, last = answers
    for answer in before:
        request.received(answer)
    with pytest.raises(SocksError, match=words):
        request.received(last)


@given(st.binary(max_size=400), st.booleans())
def test_whatever_a_proxy_says_ends(said: bytes, known: bool) -> None:
    """Nothing but a SocksError, never more than 263 bytes wanted, and never without an end."""
    request = request_to("/dns/a.example/tcp/1", KNOWN if known else PLAIN)
    offset = steps = 0
    while request.wanted and offset + request.wanted <= len(said):
        piece = said[offset : offset + request.wanted]
        offset += request.wanted
        steps += 1
        try:
            request.received(piece)
        except SocksError:
            return
        assert request.wanted <= 257
    assert steps <= 5


@given(st.binary(min_size=300, max_size=300), st.sampled_from([1, 3, 4]), st.booleans())
def test_every_good_answer_is_taken(said: bytes, kind: int, known: bool) -> None:
    request = request_to("/dns/a.example/tcp/1", KNOWN if known else PLAIN)
    request.received(b"\x05\x02" if known else b"\x05\x00")
    if known:
        request.received(b"\x01\x00")
    request.received(bytes((5, 0, said[0], kind)))
    while request.wanted:
        assert request.received(said[: request.wanted]) == b""


# --- a real proxy ---------------------------------------------------------------------------------


class SocksServer:
    """A small SOCKS5 proxy: knows one name, notes what it is asked for, refuses on demand."""

    def __init__(self, *, login: bytes = b"", refusal: int = 0) -> None:
        self.asked: list[str] = []
        self._login = login
        self._refusal = refusal
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        assert self._server is not None
        login = f"{self._login.decode()}@" if self._login else ""
        return f"socks5://{login}127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.get_running_loop().create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._one(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        offered = await reader.readexactly(count)
        method = 2 if self._login else 0
        writer.write(bytes((5, method if method in offered else 0xFF)))
        if self._login:
            _, length = await reader.readexactly(2)
            username = await reader.readexactly(length)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            right = username + b":" + password == self._login
            writer.write(bytes((1, 0 if right else 1)))
            if not right:
                return
        host, port = await self._destination(reader)
        self.asked.append(f"{host}:{port}")
        writer.write(bytes((5, self._refusal, 0, 1, 0, 0, 0, 0, 0, 0)))
        if self._refusal:
            return
        target = "127.0.0.1" if host in (FAR, "127.0.0.1") else "::1"
        far_reader, far_writer = await asyncio.open_connection(target, port)
        await asyncio.gather(
            self._forward(reader, far_writer),
            self._forward(far_reader, writer),
            return_exceptions=True,
        )

    @staticmethod
    async def _destination(reader: asyncio.StreamReader) -> tuple[str, int]:
        *_, kind = await reader.readexactly(4)
        if kind == 3:
            name = await reader.readexactly((await reader.readexactly(1))[0])
            host = name.decode()
        else:
            host = ".".join(str(byte) for byte in await reader.readexactly(4 if kind == 1 else 16))
        return host, int.from_bytes(await reader.readexactly(2), "big")

    @staticmethod
    async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def dialler_through(
    proxy: str, make_tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
) -> AsyncIterator[TcpHost]:
    host = TcpHost(b"d" * 32, [], make_tls=make_tls, proxy=parse_proxy(proxy))
    await host.start()
    try:
        yield host
    finally:
        await host.stop()
    assert host.connection_count() == 0


@pytest.fixture
def no_lookup(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whoever looks a name up, or connects to anything but a proxy, is noted here."""
    noted: list[str] = []

    async def getaddrinfo(_: object, host: object, *__: object, **___: object) -> list[object]:
        noted.append(f"getaddrinfo {host}")
        return []

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr("socket.getaddrinfo", noted.append)  # fails besides: other arguments
    return noted


@pytest.mark.parametrize("login", [b"", b"ann:secret"])
@pytest.mark.parametrize("layer", ["", "/ws"])
async def test_peers_are_reached_through_a_proxy(
    running_hosts: RunningHosts, no_lookup: list[str], layer: str, login: bytes
) -> None:
    async with running_hosts(1, layer=layer) as (alice,), SocksServer(login=login) as proxy:
        port = parse_multiaddr(alice.addresses()[0]).port
        async with dialler_through(proxy.address) as dialler:
            for address in (
                f"/dns4/{FAR}/tcp/{port}{layer}/p2p/{alice.peer_id}",
                f"/dns/{FAR}/tcp/{port}{layer}",
                f"/ip4/127.0.0.1/tcp/{port}{layer}",
            ):
                remote = await dialler.connect(address)
                assert remote.peer_id == alice.peer_id
                assert await dialler.ping(alice.peer_id) > 0
                await dialler.disconnect(alice.peer_id)
            assert not dialler.addresses()
        assert proxy.asked == [f"{FAR}:{port}", f"{FAR}:{port}", f"127.0.0.1:{port}"]
    assert not no_lookup


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7, 8])
async def test_a_refusal_names_address_and_reason(number: int) -> None:
    async with SocksServer(refusal=number) as proxy, dialler_through(proxy.address) as dialler:
        with pytest.raises(TransportError) as caught:
            await dialler.connect(f"/dns4/{FAR}/tcp/7")
        assert str(caught.value).startswith(f"cannot connect to /dns4/{FAR}/tcp/7: the ")


async def test_without_the_proxy_nothing_is_dialled(
    running_hosts: RunningHosts, no_lookup: list[str]
) -> None:
    """Neither when nobody is there, nor when it hangs up or says nothing, is the peer dialled."""
    closed = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = closed.sockets[0].getsockname()[1]
    async with running_hosts(1) as (alice,):
        address = alice.addresses()[0]
        async with dialler_through(f"socks5://127.0.0.1:{port}") as dialler:
            with pytest.raises(TransportError, match="the proxy hung up"):
                await dialler.connect(address)
            closed.close()
            await closed.wait_closed()
            with pytest.raises(
                TransportError,
                match=f"the proxy socks5://127.0.0.1:{port} cannot be reached: Connection ref",
            ):
                await dialler.connect(address)
        assert not alice.peers()
        assert not alice.counters()
    assert not no_lookup


async def test_a_wrong_password_is_said(running_hosts: RunningHosts) -> None:
    async with running_hosts(1) as (alice,), SocksServer(login=b"ann:secret") as proxy:
        wrong = proxy.address.replace("secret", "guessed")
        async with dialler_through(wrong) as dialler:
            with pytest.raises(TransportError, match="refuses this user and password") as said:
                await dialler.connect(alice.addresses()[0])
            assert "guessed" not in str(said.value)
        async with dialler_through(proxy.address.replace("ann:secret@", "")) as dialler:
            with pytest.raises(TransportError, match="the proxy wants a user"):
                await dialler.connect(alice.addresses()[0])


async def test_a_kept_peer_is_dialled_through_the_proxy(running_hosts: RunningHosts) -> None:
    limits = HostLimits(retry_first_ms=20)
    async with running_hosts(1) as (alice,), SocksServer() as proxy:
        dialler = TcpHost(b"d" * 32, [], limits=limits, proxy=parse_proxy(proxy.address))
        met = asyncio.Event()
        dialler.on_peer_connected(lambda _: met.set())
        await dialler.start()
        dialler.keep_connected(alice.addresses())
        await met.wait()
        assert len(proxy.asked) == 1
        await dialler.stop()


# --- TLS through the proxy ------------------------------------------------------------------------


async def test_wss_through_a_proxy_checks_the_certificate_of_the_name(
    tmp_path: Path, running_hosts: RunningHosts, no_lookup: list[str]
) -> None:
    pem = certificate(tmp_path, [x509.DNSName(FAR)])
    async with running_hosts(1, layer="/ws") as (alice,), SocksServer() as proxy:
        async with (
            tls_proxy(pem, parse_multiaddr(alice.addresses()[0])) as port,
            dialler_through(proxy.address, trusting(pem)) as dialler,
        ):
            remote = await dialler.connect(f"/dns4/{FAR}/tcp/{port}/wss/p2p/{alice.peer_id}")
            assert remote.peer_id == alice.peer_id
            assert await dialler.ping(alice.peer_id) > 0
            await dialler.disconnect(alice.peer_id)
            with pytest.raises(TransportError, match="its certificate is not valid"):
                await dialler.connect(f"/ip4/127.0.0.1/tcp/{port}/wss")
        assert proxy.asked == [f"{FAR}:{port}", f"127.0.0.1:{port}"]
    assert not no_lookup
