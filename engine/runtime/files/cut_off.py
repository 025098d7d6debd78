"""Files while the fault bench cuts this device off from everybody: nobody is there to ask or serve.

Connections stay as they are, so the network itself goes on to name peers.  What is under way breaks
off at its next chunk and is asked for again afterwards, as after any loss.
"""

from collections.abc import Callable, Sequence

from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import ChunkAnswer, Holdings, PutStatus
from engine.core.errors import TransportError
from engine.network.blobs.port import BlobNetwork, ChunkShelf, OnChunk
from engine.network.libp2p.ports import PeerId


class CutOffBlobs:
    """A ``BlobNetwork`` without anybody for as long as ``is_cut_off`` says so."""

    def __init__(self, inner: BlobNetwork, is_cut_off: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_cut_off = is_cut_off

    def peers(self) -> tuple[PeerId, ...]:
        return () if self._is_cut_off() else self._inner.peers()

    async def holdings(self, peer_id: PeerId, names: Sequence[ChunkName], /) -> Holdings:
        self._check()
        return await self._inner.holdings(peer_id, names)

    async def get(self, peer_id: PeerId, names: Sequence[ChunkName], on_chunk: OnChunk, /) -> None:
        async def checked(name: ChunkName, answer: ChunkAnswer) -> None:
            self._check()
            await on_chunk(name, answer)

        self._check()
        await self._inner.get(peer_id, names, checked)

    async def put(self, peer_id: PeerId, sealed: bytes, /, *, keep_days: int) -> PutStatus:
        self._check()
        return await self._inner.put(peer_id, sealed, keep_days=keep_days)

    def serve(self, shelf: ChunkShelf | None, /) -> None:
        self._inner.serve(None if shelf is None else _CutOffShelf(shelf, self._is_cut_off))

    def give_way(self) -> None:
        self._inner.give_way()

    def _check(self) -> None:
        if self._is_cut_off():
            raise TransportError("cut off on purpose")


class _CutOffShelf:
    def __init__(self, inner: ChunkShelf, is_cut_off: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_cut_off = is_cut_off

    async def held(self, names: Sequence[ChunkName], /) -> tuple[bool, ...]:
        return (False,) * len(names) if self._is_cut_off() else await self._inner.held(names)

    async def read(self, name: ChunkName, /) -> bytes | None:
        return None if self._is_cut_off() else await self._inner.read(name)

    def given(self, peer_id: PeerId, name: ChunkName, /) -> None:
        self._inner.given(peer_id, name)
