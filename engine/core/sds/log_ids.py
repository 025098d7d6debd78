"""The log's older rows by message id, in about six bytes each.

A hash table of packed ids, which grows one bucket at a time (linear hashing, Litwin 1980), so that
no message pays for all the others.  A bucket holds some hundred rows and of each a tag, eight bits
of its hash: one C call finds the few rows that may be meant, and their ids in the log decide.  The
hash is Python's, whose key is random, so nobody can choose ids that meet in one bucket.
"""

from array import array
from collections.abc import Callable, Sequence
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
        bucket = self._bucket(mixed)
        index = self._index(bucket, mixed, packed)
        return None if index < 0 else self._rows[bucket][index]

    def add(self, message_id: MessageId, row: int) -> None:
        """Add a row whose id is not here."""
        packed = pack_id(message_id)
        if packed is None:
            self._texts[message_id] = row
        else:
            self.add_packed((packed,), row)

    def add_packed(self, ids: Sequence[bytes], first_row: int) -> None:
        """Add consecutive rows whose ids are not here."""
        tags, rows = self._tags, self._rows
        half, split = self._half, self._split
        for row, mixed in enumerate(map(hash, ids), first_row):
            bucket = mixed & (half - 1)
            if bucket < split:
                bucket = mixed & (2 * half - 1)
            tags[bucket].append(mixed >> _TAG_SHIFT & _TAG_MASK)
            rows[bucket].append(row)
        self._count += len(ids)
        while self._count > self._bucket_rows * len(rows):
            self._split_one()

    def remove(self, message_id: MessageId) -> int:
        """Remove an id that is here; returns its row."""
        packed = pack_id(message_id)
        if packed is None:
            return self._texts.pop(message_id)
        mixed = hash(packed)
        bucket = self._bucket(mixed)
        index = self._index(bucket, mixed, packed)
        if index < 0:
            raise KeyError(message_id)
        del self._tags[bucket][index]
        self._count -= 1
        return self._rows[bucket].pop(index)

    def _bucket(self, mixed: int) -> int:
        bucket = mixed & (self._half - 1)
        return mixed & (2 * self._half - 1) if bucket < self._split else bucket

    def _index(self, bucket: int, mixed: int, packed: bytes) -> int:
        """Where in its bucket an id is; less than 0 if it is not there."""
        tags, rows, tag = self._tags[bucket], self._rows[bucket], mixed >> _TAG_SHIFT & _TAG_MASK
        index = tags.find(tag)
        while index >= 0 and self._packed_id_of(rows[index]) != packed:
            index = tags.find(tag, index + 1)
        return index

    def _split_one(self) -> None:
        """Distribute the rows of the next bucket between it and a new one."""
        half, bucket = self._half, self._split
        moving = self._rows[bucket]
        self._split += 1
        if self._split == half:
            self._half, self._split = 2 * half, 0
        tags, rows = (bytearray(), bytearray()), (array("I"), array("I"))
        for row in moving:
            mixed = hash(self._packed_id_of(row))
            side = bool(mixed & half)
            tags[side].append(mixed >> _TAG_SHIFT & _TAG_MASK)
            rows[side].append(row)
        self._tags[bucket], self._rows[bucket] = tags[0], rows[0]
        self._tags.append(tags[1])
        self._rows.append(rows[1])
