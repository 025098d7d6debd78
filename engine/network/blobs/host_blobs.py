"""``BlobNetwork`` over libp2p hosts: the connections of the relay role and of the edge role.

What is served is set while the node runs, and again at every start of a host.
"""

from collections.abc import Callable, Collection, Sequence

from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import Holdings, PutStatus
from engine.core.errors import TransportError, TransportFault
from engine.network.blobs.client import BlobClient, BlobPace
from engine.network.blobs.port import BLOB_PROTOCOL, ChunkShelf, OnChunk
from engine.network.libp2p.ports import Host, PeerId


class HostBlobs:
    def __init__(
        self,
        hosts: Callable[[], Sequence[Host]],
        serve: Callable[[ChunkShelf | None], None],
        pace: BlobPace | None = None,
        *,
        give_way: Callable[[], None] = lambda: None,
        preferred: Callable[[], Collection[PeerId]] = frozenset,
    ) -> None:
        """``hosts``: the running ones, that of the edge role first.

        ``preferred``: peers that are asked first, as service nodes are.
        """
        self._preferred = preferred
        self._hosts = hosts
        self._serve = serve
        self._give_way = give_way
        self._pace = pace

    def peers(self) -> tuple[PeerId, ...]:
        preferred = self._preferred()
        found = [
            peer.peer_id
            for host in self._hosts()
            for peer in host.peers()
            if BLOB_PROTOCOL in peer.protocols
        ]
        ordered = sorted(found, key=lambda peer_id: peer_id not in preferred)
        return tuple(dict.fromkeys(ordered))

    async def holdings(self, peer_id: PeerId, names: Sequence[ChunkName], /) -> Holdings:
        return await self._client(peer_id).holdings(peer_id, names)

    async def get(self, peer_id: PeerId, names: Sequence[ChunkName], on_chunk: OnChunk, /) -> None:
        await self._client(peer_id).get(peer_id, names, on_chunk)

    async def put(self, peer_id: PeerId, sealed: bytes, /, *, keep_days: int) -> PutStatus:
        return await self._client(peer_id).put(peer_id, sealed, keep_days=keep_days)

    def serve(self, shelf: ChunkShelf | None, /) -> None:
        self._serve(shelf)

    def give_way(self) -> None:
        self._give_way()

    def _client(self, peer_id: PeerId) -> BlobClient:
        for host in self._hosts():
            if host.peer(peer_id) is not None:
                return BlobClient(host, self._pace)
        raise TransportError(f"{peer_id} is not connected", TransportFault.NOT_CONNECTED)
