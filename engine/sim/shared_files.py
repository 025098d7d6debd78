"""Files that members of a trial send and fetch: true ones, and those of members who lie.

Sealed chunks lie on one shelf from which everybody gets them at once; how they travel is another
trial's subject.  A lie is about the root, the size, the chunks' hashes or the key.  Who fetches a
file checks it as a device does.
"""

from collections.abc import Callable
from enum import StrEnum
from hashlib import sha256

from msgspec.structs import replace

from engine.core.blobs.manifest import ChunkName, Manifest
from engine.core.errors import CryptoError
from engine.crypto.blobs import name_of, open_chunk, open_names, seal_chunk, seal_names


class Lie(StrEnum):
    ROOT = "root"
    """Nobody has such a list."""
    SIZE = "size"
    HASH = "hash"
    """The list names a chunk of another file."""
    KEY = "key"


class SharedFiles:
    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._shelf: dict[ChunkName, bytes] = {}

    def make(self, size: int, lie: Lie | None) -> Manifest:
        """Put a small file on the shelf, and return what its sender says of it."""
        key = self._random_bytes(32)
        of_chunk = self._random_bytes(32) if lie is Lie.HASH else key
        chunk = self._put(seal_chunk(of_chunk, 1, self._random_bytes(size)))
        root = self._put(seal_names(key, [chunk]))
        said = Manifest(key=key, root=root, size=size)
        match lie:
            case Lie.ROOT:
                return replace(said, root=ChunkName(sha256(root).digest()))
            case Lie.SIZE:
                return replace(said, size=size + 1)
            case Lie.KEY:
                return replace(said, key=self._random_bytes(32))
            case Lie.HASH | None:
                return said

    def _put(self, sealed: bytes) -> ChunkName:
        name = name_of(sealed)
        self._shelf[name] = sealed
        return name

    def fetch(self, manifest: Manifest) -> bool:
        """Whether all of it is there, and what was announced."""
        sealed = self._shelf.get(manifest.root)
        if sealed is None:
            return False
        try:
            for index, name in enumerate(open_names(manifest, sealed), 1):
                open_chunk(manifest, index, self._shelf[name])
        except CryptoError:
            return False
        return True
