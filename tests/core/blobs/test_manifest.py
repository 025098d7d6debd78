"""What a message may say of a blob, how long its parts are, and what is no thumbnail."""

import pytest
from msgspec import structs

from engine.core.blobs.manifest import (
    CHUNK_BYTES,
    KEY_BYTES,
    MAX_BLOB_BYTES,
    MAX_SEALED_BYTES,
    MAX_THUMBNAIL_BYTES,
    NAME_BYTES,
    ChunkName,
    Manifest,
    chunks_of,
    usable,
    usable_thumbnail,
)

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"


def manifest(size: int) -> Manifest:
    return Manifest(key=bytes(32), root=ChunkName(b"r" * 32), size=size)


def test_the_numbers_are_those_of_the_protocol() -> None:
    assert (CHUNK_BYTES, MAX_SEALED_BYTES, chunks_of(MAX_BLOB_BYTES)) == (262_144, 262_160, 400)
    assert (MAX_BLOB_BYTES, KEY_BYTES, NAME_BYTES, MAX_THUMBNAIL_BYTES) == (
        104_857_600, 32, 32, 8_192,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("size", "lengths"),
    [
        (1, [32, 1]),
        (CHUNK_BYTES, [32, CHUNK_BYTES]),
        (CHUNK_BYTES + 1, [64, CHUNK_BYTES, 1]),
        (2 * CHUNK_BYTES, [64, CHUNK_BYTES, CHUNK_BYTES]),
    ],
)
def test_how_long_the_parts_are(size: int, lengths: list[int]) -> None:
    found = manifest(size)
    assert [found.length(index) for index in range(found.chunk_count + 1)] == lengths


def test_the_smallest_and_the_largest_can_be_meant() -> None:
    for size in (1, CHUNK_BYTES, CHUNK_BYTES + 1, MAX_BLOB_BYTES):
        assert usable(manifest(size), -(-size // CHUNK_BYTES))


@pytest.mark.parametrize(
    ("changed", "chunk_count"),
    [
        ({"key": b"short"}, 2),
        ({"key": bytes(33)}, 2),
        ({"root": b"short"}, 2),
        ({"root": bytes(33)}, 2),
        ({"size": 0}, 0),
        ({"size": MAX_BLOB_BYTES + 1}, 401),
        ({"size": 2**63}, 2),
        ({}, 1),
        ({}, 3),
    ],
)
def test_a_manifest_that_contradicts_itself_is_no_use(
    changed: dict[str, bytes | int], chunk_count: int
) -> None:
    assert not usable(structs.replace(manifest(CHUNK_BYTES + 1), **changed), chunk_count)


def test_only_small_pictures_are_thumbnails() -> None:
    assert usable_thumbnail(PNG) == PNG
    largest = JPEG + bytes(MAX_THUMBNAIL_BYTES - len(JPEG))
    assert usable_thumbnail(largest) == largest
    assert usable_thumbnail(largest + b"x") == b""
    assert usable_thumbnail(b"<svg/>") == usable_thumbnail(b"") == b""
