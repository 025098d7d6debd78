"""Seals and opens the chunks of a blob: AES-256-GCM with the blob's own random key.

A chunk's nonce is its number in 12 bytes, big-endian, so the key must serve one blob only.  The
domain and the number are authenticated with it: a chunk opens at its own place only.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.codec.tuples import tuple_bytes
from engine.core.blobs.manifest import NAME_BYTES, ChunkName, Manifest
from engine.core.errors import CryptoError

DOMAIN: Final = "causerie/blob/1"
_NONCE_BYTES: Final = 12


def name_of(sealed: bytes) -> ChunkName:
    return ChunkName(hashlib.sha256(sealed).digest())


def seal_chunk(key: bytes, index: int, data: bytes) -> bytes:
    return AESGCM(key).encrypt(_nonce(index), data, tuple_bytes(DOMAIN, index))


def seal_names(key: bytes, names: Sequence[ChunkName]) -> bytes:
    """Chunk 0, whose name is the blob's root."""
    return seal_chunk(key, 0, b"".join(names))


def open_chunk(manifest: Manifest, index: int, sealed: bytes) -> bytes:
    """Raises CryptoError ``blob_seal`` or ``blob_length``: its author sealed something else."""
    try:
        data = AESGCM(manifest.key).decrypt(_nonce(index), sealed, tuple_bytes(DOMAIN, index))
    except InvalidTag as error:
        raise CryptoError("blob_seal") from error
    if len(data) != manifest.length(index):
        raise CryptoError("blob_length")
    return data


def open_names(manifest: Manifest, sealed: bytes) -> tuple[ChunkName, ...]:
    """The names of chunks 1, 2 … from chunk 0.  Raises CryptoError, also ``blob_names``."""
    data = open_chunk(manifest, 0, sealed)
    names = tuple(
        ChunkName(data[start : start + NAME_BYTES]) for start in range(0, len(data), NAME_BYTES)
    )
    if len({*names, manifest.root}) <= len(names):
        raise CryptoError("blob_names", "a name is there twice")
    return names


def _nonce(index: int) -> bytes:
    return index.to_bytes(_NONCE_BYTES, "big")
