"""The log's older rows by message id, in about six bytes each.

A hash table of packed ids, which grows one bucket at a time (linear hashing, Litwin 1980), so that
no message pays for all the others.  A bucket holds some hundred rows and of each a tag, eight bits
of its hash: one C call finds the few rows that may be meant, and their ids in the log decide.  The
hash is Python's, whose key is random, so nobody can choose ids that meet in one bucket.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Final

from engine.core.ids import MessageId
from engine.core.packed_ids import pack_id

BUCKET_ROWS: Final = 192
"""On average.  More make a look-up slower, fewer cost more memory."""
_TAG_SHIFT: Final = 24
_TAG_MASK: Final = 0xFF


class RowsById:
    """Rows by id; whoever adds them keeps the ids."""

    __slots__ = (
        "_bucket_rows",
        "_count",
        "_half",
        "_packed_id_of",
        "_rows",
        "_split",
        "_tags",
        "_texts",
    )

    def __init__(
        self,
        packed_id_of: Callable[[int], bytes],
        *,
        room: int = 0,
        bucket_rows: int = BUCKET_ROWS,
    ) -> None:
        """``packed_id_of`` yields a row's packed id.  ``room``: that many rows will be added."""
        self._packed_id_of = packed_id_of
        self._bucket_rows = bucket_rows
        self._count = 0
        buckets = room // bucket_rows + 1
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
        mixed = hash(packed)
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
        for row, mixed in zip(rows, map(hash, ids), strict=True):
            bucket = mixed & low
            if bucket < split:
                bucket = mixed & high
            tags[bucket].append(mixed >> _TAG_SHIFT & _TAG_MASK)
            buckets[bucket].append(row)
        self._count += len(rows)
        while self._count > self._bucket_rows * len(buckets):
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
        mixed = hash(self._packed_id_of(row))
        bucket = mixed & (self._half - 1)
        if bucket < self._split:
            bucket = mixed & (2 * self._half - 1)
        index = self._rows[bucket].index(row)
        del self._rows[bucket][index], self._tags[bucket][index]
        self._count -= 1

    def _split_one(self) -> None:
        """Distribute the rows of the next bucket between it and a new one."""
        half, bucket = self._half, self._split
        rows, tags = self._rows[bucket], self._tags[bucket]
        self._split += 1
        if self._split == half:
            self._half, self._split = 2 * half, 0
        moves = [hash(packed) & half for packed in map(self._packed_id_of, rows)]
        self._rows.append(array("I", compress(rows, moves)))
        self._tags.append(bytearray(compress(tags, moves)))
        stays = [not moved for moved in moves]
        self._rows[bucket] = array("I", compress(rows, stays))
        self._tags[bucket] = bytearray(compress(tags, stays))
