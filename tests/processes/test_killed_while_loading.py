"""A long conversation, killed again and again while its log is read at the start."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.scale_profile import make_profile
from tests.processes.conftest import AppProcess

TEXTS = 40_000
KILLS = 100
LOADED_AFTER_S = 0.8
"""Longer than it takes to read the log, so that some are killed before and some after."""


@pytest.mark.long
def test_killed_a_hundred_times_while_its_log_is_read_nothing_is_lost_or_doubled(
    tmp_path: Path, start_app: Callable[..., AppProcess]
) -> None:
    (group,) = make_profile(tmp_path / "Ines", 1, TEXTS)
    rng, saved = random.Random(17), list[str]()
    ines = start_app("Ines")
    for number in range(KILLS):
        ines.tell(do="say", group=group, text=f"said at start {number}")
        said = ines.until_killed(within_s=LOADED_AFTER_S * rng.random() ** 2)
        saved += [line["text"] for line in said if line.get("answer") == "saved"]
        ines.start()
    assert 0 < len(saved) < KILLS, "killed before as well as after it was saved"
    texts = ines.ask("log", do="log", group=group)["texts"]
    assert len(texts) == len(set(texts))
    assert [text for text in texts if text in set(saved)] == saved
    assert sum(" a short text" in text for text in texts) == TEXTS
    assert ines.stop() == 0
