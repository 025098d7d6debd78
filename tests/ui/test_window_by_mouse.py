"""All that people do every day by the mouse alone, with real clicks on what is seen.

Each has its keys, too: those are pressed in the tests of each feature.
"""

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QDialogButtonBox,
    QFileDialog,
    QLineEdit,
    QMenu,
    QTableView,
    QWidget,
)

from chat_app.settings_control import SettingsControl
from engine.events import MessageView, ReactionView
from tests.ui.driving import Stage, group_stage, move_mouse, pair_stage, play, stage, until
from tests.ui.on_messages import in_view, last_row, own_held, spoken_rows_of
from tests.ui.on_settings import open_settings, switch_of
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import seen_words, sheet_of, words_of
from tests.ui.test_window_large_files import COMPLETE, LOGS, shown_buttons, with_file
from tests.ui.test_window_large_files import press as press_in_row
from tests.ui.test_window_message_bar import once_hovered
from ui.controls import IconButton
from ui.dialogs.confirm import Confirm, DeleteChoice
from ui.dialogs.forward import Forward
from ui.dialogs.go_to_date import GoToDate
from ui.dialogs.message_info import MessageInfoSheet, Reactors, Versions
from ui.timeline.buttons import RowButton

pytestmark = pytest.mark.usefixtures("qapp")


def click_on(part: QWidget, at: QPoint | None = None) -> None:
    QTest.mouseClick(part, Qt.MouseButton.LeftButton, pos=at or part.rect().center())


def choose_in(menu: QMenu | None, words: str) -> None:
    assert menu is not None
    entry = next(action for action in menu.actions() if action.text() == words)
    click_on(menu, menu.actionGeometry(entry).center())


async def press_beside(it: Stage, message: MessageView, words: str) -> None:
    """A button of the bar that is there while the mouse is over the message."""
    timeline = it.window.pane.timeline
    await until(lambda: in_view(it, message))
    await move_mouse(timeline.viewport(), QPoint(1, 1))
    bar = timeline.interaction.hover_bar

    def press() -> None:
        buttons = {each.accessibleName(): each for each in bar.findChildren(IconButton)}
        click_on(buttons[words])

    await once_hovered(timeline, message.message_id, press)


async def choose_beside(it: Stage, message: MessageView, entry: str) -> None:
    interaction = it.window.pane.timeline.interaction
    await until(lambda: interaction.menu is None)
    await press_beside(it, message, "More")
    choose_in(interaction.menu, entry)


async def leave(it: Stage, sheet: QWidget, words: str) -> None:
    buttons = {each.text(): each for each in sheet.findChildren(QAbstractButton)}
    click_on(buttons[words])
    await until(lambda: it.window.flows.sheet is None)


def is_seen_as_edited(it: Stage, message: MessageView) -> bool:
    row = it.window.pane.timeline.scene.loaded.get(message.message_id)
    return row is not None and row.edited_ms is not None


def test_a_message_is_answered_and_ones_own_is_edited() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            asked = engine.receive(group, "Maya", "Who brings the ladder?")
            composer = it.window.pane.composer
            await press_beside(it, asked, "Reply")
            it.write("I do", on=composer.box)
            click_on(composer.send)
            await until(lambda: bool(engine.called("send_text")))
            answer = last_row(engine, group)
            assert answer.quote is not None
            await choose_beside(it, answer, "Edit")
            assert seen_words(it.window.pane.composer_bar)[0] == "Edit message"
            it.write("!", on=composer.box)
            click_on(composer.send)
            await until(lambda: engine.called("edit") == [(answer.message_id, "I do!", ())])
            await until(lambda: is_seen_as_edited(it, answer))
            await choose_beside(it, answer, "Earlier versions…")
            versions = await sheet_of(it.window, Versions)
            await leave(it, versions, "Close")

    play(scenario)


def test_who_reacted_and_what_is_known_of_a_message_are_shown() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            reactions = (ReactionView(emoji="🎉", count=1, names=("Luc",), mine=True),)
            engine.alter(replace(row, reactions=reactions))
            await choose_beside(it, row, "Who reacted…")
            reactors = await sheet_of(it.window, Reactors)
            assert "Who reacted" in words_of(reactors)
            await leave(it, reactors, "Close")
            await choose_beside(it, row, "Message info…")
            info = await sheet_of(it.window, MessageInfoSheet)
            await leave(it, info, "Close")

    play(scenario)


def test_of_two_nobody_is_counted_for_what_the_other_one_wrote() -> None:
    async def scenario() -> None:
        async with pair_stage("Maya") as (it, engine, pair):
            row = engine.receive(pair, "Maya", "It **talks**!")
            await choose_beside(it, row, "Message info…")
            info = await sheet_of(it.window, MessageInfoSheet)
            assert "It talks!" in words_of(info)
            assert "group" not in words_of(info)
            await leave(it, info, "Close")

    play(scenario)


def test_deleting_for_everybody_is_undone_and_deleting_here_is_done() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine, bar = own_held(engine, group, "oops"), it.window.undo_bar
            await choose_beside(it, mine, "Delete…")
            choice = await sheet_of(it.window, DeleteChoice)
            click_on(choice.everybody)
            await until(bar.isVisible)
            await until(lambda: it.window.flows.sheet is None)
            assert spoken_rows_of(it)[-1].endswith("being deleted for everybody")
            click_on(bar.button)
            await until(lambda: not bar.isVisible())
            await choose_beside(it, mine, "Delete…")
            click_on((await sheet_of(it.window, DeleteChoice)).here)
            await until(lambda: engine.called("delete_locally") == [mine.message_id])
            await until(lambda: it.window.flows.sheet is None)
            theirs = engine.receive(group, "Maya", "hello")
            await choose_beside(it, theirs, "Delete here…")
            click_on((await sheet_of(it.window, Confirm)).confirm)
            await until(lambda: engine.called("delete_locally")[-1] == theirs.message_id)
            assert engine.called("retract") == []

    play(scenario)


def test_a_message_is_forwarded() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            other = engine.add_group("Book Circle")
            row = engine.receive(group, "Maya", "Low water is 10:52")
            await choose_beside(it, row, "Forward…")
            sheet = await sheet_of(it.window, Forward)
            (choice,) = sheet.findChildren(QCheckBox)
            click_on(choice)
            click_on(sheet.confirm)
            await until(lambda: bool(engine.rows[other]))
            assert last_row(engine, other).forwarded
            it.window.open_conversation(other)
            await until(lambda: any("Forwarded, Low water" in row for row in spoken_rows_of(it)))

    play(scenario)


def test_a_day_of_the_calendar_is_gone_to() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.receive(group, "Maya", "hello")
            more = it.window.pane.header.more
            menu = more.menu()
            menu.popup(more.mapToGlobal(more.rect().bottomLeft()))
            choose_in(menu, "Go to date…")
            sheet = await sheet_of(it.window, GoToDate)
            today = sheet.day
            days = sheet.calendar.findChild(QTableView)
            assert isinstance(days, QTableView)
            before = today - timedelta(days=7)
            model = days.model()
            cell = next(
                model.index(row, column)
                for row in range(model.rowCount())
                for column in range(model.columnCount())
                if days.visualRect(model.index(row, column)).contains(
                    days.visualRect(days.currentIndex()).center()
                    - QPoint(0, days.visualRect(days.currentIndex()).height())
                )
            )
            click_on(days.viewport(), days.visualRect(cell).center())
            assert sheet.day == before
            await leave(it, sheet, "Go")

    play(scenario)


def test_an_emoji_that_is_offered_is_clicked() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            composer = it.window.pane.composer
            composer.box.setFocus()
            it.write("ahoy :anch")
            rows = composer.completions.rows
            first = rows.model().index(0, 0)
            click_on(rows.viewport(), rows.visualRect(first).center())
            await until(lambda: composer.text().startswith("ahoy ⚓"))
            assert composer.box.hasFocus()

    play(scenario)


async def choose_file(it: Stage, path: Path, button: QDialogButtonBox.StandardButton) -> None:
    """In the dialog that is open; its name is written, as no list of files is the same twice."""
    await until(lambda: bool(it.window.findChildren(QFileDialog)))
    (dialog,) = it.window.findChildren(QFileDialog)
    await until(dialog.isVisible)
    name, box = dialog.findChild(QLineEdit), dialog.findChild(QDialogButtonBox)
    assert isinstance(name, QLineEdit)
    assert isinstance(box, QDialogButtonBox)
    name.selectAll()
    it.write(str(path), on=name)
    click_on(box.button(button))
    await until(lambda: not it.window.findChildren(QFileDialog))


def test_a_file_is_chosen_and_a_large_one_is_fetched_and_kept(tmp_path: Path) -> None:
    path, kept = tmp_path / "notes.txt", tmp_path / "kept.zip"
    path.write_bytes(b"low at ten")

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            composer = it.window.pane.composer
            click_on(composer.attach)
            await choose_file(it, path, QDialogButtonBox.StandardButton.Open)
            await until(it.window.pane.attachment_bar.isVisible)
            click_on(composer.send)
            await until(lambda: bool(engine.called("send_file")))
            row = with_file(engine, group, LOGS)
            await until(lambda: in_view(it, row))
            press_in_row(it, row, RowButton.FILE_FETCH)
            await until(lambda: engine.blobs.asked == [("fetch", row.message_id)])
            engine.blobs.data[row.message_id] = b"logs"
            engine.alter(replace(row, file=COMPLETE))
            await until(lambda: RowButton.FILE_SAVE in shown_buttons(it, row))
            press_in_row(it, row, RowButton.FILE_SAVE)
            await choose_file(it, kept, QDialogButtonBox.StandardButton.Save)
            await until(kept.exists)
            assert kept.read_bytes() == b"logs"

    play(scenario)


def test_what_others_are_told_is_switched_off(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            page = open_settings(it.window, "privacy")
            click_on(switch_of(page, "Tell others when I am typing"))
            click_on(switch_of(page, "Tell people when I am online"))
            await until(lambda: not control.settings.privacy.typing)
            await until(lambda: not control.settings.privacy.presence)

    play(scenario)
