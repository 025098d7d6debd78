"""WebSocket: the upgrade, the frames, what is refused, and /wss behind a TLS proxy."""

import asyncio
import base64
import os
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from engine.core.errors import RemoteProtocolError, TransportError
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Layer, parse_multiaddr
from engine.network.libp2p.multistream import HEADER, encode_message
from engine.network.libp2p.websocket import (
    EVENTS_PER_TURN,
    MAX_FRAME_BYTES,
    MAX_QUEUED_BYTES,
    MAX_UPGRADE_BYTES,
    SENT_FRAME_BYTES,
    WebSocketPipe,
)
from tests.network.libp2p.loopback_hosts import RunningHosts, send_raw
from tests.network.libp2p.tls_proxy import LOCALHOST, certificate, tls_proxy, trusting
from tests.network.libp2p.written_pipe import Wire

KEY = base64.b64encode(bytes(16)).decode()
UPGRADE = (
    "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
).encode()


def server() -> tuple[WebSocketPipe, Wire]:
    wire = Wire()
    frames = ServerProtocol(max_size=(None, MAX_FRAME_BYTES))
    return WebSocketPipe(wire, frames, layer=Layer.WS), wire


def client() -> tuple[WebSocketPipe, Wire]:
    wire = Wire()
    frames = ClientProtocol(parse_uri("ws://x/"), max_size=(None, MAX_FRAME_BYTES))
    return WebSocketPipe(wire, frames, layer=Layer.WS), wire


def opened() -> tuple[WebSocketPipe, Wire]:
    pipe, wire = server()
    pipe.bytes_received(UPGRADE)
    assert wire.written.startswith(b"HTTP/1.1 101 ")
    wire.written = b""
    return pipe, wire


def frame(payload: bytes, opcode: Opcode = Opcode.BINARY, *, fin: bool = True) -> bytes:
    """As a client sends it."""
    return Frame(opcode, payload, fin).serialize(mask=True)


def refused(pipe: WebSocketPipe, wire: Wire) -> Exception:
    """Why; the pipe has been closed, and its reader is told once the socket is gone."""
    assert wire.closed
    pipe.pipe_lost(None)

    async def read() -> bytes:
        return await pipe.read_exactly(10**6)

    reading = read()
    with pytest.raises((RemoteProtocolError, TransportError)) as caught:
        reading.send(None)
    return caught.value


def in_loop(test: Callable[[], None]) -> None:
    async def scenario() -> None:
        test()

    asyncio.run(scenario())


# --- two ends -------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2 * SENT_FRAME_BYTES), max_size=3), st.integers(500, 100_000))
@settings(max_examples=25, deadline=None)
def test_what_is_written_is_read_whatever_the_pieces(sizes: list[int], piece: int) -> None:
    async def scenario() -> None:
        near, near_wire = client()
        far, far_wire = server()
        near.write(b"early")  # before the upgrade is done
        sent = b"early"
        far.bytes_received(near_wire.written)
        near_wire.written = b""
        near.bytes_received(far_wire.written)
        await near.opened
        for number, size in enumerate(sizes):
            near.write(bytes([number]) * size)
            sent += bytes([number]) * size
        for offset in range(0, len(near_wire.written), piece):
            far.bytes_received(near_wire.written[offset : offset + piece])
            assert far_wire.reading
        assert await far.read_exactly(len(sent)) == sent
        assert far.remote_address == parse_multiaddr("/ip4/127.0.0.1/tcp/1/ws")

    asyncio.run(scenario())


def test_fragments_texts_pings_and_ends() -> None:
    def test() -> None:
        pipe, wire = opened()
        ears = Ears()
        pipe.attach(ears)
        pipe.bytes_received(
            frame(b"ab", fin=False)
            + frame(b"marco", Opcode.PING)
            + frame(b"", Opcode.CONT, fin=False)
            + frame(b"c", Opcode.CONT)
            + frame(b"anything", Opcode.PONG)
        )
        assert b"".join(ears.heard) == b"abc"
        assert wire.written == Frame(Opcode.PONG, b"marco").serialize(mask=False)
        pipe.bytes_received(frame(b"\x03\xe8bye", Opcode.CLOSE) + frame(b"after the end"))
        assert wire.written.endswith(Frame(Opcode.CLOSE, b"\x03\xe8bye").serialize(mask=False))
        assert wire.closed
        assert not ears.ended
        pipe.pipe_lost(None)
        assert (b"".join(ears.heard), ears.ended, ears.error) == (b"abc", True, None)

    in_loop(test)


class Ears:
    """A sink that remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.ended = False
        self.error: Exception | None = None
        self.pipe: WebSocketPipe | None = None

    def bytes_received(self, data: bytes) -> None:
        self.heard.append(data)
        if self.pipe is not None:
            self.pipe.pause_reading()

    def pipe_lost(self, error: Exception | None) -> None:
        self.ended, self.error = True, error

    def writing_paused(self) -> None: ...

    def writing_resumed(self) -> None: ...


async def test_a_sink_that_wants_no_more_gets_no_more() -> None:
    pipe, wire = opened()
    ears = Ears()
    pipe.attach(ears)
    ears.pipe = pipe
    payloads = [bytes([number]) * 3_000 for number in range(5)]
    pipe.bytes_received(b"".join(map(frame, payloads)))
    for count in range(1, 6):
        assert len(ears.heard) == count
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(ears.heard) == count
        assert not wire.reading
        pipe.resume_reading()
        await asyncio.sleep(0)
    assert ears.heard == payloads


async def test_a_chunk_of_very_many_frames_takes_several_turns() -> None:
    pipe, wire = opened()
    ears = Ears()
    pipe.attach(ears)
    count = 20_000
    pipe.bytes_received(b"".join(frame(b"%d " % number) for number in range(count)))
    turns = 1
    before, most = 0, 0
    while not wire.reading:
        most = max(most, len(ears.heard) - before)
        before = len(ears.heard)
        turns += 1
        await asyncio.sleep(0)
    assert most <= EVENTS_PER_TURN + 1_024  # and what one step of the parser holds
    assert turns > 10
    assert b"".join(ears.heard).split() == [b"%d" % number for number in range(count)]


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_bytes", "reason"),
    [
        (b"\x13/multistream/1.0.0\n", "websocket_bad_upgrade"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "websocket_bad_upgrade"),
        (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "websocket_bad_upgrade"),
        (UPGRADE.replace(KEY.encode(), b"short"), "websocket_bad_upgrade"),
        (UPGRADE.replace(b": 13", b": 8"), "websocket_bad_upgrade"),
        (b"GET /" + b"x" * 9_000, "websocket_bad_upgrade"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200, "websocket_bad_upgrade"),
        (
            b"GET / HTTP/1.1\r\n" + (b"A: " + b"x" * 8_000 + b"\r\n") * 20,
            "websocket_upgrade_too_long",
        ),
        (UPGRADE + frame(b"text", Opcode.TEXT), "websocket_text"),
        (UPGRADE + b"\x82\x01x", "websocket_bad_frame"),  # not masked
        (UPGRADE + b"\xf2\x80\x00\x00\x00\x00", "websocket_bad_frame"),  # an extension's bit
        (UPGRADE + b"\x83\x80\x00\x00\x00\x00", "websocket_bad_frame"),  # no such opcode
        (UPGRADE + frame(b"", Opcode.CONT), "websocket_bad_frame"),
        (
            UPGRADE + b"\x82\xff" + (MAX_FRAME_BYTES + 1).to_bytes(8, "big") + bytes(4),
            "websocket_bad_frame",
        ),
    ],
)
def test_what_is_no_websocket_is_refused(request_bytes: bytes, reason: str) -> None:
    def test() -> None:
        for size in (1, 7, len(request_bytes)):
            pipe, wire = server()
            for offset in range(0, len(request_bytes), size):
                pipe.bytes_received(request_bytes[offset : offset + size])
            error = refused(pipe, wire)
            assert isinstance(error, RemoteProtocolError)
            assert error.reason == reason

    in_loop(test)


def test_pongs_are_not_piled_up_for_a_peer_that_does_not_read() -> None:
    def test() -> None:
        pipe, wire = opened()
        wire.queued_bytes = MAX_QUEUED_BYTES + 1
        pipe.bytes_received(frame(b"marco", Opcode.PING))
        error = refused(pipe, wire)
        assert isinstance(error, RemoteProtocolError)
        assert error.reason == "websocket_queue_limit"

    in_loop(test)


@given(st.binary(max_size=300), st.booleans(), st.booleans(), st.integers(1, 50))
def test_only_refusals_come_out_of_garbage(
    garbage: bytes, after_upgrade: bool, is_client: bool, size: int
) -> None:
    def test() -> None:
        pipe, wire = client() if is_client else server()
        data = (b"" if is_client or not after_upgrade else UPGRADE) + garbage
        for offset in range(0, len(data), size):
            pipe.bytes_received(data[offset : offset + size])
        pipe.write(b"whatever the state")
        pipe.close()
        pipe.pipe_lost(None)
        assert wire.closed
        assert pipe.opened.done()

    in_loop(test)


FRAMES = st.builds(
    lambda head, length, payload: bytes([head, 0x80 | length]) + bytes(4) + payload,
    st.sampled_from([0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8A, 0x8B, 0xC2]),
    st.integers(0, 127),
    st.binary(max_size=130),
)


@given(st.lists(FRAMES, max_size=10))
def test_only_refusals_come_out_of_frames_of_all_kinds(frames: list[bytes]) -> None:
    def test() -> None:
        pipe, _ = opened()
        ears = Ears()
        pipe.attach(ears)
        sent = b"".join(frames)
        pipe.bytes_received(sent)
        pipe.pipe_lost(None)
        assert sum(map(len, ears.heard)) <= len(sent)
        assert ears.error is None or isinstance(ears.error, RemoteProtocolError)

    in_loop(test)


async def test_garbage_on_the_socket_of_a_host_is_dropped_and_counted(
    running_hosts: RunningHosts, caplog: pytest.LogCaptureFixture
) -> None:
    randomness = random.Random(22)
    start = encode_message(HEADER) + encode_message("/noise")
    async with running_hosts(2, layer="/ws") as (alice, bob):
        for number in range(60):
            noise = randomness.randbytes(randomness.randrange(400))
            piece = randomness.choice([noise, UPGRADE + noise, UPGRADE + frame(start + noise)])
            await send_raw(alice, piece)
            assert sum(alice.counters().values()) == number + 1
        assert alice.counters()["libp2p.websocket_bad_upgrade"] > 0
        assert alice.counters()["libp2p.websocket_bad_frame"] > 0
        await bob.connect(alice.addresses()[0])
    assert not caplog.records


async def test_a_browser_is_told_that_it_is_wrong_here(running_hosts: RunningHosts) -> None:
    async with running_hosts(1, layer="/ws") as (alice,):
        answer = await send_raw(alice, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 426 ")
        assert alice.counters() == {"libp2p.websocket_bad_upgrade": 1}


@asynccontextmanager
async def web_server(answer: bytes) -> AsyncIterator[str]:
    """Says the same to everybody."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.write_eof()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"/ip4/127.0.0.1/tcp/{server.sockets[0].getsockname()[1]}/ws"
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope", "a web server answered 404"),
        (b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "answered 301"),
        (b"HTTP/1.1 101 Yes\r\n\r\n", "websocket_bad_upgrade"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "websocket_bad_upgrade"),
        (b"", "ended before the WebSocket was open"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + bytes(2 * MAX_UPGRADE_BYTES),
            "websocket_upgrade_too_long",
        ),
    ],
)
async def test_a_server_that_is_no_websocket_is_named(answer: bytes, words: str) -> None:
    host = TcpHost(b"h" * 32, [])
    await host.start()
    async with web_server(answer) as address:
        with pytest.raises(TransportError, match=f"cannot connect to {address}: .*{words}"):
            await host.connect(address)
        assert host.counters()["libp2p.dial_failed"] == 1
        assert host.connection_count() == 0
    await host.stop()


@pytest.mark.parametrize("layer", [Layer.WS, Layer.WSS])
def test_a_server_that_never_answers_is_given_up(layer: Layer) -> None:
    async def scenario() -> None:
        host = TcpHost(b"h" * 32, [], limits=HostLimits(dial_timeout_ms=50))
        await host.start()
        silent = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1")
        address = f"/ip4/127.0.0.1/tcp/{silent.sockets[0].getsockname()[1]}/{layer}"
        with pytest.raises(TransportError, match="no answer in 50 ms"):
            await host.connect(address)
        await host.stop()
        for writer in writers:
            writer.close()
        silent.close()
        await silent.wait_closed()

    writers: list[asyncio.StreamWriter] = []
    asyncio.run(scenario())


async def test_listening_everywhere_announces_websocket_addresses(
    running_hosts: RunningHosts,
) -> None:
    host = TcpHost(b"h" * 32, ["/ip4/0.0.0.0/tcp/0/ws", "/ip4/127.0.0.1/tcp/0"])
    await host.start()
    addresses = [parse_multiaddr(text) for text in host.addresses()]
    assert {address.layer for address in addresses} == {Layer.WS, Layer.RAW}
    assert not any(address.is_unspecified for address in addresses)
    async with running_hosts(1) as (alice,):
        for address in addresses:
            remote = await alice.connect(str(address))
            assert str(address) in remote.listen_addresses
            await alice.disconnect(host.peer_id)
    await host.stop()


# --- TLS ------------------------------------------------------------------------------------------


async def test_wss_through_a_tls_proxy(tmp_path: Path, running_hosts: RunningHosts) -> None:
    pem = certificate(tmp_path, [LOCALHOST, x509.DNSName("localhost")])
    dialler = TcpHost(b"d" * 32, [], make_tls=trusting(pem))
    await dialler.start()
    async with running_hosts(1, layer="/ws") as (alice,):
        target = parse_multiaddr(alice.addresses()[0])
        async with tls_proxy(pem, target) as port:
            for address in (
                f"/ip4/127.0.0.1/tcp/{port}/wss",
                f"/dns4/localhost/tcp/{port}/tls/ws",
                f"/dns/localhost/tcp/{port}/wss/p2p/{alice.peer_id}",
            ):
                remote = await dialler.connect(address)
                assert remote.peer_id == alice.peer_id
                assert await dialler.ping(alice.peer_id) > 0
                await dialler.disconnect(alice.peer_id)
            await dialler.stop()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("unknown issuer", "self-signed certificate"),
        ("expired", "certificate has expired"),
        ("another name", "IP address mismatch"),
    ],
)
async def test_a_bad_certificate_is_named(
    tmp_path: Path, running_hosts: RunningHosts, fault: str, words: str
) -> None:
    names = [x509.DNSName("elsewhere")] if fault == "another name" else [LOCALHOST]
    pem = certificate(tmp_path, names, expired=fault == "expired")
    make_tls = ssl.create_default_context if fault == "unknown issuer" else trusting(pem)
    dialler = TcpHost(b"d" * 32, [], make_tls=make_tls)
    await dialler.start()
    async with running_hosts(1, layer="/ws") as (alice,):
        async with tls_proxy(pem, parse_multiaddr(alice.addresses()[0])) as port:
            address = f"/ip4/127.0.0.1/tcp/{port}/wss"
            expected = f"cannot connect to {address}: its certificate is not valid .*{words}"
            with pytest.raises(TransportError, match=expected):
                await dialler.connect(address)
        await dialler.stop()


async def test_wss_to_a_plain_server_is_named(running_hosts: RunningHosts) -> None:
    async with running_hosts(2, layer="/ws") as (alice, bob):
        address = alice.addresses()[0].replace("/ws", "/wss")
        with pytest.raises(TransportError, match=r"closed the connection|TLS failed"):
            await bob.connect(address)


async def test_wss_is_not_listened_on() -> None:
    host = TcpHost(os.urandom(32), ["/ip4/127.0.0.1/tcp/0/wss"])
    with pytest.raises(TransportError, match="use /ws, and a proxy before it for TLS"):
        await host.start()
