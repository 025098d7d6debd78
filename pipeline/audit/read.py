"""What is made of slices where they are read: rows with their cells, bounds, and digests."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.audit import digest
from pipeline.audit.grid import DIGEST, NO_SLICE
from pipeline.audit.layout import UNKNOWN, Ints, Layout, int64s
from pipeline.audit.slices import Slice, batches

BOUND: Final = pa.schema([("channel", pa.int64()), ("lamport", pa.int64())])
STRAY: Final = -1
"""Stands for the position of a message that the canonical log has not."""
_OF_ENTRY: Final = ("position", "lamport", "mid")
MOST_WAITING: Final = 2**18

# --- rows -----------------------------------------------------------------------------------------


def entries(one: Slice, layout: Layout) -> Iterator[tuple[Ints, Mapping[str, Ints]]]:
    """Cells of rows of known logs; and position, lamport and mid."""
    for batch in batches(one, ("channel", "participant", *_OF_ENTRY)):
        log = layout.logs_of(batch["channel"], batch["participant"])
        rows = {name: int64s(batch[name]) for name in _OF_ENTRY}
        if (log == UNKNOWN).any():
            is_known = log != UNKNOWN
            log, rows = log[is_known], {name: rows[name][is_known] for name in rows}
        yield layout.cells_of(log, rows["lamport"]), rows


def messages(one: Slice, layout: Layout, *columns: str) -> Iterator[tuple[Ints, pa.RecordBatch]]:
    """Cells, in canonical logs, of messages of channels that have logs; and the named columns."""
    for batch in batches(one, ("channel", "lamport", *columns)):
        channel = layout.channels_of(batch["channel"])
        known = batch
        if (channel == UNKNOWN).any():
            known, channel = batch.filter(pa.array(channel != UNKNOWN)), channel[channel != UNKNOWN]
        yield layout.cells_of(layout.canonical[channel], int64s(known["lamport"])), known


# --- bounds and digests ---------------------------------------------------------------------------


def bounds(
    found: Sequence[Slice], layout: Layout, bucket_messages: int
) -> Iterator[pa.RecordBatch]:
    """Lamport timestamps of canonical messages at which a bucket begins."""
    for one in found:
        for batch in batches(one, ("channel", "position", "lamport")):
            channel = layout.channels_of(batch["channel"])
            position = int64s(batch["position"], STRAY)
            is_first = (position != STRAY) & (position % bucket_messages == 0)
            is_first &= channel != UNKNOWN
            yield pa.RecordBatch.from_arrays(
                [pa.array(channel[is_first]), pa.array(int64s(batch["lamport"])[is_first])],
                schema=BOUND,
            )


def digests(found: Sequence[Slice], layout: Layout, key: int) -> Iterator[pa.RecordBatch]:
    """DIGEST, a row for each cell of each slice."""
    for one in found:
        read = _of_messages if one.is_message else _of_entries
        waiting: list[digest.Digests] = []
        rows = 0
        for part in read(one, layout, key):
            waiting.append(part)
            rows += len(part["cell"])
            if rows > MOST_WAITING:  # Rows in no order: not one run for each cell.
                waiting = [_combined(waiting)]
                rows = len(waiting[0]["cell"])
        if rows:
            yield _batch(_combined(waiting), layout, one.number)


def roll_call(numbers: Iterator[pa.RecordBatch], layout: Layout) -> Iterator[pa.RecordBatch]:
    """DIGEST of nothing for each channel: some have logs, and nothing in them."""
    for _ in numbers:
        cell = layout.first_cell[layout.canonical]
        yield _batch(digest.of_nothing(cell), layout, NO_SLICE)


def _of_entries(one: Slice, layout: Layout, key: int) -> Iterator[digest.Digests]:
    for cell, rows in entries(one, layout):
        yield digest.digests(cell, rows["position"], rows["lamport"], rows["mid"], key)


def _of_messages(one: Slice, layout: Layout, key: int) -> Iterator[digest.Digests]:
    """Strays count for nothing, but they are there and may have to be looked at."""
    for cell, batch in messages(one, layout, "position", "mid"):
        position = int64s(batch["position"], STRAY)
        own = np.flatnonzero(position != STRAY)
        lamport, mid = (int64s(batch[name])[own] for name in ("lamport", "mid"))
        yield digest.digests(cell[own], position[own], lamport, mid, key)
        if len(own) < len(cell):
            yield digest.of_nothing(np.unique(cell[position == STRAY]))


def _combined(parts: Sequence[digest.Digests]) -> dict[str, Ints]:
    names = ("cell", *digest.NUMBERS)
    return digest.combined({name: np.concatenate([one[name] for one in parts]) for name in names})


def _batch(found: digest.Digests, layout: Layout, number: int) -> pa.RecordBatch:
    cell = found["cell"]
    columns = {
        **found,
        "channel": layout.channel_of[layout.log_of(cell)],
        "slice": np.full(len(cell), number, np.int64),
    }
    return pa.RecordBatch.from_arrays([pa.array(columns[n]) for n in DIGEST.names], schema=DIGEST)
