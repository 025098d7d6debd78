"""Hosts over every transport with every muxer, and the bounds that hold for all of them."""

import asyncio
import gc
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import product

import pytest

from engine.core.errors import TransportError
from engine.network.libp2p.admission import Handshakes, origin_of
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.identify import IDENTIFY_PUSH
from engine.network.libp2p.identify_service import PUSH_BURST, PushBudget
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.pipe import PipeSink
from engine.network.libp2p.ports import ProtocolId, Stream
from engine.network.libp2p.upgrade import MPLEX, YAMUX
from tests.network.libp2p.loopback_hosts import (
    TEST,
    RunningHosts,
    echo,
    lost_peer,
    read_to_end,
    wired_hosts,
)
from tests.patience import PATIENCE_S

ANSWER = ProtocolId("/test/answer/1")
MIB = 1024 * 1024
EVERY_WAY = pytest.mark.parametrize(
    ("layer", "muxer"), [each for each in product(("", "/ws"), (YAMUX, MPLEX)) if any(each)]
)


async def answer(stream: Stream) -> None:
    await stream.write(str(len(await read_to_end(stream))).encode())


# --- every transport with every muxer -------------------------------------------------------------


@EVERY_WAY
async def test_streams_of_all_sizes(
    running_hosts: RunningHosts, layer: str, muxer: ProtocolId
) -> None:
    async with running_hosts(2, layer=layer, muxers=(muxer,)) as (alice, bob):
        bob.set_stream_handler(TEST, echo)
        bob.set_stream_handler(ANSWER, answer)
        remote = await alice.connect(bob.addresses()[0])
        assert remote.listen_addresses == tuple(bob.addresses())
        stream = await alice.new_stream(bob.peer_id, [TEST])
        data = bytes(number % 251 for number in range(3 * MIB))

        async def send() -> None:
            await stream.write(data)
            await stream.close_write()

        sending = asyncio.create_task(send())
        assert await read_to_end(stream) == data
        await sending

        async def ask(size: int) -> bytes:
            asked = await alice.new_stream(bob.peer_id, [ANSWER])
            await asked.write(bytes(size))
            await asked.close_write()
            return await read_to_end(asked)

        sizes = range(0, 20_000, 100)
        answers = await asyncio.gather(*(ask(size) for size in sizes))
        assert [int(each) for each in answers] == list(sizes)
        assert alice.connection_count() == bob.connection_count() == 1
        assert not alice.counters()
        assert not bob.counters()


@EVERY_WAY
async def test_reset_and_failing_handlers_cost_their_stream_only(
    running_hosts: RunningHosts, layer: str, muxer: ProtocolId
) -> None:
    async with running_hosts(2, layer=layer, muxers=(muxer,)) as (alice, bob):
        broken: asyncio.Queue[TransportError] = asyncio.Queue()

        async def wait(stream: Stream) -> None:
            try:
                await read_to_end(stream)
            except TransportError as error:
                broken.put_nowait(error)
            raise TransportError("the handler fails, too")

        bob.set_stream_handler(TEST, wait)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        await stream.reset()
        assert "the peer reset the stream" in str(await broken.get())
        stream = await alice.new_stream(bob.peer_id, [TEST])
        await stream.close_write()
        with pytest.raises(TransportError, match="the peer reset the stream"):
            await stream.read_some(1)
        assert await alice.ping(bob.peer_id) > 0


@EVERY_WAY
async def test_a_frozen_peer_is_found_and_a_quiet_one_kept(layer: str, muxer: ProtocolId) -> None:
    limits = HostLimits(ping_interval_ms=20, ping_timeout_ms=1_500)
    wired = wired_hosts(limits=limits, layer=layer, muxers=(muxer,))
    async with wired as (alice, bob, wire):
        await alice.connect(wire.address)
        losses = await lost_peer(alice), await lost_peer(bob)
        await wire.more_bytes(2_000)  # nobody speaks: these keep the connection alive
        assert alice.peers()
        assert bob.peers()
        wire.freeze()
        assert await losses[0] == bob.peer_id
        assert await losses[1] == alice.peer_id
        assert alice.counters()["libp2p.peer_silent"] == 1


async def test_probes_are_no_use_of_a_connection() -> None:
    """Else a connection whose muxer has no ping would never grow idle."""
    limits = HostLimits(ping_interval_ms=10, ping_timeout_ms=5_000, idle_timeout_ms=150)
    alice = TcpHost(b"a" * 32, [], limits=limits, muxers=(MPLEX,))
    bob = TcpHost(b"b" * 32, ["/ip4/127.0.0.1/tcp/0"])
    await alice.start()
    await bob.start()
    await alice.connect(bob.addresses()[0])
    async with asyncio.timeout(PATIENCE_S):
        await (await lost_peer(alice))
    assert alice.counters() == {"libp2p.idle_connection_closed": 1}
    await alice.stop()
    await bob.stop()


async def test_a_slow_reader_over_mplex_loses_its_stream_and_nobody_else_any(
    running_hosts: RunningHosts,
) -> None:
    limits = HostLimits(max_unread_bytes_per_stream=MIB)
    async with running_hosts(2, limits=limits, muxers=(MPLEX,)) as (alice, bob):
        never = asyncio.Event()

        async def ignore(_: Stream) -> None:
            await never.wait()

        bob.set_stream_handler(TEST, ignore)
        bob.set_stream_handler(ANSWER, answer)
        await alice.connect(bob.addresses()[0])
        other = await alice.new_stream(bob.peer_id, [ANSWER])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        await stream.write(bytes(MIB))
        await stream.write(b"one too many")
        with pytest.raises(TransportError, match="the peer reset the stream"):
            await stream.read_some(1)
        assert bob.counters()["libp2p.stream_buffer_limit"] == 1
        await other.write(b"1234")
        await other.close_write()
        assert await read_to_end(other) == b"4"


async def test_ends_that_are_held_back_over_mplex_do_come(running_hosts: RunningHosts) -> None:
    """Nothing else happens on the connection; its own timer sends them."""
    async with running_hosts(2, muxers=(MPLEX,)) as (alice, bob):

        async def listen(stream: Stream) -> None:
            await read_to_end(stream)

        bob.set_stream_handler(TEST, listen)
        await alice.connect(bob.addresses()[0])
        streams = [await alice.new_stream(bob.peer_id, [TEST]) for _ in range(4)]
        await alice.ping(bob.peer_id)
        for stream in streams:
            await stream.close_write()
        async with asyncio.timeout(PATIENCE_S):
            assert await asyncio.gather(*map(read_to_end, streams)) == [b""] * 4


@pytest.mark.parametrize(
    ("dialler", "listener", "taken"),
    [
        ((YAMUX, MPLEX), (MPLEX, YAMUX), YAMUX),
        ((MPLEX, YAMUX), (YAMUX,), YAMUX),
        ((YAMUX, MPLEX), (MPLEX,), MPLEX),
        ((YAMUX,), (MPLEX,), None),
    ],
)
async def test_the_first_muxer_that_both_have(
    dialler: Sequence[ProtocolId], listener: Sequence[ProtocolId], taken: ProtocolId | None
) -> None:
    alice = TcpHost(b"a" * 32, [], muxers=dialler)
    bob = TcpHost(b"b" * 32, ["/ip4/127.0.0.1/tcp/0"], muxers=listener)
    await alice.start()
    await bob.start()
    if taken is None:
        with pytest.raises(TransportError, match="none of the proposed protocols"):
            await alice.connect(bob.addresses()[0])
    else:
        await alice.connect(bob.addresses()[0])
        (connection,) = alice.connections()
        assert connection.muxer.has_ping == (taken == YAMUX)
    await alice.stop()
    await bob.stop()


@EVERY_WAY
async def test_stopping_in_the_middle_of_everything_leaves_nothing(
    running_hosts: RunningHosts, layer: str, muxer: ProtocolId
) -> None:
    async with running_hosts(3, layer=layer, muxers=(muxer,)) as (alice, bob, carol):
        never = asyncio.Event()

        async def hang(stream: Stream) -> None:
            await stream.read_exactly(1)
            await never.wait()

        bob.set_stream_handler(TEST, hang)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        writing = asyncio.create_task(stream.write(bytes(64 * MIB)))
        dialling = asyncio.create_task(alice.connect(carol.addresses()[0]))
        await asyncio.sleep(0)
        await alice.stop()
        with pytest.raises(TransportError):
            await dialling
        with pytest.raises(TransportError):
            await writing


@EVERY_WAY
async def test_connections_that_come_and_go_leave_nothing(layer: str, muxer: ProtocolId) -> None:
    """Orderly, cut, and given up in the handshake; objects are counted, not only sockets."""
    async with wired_hosts(layer=layer, muxers=(muxer,)) as (alice, bob, wire):
        bob.set_stream_handler(TEST, echo)
        address = parse_multiaddr(bob.addresses()[0])
        settled: list[int] = []
        for number in range(60):
            lost = await lost_peer(bob)
            await alice.connect(wire.address)
            stream = await alice.new_stream(bob.peer_id, [TEST])
            await stream.write(b"x")
            assert await stream.read_exactly(1) == b"x"
            if number % 2:
                wire.cut()
            else:
                await alice.disconnect(bob.peer_id)
            assert await lost == alice.peer_id
            _, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(b"GET / HT"[: number % 9])
            writer.transport.abort()
            await until_empty(alice, bob)
            if number in (29, 59):
                gc.collect()
                settled.append(len(asyncio.all_tasks()) * 1_000 + connections_alive())
        assert settled[1] <= settled[0]


async def until_empty(*hosts: TcpHost) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while any(host.connection_count() for host in hosts):
            for host in hosts:
                assert not host.peers()
            await asyncio.sleep(0)


def connections_alive() -> int:
    kinds = {"Connection", "MuxedStream", "TcpPipe", "WebSocketPipe", "SecuredPipe", "Mplex"}
    return sum(type(each).__name__ in kinds for each in gc.get_objects())


# --- who may begin --------------------------------------------------------------------------------


class Socket:
    """A pipe that never says anything, from a given address."""

    queued_bytes = 0

    def __init__(self, host: str) -> None:
        kind = "ip6" if ":" in host else "ip4"
        self.remote_address: Multiaddr = parse_multiaddr(f"/{kind}/{host}/tcp/1")

    async def read_exactly(self, count: int) -> bytes:
        raise TransportError(f"{count} bytes never come")

    def write(self, data: bytes) -> None: ...
    def attach(self, sink: PipeSink) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    async def wait_closed(self) -> None: ...


def admitted(handshakes: Handshakes, *hosts: str) -> list[str]:
    """Reasons; "" for those that may begin, and then stay half open."""
    reasons: list[str] = []
    for host in hosts:
        socket = Socket(host)
        reason = handshakes.refusal(socket, connected=0)
        if reason is None:
            assert handshakes.add_inbound(socket) is None
        reasons.append(reason or "")
    return reasons


def test_one_address_cannot_take_all_slots_for_handshakes() -> None:
    limits = HostLimits()
    handshakes = Handshakes(limits)
    reasons = admitted(handshakes, *["192.0.2.1"] * 64)
    assert reasons.count("") == limits.max_handshakes_per_address < limits.max_handshakes
    assert set(reasons) == {"", "handshakes_per_address_limit"}
    assert admitted(handshakes, "192.0.2.2", "2001:db8::1") == ["", ""]


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("/ip4/192.0.2.1/tcp/1", "192.0.2.1"),
        ("/ip6/2001:db8:1:2::3/tcp/1", "2001:db8:1::/48"),
        ("/ip6/2001:db8:1:ffff::4/tcp/1", "2001:db8:1::/48"),
        ("/ip6/2001:db8:2:2::3/tcp/1", "2001:db8:2::/48"),
        ("/ip6/::ffff:192.0.2.1/tcp/1", "192.0.2.1"),
        ("/ip6/fd12:3456::7/tcp/1", "fd12:3456::7"),
        ("/ip6/fe80::7/tcp/1", "fe80::7"),
    ],
)
def test_an_origin_is_what_one_somebody_is_likely_to_have(address: str, origin: str) -> None:
    assert origin_of(parse_multiaddr(address)) == origin


def test_a_48_of_ipv6_is_one_address() -> None:
    handshakes = Handshakes(HostLimits(max_handshakes_per_address=2))
    same, other = [f"2001:db8:0:{number}::1" for number in range(1, 5)], "2001:db8:1::1"
    assert admitted(handshakes, *same, other) == [
        "", "", "handshakes_per_address_limit", "handshakes_per_address_limit", "",
    ]  # fmt: skip


def test_own_dials_take_no_slot_of_strangers() -> None:
    limits = HostLimits(max_handshakes=1)
    handshakes = Handshakes(limits)
    handshakes.add_outbound(Socket("192.0.2.1"))
    assert admitted(handshakes, "192.0.2.1", "192.0.2.2") == ["", "handshakes_limit"]
    assert len(handshakes) == len(list(handshakes)) == 2


@pytest.mark.parametrize("layer", ["", "/ws"])
async def test_half_open_sockets_keep_nobody_else_out(
    running_hosts: RunningHosts, layer: str
) -> None:
    """Of 64 sockets from one address the half is refused at once; the rest ends by time-out."""
    limits = HostLimits(handshake_timeout_ms=2_000)
    async with running_hosts(1, limits=limits, layer=layer) as (alice,):
        address = parse_multiaddr(alice.addresses()[0])
        ends = await asyncio.gather(
            *(asyncio.open_connection(address.host, address.port) for _ in range(64))
        )
        # Sockets of one address only; others are counted apart (see above).
        await asyncio.gather(*(reader.read() for reader, _ in ends), return_exceptions=True)
        counters = alice.counters()
        assert counters["libp2p.handshakes_per_address_limit"] == 32
        assert counters["libp2p.handshake_timeout"] == 32
        for _, writer in ends:
            writer.close()
        assert alice.connection_count() == 0


# --- identify push --------------------------------------------------------------------------------


async def test_other_addresses_are_pushed(
    running_hosts: RunningHosts,
) -> None:
    class Laptop(TcpHost):
        is_moved = False

        def addresses(self) -> Sequence[str]:
            here = f"/ip4/127.0.0.1/tcp/4242/p2p/{self.peer_id}"
            return [here] if self.is_moved else super().addresses()

    async with running_hosts(1) as (alice,), AsyncExitStack() as stack:
        limits = HostLimits(address_check_interval_ms=10)
        bob = Laptop(b"b" * 32, ["/ip4/127.0.0.1/tcp/0"], limits=limits)
        await bob.start()
        stack.push_async_callback(bob.stop)
        await alice.connect(bob.addresses()[0])
        bob.is_moved = True
        moved = bob.addresses()[0]
        while alice.peers()[0].listen_addresses != (moved,):
            await alice.ping(bob.peer_id)
        assert bob.counters() == {"libp2p.own_addresses_changed": 1}


async def test_pushes_are_bounded_in_number_and_time(running_hosts: RunningHosts) -> None:
    limits = HostLimits(stream_timeout_ms=1_000)
    async with running_hosts(2, limits=limits) as (alice, bob):
        await alice.connect(bob.addresses()[0])
        silent = await alice.new_stream(bob.peer_id, [IDENTIFY_PUSH])
        with pytest.raises(TransportError, match="reset"):
            await silent.read_some(1)
        assert bob.counters()["libp2p.identify_push_timeout"] == 1
        refused = 0
        for _ in range(PUSH_BURST + 10):
            try:
                push = await alice.new_stream(bob.peer_id, [IDENTIFY_PUSH])
                await push.write(b"\x00")
                await push.close_write()
                assert await push.read_some(1) == b""
            except TransportError:
                refused += 1
        assert refused == bob.counters()["libp2p.identify_push_limit"] > 0
        assert await alice.ping(bob.peer_id) > 0


def test_a_push_budget_comes_back() -> None:
    budget = PushBudget()
    for _ in range(PUSH_BURST):
        budget.take(1_000.0)
    with pytest.raises(Exception, match="identify_push_limit"):
        budget.take(1_000.5)
    budget.take(1_001.5)
