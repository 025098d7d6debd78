"""The delivery log in the delivery view: switched at once, shown, exported, and stopped."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication

from engine.core.errors import StorageError, StorageFault
from tests.ui.driving import Key, play, stage, until
from tests.ui.scripted_engine import ScriptedEngine
from ui.backup_port import Follow, GoesOn
from ui.delivery.log_content import LogContent
from ui.dialogs.confirm import Confirm
from ui.dialogs.export_log import ExportLog, exported_words
from ui.recording_port import (
    ExportedLog,
    ExportStoppedError,
    ExportWish,
    LogFormat,
    RecordingState,
    UnreadableLog,
)
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")
PLACE = "/somewhere/delivery"


class ScriptedRecording:
    def __init__(self) -> None:
        self.now = RecordingState(records=False, directory=PLACE, key="")
        self.wishes: list[ExportWish] = []
        self.problem: StorageError | None = None
        self.finish = asyncio.Event()

    def state(self) -> RecordingState:
        return self.now

    def formats(self) -> tuple[LogFormat, ...]:
        return LogFormat.PARQUET, LogFormat.JSON_LINES

    async def switch(self, *, on: bool) -> None:
        self.now = replace(self.now, records=on, key="k" * 43 if on else self.now.key)

    def listen(self, _listener: object, /) -> object:
        return lambda: None

    async def export(self, wish: ExportWish, follow: Follow, goes_on: GoesOn) -> ExportedLog:
        self.wishes.append(wish)
        if self.problem is not None:
            raise self.problem
        follow(0.5)
        while not self.finish.is_set():
            if not goes_on():
                raise ExportStoppedError
            await asyncio.sleep(0)
        bad = UnreadableLog(name="<b>old</b>.db", reason="corrupt")
        return ExportedLog(folder=wish.folder / "new", events=3, logs=1, unreadable=(bad,))


def test_it_is_switched_from_the_view_after_it_was_said_what_that_means() -> None:
    async def scenario() -> None:
        engine, port = ScriptedEngine(), ScriptedRecording()
        group = engine.add_group("Tide")
        context = WindowContext(recording=port)  # type: ignore[arg-type]
        async with stage(engine, opening=group, around=context) as it:
            it.window.pane.header.views.choose(1)
            await until(lambda: recording_of(it.window.data.recording) is not None)
            content = recording_of(it.window.data.recording)
            assert content is not None
            assert "begins at once" in content.state.text()
            assert PLACE in content.state.text().replace("\u200b", "")
            assert not content.key.isVisible()
            it.press(Key.Key_Space, on=content.switch)
            await until(lambda: isinstance(it.window.flows.sheet, Confirm))
            assert not content.switch.isChecked(), "not before it was agreed to"
            sheet = it.window.flows.sheet
            assert isinstance(sheet, Confirm)
            sheet.confirm.click()
            await until(content.switch.isChecked)
            assert "from now on" not in content.state.text()
            content.copy_key.click()
            assert QGuiApplication.clipboard().text() == "k" * 43
            it.press(Key.Key_Space, on=content.switch)
            await until(lambda: not content.switch.isChecked())
            it.window.pane.header.views.choose(0)

    play(scenario)


def recording_of(flows: object) -> LogContent | None:
    return getattr(flows, "content", None)


def test_an_export_shows_how_far_it_is_stops_and_says_what_it_left_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        engine, port = ScriptedEngine(), ScriptedRecording()
        group = engine.add_group("Tide")

        async def choose(_parent: object) -> Path:
            return tmp_path

        context = WindowContext(recording=port, choose_folder=choose)  # type: ignore[arg-type]
        async with stage(engine, opening=group, around=context) as it:
            assert it.window.data.recording is not None
            it.window.data.recording.export()
            await until(lambda: isinstance(it.window.flows.sheet, ExportLog))
            sheet = it.window.flows.sheet
            assert isinstance(sheet, ExportLog)
            sheet.confirm.click()
            await until(lambda: sheet.line.isVisible() and sheet.line.value() == 500)
            sheet.cancel.click()
            await until(sheet.confirm.isEnabled)
            assert sheet.state.text() == "Stopped. Nothing was left behind."
            port.problem = StorageError("full", StorageFault.DISK_FULL)
            sheet.confirm.click()
            await until(sheet.problem.isVisible)
            assert "Nothing was left behind" in sheet.problem.text()
            port.problem = None
            port.finish.set()
            sheet.span.setCurrentIndex(3)
            sheet.format.setCurrentIndex(1)
            sheet.confirm.click()
            await until(
                lambda: sheet.confirm.text() == "Open the folder" and sheet.confirm.isEnabled()
            )
            assert port.wishes[-1].since_ms is None
            assert port.wishes[0].since_ms is not None
            assert port.wishes[-1].log_format is LogFormat.JSON_LINES
            assert "it is damaged" in sheet.state.text()
            sheet.confirm.click()
            assert it.opened_urls == [QUrl.fromLocalFile(str(tmp_path / "new")).toString()]
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)


def test_nothing_recorded_and_nothing_readable_are_different_words() -> None:
    assert exported_words(ExportedLog(folder=None)) == ["No deliveries were recorded yet."]
    unreadable = tuple(UnreadableLog(name=f"{n}.db", reason="locked") for n in range(7))
    said = exported_words(ExportedLog(folder=None, unreadable=unreadable))
    assert said[0] == "Nothing of what was recorded can be read."
    assert said[-1] == "So are 2 more."
