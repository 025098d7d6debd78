"""Recording as the window switches it, on a real engine, and the export of what was recorded."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from chat_app.delivery_recording import RecordOptions, WindowRecording
from chat_app.paths import ProfilePaths, profile_paths
from chat_app.settings_control import SettingsControl
from chat_app.settings_file import change_setting, write_default
from chat_app.settings_reading import load_settings
from engine.core.errors import StorageError
from engine.delivery.sqlite_log import find_logs
from engine.network.memory import MemoryNetwork
from engine.runtime.engine import Engine
from tests.runtime.conftest import Person
from ui.recording_port import ExportedLog, ExportStoppedError, ExportWish, LogFormat


@pytest.fixture
def paths(tmp_path: Path) -> ProfilePaths:
    paths = profile_paths(directory=tmp_path / "profile")
    paths.directory.mkdir()
    write_default(paths.settings_file)
    return paths


@pytest.fixture
def kept(paths: ProfilePaths) -> SettingsControl:
    return SettingsControl(paths.settings_file, load_settings(paths.settings_file))


async def started(tmp_path: Path, recording: WindowRecording) -> Person:
    alice = Person("Alice", tmp_path, MemoryNetwork())
    alice.engine = Engine(replace(alice.parts, recorder=recording.recorder()))
    await alice.start()
    recording.follow(alice.engine.record)
    return alice


async def exported(
    recording: WindowRecording, folder: Path, goes_on: Iterator[bool] | None = None
) -> ExportedLog:
    wish = ExportWish(folder=folder, log_format=LogFormat.JSON_LINES, since_ms=None)
    return await recording.export(
        wish, lambda _share: None, lambda: goes_on is None or next(goes_on)
    )


async def test_it_begins_at_once_and_what_it_wrote_is_exported_while_it_goes_on(
    tmp_path: Path, paths: ProfilePaths, kept: SettingsControl
) -> None:
    recording = WindowRecording(paths, kept, RecordOptions(), cluster=42)
    assert recording.recorder() is None
    alice = await started(tmp_path, recording)
    assert (await exported(recording, tmp_path)).folder is None
    heard: list[bool] = []
    recording.listen(lambda: heard.append(recording.state().records))
    await recording.switch(on=True)
    assert heard == [True]
    assert recording.state().key
    assert not recording.state().lasts
    group = await alice.engine.groups.create("Quicksilver")
    said = await alice.engine.timeline.send_text(group, "a secret text")
    made = await exported(recording, tmp_path)
    assert made.folder is not None
    assert (made.logs, made.bad_rows, made.unreadable) == (1, 0, ())
    events = (made.folder / "delivery_event.jsonl").read_text().splitlines()
    assert len(events) == made.events
    assert said in {json.loads(line).get("message_id") for line in events}
    whole = b"".join(path.read_bytes() for path in made.folder.iterdir())
    assert b"secret" not in whole
    assert b"Quicksilver" not in whole
    await recording.switch(on=False)
    assert heard == [True, False]
    assert not recording.state().records
    await alice.engine.stop()


async def test_an_export_that_is_stopped_or_cannot_be_written_leaves_nothing(
    tmp_path: Path, paths: ProfilePaths, kept: SettingsControl
) -> None:
    recording = WindowRecording(paths, kept, RecordOptions(), cluster=42)
    alice = await started(tmp_path, recording)
    await recording.switch(on=True)
    group = await alice.engine.groups.create("Tide")
    for number in range(9):
        await alice.engine.timeline.send_text(group, f"{number}")
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(ExportStoppedError):
        await exported(recording, out, iter([False] * 9))
    assert list(out.iterdir()) == []
    no_folder = tmp_path / "file"
    no_folder.write_bytes(b"")
    with pytest.raises(StorageError):
        await exported(recording, no_folder)
    (log,) = find_logs(recording.directory)
    await recording.switch(on=False)
    log.write_bytes(log.read_bytes()[:5_000] + b"\xff" * 5_000)
    made = await exported(recording, out)
    assert [(each.name, each.reason) for each in made.unreadable] == [(log.name, "corrupt")]
    await alice.engine.stop()


async def test_the_settings_file_switches_it_too_and_the_command_line_outlasts_both(
    tmp_path: Path, paths: ProfilePaths, kept: SettingsControl
) -> None:
    asked = RecordOptions(wanted=True, directory=tmp_path / "elsewhere")
    lasting = WindowRecording(paths, kept, asked, cluster=42)
    assert lasting.recorder() is not None
    assert lasting.state().lasts
    await lasting.switch(on=False)
    assert lasting.state().records
    recording = WindowRecording(paths, kept, RecordOptions(), cluster=42)
    alice = await started(tmp_path, recording)
    told = asyncio.Event()
    recording.listen(told.set)
    change_setting(paths.settings_file, "delivery", "record", value=True)
    kept.reread()
    await told.wait()
    assert recording.state().records
    await alice.engine.stop()
    assert len(find_logs(recording.directory)) == 1


def test_a_key_made_because_the_command_line_wants_records_is_shown_and_stays(
    paths: ProfilePaths, kept: SettingsControl
) -> None:
    recording = WindowRecording(paths, kept, RecordOptions(wanted=True), cluster=42)
    key = load_settings(paths.settings_file).delivery.key
    assert recording.state().key == key != ""
    kept.write(("delivery", "record"), value=True)
    assert load_settings(paths.settings_file).delivery.key == key


async def test_records_go_on_under_one_new_key_if_the_key_is_taken_away(
    tmp_path: Path, paths: ProfilePaths, kept: SettingsControl
) -> None:
    recording = WindowRecording(paths, kept, RecordOptions(), cluster=42)
    alice = await started(tmp_path, recording)
    await recording.switch(on=True)
    before, switched = recording.state().key, asyncio.Event()
    recording.listen(switched.set)
    await kept.change(("delivery", "key"), "")
    await switched.wait()
    key = load_settings(paths.settings_file).delivery.key
    assert recording.state().key == key
    assert key not in {"", before}
    await alice.engine.stop()
