"""Node records → values: EIP-778 with Waku's keys (31/WAKU2-ENR, 51/WAKU2-RELAY-SHARDING).

A record is an RLP list of a signature, a number and key/value pairs, of 300 bytes at most.  Read
are the key, the addresses and the shards; every other pair is read over.

The signature is checked, under the identity scheme "v4": ECDSA by the record's own key over the
Keccak-256 of everything behind the signature.  That says who wrote the record and nothing more, for
anybody can make keys: it stays a hint where to dial, and whoever answers there proves the key by
Noise.  But nobody can send dialers to a wrong place in somebody else's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.core.errors import RemoteProtocolError
from engine.crypto.keccak import keccak256
from engine.network.libp2p.keys import KeyType, PublicKey

MAX_ENR_BYTES: Final = 300
_SECP256K1_BYTES: Final = 33
_SHORT_LIMIT: Final = 55
_MAX_SHARDS: Final = 64
_BIT_VECTOR_BYTES: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """``public_key`` is a compressed secp256k1 point; ``multiaddrs`` are binary multiaddrs."""

    public_key: bytes
    ip4: bytes | None = None
    tcp4: int | None = None
    ip6: bytes | None = None
    tcp6: int | None = None
    multiaddrs: tuple[bytes, ...] = ()
    cluster_id: int | None = None
    shards: tuple[int, ...] = ()


def decode_enr(data: bytes) -> NodeRecord:
    """Raises RemoteProtocolError, for example ``enr_malformed``, ``identity_bad_signature``."""
    if len(data) > MAX_ENR_BYTES:
        raise RemoteProtocolError("enr_oversized")
    signature, signed, items = _signed_parts(data)
    pairs = _pairs(items)
    if pairs.get(b"id") != b"v4":
        raise RemoteProtocolError("enr_unknown_scheme")
    public_key = pairs.get(b"secp256k1", b"")
    if len(public_key) != _SECP256K1_BYTES:
        raise RemoteProtocolError("enr_without_key")
    key = PublicKey(key_type=KeyType.SECP256K1, data=public_key)
    key.verify_digest(signature, keccak256(signed))
    cluster_id, shards = _shards(pairs)
    return NodeRecord(
        public_key=public_key,
        ip4=_sized(pairs.get(b"ip"), 4),
        tcp4=_port(pairs.get(b"tcp")),
        ip6=_sized(pairs.get(b"ip6"), 16),
        tcp6=_port(pairs.get(b"tcp6")),
        multiaddrs=_prefixed(pairs.get(b"multiaddrs", b"")),
        cluster_id=cluster_id,
        shards=shards,
    )


# --- RLP ----------------------------------------------------------------------------------------


def _signed_parts(data: bytes) -> tuple[bytes, bytes, list[bytes]]:
    """The signature, what was signed, and the items of that: a number, then the pairs.

    Signed is a list of the items as they stand here, only without the signature.
    """
    content, end, is_list = _item(data, 0)
    if not is_list or end != len(data):
        raise RemoteProtocolError("enr_malformed")
    signature, start, nested = _item(content, 0)
    if nested:
        raise RemoteProtocolError("enr_malformed")
    items: list[bytes] = []
    offset = start
    while offset < len(content):
        item, offset, nested = _item(content, offset)
        items.append(b"" if nested else item)
    return signature, _list_head(len(content) - start) + content[start:], items


def _pairs(items: list[bytes]) -> Mapping[bytes, bytes]:
    if len(items) % 2 != 1:  # the number is alone
        raise RemoteProtocolError("enr_malformed")
    keys = items[1::2]
    if keys != sorted(set(keys)):
        raise RemoteProtocolError("enr_keys_unsorted")
    return dict(zip(keys, items[2::2], strict=True))


def _list_head(length: int) -> bytes:
    if length <= _SHORT_LIMIT:
        return bytes([0xC0 + length])
    size = length.to_bytes(2, "big").lstrip(b"\0")
    return bytes([0xC0 + _SHORT_LIMIT + len(size)]) + size


def _item(data: bytes, offset: int) -> tuple[bytes, int, bool]:
    """Content, where it ends, and whether it is a list."""
    if offset >= len(data):
        raise RemoteProtocolError("enr_malformed")
    first = data[offset]
    if first < 0x80:  # noqa: PLR2004 - RLP: a byte for itself
        return data[offset : offset + 1], offset + 1, False
    is_list = first >= 0xC0  # noqa: PLR2004 - RLP: lists
    length = first - (0xC0 if is_list else 0x80)
    start = offset + 1
    if length > _SHORT_LIMIT:
        count = length - _SHORT_LIMIT
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    if start + length > len(data):
        raise RemoteProtocolError("enr_malformed")
    return data[start : start + length], start + length, is_list


# --- values -------------------------------------------------------------------------------------


def _sized(value: bytes | None, size: int) -> bytes | None:
    return value if value is not None and len(value) == size else None


def _port(value: bytes | None) -> int | None:
    if not value or len(value) > 2:  # noqa: PLR2004 - bytes of a port
        return None
    return int.from_bytes(value, "big") or None


def _prefixed(value: bytes) -> tuple[bytes, ...]:
    """Each behind its size in two bytes; what is cut off at the end is left out."""
    found: list[bytes] = []
    while len(value) > 2:  # noqa: PLR2004 - bytes of a size
        size = int.from_bytes(value[:2], "big")
        if size == 0 or len(value) < 2 + size:
            break
        found.append(value[2 : 2 + size])
        value = value[2 + size :]
    return tuple(found)


def _shards(pairs: Mapping[bytes, bytes]) -> tuple[int | None, tuple[int, ...]]:
    """``rs`` lists up to 64 shards, ``rsv`` is a bit for each of 1 024."""
    listed = pairs.get(b"rs")
    if listed is not None and len(listed) > 2:  # noqa: PLR2004 - after the cluster, the count
        numbers = [int.from_bytes(listed[at : at + 2], "big") for at in range(3, len(listed), 2)]
        if listed[2] == len(numbers) <= _MAX_SHARDS and len(listed) % 2:
            return int.from_bytes(listed[:2], "big"), tuple(sorted(set(numbers)))
    vector = pairs.get(b"rsv")
    if vector is not None and len(vector) == 2 + _BIT_VECTOR_BYTES:
        bits = vector[2:]
        shards = (n for n in range(8 * _BIT_VECTOR_BYTES) if bits[n // 8] >> (n % 8) & 1)
        return int.from_bytes(vector[:2], "big"), tuple(shards)
    return None, ()
