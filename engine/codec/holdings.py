"""Holdings on the wire: what a member has without gap, in a few bytes per author instance.

Each range is two numbers, each the distance from the bound before it: the first from zero, the last
from the first, the next first from that last.  Authors and ranges ascend strictly and ranges never
touch, so there is one encoding for one set.  Whether a claim is true is not known here.
"""

from google.protobuf.message import DecodeError

from engine.core.content import INSTANCE_ID_BYTES, MAX_SAFE_INTEGER
from engine.core.errors import RemoteProtocolError
from engine.core.sds.types import Holdings, SequenceRange
from engine.core.types import InstanceId
from proto import envelope_pb2

MAX_AUTHORS = 1024
MAX_RANGES_PER_AUTHOR = 64
MAX_HOLDINGS_BYTES = 16 * 1024
_LEAST_DISTANCE = 2


def encode_holdings(holdings: Holdings | None) -> bytes:
    """Empty bytes for nothing held.

    What is beyond the bounds is left out, which only claims less: the first MAX_AUTHORS in the
    mapping's order, the newest MAX_RANGES_PER_AUTHOR each, while MAX_HOLDINGS_BYTES lasts.
    """
    kept: list[envelope_pb2.AuthorHoldings] = []
    size = 0
    for instance_id, ranges in (holdings or {}).items():
        if not ranges:
            continue
        author = _encode_author(instance_id, ranges[-MAX_RANGES_PER_AUTHOR:])
        size += author.ByteSize() + 3
        if len(kept) == MAX_AUTHORS or size > MAX_HOLDINGS_BYTES:
            break
        kept.append(author)
    kept.sort(key=lambda author: author.instance_id)
    return envelope_pb2.Holdings(authors=kept).SerializeToString(deterministic=True)


def decode_holdings(encoded: bytes) -> Holdings | None:
    """None if nothing is held.  Raises RemoteProtocolError ``bad_holdings``."""
    if not encoded:
        return None
    if len(encoded) > MAX_HOLDINGS_BYTES:
        raise RemoteProtocolError("bad_holdings", "oversized")
    try:
        wire = envelope_pb2.Holdings.FromString(encoded)
    except DecodeError as error:
        raise RemoteProtocolError("bad_holdings", "malformed") from error
    if len(wire.authors) > MAX_AUTHORS:
        raise RemoteProtocolError("bad_holdings", "too many authors")
    holdings: Holdings = {}
    previous = b""
    for author in wire.authors:
        if len(author.instance_id) != INSTANCE_ID_BYTES or author.instance_id <= previous:
            raise RemoteProtocolError("bad_holdings", "authors do not ascend")
        previous = author.instance_id
        holdings[InstanceId(author.instance_id)] = _decode_ranges(author)
    return holdings or None


def _encode_author(
    instance_id: InstanceId, ranges: tuple[SequenceRange, ...]
) -> envelope_pb2.AuthorHoldings:
    author = envelope_pb2.AuthorHoldings(instance_id=instance_id)
    bound = 0
    for held in ranges:
        author.ranges.extend((held.first - bound, held.last - held.first))
        bound = held.last
    return author


def _decode_ranges(author: envelope_pb2.AuthorHoldings) -> tuple[SequenceRange, ...]:
    distances = list(author.ranges)
    if not distances or len(distances) % 2 or len(distances) > 2 * MAX_RANGES_PER_AUTHOR:
        raise RemoteProtocolError("bad_holdings", "ranges")
    ranges: list[SequenceRange] = []
    bound = 0
    for distance, length in zip(distances[::2], distances[1::2], strict=True):
        if distance < (_LEAST_DISTANCE if ranges else 1):
            raise RemoteProtocolError("bad_holdings", "ranges touch")
        first, bound = bound + distance, bound + distance + length
        if bound > MAX_SAFE_INTEGER:
            raise RemoteProtocolError("bad_holdings", "sequence too large")
        ranges.append(SequenceRange(first=first, last=bound))
    return tuple(ranges)
