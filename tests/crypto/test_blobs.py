"""Sealed chunks: golden vectors, opened by the book, and nothing opens that was changed."""

import hashlib
import json
from pathlib import Path
from typing import TypedDict

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import structs

from engine.core.blobs.manifest import (
    CHUNK_BYTES,
    MAX_BLOB_BYTES,
    ChunkName,
    Manifest,
)
from engine.core.errors import CryptoError
from engine.crypto.blobs import name_of, open_chunk, open_names, seal_chunk, seal_names

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "blobs" / "blob.json"
KEY = bytes(range(32))


class ChunkVector(TypedDict):
    index: int
    nonce: str
    associated: str
    plain: str
    sealed: str
    name: str


class BlobVector(TypedDict):
    file: str
    key: str
    chunks: list[ChunkVector]
    root: str


def manifest(size: int, names: list[ChunkName] | None = None) -> tuple[Manifest, bytes]:
    count = -(-size // CHUNK_BYTES)
    some = [ChunkName(bytes([n]) * 32) for n in range(1, count + 1)] if names is None else names
    sealed = seal_names(KEY, some)
    return Manifest(key=KEY, root=name_of(sealed), size=size), sealed


def test_the_bytes_are_those_of_the_vectors() -> None:
    vector: BlobVector = json.loads(VECTORS.read_text("utf-8"))
    key, data = bytes.fromhex(vector["key"]), bytes.fromhex(vector["file"])
    listed, only = vector["chunks"]
    sealed = seal_chunk(key, 1, data)
    assert (sealed.hex(), name_of(sealed).hex()) == (only["sealed"], only["name"])
    names = seal_names(key, [name_of(sealed)])
    assert (names.hex(), name_of(names).hex()) == (listed["sealed"], vector["root"])
    found = Manifest(key=key, root=ChunkName(bytes.fromhex(vector["root"])), size=len(data))
    assert open_names(found, names) == (name_of(sealed),)
    assert open_chunk(found, 1, sealed) == data


def test_a_second_implementation_opens_the_vectors() -> None:
    vector: BlobVector = json.loads(VECTORS.read_text("utf-8"))
    for chunk in vector["chunks"]:
        nonce = chunk["index"].to_bytes(12, "big")
        domain = b"causerie/blob/1"
        associated = (
            b"s" + len(domain).to_bytes(4, "big") + domain
            + b"i" + (8).to_bytes(4, "big") + chunk["index"].to_bytes(8, "big")
        )  # fmt: skip
        sealed = bytes.fromhex(chunk["sealed"])
        assert (nonce.hex(), associated.hex()) == (chunk["nonce"], chunk["associated"])
        opened = AESGCM(bytes.fromhex(vector["key"])).decrypt(nonce, sealed, associated)
        assert opened.hex() == chunk["plain"]
        assert hashlib.sha256(sealed).hexdigest() == chunk["name"]


def test_a_chunk_opens_only_at_its_place_and_whole() -> None:
    found, _ = manifest(2 * CHUNK_BYTES)
    sealed = seal_chunk(KEY, 1, bytes(CHUNK_BYTES))
    assert open_chunk(found, 1, sealed) == bytes(CHUNK_BYTES)
    for wrong, index in ((sealed, 2), (sealed[:-1], 1), (sealed + b"x", 1), (b"", 1)):
        with pytest.raises(CryptoError, match="blob_seal"):
            open_chunk(found, index, wrong)
    with pytest.raises(CryptoError, match="blob_seal"):
        open_chunk(structs.replace(found, key=bytes(32)), 1, sealed)
    for short in (b"", bytes(CHUNK_BYTES - 1)):
        with pytest.raises(CryptoError, match="blob_length"):
            open_chunk(found, 1, seal_chunk(KEY, 1, short))


def test_a_list_names_as_many_chunks_as_the_file_has_and_each_once() -> None:
    found, sealed = manifest(3 * CHUNK_BYTES)
    assert len(open_names(found, sealed)) == 3
    for size in (2 * CHUNK_BYTES, 3 * CHUNK_BYTES + 1, 1, MAX_BLOB_BYTES):
        with pytest.raises(CryptoError, match="blob_length"):
            open_names(structs.replace(found, size=size), sealed)
    twice, sealed = manifest(2 * CHUNK_BYTES, [ChunkName(b"n" * 32)] * 2)
    with pytest.raises(CryptoError, match="blob_names"):
        open_names(twice, sealed)


def test_a_manifest_does_not_show_its_key() -> None:
    found, _ = manifest(1)
    assert KEY.hex() not in repr(found)
    assert repr(KEY) not in repr(found)
