"""Did everyone end up with the same conversation?  Real processes, asked by their own logs.

Three applications, five in the long run, each with its profile on disk and a node on a socket, chat
in one group over a network that loses, delays, doubles and reorders what arrives.  What they
recorded goes through the command's own code: it says that all logs are identical; and where some
have been tampered with, whose these are and what was done to them.
"""

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.delivery.contract import DELIVERY_EVENT, Kind
from engine.delivery.pseudonym import key_text
from engine.delivery.sqlite_log import LogReader, find_logs
from pipeline.cli import Command, parser
from tests.pipeline.log_files import remove_entry, swap_entries
from tests.processes.conftest import AppProcess

NAMES = ("alice", "bob", "carol", "dave", "erin")
KEY = key_text(bytes(range(1, 33)))
FAULTS = "loss=0.2,delay=5..80ms,dup=0.1,reorder=0.1,seed=7"
EACH = 16
AT_ONCE = 8
"""So many each says without a pause, all at the same time."""
PATIENCE_S = 300
LOOK_AGAIN_S = 0.5


FROM = 20
"""The place in the conversation from which logs are tampered with."""
SHORT = 12
"""So much of a name is shown."""
FEW, MANY = 3, pytest.param(len(NAMES), marks=pytest.mark.long)


@pytest.fixture(scope="module")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of so many applications that chatted and ended; none of them is changed by a test."""
    place = tmp_path_factory.mktemp("recorded")
    with running(place, NAMES[: request.param]) as apps:
        chat(apps)
        collect(apps, place / "logs")
    return place / "logs"


@contextmanager
def running(place: Path, names: Sequence[str]) -> Iterator[list[AppProcess]]:
    """Whatever still runs at the end is stopped."""
    started: list[AppProcess] = []
    try:
        started += (AppProcess(place / name, name, FAULTS, delivery_key=KEY) for name in names)
        yield started
    finally:
        for app in started:
            if app.is_running:
                app.kill()


@pytest.mark.parametrize("recorded", [FEW, MANY], indirect=True)
def test_processes_agree(
    recorded: Path, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = len(find_logs(recorded))
    code = audit(spark, recorded, tmp_path / "agreed")
    told = capsys.readouterr()
    assert (code, told.err) == (0, ""), told.out
    assert f"{many} logs of channels: {many} agree, 0 differ" in told.out
    assert told.out.count("  identical  ") == many


# --- changed afterwards ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Tampering:
    """What somebody did to one log before handing it in, and what an audit has to say of it."""

    name: str
    change: Callable[[Path], Sequence[str]]
    """The ids of the messages that it is about."""
    verdict: str
    said: str
    """For each of these."""
    notice: str = ""
    """In a line that names the file."""
    code: int = 1


def under_another_key(path: Path) -> Sequence[str]:
    changed(path, "UPDATE log SET key_id = 'f000000000000000'")
    return ()


def dropped(path: Path) -> Sequence[str]:
    """A message is taken out, and with it all that the log told of it."""
    taken = remove_entry(path, place_of_anothers(path))
    changed(path, "DELETE FROM delivery_event WHERE message_id = ?", taken)
    return (taken,)


def gone(path: Path) -> Sequence[str]:
    """Only out of the conversation; that it had been delivered is still told."""
    return (remove_entry(path, place_of_anothers(path)),)


def other_words(path: Path) -> Sequence[str]:
    about = id_at(path, place_of_anothers(path))
    changed(path, "UPDATE message SET content = '0123456789abcdef' WHERE message_id = ?", about)
    return (about,)


def moved(path: Path) -> Sequence[str]:
    """Two neighbours, of which the later does not depend on the earlier."""
    return swap_entries(path, place_before_a_stranger(path))


TAMPERINGS = (
    Tampering(
        "another key",
        under_another_key,
        "not comparable",
        "",
        "it was recorded under another key than most: it is compared with none",
        code=3,
    ),
    Tampering(
        "dropped events",
        dropped,
        "missing",
        "missing: {} at place",
        "numbers of events are left out: it was not observed live as a whole",
    ),
    Tampering("gone", gone, "missing", "missing: {} at place"),
    Tampering("other words", other_words, "conflict", "conflict: {} at place"),
    Tampering("moved", moved, "reordered", "reordered: {} at place"),
)


@pytest.mark.parametrize("recorded", [MANY], indirect=True)
@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda tampering: tampering.name)
def test_one_log_that_was_tampered_with_is_named(
    recorded: Path,
    tampering: Tampering,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(recorded, logs)
    path, *others = find_logs(logs)
    about = tampering.change(path)
    code = audit(spark, logs, tmp_path / "out")
    told = capsys.readouterr()
    assert_named(told.out, tampering, path, about)
    assert told.out.count("  identical  ") == len(others)
    assert [line for line in told.err.splitlines() if f"{path}: " not in line] == []
    assert tampering.notice in told.err
    assert bool(told.err) == bool(tampering.notice)
    assert code == tampering.code


@pytest.mark.parametrize("recorded", [FEW], indirect=True)
def test_two_logs_that_were_tampered_with_are_told_apart(
    recorded: Path, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(recorded, logs)
    done = [one for one in TAMPERINGS if one.change in {dropped, moved}]
    tampered = [
        (one, path, one.change(path)) for one, path in zip(done, find_logs(logs), strict=False)
    ]
    assert audit(spark, logs, tmp_path / "out") == 1
    told = capsys.readouterr()
    for tampering, path, about in tampered:
        assert_named(told.out, tampering, path, about)
    assert told.out.count("  identical  ") == 1
    assert "this log says nothing of it, and lacks rows: what happened is not known" in told.out


def assert_named(told: str, tampering: Tampering, path: Path, about: Sequence[str]) -> None:
    with LogReader(path) as log:
        owner = log.header.participant[:SHORT]
    assert f"  {owner}  {tampering.verdict}" in told, told
    for message_id in about:
        assert tampering.said.format(message_id) in told, told


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


def place_of_anothers(path: Path) -> int:
    """Of a message that somebody else wrote."""
    return int(
        the_one(
            path,
            "SELECT min(position) FROM log_snapshot JOIN message USING (channel, message_id)"
            " WHERE position >= ? AND sender <> (SELECT participant FROM log)",
            FROM,
        )
    )


def place_before_a_stranger(path: Path) -> int:
    """Of a message that the one after it does not name among its parents."""
    return int(
        the_one(
            path,
            "SELECT min(one.position) FROM log_snapshot AS one"
            " JOIN log_snapshot AS next ON next.position = one.position + 1"
            " JOIN message ON message.message_id = next.message_id"
            " WHERE one.position >= ? AND instr(message.parents, one.message_id) = 0",
            FROM,
        )
    )


def id_at(path: Path, position: int) -> str:
    return the_one(path, "SELECT message_id FROM log_snapshot WHERE position = ?", position)


def the_one(path: Path, asked: str, *values: int) -> str:
    with closing(sqlite3.connect(path)) as log:
        ((found,),) = log.execute(asked, values).fetchall()
    return str(found)


def changed(path: Path, statement: str, *values: str) -> None:
    with closing(sqlite3.connect(path)) as log, log:
        assert log.execute(statement, values).rowcount > 0


def audit(spark: SparkSession, logs: Path, out: Path) -> int:
    asked = parser().parse_args(["audit", str(logs), "--out", str(out)])
    command: Command = asked.command
    return command.run(asked, spark)
