"""Where digests differ: exactly which messages, row by row, in the flagged cells alone.

``missing``: a canonical message that has to be in this log and is not.  ``extra``: an entry that is
not canonical, or a second one of the same message.  ``reordered``: an entry that does not stand
where the order of what this log holds puts it.  An entry outside the flagged cells stands where it
should, so its position is known without looking at it: the canonical one and the cell's shift.

Flagged cells are sent to the slices that hold their rows, and those rows to the **spot**, the
bucket of a channel, where all logs' entries meet the messages that they are compared with.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.audit import read
from pipeline.audit.grid import NO_SLICE
from pipeline.audit.layout import HIGHEST, Bools, Ints, Layout, int64s, run_starts, runs
from pipeline.audit.slices import Slice

MISSING: Final = "missing"
EXTRA: Final = "extra"
REORDERED: Final = "reordered"
ROUTE: Final = pa.schema(
    [("hand", pa.int32()), *((name, pa.int64()) for name in ("slice", "cell", "begin"))]
)
"""Where to read a flagged cell's rows; or, with a ``slice`` below 0, that it is to be looked at.
``hand``: who reads it."""
FLAG, ENTRY, OF_MESSAGE = range(3)
SPOT: Final = pa.schema(
    [
        ("what", pa.int64()),
        ("spot", pa.int64()),
        ("cell", pa.int64()),
        ("begin", pa.int64()),
        ("lamport", pa.int64()),
        ("mid", pa.int64()),
        ("position", pa.int64()),
        ("place", pa.int64()),
        ("message_id", pa.string()),
    ]
)
"""FLAG: a flagged cell, and its ``begin``.  ENTRY: a row of it, OF_MESSAGE: one of the spot's
messages, where ``position`` is the canonical one or null."""
LOOKED: Final = pa.schema(
    [
        ("channel", pa.int64()),
        ("log", pa.int64()),
        ("bucket", pa.int64()),
        ("lamport", pa.int64()),
        ("mid", pa.int64()),
        ("position", pa.int64()),
        ("expected_position", pa.int64()),
        ("place", pa.int64()),
        ("message_id", pa.string()),
        ("copy", pa.int64()),
        ("is_missing", pa.bool_()),
        ("is_extra", pa.bool_()),
        ("is_moved", pa.bool_()),
    ]
)
"""Entries of flagged cells, and what is missing there (``position`` is null).  ``place`` is null of
what nobody knows, ``message_id`` of what is as it should be."""
_NONE: Final = HIGHEST
"""Stands for null, which comes last."""
ROWS_TOGETHER: Final = 2**19
"""A log may hold nothing where it should hold all: rows at a spot are not as many as on disk."""
Columns: TypeAlias = Mapping[str, Ints]
Hands: TypeAlias = npt.NDArray[np.int32]


def routes(
    cells: Iterator[pa.RecordBatch], layout: Layout, hand_of: Hands, hands: int
) -> Iterator[pa.RecordBatch]:
    """CELL -> ROUTE.  ``hand_of``: each slice's."""
    for batch in cells:
        flagged = batch.filter(batch["is_flagged"])
        if not flagged.num_rows:
            continue
        cell, begin = int64s(flagged["cell"]), int64s(flagged["begin"])
        lists: pa.ListArray = flagged["slices"]
        lengths, number = int64s(pc.list_value_length(lists)), int64s(lists.flatten())
        is_log = ~np.isin(layout.log_of(cell), layout.canonical)
        nowhere = np.full(int(is_log.sum()), NO_SLICE, np.int64)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(
                    np.concatenate([hand_of[number], (cell[is_log] % hands).astype(np.int32)])
                ),
                pa.array(np.concatenate([number, nowhere])),
                pa.array(np.concatenate([np.repeat(cell, lengths), cell[is_log]])),
                pa.array(np.concatenate([np.repeat(begin, lengths), begin[is_log]])),
            ],
            schema=ROUTE,
        )


def rows_there(
    wanted: Iterator[pa.RecordBatch], layout: Layout, found: Sequence[Slice]
) -> Iterator[pa.RecordBatch]:
    """ROUTE of a hand -> SPOT."""
    table = pa.Table.from_batches(wanted, ROUTE).sort_by("slice")
    if not table.num_rows:
        return
    number, cell = int64s(table["slice"]), int64s(table["cell"])
    at = int(np.searchsorted(number, 0))
    yield _spot(layout, FLAG, cell[:at], begin=int64s(table["begin"])[:at])
    is_wanted = np.zeros(layout.cells, np.bool_)
    for one in np.unique(number[at:]).tolist():
        here = cell[slice(*np.searchsorted(number, [one, one + 1]).tolist())]
        is_wanted[here] = True
        rows_of = _messages_of if found[one].is_message else _entries_of
        yield from rows_of(found[one], layout, is_wanted)
        is_wanted[here] = False


def _entries_of(one: Slice, layout: Layout, is_wanted: Bools) -> Iterator[pa.RecordBatch]:
    for cell, rows in read.entries(one, layout):
        at = np.flatnonzero(is_wanted[cell])
        if len(at):
            given = {name: rows[name][at] for name in rows}
            yield _spot(layout, ENTRY, cell[at], **given)


def _messages_of(one: Slice, layout: Layout, is_wanted: Bools) -> Iterator[pa.RecordBatch]:
    columns = ("position", "mid", "place", "message_id")
    for cell, batch in read.messages(one, layout, *columns):
        at = np.flatnonzero(is_wanted[cell])
        if len(at):
            rows = batch.take(pa.array(at))
            given = {name: rows[name] for name in ("lamport", *columns)}
            yield _spot(layout, OF_MESSAGE, cell[at], **given)


def _spot(layout: Layout, what: int, cell: Ints, **columns: Ints | pa.Array) -> pa.RecordBatch:
    given = {
        "what": np.full(len(cell), what, np.int64),
        "spot": layout.spot_of(cell),
        "cell": cell,
        **columns,
    }
    arrays = [
        pa.array(given[field.name], field.type)
        if field.name in given
        else pa.nulls(len(cell), field.type)
        for field in SPOT
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SPOT)


# --- at the spot ----------------------------------------------------------------------------------


def looked_at(parts: Iterator[pa.RecordBatch], layout: Layout) -> Iterator[pa.RecordBatch]:
    """SPOT of whole spots -> LOOKED."""
    table = pa.Table.from_batches(parts, SPOT)
    what = int64s(table["what"])
    flags = table.filter(pa.array(what == FLAG)).sort_by("cell")
    if not flags.num_rows:
        return
    entries = table.filter(pa.array(what == ENTRY)).sort_by("cell")
    messages = table.filter(pa.array(what == OF_MESSAGE)).sort_by("spot")
    own = _ranges(int64s(entries["cell"]), int64s(flags["cell"]))
    both = own.lengths + _ranges(int64s(messages["spot"]), int64s(flags["spot"])).lengths
    group = (np.cumsum(both) - both) // ROWS_TOGETHER
    for start, end in runs(run_starts(group), len(group)):
        first, last = int(own.low[start]), int(own.low[end - 1] + own.lengths[end - 1])
        here = entries.slice(first, last - first)
        yield _looked_at(flags.slice(start, end - start), here, messages, layout)


def _looked_at(
    flags: pa.Table, entries: pa.Table, messages: pa.Table, layout: Layout
) -> pa.RecordBatch:
    rows, ids = _laid_together(flags, entries, messages, layout)
    return _placed(_recognised(rows), int64s(flags["begin"]), int64s(flags["cell"]), ids, layout)


class _Ranges(NamedTuple):
    low: Ints
    lengths: Ints


def _ranges(ordered: Ints, wanted: Ints) -> _Ranges:
    """Where each stands among these, and how often."""
    low = np.searchsorted(ordered, wanted, side="left")
    return _Ranges(low, np.searchsorted(ordered, wanted, side="right") - low)


def _laid_together(
    flags: pa.Table, entries: pa.Table, messages: pa.Table, layout: Layout
) -> tuple[dict[str, Ints], pa.Array]:
    """Entries, and the messages of the spot once for each log that is looked at; their ids.

    ``flag``: which flagged cell; ``id``: where in the ids, or _NONE.
    """
    cells, spots = int64s(flags["cell"]), int64s(flags["spot"])
    low, lengths = _ranges(int64s(messages["spot"]), spots)
    begins = np.cumsum(lengths) - lengths
    at = np.repeat(low - begins, lengths) + np.arange(int(lengths.sum()))
    count = entries.num_rows
    nothing, none = np.full(len(at), _NONE, np.int64), np.full(count, _NONE, np.int64)

    def both(of_entries: Ints, of_messages: Ints) -> Ints:
        return np.concatenate([of_entries, of_messages])

    rows = {
        "flag": both(
            np.searchsorted(cells, int64s(entries["cell"])),
            np.repeat(np.arange(len(cells)), lengths),
        ),
        "lamport": both(int64s(entries["lamport"]), int64s(messages["lamport"])[at]),
        "mid": both(int64s(entries["mid"]), int64s(messages["mid"])[at]),
        "position": both(int64s(entries["position"]), nothing),
        "is_entry": both(np.ones(count, np.int64), np.zeros(len(at), np.int64)),
        "c_position": both(none, int64s(messages["position"], _NONE)[at]),
        "place": both(none, int64s(messages["place"], _NONE)[at]),
        "id": both(none, at),
    }
    log = layout.log_of(cells)[rows["flag"]]
    is_wanted = (rows["c_position"] != _NONE) & layout.is_required(log, rows["lamport"])
    rows["is_wanted"] = is_wanted.astype(np.int64)
    return rows, messages["message_id"].combine_chunks()


def _ordered(rows: Columns, *by: str) -> dict[str, Ints]:
    order = np.lexsort([rows[name] for name in reversed(by)])
    return {name: values[order] for name, values in rows.items()}


def _recognised(both: Columns) -> dict[str, Ints]:
    """Entries with what is known of their message; of messages only those that are missing.

    Of ids that collide one is taken, which is told elsewhere.
    """
    rows = _ordered(both, "flag", "lamport", "mid", "is_entry", "c_position", "place", "position")
    starts = run_starts(rows["flag"], rows["lamport"], rows["mid"])
    lengths = np.diff(np.append(starts, len(rows["flag"])))
    for name in ("place", "c_position", "id"):
        rows[name] = np.repeat(rows[name][starts], lengths)
    is_entry = rows["is_entry"] == 1
    so_far = np.cumsum(rows["is_entry"])
    before = (so_far - rows["is_entry"])[starts]
    rows["copy"] = so_far - np.repeat(before, lengths)
    is_missing = np.zeros(len(is_entry), np.bool_)
    is_held = np.add.reduceat(rows["is_entry"], starts) > 0 if len(starts) else starts > 0
    is_missing[starts] = (rows["is_wanted"][starts] == 1) & ~is_held
    rows["is_missing"] = is_missing.astype(np.int64)
    return {name: values[is_entry | is_missing] for name, values in rows.items()}


def _placed(
    recognised: Columns, begin: Ints, cells: Ints, ids: pa.Array, layout: Layout
) -> pa.RecordBatch:
    """Adds where each entry should stand among what this log holds, and what is odd."""
    rows = _ordered(recognised, "flag", "lamport", "place", "mid", "position")
    is_entry = rows["is_entry"] == 1
    starts = run_starts(rows["flag"])
    so_far = np.cumsum(rows["is_entry"])
    lengths = np.diff(np.append(starts, len(is_entry)))
    before = np.repeat((so_far - rows["is_entry"])[starts], lengths)
    expected = begin[rows["flag"]] + so_far - before - 1
    is_extra = is_entry & ((rows["c_position"] == _NONE) | (rows["copy"] > 1))
    is_moved = is_entry & (rows["position"] != expected)
    is_missing = rows["is_missing"] == 1
    is_told = (is_extra | is_moved | is_missing) & (rows["id"] != _NONE)
    at = pa.array(np.where(is_told, rows["id"], 0), mask=~is_told)
    cell = cells[rows["flag"]]
    log = layout.log_of(cell)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(layout.channel_of[log]),
            pa.array(log),
            pa.array(layout.bucket_of(cell)),
            pa.array(rows["lamport"]),
            pa.array(rows["mid"]),
            pa.array(rows["position"], mask=~is_entry),
            pa.array(expected, mask=~is_entry),
            pa.array(rows["place"], mask=rows["place"] == _NONE),
            ids.take(at) if len(ids) else pa.nulls(len(log), pa.string()),
            pa.array(rows["copy"]),
            pa.array(is_missing),
            pa.array(is_extra),
            pa.array(is_moved),
        ],
        schema=LOOKED,
    )
