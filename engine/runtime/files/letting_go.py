"""Asks before a file is let go: which connected members have all of it just now.

What a member claimed may be out of date, and two could let the same file go because of each other.
So what is about to go is withheld first: peers who ask are told that it is not here.  Of two that
let go at once and are connected, the one who asks later hears no from the other.  A node that keeps
files for others does not count, since it drops them after days.  A peer can lie.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from engine.core.blobs.manifest import ChunkName, Manifest
from engine.core.errors import CryptoError, RemoteProtocolError, TransportError
from engine.network.blobs.port import BlobNetwork
from engine.network.libp2p.ports import PeerId
from engine.runtime.files.disk import BlobDisk
from engine.runtime.files.served import ServedFiles

MAX_ASKED: Final = 32
"""Peers, of those that are connected."""
ASK_S: Final = 10.0


class ServedShelf:
    """What peers are served: what is on the disk, but for what is about to go."""

    def __init__(self, disk: BlobDisk, served: ServedFiles) -> None:
        self._disk = disk
        self._served = served
        self._withheld = Counter[ChunkName]()

    @contextmanager
    def withholding(self, names: Collection[ChunkName]) -> Iterator[None]:
        self._withheld.update(names)
        try:
            yield
        finally:
            self._withheld.subtract(names)
            self._withheld += Counter()  # Without those that have none.

    async def held(self, names: Sequence[ChunkName], /) -> tuple[bool, ...]:
        if names:
            await self._know(names[0])
        here = await self._disk.held(names)
        return tuple(
            is_here and not self._withheld[name] for name, is_here in zip(names, here, strict=True)
        )

    async def read(self, name: ChunkName, /) -> bytes | None:
        """Also what is about to go: a peer that is getting it may still have it."""
        return await self._disk.read(name)

    def given(self, peer_id: PeerId, name: ChunkName, /) -> None:
        self._served.given(peer_id, name)

    async def _know(self, root: ChunkName) -> None:
        """Before a peer hears what is here: then it asks for chunks."""
        manifest = self._served.unknown(root)
        if manifest is not None:
            with suppress(CryptoError):
                self._served.know(manifest, await self._disk.names(manifest) or ())


async def all_names(disk: BlobDisk, manifest: Manifest) -> tuple[ChunkName, ...]:
    """Of the list and of all chunks; of the list only if that cannot be read."""
    try:
        return (manifest.root, *(await disk.names(manifest) or ()))
    except CryptoError:
        return (manifest.root,)


async def held_by_a_peer(
    network: BlobNetwork | None, files: Sequence[tuple[ChunkName, ...]]
) -> list[bool]:
    """Of each file, its chunks' names: whether a connected peer says now that it has them all."""
    if network is None:
        return [False] * len(files)
    asked = network.peers()[-MAX_ASKED:]  # Service nodes come first.
    answers = await asyncio.gather(*(_held_by(network, peer, files) for peer in asked))
    return [any(of_file) for of_file in zip(*answers, strict=True)] or [False] * len(files)


async def _held_by(
    network: BlobNetwork, peer: PeerId, files: Sequence[tuple[ChunkName, ...]]
) -> list[bool]:
    held: list[bool] = []
    try:
        async with asyncio.timeout(ASK_S):
            for names in files:
                answer = await network.holdings(peer, names)
                held.append(not answer.is_keeper and all(answer.held))
    except (TransportError, RemoteProtocolError, TimeoutError):
        pass
    return held + [False] * (len(files) - len(held))
