"""What goes wrong between hosts: garbage, wrong peers, silence, loss, limits; and coming back."""

import asyncio
import os
import random
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.libp2p import encode_identify, encode_public_key
from engine.core.errors import ConfigError, TransportError
from engine.network.libp2p.dialing import retry_delay_ms
from engine.network.libp2p.handshake import SecuredPipe
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.identify import IDENTIFY
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.messages import IdentifyMessage
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.multistream import HEADER, encode_message
from engine.network.libp2p.ports import PeerId, ProtocolId, Stream
from engine.network.libp2p.tcp import TcpTransport, Traffic
from engine.network.libp2p.upgrade import upgrade
from engine.network.libp2p.varint import encode_varint
from engine.network.libp2p.yamux import FRAMES_PER_CALL, INITIAL_WINDOW
from engine.network.libp2p.yamux import HEADER as FRAME

RunningHosts = Callable[..., AbstractAsyncContextManager[list[TcpHost]]]
TEST = ProtocolId("/test/1")
LOOPBACK = "/ip4/127.0.0.1/tcp/0"
SOMEBODY = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"


class Wire(Protocol):
    """The proxy of the conftest."""

    closed: asyncio.Event

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    @property
    def address(self) -> str: ...
    def freeze(self) -> None: ...
    def cut(self) -> None: ...
    async def more_bytes(self, count: int) -> None: ...


ProxyTo = Callable[[str], Wire]


async def echo(stream: Stream) -> None:
    while data := await stream.read_some(65_536):
        await stream.write(data)


async def lost_peer(host: TcpHost) -> asyncio.Future[PeerId]:
    lost: asyncio.Future[PeerId] = asyncio.get_running_loop().create_future()
    host.on_peer_disconnected(lost.set_result)
    await asyncio.sleep(0)
    return lost


async def send_raw(host: TcpHost, data: bytes, *, end: bool = True) -> bytes:
    """What the listener answers before it closes."""
    address = parse_multiaddr(host.addresses()[0])
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(data)
    if end:
        writer.write_eof()
    try:
        answer = await reader.read()
    except ConnectionError:
        answer = b""
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    return answer


async def rogue(host: TcpHost) -> SecuredPipe:
    """A peer that finishes the handshake and then does what the test wants."""
    address = parse_multiaddr(host.addresses()[0])
    upgraded = await upgrade(
        await TcpTransport(Traffic()).dial(address),
        initiator=True,
        identity=IdentityKey(b"r" * 32),
        expected_peer=host.peer_id,
        entropy=os.urandom,
        limits=HostLimits(),
    )
    return upgraded.pipe


# --- addresses ------------------------------------------------------------------------------------


def test_a_taken_port_is_named(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(1) as (alice,):
            taken = str(parse_multiaddr(alice.addresses()[0]).with_peer(None))
            bob = TcpHost(b"b" * 32, [LOOPBACK, taken])
            with pytest.raises(TransportError, match=f"cannot listen on {taken}: Address already"):
                await bob.start()
            assert bob.addresses() == ()

    asyncio.run(scenario())


def test_nobody_there_is_named(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(2) as (alice, bob):
            address = bob.addresses()[0]
            await bob.stop()
            with pytest.raises(TransportError, match=f"cannot connect to {address}: Connection"):
                await alice.connect(address)
            assert alice.counters()["libp2p.dial_failed"] == 1

    asyncio.run(scenario())


def test_a_wrong_peer_id_is_refused_and_named(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(2) as (alice, bob):
            address = parse_multiaddr(bob.addresses()[0]).with_peer(PeerId(SOMEBODY))
            words = f"{address}: the peer is {bob.peer_id}, expected was {SOMEBODY}"
            with pytest.raises(TransportError, match=re.escape(words)):
                await alice.connect(str(address))
            assert alice.counters()["libp2p.dial_wrong_peer"] == 1
            assert alice.peers() == []

    asyncio.run(scenario())


def test_addresses_that_cannot_be_used(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(1) as (alice,):
            with pytest.raises(ConfigError, match="is not one of"):
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

    asyncio.run(scenario())


def test_listening_everywhere_announces_addresses_that_can_be_dialled() -> None:
    async def scenario() -> None:
        alice, bob = TcpHost(b"a" * 32, ["/ip4/0.0.0.0/tcp/0"]), TcpHost(b"b" * 32, [])
        await alice.start()
        await bob.start()
        assert not any(parse_multiaddr(text).is_unspecified for text in alice.addresses())
        await bob.connect(alice.addresses()[0])
        await bob.stop()
        await alice.stop()

    asyncio.run(scenario())


# --- garbage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "counter"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10, "libp2p.multistream_no_newline"),
        (b"\x16\x03\x01" * 30, "libp2p.multistream_no_newline"),
        (b"\xff" * 100, "libp2p.multistream_message_too_long"),
        (b"", "libp2p.inbound_handshake_lost"),
        (
            encode_message(HEADER) + encode_message("/tls/1.0.0") * 40,
            "libp2p.multistream_too_many_proposals",
        ),
        (
            encode_message(HEADER) + encode_message("/noise") + b"\x00\x05hello",
            "libp2p.noise_message_too_short",
        ),
        (
            encode_message(HEADER) + encode_message("/noise") + b"\x00\x20" + bytes(32),
            "libp2p.noise_weak_key",
        ),
        (
            encode_message(HEADER)
            + encode_message("/noise")
            + (b"\x00\x20" + b"\x09" + bytes(31))
            + (b"\x00\x80" + bytes(128)),
            "libp2p.noise_bad_tag",
        ),
    ],
)
def test_garbage_on_the_socket_is_dropped_and_counted(
    running_hosts: RunningHosts, caplog: pytest.LogCaptureFixture, data: bytes, counter: str
) -> None:
    async def scenario() -> None:
        async with running_hosts(2) as (alice, bob):
            await send_raw(alice, data)
            assert alice.counters() == {counter: 1}
            await bob.connect(alice.addresses()[0])  # and alice serves on

    asyncio.run(scenario())
    assert not caplog.records


def test_random_garbage_never_gets_further(
    running_hosts: RunningHosts, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        randomness = random.Random(20)
        async with running_hosts(2) as (alice, bob):
            start = encode_message(HEADER) + encode_message("/noise")
            for number in range(60):
                prefix = start[: randomness.choice([0, 5, len(start)])]
                await send_raw(alice, prefix + randomness.randbytes(randomness.randrange(400)))
                assert sum(alice.counters().values()) == number + 1
            await bob.connect(alice.addresses()[0])

    asyncio.run(scenario())
    assert not caplog.records


def test_a_peer_that_turns_bad_after_the_handshake(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(2) as (alice, bob):
            flood = await rogue(alice)
            flood.write(FRAME.pack(0, 0, 1, 1, INITIAL_WINDOW + 1) + bytes(100))
            await flood.wait_closed()
            assert alice.counters()["libp2p.yamux_window_exceeded"] == 1
            randomness = random.Random(21)
            for _ in range(30):
                peer = await rogue(alice)
                peer.write(b"\x07" + randomness.randbytes(randomness.randrange(11, 400)))
                await peer.wait_closed()
            assert alice.counters()["libp2p.yamux_bad_version"] == 30
            await bob.connect(alice.addresses()[0])
            assert [each.peer_id for each in alice.peers()] == [bob.peer_id]

    asyncio.run(scenario())


def test_streams_opened_and_reset_at_once_start_few_tasks(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(2, limits=HostLimits(max_inbound_streams=8)) as (alice, bob):
            peer = await rogue(alice)
            opened_and_reset = b"".join(
                FRAME.pack(0, 1, 1, number, 0) + FRAME.pack(0, 1, 8, number, 0)
                for number in range(1, 2_001, 2)
            )
            before = len(asyncio.all_tasks())
            peer.write(opened_and_reset)
            while "libp2p.stream_handlers_limit" not in alice.counters():
                assert len(asyncio.all_tasks()) <= before + 8
                await asyncio.sleep(0)
            peer.abort()
            await bob.connect(alice.addresses()[0])

    asyncio.run(scenario())


def test_a_peer_that_says_goodbye_again_and_again_does_not_put_it_off(
    running_hosts: RunningHosts,
) -> None:
    async def scenario() -> None:
        limits = HostLimits(close_timeout_ms=50, handshake_timeout_ms=60_000)
        async with running_hosts(1, limits=limits) as (alice,):
            peer = await rogue(alice)
            pipe_closed = asyncio.ensure_future(peer.wait_closed())
            async with asyncio.timeout(10):
                while not pipe_closed.done():
                    peer.write(FRAME.pack(0, 3, 0, 0, 0))
                    await asyncio.wait((pipe_closed,), timeout=0.01)

    asyncio.run(scenario())


def test_no_flood_of_frames_is_handled_in_one_turn(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(1) as (alice,):
            peer = await rogue(alice)
            ears = Ears()
            peer.attach(ears)
            pings = range(20_000)
            peer.write(b"".join(FRAME.pack(0, 2, 1, 0, number) for number in pings))
            async with asyncio.timeout(10):
                while not ears.pongs or ears.pongs[-1] != pings[-1]:
                    ears.news.clear()
                    await ears.news.wait()
            assert ears.pongs == list(pings)
            assert ears.most_at_once <= 2 * FRAMES_PER_CALL
            peer.abort()

    asyncio.run(scenario())


class Ears:
    """Collects pongs, and how many a Noise message held at most."""

    def __init__(self) -> None:
        self.pongs: list[int] = []
        self.most_at_once = 0
        self.news = asyncio.Event()
        self._rest = b""

    def bytes_received(self, data: bytes) -> None:
        data, before = self._rest + data, len(self.pongs)
        whole = len(data) - len(data) % FRAME.size
        self._rest = data[whole:]
        for _, kind, flags, _, opaque in FRAME.iter_unpack(data[:whole]):
            if (kind, flags) == (2, 2):
                self.pongs.append(opaque)
        self.most_at_once = max(self.most_at_once, len(self.pongs) - before)
        self.news.set()

    def pipe_lost(self, error: Exception | None) -> None: ...

    def writing_paused(self) -> None: ...

    def writing_resumed(self) -> None: ...


def identify_answer(message: IdentifyMessage) -> bytes:
    encoded = encode_identify(message)
    return encode_varint(len(encoded)) + encoded


@pytest.mark.parametrize(
    ("answer", "counter"),
    [
        (
            identify_answer(
                IdentifyMessage(public_key=encode_public_key(IdentityKey(b"x" * 32).public_key))
            ),
            "libp2p.identify_foreign_key",
        ),
        (b"\xff\xff\xff\xff", "libp2p.identify_too_long"),
        (b"\x02\xff\xff", "libp2p.identify_undecodable"),
    ],
)
def test_a_peer_that_identifies_itself_wrongly_is_dropped(
    running_hosts: RunningHosts, answer: bytes, counter: str
) -> None:
    async def scenario() -> None:
        async with running_hosts(1) as (alice,):
            peer = await rogue(alice)
            reply = encode_message(HEADER) + encode_message(IDENTIFY) + answer
            # Alice is the server of the session: her identify request is stream 2.
            peer.write(FRAME.pack(0, 0, 2, 2, len(reply)) + reply)
            await peer.wait_closed()
            assert alice.counters()[counter] == 1
            assert alice.peers() == []

    asyncio.run(scenario())


def test_silence_in_the_handshake_ends_it(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(1, limits=HostLimits(handshake_timeout_ms=400)) as (alice,):
            answer = await send_raw(alice, encode_message(HEADER), end=False)
            assert answer == encode_message(HEADER)
            assert alice.counters()["libp2p.handshake_timeout"] == 1
            peer = await rogue(alice)  # never answers identify
            await peer.wait_closed()
            assert alice.counters()["libp2p.handshake_timeout"] == 2

    asyncio.run(scenario())


def test_connections_are_bounded(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        limits = HostLimits(max_connections=1)
        async with running_hosts(3, limits=limits) as (alice, bob, carol):
            await bob.connect(alice.addresses()[0])
            with pytest.raises(TransportError):
                await carol.connect(alice.addresses()[0])
            assert alice.counters()["libp2p.inbound_connections_limit"] == 1
            with pytest.raises(TransportError, match="1 connections are open already"):
                await bob.connect(carol.addresses()[0])

    asyncio.run(scenario())


def test_strangers_leave_room_for_own_dials(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        limits = HostLimits(max_connections=2, max_inbound_connections=1)
        async with running_hosts(3, limits=limits) as (alice, bob, carol):
            await bob.connect(alice.addresses()[0])
            with pytest.raises(TransportError):
                await carol.connect(alice.addresses()[0])
            await alice.connect(carol.addresses()[0])

    asyncio.run(scenario())


# --- loss -----------------------------------------------------------------------------------------


def test_a_killed_connection_is_noticed_at_once(
    running_hosts: RunningHosts, proxy_to: ProxyTo
) -> None:
    async def scenario() -> None:
        async with running_hosts(2) as (alice, bob), proxy_to(bob.addresses()[0]) as wire:
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

    asyncio.run(scenario())


def test_a_frozen_peer_is_found_dead_by_ping(
    running_hosts: RunningHosts, proxy_to: ProxyTo
) -> None:
    async def scenario() -> None:
        limits = HostLimits(ping_interval_ms=50, ping_timeout_ms=400)
        async with (
            running_hosts(2, limits=limits) as (alice, bob),
            proxy_to(bob.addresses()[0]) as wire,
        ):
            await alice.connect(wire.address)
            losses = await lost_peer(alice), await lost_peer(bob)
            for _ in range(5):  # answered pings keep the connection
                await alice.ping(bob.peer_id)
            wire.freeze()
            assert await losses[0] == bob.peer_id
            assert await losses[1] == alice.peer_id
            assert alice.counters()["libp2p.peer_silent"] == 1

    asyncio.run(scenario())


def test_the_default_limits_find_a_dead_peer_within_30_seconds() -> None:
    limits = HostLimits()
    between_looks_ms = min(limits.ping_interval_ms, limits.ping_timeout_ms) / 2
    worst_ms = limits.ping_interval_ms + limits.ping_timeout_ms + 2 * between_looks_ms
    assert worst_ms <= 30_000


def test_quiet_connections_live_on_by_their_pings(
    running_hosts: RunningHosts, proxy_to: ProxyTo
) -> None:
    async def scenario() -> None:
        limits = HostLimits(ping_interval_ms=5, ping_timeout_ms=5_000)
        async with (
            running_hosts(2, limits=limits) as (alice, bob),
            proxy_to(bob.addresses()[0]) as wire,
        ):
            await alice.connect(wire.address)
            await wire.more_bytes(20 * (FRAME.size + 18))  # nobody speaks: these are pings
            assert alice.peers()
            assert bob.peers()

    asyncio.run(scenario())


def test_a_peer_that_takes_no_bytes_breaks_the_stream(
    running_hosts: RunningHosts, proxy_to: ProxyTo
) -> None:
    async def scenario() -> None:
        limits = HostLimits(write_timeout_ms=30)
        async with (
            running_hosts(2, limits=limits) as (alice, bob),
            proxy_to(bob.addresses()[0]) as wire,
        ):
            bob.set_stream_handler(TEST, echo)
            await alice.connect(wire.address)
            stream = await alice.new_stream(bob.peer_id, [TEST])
            wire.freeze()
            with pytest.raises(TransportError, match="took no bytes in time"):
                await stream.write(bytes(2 * INITIAL_WINDOW))

    asyncio.run(scenario())


def test_a_connection_without_streams_is_closed_unless_it_is_kept(
    running_hosts: RunningHosts, proxy_to: ProxyTo
) -> None:
    async def scenario() -> None:
        limits = HostLimits(idle_timeout_ms=100, ping_interval_ms=10, ping_timeout_ms=5_000)
        async with running_hosts(2, limits=limits) as (alice, bob):
            lost = await lost_peer(bob)
            await alice.connect(bob.addresses()[0])
            assert await lost == alice.peer_id

        async with (
            running_hosts(2, limits=limits) as (alice, bob),
            proxy_to(bob.addresses()[0]) as wire,
        ):
            connected = asyncio.Event()
            alice.on_peer_connected(lambda _: connected.set())
            bob.keep_connected(alice.addresses())
            alice.keep_connected([wire.address])
            await connected.wait()
            await wire.more_bytes(80 * (FRAME.size + 18))  # at most 4 pings and pongs in 10 ms
            assert "libp2p.idle_connection_closed" not in alice.counters()
            assert alice.peers()

    asyncio.run(scenario())


def test_a_restarted_peer_is_dialled_again(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
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
                lost = await lost_peer_once(alice)
                await bob.stop()
                assert await lost == bob.peer_id
                bob = TcpHost(b"b" * 32, [str(parse_multiaddr(address).with_peer(None))])
                await bob.start()
            assert await connected.get() == bob.peer_id
            lost = await lost_peer_once(alice)
            await alice.disconnect(bob.peer_id)  # for good
            assert await lost == bob.peer_id
            await bob.stop()
            assert "libp2p.duplicate_connections" not in alice.counters()

    async def lost_peer_once(host: TcpHost) -> asyncio.Future[PeerId]:
        lost: asyncio.Future[PeerId] = asyncio.get_running_loop().create_future()
        host.on_peer_disconnected(lambda peer: None if lost.done() else lost.set_result(peer))
        await asyncio.sleep(0)
        return lost

    asyncio.run(scenario())


def test_a_peer_that_comes_later_is_found_at_any_of_its_addresses(
    running_hosts: RunningHosts,
) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


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


# --- two at once ----------------------------------------------------------------------------------


def test_simultaneous_dials_end_with_one_connection_that_both_choose(
    running_hosts: RunningHosts, proxy_to: ProxyTo
) -> None:
    async def scenario() -> None:
        limits = HostLimits(duplicate_grace_ms=300)
        async with (
            running_hosts(2, limits=limits) as (alice, bob),
            proxy_to(bob.addresses()[0]) as from_alice,
            proxy_to(alice.addresses()[0]) as from_bob,
        ):
            alice.set_stream_handler(TEST, echo)
            connected: list[PeerId] = []
            lost: list[PeerId] = []
            for host in (alice, bob):
                host.on_peer_connected(lambda remote: connected.append(remote.peer_id))
                host.on_peer_disconnected(lost.append)
            await asyncio.gather(alice.connect(from_alice.address), bob.connect(from_bob.address))
            waits = {
                asyncio.create_task(wire.closed.wait()): wire for wire in (from_alice, from_bob)
            }
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

    asyncio.run(scenario())


def test_one_dial_serves_all_who_ask_for_it(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(2) as (alice, bob):
            address = bob.addresses()[0]
            remotes = await asyncio.gather(*(alice.connect(address) for _ in range(5)))
            assert set(remotes) == {remotes[0]}
            assert alice.connection_count() == bob.connection_count() == 1

    asyncio.run(scenario())


def test_connections_of_one_peer_are_bounded(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        limits = HostLimits(max_connections_per_peer=2)
        async with running_hosts(2, limits=limits) as (alice, bob):
            unnamed = parse_multiaddr(alice.addresses()[0]).with_peer(None)
            for _ in range(5):  # without a peer id a dial cannot know that there is one already
                await bob.connect(str(unnamed))
            assert bob.connection_count() == 2
            assert len(alice.peers()) == 1

    asyncio.run(scenario())


# --- stopping -------------------------------------------------------------------------------------


def test_stopping_in_the_middle_of_everything_leaves_nothing(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_stopping_just_when_somebody_connects_leaves_no_socket(running_hosts: RunningHosts) -> None:
    async def scenario() -> None:
        async with running_hosts(2) as (alice, bob):
            address = parse_multiaddr(bob.addresses()[0])
            pipe = await TcpTransport(Traffic()).dial(address)
            alice._accept(pipe)  # stop comes before its task's first step
            await alice.stop()
            assert alice.connection_count() == 0
            async with asyncio.timeout(10):
                await pipe.wait_closed()

    asyncio.run(scenario())
