"""Real js-libp2p and our host, both ways over TCP and WebSocket, with yamux and with mplex.

The js node is the library's own: it decides whether our handshake, frames and streams are right.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from itertools import product

import pytest

from engine.core.errors import TransportError
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import PeerId, ProtocolId, Stream
from tests.interop.js_libp2p import js_node
from tests.interop.json_lines import PeerNode, PeerNodeError

ECHO, ANSWER, FIRST = (ProtocolId(f"/test/{name}/1") for name in ("echo", "answer", "first"))
ABORT, NEVER = ProtocolId("/test/abort/1"), ProtocolId("/test/never/1")
MIB = 1024 * 1024
LAYERS, MUXERS = ("tcp", "ws"), ("yamux", "mplex")
WIRE_NAMES = {"yamux": "/yamux/1.0.0", "mplex": "/mplex/6.7.0"}
EVERY_WAY = pytest.mark.parametrize(("layer", "muxer"), list(product(LAYERS, MUXERS)))
LISTEN = ("/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/ws")


async def echo(stream: Stream) -> None:
    while data := await stream.read_some(65_536):
        await stream.write(data)


async def answer(stream: Stream) -> None:
    await stream.write(str(len(await read_to_end(stream))).encode())


async def first(stream: Stream) -> None:
    await stream.write(await stream.read_exactly(4))


async def abort(stream: Stream) -> None:
    await stream.read_exactly(4)
    await stream.reset()


async def read_to_end(stream: Stream) -> bytes:
    pieces: list[bytes] = []
    while data := await stream.read_some(65_536):
        pieces.append(data)
    return b"".join(pieces)


@asynccontextmanager
async def our_host(limits: HostLimits | None = None) -> AsyncIterator[TcpHost]:
    before = asyncio.all_tasks()
    host = TcpHost(b"o" * 32, LISTEN, limits=limits)
    for protocol, handler in ((ECHO, echo), (ANSWER, answer), (FIRST, first), (ABORT, abort)):
        host.set_stream_handler(protocol, handler)
    await host.start()
    try:
        yield host
    finally:
        await host.stop()
    assert asyncio.all_tasks() <= before


def address(host: TcpHost, layer: str) -> str:
    (found,) = [each for each in host.addresses() if ("/ws/" in each) == (layer == "ws")]
    return found


async def lost(host: TcpHost) -> asyncio.Future[PeerId]:
    future: asyncio.Future[PeerId] = asyncio.get_running_loop().create_future()
    host.on_peer_disconnected(future.set_result)
    await asyncio.sleep(0)
    return future


def run(scenario: Coroutine[object, object, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            await scenario

    asyncio.run(bounded())


async def only_connection(js: PeerNode) -> dict[str, object]:
    (connection,) = (await js.ask("look"))["connections"]
    return dict(connection)


@EVERY_WAY
def test_js_dials_us(layer: str, muxer: str) -> None:
    async def scenario() -> None:
        async with our_host() as host, js_node(muxer) as js:
            dialled = await js.ask("dial", address=address(host, layer))
            assert dialled["muxer"] == WIRE_NAMES[muxer]
            us = host.peer_id
            known = await js.ask("known", peer=us)
            assert {ECHO, ANSWER, "/ipfs/id/1.0.0", "/ipfs/ping/1.0.0"} <= set(known["protocols"])
            assert known["agent"] == "causerie"
            (remote,) = host.peers()
            assert (remote.peer_id, remote.outbound) == (js.peer_id, False)
            assert ECHO in remote.protocols
            assert set(remote.listen_addresses) == set(js.addresses)
            assert remote.agent.startswith("js-libp2p/")
            assert len((await js.ask("ping", peer=us, count=30))["times"]) == 30
            echoed = await js.ask("echo", peer=us, count=1, size=MIB, protocol=ECHO)
            assert echoed["lengths"] == [MIB]
            many = await js.ask("echo", peer=us, count=100, size=10_000, protocol=ANSWER)
            assert many["lengths"] == [5] * 100
            asked = await js.ask("ask", peer=us, count=50, size=70_000, protocol=ANSWER)
            assert asked["answers"] == ["70000"] * 50
            await js.ask("leave", peer=us, count=40, protocol=ECHO)
            await js.ask("abort", peer=us, count=20, protocol=ECHO)
            with pytest.raises(PeerNodeError, match="reset"):
                await js.ask("ask", peer=us, count=1, size=4, protocol=ABORT)
            with pytest.raises(PeerNodeError, match="UnsupportedProtocol"):
                await js.ask("ask", peer=us, count=1, size=4, protocol="/test/unknown/1")
            seen = await only_connection(js)  # one connection all the time, and nothing left open
            assert (seen["direction"], seen["streams"]) == ("outbound", [])
            assert set(host.counters()) <= {"libp2p.inbound_stream_broken"}
            gone = await lost(host)
            await js.ask("hang_up", peer=us)
            assert await gone == js.peer_id

    run(scenario())


@EVERY_WAY
def test_we_dial_js(layer: str, muxer: str) -> None:
    async def scenario() -> None:
        async with our_host() as host, js_node(muxer) as js:
            remote = await host.connect(js.address(layer))
            assert remote.peer_id == js.peer_id
            assert (await only_connection(js))["muxer"] == WIRE_NAMES[muxer]
            assert await host.ping(remote.peer_id) > 0
            stream = await host.new_stream(remote.peer_id, [ECHO])
            data = bytes(number % 251 for number in range(MIB))

            async def send() -> None:
                await stream.write(data)
                await stream.close_write()

            sending = asyncio.create_task(send())
            assert await read_to_end(stream) == data
            await sending
            assert (
                await asyncio.gather(*(one_answer(host, remote.peer_id) for _ in range(100)))
                == [b"10000"] * 100
            )
            assert (await only_connection(js))["streams"] == []
            gone = await lost(host)
            await host.disconnect(remote.peer_id)
            assert await gone == js.peer_id

    async def one_answer(host: TcpHost, peer: PeerId) -> bytes:
        stream = await host.new_stream(peer, [ANSWER])
        await stream.write(bytes(10_000))
        await stream.close_write()
        return await read_to_end(stream)

    run(scenario())


async def we_close_first(host: TcpHost, peer: PeerId) -> None:
    stream = await host.new_stream(peer, [ECHO])
    await stream.write(b"abcd")
    await stream.close_write()
    assert await read_to_end(stream) == b"abcd"


async def js_closes_first(host: TcpHost, peer: PeerId) -> None:
    stream = await host.new_stream(peer, [FIRST])
    await stream.write(b"abcd")
    assert await read_to_end(stream) == b"abcd"
    await stream.close_write()


async def both_at_once(host: TcpHost, peer: PeerId) -> None:
    stream = await host.new_stream(peer, [FIRST])
    await stream.write(b"abcd")
    await stream.close_write()
    assert await read_to_end(stream) == b"abcd"


async def we_reset(host: TcpHost, peer: PeerId) -> None:
    stream = await host.new_stream(peer, [ECHO])
    await stream.write(b"abcd")
    assert await stream.read_exactly(4) == b"abcd"
    await stream.reset()


async def js_resets(host: TcpHost, peer: PeerId) -> None:
    stream = await host.new_stream(peer, [ABORT])
    await stream.write(b"abcd")
    with pytest.raises(TransportError, match="reset"):
        await read_to_end(stream)


ORDERS = (we_close_first, js_closes_first, both_at_once, we_reset, js_resets)


@EVERY_WAY
def test_streams_close_in_every_order(layer: str, muxer: str) -> None:
    """The peer's streams are gone after each, and the connection stays."""

    async def scenario() -> None:
        async with our_host() as host, js_node(muxer) as js:
            peer = (await host.connect(js.address(layer))).peer_id
            for order in ORDERS:
                for _ in range(15):  # three times what js takes of frames for forgotten streams
                    await order(host, peer)
                while (await only_connection(js))["streams"]:
                    await host.ping(peer)
            await asyncio.gather(*(order(host, peer) for order in ORDERS for _ in range(10)))
            assert await host.ping(peer) > 0
            assert host.connection_count() == 1

    run(scenario())


def test_of_two_muxers_yamux_is_taken() -> None:
    async def scenario() -> None:
        async with our_host() as host, js_node("mplex", "yamux") as js:
            await host.connect(js.address("tcp"))
            assert (await only_connection(js))["muxer"] == WIRE_NAMES["yamux"]

    run(scenario())


def test_a_js_peer_that_reads_slowly_slows_us_and_nobody_else() -> None:
    async def scenario() -> None:
        async with our_host() as host, js_node("yamux") as js:
            peer = (await host.connect(js.address("ws"))).peer_id
            stream = await host.new_stream(peer, [NEVER])
            writing = asyncio.create_task(stream.write(bytes(MIB)))
            for _ in range(5):
                assert await host.ping(peer) > 0
            assert not writing.done()
            await stream.reset()
            with pytest.raises(TransportError):
                await writing

    run(scenario())


def test_js_floods_a_stream_that_nobody_reads() -> None:
    """Over mplex, which has no windows, the stream is reset and the connection lives."""

    async def scenario() -> None:
        limits = HostLimits(max_unread_bytes_per_stream=100_000)
        async with our_host(limits) as host, js_node("mplex") as js:
            never = asyncio.Event()

            async def ignore(_: Stream) -> None:
                await never.wait()

            host.set_stream_handler(NEVER, ignore)
            await js.ask("dial", address=address(host, "ws"))
            us = host.peer_id
            with pytest.raises(PeerNodeError):
                await js.ask("ask", peer=us, count=1, size=4 * MIB, protocol=NEVER)
            assert host.counters()["libp2p.stream_buffer_limit"] == 1
            assert len((await js.ask("ping", peer=us, count=3))["times"]) == 3

    run(scenario())


@pytest.mark.parametrize("muxer", MUXERS)
def test_an_idle_js_peer_is_kept_alive(muxer: str) -> None:
    """By the muxer's ping, or by a stream of the ping protocol where the muxer has none."""

    async def scenario() -> None:
        limits = HostLimits(ping_interval_ms=20, ping_timeout_ms=8_000)
        async with our_host(limits) as host, js_node(muxer) as js:
            await host.connect(js.address("tcp"))
            received = host.traffic()[0]
            while host.traffic()[0] < received + 2_000:
                await js.ask("look")
            assert host.peers()
            assert (await only_connection(js))["direction"] == "inbound"

    run(scenario())


@EVERY_WAY
def test_a_frozen_js_process_is_found(layer: str, muxer: str) -> None:
    """Its kernel goes on to take our bytes."""

    async def scenario() -> None:
        limits = HostLimits(ping_interval_ms=100, ping_timeout_ms=1_000)
        async with our_host(limits) as host, js_node(muxer) as js:
            await host.connect(js.address(layer))
            stream = await host.new_stream(PeerId(js.peer_id), [NEVER])
            gone = await lost(host)
            js.freeze()
            assert await gone == js.peer_id
            assert host.counters()["libp2p.peer_silent"] == 1
            with pytest.raises(TransportError, match="is lost"):
                await stream.read_some(1)

    run(scenario())


def test_js_hears_of_protocols_that_come_later() -> None:
    async def scenario() -> None:
        async with our_host() as host, js_node("yamux") as js:
            await host.connect(js.address("ws"))
            late = ProtocolId("/test/late/1")
            host.set_stream_handler(late, echo)
            while late not in (await js.ask("known", peer=host.peer_id))["protocols"]:
                await host.ping(PeerId(js.peer_id))

    run(scenario())


def test_js_with_another_identity_than_expected_is_refused() -> None:
    """By us; js-libp2p 2.8.11 itself takes whoever answers at the address that it dials."""

    async def scenario() -> None:
        async with our_host() as host, js_node("yamux") as js:
            somebody = PeerId("12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA")
            for layer in LAYERS:
                wrong = parse_multiaddr(js.address(layer)).with_peer(somebody)
                with pytest.raises(TransportError, match=f"is {js.peer_id}, expected was"):
                    await host.connect(str(wrong))
            assert host.peers() == []
            assert host.counters()["libp2p.dial_wrong_peer"] == 2

    run(scenario())
