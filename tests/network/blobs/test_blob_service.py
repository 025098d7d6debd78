"""``/causerie/blob/1`` between hosts: chunks, limits, and peers that do as they like."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest

from engine.codec.blobs import decode_holdings, encode_blob_request, encode_chunk_answer
from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName
from engine.core.blobs.requests import (
    AskHoldings,
    ChunkAnswer,
    ChunkStatus,
    GetChunks,
    Holdings,
    PutChunk,
    PutStatus,
)
from engine.core.errors import RemoteProtocolError, TransportError
from engine.network.blobs.client import BlobClient, BlobPace
from engine.network.blobs.host_blobs import HostBlobs
from engine.network.blobs.places import PlaceLimits
from engine.network.blobs.port import BLOB_PROTOCOL, ChunkKeeper
from engine.network.blobs.server import LOOK_BYTES, MAX_REFUSED_BYTES, BlobServer, BlobServing
from engine.network.libp2p.ports import PeerId, Stream
from engine.network.waku.framing import FrameDecoder, encode_frame
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import ServiceNet
from tests.patience import PATIENCE_S

CHUNKS: Final = [bytes([number]) * CHUNK_BYTES for number in range(1, 6)]
NAMES: Final = [ChunkName(hashlib.sha256(chunk).digest()) for chunk in CHUNKS]
UNKNOWN: Final = ChunkName(bytes(32))
QUICK = BlobPace(silence_s=0.2, put_s=0.2)


class Shelf:
    """``full``: it takes nothing."""

    def __init__(self, chunks: Sequence[bytes] = CHUNKS) -> None:
        self.chunks = dict(zip(NAMES, chunks, strict=False))
        self.taken: list[tuple[str, int]] = []
        self.gave: list[tuple[PeerId, ChunkName]] = []
        self.full = False

    async def held(self, names: Sequence[ChunkName], /) -> tuple[bool, ...]:
        return tuple(name in self.chunks for name in names)

    async def read(self, name: ChunkName, /) -> bytes | None:
        return self.chunks.get(name)

    def given(self, peer_id: PeerId, name: ChunkName, /) -> None:
        self.gave.append((peer_id, name))

    async def take(self, sealed: bytes, /, *, source: str, keep_days: int) -> PutStatus:
        self.taken.append((source, keep_days))
        self.chunks[ChunkName(hashlib.sha256(sealed).digest())] = sealed
        return PutStatus.FULL if self.full else PutStatus.TAKEN


class BlobNet(ServiceNet):
    async def anybody(self) -> MemoryHost:
        return await self.host(f"host {len(self.hosts)}")

    async def serving(
        self,
        settings: BlobServing | None = None,
        keeper: ChunkKeeper | None = None,
        networks: Mapping[PeerId, str] | None = None,
    ) -> tuple[MemoryHost, BlobServer]:
        host = await self.anybody()
        server = BlobServer(
            host,
            settings or BlobServing(),
            source=lambda peer_id: (networks or {}).get(peer_id, f"of {peer_id}"),
            counters=self.counters,
            keeper=keeper,
        )
        server.start()
        return host, server


async def got(
    client: BlobClient | HostBlobs, peer_id: PeerId, names: Sequence[ChunkName]
) -> list[tuple[ChunkName, ChunkAnswer]]:
    answers: list[tuple[ChunkName, ChunkAnswer]] = []

    async def on_chunk(name: ChunkName, answer: ChunkAnswer) -> None:
        answers.append((name, answer))

    await client.get(peer_id, names, on_chunk)
    return answers


async def test_chunks_come_in_the_order_of_their_names() -> None:
    async with BlobNet() as net:
        host, server = await net.serving()
        asker = await net.anybody()
        await asker.connect(host.addresses()[0])
        client = BlobClient(asker)
        assert (await client.holdings(host.peer_id, NAMES)).held == (False,) * 5
        assert await got(client, host.peer_id, [NAMES[0]]) == [
            (NAMES[0], ChunkAnswer(ChunkStatus.MISSING))
        ]
        server.shelf = shelf = Shelf()
        asked = [NAMES[3], UNKNOWN, NAMES[0]]
        assert await client.holdings(host.peer_id, asked) == Holdings(
            held=(True, False, True), is_keeper=False
        )
        assert await got(client, host.peer_id, asked) == [
            (NAMES[3], ChunkAnswer(ChunkStatus.HERE, CHUNKS[3])),
            (UNKNOWN, ChunkAnswer(ChunkStatus.MISSING)),
            (NAMES[0], ChunkAnswer(ChunkStatus.HERE, CHUNKS[0])),
        ]
        assert shelf.gave == [(asker.peer_id, NAMES[3]), (asker.peer_id, NAMES[0])]
        assert await client.put(host.peer_id, CHUNKS[0], keep_days=1) is PutStatus.NO_KEEPER


async def test_a_keeper_takes_chunks() -> None:
    async with BlobNet() as net:
        shelf = Shelf(())
        host, _ = await net.serving(keeper=shelf)
        asker = await net.anybody()
        await asker.connect(host.addresses()[0])
        client = BlobClient(asker)
        assert await client.holdings(host.peer_id, NAMES[:1]) == Holdings(
            held=(False,), is_keeper=True
        )
        assert await client.put(host.peer_id, CHUNKS[0], keep_days=9) is PutStatus.TAKEN
        assert shelf.taken == [(f"of {asker.peer_id}", 9)]
        assert (await client.holdings(host.peer_id, NAMES[:1])).held == (True,)
        shelf.full = True
        assert await client.put(host.peer_id, CHUNKS[1], keep_days=9) is PutStatus.FULL


async def test_each_peer_gets_and_puts_so_many_bytes() -> None:
    settings = BlobServing(burst_bytes=CHUNK_BYTES + 1, bytes_per_s=1)
    async with BlobNet() as net:
        shelf = Shelf()
        host, _ = await net.serving(settings, keeper=shelf)
        asker, other = await net.anybody(), await net.anybody()
        for each in (asker, other):
            await each.connect(host.addresses()[0])
        answers = await got(BlobClient(asker), host.peer_id, NAMES)
        assert [answer.status for _, answer in answers] == [
            ChunkStatus.HERE, ChunkStatus.HERE, *[ChunkStatus.TOO_MUCH] * 3,
        ]  # fmt: skip
        puts = [await BlobClient(asker).put(host.peer_id, chunk, keep_days=1) for chunk in CHUNKS]
        assert puts == [PutStatus.TAKEN] * 2 + [PutStatus.TOO_MUCH] * 3
        [(_, answer)] = await got(BlobClient(other), host.peer_id, NAMES[:1])
        assert answer.status is ChunkStatus.HERE
        assert net.counters.snapshot()["blob.rate_limited"] == 6


async def test_one_who_asks_too_often_is_told_later() -> None:
    settings = BlobServing(requests_per_s=0.001, burst_requests=2)
    async with BlobNet() as net:
        host, _ = await net.serving(settings, keeper=Shelf())
        asker = await net.anybody()
        await asker.connect(host.addresses()[0])
        client = BlobClient(asker)
        for _ in range(2):
            assert (await client.holdings(host.peer_id, NAMES)).held == (True,) * 5
        [(_, answer)] = await got(client, host.peer_id, NAMES[:1])
        assert answer.status is ChunkStatus.BUSY
        assert await client.put(host.peer_id, CHUNKS[0], keep_days=1) is PutStatus.BUSY
        assert (await client.holdings(host.peer_id, NAMES)).held == (False,) * 5
        assert net.counters.snapshot()["blob.busy"] == 3


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (encode_frame(b"\xff"), "blob.blob_request_malformed"),
        (encode_frame(b""), "blob.blob_request_unknown"),
        (b"\xff\xff\xff\x7f", "blob.frame_oversized"),
        (
            encode_frame(encode_blob_request(AskHoldings((UNKNOWN,)))) * 2,
            "blob.exchange_more_than_one_frame",
        ),
    ],
)
async def test_bad_requests_are_counted_and_reset(request_: bytes, reason: str) -> None:
    async with BlobNet() as net:
        host, server = await net.serving()
        server.shelf = Shelf()
        asker = await net.anybody()
        await asker.connect(host.addresses()[0])
        stream = await asker.new_stream(host.peer_id, [BLOB_PROTOCOL])
        await stream.write(request_)
        with pytest.raises(TransportError):
            await stream.read_some(100)
        assert net.counters.snapshot()[reason] == 1


async def test_one_who_asks_nothing_is_dropped() -> None:
    async with BlobNet() as net:
        host, _ = await net.serving(BlobServing(first_byte_timeout_s=0.01))
        asker = await net.anybody()
        await asker.connect(host.addresses()[0])
        stream = await asker.new_stream(host.peer_id, [BLOB_PROTOCOL])
        with pytest.raises(TransportError):
            await stream.read_some(1)
        assert net.counters.snapshot()["blob.timeout"] == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "blob_ended_early"),
        (encode_frame(b"\xff"), "blob_chunk_malformed"),
        (encode_frame(encode_chunk_answer(ChunkAnswer(ChunkStatus.BUSY))) * 2, "blob_more_than"),
        (b"\xff\xff\xff\x7f", "frame_oversized"),
    ],
)
async def test_a_peer_that_answers_wrongly_is_an_error(answer: bytes, reason: str) -> None:
    async with BlobNet() as net:
        host, asker = await net.anybody(), await net.anybody()

        async def answers(stream: Stream) -> None:
            await stream.read_some(1_000)
            await stream.write(answer)
            await stream.close_write()

        host.set_stream_handler(BLOB_PROTOCOL, answers)
        await asker.connect(host.addresses()[0])
        with pytest.raises(RemoteProtocolError, match=reason):
            await got(BlobClient(asker), host.peer_id, [UNKNOWN])


async def test_a_peer_that_says_nothing_is_given_up() -> None:
    async with BlobNet() as net:
        host, asker = await net.anybody(), await net.anybody()
        hanging = asyncio.Event()

        async def waits(stream: Stream) -> None:
            await stream.read_some(1_000)
            await hanging.wait()

        host.set_stream_handler(BLOB_PROTOCOL, waits)
        await asker.connect(host.addresses()[0])
        client = BlobClient(asker, QUICK)
        with pytest.raises(TransportError):
            await got(client, host.peer_id, [UNKNOWN])
        with pytest.raises(TransportError):
            await client.holdings(host.peer_id, [UNKNOWN])
        with pytest.raises(TransportError):
            await client.put(host.peer_id, CHUNKS[0], keep_days=1)
        hanging.set()


async def test_a_peer_that_sends_a_byte_now_and_then_is_given_up() -> None:
    async with BlobNet() as net:
        host, asker = await net.anybody(), await net.anybody()
        done = asyncio.Event()

        async def trickles(stream: Stream) -> None:
            await stream.read_some(1_000)
            await stream.write(encode_frame(bytes(CHUNK_BYTES))[:4])
            while not done.is_set():
                await stream.write(b"x")
                await asyncio.sleep(0)

        host.set_stream_handler(BLOB_PROTOCOL, trickles)
        await asker.connect(host.addresses()[0])
        client = BlobClient(asker, BlobPace(chunk_s=0.2))
        try:
            with pytest.raises(TransportError):
                await got(client, host.peer_id, [UNKNOWN])
        finally:
            done.set()


async def test_only_connected_peers_with_the_protocol_are_asked() -> None:
    async with BlobNet() as net:
        host, server = await net.serving()
        server.shelf = Shelf()
        asker, plain = await net.anybody(), await net.anybody()
        blobs = HostBlobs(lambda: [asker], lambda _: None)
        assert blobs.peers() == ()
        with pytest.raises(TransportError):
            await blobs.holdings(host.peer_id, NAMES)
        await asker.connect(host.addresses()[0])
        await asker.connect(plain.addresses()[0])
        assert blobs.peers() == (host.peer_id,)
        assert len(await got(blobs, host.peer_id, NAMES[:2])) == 2


async def test_service_nodes_come_first() -> None:
    async with BlobNet() as net:
        asker = await net.anybody()
        served = [(await net.serving())[0] for _ in range(3)]
        for host in served:
            await asker.connect(host.addresses()[0])
        first, second, third = (host.peer_id for host in served)
        blobs = HostBlobs(lambda: [asker], lambda _: None, preferred=lambda: {third})
        assert blobs.peers() == (third, first, second)


async def test_a_request_for_holdings_is_answered_in_one_frame() -> None:
    async with BlobNet() as net:
        host, _ = await net.serving(keeper=Shelf())
        asker = await net.anybody()
        await asker.connect(host.addresses()[0])
        stream = await asker.new_stream(host.peer_id, [BLOB_PROTOCOL])
        await stream.write(encode_frame(encode_blob_request(AskHoldings(tuple(NAMES)))))
        frames: list[bytes] = []
        decoder = FrameDecoder(1_000)
        while data := await stream.read_some(1_000):
            frames += decoder.feed(data)
        assert [decode_holdings(frame, 5).held for frame in frames] == [(True,) * 5]


class SlowShelf(Shelf):
    """Chunk 0 takes until the test ends: as if those who ask for it read nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.held_up = asyncio.Queue[None]()
        self.over = asyncio.Event()

    async def read(self, name: ChunkName, /) -> bytes | None:
        if name == NAMES[0]:
            self.held_up.put_nowait(None)
            await self.over.wait()
        return await super().read(name)


@asynccontextmanager
async def crowded(
    networks: dict[PeerId, str], readers: Sequence[str], places: PlaceLimits
) -> AsyncIterator[tuple[BlobNet, MemoryHost, Sequence["asyncio.Task[list[ChunkStatus]]"]]]:
    """Slow readers of these networks, who come one after the other, each with two requests."""
    shelf = SlowShelf()
    async with BlobNet() as net, asyncio.timeout(PATIENCE_S):
        host, server = await net.serving(BlobServing(places=places), networks=networks)
        server.shelf = shelf
        asking: list[asyncio.Task[list[ChunkStatus]]] = []
        for network in readers:
            reader = await net.anybody()
            networks[reader.peer_id] = network
            await reader.connect(host.addresses()[0])
            for _ in range(2):
                asking.append(asyncio.create_task(statuses(reader, host, NAMES[0])))
                held_up = asyncio.create_task(shelf.held_up.get())
                await asyncio.wait((asking[-1], held_up), return_when=asyncio.FIRST_COMPLETED)
                held_up.cancel()
        try:
            yield net, host, asking
        finally:
            shelf.over.set()
            await asyncio.gather(*asking, return_exceptions=True)


async def statuses(asker: MemoryHost, host: MemoryHost, name: ChunkName) -> list[ChunkStatus]:
    answers = await got(BlobClient(asker), host.peer_id, [name])
    return [answer.status for _, answer in answers]


async def asks(net: BlobNet, host: MemoryHost) -> list[ChunkStatus]:
    asker = await net.anybody()
    await asker.connect(host.addresses()[0])
    return await statuses(asker, host, NAMES[1])


def ended(asking: "Sequence[asyncio.Task[list[ChunkStatus]]]") -> list[int]:
    """Whose requests broke off."""
    return [at for at, each in enumerate(asking) if each.done() and each.exception() is not None]


async def test_slow_readers_of_one_network_leave_room_for_others() -> None:
    places = PlaceLimits(at_once=8, at_once_per_network=3, at_once_per_peer=2)
    async with crowded({}, ["a", "a", "a", "a"], places) as (net, host, asking):
        assert ended(asking) == [0], "it gave way to the first of the third reader"
        refused = [each.result() for each in asking if each.done() and not each.exception()]
        assert refused == [[ChunkStatus.BUSY]] * 4
        assert await asks(net, host) == [ChunkStatus.HERE]


async def test_without_a_place_nothing_large_is_read() -> None:
    places = PlaceLimits(at_once=8, at_once_per_network=1, at_once_per_peer=1)
    networks: dict[PeerId, str] = {}
    async with crowded(networks, ["a"], places) as (net, host, _):
        late = await net.anybody()
        networks[late.peer_id] = "a"
        await late.connect(host.addresses()[0])
        stream = await late.new_stream(host.peer_id, [BLOB_PROTOCOL])
        whole = encode_frame(encode_blob_request(PutChunk(sealed=CHUNKS[0], keep_days=1)))
        await stream.write(whole[:MAX_REFUSED_BYTES])
        with pytest.raises(TransportError):
            await stream.read_some(1)
        assert await statuses(late, host, NAMES[1]) == [ChunkStatus.BUSY]


async def test_when_all_places_are_taken_whoever_has_most_gives_way() -> None:
    places = PlaceLimits(at_once=6, at_once_per_network=4, at_once_per_peer=2)
    async with crowded({}, ["a", "b", "b"], places) as (net, host, asking):
        assert not any(each.done() for each in asking)
        assert await asks(net, host) == [ChunkStatus.HERE]
        await asyncio.wait([asking[2]])
        assert ended(asking) == [2], "the oldest of the network that has most"
        assert net.counters.snapshot()["blob.gave_way"] == 1


async def test_who_has_most_in_a_full_network_gives_way_in_it() -> None:
    places = PlaceLimits(at_once=8, at_once_per_network=2, at_once_per_peer=2)
    networks: dict[PeerId, str] = {}
    async with crowded(networks, ["a"], places) as (net, host, asking):
        asker = await net.anybody()
        networks[asker.peer_id] = "a"
        await asker.connect(host.addresses()[0])
        assert await statuses(asker, host, NAMES[1]) == [ChunkStatus.HERE]
        await asyncio.wait([asking[0]])
        assert ended(asking) == [0]
        assert await statuses(asker, host, NAMES[1]) == [ChunkStatus.HERE]
        assert ended(asking) == [0], "there was room"


async def test_a_reader_has_so_much_time_for_all_of_it() -> None:
    """Also one who takes a little now and then."""
    async with BlobNet() as net:
        settings = BlobServing(places=PlaceLimits(timeout_s=0.2))
        host, server = await net.serving(settings)
        server.shelf = Shelf()
        asker = await net.anybody()
        await asker.connect(host.addresses()[0])
        stream = await asker.new_stream(host.peer_id, [BLOB_PROTOCOL])
        await stream.write(encode_frame(encode_blob_request(GetChunks(tuple(NAMES)))))
        with pytest.raises(TransportError):
            await read_slowly(stream)
        assert net.counters.snapshot()["blob.timeout"] == 1


async def read_slowly(stream: Stream) -> None:
    while await stream.read_some(1):  # noqa: ASYNC110 - slowly
        await asyncio.sleep(0)


async def test_questions_are_charged_in_bytes() -> None:
    settings = BlobServing(burst_bytes=LOOK_BYTES, bytes_per_s=1)
    async with BlobNet() as net:
        host, _ = await net.serving(settings, keeper=Shelf())
        asker, other = await net.anybody(), await net.anybody()
        for each in (asker, other):
            await each.connect(host.addresses()[0])
        client = BlobClient(asker)
        assert (await client.holdings(host.peer_id, NAMES)).held == (True,) * 5
        nothing = Holdings(held=(False,) * 5, is_keeper=True)
        assert await client.holdings(host.peer_id, NAMES) == nothing
        assert net.counters.snapshot()["blob.rate_limited"] == 1
        assert (await BlobClient(other).holdings(host.peer_id, NAMES)).held == (True,) * 5
