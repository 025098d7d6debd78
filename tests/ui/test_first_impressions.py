"""What a new user trips over: Enter, sizes of sheets, small screens, the desktop's own wishes."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication

from chat_app.settings_control import SettingsControl
from engine.core.problems import ConnectionReason
from engine.events import ConnectionLevel, ConnectionView
from tests.ui.driving import Key, play, stage, turn, until
from tests.ui.heard_notifications import listen_to
from tests.ui.on_settings import open_settings, switch_of
from tests.ui.scripted_engine import GOOD_LINK, ScriptedEngine, member
from tests.ui.seeing import join
from ui.connection_words import connection_line, key_words, shown_level
from ui.controls import Button, IconButton, KeyCap, Text
from ui.dialogs.confirm import Confirm, DeleteChoice
from ui.theme.current import is_dark
from ui.window.strip import StatusStrip


@pytest.mark.parametrize("make", [lambda: Button("Join"), lambda: IconButton("more", "Menu")])
def test_enter_presses_the_button_that_has_the_focus(
    qapp: QApplication, make: Callable[[], QAbstractButton]
) -> None:
    del qapp
    button, presses = make(), [0]

    def count() -> None:
        presses[0] += 1

    button.clicked.connect(count)
    QTest.keyPress(button, Key.Key_Return)
    QTest.keyPress(button, Key.Key_Enter)
    assert presses == [2]


def test_enter_on_cancel_cancels_whatever_the_default_is(qapp: QApplication) -> None:
    del qapp
    sheet = Confirm("Leave?", "Really?", yes="Leave")
    answers: list[int] = []
    sheet.finished.connect(answers.append)
    sheet.confirm.setDefault(True)
    sheet.open()
    QTest.keyClick(sheet.cancel, Key.Key_Return)
    assert answers == [0]


def test_enter_in_the_invitation_joins_and_writes_no_line() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await join(it.window)
            it.press(Key.Key_Return, on=sheet.form.field)
            assert engine.called("join_group") == []
            sheet.form.field.setPlainText(GOOD_LINK)
            it.press(Key.Key_Return, on=sheet.form.field)
            assert sheet.form.field.toPlainText() == GOOD_LINK
            await until(lambda: engine.called("join_group") == [GOOD_LINK])

    play(scenario)


def test_a_sheet_is_as_high_as_its_words_need_before_and_after_they_change() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            sheet = await join(it.window)
            empty = sheet.height()
            assert empty == sheet.needed_height()
            sheet.form.field.setPlainText(GOOD_LINK)
            await until(lambda: sheet.height() == sheet.needed_height() > empty)
            assert sheet.form.field.height() == sheet.form.field.minimumHeight()
            sheet.form.field.setPlainText("")
            await until(lambda: sheet.height() == empty)

    play(scenario)


def test_the_first_step_fits_a_small_screen_and_keeps_its_avatar_round() -> None:
    async def scenario() -> None:
        for size in ((1000, 660), (400, 640)):
            async with stage(ScriptedEngine(name=None), size=size) as it:
                page = it.window.first_page.page
                await turn()
                it.write("Ines with a name that is far too long for any line of a small card")
                it.press(Key.Key_Return)
                await until(page.stores_step.isVisible)
                page.stores_step.next.click()
                await until(page.conversation_step.isVisible)
                await turn()
                avatar = page.conversation_step.avatar
                assert avatar.width() == avatar.height() == avatar.sizeHint().width()
                assert page.steps.width() <= it.window.width()
                if size[0] == 1000:
                    button = page.conversation_step.later
                    corner = button.mapTo(page, button.rect().bottomRight())
                    assert page.rect().contains(corner)

    play(scenario)


def test_one_peer_is_online_and_peers_outside_the_mesh_are_still_connecting(
    qapp: QApplication,
) -> None:
    del qapp

    def view(level: ConnectionLevel, peers: int) -> ConnectionView:
        return ConnectionView(
            level=level, peers=peers, reason=ConnectionReason.NO_MESH, bytes_in=0, bytes_out=0
        )

    alone, pair = view(ConnectionLevel.MINIMAL, 1), view(ConnectionLevel.MINIMAL, 2)
    assert shown_level(alone) is ConnectionLevel.GOOD
    assert connection_line(alone) == "Online, 1 peer"
    assert shown_level(pair) is ConnectionLevel.MINIMAL
    assert connection_line(pair) == "Connecting, 2 peers"
    strip = StatusStrip()
    strip.show_connection(view(ConnectionLevel.OFFLINE, 0))
    tips = {text.text(): text.toolTip() for text in strip.findChildren(Text)}
    assert "none passes messages on yet" in tips["Waiting for network"]


def test_where_the_key_lies_is_a_sentence() -> None:
    for place in ("system keyring", "key file", "a box\nof tin"):
        words = key_words(place)
        assert words.endswith(".")
        assert "\n" not in words
    assert "folder" in key_words("key file")


def test_a_dark_palette_is_told_from_a_light_one(qapp: QApplication) -> None:
    del qapp
    dark, light = QPalette(QColor(20, 20, 20)), QPalette(QColor(239, 239, 239))
    for palette, ink in ((dark, Qt.GlobalColor.white), (light, Qt.GlobalColor.black)):
        palette.setColor(QPalette.ColorRole.WindowText, ink)
    assert is_dark(dark)
    assert not is_dark(light)


def test_closing_at_once_asks_nothing_and_takes_an_open_sheet_along() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        engine.change(group, waiting_to_send=2)
        async with stage(engine) as it:
            closed: list[None] = []
            it.window.closed.connect(lambda: closed.append(None))
            it.window.flows.new_group()
            await until(lambda: it.window.flows.sheet is not None)
            it.window.close_at_once()
            it.window.close_at_once()
            assert closed == [None]
            await until(lambda: it.window.flows.sheet is None)
            assert not it.window.isVisible()

    play(scenario)


def test_when_the_invite_button_goes_the_keys_go_to_the_composer() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", ())
        async with stage(engine, opening=group) as it:
            invite = it.window.pane.header.invite
            assert invite.isVisible()
            invite.setFocus()
            both = (member("Ines", is_self=True), member("Maya"))
            engine.change(group, members=both)
            assert not invite.isVisible()
            assert it.window.pane.composer.box.hasFocus()

    play(scenario)


def test_notifications_that_are_off_tell_nothing_and_stay_off(control: SettingsControl) -> None:
    told: list[str] = []

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, control=control) as it:
            heard = listen_to(it.window)
            engine.receive(group, "Maya", "while they are on")
            page = open_settings(it.window, "notifications")
            switch_of(page, "Notifications").click()
            await until(lambda: heard.on_screen == {})
            engine.receive(group, "Maya", "while they are off")
            told.extend(heard.bodies())

    play(scenario)
    assert told == ["Maya: while they are on"]
    assert not control.settings.notifications.enabled


def test_large_letters_in_a_narrow_window_cut_nothing_off() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", ())
        async with stage(engine, stored={"text_percent": "200"}, size=(400, 640)) as it:
            hints = it.window.panel.search.findChildren(KeyCap)
            assert [hint.isVisible() for hint in hints] == [False]
            it.window.open_conversation(group)
            assert not it.window.pane.header.invite.isVisible()
            sheet = await join(it.window)
            sheet.form.field.setPlainText(GOOD_LINK)
            await turn()
            assert sheet.confirm.width() >= sheet.confirm.sizeHint().width()
            it.window.looks.step_text_size(0)
            await turn()
            assert it.window.pane.header.invite.isVisible()

    play(scenario)


def test_a_sheet_stands_in_the_middle_of_its_window_and_grows_inside_it() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            it.window.resize(480, 500)
            sheet = Confirm("Leave?", "Really?", yes="Leave", parent=it.window)
            sheet.open()
            room = it.window.rect()
            assert (sheet.geometry().center() - room.center()).manhattanLength() <= 8
            before = sheet.height()
            sheet.body.addWidget(Text("one line and another " * 60, wrap=True))
            await until(lambda: sheet.height() > before)
            assert room.contains(sheet.geometry())
            sheet.reject()

    play(scenario)


@pytest.mark.parametrize("width", [360, 1280])
def test_the_buttons_of_a_sheet_show_all_their_words(width: int) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            it.window.resize(width, 600)
            sheet = DeleteChoice(it.window)
            sheet.open()
            await until(lambda: sheet.everybody.width() >= sheet.everybody.sizeHint().width())
            for button in sheet.findChildren(Button):
                assert button.width() >= button.sizeHint().width()
                assert sheet.rect().contains(button.geometry())
            sheet.reject()

    play(scenario)
