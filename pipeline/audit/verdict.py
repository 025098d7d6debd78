"""Verdicts: what cells, looked-at rows and violations say of each log, added up.

The worst that holds: ``causal violation`` (a message stands before what it depends on),
``reordered``, ``extra`` (something that nobody else knows of), ``missing``, ``prefix`` (only the
newest are missing: it is behind), ``unknown`` (it lacks some, but nobody says since when it belongs
to the channel), ``identical``.  The first divergence is the one that stands first in the canonical
order.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.audit.causal import CAUSAL
from pipeline.audit.drill import EXTRA, MISSING, REORDERED
from pipeline.audit.layout import LOWEST, Bools, Ints, Layout, int64s

IDENTICAL: Final = "identical"
PREFIX: Final = "prefix"
UNKNOWN_SINCE: Final = "unknown"
CAUSAL_VIOLATION: Final = "causal violation"
COUNTED: Final = (MISSING, EXTRA, REORDERED, CAUSAL)
_SUMMED: Final = ("held", "canonical", *COUNTED)
_MOST: Final = ("last_equal", "last_held")
_LEAST: Final = ("gap_place", "gap_bucket")
_FIRST: Final = ("first_place", "first_kind", "first_message_id")
_TEXTS: Final = ("first_kind", "first_message_id")
TALLY: Final = pa.schema(
    [("log", pa.int64())]
    + [(name, pa.int64()) for name in (*_SUMMED, *_MOST, *_LEAST, "first_place")]
    + [(name, pa.string()) for name in _TEXTS]
)
"""``last_equal``: the newest bucket that is; ``last_held``: the highest place of what was looked at
and is there; ``gap_…``: where the first that is missing would stand."""
VERDICT: Final = pa.schema(
    [(name, pa.string()) for name in ("channel", "participant", "verdict")]
    + [(name, pa.int64()) for name in ("expected", "held", *COUNTED, "first_place")]
    + [(name, pa.string()) for name in _TEXTS]
)


def of_cells(cells: Iterator[pa.RecordBatch], layout: Layout) -> Iterator[pa.RecordBatch]:
    """CELL -> TALLY."""
    for batch in cells:
        cell = int64s(batch["cell"])
        log = layout.log_of(cell)
        is_own = ~np.isin(log, layout.canonical)
        is_equal = batch["is_equal"].to_numpy(zero_copy_only=False)
        yield from _added(
            {
                "log": log,
                "held": int64s(batch["n"]),
                "canonical": int64s(batch["c_n"]),
                "last_equal": pa.array(layout.bucket_of(cell), mask=~is_equal),
            },
            is_own,
        )


def of_looked(looked: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """LOOKED -> TALLY."""
    for batch in looked:
        is_missing, is_extra, is_moved = (
            batch[name].to_numpy(zero_copy_only=False)
            for name in ("is_missing", "is_extra", "is_moved")
        )
        place, no_place = int64s(batch["place"], 0), batch["place"].is_null().to_numpy(False)
        is_odd = is_missing | is_extra | is_moved
        kind = np.select([is_extra, is_missing], [EXTRA, MISSING], REORDERED)
        unplaced = ~is_odd | no_place
        yield from _added(
            {
                "log": int64s(batch["log"]),
                MISSING: is_missing.astype(np.int64),
                EXTRA: is_extra.astype(np.int64),
                REORDERED: is_moved.astype(np.int64),
                "last_held": pa.array(place, mask=is_missing | no_place),
                "gap_place": pa.array(place, mask=~is_missing | no_place),
                "gap_bucket": pa.array(int64s(batch["bucket"]), mask=~is_missing),
                "first_place": pa.array(place, mask=unplaced),
                "first_kind": pa.array(kind, pa.string(), mask=unplaced),
                "first_message_id": batch["message_id"],
            }
        )


def of_violations(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """VIOLATION -> TALLY."""
    for batch in found:
        count = batch.num_rows
        yield from _added(
            {
                "log": int64s(batch["log"]),
                CAUSAL: np.ones(count, np.int64),
                "first_place": batch["place"],
                "first_kind": pa.array([CAUSAL] * count, pa.string()),
                "first_message_id": batch["message_id"],
            }
        )


def _added(
    columns: dict[str, Ints | pa.Array], is_wanted: Bools | None = None
) -> Iterator[pa.RecordBatch]:
    rows = pa.table(
        {
            field.name: pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(len(columns["log"]), field.type)
            for field in TALLY
        }
    )
    yield from summed(rows if is_wanted is None else rows.filter(pa.array(is_wanted))).to_batches()


def summed(rows: pa.Table) -> pa.Table:
    """TALLY, one row for each log."""
    order = [(name, "ascending") for name in ("log", "first_place", "first_kind")]
    how = {
        **dict.fromkeys(_SUMMED, "sum"),
        **dict.fromkeys(_MOST, "max"),
        **dict.fromkeys(_LEAST, "min"),
        **dict.fromkeys(_FIRST, "first"),
    }
    # Of one thread: else "first" is any.
    grouped = rows.sort_by(order).group_by("log", use_threads=False).aggregate(list(how.items()))
    columns = {name: grouped[f"{name}_{way}"] for name, way in how.items()}
    return pa.table({"log": grouped["log"], **columns}).select(TALLY.names).cast(TALLY)


def verdicts(tallies: Iterator[pa.RecordBatch], layout: Layout) -> Iterator[pa.RecordBatch]:
    """TALLY of whole logs -> VERDICT; nothing of who has nothing and should not."""
    rows = summed(pa.Table.from_batches(tallies, TALLY))
    held, canonical = (int64s(rows[name], 0) for name in ("held", "canonical"))
    rows = rows.filter(pa.array((held > 0) | (canonical > 0)))
    if not rows.num_rows:
        return
    log, held = int64s(rows["log"]), int64s(rows["held"], 0)
    missing, extra = int64s(rows[MISSING], 0), int64s(rows[EXTRA], 0)
    names = [layout.channels[one] for one in layout.channel_of[log].tolist()]
    people = [layout.participants[one] for one in log.tolist()]
    yield pa.RecordBatch.from_arrays(
        [
            pa.array(names),
            pa.array(people),
            pa.array(_worst(rows, layout), pa.string()),
            pa.array(held + missing - extra),
            pa.array(held),
            *(pa.array(int64s(rows[name], 0)) for name in COUNTED),
            *(rows[name].combine_chunks() for name in _FIRST),
        ],
        schema=VERDICT,
    )


def _worst(rows: pa.Table, layout: Layout) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
    count = {name: int64s(rows[name], 0) for name in (*COUNTED, "held", "canonical")}
    last = {name: int64s(rows[name], LOWEST) for name in (*_MOST, *_LEAST)}
    is_lacking = count[MISSING] > 0
    is_behind = (last["last_held"] < last["gap_place"]) & (last["last_equal"] < last["gap_bucket"])
    is_undefined = ~layout.is_member[int64s(rows["log"])]
    is_short = count["held"] - count[EXTRA] < count["canonical"]
    found: np.ndarray[tuple[int], np.dtype[np.str_]] = np.select(
        [
            count[CAUSAL] > 0,
            count[REORDERED] > 0,
            count[EXTRA] > 0,
            is_lacking & is_behind,
            is_lacking,
            is_undefined & is_short,
        ],
        [CAUSAL_VIOLATION, REORDERED, EXTRA, PREFIX, MISSING, UNKNOWN_SINCE],
        IDENTICAL,
    )
    return found


# --- witnesses ------------------------------------------------------------------------------------

WITNESS: Final = pa.schema(
    [(name, pa.string()) for name in ("channel", "participant", "kind")]
    + [
        (name, pa.int64())
        for name in ("bucket", "place", "position", "expected_position", "lamport", "mid")
    ]
    + [("message_id", pa.string()), ("parent_mid", pa.int64()), ("parent_message_id", pa.string())]
)
"""An anomaly each."""


def witnesses_of_looked(
    looked: Iterator[pa.RecordBatch], layout: Layout
) -> Iterator[pa.RecordBatch]:
    """LOOKED -> WITNESS."""
    for batch in looked:
        for kind, mark in ((MISSING, "is_missing"), (EXTRA, "is_extra"), (REORDERED, "is_moved")):
            odd = batch.filter(batch[mark])
            if odd.num_rows:
                yield _witnesses(odd, kind, layout)


def witnesses_of_violations(
    found: Iterator[pa.RecordBatch], layout: Layout
) -> Iterator[pa.RecordBatch]:
    """VIOLATION -> WITNESS."""
    for batch in found:
        yield _witnesses(batch, CAUSAL, layout)


def _witnesses(rows: pa.RecordBatch, kind: str, layout: Layout) -> pa.RecordBatch:
    log, there = int64s(rows["log"]), set(rows.schema.names)
    texts = {
        "channel": [layout.channels[one] for one in layout.channel_of[log].tolist()],
        "participant": [layout.participants[one] for one in log.tolist()],
        "kind": [kind] * len(log),
    }
    arrays = [
        pa.array(texts[field.name], field.type)
        if field.name in texts
        else rows[field.name]
        if field.name in there
        else pa.nulls(len(log), field.type)
        for field in WITNESS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=WITNESS)
