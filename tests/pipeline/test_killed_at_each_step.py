"""A run that is killed, whatever it is at, has never happened; and the next one goes on from there.

Driver and Java die at once, with no chance to put anything right, as soon as the next table has
appeared below ``--out``.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.delivery.contract import DELIVERY_EVENT, LOG_SNAPSHOT
from pipeline.tables import AREAS
from pipeline.tables.local import MANIFEST
from tests.pipeline.log_files import event, header, snapshot, write_log
from tests.pipeline.test_tables import SILVER, five_logs

STEPS = ("bronze/message", *(f"silver/{name}" for name in SILVER), "audit/verdicts")
COMMAND = (sys.executable, "-m", "pipeline", "audit")
LOOK_AGAIN_S = 0.01


def killed_at(step: str, logs: Path, out: Path) -> bool:
    """Whether it came that far before it was done."""
    place = out / step
    before = set(place.glob("*"))
    with subprocess.Popen(
        [*COMMAND, logs, "--out", out, "--master", "local[2]"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as run:
        while run.poll() is None:
            if set(place.glob("*")) - before:
                os.killpg(run.pid, signal.SIGKILL)
                return True
            time.sleep(LOOK_AGAIN_S)
    return False


def told(logs: Path, out: Path) -> str:
    done = subprocess.run(
        [*COMMAND, logs, "--out", out, "--master", "local[2]"],
        check=False,
        text=True,
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 1, done.stderr
    return done.stdout.partition("\n")[2] + done.stderr


def of_another_key(place: Path) -> None:
    """It takes no part: so ``event`` and ``entry`` are not all that was read, and are written."""
    tables = {
        DELIVERY_EVENT: [event(1, "delivered", message_id="m1", lamport=10, position=0)],
        LOG_SNAPSHOT: snapshot([(10, "m1")]),
    }
    write_log(place / "fay.delivery.db", header("fay", key_id="f" * 16), tables)


@pytest.mark.long
def test_killed_at_each_step_it_comes_to_the_same(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    five_logs(logs)
    of_another_key(logs)
    assert [step for step in STEPS if not killed_at(step, logs, out)] == []
    assert told(logs, out) == told(logs, tmp_path / "undisturbed")
    head = (out / MANIFEST).read_text(encoding="utf-8")
    parts = [path.name for area in AREAS for path in (out / area).glob("*/*")]
    assert [name for name in parts if name not in head] == []
