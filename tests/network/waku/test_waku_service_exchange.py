"""Requests and responses: bounds, time-outs, and peers that keep to neither."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.errors import ConfigError, RemoteProtocolError, TransportError
from engine.network.libp2p.ports import PeerId, ProtocolId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.service.exchange import ExchangeLimits, ask
from engine.network.waku.service.gate import GateLimits, ServiceGate
from engine.network.waku.service.server import ServiceSettings, serve_requests
from engine.network.waku.token_buckets import TokenBuckets
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import PATIENT, QUICK, ServiceNet, exchange_raw, unframed, until
from tests.patience import PATIENCE_S

ECHO = ProtocolId("/echo")
A, B = PeerId("a"), PeerId("b")


class Echo:
    """Answers with the request; ``held`` until it is set."""

    name = "echo"
    protocol = ECHO

    def __init__(
        self, gate: GateLimits | None = None, *, request_timeout_s: float = PATIENCE_S
    ) -> None:
        self.settings = ServiceSettings(
            max_request_bytes=1_000,
            gate=gate or GateLimits(),
            request_timeout_s=request_timeout_s,
        )
        self.held = asyncio.Event()
        self.held.set()
        self.waiting = 0

    async def respond(self, _peer_id: PeerId, request: bytes, /) -> bytes:
        self.waiting += 1
        await self.held.wait()
        self.waiting -= 1
        return request

    def refuse(self, request: bytes, /) -> bytes:
        return b"refused " + request


async def pair(net: ServiceNet) -> tuple[MemoryHost, MemoryHost]:
    client, server = await net.host("client"), await net.host("server")
    await client.connect("/memory/server")
    return client, server


async def test_a_request_gets_its_answer_and_the_stream_ends_on_both_sides() -> None:
    async with ServiceNet() as net:
        client, server = await pair(net)
        serve_requests(server, Echo(), net.counters)
        for size in (0, 1, 1_000):
            request = b"x" * size
            assert await ask(client, server.peer_id, ECHO, request, PATIENT) == request
        assert net.counters["echo.served"] == 3


Behaviour = Callable[[Stream], Awaitable[None]]


async def _silent(stream: Stream) -> None:
    await stream.read_some(100)
    await asyncio.Event().wait()


async def _half(stream: Stream) -> None:
    await stream.write(encode_frame(b"x" * 100)[:50])
    await asyncio.Event().wait()


async def _ends(stream: Stream) -> None:
    await stream.close_write()


async def _cut(stream: Stream) -> None:
    await stream.write(encode_frame(b"x" * 100)[:50])
    await stream.close_write()


async def _resets(stream: Stream) -> None:
    await stream.reset()


async def _too_long(stream: Stream) -> None:
    await stream.write(encode_frame(bytes(PATIENT.max_response_bytes + 1))[:10])


async def _twice(stream: Stream) -> None:
    await stream.write(encode_frame(b"1") + encode_frame(b"2"))


async def _no_prefix(stream: Stream) -> None:
    await stream.write(b"\xff" * 10)


@pytest.mark.parametrize(
    ("behaviour", "error", "text"),
    [
        (_silent, TransportError, "in time"),
        (_half, TransportError, "in time"),
        (_ends, RemoteProtocolError, "exchange_ended_early"),
        (_cut, RemoteProtocolError, "exchange_ended_early"),
        (_resets, TransportError, "broken"),
        (_too_long, RemoteProtocolError, "frame_oversized"),
        (_twice, RemoteProtocolError, "exchange_more_than_one_frame"),
        (_no_prefix, RemoteProtocolError, "frame_prefix_malformed"),
    ],
)
async def test_a_bad_answer_is_an_error_and_the_stream_is_reset(
    behaviour: Behaviour, error: type[Exception], text: str
) -> None:
    async with ServiceNet() as net:
        client, server = await pair(net)
        server.set_stream_handler(ECHO, behaviour)
        limits = QUICK if text == "in time" else PATIENT
        with pytest.raises(error, match=text):
            await ask(client, server.peer_id, ECHO, b"?", limits)
        assert all(stream.outward.broken for stream in client.streams)


async def test_a_peer_that_never_closes_still_gives_its_answer() -> None:
    async def answers_and_stays(stream: Stream) -> None:
        await stream.write(encode_frame(b"yes"))
        await asyncio.Event().wait()

    async with ServiceNet() as net:
        client, server = await pair(net)
        server.set_stream_handler(ECHO, answers_and_stays)
        soon_given_up = replace(PATIENT, end_timeout_s=0.01)
        assert await ask(client, server.peer_id, ECHO, b"?", soon_given_up) == b"yes"
        assert client.streams[-1].outward.broken


async def test_nobody_there_is_a_transport_error() -> None:
    async with ServiceNet() as net:
        client, server = await pair(net)
        with pytest.raises(TransportError):
            await ask(client, server.peer_id, ECHO, b"?", PATIENT)
        with pytest.raises(TransportError):
            await ask(client, PeerId("nobody"), ECHO, b"?", PATIENT)


@pytest.mark.parametrize(
    ("data", "counter"),
    [
        (encode_frame(bytes(1_001))[:20], "echo.frame_oversized"),
        (b"\xff" * 8, "echo.frame_prefix_malformed"),
        (b"", "echo.exchange_ended_early"),
        (encode_frame(b"1") * 2, "echo.exchange_more_than_one_frame"),
    ],
)
async def test_a_bad_request_is_counted_and_reset(data: bytes, counter: str) -> None:
    async with ServiceNet() as net:
        client, server = await pair(net)
        serve_requests(server, Echo(), net.counters)
        with pytest.raises(TransportError):
            await exchange_raw(client, server.peer_id, ECHO, data)
        assert net.counters[counter] == 1


async def test_half_a_request_is_not_waited_for() -> None:
    async with ServiceNet() as net:
        client, server = await pair(net)
        serve_requests(server, Echo(request_timeout_s=0.05), net.counters)
        stream = await client.new_stream(server.peer_id, [ECHO])
        await stream.write(encode_frame(bytes(100))[:50])
        await until(lambda: net.counters["echo.request_timeout"] == 1)


async def test_streams_opened_ahead_wait_for_their_request_but_only_so_many() -> None:
    async with ServiceNet() as net:
        client, server = await pair(net)
        serve_requests(server, Echo(GateLimits(at_once_per_peer=1)), net.counters)
        streams = [await client.new_stream(server.peer_id, [ECHO]) for _ in range(10)]
        await until(lambda: net.counters["echo.too_many_silent_streams"] == 2)
        assert await ask(client, server.peer_id, ECHO, b"?", PATIENT) == b"?"
        for stream in streams[:3]:  # One more had to go for the request just made.
            with pytest.raises(TransportError):
                await stream.read_some(10)
        for stream in reversed(streams[3:]):
            await stream.write(encode_frame(b"!"))
            assert await stream.read_some(10) == encode_frame(b"!")
        assert net.counters["echo.served"] == 8
        assert net.counters["echo.busy"] == 0


async def test_whoever_asks_too_often_or_too_much_at_once_is_refused() -> None:
    gate = GateLimits(per_second=0.001, burst=3, at_once_per_peer=2, at_once=3)
    async with ServiceNet() as net:
        client, server = await pair(net)
        other = await net.host("other")
        await other.connect("/memory/server")
        echo = Echo(gate)
        serve_requests(server, echo, net.counters)
        echo.held.clear()

        async def asks(host: MemoryHost) -> bytes:
            return await ask(host, server.peer_id, ECHO, b"?", ExchangeLimits())

        running = [asyncio.create_task(asks(client)) for _ in range(2)]
        await until(lambda: echo.waiting == 2)
        assert await asks(client) == b"refused "
        running.append(asyncio.create_task(asks(other)))
        await until(lambda: echo.waiting == 3)
        assert await asks(other) == b"refused "
        echo.held.set()
        assert await asyncio.gather(*running) == [b"?"] * 3
        assert [await asks(client) for _ in range(2)] == [b"?", b"refused ?"]
        assert await asks(other) == b"?"
        assert (net.counters["echo.busy"], net.counters["echo.rate_limited"]) == (2, 1)


async def test_an_answer_nobody_reads_is_given_up() -> None:
    class Flood(Echo):
        async def respond(self, _peer_id: PeerId, _request: bytes, /) -> bytes:
            return bytes(1_000_000)

    async with ServiceNet() as net:
        client, server = await pair(net)
        flood = Flood()
        flood.settings = ServiceSettings(max_request_bytes=1_000, answer_timeout_s=0.1)
        serve_requests(server, flood, net.counters)
        stream = await client.new_stream(server.peer_id, [ECHO])
        await stream.write(encode_frame(b"?"))
        # The memory host's task keeps the handler's error, as the real host's counter does.
        (task,) = server.tasks
        with pytest.raises(TransportError, match="does not read"):
            await task


@given(
    st.lists(st.tuples(st.floats(0, 3), st.sampled_from([A, B])), max_size=80),
    st.integers(1, 5),
)
def test_nobody_gets_more_than_burst_and_rate(
    steps: list[tuple[float, PeerId]], burst: int
) -> None:
    now = [0.0]
    gate = ServiceGate(GateLimits(per_second=2, burst=burst), lambda: now[0])
    granted: dict[PeerId, int] = {A: 0, B: 0}
    for pause, peer in steps:
        now[0] += pause
        granted[peer] += gate.take(peer)
        assert granted[peer] <= burst + 2 * now[0] + 1e-6
    first = ServiceGate(GateLimits(per_second=2, burst=burst), lambda: 0.0)
    assert [first.take(A) for _ in range(burst + 1)] == [True] * burst + [False]
    assert first.take(B)


def test_the_peer_longest_unseen_is_forgotten() -> None:
    gate = ServiceGate(GateLimits(per_second=0.001, burst=1, max_peers=2), lambda: 0.0)
    assert gate.take(A)
    assert gate.take(B)
    assert not gate.take(A)
    assert gate.take(PeerId("c"))
    assert not gate.take(A)
    assert gate.take(B)


@given(
    st.lists(
        st.tuples(st.floats(0, 30), st.sampled_from([A, B]), st.integers(1, 500)), max_size=80
    ),
)
def test_nobody_gets_more_bytes_of_answers_than_the_budget_and_one_answer(
    steps: list[tuple[float, PeerId, int]],
) -> None:
    now = [0.0]
    budget = TokenBuckets(per_second=1_000 / 60, burst=1_000, clock_s=lambda: now[0])
    given_bytes: dict[PeerId, int] = {A: 0, B: 0}
    for pause, peer, size in steps:
        now[0] += pause
        if budget.has_some(peer):
            budget.spend(peer, size)
            given_bytes[peer] += size
        assert given_bytes[peer] <= 1_000 * (1 + now[0] / 60) + 500 + 1e-6
    now[0] += 60 * (1 + 500 / 1_000)
    assert budget.has_some(A)


def test_what_is_overdrawn_is_waited_for() -> None:
    now = [0.0]
    budget = TokenBuckets(per_second=100, burst=1_000, clock_s=lambda: now[0])
    budget.spend(A, 1_000)
    assert budget.wait_s(A) == 0
    budget.spend(A, 250)
    assert budget.wait_s(A) == pytest.approx(2.5)
    assert budget.wait_s(B) == 0
    now[0] = 2.5
    assert budget.wait_s(A) == 0


def test_a_gate_that_lets_nothing_through_is_a_mistake() -> None:
    with pytest.raises(ConfigError):
        GateLimits(per_second=0)


def test_frames_are_what_the_peer_put_in() -> None:
    assert unframed(encode_frame(b"abc")) == b"abc"
