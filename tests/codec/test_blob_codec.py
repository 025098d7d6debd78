"""Requests for chunks and their answers: what goes in comes out, and every bound is a refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.blobs import (
    MAX_BLOB_REQUEST_BYTES,
    decode_blob_request,
    decode_chunk_answer,
    decode_holdings,
    decode_put_answer,
    encode_blob_request,
    encode_chunk_answer,
    encode_holdings,
    encode_put_answer,
)
from engine.core.blobs.manifest import MAX_SEALED_BYTES, ChunkName
from engine.core.blobs.requests import (
    MAX_GET_NAMES,
    MAX_HAVE_NAMES,
    MAX_KEEP_DAYS,
    AskHoldings,
    BlobRequest,
    ChunkAnswer,
    ChunkStatus,
    GetChunks,
    Holdings,
    PutChunk,
    PutStatus,
)
from engine.core.errors import RemoteProtocolError
from proto import blob_pb2


def names(count: int) -> tuple[ChunkName, ...]:
    return tuple(ChunkName(number.to_bytes(32, "big")) for number in range(count))


@pytest.mark.parametrize(
    "request_",
    [
        GetChunks(names(1)),
        GetChunks(names(MAX_GET_NAMES)),
        AskHoldings(names(MAX_HAVE_NAMES)),
        PutChunk(sealed=bytes(MAX_SEALED_BYTES), keep_days=MAX_KEEP_DAYS),
    ],
)
def test_requests_come_back(request_: BlobRequest) -> None:
    encoded = encode_blob_request(request_)
    assert decode_blob_request(encoded) == request_
    assert len(encoded) <= MAX_BLOB_REQUEST_BYTES


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (blob_pb2.Request(), "blob_request_unknown"),
        (blob_pb2.Request(get=blob_pb2.Get()), "blob_request_names"),
        (blob_pb2.Request(get=blob_pb2.Get(names=bytes(33))), "blob_request_names"),
        (blob_pb2.Request(get=blob_pb2.Get(names=bytes(32 * 17))), "blob_request_names"),
        (blob_pb2.Request(have=blob_pb2.Have(names=bytes(32 * 4097))), "blob_request_names"),
        (blob_pb2.Request(put=blob_pb2.Put(sealed=bytes(16))), "blob_request_chunk_length"),
        (
            blob_pb2.Request(put=blob_pb2.Put(sealed=bytes(MAX_SEALED_BYTES + 1))),
            "blob_request_chunk_length",
        ),
        (
            blob_pb2.Request(put=blob_pb2.Put(sealed=bytes(MAX_SEALED_BYTES + 99))),
            "blob_request_oversized",
        ),
    ],
)
def test_requests_out_of_bounds_are_refused(wire: blob_pb2.Request, reason: str) -> None:
    with pytest.raises(RemoteProtocolError) as refused:
        decode_blob_request(wire.SerializeToString())
    assert refused.value.reason == reason


def test_a_wish_is_bounded() -> None:
    wire = blob_pb2.Request(put=blob_pb2.Put(sealed=bytes(17), keep_days=2**31))
    assert decode_blob_request(wire.SerializeToString()) == PutChunk(
        sealed=bytes(17), keep_days=MAX_KEEP_DAYS
    )


def test_answers_come_back() -> None:
    for answer in (
        ChunkAnswer(ChunkStatus.HERE, bytes(MAX_SEALED_BYTES)),
        *map(ChunkAnswer, (ChunkStatus.MISSING, ChunkStatus.BUSY, ChunkStatus.TOO_MUCH)),
    ):
        assert decode_chunk_answer(encode_chunk_answer(answer)) == answer
    for status in PutStatus:
        assert decode_put_answer(encode_put_answer(status)) is status


def test_statuses_have_the_numbers_of_the_protocol() -> None:
    assert {each.name: each.value for each in ChunkStatus} == dict(blob_pb2.Chunk.Status.items())
    assert {each.name: each.value for each in PutStatus} == dict(blob_pb2.PutAnswer.Status.items())
    assert (MAX_GET_NAMES, MAX_HAVE_NAMES, MAX_KEEP_DAYS) == (16, 4_096, 3_650)


def test_what_a_newer_version_answers_means_later() -> None:
    newer = blob_pb2.PutAnswer()
    newer.ParseFromString(b"\x08\x63")
    assert decode_put_answer(newer.SerializeToString()) is PutStatus.BUSY
    assert decode_chunk_answer(b"\x08\x63").status is ChunkStatus.BUSY


@pytest.mark.parametrize(
    "wire",
    [
        blob_pb2.Chunk(),
        blob_pb2.Chunk(sealed=bytes(16)),
        blob_pb2.Chunk(sealed=bytes(MAX_SEALED_BYTES + 1)),
        blob_pb2.Chunk(status=blob_pb2.Chunk.MISSING, sealed=bytes(17)),
    ],
)
def test_a_chunk_is_here_or_not(wire: blob_pb2.Chunk) -> None:
    with pytest.raises(RemoteProtocolError, match="blob_chunk_length"):
        decode_chunk_answer(wire.SerializeToString())


@given(st.lists(st.booleans(), max_size=70), st.booleans())
def test_holdings_come_back(held: list[bool], is_keeper: bool) -> None:
    holdings = Holdings(held=tuple(held), is_keeper=is_keeper)
    encoded = encode_holdings(holdings)
    assert decode_holdings(encoded, len(held)) == holdings
    with pytest.raises(RemoteProtocolError, match="blob_holdings_length"):
        decode_holdings(encoded, len(held) + 8)
