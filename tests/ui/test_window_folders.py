"""Where the dialogs begin that ask for a file to send, and where one received is to be kept."""

import asyncio
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QFileDialog

from chat_app.settings import DEFAULTS
from chat_app.settings_control import SettingsControl
from engine.core.ids import ConversationId
from engine.events import MessageKind, MessageView
from engine.file_views import FileState, FileView
from tests.ui.driving import Stage, group_stage, play, stage, until
from tests.ui.on_messages import in_view
from tests.ui.scripted_engine import ScriptedEngine, member
from ui.dialogs.export import choose_folder

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own, with folders in it; the program runs elsewhere."""
    home = tmp_path / "home"
    for name in ("Documents", "Downloads", "Walks"):
        (home / name).mkdir(parents=True)
        (home / name / "map.txt").write_bytes(b"a map")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.chdir(tmp_path)
    return home


def control_in(place: Path) -> SettingsControl:
    return SettingsControl(place / "settings.toml", DEFAULTS)


def received(engine: ScriptedEngine, group: ConversationId) -> MessageView:
    row = engine.row(group, member("Maya"), "")
    file = FileView(name="map.zip", media_type="application/zip", size=9, state=FileState.COMPLETE)
    row = replace(row, kind=MessageKind.FILE, file=file)
    engine.blobs.data[row.message_id] = b"something"
    engine.arrive(row, notify=False)
    return row


async def dialog_of(it: Stage) -> QFileDialog:
    await until(lambda: bool(it.window.findChildren(QFileDialog)))
    return it.window.findChildren(QFileDialog)[0]


async def in_dialog(it: Stage, name: str = "") -> Path:
    """Where the open one began; it is left with the file ``name``, or with none."""
    dialog = await dialog_of(it)
    began = Path(dialog.directory().absolutePath())
    if name:
        dialog.selectFile(name)
        dialog.filesSelected.emit([name])
        dialog.fileSelected.emit(name)
    dialog.reject()
    await until(lambda: not it.window.findChildren(QFileDialog))
    return began


async def begins_at(it: Stage, name: str = "") -> Path:
    it.window.pane.attaching.choose()
    return await in_dialog(it, name)


async def saving_begins_at(it: Stage, row: MessageView, name: str = "") -> Path:
    await until(lambda: in_view(it, row))
    it.window.pane.files.save(row)
    return await in_dialog(it, name)


def test_dialogs_begin_in_a_folder_of_the_user_and_then_where_one_was_last(
    home: Path, tmp_path: Path
) -> None:
    """Each for itself; and so it is after a restart, unless the folder has gone."""

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        row = received(engine, group)
        walks = home / "Walks"
        async with stage(engine, opening=group, control=control_in(tmp_path)) as it:
            assert await begins_at(it) == home / "Documents"
            assert await saving_begins_at(it, row) == home / "Downloads"
            await begins_at(it, str(walks / "map.txt"))
            await until(it.window.pane.attachment_bar.isVisible)
            assert await begins_at(it) == walks
            assert await saving_begins_at(it, row) == home / "Downloads"
            await saving_begins_at(it, row, str(walks / "kept.zip"))
            await until((walks / "kept.zip").exists)
            assert await saving_begins_at(it, row) == walks
        async with stage(engine, opening=group, control=control_in(tmp_path)) as it:
            assert await begins_at(it) == walks
            assert await saving_begins_at(it, row) == walks
            for file in walks.iterdir():
                file.unlink()
            walks.rmdir()
            assert await begins_at(it) == home / "Documents"
            (home / "Downloads" / "map.txt").unlink()
            (home / "Downloads").rmdir()
            assert await saving_begins_at(it, row) == home

    play(scenario)


@pytest.mark.parametrize("kept", ["Walks", "../home/Walks", "/" + "x" * 9_000, "/a\0b", "", "/nil"])
def test_what_is_no_folder_counts_as_not_known(home: Path, kept: str) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        row = received(engine, group)
        stored = {"sent_from": kept, "saved_to": kept}
        async with stage(engine, opening=group, stored=stored) as it:
            assert await begins_at(it) == home / "Documents"
            assert await saving_begins_at(it, row) == home / "Downloads"

    play(scenario)


@pytest.mark.parametrize("there", [True, False])
def test_a_conversation_is_exported_into_a_folder_that_is_there(home: Path, there: bool) -> None:
    if not there:
        shutil.rmtree(home / "Documents")

    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            asking = asyncio.ensure_future(choose_folder(it.window))
            dialog = await dialog_of(it)
            began = home / "Documents" if there else home
            assert Path(dialog.directory().absolutePath()) == began
            assert {Path(name) for name in dialog.selectedFiles()} <= {began}
            dialog.reject()
            assert await asking is None

    play(scenario)
