"""Opening a file that is here: by another program, or large if it is a picture."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPointF

from engine.file_views import FileState, FileView
from tests.ui.driving import Key, group_stage, play, until
from tests.ui.on_messages import (
    ask_by_menu,
    bubble,
    click,
    focus,
    in_view,
    menu_of,
)
from tests.ui.scripted_people import picture_bytes
from tests.ui.seeing import entries, sheet_of, words_of
from tests.ui.test_window_files import noise
from tests.ui.test_window_large_files import (
    COMPLETE,
    LOGS,
    MB,
    OURS,
    ROOM,
    press,
    said,
    shown_buttons,
    with_file,
)
from ui.attachments import thumbnail_of
from ui.dialogs.confirm import Confirm
from ui.dialogs.picture_viewer import PictureViewer
from ui.file_words import may_run
from ui.timeline.buttons import RowButton

pytestmark = pytest.mark.usefixtures("qapp")
INLINE = FileView(name="chart.pdf", media_type="application/pdf", size=900)


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("notes.txt", False),
        ("logs.tar.gz", False),
        ("setup.exe", True),
        ("photo.jpg.SCR", True),
        ("letter.docm", True),
        ("install", True),
        (".desktop", True),
        ("page.html", True),
        ("film.MKV", False),
        ("help.chm", True),
        ("disk.iso", True),
        ("Terms.terminal", True),
        ("sheet.xlsb", True),
        ("place.inetloc", True),
        ("a.settingcontent-ms", True),
        ("a.nobody-knows", True),
    ],
)
def test_what_may_run_is_known_by_its_name(name: str, runs: bool) -> None:
    assert may_run(replace(COMPLETE, name=name)) is runs


def test_what_may_run_is_opened_only_once_it_was_said() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, replace(COMPLETE, name="setup.exe"))
            await until(lambda: in_view(it, row))
            press(it, row, RowButton.FILE_OPEN)
            ask = await sheet_of(it.window, Confirm)
            assert "“setup.exe” can run programs" in words_of(ask)
            assert "Maya" in words_of(ask)
            ask.cancel.click()
            await until(lambda: it.window.flows.sheet is None)
            assert it.opened_urls == []
            press(it, row, RowButton.FILE_OPEN)
            (await sheet_of(it.window, Confirm)).confirm.click()
            await until(lambda: it.opened_urls == [f"file:///opened/{row.message_id}"])

    play(scenario)


def test_of_what_we_sent_that_may_run_it_is_not_said_that_somebody_else_sent_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, replace(OURS, name="setup.exe"), own=True)
            await until(lambda: in_view(it, row))
            press(it, row, RowButton.FILE_OPEN)
            ask = await sheet_of(it.window, Confirm)
            assert "“setup.exe” can run programs" in words_of(ask)
            assert "You" not in words_of(ask)
            assert "them" not in words_of(ask)
            ask.reject()

    play(scenario)


def test_anything_else_is_opened_at_once_and_kept_where_one_wants(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, COMPLETE)
            engine.blobs.data[row.message_id] = b"logs"
            await until(lambda: in_view(it, row))
            box, y = bubble(it, row)
            assert box.file is not None
            click(it, box.file.rect.center(), y)
            await until(lambda: it.opened_urls == [f"file:///opened/{row.message_id}"])
            it.window.pane.files.write(row, tmp_path / "kept.zip")
            await until(lambda: ("save_as", row.message_id) in engine.blobs.asked)
            await until(lambda: (tmp_path / "kept.zip").read_bytes() == b"logs")

    play(scenario)


def test_a_small_file_is_opened_as_a_larger_one_is() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = with_file(engine, group, INLINE)
            runs = with_file(engine, group, replace(INLINE, name="setup.exe"))
            await until(lambda: in_view(it, row) and in_view(it, runs))
            box, y = bubble(it, row)
            assert box.file is not None
            click(it, box.file.rect.center(), y)
            opened = f"file:///opened/{row.message_id}"
            await until(lambda: it.opened_urls == [opened])
            await focus(it, row)
            it.press(Key.Key_Menu, on=it.window.pane.timeline)
            assert [e for e in entries(menu_of(it)) if e in {"Open", "Save as…"}] == [
                "Save as…",
                "Open",
            ]
            menu_of(it).close()
            await until(lambda: it.window.pane.timeline.interaction.menu is None)
            await ask_by_menu(it, row, "Open")
            await until(lambda: it.opened_urls == [opened] * 2)
            box, y = bubble(it, runs)
            assert box.file is not None
            click(it, box.file.rect.center(), y)
            ask = await sheet_of(it.window, Confirm)
            assert "“setup.exe” can run programs" in words_of(ask)
            ask.reject()
            await until(lambda: it.window.flows.sheet is None)
            assert it.opened_urls == [opened] * 2

    play(scenario)


def test_a_picture_has_its_thumbnail_until_it_is_here_and_then_opens_large() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            photo = FileView(
                name="pier.png",
                media_type="image/png",
                size=MB,
                width=300,
                height=200,
                thumbnail=thumbnail_of(noise(60)),
                state=FileState.OFFERED,
            )
            row = with_file(engine, group, photo)
            pictures = it.window.pane.timeline.scene.pictures
            await until(lambda: pictures.pixmap(row, ROOM, 1.0) is not None)
            assert "Photo, 1.0 MB, not fetched yet" in said(it)
            assert engine.blobs.asked == []
            box, y = bubble(it, row)
            assert box.file is not None
            assert box.file.is_picture
            click(it, box.file.rect.center(), y)
            await until(lambda: engine.blobs.asked == [("fetch", row.message_id)])
            engine.blobs.data[row.message_id] = picture_bytes(side=200)
            here = replace(row, file=replace(photo, state=FileState.COMPLETE))
            engine.alter(here)
            await until(lambda: RowButton.FILE_FETCH not in shown_buttons(it, here))
            await until(lambda: pictures.pixmap(here, ROOM, 1.0) is not None)
            box, y = bubble(it, here)
            assert box.file is not None
            beside = QPointF(30, 0)  # Where it was clicked just now it would be a double click.
            click(it, box.file.rect.center() + beside, y)
            await until(lambda: it.window.findChild(PictureViewer) is not None)
            viewer = it.window.findChild(PictureViewer)
            assert viewer is not None
            await until(lambda: viewer.message is not None)
            viewer.reject()

    play(scenario)


def test_a_picture_without_a_thumbnail_is_a_card_until_it_is_here() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            photo = replace(LOGS, name="p.gif", media_type="image/gif", width=300, height=200)
            row = with_file(engine, group, photo)
            await until(lambda: in_view(it, row))
            file = bubble(it, row)[0].file
            assert file is not None
            assert not file.is_picture
            assert shown_buttons(it, row) == [RowButton.FILE_FETCH]

    play(scenario)
