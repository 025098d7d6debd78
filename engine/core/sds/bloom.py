"""The bloom filter over received message ids, in js-waku's layout.

This is participant state of the specification: one filter per channel, rolled over at a capacity. k
= 10.  Bit h is bit h % 64 of word h // 64, and each 64-bit word is big-endian; so in bytes it is
bit h % 8 of byte (h // 8) xor 7.  A filter of 18 752 bytes has 150 000 bits (js-waku's only size);
any other multiple of 8 bytes has 8 bits per byte.

A positive is never proof.  This module knows no channels or holders.
"""

from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import repeat
from typing import Final

import mmh3

from engine.core.errors import RemoteProtocolError
from engine.core.ids import MessageId
from engine.core.sds.js_hash import js_hash

HASHES: Final = 10
JS_BYTES: Final = 18_752
JS_BITS: Final = 150_000
BITS_PER_ID: Final = 14.4
"""m / n for an error of 0.001."""
_SMALLEST_CAPACITY: Final = 16
_ROUNDS: Final = range(HASHES)
_BIT: Final = tuple(1 << bit for bit in range(8))
_IN_WORD: Final = 56
"""A big-endian word has its bytes in reverse: bit h of the array is bit h xor 56 of the number that
the array forms, read little-endian."""
_ONE_NUMBER: Final = 4_096
"""Filters of up to this many bits, as in sealed channels, are one number: adding an id is one
*or*."""


def bits_of(length: int) -> int:
    """Number of bits (m) of a filter of ``length`` bytes."""
    return JS_BITS if length == JS_BYTES else 8 * length


@lru_cache(maxsize=1_024)
def base_hashes(message_id: str) -> tuple[int, int]:
    """A and B before the reduction modulo m."""
    other = message_id + " b"
    if message_id.isascii():  # What ``js_hash`` does, without asking twice.
        return abs(mmh3.hash(message_id)), abs(mmh3.hash(other))
    return abs(js_hash(message_id)), abs(js_hash(other))


def positions(hashes: tuple[int, int], bits: int) -> tuple[int, ...]:
    """The ten bit positions (A + i·B) mod m."""
    first, step = hashes[0] % bits, hashes[1] % bits
    return tuple((first + index * step) % bits for index in range(HASHES))


@lru_cache(maxsize=256)
def _mask(message_id: MessageId, bits: int) -> int:
    """The ten bits as one number; cached, because a rollover asks again."""
    first, second = base_hashes(message_id)
    first, step = first % bits, second % bits
    mask = 0
    for at in range(first, first + HASHES * step, step) if step else (first,):
        mask |= 1 << (at % bits ^ _IN_WORD)
    return mask


def false_positive_rate(filter_bytes: bytes) -> float:
    """The probability that an id never added is reported, from the filter's fill."""
    return fill_of(filter_bytes) ** HASHES


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
        data, bits = self._data, self._bits
        at, step = hashes[0] % bits, hashes[1] % bits
        for _ in _ROUNDS:
            if not data[(at >> 3) ^ 7] & _BIT[at & 7]:
                return False
            at += step
            if at >= bits:
                at -= bits
        return True


class BloomFilter:
    """Our own filter: it grows up to its capacity, then needs a rollover.

    ``fixed``: always js-waku's size.  ``add`` returns whether the filter is past its size.  Then
    the owner calls ``rebuild`` with the ids to hold from now on (at most half the capacity, or all
    if there are fewer), which keeps the work per added id constant on average.
    """

    __slots__ = ("_bits", "_data", "_number", "capacity", "count", "fixed", "room")

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
        self._number = 0
        self._data = bytearray(size if self._bits > _ONE_NUMBER else 0)
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
        bits = self._bits
        if bits <= _ONE_NUMBER:
            number = self._number
            for mask in map(_mask, ids, repeat(bits)):
                number |= mask
            self._number = number
        else:
            data = self._data
            for first, second in map(base_hashes, ids):
                at, step = first % bits, second % bits
                for _ in _ROUNDS:  # Like ``positions``, without a tuple.
                    data[(at >> 3) ^ 7] |= _BIT[at & 7]
                    at += step
                    if at >= bits:
                        at -= bits
        self.count += len(ids)

    def to_bytes(self) -> bytes:
        """As on the wire."""
        if self._data:
            return bytes(self._data)
        return self._number.to_bytes(self._bits >> 3, "little")

    __bytes__ = to_bytes
