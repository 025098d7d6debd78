"""The sheet of keys names every key there is, and what tips say is read to those who cannot see."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QKeySequence
from PySide6.QtWidgets import QWidget

from tests.ui.driving import Key, group_stage, play
from tests.ui.seeing import sheet_of
from ui.controls import KeyCap
from ui.dialogs.shortcuts import Shortcuts

pytestmark = pytest.mark.usefixtures("qapp")


def test_ctrl_slash_shows_every_key_of_the_window() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.press(Key.Key_Slash, Qt.KeyboardModifier.ControlModifier, on=it.window)
            sheet = await sheet_of(it.window, Shortcuts)
            native = QKeySequence.SequenceFormat.NativeText
            said = {cap.text() for cap in sheet.findChildren(KeyCap)}
            actions = [action for action in it.window.actions() if action.shortcuts()]
            assert len(actions) > 10
            for action in actions:
                keys = {sequence.toString(native) for sequence in action.shortcuts()}
                assert keys & said, f"{action.text()}: {keys}"
            sheet.reject()

    play(scenario)


def test_no_tip_reaches_a_screen_reader_as_markup() -> None:
    async def scenario() -> None:
        async with group_stage("Maya & <b>Jo</b>") as (it, engine, group):
            engine.receive(group, "Maya", "Low water is 10:52")
            read = [
                QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Description)
                for widget in (it.window, *it.window.findChildren(QWidget))
            ]
            assert len(list(filter(None, read))) > 5
            assert [words for words in read if "<div" in words] == []

    play(scenario)
