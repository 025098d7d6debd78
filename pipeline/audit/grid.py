"""Of each bucket of each log: whether it is equal to the canonical one, or has to be looked at.

A channel is a matrix, a row for each of its logs and a column for each bucket; its first row is the
canonical log.  The **shift** of a bucket is not guessed: in a log in order it begins after as many
entries as all buckets before it hold.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.audit import digest
from pipeline.audit.layout import HIGHEST, Bools, Ints, Layout, int64s

DIGEST: Final = pa.schema(
    [(name, pa.int64()) for name in ("channel", "cell", "slice", *digest.NUMBERS)]
)
"""A part of a cell's digest: of the rows of one slice."""
NO_SLICE: Final = -1
"""Not read anywhere."""
CELL: Final = pa.schema(
    [
        ("channel", pa.int64()),
        ("cell", pa.int64()),
        ("n", pa.int64()),
        ("c_n", pa.int64()),
        ("begin", pa.int64()),
        ("shift", pa.int64()),
        ("is_equal", pa.bool_()),
        ("is_flagged", pa.bool_()),
        ("slices", pa.list_(pa.int64())),
    ]
)
"""``begin``: at which position the bucket has to begin in this log; ``shift``: how far that is from
the canonical one; ``slices``: of what is flagged, where its rows are.  Of a canonical log there is
what some log's flagged cell is compared with."""


def compared(parts: Iterator[pa.RecordBatch], layout: Layout) -> Iterator[pa.RecordBatch]:
    """DIGEST of whole channels -> CELL."""
    table = pa.Table.from_batches(parts, DIGEST)
    if not table.num_rows:
        return
    columns = {name: int64s(table[name]) for name in DIGEST.names}
    found = digest.combined(columns)
    places = _Places(columns["cell"], columns["slice"])
    for channel in np.unique(columns["channel"]).tolist():
        yield _of_channel(channel, found, layout, places)


class _Places:
    """In which slices rows of each cell are."""

    def __init__(self, cell: Ints, number: Ints) -> None:
        is_there = number != NO_SLICE
        order = np.argsort(cell[is_there], kind="stable")
        self._cell, self._number = cell[is_there][order], number[is_there][order]

    def of(self, cell: Ints, is_wanted: Bools) -> pa.ListArray:
        """Lists, empty where nothing is wanted."""
        low = np.searchsorted(self._cell, cell, side="left")
        high = np.searchsorted(self._cell, cell, side="right")
        lengths = np.where(is_wanted, high - low, 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        at = np.repeat(low - offsets[:-1], lengths) + np.arange(offsets[-1])
        return pa.ListArray.from_arrays(offsets.astype(np.int32), self._number[at])


def _of_channel(
    channel: int, found: digest.Digests, layout: Layout, places: _Places
) -> pa.RecordBatch:
    first, end = layout.first_log[channel : channel + 2].tolist()
    width = int(layout.widths[channel])
    low, high = layout.first_cell[[first, end]].tolist()
    at = slice(*np.searchsorted(found["cell"], [low, high]).tolist())
    here = digest.of_nothing(np.arange(low, high, dtype=np.int64))
    for name in digest.NUMBERS:
        here[name][found["cell"][at] - low] = found[name][at]
    matrix = {name: here[name].reshape(end - first, width) for name in digest.NUMBERS}
    logs = {name: rows[1:] for name, rows in matrix.items()}
    canonical = {name: rows[0] for name, rows in matrix.items()}
    begin = np.cumsum(logs["n"], axis=1) - logs["n"]
    shift = np.where(canonical["n"] > 0, begin - canonical["start"], 0)
    is_equal = _is_equal(logs, canonical, begin, shift)
    may_lack = (logs["n"] == 0) & _is_optional(layout, channel, canonical["n"])
    is_flagged = ~is_equal & ~may_lack
    is_compared = np.flatnonzero(is_flagged.any(axis=0))
    cell = np.concatenate([np.arange(low + width, high), low + is_compared])
    asked = len(is_compared)
    flags = np.concatenate([is_flagged.ravel(), np.ones(asked, np.bool_)])

    def column(values: Ints | Bools) -> Ints | Bools:
        """And nothing of the canonical log."""
        return np.concatenate([values.ravel(), np.zeros(asked, values.dtype)])

    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(len(cell), channel, np.int64)),
            pa.array(cell),
            pa.array(column(logs["n"])),
            pa.array(column(np.broadcast_to(canonical["n"], begin.shape))),
            pa.array(column(begin)),
            pa.array(column(shift)),
            pa.array(column(is_equal)),
            pa.array(flags),
            places.of(cell, flags),
        ],
        schema=CELL,
    )


def _is_equal(logs: digest.Digests, canonical: digest.Digests, begin: Ints, shift: Ints) -> Bools:
    """Never where the canonical log has nothing."""
    same: Bools = (canonical["n"] > 0) & (logs["start"] == begin)
    for name in ("n", "x", "keyed_x", "s", "t"):
        same &= logs[name] == canonical[name]
    for s, d, prime in digest.SUMS:
        same &= logs[d] == (shift % prime * canonical[s] + canonical[d]) % prime
    return same


def _is_optional(layout: Layout, channel: int, canonical_n: Ints) -> Bools:
    """No message of the bucket has to be in the log: it lies before the joining or after leaving.

    The newest bucket has no end, the oldest no beginning.
    """
    bounds = layout.bounds[channel]
    first, end = layout.first_log[channel : channel + 2].tolist()
    whose = slice(first + 1, end)
    since, until = layout.since[whose, None], layout.until[whose, None]
    is_out = np.zeros((since.shape[0], len(bounds) + 1), np.bool_)
    is_out[:, :-1] |= bounds[None, :] <= since
    is_out[:, 1:] |= (bounds[None, :] >= until) & (until != HIGHEST)
    is_out |= ~layout.is_member[whose, None]
    is_out |= canonical_n[None, :] == 0
    return is_out
