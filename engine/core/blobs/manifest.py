"""The manifest of a blob: what a message says about a file that travels separately.

A blob is cut into chunks of 256 KiB, numbered from 1; each is sealed with the blob's own key, and
named by the SHA-256 of its sealed bytes.  Chunk 0 is the list of the others' names, sealed alike;
its name is the blob's root.  ``engine.crypto.blobs`` seals and opens; docs/files.md has the form.
"""

from typing import Final, NewType

from msgspec import Struct

CHUNK_BYTES: Final = 256 * 1024
SEAL_BYTES: Final = 16
"""By which a sealed chunk is longer than what is in it."""
MAX_SEALED_BYTES: Final = CHUNK_BYTES + SEAL_BYTES
MAX_BLOB_BYTES: Final = 100 * 1024 * 1024
KEY_BYTES: Final = 32
NAME_BYTES: Final = 32
MAX_THUMBNAIL_BYTES: Final = 8 * 1024
MAX_READ_BYTES: Final = 10 * 1024 * 1024
"""Of what is read into memory as a whole, to be shown."""
_PICTURES: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")

ChunkName = NewType("ChunkName", bytes)
"""SHA-256 of a sealed chunk, NAME_BYTES long."""


class Manifest(Struct, frozen=True, kw_only=True):
    """Enough to find, check and open a blob.  ``usable`` says whether the parts fit each other."""

    key: bytes
    root: ChunkName
    size: int
    """Bytes of the file, 1 to MAX_BLOB_BYTES."""
    thumbnail: bytes = b""
    """PNG or JPEG by its first bytes; b"" if there is none."""

    def __repr__(self) -> str:
        """Without the key, which opens the file."""
        return f"Manifest(root={self.root.hex()}, size={self.size})"

    @property
    def chunk_count(self) -> int:
        """Of the file itself, without the list."""
        return chunks_of(self.size)

    def length(self, index: int) -> int:
        """How many bytes are in the chunk of this number; 0 is the list."""
        if index == 0:
            return NAME_BYTES * self.chunk_count
        return min(CHUNK_BYTES, self.size - (index - 1) * CHUNK_BYTES)


def chunks_of(size: int) -> int:
    return -(-size // CHUNK_BYTES)


def usable(manifest: Manifest, chunk_count: int) -> bool:
    """Whether a manifest that somebody sent with this ``chunk_count`` can be meant."""
    return (
        len(manifest.key) == KEY_BYTES
        and len(manifest.root) == NAME_BYTES
        and 1 <= manifest.size <= MAX_BLOB_BYTES
        and chunk_count == manifest.chunk_count
    )


def usable_thumbnail(thumbnail: bytes) -> bytes:
    """``thumbnail``, or b"" if it is too large or neither PNG nor JPEG by its first bytes."""
    fits = len(thumbnail) <= MAX_THUMBNAIL_BYTES and thumbnail.startswith(_PICTURES)
    return thumbnail if fits else b""
