"""Whom a host dials: addresses that work and those that do not, coming back, and two dials at once.

What cannot be dialled is named; kept peers are dialled again with growing delays; and of several
connections to one peer both sides keep the same.
"""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ConfigError, TransportError
from engine.network.libp2p.dialing import retry_delay_ms
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import PeerId
from tests.network.libp2p.loopback_hosts import (
    LOOPBACK,
    SOMEBODY,
    TEST,
    Proxy,
    RunningHosts,
    echo,
    lost_peer,
)


async def test_a_taken_port_is_named(running_hosts: RunningHosts) -> None:
    async with running_hosts(1) as (alice,):
        taken = str(parse_multiaddr(alice.addresses()[0]).with_peer(None))
        bob = TcpHost(b"b" * 32, [LOOPBACK, taken])
        with pytest.raises(TransportError, match=f"cannot listen on {taken}: Address already"):
            await bob.start()
        assert bob.addresses() == ()


async def test_nobody_there_is_named(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        address = bob.addresses()[0]
        await bob.stop()
        with pytest.raises(TransportError, match=f"cannot connect to {address}: Connection"):
            await alice.connect(address)
        assert alice.counters()["libp2p.dial_failed"] == 1


async def test_a_wrong_peer_id_is_refused_and_named(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        address = parse_multiaddr(bob.addresses()[0]).with_peer(PeerId(SOMEBODY))
        words = f"{address}: the peer is {bob.peer_id}, expected was {SOMEBODY}"
        with pytest.raises(TransportError, match=re.escape(words)):
            await alice.connect(str(address))
        assert alice.counters()["libp2p.dial_wrong_peer"] == 1
        assert alice.peers() == []


async def test_addresses_that_cannot_be_used(running_hosts: RunningHosts) -> None:
    async with running_hosts(1) as (alice,):
        with pytest.raises(ConfigError, match="bad_kind"):
            await alice.connect("/ip5/1/tcp/1")
        with pytest.raises(TransportError, match="/tcp/1/ws: Connection refused"):
            await alice.connect("/ip4/127.0.0.1/tcp/1/ws")
        with pytest.raises(TransportError, match="is this node itself"):
            await alice.connect(alice.addresses()[0])
        unnamed = str(parse_multiaddr(alice.addresses()[0]).with_peer(None))
        with pytest.raises(TransportError, match="is this node itself"):
            await alice.connect(unnamed)
        alice.keep_connected(["nonsense", "/ip4/1.2.3.4/udp/1/quic-v1", alice.addresses()[0]])
        assert alice.counters()["libp2p.kept_address_unusable"] == 2
    with pytest.raises(TransportError, match="is not running"):
        await alice.connect("/ip4/127.0.0.1/tcp/1")
    with pytest.raises(ConfigError):
        TcpHost(b"x" * 32, ["/ip4/300.0.0.1/tcp/1"])


async def test_listening_everywhere_announces_addresses_that_can_be_dialled() -> None:
    alice, bob = TcpHost(b"a" * 32, ["/ip4/0.0.0.0/tcp/0"]), TcpHost(b"b" * 32, [])
    await alice.start()
    await bob.start()
    assert not any(parse_multiaddr(text).is_unspecified for text in alice.addresses())
    await bob.connect(alice.addresses()[0])
    await bob.stop()
    await alice.stop()


async def test_a_restarted_peer_is_dialled_again(running_hosts: RunningHosts) -> None:
    async with running_hosts(1, limits=HostLimits(retry_first_ms=10)) as (alice,):
        bob = TcpHost(b"b" * 32, [LOOPBACK])
        await bob.start()
        address = bob.addresses()[0]
        connected: asyncio.Queue[PeerId] = asyncio.Queue()
        alice.on_peer_connected(lambda remote: connected.put_nowait(remote.peer_id))
        alice.keep_connected([address])
        alice.keep_connected([address])  # twice is once
        for _ in range(3):
            assert await connected.get() == bob.peer_id
            lost = await lost_peer(alice)
            await bob.stop()
            assert await lost == bob.peer_id
            bob = TcpHost(b"b" * 32, [str(parse_multiaddr(address).with_peer(None))])
            await bob.start()
        assert await connected.get() == bob.peer_id
        lost = await lost_peer(alice)
        await alice.disconnect(bob.peer_id)  # for good
        assert await lost == bob.peer_id
        await bob.stop()
        assert "libp2p.duplicate_connections" not in alice.counters()


async def test_a_peer_that_comes_later_is_found_at_any_of_its_addresses(
    running_hosts: RunningHosts,
) -> None:
    async with running_hosts(2, limits=HostLimits(retry_first_ms=10)) as (alice, bob):
        address = parse_multiaddr(bob.addresses()[0])
        await bob.stop()
        connected: asyncio.Future[PeerId] = asyncio.get_running_loop().create_future()
        alice.on_peer_connected(lambda remote: connected.set_result(remote.peer_id))
        nowhere = f"/ip4/127.0.0.1/tcp/1/p2p/{bob.peer_id}"
        alice.keep_connected([nowhere, str(address)])
        late = TcpHost(bytes([2]) * 32, [str(address.with_peer(None))])
        await late.start()
        assert await connected == bob.peer_id
        await late.stop()


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True), st.booleans())
def test_back_off_grows_to_its_cap_and_not_beyond(
    failures: int, randomness: float, is_near: bool
) -> None:
    delay_ms = retry_delay_ms(failures, is_near=is_near, limits=HostLimits(), random=randomness)
    cap_ms = 5_000 if is_near else 60_000
    assert 187 <= delay_ms <= cap_ms * 1.25
    if failures == 1:
        assert delay_ms <= 313
    if failures > 10:
        assert delay_ms >= cap_ms * 0.75


async def test_simultaneous_dials_end_with_one_connection_that_both_choose(
    running_hosts: RunningHosts,
) -> None:
    limits = HostLimits(duplicate_grace_ms=300)
    async with (
        running_hosts(2, limits=limits) as (alice, bob),
        Proxy(bob.addresses()[0]) as from_alice,
        Proxy(alice.addresses()[0]) as from_bob,
    ):
        alice.set_stream_handler(TEST, echo)
        connected: list[PeerId] = []
        lost: list[PeerId] = []
        for host in (alice, bob):
            host.on_peer_connected(lambda remote: connected.append(remote.peer_id))
            host.on_peer_disconnected(lost.append)
        await asyncio.gather(alice.connect(from_alice.address), bob.connect(from_bob.address))
        waits = {asyncio.create_task(wire.closed.wait()): wire for wire in (from_alice, from_bob)}
        done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        (closed,) = [waits[task] for task in done]
        smaller_dialled = from_alice if alice.peer_id < bob.peer_id else from_bob
        assert closed is not smaller_dialled  # both ids are base58 of equal length
        assert sorted(connected) == sorted([alice.peer_id, bob.peer_id])
        assert lost == []
        stream = await bob.new_stream(alice.peer_id, [TEST])
        await stream.write(b"still here")
        assert await stream.read_exactly(10) == b"still here"


async def test_one_dial_serves_all_who_ask_for_it(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        address = bob.addresses()[0]
        remotes = await asyncio.gather(*(alice.connect(address) for _ in range(5)))
        assert set(remotes) == {remotes[0]}
        assert alice.connection_count() == bob.connection_count() == 1


async def test_connections_of_one_peer_are_bounded(running_hosts: RunningHosts) -> None:
    limits = HostLimits(max_connections_per_peer=2)
    async with running_hosts(2, limits=limits) as (alice, bob):
        unnamed = parse_multiaddr(alice.addresses()[0]).with_peer(None)
        for _ in range(5):  # without a peer id a dial cannot know that there is one already
            await bob.connect(str(unnamed))
        assert bob.connection_count() == 2
        assert len(alice.peers()) == 1
