"""Two real hosts over loopback: connecting, streams, back-pressure, half-close, reset."""

import asyncio
import logging

import pytest

from engine.core.errors import LocalProtocolError, RemoteProtocolError, TransportError
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.ports import Host, PeerId, ProtocolId, RemotePeer, Stream
from engine.network.libp2p.yamux import INITIAL_WINDOW
from tests.network.libp2p.loopback_hosts import TEST, RunningHosts, echo, read_to_end

MIB = 1024 * 1024


def pattern(size: int) -> bytes:
    return bytes(number % 251 for number in range(size))


async def test_connecting_tells_each_side_who_the_other_is(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        host: Host = alice  # it is what the port asks for
        seen: asyncio.Future[RemotePeer] = asyncio.get_running_loop().create_future()
        bob.on_peer_connected(seen.set_result)
        bob.set_stream_handler(TEST, echo)
        remote = await host.connect(bob.addresses()[0])
        assert remote.peer_id == bob.peer_id
        assert TEST in remote.protocols
        assert remote.listen_addresses == tuple(bob.addresses())
        assert remote.agent == "causerie"
        assert remote.outbound
        assert list(alice.peers()) == [remote]
        assert alice.peer(bob.peer_id) == remote
        assert alice.peer(alice.peer_id) is None
        other = await seen
        assert (other.peer_id, other.outbound) == (alice.peer_id, False)
        assert other.listen_addresses == tuple(alice.addresses())
        assert await alice.connect(bob.addresses()[0]) == remote
        assert alice.connection_count() == 1
        received, sent = alice.traffic()
        assert received > 0
        assert sent > 0
        assert await alice.ping(bob.peer_id) > 0


async def test_a_mebibyte_both_ways_at_once(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        bob.set_stream_handler(TEST, echo)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        data = pattern(MIB)

        async def send() -> None:
            await stream.write(data)
            await stream.close_write()

        sending = asyncio.create_task(send())
        assert await read_to_end(stream) == data
        await sending


async def test_a_slow_reader_holds_a_window_and_stops_its_writer_only(
    running_hosts: RunningHosts,
) -> None:
    async with running_hosts(2) as (alice, bob):
        reads = asyncio.Event()
        received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def read_late(stream: Stream) -> None:
            await reads.wait()
            received.set_result(await read_to_end(stream))

        bob.set_stream_handler(TEST, read_late)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        before = bob.traffic()[0]
        writing = asyncio.create_task(stream.write(pattern(MIB)))
        for _ in range(5):  # each goes through behind everything that was written
            await alice.ping(bob.peer_id)
        assert not writing.done()
        assert INITIAL_WINDOW <= bob.traffic()[0] - before < INITIAL_WINDOW + 8_192
        reads.set()
        await writing
        await stream.close_write()
        assert await received == pattern(MIB)


async def test_half_close_lets_the_answer_through(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):

        async def answer(stream: Stream) -> None:
            question = await read_to_end(stream)
            await stream.write(b"answer to " + question)

        bob.set_stream_handler(TEST, answer)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        assert (stream.protocol, stream.peer_id) == (TEST, bob.peer_id)
        await stream.write(b"question")
        await stream.close_write()
        await stream.close_write()  # twice is once
        with pytest.raises(LocalProtocolError):
            await stream.write(b"more")
        assert await read_to_end(stream) == b"answer to question"
        assert await stream.read_some(1) == b""
        with pytest.raises(TransportError, match="too early"):
            await stream.read_exactly(1)


async def test_reset_breaks_both_halves_on_both_sides(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        broken: asyncio.Future[TransportError] = asyncio.get_running_loop().create_future()

        async def wait(stream: Stream) -> None:
            await stream.write(b"here")
            try:
                await stream.read_exactly(1)
            except TransportError as error:
                broken.set_result(error)
                raise

        bob.set_stream_handler(TEST, wait)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        assert await stream.read_exactly(4) == b"here"
        await stream.reset()
        await stream.reset()  # never raises
        assert "the peer reset the stream" in str(await broken)
        for use in (stream.read_some(1), stream.write(b"x"), stream.close_write()):
            with pytest.raises(TransportError):
                await use


async def test_the_first_protocol_that_the_peer_speaks(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        bob.set_stream_handler(TEST, echo)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [ProtocolId("/test/2"), TEST])
        assert stream.protocol == TEST
        with pytest.raises(TransportError, match="speaks none of"):
            await alice.new_stream(bob.peer_id, [ProtocolId("/test/2")])
        with pytest.raises(TransportError, match="is not connected"):
            await alice.new_stream(PeerId("12D3KooWnobody"), [TEST])


@pytest.mark.parametrize(
    ("error", "counter", "is_logged"),
    [
        (RemoteProtocolError("test_reason"), "libp2p.test_reason", False),
        (TransportError("gone"), "libp2p.inbound_stream_broken", False),
        pytest.param(
            KeyError("a bug"),
            "libp2p.stream_handler_failed",
            True,
            marks=pytest.mark.logs_a_traceback,
        ),
    ],
)
def test_a_failing_handler_costs_its_stream_only(
    running_hosts: RunningHosts,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    counter: str,
    is_logged: bool,
) -> None:
    async def scenario() -> None:
        async with running_hosts(2) as (alice, bob):

            async def fail(stream: Stream) -> None:
                await stream.read_exactly(1)
                raise error

            bob.set_stream_handler(TEST, fail)
            await alice.connect(bob.addresses()[0])
            stream = await alice.new_stream(bob.peer_id, [TEST])
            await stream.write(b"x")
            with pytest.raises(TransportError, match="reset"):
                await stream.read_exactly(1)
            assert bob.counters()[counter] == 1
            await alice.ping(bob.peer_id)

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    assert bool(caplog.records) == is_logged


async def test_what_a_handler_leaves_unread_does_not_block_the_peer(
    running_hosts: RunningHosts,
) -> None:
    async with running_hosts(2) as (alice, bob):

        async def answer_early(stream: Stream) -> None:
            await stream.write(b"enough")

        bob.set_stream_handler(TEST, answer_early)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        await stream.write(bytes(MIB))
        await stream.close_write()
        assert await read_to_end(stream) == b"enough"


async def test_handlers_that_come_later_are_announced(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        await alice.connect(bob.addresses()[0])
        bob.set_stream_handler(TEST, echo)
        while TEST not in alice.peers()[0].protocols:
            await alice.ping(bob.peer_id)
        assert alice.peers()[0].listen_addresses == tuple(bob.addresses())


async def test_connected_comes_before_any_handler(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        order: list[str] = []
        handled = asyncio.Event()

        async def note(_: Stream) -> None:
            order.append("stream")
            handled.set()

        bob.set_stream_handler(TEST, note)
        bob.on_peer_connected(lambda _: order.append("connected"))
        await alice.connect(bob.addresses()[0])
        await alice.new_stream(bob.peer_id, [TEST])
        await handled.wait()
        assert order == ["connected", "stream"]


async def test_concurrent_writes_do_not_mix(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def collect(stream: Stream) -> None:
            received.set_result(await read_to_end(stream))

        bob.set_stream_handler(TEST, collect)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        size = INITIAL_WINDOW + 10_000
        await asyncio.gather(*(stream.write(letter * size) for letter in (b"a", b"b", b"c")))
        await stream.close_write()
        assert await received == b"a" * size + b"b" * size + b"c" * size


async def test_a_cancelled_write_breaks_the_stream_rather_than_its_framing(
    running_hosts: RunningHosts,
) -> None:
    async with running_hosts(2) as (alice, bob):
        broken = asyncio.Event()
        go_on = asyncio.Event()

        async def wait(stream: Stream) -> None:
            await go_on.wait()
            try:
                await read_to_end(stream)
            finally:
                broken.set()

        bob.set_stream_handler(TEST, wait)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        writing = asyncio.create_task(stream.write(bytes(MIB)))
        await alice.ping(bob.peer_id)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        with pytest.raises(TransportError, match="cancelled half-way"):
            await stream.write(b"more")
        go_on.set()
        await broken.wait()


async def test_two_readers_are_a_mistake(running_hosts: RunningHosts) -> None:
    async with running_hosts(2) as (alice, bob):
        bob.set_stream_handler(TEST, echo)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        reading = asyncio.create_task(stream.read_exactly(1))
        await alice.ping(bob.peer_id)
        with pytest.raises(LocalProtocolError):
            await stream.read_some(1)
        await stream.write(b"x")
        assert await reading == b"x"


async def test_streams_are_bounded_and_come_back(running_hosts: RunningHosts) -> None:
    limits = HostLimits(max_inbound_streams=3)
    async with running_hosts(2, limits=limits) as (alice, bob):
        bob.set_stream_handler(TEST, echo)
        await alice.connect(bob.addresses()[0])
        streams = [await alice.new_stream(bob.peer_id, [TEST]) for _ in range(3)]
        with pytest.raises(TransportError, match="reset"):
            await alice.new_stream(bob.peer_id, [TEST])
        assert bob.counters()["libp2p.inbound_streams_limit"] == 1
        await streams[0].close_write()
        assert await streams[0].read_some(1) == b""
        again = await alice.new_stream(bob.peer_id, [TEST])
        await again.write(b"x")
        assert await again.read_exactly(1) == b"x"


async def test_unread_bytes_of_a_connection_are_bounded(running_hosts: RunningHosts) -> None:
    limits = HostLimits(max_unread_bytes=INITIAL_WINDOW)
    async with running_hosts(2, limits=limits) as (alice, bob):
        never = asyncio.Event()

        async def ignore(stream: Stream) -> None:
            await never.wait()
            await stream.reset()

        bob.set_stream_handler(TEST, ignore)
        await alice.connect(bob.addresses()[0])
        first = await alice.new_stream(bob.peer_id, [TEST])
        second = await alice.new_stream(bob.peer_id, [TEST])
        await first.write(bytes(INITIAL_WINDOW - 1_000))
        await second.write(bytes(2_000))
        with pytest.raises(TransportError, match="reset"):
            await second.read_exactly(1)
        assert bob.counters()["libp2p.unread_bytes_limit"] == 1
        await alice.ping(bob.peer_id)


async def test_a_peer_that_never_closes_its_half_is_not_waited_for_forever(
    running_hosts: RunningHosts,
) -> None:
    limits = HostLimits(linger_timeout_ms=20)
    async with running_hosts(2, limits=limits) as (alice, bob):

        async def leave(stream: Stream) -> None:
            await stream.write(b"bye")

        bob.set_stream_handler(TEST, leave)
        await alice.connect(bob.addresses()[0])
        stream = await alice.new_stream(bob.peer_id, [TEST])
        assert await read_to_end(stream) == b"bye"

        async def write_on() -> None:
            while True:
                await stream.write(b"x")
                await alice.ping(bob.peer_id)

        with pytest.raises(TransportError, match="reset"):
            await write_on()
