"""Metadata ↔ bytes: 66/WAKU2-METADATA.  Request and response are the same message.

The shards are written twice, unpacked in the specification's field and packed in field 3, because
each of the other implementations reads only one of the two.  Either form is read.
"""

from typing import Final

from msgspec import Struct

from engine.codec.waku_rpc import parsed
from engine.core.errors import RemoteProtocolError
from proto import waku_metadata_pb2

MAX_METADATA_BYTES: Final = 16 * 1024
MAX_SHARDS: Final = 1_024


class Metadata(Struct, frozen=True, kw_only=True):
    """``cluster_id`` None: the peer did not say."""

    cluster_id: int | None
    shards: tuple[int, ...] = ()


def encode_metadata(metadata: Metadata) -> bytes:
    return waku_metadata_pb2.Metadata(
        cluster_id=metadata.cluster_id, shards=metadata.shards, shards_packed=metadata.shards
    ).SerializeToString()


def decode_metadata(data: bytes) -> Metadata:
    """Raises RemoteProtocolError: ``metadata_oversized``, ``_malformed``, ``_too_many_shards``."""
    wire = parsed(waku_metadata_pb2.Metadata, data, max_bytes=MAX_METADATA_BYTES, what="metadata")
    shards = sorted({*wire.shards, *wire.shards_packed})
    if len(shards) > MAX_SHARDS:
        raise RemoteProtocolError("metadata_too_many_shards")
    return Metadata(
        cluster_id=wire.cluster_id if wire.HasField("cluster_id") else None, shards=tuple(shards)
    )
