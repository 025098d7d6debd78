"""How much of our own files peers fetch from this device, as far as it was really sent to them.

Who asks what is here of a file names its root, so from then on its chunks are known.  A chunk that
a peer gets again counts once.  No message says which peer is which member, and a member may be many
peers: so nobody is named, and what is counted are connections.  Counts ``files.served_left`` and
``files.takers_left``: a file, or a peer that gets one, that is not followed any more.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from engine.core.blobs.manifest import CHUNK_BYTES, ChunkName, Manifest
from engine.core.counters import Counters
from engine.file_views import FetchView
from engine.network.libp2p.ports import PeerId
from engine.runtime.files.book import FileBook, FileKey
from engine.runtime.files.transfer import Rate, now_ms

MAX_FILES: Final = 16
MAX_PEERS: Final = 64
"""Of one file."""
STALLED_MS: Final = 20_000
"""A peer that got nothing for so long does not fetch it any more."""


@dataclass(slots=True)
class _Taker:
    chunks: int = 0
    """A bit for each that it got."""
    last_ms: int = 0


@dataclass(slots=True)
class _Served:
    size: int
    bits: dict[ChunkName, int]
    takers: dict[PeerId, _Taker] = field(default_factory=dict)
    """Who got one last stands last."""
    rate: Rate = field(default_factory=Rate)


class ServedFiles:
    def __init__(
        self, book: FileBook, connected: Callable[[], Collection[PeerId]], counters: Counters
    ) -> None:
        self._book = book
        self._connected = connected
        self._counters = counters
        self._files: dict[ChunkName, _Served] = {}
        """By root; of which a chunk was sent last stands last."""
        self.begun = asyncio.Event()
        """Set whenever a chunk was sent, or a transfer begins."""

    def unknown(self, root: ChunkName) -> Manifest | None:
        """Of a file of ours whose chunks are not known here yet."""
        blob = self._book.own(root)
        return None if blob is None or root in self._files else blob.stored.transfer.manifest

    def know(self, manifest: Manifest, names: Collection[ChunkName]) -> None:
        """``names``: of its chunks, without the list."""
        if manifest.root not in self._files:
            bits = {name: 1 << place for place, name in enumerate(names)}
            if len(self._files) == MAX_FILES:
                idle = (root for root, file in self._files.items() if not file.takers)
                del self._files[next(idle, next(iter(self._files)))]
                self._counters.add("files.served_left")
            self._files[manifest.root] = _Served(manifest.size, bits)

    def given(self, peer_id: PeerId, name: ChunkName) -> None:
        if name in self._files:  # The list: it begins anew.
            self._files[name].takers.pop(peer_id, None)
            return
        for root, file in self._files.items():
            if (bit := file.bits.get(name)) is not None:
                self._files[root] = self._files.pop(root)
                self._take(file, peer_id, bit)
                self.begun.set()
                return

    def _take(self, file: _Served, peer_id: PeerId, bit: int) -> None:
        taker = file.takers.pop(peer_id, None) or _Taker()
        taker.chunks |= bit
        taker.last_ms = now_ms()
        if taker.chunks.bit_count() < len(file.bits):
            file.takers[peer_id] = taker
            if len(file.takers) > MAX_PEERS:
                del file.takers[next(iter(file.takers))]
                self._counters.add("files.takers_left")

    def now(self) -> dict[FileKey, FetchView]:
        """What is fetched from here at the moment."""
        found = dict[FileKey, FetchView]()
        connected = self._connected()
        for root, file in self._files.items():
            blob = self._book.own(root)
            takers = [
                taker.chunks.bit_count()
                for peer_id, taker in file.takers.items()
                if peer_id in connected and now_ms() - taker.last_ms < STALLED_MS
            ]
            if blob is None or not takers:
                file.rate = Rate()
                continue
            done_bytes = min(max(takers) * CHUNK_BYTES, file.size)
            rate = file.rate.add(done_bytes)
            found[blob.key] = FetchView(peers=len(takers), done_bytes=done_bytes, rate=rate)
        return found
