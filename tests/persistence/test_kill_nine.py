"""kill -9 at random moments: what was shown as saved is there, and nothing is there by half."""

import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.core.ids import InstanceId
from engine.persistence.lock import ProfileLock
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import FUTURE, GROUP, INSTANCE

REPOSITORY = Path(__file__).parents[2]


def save_until_killed(profile: Path, first: int, count: int, after_ms: float) -> int:
    """Killed so long after it said so many; the last number that it said was saved."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.persistence.saving_process", str(profile), str(first)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        lines = [process.stdout.readline() for _ in range(count)]
        timer = threading.Timer(after_ms / 1000, process.kill)
        timer.start()
        lines += process.stdout.readlines()
        timer.join()
    assert process.returncode == -signal.SIGKILL
    complete = [int(line) for line in lines if line.endswith("\n")]
    assert complete == list(range(first, first + len(complete)))
    return first + len(complete) - 1


def check_nothing_is_half_there(store: SqliteProfileStore) -> int:
    """Every trace of a transition agrees; returns the last number found."""
    state = store.channel_state(GROUP)
    count = len(state.outgoing)
    numbers = list(range(count))
    again = [FUTURE + count - 1] if count else []
    lamports = [entry.position.lamport_timestamp for entry in state.log]
    assert lamports == [*numbers, *again], "of those that were said again only the last is left"
    assert [entry.message_id for entry in state.outgoing] == [
        entry.position.message_id for entry in state.log[:count]
    ]
    assert [one.lamport_timestamp for one in state.replaced] == numbers
    page = store.latest_page(GROUP, limit=1)
    assert page.total == len(state.log)
    assert store.summary(GROUP).waiting_to_send == len(state.log)
    own = store.own_sequence(GROUP, InstanceId(INSTANCE))
    if count:
        assert state.lamport_timestamp == count - 1
        assert own is not None
        assert own.sequence == count - 1
        ids = [entry.position.message_id for entry in state.log[:count]]
        assert {store.raw(GROUP, each) for each in ids} == {b"hello"}, "also those in blocks"
    return count - 1


@pytest.mark.parametrize("kills", [8, pytest.param(200, marks=pytest.mark.long)])
def test_killed_at_random_moments_nothing_saved_is_lost(
    tmp_path: Path, key: bytes, kills: int
) -> None:
    moments = random.Random(20261120)
    directory = open_profile_directory(tmp_path / "alice")
    said, kept = -1, -1
    for _ in range(kills):
        count, after_ms = moments.randrange(12), moments.uniform(0, 50)
        said = save_until_killed(directory.path, kept + 1, count, after_ms)
        with ProfileLock(directory):  # a killed holder leaves no lock
            store = SqliteProfileStore.open(directory.database, key)
            kept = check_nothing_is_half_there(store)
            store.close()
        assert said <= kept <= said + 1, "one more may have been saved but not yet said"
    assert kept > kills, "the kills did not all come before the first save"
