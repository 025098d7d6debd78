"""Real py-libp2p and our host, both ways over TCP, and its gossipsub with our relay.

The py-libp2p node is the library's own, on trio: it decides whether our handshake, frames, streams
and gossip are right.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

import pytest

from engine.codec.waku import decode_waku_message, encode_waku_message
from engine.core.errors import TransportError
from engine.core.ids import PubsubTopic
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import PeerId, ProtocolId, Stream
from tests.interop.json_lines import PeerNode, PeerNodeError
from tests.interop.py_libp2p_node import py_node
from tests.network.node.loopback import Loopback, message

ECHO, ANSWER = ProtocolId("/test/echo/1"), ProtocolId("/test/answer/1")
ABORT, NEVER = ProtocolId("/test/abort/1"), ProtocolId("/test/never/1")
PUBSUB = PubsubTopic("/waku/2/rs/42/4")
MIB = 1024 * 1024
THEIR_LARGEST_WINDOW = 16 * MIB


async def read_to_end(stream: Stream) -> bytes:
    pieces: list[bytes] = []
    while data := await stream.read_some(65_536):
        pieces.append(data)
    return b"".join(pieces)


async def echo(stream: Stream) -> None:
    while data := await stream.read_some(65_536):
        await stream.write(data)


async def answer(stream: Stream) -> None:
    await stream.write(str(len(await read_to_end(stream))).encode())


async def abort(stream: Stream) -> None:
    await stream.read_exactly(4)
    await stream.reset()


@asynccontextmanager
async def our_host(limits: HostLimits | None = None) -> AsyncIterator[TcpHost]:
    before = asyncio.all_tasks()
    host = TcpHost(b"o" * 32, ("/ip4/127.0.0.1/tcp/0",), limits=limits)
    for protocol, handler in ((ECHO, echo), (ANSWER, answer), (ABORT, abort)):
        host.set_stream_handler(protocol, handler)
    await host.start()
    try:
        yield host
    finally:
        await host.stop()
    assert asyncio.all_tasks() <= before


def run(scenario: Coroutine[object, object, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            await scenario

    asyncio.run(bounded())


async def lost(host: TcpHost) -> asyncio.Future[PeerId]:
    future: asyncio.Future[PeerId] = asyncio.get_running_loop().create_future()
    host.on_peer_disconnected(future.set_result)
    await asyncio.sleep(0)
    return future


async def only_connection(peer: PeerNode) -> dict[str, object]:
    (connection,) = (await peer.ask("look"))["connections"]
    return dict(connection)


async def ask(host: TcpHost, peer: PeerId, protocol: ProtocolId, data: bytes) -> bytes:
    """Write, half-close, and read to the end meanwhile."""
    stream = await host.new_stream(peer, [protocol])

    async def send() -> None:
        await stream.write(data)
        await stream.close_write()

    sending = asyncio.create_task(send())
    back = await read_to_end(stream)
    await sending
    return back


def test_py_libp2p_dials_us() -> None:
    async def scenario() -> None:
        async with our_host() as host, py_node() as py:
            (address,) = host.addresses()
            us = host.peer_id
            assert (await py.ask("dial", address=address))["peer"] == us
            seen = await only_connection(py)
            assert (seen["muxer"], seen["initiator"]) == ("Yamux", True)
            while ECHO not in (known := await py.ask("known", peer=us))["protocols"]:
                assert known
            assert {"/ipfs/id/1.0.0", "/ipfs/ping/1.0.0", ANSWER} <= set(known["protocols"])
            while not host.peers():
                await py.ask("look")
            (remote,) = host.peers()
            assert (remote.peer_id, remote.outbound) == (py.peer_id, False)
            assert ECHO in remote.protocols
            assert "libp2p" in remote.agent
            assert len((await py.ask("ping", peer=us, count=20))["times"]) == 20
            for protocol, size, told in (
                (ECHO, MIB, str(MIB)),  # four windows there and back
                (ANSWER, 70_000, "70000"),
            ):
                many = await py.ask("ask", peer=us, count=10, size=size, protocol=protocol)
                assert many["answers"] == [told] * 10
            broken = await py.ask("ask", peer=us, count=20, size=4, protocol=ABORT)
            assert broken["answers"] == [""] * 20  # 0.8.1 forgets a reset stream: it reads an end
            with pytest.raises(PeerNodeError):
                await py.ask("ask", peer=us, count=1, size=4, protocol="/test/unknown/1")
            assert host.connection_count() == 1
            gone = await lost(host)
            await py.ask("hang_up", peer=us)
            assert await gone == py.peer_id

    run(scenario())


def test_we_dial_py_libp2p() -> None:
    async def scenario() -> None:
        async with our_host() as host, py_node() as py:
            remote = await host.connect(py.addresses[0])
            peer = remote.peer_id
            assert peer == py.peer_id
            assert (await only_connection(py))["muxer"] == "Yamux"
            for _ in range(20):
                assert await host.ping(peer) > 0
            data = bytes(number % 251 for number in range(MIB))
            assert await ask(host, peer, ECHO, data) == data
            many = (ask(host, peer, ANSWER, bytes(70_000)) for _ in range(20))
            assert await asyncio.gather(*many) == [b"70000"] * 20
            aborted = await host.new_stream(peer, [ABORT])
            await aborted.write(b"abcd")
            with pytest.raises(TransportError, match="reset"):
                await read_to_end(aborted)
            with pytest.raises(TransportError):
                await host.new_stream(peer, [ProtocolId("/test/unknown/1")])
            gone = await lost(host)
            await host.disconnect(peer)
            assert await gone == peer

    run(scenario())


def test_a_py_libp2p_peer_that_never_reads_stops_at_its_window() -> None:
    async def scenario() -> None:
        async with our_host() as host, py_node() as py:
            peer = (await host.connect(py.addresses[0])).peer_id
            stream = await host.new_stream(peer, [NEVER])
            writing = asyncio.create_task(stream.write(bytes(THEIR_LARGEST_WINDOW + MIB)))
            for _ in range(5):
                assert await host.ping(peer) > 0
            assert not writing.done()
            await stream.reset()
            with pytest.raises(TransportError):
                await writing

    run(scenario())


def test_an_idle_py_libp2p_peer_is_kept_alive_and_a_frozen_one_is_found() -> None:
    async def scenario() -> None:
        limits = HostLimits(ping_interval_ms=50, ping_timeout_ms=2_000)
        async with our_host(limits) as host, py_node() as py:
            await host.connect(py.addresses[0])
            received = host.traffic()[0]
            while host.traffic()[0] < received + 1_000:
                await py.ask("look")
            assert host.peers()
            gone = await lost(host)
            py.freeze()
            assert await gone == py.peer_id
            assert host.counters()["libp2p.peer_silent"] == 1

    run(scenario())


def test_py_libp2p_with_another_identity_than_expected_is_refused() -> None:
    async def scenario() -> None:
        async with our_host() as host, py_node() as py:
            somebody = PeerId("12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA")
            wrong = parse_multiaddr(py.addresses[0]).with_peer(somebody)
            with pytest.raises(TransportError, match=f"is {py.peer_id}, expected was"):
                await host.connect(str(wrong))
            (address,) = host.addresses()
            theirs = parse_multiaddr(address).with_peer(somebody)
            with pytest.raises(PeerNodeError):
                await py.ask("dial", address=str(theirs))
            assert host.peers() == []

    run(scenario())


@pytest.mark.parametrize("we_dial", [True, False])
def test_gossip_reaches_the_other_side_both_ways(we_dial: bool) -> None:
    """StrictNoSign: a message of ours with a signature, or theirs, would be thrown away."""

    async def scenario() -> None:
        async with Loopback() as net, py_node() as py:
            ours = await net.node()
            await py.ask("subscribe", topic=PUBSUB)
            if we_dial:
                ours.node.add_peers(py.addresses)
            else:
                await py.ask("dial", address=ours.node.addresses()[0])
            await ours.until_peers(1)
            while not (await py.ask("subscribers", topic=PUBSUB))["peers"]:
                await py.ask("look")
            for number in range(200):
                await ours.node.publish(message(number, size=1_000))
            while len(heard := (await py.ask("heard"))["messages"]) < 200:
                await py.ask("look")
            decoded = [decode_waku_message(bytes.fromhex(each)) for each in heard]
            assert decoded == [message(number, size=1_000) for number in range(200)]
            theirs = [encode_waku_message(message(n, size=500)).hex() for n in range(1_000, 1_200)]
            await py.ask("publish", topic=PUBSUB, messages=theirs)
            await ours.until_heard(200)
            assert ours.inbox == list(range(1_000, 1_200))

    run(scenario())
