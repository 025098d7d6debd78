"""Serves ``/causerie/blob/1``: chunks from a shelf, and room for chunks of others if it keeps any.

Texts never wait for it.  A chunk is written in pieces, each of which waits for its turn in a bucket
below the relay and for an empty queue to the peer; few requests run at once.  What one peer gets,
and what it puts, is limited in bytes, and so are its questions.  Counts ``blob.served``,
``.rate_limited``, ``.busy``, ``.gave_way`` and the reasons of bad requests.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import assert_never

from msgspec import Struct, field

from engine.codec.blobs import (
    MAX_BLOB_REQUEST_BYTES,
    decode_blob_request,
    encode_chunk_answer,
    encode_holdings,
    encode_put_answer,
)
from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName
from engine.core.blobs.requests import (
    AskHoldings,
    BlobRequest,
    ChunkAnswer,
    ChunkStatus,
    GetChunks,
    Holdings,
    PutChunk,
    PutStatus,
)
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.network.blobs.pace import FilePace, PaceLimits
from engine.network.blobs.places import PlaceLimits, Places
from engine.network.blobs.port import BLOB_PROTOCOL, ChunkKeeper, ChunkShelf
from engine.network.libp2p.ports import Host, PeerId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.service.exchange import first_bytes, read_request
from engine.network.waku.token_buckets import TokenBuckets

PIECE_BYTES = 64 * 1024
MIB = 1024 * 1024
MAX_REFUSED_BYTES = 1024
"""Of a request for which there is no place; any question for chunks has fewer."""
LOOK_BYTES = 1024
"""As much as a question after one chunk counts, of the bytes that a peer gets: it takes the disk a
look."""


class BlobServing(Struct, frozen=True, kw_only=True):
    """``burst_bytes`` at once, and ``bytes_per_s`` in the long run, for each peer and each way."""

    burst_bytes: int = 256 * MIB
    bytes_per_s: int = 8 * MIB
    requests_per_s: float = 100
    burst_requests: int = 400
    places: PlaceLimits = field(default_factory=PlaceLimits)
    pace: PaceLimits = field(default_factory=PaceLimits)
    request_timeout_s: float = 60.0
    """From the first byte to the last: a chunk that is put takes a while on a slow line."""
    first_byte_timeout_s: float = 15.0
    write_timeout_s: float = 30.0
    """For one piece to be taken."""


class BlobServer:
    """``shelf`` may be changed at any time; ``source`` names where a peer comes from.

    With a ``keeper`` it serves from that, and takes what others put there.
    """

    def __init__(
        self,
        host: Host,
        settings: BlobServing,
        *,
        source: Callable[[PeerId], str],
        counters: Counters,
        keeper: ChunkKeeper | None = None,
    ) -> None:
        self.shelf: ChunkShelf | None = keeper
        self._keeper = keeper
        self._host = host
        self._settings = settings
        self._source = source
        self._counters = counters
        self._pace = FilePace(settings.pace, _now_s)
        self._places = Places(settings.places, counters)
        self._requests = TokenBuckets(
            per_second=settings.requests_per_s, burst=settings.burst_requests, clock_s=_now_s
        )
        self._sent, self._taken = (
            TokenBuckets(
                per_second=settings.bytes_per_s, burst=settings.burst_bytes, clock_s=_now_s
            )
            for _ in range(2)
        )

    def give_way(self) -> None:
        """Somebody talks here: files are sent more slowly for a moment."""
        self._pace.give_way()

    def start(self) -> None:
        """Call before the host starts."""
        self._host.set_stream_handler(BLOB_PROTOCOL, self._handle)

    async def _handle(self, stream: Stream) -> None:
        peer_id = stream.peer_id
        try:
            async with self._places.enter(peer_id, self._source(peer_id)) as admitted:
                most = MAX_BLOB_REQUEST_BYTES if admitted else MAX_REFUSED_BYTES
                request = await self._request(stream, most)
                is_free = admitted and self._requests.take(peer_id)
                if not is_free:
                    self._counters.add("blob.busy")
                await self._answer(stream, request, is_free=is_free)
        except RemoteProtocolError as error:
            self._counters.add(f"blob.{error.reason}")
            await stream.reset()
        except TimeoutError:
            self._counters.add("blob.timeout")
            await stream.reset()

    async def _request(self, stream: Stream, most: int) -> BlobRequest:
        settings = self._settings
        async with asyncio.timeout(settings.first_byte_timeout_s):
            first = await first_bytes(stream)
        data = await read_request(
            stream, first, max_bytes=most, timeout_s=settings.request_timeout_s
        )
        return decode_blob_request(data)

    async def _answer(self, stream: Stream, request: BlobRequest, *, is_free: bool) -> None:
        match request:
            case GetChunks(names=names):
                for name in names:
                    answer = await self._chunk(stream.peer_id, name, is_free=is_free)
                    await self._write(stream, encode_chunk_answer(answer))
                    if answer.status is ChunkStatus.HERE and self.shelf is not None:
                        self.shelf.given(stream.peer_id, name)
            case PutChunk():
                status = await self._take(stream.peer_id, request, is_free=is_free)
                await self._write(stream, encode_put_answer(status))
            case AskHoldings(names=names):
                shelf = self.shelf if is_free and self._may_ask(stream.peer_id, names) else None
                held = (False,) * len(names) if shelf is None else await shelf.held(names)
                holdings = Holdings(held=held, is_keeper=self._keeper is not None)
                await self._write(stream, encode_holdings(holdings))
            case _:
                assert_never(request)
        await stream.close_write()

    def _may_ask(self, peer_id: PeerId, names: Sequence[ChunkName]) -> bool:
        if not self._sent.has_some(peer_id):
            self._counters.add("blob.rate_limited")
            return False
        self._sent.spend(peer_id, LOOK_BYTES * len(names))
        return True

    async def _chunk(self, peer_id: PeerId, name: ChunkName, *, is_free: bool) -> ChunkAnswer:
        if not is_free:
            return ChunkAnswer(ChunkStatus.BUSY)
        if not self._sent.has_some(peer_id):
            self._counters.add("blob.rate_limited")
            return ChunkAnswer(ChunkStatus.TOO_MUCH)
        sealed = None if self.shelf is None else await self.shelf.read(name)
        if sealed is None:
            return ChunkAnswer(ChunkStatus.MISSING)
        self._sent.spend(peer_id, len(sealed))
        self._counters.add("blob.served")
        return ChunkAnswer(ChunkStatus.HERE, sealed)

    async def _take(self, peer_id: PeerId, request: PutChunk, *, is_free: bool) -> PutStatus:
        keeper = self._keeper
        if keeper is None:
            return PutStatus.NO_KEEPER
        if not is_free:
            return PutStatus.BUSY
        if not self._taken.has_some(peer_id):
            self._counters.add("blob.rate_limited")
            return PutStatus.TOO_MUCH
        self._taken.spend(peer_id, max(len(request.sealed), CHUNK_BYTES // 16))
        status = await keeper.take(
            request.sealed, source=self._source(peer_id), keep_days=request.keep_days
        )
        self._counters.add("blob.taken" if status is PutStatus.TAKEN else "blob.not_taken")
        return status

    async def _write(self, stream: Stream, payload: bytes) -> None:
        framed = memoryview(encode_frame(payload))
        for start in range(0, len(framed), PIECE_BYTES):
            piece = bytes(framed[start : start + PIECE_BYTES])
            await self._turn(len(piece))
            async with asyncio.timeout(self._settings.write_timeout_s):
                await stream.write(piece)

    async def _turn(self, size: int) -> None:
        turn = self._pace.admit(size)
        try:
            await asyncio.sleep(turn.wait_s)
        except asyncio.CancelledError:  # It gave way, or the connection is gone.
            self._pace.give_back(turn)
            raise


def _now_s() -> float:
    return asyncio.get_running_loop().time()
