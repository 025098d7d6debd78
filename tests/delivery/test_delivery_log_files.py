"""Log files: bounded, gone on with, readable at any time, and hostile ones refused in words."""

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import StorageError
from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_SNAPSHOT,
    MEMBERSHIP,
    MESSAGE,
    SCHEMA_VERSION,
)
from engine.delivery.log_writer import Limits, LogWriter, Owner, usable_rows
from engine.delivery.rows import EventRow, MembershipRow, MessageRow, Rows, SnapshotRow
from engine.delivery.sqlite_log import DeliveryLogError, LogReader, find_logs

OWNER = Owner(participant="0123456789abcdef", key_id="b" * 16, app_version="1.0", network="test")
SMALL = Limits(file_bytes=100_000, total_bytes=350_000)
ROOT = Path(__file__).resolve().parents[2]


def _writer(place: Path, owner: Owner = OWNER, limits: Limits | None = None) -> LogWriter:
    return LogWriter(
        place,
        owner,
        limits=limits or Limits(),
        now_ms=lambda: 1_000,
        random_bytes=os.urandom,
    )


def _events(count: int, first: int = 0) -> Rows:
    return Rows(events=[EventRow(kind="acked", at_ms=n) for n in range(first, first + count)])


def _log(place: Path) -> Path:
    """A good one with ten events."""
    writer = _writer(place)
    writer.append(_events(10))
    writer.close()
    return writer.path


def _seqs(path: Path, **bounds: int) -> list[object]:
    with LogReader(path) as log:
        return [row[0] for batch in log.batches(DELIVERY_EVENT, ["seq"], **bounds) for row in batch]


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    assert _log(tmp_path) == _log(tmp_path)
    assert not list(tmp_path.glob("*-wal")), "closed, it is one file"
    (path,) = find_logs(tmp_path)
    assert _seqs(path) == list(range(1, 21))


def test_another_version_network_or_key_begins_a_file_of_its_own(tmp_path: Path) -> None:
    first = _log(tmp_path)
    newer = Owner(participant=OWNER.participant, key_id="b" * 16, app_version="1.1", network="test")
    writer = _writer(tmp_path, newer)
    writer.append(_events(3))
    writer.close()
    assert _seqs(writer.path) == [1, 2, 3]
    with LogReader(first) as one, LogReader(writer.path) as other:
        assert one.header.log_id != other.header.log_id
        assert other.header.previous_log_id == one.header.log_id
        assert other.header.app_version == "1.1"


def test_full_files_are_followed_by_others_and_the_oldest_go(tmp_path: Path) -> None:
    writer = _writer(tmp_path, limits=SMALL)
    rotations = 0
    for number in range(300):
        rotations += writer.append(_events(100, number * 100))
        assert sum(path.stat().st_size for path in find_logs(tmp_path)) <= SMALL.total_bytes
    writer.close()
    files = find_logs(tmp_path)
    assert rotations > len(files) > 1
    assert OWNER.participant in files[0].name
    assert not (tmp_path / f"{OWNER.participant}-000001.delivery.db").exists()
    headers = []
    for path in files:
        assert _seqs(path) == list(range(1, len(_seqs(path)) + 1))
        with LogReader(path) as log:
            headers.append(log.header)
    for one, other in itertools.pairwise(headers):
        assert other.previous_log_id == one.log_id


def test_a_stranger_s_files_are_left_alone(tmp_path: Path) -> None:
    stranger = Owner(participant="f" * 16, key_id="b" * 16, app_version="1", network="test")
    writer = _writer(tmp_path, stranger)
    writer.append(_events(10))
    writer.close()
    mine = _writer(tmp_path, limits=SMALL)
    for _ in range(100):
        mine.append(_events(100))
    mine.close()
    assert _seqs(writer.path) == list(range(1, 11))


def test_it_is_read_while_it_is_written_and_from_where_one_was(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    writer.append(_events(5))
    with LogReader(writer.path) as log:
        assert log.last_seq() == 5
        writer.append(_events(7))
        assert log.last_seq() == 12
    assert _seqs(writer.path, after_seq=5) == list(range(6, 13))
    assert _seqs(writer.path, after_seq=5, through_seq=8) == [6, 7, 8]
    writer.close()


def test_numbers_that_no_event_may_have_are_read_too_and_are_a_problem(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    writer.append(_events(3))
    writer.close()
    with closing(sqlite3.connect(writer.path)) as log, log:
        log.execute("UPDATE delivery_event SET seq = -seq WHERE seq < 3")
    with LogReader(writer.path) as log_reader:
        assert [problem for _, problem in log_reader.checked()] == ["seq.range"] * 2 + [None]
        assert log_reader.last_seq() == 3
    with closing(sqlite3.connect(writer.path)) as log, log:
        log.execute("DELETE FROM delivery_event WHERE seq > 0")
    with LogReader(writer.path) as log_reader, pytest.raises(DeliveryLogError) as raised:
        log_reader.last_seq()
    assert raised.value.reason == "corrupt"


def test_after_kill_nine_all_that_was_committed_is_there(tmp_path: Path) -> None:
    script = Path(__file__).with_name("recording_process.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(40)][-1]
    process.kill()
    process.wait()
    process.stdout.close()
    (path,) = find_logs(tmp_path)
    seqs = _seqs(path)
    assert len(seqs) >= told
    assert len(seqs) % 50 == 0, "no part of a commit"
    assert seqs == list(range(1, len(seqs) + 1))


def test_a_snapshot_replaces_the_channel_s_older_one_only(tmp_path: Path) -> None:
    def snapshot(channel: str, count: int, at_ms: int) -> Rows:
        rows = [SnapshotRow(channel, "sds", at_ms, n, f"m{n}", n, n) for n in range(count)]
        return Rows(snapshots=rows)

    writer = _writer(tmp_path)
    for rows in (snapshot("c1", 5, 1), snapshot("c2", 2, 2), snapshot("c1", 3, 3)):
        writer.append(rows)
    writer.close()
    with LogReader(writer.path) as log:
        names = ["channel", "snapshot_ms", "position"]
        found = [row for batch in log.batches(LOG_SNAPSHOT, names) for row in batch]
    assert sorted(found) == [("c1", 3, 0), ("c1", 3, 1), ("c1", 3, 2), ("c2", 2, 0), ("c2", 2, 1)]


def test_what_is_learnt_of_a_message_later_is_filled_in(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    bare = MessageRow("c", "sds", "m", 7, 1, "s", None, None, None)
    for learnt in (
        bare,
        bare._replace(parents='["p"]', parent_mids="[9]"),
        bare._replace(sent_ms=5, content="one"),
        bare._replace(content="other"),
    ):
        writer.append(Rows(messages=[learnt]))
    writer.close()
    with LogReader(writer.path) as log:
        ((row, problem),) = log.checked(MESSAGE)
    assert list(row[-4:]) == [5, ["p"], [9], "one"]
    assert problem is None


def test_rows_that_no_file_takes_are_found(tmp_path: Path) -> None:
    bad = [EventRow(kind="acked", lamport=2**63), EventRow(kind="acked", message_id="\ud800")]
    writer = _writer(tmp_path)
    with pytest.raises(StorageError):
        writer.append(Rows(events=[*bad, EventRow(kind="acked")]))
    writer.append(usable_rows(Rows(events=[*bad, EventRow(kind="acked")])))
    writer.close()
    assert _seqs(writer.path) == [1]


# --- files from anywhere --------------------------------------------------------------------------


def _truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _scribbled(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x7f" * (len(data) - 4096)
    path.write_bytes(data)


def _sql(*statements: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    return change


@pytest.mark.parametrize(
    ("reason", "spoil"),
    [
        ("absent", Path.unlink),
        ("not_a_log", lambda path: path.write_bytes(b"")),
        ("not_a_log", lambda path: path.write_bytes(b"no database at all" * 100)),
        ("not_a_log", _sql("PRAGMA application_id = 7")),
        ("version", _sql(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")),
        ("corrupt", _truncated),
        ("corrupt", _scribbled),
        ("corrupt", _sql("DROP TABLE message")),
        ("corrupt", _sql("DELETE FROM log")),
        ("corrupt", _sql("UPDATE log SET participant = 'much too long to be a pseudonym'")),
        ("corrupt", _sql("DROP TABLE message", "CREATE VIEW message AS SELECT 1")),
        ("corrupt", _sql("DROP TABLE delivery_event", "CREATE TABLE delivery_event (a)")),
    ],
)
def test_what_is_no_usable_log_is_refused_with_file_and_reason(
    tmp_path: Path, reason: str, spoil: Callable[[Path], object]
) -> None:
    path = _log(tmp_path)
    spoil(path)
    with pytest.raises(DeliveryLogError) as refused:
        _seqs(path)
    assert refused.value.reason == reason
    assert str(path) in str(refused.value)


def test_a_locked_log_is_refused(tmp_path: Path) -> None:
    path = _log(tmp_path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(DeliveryLogError) as refused:
            _seqs(path)
        assert refused.value.reason == "locked"
    finally:
        other.close()


def test_rows_that_somebody_else_wrote_are_judged_one_by_one(tmp_path: Path) -> None:
    path = _log(tmp_path)
    _sql(
        "UPDATE delivery_event SET kind = 'invented' WHERE seq = 2",
        "UPDATE delivery_event SET at_ms = -5 WHERE seq = 3",
        "UPDATE delivery_event SET waku_hash = x'00' WHERE seq = 4",
        "UPDATE delivery_event SET detail = printf('%.100c', 'x') WHERE seq = 5",
        "INSERT INTO message VALUES ('0123456789ab', 'sds', 'm', 1, 1, 's', 1, '[1', '[]', NULL)",
        "INSERT INTO message VALUES ('0123456789ab', 'sds', 'n', 1, 1, 's', 1, '[1]', '[]', NULL)",
    )(path)
    with LogReader(path) as log:
        found = [problem for _, problem in log.checked()]
        messages = [problem for _, problem in log.checked(MESSAGE)]
    assert found[:6] == [
        None,
        "kind.choice",
        "at_ms.range",
        "waku_hash.length",
        "detail.length",
        None,
    ]
    assert messages == ["parents.type", "parents.type"]


def test_the_writer_leaves_a_damaged_file_and_begins_another(tmp_path: Path) -> None:
    spoilt = _log(tmp_path)
    _scribbled(spoilt)
    before = spoilt.read_bytes()
    writer = _writer(tmp_path)
    writer.append(_events(2))
    writer.close()
    assert spoilt.read_bytes() == before
    assert _seqs(writer.path) == [1, 2]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_flipped_bytes_get_anything_but_rows_or_an_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("flipped")
    try:
        path = _log(place)
        raw = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 30))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(raw)
        try:
            with LogReader(path) as log:
                assert all(problem is None or "." in problem for _, problem in log.checked())
        except DeliveryLogError as error:
            assert error.reason in {"not_a_log", "corrupt", "version", "unreadable"}  # noqa: PT017
    finally:
        shutil.rmtree(place)


def test_every_stay_of_a_member_is_kept(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    for joined_ms, left_ms in ((5, None), (5, 8), (9, None)):
        stay = MembershipRow("c", "sds", "ada", joined_ms, left_ms)
        writer.append(Rows(memberships=[stay]))
    writer.close()
    with LogReader(writer.path) as log:
        found = [row[-2:] for row, _ in log.checked(MEMBERSHIP)]
    assert found == [(5, 8), (9, None)]


def test_a_log_of_an_earlier_version_is_read_and_not_continued(tmp_path: Path) -> None:
    """It has no digest of what a message says."""
    path = _log(tmp_path)
    _sql(
        "INSERT INTO message VALUES ('c', 'sds', 'm', 1, 1, 's', 1, '[]', '[]', NULL)",
        "ALTER TABLE message DROP COLUMN content",
        "PRAGMA user_version = 1",
        "UPDATE log SET schema_version = 1",
    )(path)
    with LogReader(path) as log:
        ((row, problem),) = log.checked(MESSAGE)
        assert (row[-1], problem) == (None, None)
    with LogReader(path) as log:
        assert log.header.schema_version == 1
        assert log.last_seq() > 0
        before = log.last_seq()
    assert _log(tmp_path) != path
    with LogReader(path) as log:
        assert log.last_seq() == before
