"""Which logs are compared, and where the buckets of each channel begin: numbers for both.

A channel's logs are numbered one after the other, its canonical log first; a log's buckets likewise
are the **cells**, of which each log of a channel has the same.  So a channel is a matrix of logs
and buckets, and an entry is known by one number, its cell.

A row for each log and one Lamport timestamp for each 256 messages: so little that the driver holds
it and every task gets it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
LOWEST: Final = -(2**63)
HIGHEST: Final = 2**63 - 1
UNKNOWN: Final = -1
"""The log of whom nobody knows."""
MOST_IN_A_TABLE: Final = 2**20


class Layout:
    """``bounds``: of each channel the Lamport timestamps at which a bucket begins, rising.

    What is older than the first of them belongs to a bucket of its own, the one before the others:
    a channel has one more bucket than bounds.
    """

    def __init__(self, member: pa.Table, grace_ms: int) -> None:
        """``member``: of silver.  ``grace_ms``: as of ``audit``."""
        rows = sorted(
            (row for row in member.to_pylist() if row["has_log"]),
            key=lambda row: (row["channel"], row["participant"]),
        )
        self.channels: Final = sorted({row["channel"] for row in rows})
        self._channels: Final = {name: number for number, name in enumerate(self.channels)}
        self.participants: Final[list[str | None]] = []
        """By log; of a canonical log None."""
        first_log: list[int] = []
        stays: list[tuple[int, int, bool]] = []
        self._numbers: Final[dict[str, dict[str, int]]] = {name: {} for name in self.channels}
        for row in rows:
            known = self._numbers[row["channel"]]
            if not known:
                first_log.append(len(stays))
                stays.append((LOWEST, HIGHEST, False))
                self.participants.append(None)
            known[row["participant"]] = len(stays)
            stays.append(_stay(row["joined_ms"], row["left_ms"], grace_ms))
            self.participants.append(row["participant"])
        since, until, is_member = zip(*stays, strict=True) if stays else ((), (), ())
        self.first_log: Final = np.array([*first_log, len(stays)], np.int64)
        self.since: Final = np.array(since, np.int64)
        """From when on a message has to be in the log, if it is a member's."""
        self.until: Final = np.array(until, np.int64)
        """Until when; HIGHEST: for ever."""
        self.is_member: Final = np.array(is_member, np.bool_)
        self.channel_of: Final = np.repeat(np.arange(len(first_log)), np.diff(self.first_log))
        """Of each log."""
        self._set_bounds([np.empty(0, np.int64)] * len(self.channels))

    def _set_bounds(self, bounds: Sequence[Ints]) -> None:
        self.bounds = bounds
        self.widths = np.array([len(one) + 1 for one in bounds], np.int64)
        """How many buckets a channel has."""
        widths = self.widths[self.channel_of] if len(bounds) else np.empty(0, np.int64)
        self.first_cell = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        """Of each log, and at the end how many cells there are."""

    def give_bounds(self, found: pa.Table) -> None:
        """``found``: channel (its number) and lamport of whatever begins a bucket."""
        ordered = found.sort_by("channel")
        channel, lamport = int64s(ordered["channel"]), int64s(ordered["lamport"])
        ends = np.searchsorted(channel, np.arange(1, len(self.channels)))
        self._set_bounds([np.unique(one) for one in np.split(lamport, ends)])

    @property
    def most_logs(self) -> int:
        """Of a channel, the canonical one with them."""
        return int(np.diff(self.first_log).max(initial=1))

    @property
    def cells(self) -> int:
        return int(self.first_cell[-1])

    @property
    def canonical(self) -> Ints:
        """The canonical log of each channel."""
        return self.first_log[:-1]

    def log_of(self, cell: Ints) -> Ints:
        found: Ints = np.searchsorted(self.first_cell, cell, side="right") - 1
        return found

    def spot_of(self, cell: Ints) -> Ints:
        """The cell of the same bucket in the canonical log."""
        log = self.log_of(cell)
        return cell - self.first_cell[log] + self.first_cell[self.canonical[self.channel_of[log]]]

    def bucket_of(self, cell: Ints) -> Ints:
        """-1: older than the first canonical message."""
        return cell - self.first_cell[self.log_of(cell)] - 1

    def is_required(self, log: Ints, lamport: Ints) -> Bools:
        """Whether a canonical message of that time has to be in that log."""
        until = self.until[log]
        is_in: Bools = (lamport >= self.since[log]) & ((lamport < until) | (until == HIGHEST))
        return is_in & self.is_member[log]

    # --- of rows ------------------------------------------------------------------------------

    def channels_of(self, channel: pa.DictionaryArray) -> Ints:
        """Numbers; UNKNOWN of a channel without any log."""
        known = [self._channels.get(name, UNKNOWN) for name in channel.dictionary.to_pylist()]
        return np.array(known, np.int64)[codes(channel)]

    def logs_of(self, channel: pa.DictionaryArray, participant: pa.DictionaryArray) -> Ints:
        """Numbers; UNKNOWN where no such log is there."""
        channels, people = channel.dictionary.to_pylist(), participant.dictionary.to_pylist()
        width = len(people)
        both = codes(channel) * width + codes(participant)
        there, place = _each_once(both, len(channels) * width)
        numbers = [
            self._numbers.get(channels[one // width], {}).get(people[one % width], UNKNOWN)
            for one in there.tolist()
        ]
        found: Ints = np.array(numbers, np.int64)[place]
        return found

    def cells_of(self, log: Ints, lamport: Ints) -> Ints:
        """Of known logs."""
        if not len(log):
            return log
        starts = run_starts(log)
        if len(starts) > 1 + len(log) // 8:  # Not one log after the other.
            order = np.argsort(log, kind="stable")
            found = np.empty_like(log)
            found[order] = self._cells_of_runs(log[order], lamport[order])
            return found
        return self._cells_of_runs(log, lamport)

    def _cells_of_runs(self, log: Ints, lamport: Ints) -> Ints:
        found = np.empty_like(log)
        for start, end in runs(run_starts(log), len(log)):
            number = int(log[start])
            bounds = self.bounds[self.channel_of[number]]
            found[start:end] = np.searchsorted(bounds, lamport[start:end], side="right")
            found[start:end] += self.first_cell[number]
        return found


def _each_once(values: Ints, end: int) -> tuple[Ints, Ints]:
    """The values, from 0 to ``end`` - 1, and of each row which of them it is."""
    if end > MOST_IN_A_TABLE:
        return np.unique(values, return_inverse=True)
    is_there = np.zeros(end, np.bool_)
    is_there[values] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[values]


def _stay(joined_ms: int | None, left_ms: int | None, grace_ms: int) -> tuple[int, int, bool]:
    """Since when and until when a message has to be there, and whether anybody says so."""
    since = HIGHEST if joined_ms is None else min(joined_ms + grace_ms, HIGHEST)
    until = HIGHEST if left_ms is None else max(left_ms - grace_ms, LOWEST)
    return since, until, joined_ms is not None


def run_starts(*columns: Ints) -> Ints:
    """Where each run of rows of the same values begins."""
    is_start = np.ones(len(columns[0]), np.bool_)
    is_start[1:] = np.logical_or.reduce([values[1:] != values[:-1] for values in columns])
    return np.flatnonzero(is_start)


def runs(starts: Ints, length: int) -> Iterator[tuple[int, int]]:
    return pairwise([*starts.tolist(), length])


def codes(column: pa.DictionaryArray) -> Ints:
    """Where in its dictionary each value stands."""
    if column.null_count:
        raise ValueError("a channel or participant is null")
    found: Ints = column.indices.to_numpy().astype(np.int64)
    return found


def int64s(column: pa.Array | pa.ChunkedArray, null: int | None = None) -> Ints:
    """``null``: what stands for null.  Raises ValueError if there is one and nothing does."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        if null is None:
            raise ValueError("a number is null")
        column = pc.fill_null(column, null)
    found: Ints = column.to_numpy()
    return found if found.dtype == np.int64 else found.astype(np.int64)
