"""One message on a lossy link, many times: copies and epochs as the conforming model has them.

Both policies of the model's table: the reference's linear back-off and status-go's doubling one.
Bounds are four standard errors where the mean is known, and wide ones for percentiles at high loss,
whose distribution has a long tail.
"""

import json
from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.codec.mvds_id import mvds_id_of
from engine.core.entropy import RandomUnit
from engine.core.mvds.config import Mode, MvdsConfig
from engine.sim.mvds.epochs import OneMessage, two_node

Row = dict[str, Any]
VECTORS = Path(__file__).parents[2] / "vectors" / "mvds"


def _rows(name: str, key: str) -> list[Row]:
    return cast("list[Row]", json.loads((VECTORS / name).read_text(encoding="utf-8"))[key])


ROWS = _rows("sim_two_node.json", "rows")
TRIALS = 400
FEW_TRIALS = 120
"""At a loss of 0.9, where a message takes a hundred copies."""
STANDARD_ERRORS = 4.0


def doubling(send_count: int, _random_unit: RandomUnit) -> int:
    """status-go's, without its jitter: 2^(c-1)*90 epochs."""
    return 90 << (send_count - 1)


def _config(row: Row) -> MvdsConfig:
    config = MvdsConfig.spec_model(Mode(row["mode"]))
    if row["next_epoch"].startswith("status-go"):
        return replace(config, backoff=doubling)
    assert row["next_epoch"] == "reference epoch+2*count"
    return config


def _percentile(values: Sequence[int], share: float) -> int:
    return sorted(values)[ceil(len(values) * share) - 1]


def _mean_agrees(values: Sequence[int], theirs: float, their_trials: int) -> bool:
    """Both are estimates; a mean printed with two digits is rounded besides."""
    error = pstdev(values) * sqrt(1 / len(values) + 1 / their_trials)
    return abs(fmean(values) - theirs) <= STANDARD_ERRORS * error + 0.01


def _median_agrees(values: Sequence[int], theirs: int) -> bool:
    """Their median lies where ours may: between the 40th and the 60th percentile."""
    return _percentile(values, 0.4) <= theirs <= _percentile(values, 0.6)


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['mode']} {row['loss']} {row['next_epoch'].split()[0]}"
)
def test_the_model_and_we_agree(row: Row) -> None:
    config, trials = _config(row), FEW_TRIALS if row["loss"] >= 0.9 else TRIALS
    lives = [two_node(config, mvds_id_of, loss=row["loss"], seed=seed) for seed in range(trials)]
    over: list[OneMessage] = [life for life in lives if life.stop_epoch is not None]
    share_over = row["completed"] / row["trials"]
    margin = STANDARD_ERRORS * sqrt(share_over * (1 - share_over) / trials) + 0.01
    assert abs(len(over) / trials - share_over) <= margin
    assert _mean_agrees(
        [life.message_copies for life in over], row["message_copies_mean"], row["completed"]
    )
    assert _mean_agrees([life.payloads for life in over], row["payloads_mean"], row["completed"])
    received = [life.receive_epoch for life in over if life.receive_epoch is not None]
    stopped = [life.stop_epoch for life in over if life.stop_epoch is not None]
    assert len(received) == len(over)
    assert _median_agrees(received, row["receive_epoch_p50"])
    assert _median_agrees(stopped, row["stop_epoch_p50"])


def test_the_doubling_back_off_is_status_gos() -> None:
    table = _rows("statusgo_backoff.json", "table")
    assert len(table) == 16
    for row in table:
        assert doubling(row["send_count"], lambda: 0.0) == row["delay_epochs_min"]


def test_a_lossless_link_is_exact() -> None:
    for mode, receive_epoch, stop_epoch, payloads in (
        (Mode.BATCH, 1, 2, 2),
        (Mode.INTERACTIVE, 3, 4, 4),
    ):
        life = two_node(MvdsConfig.spec_model(mode), mvds_id_of, loss=0.0, seed=1)
        assert life == OneMessage(
            receive_epoch=receive_epoch,
            stop_epoch=stop_epoch,
            message_copies=1,
            payloads=payloads,
        )
