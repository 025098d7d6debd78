"""The shipped study: what the specifications claim, in figures that a command makes again.

2/MVDS promises "a simulation to demonstrate its performance": bandwidth and latency against the
share of time that people are offline, in both of its modes.  Its authors published figures of such
a simulation, in which every payload misses its peer by the same chance; that is repeated here, too
(``mvds-missed``).  SDS promises eventual delivery with little overhead: delivery, acknowledgements
and bytes against loss, latency, churn, group size, length of the causal history, size of the
filter, interval of sync and back-off.  Seeds are 1, 2, 3 and so on, everywhere the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pipeline.simulate.case import Case

LOSSES: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
MISSED: Final = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9)
OFFLINE: Final = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
ABSENCES: Final = (0.0, 0.1, 0.3, 0.5, 0.7)
LATENCIES_MS: Final = (10, 50, 200, 1_000, 3_000, 10_000)
CHURNS: Final = (1.0, 2.0, 6.0, 20.0, 60.0)
SMALL_SIZES: Final = (2, 4, 8, 16, 32, 64, 128)
CROWDS: Final = (64, 128)
LARGE_PATIENTS: Final = (256, 512, 1_000)
HISTORIES: Final = (1, 2, 5, 10, 20, 50, 200)
BLOOMS: Final = (16, 64, 256, 1_024, 10_000)
SYNC_INTERVALS_MS: Final = (5_000, 10_000, 20_000, 30_000, 60_000, 120_000)
FIRST_WAITS_MS: Final = (1_000, 2_000, 5_000, 10_000, 20_000, 60_000)
LONGEST_WAITS_MS: Final = (30_000, 120_000, 600_000, 3_600_000, 14_400_000)
PEOPLE: Final = (2, 3, 4, 6, 8)
CONFIGS: Final = ("ours", "reference")
MODES: Final = ("batch", "interactive")
FEW_SEEDS: Final = 3
"""Of SDS: nobody published figures to compare these with."""
SIZE_OF_ONE_SEED: Final = 64
"""From here on a run takes minutes."""

_FAULTS: Final = Case(protocol="sds", duplication=0.05, reorder=0.1)
_PATIENT: Final = replace(_FAULTS, members=16, messages=60, loss=0.2, prompt=False)
_PAIR: Final = Case(
    protocol="mvds", messages=100, size_bytes=1_000, gap_ms=300_000, latency_ms=20, jitter_ms=100
)


def study(seeds: int, *, large: bool = False) -> list[Case]:
    """``large``: crowds of up to 1 000 as well, which take minutes each.

    MVDS has ``seeds`` seeds, SDS ``FEW_SEEDS`` at most.
    """
    few = min(seeds, FEW_SEEDS)
    mvds = [*_missed(), *_offline(), *_together(), *_pairs()]
    sds = [*_groups(), *_turned()]
    crowds = _crowds((*CROWDS, *LARGE_PATIENTS) if large else CROWDS)
    return [
        *_seeded(sds, range(1, few + 1)),
        *_seeded(mvds, range(1, seeds + 1)),
        *_sizes(few),
        *crowds,
    ]


# --- SDS ----------------------------------------------------------------------------------------


def _groups() -> list[Case]:
    """What the network and people do to a group of eight."""
    both = [replace(_FAULTS, config=config) for config in CONFIGS]
    lossy = [replace(one, loss=0.1) for one in both]
    slow = replace(_FAULTS, loss=0.1, messages=60, gap_ms=20_000, heal_ms=3_600_000)
    return [
        *(replace(one, sweep="sds-loss", loss=loss) for loss in LOSSES for one in both),
        *(
            replace(one, sweep="sds-latency", latency_ms=latency_ms, jitter_ms=latency_ms)
            for latency_ms in LATENCIES_MS
            for one in lossy
        ),
        *(replace(slow, sweep="sds-offline", offline=offline) for offline in ABSENCES),
        *(replace(slow, sweep="sds-churn", offline=0.3, churn=churn) for churn in CHURNS),
    ]


def _turned() -> list[Case]:
    """What can be set, in a group that does not answer at once."""
    few = replace(_FAULTS, messages=200, gap_ms=1_000, loss=0.2, sealed=False)
    lossy = replace(_FAULTS, loss=0.3, prompt=False)
    return [
        *(replace(_PATIENT, sweep="sds-history", history=history) for history in HISTORIES),
        *(replace(few, sweep="sds-bloom", bloom_capacity=ids) for ids in BLOOMS),
        *(
            replace(_PATIENT, sweep="sds-sync", sync_interval_ms=interval_ms)
            for interval_ms in SYNC_INTERVALS_MS
        ),
        *(
            replace(lossy, sweep="sds-back-off", back_off_first_ms=first_ms)
            for first_ms in FIRST_WAITS_MS
        ),
    ]


def _sizes(seeds: int) -> list[Case]:
    cases: list[Case] = []
    for size in SMALL_SIZES:
        messages = min(100, max(10, 2_000 // size))
        one = replace(_FAULTS, sweep="sds-size", members=size, messages=messages, loss=0.1)
        cases += _seeded([one], range(1, (1 if size >= SIZE_OF_ONE_SEED else seeds) + 1))
    return cases


def _crowds(sizes: Sequence[int]) -> list[Case]:
    """Few messages and a short time: with every member each message costs all others' work."""
    few = replace(_FAULTS, sweep="sds-crowd", messages=2, loss=0.1, heal_ms=15_000)
    return [replace(few, members=size) for size in sizes]


# --- MVDS ---------------------------------------------------------------------------------------


def _modes() -> list[Case]:
    return [*(replace(_PAIR, config="reference", mode=mode) for mode in MODES), _PAIR]


def _missed() -> list[Case]:
    """The model of the published figures: 5 s between messages, each payload misses by chance."""
    return [
        replace(one, sweep="mvds-missed", loss=loss, messages=60, gap_ms=5_000)
        for loss in MISSED
        for one in _modes()
    ]


def _offline() -> list[Case]:
    helped = replace(_PAIR, presence=True, store_copies=True)
    return [
        replace(one, sweep="mvds-offline", offline=offline)
        for offline in OFFLINE
        for one in [*_modes(), helped]
    ]


def _together() -> list[Case]:
    """More than two, each message for all others; each offline for half the time."""
    few = replace(_PAIR, sweep="mvds-people", offline=0.5, messages=40)
    return [
        replace(few, people=people, config=one.config, mode=one.mode)
        for people in PEOPLE
        for one in _modes()
    ]


def _pairs() -> list[Case]:
    absent = replace(_PAIR, offline=0.7)
    return [
        *(
            replace(one, sweep="mvds-latency", latency_ms=latency_ms, jitter_ms=latency_ms)
            for latency_ms in LATENCIES_MS
            for one in _modes()
        ),
        *(
            replace(one, sweep="mvds-churn", offline=0.5, churn=churn)
            for churn in CHURNS
            for one in _modes()
        ),
        *(
            replace(absent, sweep="mvds-back-off", back_off_longest_ms=longest_ms, mode=mode)
            for longest_ms in LONGEST_WAITS_MS
            for mode in (*MODES, "mixed")
        ),
    ]


def _seeded(cases: Sequence[Case], seeds: range) -> list[Case]:
    return [replace(case, seed=seed) for case in cases for seed in seeds]
