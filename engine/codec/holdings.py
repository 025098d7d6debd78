"""A member's claim beside a message: what it holds without gap, what aside, which files whole.

Each range of sequence numbers is two numbers, each the distance from the bound before it (the first
from zero, the last from the first, the next first from that last), and the first 8 bytes of the id
of its last message.  Authors and ranges ascend strictly and ranges never touch, so each set has one
encoding.  Unknown fields claim nothing.  The channel judges whether a claim is true.
"""

from google.protobuf.message import DecodeError

from engine.codec.message_id import ID_BYTES, id_bytes, id_text
from engine.core.content import INSTANCE_ID_BYTES, MAX_SAFE_INTEGER
from engine.core.errors import RemoteProtocolError
from engine.core.ids import InstanceId
from engine.core.sds.claims import HEAD_BYTES
from engine.core.sds.vocabulary import Claim, Holdings, SequenceRange
from proto import envelope_pb2

MAX_AUTHORS = 1024
MAX_RANGES_PER_AUTHOR = 64
MAX_HELD_ASIDE = 256
MAX_WHOLE_FILES = 64
"""Also of those that were let go."""
MAX_CLAIM_BYTES = 16 * 1024
_LEAST_DISTANCE = 2
_NUMBER_BYTES = 12
"""Of a field with a number, at most."""


def encode_claim(claim: Claim | None) -> bytes:
    """Return empty bytes for an empty claim.

    Parts beyond the bounds are left out, which only claims less: the first MAX_AUTHORS in the
    mapping's order, the newest MAX_RANGES_PER_AUTHOR each, while MAX_CLAIM_BYTES lasts.
    """
    if claim is None:
        return b""
    aside = [id_bytes(message_id) for message_id in claim.held_aside[-MAX_HELD_ASIDE:]]
    whole = [id_bytes(message_id) for message_id in claim.whole_files[-MAX_WHOLE_FILES:]]
    let_go = [id_bytes(message_id) for message_id in claim.let_go_files[-MAX_WHOLE_FILES:]]
    kept: list[envelope_pb2.AuthorHoldings] = []
    size = (len(aside) + len(whole) + len(let_go)) * (ID_BYTES + 2) + _NUMBER_BYTES
    for instance_id, ranges in (claim.holdings or {}).items():
        if not ranges:
            continue
        author = _encode_author(instance_id, ranges[-MAX_RANGES_PER_AUTHOR:])
        size += author.ByteSize() + 3
        if len(kept) == MAX_AUTHORS or size > MAX_CLAIM_BYTES:
            break
        kept.append(author)
    kept.sort(key=lambda author: author.instance_id)
    claims = envelope_pb2.Claims(
        authors=kept,
        held_aside=aside,
        whole_files=whole,
        let_go_files=let_go,
        files_as_of=claim.files_as_of,
    )
    return claims.SerializeToString(deterministic=True)


def decode_claim(encoded: bytes) -> Claim | None:
    """Return None for an empty claim.  Raises RemoteProtocolError ``bad_holdings``."""
    if not encoded:
        return None
    if len(encoded) > MAX_CLAIM_BYTES:
        raise RemoteProtocolError("bad_holdings", "oversized")
    try:
        wire = envelope_pb2.Claims.FromString(encoded)
    except DecodeError as error:
        raise RemoteProtocolError("bad_holdings", "malformed") from error
    if (
        len(wire.authors) > MAX_AUTHORS
        or len(wire.held_aside) > MAX_HELD_ASIDE
        or len(wire.whole_files) > MAX_WHOLE_FILES
        or len(wire.let_go_files) > MAX_WHOLE_FILES
    ):
        raise RemoteProtocolError("bad_holdings", "too many")
    if wire.files_as_of > MAX_SAFE_INTEGER:
        raise RemoteProtocolError("bad_holdings", "files as of too late")
    holdings: Holdings = {}
    previous = b""
    for author in wire.authors:
        if len(author.instance_id) != INSTANCE_ID_BYTES or author.instance_id <= previous:
            raise RemoteProtocolError("bad_holdings", "authors do not ascend")
        previous = author.instance_id
        holdings[InstanceId(author.instance_id)] = _decode_ranges(author)
    lists = (wire.held_aside, wire.whole_files, wire.let_go_files)
    if any(len(each) != ID_BYTES for ids in lists for each in ids):
        raise RemoteProtocolError("bad_holdings", "an id of another length")
    aside, whole, let_go = (tuple(map(id_text, ids)) for ids in lists)
    return Claim(holdings, aside, whole, let_go, wire.files_as_of)


def _encode_author(
    instance_id: InstanceId, ranges: tuple[SequenceRange, ...]
) -> envelope_pb2.AuthorHoldings:
    author = envelope_pb2.AuthorHoldings(
        instance_id=instance_id, heads=b"".join(held.head for held in ranges)
    )
    bound = 0
    for held in ranges:
        author.ranges.extend((held.first - bound, held.last - held.first))
        bound = held.last
    return author


def _decode_ranges(author: envelope_pb2.AuthorHoldings) -> tuple[SequenceRange, ...]:
    distances, heads = list(author.ranges), author.heads
    if not distances or len(distances) % 2 or len(distances) > 2 * MAX_RANGES_PER_AUTHOR:
        raise RemoteProtocolError("bad_holdings", "ranges")
    if len(heads) != HEAD_BYTES * len(distances) // 2:
        raise RemoteProtocolError("bad_holdings", "heads")
    ranges: list[SequenceRange] = []
    bound = 0
    for distance, length in zip(distances[::2], distances[1::2], strict=True):
        if distance < (_LEAST_DISTANCE if ranges else 1):
            raise RemoteProtocolError("bad_holdings", "ranges touch")
        first, bound = bound + distance, bound + distance + length
        if bound > MAX_SAFE_INTEGER:
            raise RemoteProtocolError("bad_holdings", "sequence too large")
        at = HEAD_BYTES * len(ranges)
        ranges.append(SequenceRange(first=first, last=bound, head=heads[at : at + HEAD_BYTES]))
    return tuple(ranges)
