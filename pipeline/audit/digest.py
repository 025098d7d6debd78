"""Digests: whether a log is the canonical one, bucket by bucket, without sorting or moving it.

A channel's messages are cut into buckets of Lamport time, about 256 canonical messages each.  Per
(channel, participant, bucket), a cell, a few additive numbers are kept: how many, the xor of the
ids, the xor of their keyed hashes, and of either half of these, modulo a prime, the sum S and the
sum D of half times position.  Where a message is missing, everything after it stands one place
further up; as D is linear, ``D - shift * S`` takes that back, so only the bucket that lacks it
differs (``pipeline.audit.grid``).

The hashes are of (id, Lamport timestamp) under a key that nobody knew when the logs were written:
else somebody could craft a log that collides.  Of other messages two cells are equal with a chance
of about 2^-120, of the same in another order, which D alone tells, 2^-62.

Rows of a cell mostly stand together and in order, so they are added up run by run; whatever order
they have, the sums are the same.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from pipeline.audit.layout import HIGHEST, Ints, run_starts

BUCKET_MESSAGES: Final = 256
P: Final = 2**31 - 1
Q: Final = 2**31 - 19
SUMS: Final = (("s", "d", P), ("t", "e", Q))
"""Of the upper and of the lower half of the keyed hashes."""
NUMBERS: Final = ("n", "start", "x", "keyed_x", "s", "d", "t", "e")
NOWHERE: Final = HIGHEST
"""Where nothing begins."""
_SMALL_STEP: Final = 2**20
_SHORT_RUN: Final = 2**11
"""A rest below 2^31, times a small step, so often: below 2^62."""

Digests = Mapping[str, Ints]
"""``cell`` and NUMBERS; what else there is in it, is one of the keys."""


def digests(cell: Ints, position: Ints, lamport: Ints, mid: Ints, key: int) -> dict[str, Ints]:
    """A row for each run of rows of the same cell."""
    starts = run_starts(cell)
    if not len(starts):
        return {name: np.empty(0, np.int64) for name in ("cell", *NUMBERS)}
    lengths = np.diff(np.append(starts, len(cell)))
    first = position[starts]
    step = position - np.repeat(first, lengths)
    keyed = _keyed(mid, lamport, key)
    found = {
        "cell": cell[starts],
        "n": lengths,
        "start": np.minimum.reduceat(position, starts),
        "x": np.bitwise_xor.reduceat(mid, starts),
        "keyed_x": np.bitwise_xor.reduceat(keyed, starts),
    }
    is_tame = (
        position.min() >= 0 and np.abs(step).max() < _SMALL_STEP and lengths.max() < _SHORT_RUN
    )
    for values, (s, d, prime) in zip((keyed >> 31 & P, keyed & P), SUMS, strict=True):
        found[s] = np.add.reduceat(values, starts) % prime
        if is_tame:
            moved = np.add.reduceat(values * step, starts) % prime
            found[d] = (moved + first % prime * found[s]) % prime
        else:
            found[d] = np.add.reduceat(values * (position % prime) % prime, starts) % prime
    return found


def _keyed(mid: Ints, lamport: Ints, key: int) -> Ints:
    """Two rounds of a finalizer (splitmix64's); no pair goes through without the key."""
    mixed = mid.view(np.uint64) ^ np.uint64(key & (2**64 - 1))
    _mix(mixed)
    mixed ^= lamport.view(np.uint64)
    _mix(mixed)
    return mixed.view(np.int64)


def _mix(values: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> None:
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)


def combined(parts: Digests, *also: str) -> dict[str, Ints]:
    """A row for each cell (and ``also``, other keys), by cell."""
    keys = ("cell", *also)
    if not len(parts["cell"]):
        return {name: parts[name] for name in (*keys, *NUMBERS)}
    order = np.lexsort([parts[name] for name in reversed(keys)])
    ordered = {name: parts[name][order] for name in (*keys, *NUMBERS)}
    starts = run_starts(*(ordered[name] for name in keys))
    found = {name: ordered[name][starts] for name in keys}
    found["n"] = np.add.reduceat(ordered["n"], starts)
    found["start"] = np.minimum.reduceat(ordered["start"], starts)
    for name in ("x", "keyed_x"):
        found[name] = np.bitwise_xor.reduceat(ordered[name], starts)
    for s, d, prime in SUMS:
        for name in (s, d):
            found[name] = np.add.reduceat(ordered[name], starts) % prime
    return found


def of_nothing(cell: Ints) -> dict[str, Ints]:
    """What changes no sum: that there is a cell."""
    found = {name: np.zeros(len(cell), np.int64) for name in NUMBERS}
    return {**found, "cell": cell, "start": np.full(len(cell), NOWHERE, np.int64)}
