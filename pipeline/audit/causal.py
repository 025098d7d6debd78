"""Causality: an entry that stands before one of its message's parents.

In a log that is in order nothing stands before its parent; so one of both has been moved, and only
edges from or to something that was moved anywhere are looked at, in logs where something was.  Such
**evidence** of a channel comes together in one task: edges, their ends' places, and where each log
has these, which a cell that is equal tells by its shift and any other row by row.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.audit import read
from pipeline.audit.layout import HIGHEST, Bools, Ints, Layout, int64s, run_starts, runs
from pipeline.audit.slices import Slice

CAUSAL: Final = "causal"
EDGE, END, EQUAL, SEEN = range(4)
EVIDENCE: Final = pa.schema(
    [
        ("channel", pa.int64()),
        ("what", pa.int64()),
        ("log", pa.int64()),
        ("bucket", pa.int64()),
        ("mid", pa.int64()),
        ("value", pa.int64()),
        ("lamport", pa.int64()),
        ("place", pa.int64()),
        ("message_id", pa.string()),
    ]
)
"""EDGE: from the child ``mid`` to its parent ``value``.  END: a canonical message that edges join,
``value`` its position.  EQUAL: a log's bucket, ``value`` its shift.  SEEN: an entry that was looked
at, ``value`` its position."""
VIOLATION: Final = pa.schema(
    [
        ("channel", pa.int64()),
        ("log", pa.int64()),
        ("bucket", pa.int64()),
        ("place", pa.int64()),
        ("position", pa.int64()),
        ("lamport", pa.int64()),
        ("mid", pa.int64()),
        ("message_id", pa.string()),
        ("parent_mid", pa.int64()),
        ("parent_message_id", pa.string()),
    ]
)
_NONE: Final = HIGHEST


def edges(found: Sequence[Slice], layout: Layout, moved: Ints | None) -> Iterator[pa.RecordBatch]:
    """Of canonical messages.  ``moved``: ids of which each edge has one, sorted; None: all."""
    for one in found:
        for cell, batch in read.messages(one, layout, "position", "mid", "parent_mids"):
            is_own = batch["position"].is_valid()
            channel, child, parent = _exploded(layout, cell, batch, is_own)
            if moved is not None:
                is_touched = is_among(child, moved) | is_among(parent, moved)
                channel, child, parent = channel[is_touched], child[is_touched], parent[is_touched]
            if len(child):
                yield _evidence(EDGE, channel, mid=child, value=parent)


def _exploded(
    layout: Layout, cell: Ints, batch: pa.RecordBatch, is_own: pa.BooleanArray
) -> tuple[Ints, Ints, Ints]:
    lists: pa.ListArray = batch["parent_mids"]
    lengths = int64s(pc.list_value_length(lists), 0)
    parent = lists.flatten()
    is_edge = np.repeat(is_own.to_numpy(zero_copy_only=False), lengths)
    is_edge &= parent.is_valid().to_numpy(zero_copy_only=False)
    at = np.repeat(np.arange(len(cell)), lengths)[is_edge]
    channel = layout.channel_of[layout.log_of(cell)]
    return channel[at], int64s(batch["mid"])[at], int64s(parent, 0)[is_edge]


def ends(found: Sequence[Slice], layout: Layout, wanted: Ints | None) -> Iterator[pa.RecordBatch]:
    """Canonical messages.  ``wanted``: ids, sorted; None: all."""
    for one in found:
        columns = ("position", "mid", "place", "message_id")
        for cell, batch in read.messages(one, layout, *columns):
            is_asked = batch["position"].is_valid().to_numpy(zero_copy_only=False)
            if wanted is not None:
                is_asked &= is_among(int64s(batch["mid"]), wanted)
            at = np.flatnonzero(is_asked)
            if len(at):
                rows, log = batch.take(pa.array(at)), layout.log_of(cell[at])
                given = {name: rows[name] for name in ("lamport", "mid", "place", "message_id")}
                yield _evidence(
                    END,
                    layout.channel_of[log],
                    log=log,
                    bucket=layout.bucket_of(cell[at]),
                    value=rows["position"],
                    **given,
                )


def equal_cells(
    cells: Iterator[pa.RecordBatch], layout: Layout, logs: Ints | None
) -> Iterator[pa.RecordBatch]:
    """CELL -> EVIDENCE.  ``logs``: in which something was moved, sorted; None: all."""
    for batch in cells:
        log = layout.log_of(int64s(batch["cell"]))
        is_asked = batch["is_equal"].to_numpy(zero_copy_only=False)
        if logs is not None:
            is_asked = is_asked & is_among(log, logs)
        rows = batch.filter(pa.array(is_asked))
        yield _evidence(
            EQUAL,
            int64s(rows["channel"]),
            log=log[is_asked],
            bucket=layout.bucket_of(int64s(rows["cell"])),
            value=rows["shift"],
        )


def seen(
    looked: Iterator[pa.RecordBatch], logs: Ints | None, wanted: Ints | None
) -> Iterator[pa.RecordBatch]:
    """LOOKED -> EVIDENCE: of each message the first copy."""
    for batch in looked:
        is_asked = batch["position"].is_valid().to_numpy(zero_copy_only=False)
        is_asked = is_asked & (int64s(batch["copy"]) == 1)
        for name, known in (("log", logs), ("mid", wanted)):
            if known is not None:
                is_asked &= is_among(int64s(batch[name]), known)
        rows = batch.filter(pa.array(is_asked))
        given = {name: rows[name] for name in ("log", "bucket", "mid", "lamport")}
        yield _evidence(SEEN, int64s(rows["channel"]), value=rows["position"], **given)


def _evidence(what: int, channel: Ints, **columns: Ints | pa.Array) -> pa.RecordBatch:
    given = {"channel": channel, "what": np.full(len(channel), what, np.int64), **columns}
    arrays = [
        pa.array(given[field.name], field.type)
        if field.name in given
        else pa.nulls(len(channel), field.type)
        for field in EVIDENCE
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=EVIDENCE)


def is_among(values: Ints, known: Ints) -> Bools:
    """``known`` is sorted."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    return _found(values, known)[1]


# --- of a channel ---------------------------------------------------------------------------------


def violations(parts: Iterator[pa.RecordBatch], layout: Layout) -> Iterator[pa.RecordBatch]:
    """EVIDENCE of whole channels -> VIOLATION."""
    table = pa.Table.from_batches(parts, EVIDENCE).sort_by("channel")
    channels = int64s(table["channel"])
    for start, end in runs(run_starts(channels), len(channels)):
        rows = table.slice(start, end - start)
        of = {what: rows.filter(pc.field("what") == what) for what in range(4)}
        if of[EDGE].num_rows and of[END].num_rows:
            yield from _of_channel(int(channels[start]), of, layout)


class _Ends:
    """The messages that a channel's edges join, by id."""

    def __init__(self, rows: pa.Table) -> None:
        rows = rows.sort_by([("mid", "ascending"), ("place", "ascending")])
        mid = int64s(rows["mid"])
        first = run_starts(mid)
        rows = rows.take(pa.array(first))
        self.mid = mid[first]
        self.lamport, self.place = int64s(rows["lamport"]), int64s(rows["place"])
        self.bucket, self.position = int64s(rows["bucket"]), int64s(rows["value"])
        self.message_id = rows["message_id"].combine_chunks()


def _of_channel(
    channel: int, rows: dict[int, pa.Table], layout: Layout
) -> Iterator[pa.RecordBatch]:
    known = _Ends(rows[END])
    child, parent = _joined(rows[EDGE], known)
    width = int(layout.widths[channel])
    equal, seen_there = rows[EQUAL].sort_by("log"), rows[SEEN].sort_by("log")
    logs_equal, logs_seen = int64s(equal["log"]), int64s(seen_there["log"])
    for log in np.unique(logs_seen).tolist():
        own = equal.slice(*_range(logs_equal, log))
        shift = np.full(width, _NONE, np.int64)
        shift[int64s(own["bucket"]) + 1] = int64s(own["value"])
        shift = shift[known.bucket + 1]
        is_held = shift != _NONE
        position = np.where(is_held, known.position + shift, 0)
        looked = seen_there.slice(*_range(logs_seen, log))
        at, is_known = _found(int64s(looked["mid"]), known.mid)
        is_known &= int64s(looked["lamport"]) == known.lamport[at]
        position[at[is_known]] = int64s(looked["value"])[is_known]
        is_held[at[is_known]] = True
        is_wrong = (
            is_held[child]
            & is_held[parent]
            & (known.place[parent] < known.place[child])
            & (position[parent] > position[child])
        )
        if is_wrong.any():
            yield _violations(log, known, position, (child[is_wrong], parent[is_wrong]), layout)


def _range(ordered: Ints, value: int) -> tuple[int, int]:
    """Where it begins, and how many there are."""
    low, high = np.searchsorted(ordered, [value, value + 1]).tolist()
    return low, high - low


def _found(values: Ints, known: Ints) -> tuple[Ints, Bools]:
    """Where each stands among the known ones, which are sorted, and whether it does."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return at, known[at] == values


def _joined(rows: pa.Table, known: _Ends) -> tuple[Ints, Ints]:
    """Of each edge with both ends known where these are, each edge once."""
    child, is_child = _found(int64s(rows["mid"]), known.mid)
    parent, is_parent = _found(int64s(rows["value"]), known.mid)
    both = np.stack([child, parent])[:, is_child & is_parent]
    child, parent = np.unique(both, axis=1)
    return child, parent


def _violations(
    log: int, known: _Ends, position: Ints, pairs: tuple[Ints, Ints], layout: Layout
) -> pa.RecordBatch:
    child, parent = pairs
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(len(child), layout.channel_of[log], np.int64)),
            pa.array(np.full(len(child), log, np.int64)),
            pa.array(known.bucket[child]),
            pa.array(known.place[child]),
            pa.array(position[child]),
            pa.array(known.lamport[child]),
            pa.array(known.mid[child]),
            known.message_id.take(pa.array(child)),
            pa.array(known.mid[parent]),
            known.message_id.take(pa.array(parent)),
        ],
        schema=VIOLATION,
    )
