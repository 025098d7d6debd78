"""Which stage gets what: the audit as a row of stages, and nothing of what they do.

Entries are read twice, the second time where something differs.  What is moved between tasks is a
row for each cell of each slice, and the rows of flagged ones; the driver gets a row for 256
messages, and ids and edges of what was moved while these are few.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Generic, TypeAlias

import numpy as np
import pyarrow as pa

from pipeline.audit import causal, drill, grid, read, verdict
from pipeline.audit.layout import Ints, Layout, int64s
from pipeline.audit.slices import Slice, dealt
from pipeline.audit.stages import Rows, Stages, Work

_CELLS_OF_TASK: Final = 20_000
_HANDS_OF_TASK: Final = 4
_LOGS_OF_TASK: Final = 20_000
MOST_IDS: Final = 50_000
"""So many ids of what was moved are told to every task; if there are more, all edges are moved."""
_IDS: Final = pa.schema([("log", pa.int64()), ("mid", pa.int64())])
Read: TypeAlias = Callable[[Sequence[Slice]], Iterator[pa.RecordBatch]]


class Plan(Generic[Rows]):
    def __init__(self, stages: Stages[Rows], layout: Layout, found: Sequence[Slice]) -> None:
        self._stages = stages
        self._layout = layout
        self._found = found
        self._hands = dealt(found)
        self._message_hands = dealt([one for one in found if one.is_message])
        self.few_tasks: Final = 1 + len(self._hands) // _HANDS_OF_TASK
        """Are enough to go through what was made of everything."""

    def find_bounds(self, bucket_messages: int) -> None:
        """First of all: where each channel's buckets begin."""
        work = partial(read.bounds, layout=self._layout, bucket_messages=bucket_messages)
        found = self._scan(self._message_hands, work, read.BOUND)
        self._layout.give_bounds(self._stages.told(found))

    def cells(self, key: int) -> Rows:
        """CELL of everything that there is."""
        parts = self._stages.both(
            self._scan(
                self._hands, partial(read.digests, layout=self._layout, key=key), grid.DIGEST
            ),
            self._work(self._stages.numbers(1), read.roll_call, grid.DIGEST),
        )
        tasks = 1 + self._layout.cells // _CELLS_OF_TASK
        return self._work(self._stages.by(parts, tasks, "channel"), grid.compared, grid.CELL)

    def looked(self, cells: Rows) -> Rows:
        """LOOKED of flagged cells."""
        hands = len(self._hands)
        hand_of = np.zeros(len(self._found), np.int32)
        for hand, held in enumerate(self._hands):
            hand_of[[one.number for one in held]] = hand
        route = partial(drill.routes, hand_of=hand_of, hands=hands)
        routed = self._stages.dealt(self._work(cells, route, drill.ROUTE), hands, "hand")
        rows = self._work(routed, partial(drill.rows_there, found=self._found), drill.SPOT)
        return self._work(self._stages.by(rows, hands, "spot"), drill.looked_at, drill.LOOKED)

    def violations(self, cells: Rows, looked: Rows) -> Rows | None:
        """VIOLATION; None if nothing was moved."""
        pairs = self._few(self._stages.work(looked, _moved, _IDS))
        if pairs is not None and not pairs.num_rows:
            return None
        moved = None if pairs is None else np.unique(int64s(pairs["mid"]))
        logs = None if pairs is None else np.unique(int64s(pairs["log"]))
        edges = self._touched(moved)
        told = None if moved is None else self._few(edges)
        wanted = None
        if told is not None:
            wanted = np.unique(np.concatenate([int64s(told[name]) for name in ("mid", "value")]))
            given = partial(_given, rows=told)
            edges = self._stages.work(self._stages.numbers(1), given, causal.EVIDENCE)
        ends = partial(causal.ends, layout=self._layout, wanted=wanted)
        seen = partial(causal.seen, logs=logs, wanted=wanted)
        evidence = self._stages.both(
            edges,
            self._scan(self._message_hands, ends, causal.EVIDENCE),
            self._work(cells, partial(causal.equal_cells, logs=logs), causal.EVIDENCE),
            self._stages.work(looked, seen, causal.EVIDENCE),
        )
        gathered = self._stages.by(evidence, len(self._message_hands), "channel")
        return self._work(gathered, causal.violations, causal.VIOLATION)

    def verdicts(self, cells: Rows, looked: Rows, violations: Rows | None) -> Rows:
        tallies = self._stages.both(
            self._work(cells, verdict.of_cells, verdict.TALLY),
            self._stages.work(looked, verdict.of_looked, verdict.TALLY),
        )
        if violations is not None:
            more = self._stages.work(violations, verdict.of_violations, verdict.TALLY)
            tallies = self._stages.both(tallies, more)
        tasks = 1 + len(self._layout.participants) // _LOGS_OF_TASK
        gathered = self._stages.by(tallies, tasks, "log")
        return self._work(gathered, verdict.verdicts, verdict.VERDICT)

    def witnesses(self, looked: Rows, violations: Rows | None) -> Rows:
        found = self._work(looked, verdict.witnesses_of_looked, verdict.WITNESS)
        if violations is None:
            return found
        more = self._work(violations, verdict.witnesses_of_violations, verdict.WITNESS)
        return self._stages.both(found, more)

    # --- stages -------------------------------------------------------------------------------

    def _scan(self, hands: Sequence[Sequence[Slice]], one: Read, schema: pa.Schema) -> Rows:
        numbers = self._stages.numbers(len(hands))
        return self._stages.work(numbers, partial(_of_hands, hands=hands, one=one), schema)

    def _work(
        self, rows: Rows, work: Callable[..., Iterator[pa.RecordBatch]], schema: pa.Schema
    ) -> Rows:
        bound: Work = partial(work, layout=self._layout)
        return self._stages.work(rows, bound, schema)

    def _touched(self, moved: Ints | None) -> Rows:
        """EDGE of whatever was moved."""
        edges = partial(causal.edges, layout=self._layout, moved=moved)
        return self._scan(self._message_hands, edges, causal.EVIDENCE)

    def _few(self, rows: Rows) -> pa.Table | None:
        """To the driver; None if there are too many."""
        schema = self._stages.schema(rows)
        told = self._stages.told(self._stages.work(rows, _cut_short, schema))
        return told if told.num_rows <= MOST_IDS else None


def _of_hands(
    numbers: Iterator[pa.RecordBatch], hands: Sequence[Sequence[Slice]], one: Read
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in int64s(batch["id"]).tolist():
            yield from one(hands[number])


def _given(numbers: Iterator[pa.RecordBatch], rows: pa.Table) -> Iterator[pa.RecordBatch]:
    for _ in numbers:
        yield from rows.to_batches()


def _moved(looked: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of what was moved: log and id, each once in a batch."""
    for batch in looked:
        rows = batch.filter(batch["is_moved"])
        pairs = np.unique(np.stack([int64s(rows["log"]), int64s(rows["mid"])]), axis=1)
        yield pa.RecordBatch.from_arrays(list(map(pa.array, pairs)), schema=_IDS)


def _cut_short(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One too many is enough to know that there are."""
    left = MOST_IDS + 1
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return
