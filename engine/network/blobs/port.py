"""The ports of ``/causerie/blob/1``: the network as a device sees it, and what a peer is served.

A chunk is sealed, and its name is enough to ask for it, so a shelf does not check who asks.
``engine.network.blobs.host_blobs`` implements the network over libp2p hosts.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias

from engine.core.blobs.manifest import ChunkName
from engine.core.blobs.requests import ChunkAnswer, Holdings, PutStatus
from engine.network.libp2p.ports import PeerId, ProtocolId

BLOB_PROTOCOL: Final = ProtocolId("/causerie/blob/1")

OnChunk: TypeAlias = Callable[[ChunkName, ChunkAnswer], Awaitable[None]]


class ChunkShelf(Protocol):
    """Sealed chunks that are served.  Nothing here raises because of a peer's input."""

    async def held(self, names: Sequence[ChunkName], /) -> tuple[bool, ...]: ...

    async def read(self, name: ChunkName, /) -> bytes | None:
        """None if it is not here, or cannot be read."""

    def given(self, peer_id: PeerId, name: ChunkName, /) -> None:
        """All of this chunk was sent to a peer."""


class ChunkKeeper(ChunkShelf, Protocol):
    """A shelf that takes chunks of others."""

    async def take(self, sealed: bytes, /, *, source: str, keep_days: int) -> PutStatus:
        """TAKEN once it is durable; FULL, or FAILED if the disk refuses.

        ``source``: the network that it came from, a pseudonym.
        """


class BlobNetwork(Protocol):
    """Requests raise TransportError, or RemoteProtocolError if the peer broke the protocol."""

    def peers(self) -> tuple[PeerId, ...]:
        """Connected peers that speak the protocol, service nodes first."""

    async def holdings(self, peer_id: PeerId, names: Sequence[ChunkName], /) -> Holdings: ...

    async def get(self, peer_id: PeerId, names: Sequence[ChunkName], on_chunk: OnChunk, /) -> None:
        """Call ``on_chunk`` for each name in turn; whether the bytes fit it, is not checked."""

    async def put(self, peer_id: PeerId, sealed: bytes, /, *, keep_days: int) -> PutStatus: ...

    def serve(self, shelf: ChunkShelf | None, /) -> None:
        """Serve these chunks to peers from now on; None: nothing any more."""

    def give_way(self) -> None:
        """Somebody talks here: send files more slowly for a moment."""
