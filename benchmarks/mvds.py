"""MVDS: what an epoch costs, how a million records start, and what bad links and absence cost.

Bytes are those of the payloads plus about 260 for each (seal, signature, keys, Waku message), per
text of 1 KB, as multiples of what the same texts cost on a link that loses nothing.  Beside them
the conforming model's figures for one message between two nodes (``sim_two_node``), with the same
back-off, and what the author of the specification's reference reported for peers that are offline
for 90 % of the time.
"""

import json
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from msgspec import structs

from benchmarks import mvds_work
from benchmarks.report import Figure, Report, percentile
from engine.codec.mvds_id import mvds_id_of
from engine.core.mvds.config import Mode, MvdsConfig
from engine.sim.mvds.epochs import two_node
from engine.sim.mvds.sessions import Cost, Rhythm, cost

LIVE: Final = 100_000
ROUNDS: Final = 90
STORED: Final = 1_000_000
QUICK_STORED: Final = 100_000
STARTS: Final = 5
LOSSES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
ABSENCES: Final = (0.3, 0.5, 0.7, 0.9)
MOST_TIMES: Final = 10.0
VECTORS: Final = Path("tests/vectors/mvds/sim_two_node.json")
MODEL: Final = "conforming model"
AUTHOR: Final = "reference's author"
TRIALS: Final = 1_000
FEW_TRIALS: Final = 200


def run(quick: bool) -> Report:
    report = Report(name="mvds")
    report.figures += _epochs()
    report.figures += _starts(QUICK_STORED if quick else STORED)
    seeds = range(1, 2 if quick else 4)
    report.figures += _sessions(seeds)
    report.figures += _two_nodes(FEW_TRIALS if quick else TRIALS)
    return report


# --- cost of the machine ------------------------------------------------------------------------


def _epochs() -> list[Figure]:
    figures = []
    for peers in (1, 100):
        busy, idle = mvds_work.epochs(LIVE, peers, ROUNDS)
        of = f"100 000 live records of {peers} peer{'s' if peers > 1 else ''}"
        figures += [
            _figure(f"epoch with 1 % due, {of}", busy, "ms CPU", at_most=10),
            _figure(f"idle epoch, {of}", idle, "ms CPU", at_most=0.1),
        ]
    return figures


def _starts(count: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="causerie-bench-") as place:
        path = Path(place) / "messages"
        key = mvds_work.fill(path, count)
        starts = [mvds_work.start_ms(path, key) for _ in range(STARTS)]
        mvds_work.fill_held(path, key, count)
        with_held = [mvds_work.start_ms(path, key) for _ in range(STARTS)]
    number = f"{count:,}".replace(",", " ")
    name = f"start with {number} records in SQLite, to the first payload"
    return [
        _figure(name, starts, "ms", at_most=1_000),
        _figure(f"{name}, and as many ids held", with_held, "ms"),
    ]


# --- bytes and latency --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    config: MvdsConfig
    rhythm: Rhythm
    at_most: float | None = None


def _sessions(seeds: Sequence[int]) -> list[Figure]:
    lossless = [cost(MvdsConfig(), Rhythm(messages=100), seed=seed) for seed in seeds]
    base = statistics.median(_bytes(one) for one in lossless)
    figures = [_figure("no loss: bytes of a text of 1 KB", list(map(_bytes, lossless)), "bytes")]
    for case in [*_losses(), *_absences(), *_rarely()]:
        runs = [cost(case.config, case.rhythm, seed=seed) for seed in seeds]
        if any(one.unfinished for one in runs):
            raise AssertionError(f"{case.name}: not everything arrived")
        times = [_bytes(one) / base for one in runs]
        middle = [percentile(one.latencies_ms, 0.5) / 1_000 for one in runs]
        late = [percentile(one.latencies_ms, 0.95) / 1_000 for one in runs]
        figures += [
            _figure(f"{case.name}: bytes", times, "times", at_most=case.at_most),
            _figure(f"{case.name}: p50 to delivery", middle, "s"),
            _figure(f"{case.name}: p95 to delivery", late, "s"),
        ]
    figures.append(
        Figure(
            figure="90 % offline: bytes",
            value=100,
            unit="times",
            spread=(100, 1_000),
            peer=AUTHOR,
        )
    )
    return figures


def _losses() -> list[_Case]:
    return [
        _Case(
            f"loss {loss:.0%}, {mode}",
            MvdsConfig(mode=mode),
            Rhythm(messages=50, loss=loss),
        )
        for loss in LOSSES
        for mode in Mode
    ]


def _absences() -> list[_Case]:
    """Without hints and Store: what the modes make of it by themselves."""
    return [
        _Case(
            f"offline {share:.0%}, {mode}",
            MvdsConfig(mode=mode),
            Rhythm(messages=100, offline=share, presence=False),
        )
        for share in ABSENCES
        for mode in Mode
    ]


def _rarely() -> list[_Case]:
    """Nine tenths of the time offline, with all that helps; hints are counted too."""
    helped = Rhythm(messages=200, offline=0.9, store_copies=True)
    cases = [
        _Case(
            f"offline 90 %, hints and Store copies, {mode}",
            MvdsConfig(mode=mode),
            helped,
            at_most=MOST_TIMES if mode is Mode.MIXED else None,
        )
        for mode in Mode
    ]
    hinted = structs.replace(helped, store_copies=False)
    cases.append(_Case("offline 90 %, hints, mixed", MvdsConfig(), hinted, at_most=MOST_TIMES))
    blind = structs.replace(hinted, presence=False)
    return cases + [
        _Case(f"offline 90 %, reference's back-off, {mode}", MvdsConfig.spec_model(mode), blind)
        for mode in (Mode.BATCH, Mode.INTERACTIVE)
    ]


def _bytes(one: Cost) -> float:
    return one.bytes_per_message + one.presence_bytes_per_message


# --- beside the model ---------------------------------------------------------------------------


def _two_nodes(trials: int) -> list[Figure]:
    figures = []
    rows = cast("list[dict[str, Any]]", json.loads(VECTORS.read_text(encoding="utf-8"))["rows"])
    for row in rows:
        if not row["next_epoch"].startswith("reference"):
            continue  # Both policies are held in the tests.
        name = f"two nodes, loss {row['loss']:.0%}, {row['mode']}"
        config = MvdsConfig.spec_model(Mode(row["mode"]))
        count = trials if row["loss"] < 0.9 else trials // 4
        lives = [two_node(config, mvds_id_of, loss=row["loss"], seed=seed) for seed in range(count)]
        over = [life for life in lives if life.stop_epoch is not None]
        stops = [life.stop_epoch for life in over if life.stop_epoch is not None]
        for what, ours, theirs, unit in (
            (
                "message copies, mean",
                statistics.fmean(life.message_copies for life in over),
                row["message_copies_mean"],
                "",
            ),
            ("until it stops, p50", percentile(stops, 0.5), row["stop_epoch_p50"], "epochs"),
        ):
            figures += [
                _figure(f"{name}: {what}", [ours], unit),
                replace(_figure(f"{name}: {what}", [float(theirs)], unit), peer=MODEL),
            ]
    return figures


def _figure(
    name: str, values: Sequence[float], unit: str, *, at_most: float | None = None
) -> Figure:
    return Figure(
        figure=name,
        value=statistics.median(values),
        unit=unit,
        spread=(min(values), max(values)),
        bar=at_most,
    )
