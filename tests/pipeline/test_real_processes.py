"""Did everyone end up with the same conversation?  Real processes, asked by their own logs.

Three applications, five in the long run, each with its profile on disk and a node on a socket, chat
in one group over a network that loses, delays, doubles and reorders what arrives.  What they
recorded goes through the command's own code, which says that all logs are identical.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.delivery.contract import DELIVERY_EVENT, Kind
from engine.delivery.pseudonym import key_text
from engine.delivery.sqlite_log import LogReader, find_logs
from pipeline.cli import Command, parser
from tests.processes.conftest import AppProcess

NAMES = ("alice", "bob", "carol", "dave", "erin")
KEY = key_text(bytes(range(1, 33)))
FAULTS = "loss=0.2,delay=5..80ms,dup=0.1,reorder=0.1,seed=7"
EACH = 16
AT_ONCE = 8
"""So many each says without a pause, all at the same time."""
PATIENCE_S = 300
LOOK_AGAIN_S = 0.5


@pytest.fixture(params=[3, pytest.param(len(NAMES), marks=pytest.mark.long)])
def apps(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[AppProcess]]:
    """Running; whatever still runs at the end is stopped."""
    started: list[AppProcess] = []
    try:
        names = NAMES[: request.param]
        started += (AppProcess(tmp_path / name, name, FAULTS, delivery_key=KEY) for name in names)
        yield started
    finally:
        for app in started:
            if app.is_running:
                app.kill()


def test_processes_agree(
    apps: list[AppProcess],
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs, many = tmp_path / "logs", len(apps)
    chat(apps)
    collect(apps, logs)

    code = audit(spark, logs, tmp_path / "agreed")
    told = capsys.readouterr()
    assert (code, told.err) == (0, ""), told.out
    assert f"{many} logs of channels: {many} agree, 0 differ" in told.out
    assert told.out.count("  identical  ") == many


# --- the conversation -----------------------------------------------------------------------------


def chat(apps: Sequence[AppProcess]) -> None:
    """Until everybody has everything, by their own logs; then all end."""
    first, *others = apps
    created = first.ask("created", do="create", name="Tide")
    group: str = created["group"]
    for app in others:
        app.ask("joined", do="join", link=created["link"])
    for _ in others:
        first.wait(lambda line: line.get("kind") == "joined" and line.get("event") == "message")
    before = {message_id for app in apps for message_id in ids_in(app, Kind.DELIVERED)}
    for start in range(0, EACH, AT_ONCE):
        for number in range(start, start + AT_ONCE):
            for app in apps:
                app.tell(do="say", group=group, text=f"{app.name} {number}")
        for app in apps:
            for _ in range(AT_ONCE):
                app.wait(lambda line: line.get("answer") == "saved")
    until(lambda: is_settled(apps, before), "everybody has everything")
    for app in apps:
        assert app.stop() == 0


def is_settled(apps: Sequence[AppProcess], before: set[str]) -> bool:
    said = {message_id for app in apps for message_id in ids_in(app, Kind.SENT)} - before
    return len(said) >= EACH * len(apps) and all(
        said <= set(ids_in(app, Kind.DELIVERED)) for app in apps
    )


def ids_in(app: AppProcess, kind: Kind) -> list[str]:
    """What a log tells while it is written."""
    (path,) = find_logs(app.directory / "delivery")
    with LogReader(path) as log:
        rows = [row for rows in log.batches(DELIVERY_EVENT, ["kind", "message_id"]) for row in rows]
    return [str(message_id) for told, message_id in rows if told == kind.value]


def until(holds: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s, f"not in {PATIENCE_S} s: {what}"
        time.sleep(LOOK_AGAIN_S)


# --- logs -----------------------------------------------------------------------------------------


def collect(apps: Sequence[AppProcess], place: Path) -> None:
    """As a tester does who was sent them."""
    place.mkdir()
    for app in apps:
        for path in find_logs(app.directory / "delivery"):
            shutil.copy(path, place)
    assert len(find_logs(place)) == len(apps)


def audit(spark: SparkSession, logs: Path, out: Path) -> int:
    asked = parser().parse_args(["audit", str(logs), "--out", str(out)])
    command: Command = asked.command
    return command.run(asked, spark)
