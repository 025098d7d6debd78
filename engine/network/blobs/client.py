"""Asks a peer over ``/causerie/blob/1``: one request on a stream of its own, bounded in time.

An answer to GET has as many frames as names were asked for; each is handed on as it comes.
"""

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from engine.codec.blobs import (
    MAX_BLOB_ANSWER_BYTES,
    MAX_HOLDINGS_BYTES,
    decode_chunk_answer,
    decode_holdings,
    decode_put_answer,
    encode_blob_request,
)
from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import AskHoldings, GetChunks, Holdings, PutChunk, PutStatus
from engine.core.errors import RemoteProtocolError, TransportError, TransportFault
from engine.network.blobs.port import BLOB_PROTOCOL, OnChunk
from engine.network.libp2p.ports import Host, PeerId, Stream
from engine.network.waku.framing import FrameDecoder, encode_frame
from engine.network.waku.service.exchange import ExchangeLimits, ask

READ_BYTES = 256 * 1024


class BlobPace(Struct, frozen=True, kw_only=True):
    silence_s: float = 15.0
    """Without a byte of an answer, before the peer is given up for now."""
    chunk_s: float = 120.0
    """For one chunk to come as a whole, over a slow line and beside others."""
    put_s: float = 60.0
    """To send one chunk, over a slow line, and to hear that it was taken."""


class BlobClient:
    def __init__(self, host: Host, pace: BlobPace | None = None) -> None:
        self._host = host
        self._pace = pace or BlobPace()

    async def holdings(self, peer_id: PeerId, names: Sequence[ChunkName]) -> Holdings:
        request = encode_blob_request(AskHoldings(tuple(names)))
        limits = ExchangeLimits(
            first_byte_timeout_s=self._pace.silence_s,
            timeout_s=2 * self._pace.silence_s,
            max_response_bytes=MAX_HOLDINGS_BYTES,
        )
        answer = await ask(self._host, peer_id, BLOB_PROTOCOL, request, limits)
        return decode_holdings(answer, len(names))

    async def put(self, peer_id: PeerId, sealed: bytes, *, keep_days: int) -> PutStatus:
        request = encode_blob_request(PutChunk(sealed=sealed, keep_days=keep_days))
        limits = ExchangeLimits(
            first_byte_timeout_s=self._pace.put_s, timeout_s=self._pace.put_s, max_response_bytes=64
        )
        return decode_put_answer(await ask(self._host, peer_id, BLOB_PROTOCOL, request, limits))

    async def get(self, peer_id: PeerId, names: Sequence[ChunkName], on_chunk: OnChunk) -> None:
        request = encode_blob_request(GetChunks(tuple(names)))
        try:
            async with asyncio.timeout(self._pace.silence_s) as patience:
                stream = await self._host.new_stream(peer_id, [BLOB_PROTOCOL])
                try:
                    await stream.write(encode_frame(request))
                    await self._answers(stream, names, on_chunk, patience)
                except BaseException:
                    await stream.reset()
                    raise
        except TimeoutError:
            text = f"{peer_id} does not send what it was asked for"
            raise TransportError(text, TransportFault.NO_ANSWER) from None
        await stream.close_write()

    async def _answers(
        self,
        stream: Stream,
        names: Sequence[ChunkName],
        on_chunk: OnChunk,
        patience: asyncio.Timeout,
    ) -> None:
        decoder = FrameDecoder(MAX_BLOB_ANSWER_BYTES)
        waiting = list(reversed(names))
        now_s = asyncio.get_running_loop().time
        chunk_until_s = now_s() + self._pace.chunk_s
        while waiting:
            patience.reschedule(min(now_s() + self._pace.silence_s, chunk_until_s))
            piece = await stream.read_some(READ_BYTES)
            if not piece:
                raise RemoteProtocolError("blob_ended_early")
            patience.reschedule(None)  # Our own disk may take its time.
            for frame in decoder.feed(piece):
                if not waiting:
                    raise RemoteProtocolError("blob_more_than_asked")
                await on_chunk(waiting.pop(), decode_chunk_answer(frame))
                chunk_until_s = now_s() + self._pace.chunk_s
