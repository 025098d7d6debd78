"""A long conversation, killed again and again while its log is read at the start.

A start reads the index that was kept, or makes it if there is none, or from where it is damaged.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.scale_profile import make_profile
from engine.persistence.database import open_database
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import open_profile_directory
from tests.processes.conftest import AppProcess

TEXTS = 40_000
KILLS = 100
LOADED_AFTER_S = 0.8
"""Longer than it takes to read the log, so that some are killed before and some after."""
KEPT: tuple[str, ...] = ()
MISSING: tuple[str, ...] = (
    "DELETE FROM log_index", "DELETE FROM log_pages", "DELETE FROM log_buckets",
    "DELETE FROM log_author", "DELETE FROM log_late",
)  # fmt: skip
HALF = "(SELECT max(number) / 2 FROM log_pages)"
DAMAGED: tuple[str, ...] = (f"UPDATE log_pages SET data = zeroblob(8) WHERE number = {HALF}",)  # noqa: S608
"""What is done to the index before a start."""


def rows_kept(place: Path, statements: tuple[str, ...]) -> int:
    """How many rows of the log the last start left in the index; then ``statements``."""
    directory = open_profile_directory(place)
    key = obtain_database_key(directory, force_key_file=True).key
    connection = open_database(directory.database, key)
    row = connection.execute("SELECT sum(rows) FROM log_index").fetchone()
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return row[0] or 0


@pytest.mark.long
def test_killed_a_hundred_times_while_its_log_is_read_nothing_is_lost_or_doubled(
    tmp_path: Path, start_app: Callable[..., AppProcess]
) -> None:
    place = tmp_path / "Ines"
    (group,) = make_profile(place, 1, TEXTS)
    rng, saved, made = random.Random(17), list[str](), list[bool]()
    ines = start_app("Ines")
    before = MISSING
    for number in range(KILLS):
        ines.tell(do="say", group=group, text=f"said at start {number}")
        said = ines.until_killed(within_s=LOADED_AFTER_S * rng.random() ** 2)
        saved += [line["text"] for line in said if line.get("answer") == "saved"]
        again = (KEPT, MISSING, DAMAGED)[number % 3]
        rows = rows_kept(place, again)
        if before is MISSING:
            made.append(rows > TEXTS // 2)
        before = again
        ines.start()
    assert 0 < len(saved) < KILLS, "killed before as well as after it was saved"
    assert 0 < sum(made) < len(made), "killed before as well as after the index was made"
    texts = ines.ask("log", do="log", group=group)["texts"]
    assert len(texts) == len(set(texts))
    assert [text for text in texts if text in set(saved)] == saved
    assert sum(" a short text" in text for text in texts) == TEXTS
    assert ines.stop() == 0
