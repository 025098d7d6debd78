"""``proto/epochs.proto``: prekeys, wrapped epoch keys and earlier keys, bounded both ways.

Wraps for many people are cut into chunks under one commitment.  A chunk's records have one length
and ascend by recipient, so a receiver finds its own in a moment, and a chunk has one form.
``engine.crypto.epochs`` seals, opens and checks signatures.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from engine.codec.canonical import one_form
from engine.codec.message_id import ID_BYTES
from engine.codec.tuples import tuple_bytes
from engine.core.admin_log.acts import COMMITMENT_BYTES
from engine.core.content import MAX_SAFE_INTEGER
from engine.core.errors import RemoteProtocolError
from engine.core.ids import KEY_BYTES, SIGNATURE_BYTES
from engine.core.invite import EPOCH_KEY_BYTES
from proto import epochs_pb2

TAG_BYTES: Final = 4
HPKE_BYTES: Final = 48
"""What sealing adds: the sender's X25519 key for this once, and the tag of AES-GCM."""
SEALED_KEY_BYTES: Final = EPOCH_KEY_BYTES + HPKE_BYTES
MAX_RECORDS: Final = 500
MAX_EARLIER_KEYS: Final = 2_000
MAX_PREKEY_BYTES: Final = 256
_RECORD_BYTES: Final = ID_BYTES + TAG_BYTES + SEALED_KEY_BYTES
MAX_WRAPS_BYTES: Final = MAX_RECORDS * _RECORD_BYTES + 64
MAX_EARLIER_BYTES: Final = MAX_EARLIER_KEYS * EPOCH_KEY_BYTES + 128
_PREKEY_DOMAIN: Final = "causerie/2/prekey"
_M = TypeVar("_M", bound=Message)


class WrapRecord(NamedTuple):
    recipient: bytes
    tag: bytes
    sealed: bytes


class Wraps(NamedTuple):
    """A checked chunk."""

    commitment: bytes
    records: bytes

    def find(self, recipient: bytes) -> WrapRecord | None:
        packed = self.records
        count = len(packed) // _RECORD_BYTES
        at = bisect_left(range(count), recipient, key=lambda n: _recipient(packed, n))
        if at == count or _recipient(packed, at) != recipient:
            return None
        begin = at * _RECORD_BYTES + ID_BYTES
        middle = begin + TAG_BYTES
        return WrapRecord(
            recipient, packed[begin:middle], packed[middle : middle + SEALED_KEY_BYTES]
        )


class EarlierKeys(NamedTuple):
    recipient: bytes
    tag: bytes
    sealed: bytes


class PrekeyFrame(NamedTuple):
    """Before its signature is checked."""

    author_key: bytes
    number: int
    key: bytes
    signature: bytes


def encode_prekey(prekey: PrekeyFrame) -> bytes:
    return epochs_pb2.Prekey(
        author=prekey.author_key,
        number=prekey.number,
        key=prekey.key,
        signature=prekey.signature,
    ).SerializeToString(deterministic=True)


def decode_prekey(data: bytes) -> PrekeyFrame:
    """Raises RemoteProtocolError ``bad_prekey`` or ``not_canonical``."""
    wire = _parsed(epochs_pb2.Prekey, data, MAX_PREKEY_BYTES, "bad_prekey")
    lengths = len(wire.author), len(wire.key), len(wire.signature)
    if lengths != (KEY_BYTES, KEY_BYTES, SIGNATURE_BYTES):
        raise RemoteProtocolError("bad_prekey", "lengths")
    if not 1 <= wire.number <= MAX_SAFE_INTEGER:
        raise RemoteProtocolError("bad_prekey", "number")
    return PrekeyFrame(wire.author, wire.number, wire.key, wire.signature)


def signed_prekey(group_id: bytes, prekey: PrekeyFrame) -> bytes:
    return tuple_bytes(_PREKEY_DOMAIN, group_id, prekey.author_key, prekey.number, prekey.key)


def encode_wraps(commitment: bytes, records: Iterable[WrapRecord]) -> tuple[bytes, ...]:
    """As many chunks as it takes."""
    packed = [b"".join(record) for record in sorted(records)]
    return tuple(
        epochs_pb2.Wraps(
            commitment=commitment, records=b"".join(packed[at : at + MAX_RECORDS])
        ).SerializeToString(deterministic=True)
        for at in range(0, len(packed), MAX_RECORDS)
    )


def decode_wraps(data: bytes) -> Wraps:
    """Raises RemoteProtocolError ``bad_wraps`` or ``not_canonical``."""
    wire = _parsed(epochs_pb2.Wraps, data, MAX_WRAPS_BYTES, "bad_wraps")
    count, rest = divmod(len(wire.records), _RECORD_BYTES)
    if len(wire.commitment) != COMMITMENT_BYTES or rest or not 1 <= count <= MAX_RECORDS:
        raise RemoteProtocolError("bad_wraps", "lengths")
    recipients = [_recipient(wire.records, number) for number in range(count)]
    if any(one >= other for one, other in pairwise(recipients)):
        raise RemoteProtocolError("bad_wraps", "not ascending")
    return Wraps(wire.commitment, wire.records)


def encode_earlier_keys(keys: EarlierKeys) -> bytes:
    return epochs_pb2.EarlierKeys(
        recipient=keys.recipient, tag=keys.tag, sealed=keys.sealed
    ).SerializeToString(deterministic=True)


def decode_earlier_keys(data: bytes) -> EarlierKeys:
    """Raises RemoteProtocolError ``bad_earlier_keys`` or ``not_canonical``."""
    wire = _parsed(epochs_pb2.EarlierKeys, data, MAX_EARLIER_BYTES, "bad_earlier_keys")
    count, rest = divmod(len(wire.sealed) - HPKE_BYTES, EPOCH_KEY_BYTES)
    lengths = len(wire.recipient), len(wire.tag)
    if lengths != (ID_BYTES, TAG_BYTES) or rest or not 1 <= count <= MAX_EARLIER_KEYS:
        raise RemoteProtocolError("bad_earlier_keys", "lengths")
    return EarlierKeys(wire.recipient, wire.tag, wire.sealed)


def _recipient(packed: bytes, number: int) -> bytes:
    begin = number * _RECORD_BYTES
    return packed[begin : begin + ID_BYTES]


def _parsed(kind: type[_M], data: bytes, most: int, reason: str) -> _M:
    if len(data) > most:
        raise RemoteProtocolError(reason, "oversized")
    try:
        wire = kind.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError(reason, "malformed") from error
    if one_form(wire) != data:
        raise RemoteProtocolError("not_canonical", reason)
    return wire
