"""The shipped study: what the specifications claim, in figures that a command makes again.

2/MVDS promises "a simulation to demonstrate its performance": bandwidth and latency against the
share of time that people are offline, in both of its modes.  SDS promises eventual delivery with
little overhead: delivery, acknowledgements and bytes against loss, group size, length of the causal
history, size of the filter and interval of sync.  Seeds are 1, 2, 3 and so on, everywhere the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pipeline.simulate.case import Case

LOSSES: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
OFFLINE: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SMALL_SIZES: Final = (2, 4, 8, 16, 32, 64, 128)
CROWDS: Final = (64, 128)
LARGE_CROWDS: Final = (256, 512, 1_000)
HISTORIES: Final = (1, 2, 5, 10, 20, 50, 200)
BLOOMS: Final = (16, 64, 256, 1_024, 10_000)
SYNC_INTERVALS_MS: Final = (5_000, 10_000, 20_000, 30_000, 60_000, 120_000)
_FAULTS: Final = Case(protocol="sds", duplication=0.05, reorder=0.1)


def study(seeds: int, *, large: bool = False) -> list[Case]:
    """``large``: crowds of up to 1 000 as well, which take minutes each."""
    cases = [*_sds(seeds), *_mvds(seeds)]
    return cases + _crowds((*CROWDS, *LARGE_CROWDS) if large else CROWDS)


def _sds(seeds: int) -> list[Case]:
    some = range(1, seeds + 1)
    crowd = replace(_FAULTS, members=24, messages=60, loss=0.2, prompt=False)
    cases = [
        replace(_FAULTS, sweep="sds-loss", loss=loss, config=config, seed=seed)
        for loss in LOSSES
        for config in ("ours", "reference")
        for seed in some
    ]
    for size in SMALL_SIZES:
        messages = min(100, max(10, 2_000 // size))
        one = replace(_FAULTS, sweep="sds-size", members=size, messages=messages, loss=0.1)
        cases += _seeded([one], range(1, (1 if size > 64 else seeds) + 1))  # noqa: PLR2004 - minutes
    histories = [replace(crowd, sweep="sds-history", history=history) for history in HISTORIES]
    few = replace(_FAULTS, messages=300, gap_ms=1_000, loss=0.2, sealed=False)
    blooms = [replace(few, sweep="sds-bloom", bloom_capacity=size) for size in BLOOMS]
    syncs = [
        replace(crowd, sweep="sds-sync", sync_interval_ms=interval_ms)
        for interval_ms in SYNC_INTERVALS_MS
    ]
    return cases + _seeded([*histories, *blooms, *syncs], some)


def _mvds(seeds: int) -> list[Case]:
    one = Case(sweep="mvds-offline", protocol="mvds", messages=100, size_bytes=1_000)
    modes = [
        replace(one, offline=offline, mode=mode, config="reference")
        for offline in OFFLINE
        for mode in ("batch", "interactive")
    ]
    modes += [replace(one, offline=offline) for offline in OFFLINE]
    modes += [
        replace(one, offline=offline, presence=True, store_copies=True) for offline in OFFLINE
    ]
    return _seeded(modes, range(1, 2 * seeds + 1))


def _crowds(sizes: Sequence[int]) -> list[Case]:
    """Few messages and a short time: with every member each message costs all others' work."""
    few = replace(_FAULTS, sweep="sds-crowd", messages=5, loss=0.1, heal_ms=30_000)
    return [replace(few, members=size) for size in sizes]


def _seeded(cases: Sequence[Case], seeds: range) -> list[Case]:
    return [replace(case, seed=seed) for case in cases for seed in seeds]
