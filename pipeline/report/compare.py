"""Two inputs against each other, a release or a setting each, with confidence intervals.

Figures of one input are not independent of one another: a bad hour in a channel delays many
messages.  So whole blocks of the input, by channel and hour, are drawn anew with replacement
(block bootstrap), a thousand times from a fixed seed, and what lies between the 2.5th and the
97.5th percentile of the difference is its interval.  Times come from histograms of 5 %, so nothing
here grows with the input.  Few blocks make an interval that says little; how many there are is
told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.figures import BLOCKS, NEVER_BUCKET, bucket_end_ms

ROUNDS: Final = 1_000
SEED: Final = 20_240_229
FEW_BLOCKS: Final = 10
_LEVELS: Final = (2.5, 97.5)
SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
FIGURES: Final = {"delivery": "delivered", "ack": "acknowledged"}
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """``pairs``: figure → (block, bucket) → how many."""

    name: str
    pairs: Mapping[str, Mapping[tuple[int, int], int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """``low`` and ``high`` of B less A; ``is_clear`` if they are on the same side of 0."""

    figure: str
    unit: str
    a: float
    b: float
    low: float
    high: float
    blocks: tuple[int, int]

    @property
    def is_clear(self) -> bool:
        return self.low > 0 or self.high < 0


def compare(a: Sample, b: Sample, *, seed: int = SEED) -> list[Difference]:
    """Shares and percentiles of delivery and acknowledgement."""
    found = []
    for figure, text in FIGURES.items():
        tables = [_table(one.pairs.get(figure, {})) for one in (a, b)]
        if any(not table.size for table in tables):
            continue
        blocks = (tables[0].shape[0], tables[1].shape[0])
        drawn = [_drawn(table, seed + number) for number, table in enumerate(tables)]
        whole = [table.sum(axis=0, keepdims=True) for table in tables]
        for name, unit, measure in _measures(text):
            values = [float(measure(one)[0]) for one in whole]
            spread = measure(drawn[1]) - measure(drawn[0])
            low, high = _interval(spread)
            found.append(
                Difference(
                    figure=name,
                    unit=unit,
                    a=values[0],
                    b=values[1],
                    low=low,
                    high=high,
                    blocks=blocks,
                )
            )
    return found


def _interval(spread: Floats) -> tuple[float, float]:
    """Never less never is no difference."""
    ordered = np.sort(np.nan_to_num(spread, nan=0.0, posinf=np.inf, neginf=-np.inf))
    low, high = (ordered[round((len(ordered) - 1) * level / 100)] for level in _LEVELS)
    return float(low), float(high)


_ENDS: Final = np.array([*(bucket_end_ms(n) for n in range(NEVER_BUCKET)), np.inf])


def _measures(
    text: str,
) -> Sequence[tuple[str, str, "Measure"]]:
    shares: list[tuple[str, str, Measure]] = [(text, "share", Measure(None))]
    return shares + [(f"{text}, {name}", "ms", Measure(share)) for name, share in SHARES.items()]


@dataclass(frozen=True, slots=True)
class Measure:
    """Of rows of histograms: the share that came at all, or a percentile."""

    share: float | None

    def __call__(self, rows: Floats) -> Floats:
        totals = rows.sum(axis=1)
        if self.share is None:
            came: Floats = 1 - rows[:, NEVER_BUCKET] / totals
            return came
        reached = np.cumsum(rows, axis=1) >= (self.share * totals)[:, np.newaxis] - 1e-9
        ends: Floats = _ENDS[np.argmax(reached, axis=1)]
        return ends


def _table(pairs: Mapping[tuple[int, int], int]) -> Floats:
    """A row for each block that has anything in it."""
    table = np.zeros((BLOCKS, NEVER_BUCKET + 1))
    for (block, bucket), count in pairs.items():
        table[block, bucket] += count
    full: Floats = table[table.sum(axis=1) > 0]
    return full


def _drawn(table: Floats, seed: int) -> Floats:
    random = np.random.Generator(np.random.PCG64(seed))
    count = table.shape[0]
    weights = random.multinomial(count, np.full(count, 1 / count), size=ROUNDS)
    drawn: Floats = weights.astype(np.float64) @ table
    return drawn
