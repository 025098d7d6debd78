"""What becomes of a host whose connections are lost, frozen or idle, and of one that is stopped.

Loss is noticed and named, quiet connections live on, and whatever runs when a host stops leaves
nothing.  Hostile peers and coming back by dialling are other modules'.
"""

import asyncio
from collections.abc import Callable

import pytest

from engine.core.errors import TransportError
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.ping import PING, PING_BYTES
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.ports import ProtocolId, Stream
from engine.network.libp2p.tcp import Listener, TcpTransport, Traffic
from engine.network.libp2p.transports import Transports
from engine.network.libp2p.upgrade import ALL_MUXERS
from engine.network.libp2p.yamux import HEADER as FRAME
from engine.network.libp2p.yamux import INITIAL_WINDOW
from tests.network.libp2p.loopback_hosts import (
    SOMEBODY,
    TEST,
    RunningHosts,
    echo,
    lost_peer,
    wired_hosts,
)
from tests.patience import PATIENCE_S


async def test_a_killed_connection_is_noticed_at_once() -> None:
    async with wired_hosts() as (alice, bob, wire):
        bob.set_stream_handler(TEST, echo)
        await alice.connect(wire.address)
        losses = await lost_peer(alice), await lost_peer(bob)
        stream = await alice.new_stream(bob.peer_id, [TEST])
        wire.cut()
        assert await losses[0] == bob.peer_id
        assert await losses[1] == alice.peer_id
        with pytest.raises(TransportError, match="is lost"):
            await stream.read_some(1)
        with pytest.raises(TransportError, match="is not connected"):
            await alice.new_stream(bob.peer_id, [TEST])


async def test_a_frozen_peer_is_found_dead_by_ping() -> None:
    limits = HostLimits(ping_interval_ms=50, ping_timeout_ms=400)
    async with wired_hosts(limits=limits) as (alice, bob, wire):
        await alice.connect(wire.address)
        losses = await lost_peer(alice), await lost_peer(bob)
        for _ in range(5):  # answered pings keep the connection
            await alice.ping(bob.peer_id)
        wire.freeze()
        assert await losses[0] == bob.peer_id
        assert await losses[1] == alice.peer_id
        assert alice.counters()["libp2p.peer_silent"] == 1


@pytest.mark.parametrize("muxer", ALL_MUXERS)
async def test_a_write_is_confirmed_once_the_peer_has_read_it(muxer: ProtocolId) -> None:
    async with wired_hosts(muxers=[muxer]) as (alice, bob, wire):
        bob.set_stream_handler(TEST, echo)
        await alice.connect(wire.address)
        stream = await alice.new_stream(bob.peer_id, [TEST])
        await stream.confirm()
        wire.freeze()
        await stream.write(b"taken by the socket, read by nobody")
        confirmed = asyncio.create_task(stream.confirm())
        await other_tasks_run()
        assert not confirmed.done()
        wire.thaw()
        await confirmed


async def test_a_peer_that_never_ends_a_ping_keeps_no_stream_of_ours() -> None:
    async def answer_and_stay(stream: Stream) -> None:
        while data := await stream.read_some(PING_BYTES):
            await stream.write(data)
        await asyncio.Event().wait()

    limits = HostLimits(linger_timeout_ms=20)
    async with wired_hosts(muxers=[ALL_MUXERS[-1]], limits=limits) as (alice, bob, wire):
        bob.set_stream_handler(TEST, echo)
        bob.set_stream_handler(PING, answer_and_stay)
        await alice.connect(wire.address)
        stream = await alice.new_stream(bob.peer_id, [TEST])
        (connection,) = alice.connections()
        async with asyncio.timeout(PATIENCE_S):
            await stream.confirm()
            while connection.stream_count > 1:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)


async def test_a_write_is_not_confirmed_by_a_lost_connection() -> None:
    async with wired_hosts() as (alice, bob, wire):
        bob.set_stream_handler(TEST, echo)
        await alice.connect(wire.address)
        stream = await alice.new_stream(bob.peer_id, [TEST])
        wire.freeze()
        confirmed = asyncio.create_task(stream.confirm())
        await other_tasks_run()
        wire.cut()
        with pytest.raises(TransportError, match="is lost"):
            await confirmed
        with pytest.raises(TransportError, match="is lost"):
            await stream.confirm()


async def other_tasks_run() -> None:
    """Long enough for an answer over loopback, were there one."""
    for _ in range(1_000):
        await asyncio.sleep(0)


def test_the_default_limits_find_a_dead_peer_within_30_seconds() -> None:
    limits = HostLimits()
    between_looks_ms = min(limits.ping_interval_ms, limits.ping_timeout_ms) / 2
    worst_ms = limits.ping_interval_ms + limits.ping_timeout_ms + 2 * between_looks_ms
    assert worst_ms <= 30_000


async def test_quiet_connections_live_on_by_their_pings() -> None:
    limits = HostLimits(ping_interval_ms=5, ping_timeout_ms=5_000)
    async with wired_hosts(limits=limits) as (alice, bob, wire):
        await alice.connect(wire.address)
        await wire.more_bytes(20 * (FRAME.size + 18))  # nobody speaks: these are pings
        assert alice.peers()
        assert bob.peers()


async def test_a_peer_that_takes_no_bytes_breaks_the_stream() -> None:
    limits = HostLimits(write_timeout_ms=30)
    async with wired_hosts(limits=limits) as (alice, bob, wire):
        bob.set_stream_handler(TEST, echo)
        await alice.connect(wire.address)
        stream = await alice.new_stream(bob.peer_id, [TEST])
        wire.freeze()
        with pytest.raises(TransportError, match="took no bytes in time"):
            await stream.write(bytes(2 * INITIAL_WINDOW))


async def test_a_connection_without_streams_is_closed_unless_it_is_kept(
    running_hosts: RunningHosts,
) -> None:
    limits = HostLimits(idle_timeout_ms=100, ping_interval_ms=10, ping_timeout_ms=5_000)
    async with running_hosts(2, limits=limits) as (alice, bob):
        lost = await lost_peer(bob)
        await alice.connect(bob.addresses()[0])
        assert await lost == alice.peer_id

    async with wired_hosts(limits=limits) as (alice, bob, wire):
        connected = asyncio.Event()
        alice.on_peer_connected(lambda _: connected.set())
        bob.keep_connected(alice.addresses())
        alice.keep_connected([wire.address])
        await connected.wait()
        await wire.more_bytes(80 * (FRAME.size + 18))  # at most 4 pings and pongs in 10 ms
        assert "libp2p.idle_connection_closed" not in alice.counters()
        assert alice.peers()


async def test_stopping_in_the_middle_of_everything_leaves_nothing(
    running_hosts: RunningHosts,
) -> None:
    async with running_hosts(3) as (alice, bob, carol):
        never = asyncio.Event()

        async def hang(_: Stream) -> None:
            await never.wait()

        bob.set_stream_handler(TEST, hang)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        alice.keep_connected([f"/ip4/127.0.0.1/tcp/1/p2p/{SOMEBODY}"])
        writing = asyncio.create_task(stream.write(bytes(4 * INITIAL_WINDOW)))
        dialling = asyncio.create_task(alice.connect(carol.addresses()[0]))
        await asyncio.sleep(0)
        await alice.stop()
        with pytest.raises(TransportError):
            await dialling
        with pytest.raises(TransportError):
            await writing
        await alice.stop()  # twice is once


async def test_stopping_just_when_somebody_connects_leaves_no_socket(
    running_hosts: RunningHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepting: list[Callable[[Pipe], None]] = []
    listen = Transports.listen

    async def noted(
        self: Transports, address: Multiaddr, accept: Callable[[Pipe], None]
    ) -> Listener:
        accepting.append(accept)
        return await listen(self, address, accept)

    monkeypatch.setattr(Transports, "listen", noted)
    async with running_hosts(2) as (alice, bob):
        address = parse_multiaddr(bob.addresses()[0])
        pipe = await TcpTransport(Traffic()).dial(address)
        accepting[0](pipe)  # stop comes before its task's first step
        await alice.stop()
        assert alice.connection_count() == 0
        async with asyncio.timeout(PATIENCE_S):
            await pipe.wait_closed()
