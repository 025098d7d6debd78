"""The log's older rows by message id, in about six bytes each.

A hash table of packed ids, which grows one bucket at a time (linear hashing, Litwin 1980), so that
no message pays for all the others.  A bucket holds some hundred rows and of each a tag, eight bits
of its hash: one C call finds the few rows that may be meant, and their ids in the log decide.

Nobody can choose ids that meet in one bucket, because the hash has a random key.  A table that a
store keeps between starts has a key of its own and hashes by multiply-shift (Dietzfelbinger et al.,
"A reliable randomized algorithm for the closest-pair problem", 1997); others use Python's hash of
bytes, whose key is new in each process.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, compress, pairwise
from typing import Final

from msgspec import Struct

from engine.core.ids import MessageId
from engine.core.packed_ids import pack_id

BUCKET_ROWS: Final = 192
"""On average.  More make a look-up slower, fewer cost more memory."""
_TAG_SHIFT: Final = 24
_TAG_MASK: Final = 0xFF
_HASH_SHIFT: Final = 64
"""The upper half of a product of two numbers of 128 bits depends on all bits of both."""


class Buckets(Struct, frozen=True, array_like=True):
    """Consecutive buckets as bytes: the rows in each, then the tags and rows of all."""

    counts: bytes
    tags: bytes
    rows: bytes


class RowsById:
    """Rows by id.  The ids themselves are kept by the caller."""

    __slots__ = (
        "_count",
        "_half",
        "_hash",
        "_packed_id_of",
        "_rows",
        "_split",
        "_tags",
        "_texts",
        "bucket_rows",
        "key",
    )

    def __init__(
        self,
        packed_id_of: Callable[[int], bytes],
        *,
        room: int = 0,
        bucket_rows: int = BUCKET_ROWS,
        key: int | None = None,
    ) -> None:
        """``packed_id_of`` yields a row's packed id.  ``room``: that many rows will be added.

        ``key``: 128 random bits, odd, if the table is kept between starts.
        """
        self._packed_id_of = packed_id_of
        self.bucket_rows = bucket_rows
        self._count = 0
        self.key = key
        self._hash: Callable[[bytes], int] = hash if key is None else partial(_keyed_hash, key)
        self._set_buckets(room // bucket_rows + 1)

    def _set_buckets(self, buckets: int) -> None:
        self._half = 1 << (buckets.bit_length() - 1)
        """A power of two: so many bits of the hash choose the bucket …"""
        self._split = buckets - self._half
        """… or one bit more, for the buckets before this one: they are split already."""
        self._tags = [bytearray() for _ in range(buckets)]
        self._rows = [array("I") for _ in range(buckets)]
        self._texts: dict[MessageId, int] = {}
        """Ids that cannot be packed."""

    def __len__(self) -> int:
        return self._count + len(self._texts)

    def find(self, message_id: MessageId) -> int | None:
        """The row with this id; None if there is none."""
        packed = pack_id(message_id)
        if packed is None:
            return self._texts.get(message_id)
        mixed = self._hash(packed)
        bucket = mixed & (self._half - 1)
        if bucket < self._split:
            bucket = mixed & (2 * self._half - 1)
        tags, tag = self._tags[bucket], mixed >> _TAG_SHIFT & _TAG_MASK
        index = tags.find(tag)
        while index >= 0:
            row = self._rows[bucket][index]
            if self._packed_id_of(row) == packed:
                return row
            index = tags.find(tag, index + 1)
        return None

    def add(self, ids: Iterable[bytes], rows: Sequence[int]) -> None:
        """Add rows whose packed ids are not here."""
        tags, buckets = self._tags, self._rows
        half, split = self._half, self._split
        low, high = half - 1, 2 * half - 1
        for row, mixed in zip(rows, map(self._hash, ids), strict=True):
            bucket = mixed & low
            if bucket < split:
                bucket = mixed & high
            tags[bucket].append(mixed >> _TAG_SHIFT & _TAG_MASK)
            buckets[bucket].append(row)
        self._count += len(rows)
        while self._count > self.bucket_rows * len(buckets):
            self._split_one()

    def add_text(self, message_id: MessageId, row: int) -> None:
        """Add a row whose id cannot be packed and is not here."""
        self._texts[message_id] = row

    def remove(self, message_id: MessageId) -> None:
        """Remove an id that is here."""
        row = self.find(message_id)
        if row is None:
            raise KeyError(message_id)
        if self._texts.pop(message_id, None) is not None:
            return
        mixed = self._hash(self._packed_id_of(row))
        bucket = mixed & (self._half - 1)
        if bucket < self._split:
            bucket = mixed & (2 * self._half - 1)
        index = self._rows[bucket].index(row)
        del self._rows[bucket][index], self._tags[bucket][index]
        self._count -= 1

    # --- all buckets ---

    def copy(self, packed_id_of: Callable[[int], bytes]) -> "RowsById":
        """The same rows in a table of its own."""
        other = RowsById(packed_id_of, bucket_rows=self.bucket_rows, key=self.key)
        other._count, other._half, other._split = self._count, self._half, self._split
        other._tags = [*map(bytearray, self._tags)]
        other._rows = [rows[:] for rows in self._rows]
        other._texts = dict(self._texts)
        return other

    def saved(self, together: int) -> list[Buckets]:
        """All packed rows, ``together`` buckets at a time."""
        starts = range(0, len(self._tags), together)
        return [self._buckets(slice(start, start + together)) for start in starts]

    def _buckets(self, some: slice) -> Buckets:
        tags, rows = self._tags[some], self._rows[some]
        counts = array("I", map(len, tags)).tobytes()
        return Buckets(counts, b"".join(tags), b"".join(row.tobytes() for row in rows))

    def restore(self, saved: Iterable[Buckets]) -> None:
        """Take over what ``saved`` returned.  Raises ValueError if it does not fit together."""
        all_tags: list[bytearray] = []
        all_rows: list[array[int]] = []
        for some in saved:
            counts, rows = array("I", some.counts), array("I", some.rows)
            ends = [*accumulate(counts, initial=0)]
            if not ends[-1] == len(rows) == len(some.tags):
                raise ValueError("the buckets of a saved index do not fit together")
            all_tags += [bytearray(some.tags[start:end]) for start, end in pairwise(ends)]
            all_rows += [rows[start:end] for start, end in pairwise(ends)]
        self._set_buckets(len(all_tags))
        self._tags, self._rows = all_tags, all_rows
        self._count = sum(map(len, all_tags))

    def _split_one(self) -> None:
        """Distribute the rows of the next bucket between it and a new one."""
        half, bucket = self._half, self._split
        rows, tags = self._rows[bucket], self._tags[bucket]
        self._split += 1
        if self._split == half:
            self._half, self._split = 2 * half, 0
        moves = [self._hash(packed) & half for packed in map(self._packed_id_of, rows)]
        self._rows.append(array("I", compress(rows, moves)))
        self._tags.append(bytearray(compress(tags, moves)))
        stays = [not moved for moved in moves]
        self._rows[bucket] = array("I", compress(rows, stays))
        self._tags[bucket] = bytearray(compress(tags, stays))


def _keyed_hash(key: int, packed: bytes) -> int:
    return int.from_bytes(packed) * key >> _HASH_SHIFT
