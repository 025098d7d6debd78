"""Admissions are put together from chunks, in any order, and a flood of chunks takes no memory."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from engine.codec.joining import encode_admission
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ConversationId
from engine.core.joining import CHUNK_BYTES, MAX_CHUNKS, AdmissionParts, Chunk
from engine.runtime.governing.chunk_book import MAX_HELD_BYTES, ChunkBook

GROUP, OLGA, EVE = ConversationId("g"), b"Olga", b"Eve"


def chunks(size: int, seed: int = 1) -> Sequence[Chunk]:
    random = Random(seed)
    entries = tuple(random.randbytes(size) for _ in range(5))
    return encode_admission(AdmissionParts(entries=entries, keys=b""))


def whole(parts: Sequence[Chunk]) -> bytes:
    return b"".join(chunk.part for chunk in parts)


def test_chunks_make_the_whole_in_any_order_and_over_several_answers() -> None:
    book, parts = ChunkBook(), chunks(39_000)
    assert len(parts) > 2
    mixed = [*parts[:-1], *parts[1:]]
    Random(1).shuffle(mixed)
    found = [made for chunk in mixed if (made := book.take(GROUP, OLGA, chunk)) is not None]
    assert found == [whole(parts)]
    assert book.held_bytes < len(whole(parts)), "what came twice is no whole"


def test_chunks_of_different_admissions_and_senders_are_never_mixed() -> None:
    book, mine, other = ChunkBook(), chunks(39_000), chunks(39_000, seed=2)
    assert book.take(GROUP, OLGA, mine[0]) is None
    for chunk in other[1:]:
        assert book.take(GROUP, EVE, chunk) is None
    assert book.take(GROUP, OLGA, other[0]) is None, "begun anew"
    for chunk in mine[:-1]:
        assert book.take(GROUP, OLGA, chunk) is None
    assert book.take(GROUP, OLGA, mine[-1]) == whole(mine)


def test_what_does_not_fit_its_digest_is_refused_and_forgotten() -> None:
    book, parts = ChunkBook(), chunks(39_000)
    for chunk in parts[1:]:
        book.take(GROUP, OLGA, chunk)
    with pytest.raises(RemoteProtocolError, match="join_bad_chunks"):
        book.take(GROUP, OLGA, replace(parts[0], part=bytes(CHUNK_BYTES)))
    assert book.held_bytes == 0


def test_a_flood_is_bounded_and_the_oldest_goes() -> None:
    book, part = ChunkBook(), bytes(CHUNK_BYTES)
    for sender in range(4):
        for number in range(MAX_CHUNKS - 1):
            flood = Chunk(digest=bytes(32), number=number, count=MAX_CHUNKS, part=part)
            book.take(GROUP, bytes([sender]), flood)
            assert book.held_bytes <= MAX_HELD_BYTES
    book.forget(GROUP)
    assert book.held_bytes == 0
