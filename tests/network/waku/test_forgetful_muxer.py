"""Large answers of nwaku up to 0.36, whose yamux knows no frames of a stream that has ended.

It forgets a stream once both halves are closed, and closes the connection if a window update for it
comes after that.  A client that half-closes after its request, and then returns window for the
answer, loses the connection with most pages of more than half a window.
"""

import pytest

from engine.core.errors import RemoteProtocolError
from engine.network.libp2p import upgrade
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.muxer import Muxer, MuxerEvent
from engine.network.libp2p.ports import ProtocolId, Stream
from engine.network.libp2p.yamux import INITIAL_WINDOW, Flag, FrameType, Yamux
from engine.network.waku.service.exchange import ExchangeLimits, answer, ask, read_request
from tests.network.libp2p.loopback_hosts import lost_peer, read_to_end, running_hosts
from tests.network.waku.service_net import unframed

PAGES = ProtocolId("/pages")
LIMITS = ExchangeLimits(max_response_bytes=8 * 1024 * 1024)
QUESTIONS = 20


class Forgetful(Yamux):
    """The side that accepted the connection.

    Its FIN is under way until the peer says something, so that nothing depends on who is faster.
    """

    def __init__(self, limits: HostLimits) -> None:
        super().__init__(
            client=False,
            max_inbound=limits.max_inbound_streams,
            max_outbound=limits.max_outbound_streams,
        )
        self._forgotten: set[int] = set()
        self._under_way: list[tuple[int, int, int, int]] = []

    def receive(self, data: bytes) -> list[MuxerEvent]:
        under_way, self._under_way = self._under_way, []
        for frame in under_way:
            super()._queue(*frame)
        return super().receive(data)

    def _queue(self, kind: int, flags: int, stream_id: int, length: int) -> None:
        if flags & Flag.FIN:
            self._under_way.append((kind, flags, stream_id, length))
        else:
            super()._queue(kind, flags, stream_id, length)

    def _forget(self, stream_id: int) -> None:
        self._forgotten.add(stream_id)
        super()._forget(stream_id)

    def _receive_stream_frame(self, kind: int, flags: int, stream_id: int, length: int) -> None:
        if (
            kind == FrameType.WINDOW_UPDATE
            and stream_id in self._forgotten
            and not flags & Flag.RST
        ):
            raise RemoteProtocolError("yamux_unknown_stream")
        super()._receive_stream_frame(kind, flags, stream_id, length)


def _forgets_where_accepted(initiator: bool, limits: HostLimits) -> Muxer:
    if not initiator:
        return Forgetful(limits)
    return Yamux(
        client=True,
        max_inbound=limits.max_inbound_streams,
        max_outbound=limits.max_outbound_streams,
    )


@pytest.mark.parametrize("size", [100, INITIAL_WINDOW - 1_000, INITIAL_WINDOW + 100_000, 3_000_000])
async def test_a_large_answer_does_not_cost_the_connection(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(upgrade.MUXERS, upgrade.YAMUX, _forgets_where_accepted)

    async def pages(stream: Stream) -> None:
        first = await stream.read_some(1_000)
        await read_request(stream, first, max_bytes=1_000, timeout_s=10)
        await answer(stream, bytes(size), timeout_s=10)

    async with running_hosts(2, muxers=(upgrade.YAMUX,)) as (client, server):
        server.set_stream_handler(PAGES, pages)
        await client.connect(server.addresses()[0])
        lost = await lost_peer(client)
        for _ in range(QUESTIONS):
            page = await ask(client, server.peer_id, PAGES, b"?", LIMITS)
            assert len(page) == size
            assert await client.ping(server.peer_id) > 0  # behind whatever was sent
        assert not lost.done()
        assert "libp2p.yamux_unknown_stream" not in server.counters()


async def test_where_no_window_is_returned_the_request_ends_with_our_half() -> None:
    """A CLOSE after the peer's own is a frame of an unknown stream to some mplex peers."""

    async def waits_for_the_end(stream: Stream) -> None:
        await answer(stream, unframed(await read_to_end(stream)), timeout_s=10)

    async with running_hosts(2, muxers=(upgrade.MPLEX,)) as (client, server):
        server.set_stream_handler(PAGES, waits_for_the_end)
        await client.connect(server.addresses()[0])
        assert await ask(client, server.peer_id, PAGES, b"?", LIMITS) == b"?"
