"""The recorder never waits and never hides: what is dropped or refused is a row of its own."""

import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import pytest

from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.delivery.contract import DELIVERY_EVENT, Protocol
from engine.delivery.log_writer import LogWriter
from engine.delivery.recorder import Recorder, RecorderSettings
from engine.delivery.row_builder import RowBuilder, Which
from engine.delivery.rows import Rows
from engine.delivery.sqlite_log import LogReader, find_logs
from engine.delivery.steps import Refused
from tests.patience import PATIENCE_S

WHICH = Which(ConversationId("c"), Protocol.SDS)
ME = ParticipantId("a" * 32)


def _recorder(place: Path, *, max_pending: int = 100) -> Recorder:
    return Recorder(
        RecorderSettings(
            directory=place,
            key=bytes(32),
            app_version="1",
            network="test",
            max_pending=max_pending,
            linger_ms=1,
        ),
        now_ms=lambda: UnixMs(5_000),
        random_bytes=os.urandom,
    )


def _rows(place: Path) -> list[tuple[object, ...]]:
    (path,) = find_logs(place)
    with LogReader(path) as log:
        return [
            row
            for batch in log.batches(DELIVERY_EVENT, ["seq", "kind", "amount", "detail"])
            for row in batch
        ]


def _tell(recorder: Recorder, reason: str) -> None:
    recorder.took(WHICH, (Refused(UnixMs(1), reason),), ())


def test_a_full_queue_drops_counts_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, go_on, real = threading.Event(), threading.Event(), RowBuilder.all_begun

    def wait(book: RowBuilder) -> None:
        busy.set()
        assert go_on.wait(PATIENCE_S)
        real(book)

    monkeypatch.setattr(RowBuilder, "all_begun", wait)
    recorder = _recorder(tmp_path, max_pending=10)
    recorder.begin(ME)
    recorder.before_ends()
    assert busy.wait(PATIENCE_S)
    for number in range(15):
        _tell(recorder, f"r{number}")
    assert recorder.dropped == 5
    go_on.set()
    assert recorder.flush()
    assert recorder.close()
    rows = _rows(tmp_path)
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    assert [row[2] for row in rows if row[1] == "gap"] == [5]
    assert [row[3] for row in rows if row[1] == "rejected"] == [f"r{n}" for n in range(10)]


def test_who_waits_while_earlier_rows_are_written_is_told_when_theirs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, asked, go_on, real = *(threading.Event() for _ in range(3)), LogWriter.append

    def wait(writer: LogWriter, rows: Rows) -> bool:
        busy.set()
        assert go_on.wait(PATIENCE_S)
        return real(writer, rows)

    class Calls(SimpleQueue[object]):
        def put(self, call: object, block: bool = True, timeout: float | None = None) -> None:
            super().put(call, block, timeout)
            if busy.is_set():
                asked.set()

    monkeypatch.setattr(LogWriter, "append", wait)
    monkeypatch.setattr("engine.delivery.recorder.SimpleQueue", Calls)
    recorder = _recorder(tmp_path)
    recorder.begin(ME)
    assert busy.wait(PATIENCE_S)
    with ThreadPoolExecutor() as others:
        written = others.submit(recorder.flush)
        assert asked.wait(PATIENCE_S)
        go_on.set()
        assert written.result()
    assert recorder.close()


def test_what_the_disk_refuses_is_counted_and_told_when_it_takes_rows_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "not a directory yet"
    place.write_bytes(b"")
    recorder = _recorder(place)
    recorder.begin(ME)
    for number in range(3):
        _tell(recorder, f"lost{number}")
        assert recorder.flush()
    lost = recorder.dropped
    assert lost == 4, "three, and that recording began"
    assert len([one for one in caplog.records if one.levelname == "WARNING"]) == 1
    place.unlink()
    _tell(recorder, "kept")
    assert recorder.close()
    rows = _rows(place)
    assert [row[1] for row in rows] == ["gap", "rejected", "stopped"]
    assert rows[0][2] == lost


def test_a_mistake_in_a_row_costs_that_row_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_book: RowBuilder) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(RowBuilder, "all_begun", fail)
    recorder = _recorder(tmp_path)
    recorder.begin(ME)
    recorder.before_ends()
    _tell(recorder, "kept")
    assert recorder.close()
    kinds = [str(row[1]) for row in _rows(tmp_path)]
    # A gap stands before what is written with it: `started` may have been written already.
    assert sorted(kinds) == ["gap", "rejected", "started", "stopped"]
    assert kinds.index("gap") < kinds.index("rejected")


def test_before_it_knows_whose_it_is_nothing_is_written(tmp_path: Path) -> None:
    recorder = _recorder(tmp_path)
    _tell(recorder, "nobody's")
    recorder.network(online=True, edge=True)
    assert recorder.flush()
    assert recorder.close()
    assert find_logs(tmp_path) == []


def test_a_full_disk_stops_the_recording_and_it_goes_on_once_there_is_room(tmp_path: Path) -> None:
    told: SimpleQueue[bool] = SimpleQueue()
    recorder = _recorder(tmp_path)
    recorder.begin(ME, on_failing=told.put)
    _tell(recorder, "kept")
    assert recorder.flush()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))  # As if no byte more had room.
    try:
        for number in range(5):
            _tell(recorder, f"lost{number}")
            assert recorder.flush()
        assert recorder.is_failing
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    lost = recorder.dropped
    assert lost == 5
    assert recorder.flush(), "a flush tries again"
    assert recorder.close()
    assert [told.get_nowait(), told.get_nowait(), told.empty()] == [True, False, True]
    rows = _rows(tmp_path)
    assert [row[1] for row in rows] == ["started", "rejected", "gap", "stopped"]
    assert rows[2][2] == lost


def test_a_file_that_cannot_be_begun_is_not_left_behind(tmp_path: Path) -> None:
    recorder = _recorder(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        recorder.begin(ME)
        for number in range(3):
            _tell(recorder, f"lost{number}")
            assert recorder.flush()
        assert list(tmp_path.iterdir()) == []
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert recorder.close()
    assert [row[1] for row in _rows(tmp_path)] == ["gap", "stopped"]
