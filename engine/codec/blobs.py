"""``proto/blob.proto`` ↔ ``engine.core.blobs.requests``, bounded both ways.

Whether a chunk's bytes have the name that was asked for is checked by the requester.
"""

from collections.abc import Sequence
from typing import Final, assert_never

from engine.codec.waku_rpc import parsed
from engine.core.blobs.manifest import MAX_SEALED_BYTES, NAME_BYTES, SEAL_BYTES, ChunkName
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

_OVERHEAD: Final = 64
MAX_BLOB_REQUEST_BYTES: Final = MAX_SEALED_BYTES + _OVERHEAD
MAX_BLOB_ANSWER_BYTES: Final = MAX_SEALED_BYTES + _OVERHEAD
MAX_HOLDINGS_BYTES: Final = MAX_HAVE_NAMES // 8 + _OVERHEAD


def encode_blob_request(request: BlobRequest) -> bytes:
    wire = blob_pb2.Request()
    match request:
        case GetChunks(names=names):
            wire.get.names = b"".join(names)
        case PutChunk():
            wire.put.sealed = request.sealed
            wire.put.keep_days = request.keep_days
        case AskHoldings(names=names):
            wire.have.names = b"".join(names)
        case _:
            assert_never(request)
    return wire.SerializeToString()


def decode_blob_request(data: bytes) -> BlobRequest:
    """Raises RemoteProtocolError, for example ``blob_request_names``."""
    wire = parsed(blob_pb2.Request, data, max_bytes=MAX_BLOB_REQUEST_BYTES, what="blob_request")
    match wire.WhichOneof("kind"):
        case "get":
            return GetChunks(_names(wire.get.names, MAX_GET_NAMES))
        case "put":
            if not SEAL_BYTES < len(wire.put.sealed) <= MAX_SEALED_BYTES:
                raise RemoteProtocolError("blob_request_chunk_length")
            return PutChunk(
                sealed=wire.put.sealed, keep_days=min(wire.put.keep_days, MAX_KEEP_DAYS)
            )
        case "have":
            return AskHoldings(_names(wire.have.names, MAX_HAVE_NAMES))
        case _:
            raise RemoteProtocolError("blob_request_unknown")


def encode_chunk_answer(answer: ChunkAnswer) -> bytes:
    return blob_pb2.Chunk(
        status=blob_pb2.Chunk.Status.ValueType(answer.status), sealed=answer.sealed
    ).SerializeToString()


def decode_chunk_answer(data: bytes) -> ChunkAnswer:
    """Raises RemoteProtocolError.  A status of a newer version is taken for BUSY."""
    wire = parsed(blob_pb2.Chunk, data, max_bytes=MAX_BLOB_ANSWER_BYTES, what="blob_chunk")
    status = _CHUNK_STATUSES.get(wire.status, ChunkStatus.BUSY)
    if (status is ChunkStatus.HERE) != (SEAL_BYTES < len(wire.sealed) <= MAX_SEALED_BYTES):
        raise RemoteProtocolError("blob_chunk_length")
    return ChunkAnswer(status, wire.sealed)


def encode_put_answer(status: PutStatus) -> bytes:
    return blob_pb2.PutAnswer(
        status=blob_pb2.PutAnswer.Status.ValueType(status)
    ).SerializeToString()


def decode_put_answer(data: bytes) -> PutStatus:
    """Raises RemoteProtocolError.  A status of a newer version is taken for BUSY."""
    wire = parsed(blob_pb2.PutAnswer, data, max_bytes=_OVERHEAD, what="blob_put_answer")
    return _PUT_STATUSES.get(wire.status, PutStatus.BUSY)


def encode_holdings(holdings: Holdings) -> bytes:
    bitmap = bytearray(-(-len(holdings.held) // 8))
    for place, held in enumerate(holdings.held):
        bitmap[place // 8] |= held << place % 8
    return blob_pb2.HaveAnswer(
        bitmap=bytes(bitmap), is_keeper=holdings.is_keeper
    ).SerializeToString()


def decode_holdings(data: bytes, asked: int) -> Holdings:
    """``asked``: how many names were asked for.  Raises RemoteProtocolError."""
    wire = parsed(blob_pb2.HaveAnswer, data, max_bytes=MAX_HOLDINGS_BYTES, what="blob_holdings")
    bitmap = wire.bitmap
    if len(bitmap) != -(-asked // 8):
        raise RemoteProtocolError("blob_holdings_length")
    return Holdings(
        held=tuple(bool(bitmap[place // 8] >> place % 8 & 1) for place in range(asked)),
        is_keeper=wire.is_keeper,
    )


def _names(joined: bytes, most: int) -> tuple[ChunkName, ...]:
    count, rest = divmod(len(joined), NAME_BYTES)
    if rest or not 1 <= count <= most:
        raise RemoteProtocolError("blob_request_names")
    return tuple(_each(joined, count))


def _each(joined: bytes, count: int) -> Sequence[ChunkName]:
    return [ChunkName(joined[NAME_BYTES * n : NAME_BYTES * (n + 1)]) for n in range(count)]


_CHUNK_STATUSES: Final = {int(status): status for status in ChunkStatus}
_PUT_STATUSES: Final = {int(status): status for status in PutStatus}
