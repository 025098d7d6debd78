"""``BlobNetwork`` of which some requests break off, after the peer has worked for them.

A request for chunks breaks off half-way; of the others the answer is lost.  Which ones is the
plan's choice (``engine.core.faults``).
"""

from collections.abc import Callable, Sequence

from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import Holdings, PutStatus
from engine.core.errors import TransportError, TransportFault
from engine.network.blobs.port import BlobNetwork, ChunkShelf, OnChunk
from engine.network.libp2p.ports import PeerId


class FaultyBlobs:
    def __init__(self, inner: BlobNetwork, resets: Callable[[], bool]) -> None:
        self._inner = inner
        self._resets = resets

    def peers(self) -> tuple[PeerId, ...]:
        return self._inner.peers()

    async def holdings(self, peer_id: PeerId, names: Sequence[ChunkName], /) -> Holdings:
        held = await self._inner.holdings(peer_id, names)
        self._maybe_break()
        return held

    async def get(self, peer_id: PeerId, names: Sequence[ChunkName], on_chunk: OnChunk, /) -> None:
        some = names[: len(names) // 2] if self._resets() else names
        if some:
            await self._inner.get(peer_id, some, on_chunk)
        if len(some) < len(names):
            raise _broken_off()

    async def put(self, peer_id: PeerId, sealed: bytes, /, *, keep_days: int) -> PutStatus:
        status = await self._inner.put(peer_id, sealed, keep_days=keep_days)
        self._maybe_break()
        return status

    def serve(self, shelf: ChunkShelf | None, /) -> None:
        self._inner.serve(shelf)

    def give_way(self) -> None:
        self._inner.give_way()

    def _maybe_break(self) -> None:
        if self._resets():
            raise _broken_off()


def _broken_off() -> TransportError:
    return TransportError("the stream was reset", TransportFault.LOST)
