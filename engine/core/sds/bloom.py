"""The bloom filter over received message ids, in js-waku's layout.

This is participant state of the specification: one filter per channel, rolled over at a capacity. k
= 10.  Bit h is bit h % 64 of word h // 64, and each 64-bit word is big-endian; so in bytes it is
bit h % 8 of byte (h // 8) xor 7.  A filter of 18 752 bytes has 150 000 bits (js-waku's only size);
any other multiple of 8 bytes has 8 bits per byte.

A positive is never proof.  This module knows no channels or holders.
"""

from collections.abc import Collection, Iterable
from typing import Final

from engine.core.errors import RemoteProtocolError
from engine.core.ids import MessageId
from engine.core.sds.js_hash import js_hash

HASHES: Final = 10
JS_BYTES: Final = 18_752
JS_BITS: Final = 150_000
BITS_PER_ID: Final = 14.4
"""m / n for an error of 0.001."""
_SMALLEST_CAPACITY: Final = 16


def bits_of(length: int) -> int:
    """Number of bits (m) of a filter of ``length`` bytes."""
    return JS_BITS if length == JS_BYTES else 8 * length


def base_hashes(message_id: str) -> tuple[int, int]:
    """A and B before the reduction modulo m."""
    return abs(js_hash(message_id)), abs(js_hash(message_id + " b"))


def positions(hashes: tuple[int, int], bits: int) -> tuple[int, ...]:
    """The ten bit positions (A + i·B) mod m."""
    first, step = hashes[0] % bits, hashes[1] % bits
    return tuple((first + index * step) % bits for index in range(HASHES))


def fill_of(filter_bytes: bytes) -> float:
    """The share of bits that are set."""
    return int.from_bytes(filter_bytes, "big").bit_count() / bits_of(len(filter_bytes))


class ReceivedBloom:
    """Another member's filter: read, never changed."""

    __slots__ = ("_bits", "_data")

    def __init__(self, data: bytes) -> None:
        """Raises RemoteProtocolError ``bloom_bad_length``: empty or no multiple of 8 bytes."""
        if not data or len(data) % 8:
            raise RemoteProtocolError("bloom_bad_length")
        self._data = data
        self._bits = bits_of(len(data))

    @property
    def fill(self) -> float:
        return fill_of(self._data)

    def may_contain(self, hashes: tuple[int, int]) -> bool:
        """Whether the filter may contain the id with these ``base_hashes``."""
        first, step = hashes[0] % self._bits, hashes[1] % self._bits
        for index in range(HASHES):  # Like ``positions``, but most ids fail the first bits.
            at = (first + index * step) % self._bits
            if not self._data[(at >> 3) ^ 7] & 1 << (at & 7):
                return False
        return True


class BloomFilter:
    """Our own filter: it grows up to its capacity, then needs a rollover.

    ``fixed``: always js-waku's size.  ``add`` returns whether the filter is past its size.  Then
    the owner calls ``rebuild`` with the ids to hold from now on (at most half the capacity, or all
    if there are fewer), which keeps the work per added id constant on average.
    """

    __slots__ = ("_bits", "_data", "capacity", "count", "fixed", "room")

    def __init__(self, *, capacity: int, fixed: bool) -> None:
        self.capacity = capacity
        self.fixed = fixed
        self.rebuild(())

    def rebuild(self, ids: Iterable[MessageId], *, rolled_over: bool = False) -> None:
        """Start over with these ids, in the smallest size that has room for them.

        ``rolled_over``: there were more ids before, so use the size of the capacity.
        """
        wanted = list(ids)
        room = self.capacity if rolled_over else min(_SMALLEST_CAPACITY, self.capacity)
        while room < min(len(wanted), self.capacity):
            room = min(2 * room, self.capacity)
        self.room = self.capacity if self.fixed else room
        words = -int(-self.room * BITS_PER_ID // 64)
        size = JS_BYTES if self.fixed else 8 * words
        self._bits = bits_of(size)
        self._data = bytearray(size)
        self.count = 0
        self.include(wanted)

    def add(self, message_id: MessageId) -> bool:
        """Include an id; True if the filter is then past its size: rebuild."""
        self.include((message_id,))
        return self.count > self.room

    def kept_of(self, total: int) -> int:
        """How many of the newest ids the filter holds once ``total`` were added."""
        if total <= self.capacity:
            return total
        half = self.capacity // 2
        return half + (total - self.capacity - 1) % (self.capacity - half + 1)

    def include(self, ids: Collection[MessageId]) -> None:
        """Include ids for which there is room."""
        for message_id in ids:
            for at in positions(base_hashes(message_id), self._bits):
                self._data[(at >> 3) ^ 7] |= 1 << (at & 7)
        self.count += len(ids)

    def to_bytes(self) -> bytes:
        """As on the wire."""
        return bytes(self._data)

    __bytes__ = to_bytes
