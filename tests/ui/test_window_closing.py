"""Closing the window: asked once where there is a tray, said once where there is none."""

import asyncio

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMenu

from chat_app.settings_control import SettingsControl
from engine.answers import MessageInfo
from engine.core.errors import SettingsUnwritableError
from engine.core.ids import ConversationId, MessageId
from tests.ui.driving import Stage, play, stage, until
from tests.ui.heard_notifications import HeardPort
from tests.ui.on_settings import control_of, open_settings, pick, row_of, shown_labels, switch_of
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import choose, entries, seen_words, words_of
from ui.choice import Choice
from ui.desktop.closing import KeepRunning
from ui.desktop.tray import Tray, badged_icon, unread_words
from ui.dialogs.confirm import Confirm
from ui.dialogs.message_info import MessageInfoSheet
from ui.icons import app_icon

pytestmark = pytest.mark.usefixtures("qapp")


class SomeTray(Tray):
    """A tray where the screen has none; ``there`` says whether the user sees it."""

    there = True

    def is_there(self) -> bool:
        return self.there


def with_tray(it: Stage) -> SomeTray:
    it.window.desktop.begin(HeardPort(), SomeTray)
    tray = it.window.desktop.tray
    assert isinstance(tray, SomeTray)
    return tray


async def asked(it: Stage, kind: type[Confirm]) -> Confirm:
    await until(lambda: isinstance(it.window.flows.sheet, kind))
    sheet = it.window.flows.sheet
    assert isinstance(sheet, kind)
    return sheet


def closing(it: Stage) -> list[bool]:
    """Filled once the window says that it is closed."""
    closed: list[bool] = []
    it.window.closed.connect(lambda: closed.append(True))
    return closed


def test_with_a_tray_the_window_asks_once_whether_to_keep_running() -> None:
    async def scenario() -> None:
        stored: dict[str, str] = {}
        async with stage(ScriptedEngine(), stored=stored) as it:
            closed, tray = closing(it), with_tray(it)
            it.window.close()
            sheet = await asked(it, KeepRunning)
            assert "change this in the settings" in " ".join(seen_words(sheet))
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            assert it.window.isVisible(), "no answer is none"
            it.window.close()
            (await asked(it, KeepRunning)).accept()
            await until(lambda: not it.window.isVisible())
            assert stored["close_to_tray"] == "yes"
            tray.open_requested.emit()
            assert it.window.isVisible()
            it.window.close()
            assert not it.window.isVisible(), "remembered"
            assert closed == []
            it.window.quit()
            assert closed == [True]

    play(scenario)


def test_whoever_says_no_ends_the_program_then_and_ever_after() -> None:
    async def scenario() -> None:
        stored: dict[str, str] = {}
        async with stage(ScriptedEngine(), stored=stored) as it:
            closed = closing(it)
            with_tray(it)
            it.window.close()
            sheet = await asked(it, KeepRunning)
            assert isinstance(sheet, KeepRunning)
            sheet.quit.click()
            await until(lambda: closed == [True])
            assert stored["close_to_tray"] == "no"
        async with stage(ScriptedEngine(), stored=stored) as it:
            closed = closing(it)
            with_tray(it)
            it.window.close()
            assert closed == [True]

    play(scenario)


def test_a_tray_that_went_away_hides_no_window() -> None:
    async def scenario() -> None:
        stored = {"close_to_tray": "yes"}
        async with stage(ScriptedEngine(), stored=stored) as it:
            closed, tray = closing(it), with_tray(it)
            tray.there = False
            it.window.close()
            assert closed == [True]

    play(scenario)


def test_without_a_tray_it_is_said_once_what_closing_does() -> None:
    async def scenario() -> None:
        stored: dict[str, str] = {}
        async with stage(ScriptedEngine(), stored=stored, explains_closing=True) as it:
            closed = closing(it)
            it.window.close()
            sheet = await asked(it, Confirm)
            assert "Nothing arrives on this device" in words_of(sheet)
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            assert it.window.isVisible()
            it.window.close()
            (await asked(it, Confirm)).accept()
            await until(lambda: closed == [True])
        async with stage(ScriptedEngine(), stored=stored, explains_closing=True) as it:
            closed = closing(it)
            it.window.close()
            assert closed == [True]

    play(scenario)


def test_quitting_with_unsent_messages_asks_even_from_the_tray() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, stored={"close_to_tray": "yes"}) as it:
            closed = closing(it)
            with_tray(it)
            engine.change(group, waiting_to_send=2)
            it.window.close()
            assert not it.window.isVisible(), "they go on being sent"
            it.window.quit()
            sheet = await asked(it, Confirm)
            assert it.window.isVisible()
            sheet.accept()
            await until(lambda: closed == [True])

    play(scenario)


def test_a_tray_that_goes_away_later_gives_the_window_back() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), stored={"close_to_tray": "yes"}) as it:
            closed, tray = closing(it), with_tray(it)
            it.window.close()
            assert not it.window.isVisible()
            tray.there = False
            await until(lambda: it.window.isMinimized() and it.window.isVisible())
            assert closed == []

    play(scenario)


def test_quitting_instead_of_keeping_on_asks_about_unsent_messages_at_once() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            closed = closing(it)
            with_tray(it)
            engine.change(group, waiting_to_send=2)
            await until(lambda: it.listed(group).waiting_to_send == 2)
            it.window.close()
            sheet = await asked(it, KeepRunning)
            assert isinstance(sheet, KeepRunning)
            sheet.quit.click()
            await until(lambda: it.window.flows.sheet not in {None, sheet})
            (await asked(it, Confirm)).accept()
            await until(lambda: closed == [True])

    play(scenario)


def test_quitting_puts_an_open_sheet_aside_to_ask_about_unsent_messages() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            closed = closing(it)
            engine.change(group, waiting_to_send=2)
            await until(lambda: it.listed(group).waiting_to_send == 2)
            it.window.flows.new_group()
            await until(lambda: it.window.flows.sheet is not None)
            before = it.window.flows.sheet
            it.window.quit()
            await until(lambda: it.window.flows.sheet not in {None, before})
            (await asked(it, Confirm)).accept()
            await until(lambda: closed == [True])

    play(scenario)


class Lingers(ScriptedEngine):
    """Says nothing of a message until it ``may_answer``."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def info(self, conversation_id: ConversationId, message_id: MessageId) -> MessageInfo:
        self.is_asked.set()
        await self.may_answer.wait()
        return await super().info(conversation_id, message_id)


def test_quitting_while_something_else_is_under_way_comes_after_it() -> None:
    async def scenario() -> None:
        engine = Lingers()
        group = engine.add_group("Tide Gauge")
        sent = engine.receive(group, "Maya", "hello")
        async with stage(engine) as it:
            closed = closing(it)
            engine.change(group, waiting_to_send=2)
            it.window.about.info(it.listed(group), sent.message_id)
            await engine.is_asked.wait()
            it.window.close()
            engine.may_answer.set()
            await until(lambda: isinstance(it.window.flows.sheet, MessageInfoSheet))
            sheet = it.window.flows.sheet
            assert sheet is not None
            sheet.reject()
            (await asked(it, Confirm)).accept()
            await until(lambda: closed == [True])

    play(scenario)


def test_a_start_in_the_tray_shows_no_window_and_one_without_a_tray_is_in_the_task_bar() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            tray = with_tray(it)
            it.window.hide()
            it.window.desktop.show_at_start(minimised=True)
            assert not it.window.isVisible()
            tray.there = False
            it.window.desktop.show_at_start(minimised=True)
            assert it.window.isMinimized()
            it.window.come_to_front()
            assert it.window.isVisible()
            assert not it.window.isMinimized()

    play(scenario)


def test_the_menu_of_the_tray_opens_silences_and_quits() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            closed, tray = closing(it), with_tray(it)
            menu = tray.icon.contextMenu()
            assert isinstance(menu, QMenu)
            assert entries(menu) == ["Open Causerie", "Do not disturb", "Quit"]
            it.window.hide()
            choose(menu, "Open Causerie")
            assert it.window.isVisible()
            choose(it.window.desktop.quiet_menus[-1], "For 8 hours")
            assert it.window.desktop.quiet.is_on()
            choose(menu, "Quit")
            assert closed == [True]

    play(scenario)


def test_the_icon_counts_what_is_unread_and_of_muted_ones_what_mentions_us() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine) as it:
            tray = with_tray(it)
            assert tray.icon.toolTip() == "Causerie"
            engine.change(group, unread=3)
            engine.change(other, unread=40, mentions=2, muted=True)
            await until(lambda: tray.icon.toolTip() == "Causerie: 5 unread")
            engine.change(group, unread=0)
            engine.change(other, unread=0, mentions=0)
            await until(lambda: tray.icon.toolTip() == "Causerie")

    play(scenario)


@pytest.mark.parametrize("number", [1, 12, 4_000])
def test_the_count_is_drawn_into_the_icon(number: int) -> None:
    for side in (16, 22, 64):
        plain = app_icon().pixmap(side, side).toImage()
        counted = badged_icon(number).pixmap(side, side).toImage()
        assert counted.size() == plain.size()
        assert counted != plain
    assert unread_words(number).endswith("unread")


class Session(QObject):
    """An ``AutostartPort``."""

    switched = Signal(bool)

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self._on, self._error = False, error

    def is_on(self) -> bool:
        return self._on

    def switch(self, *, on: bool) -> None:
        if self._error is not None:
            raise self._error
        self._on = on


def test_the_start_with_the_session_is_switched_and_a_refusal_is_said(
    control: SettingsControl,
) -> None:
    async def scenario() -> None:
        session = Session()
        words = "Start with the session"
        async with stage(ScriptedEngine(), autostart=session, control=control) as it:
            switch = switch_of(open_settings(it.window, "notifications"), words)
            switch.click()
            assert session.is_on()
            switch.click()
            assert not session.is_on()
        refusing = Session(SettingsUnwritableError("/etc/nowhere", "Read-only file system"))
        async with stage(ScriptedEngine(), autostart=refusing, control=control) as it:
            page = open_settings(it.window, "notifications")
            switch_of(page, words).click()
            said = row_of(page, words).problem
            assert said.isVisible()
            assert said.text() == "/etc/nowhere cannot be written: Read-only file system."
            assert not switch_of(page, words).isChecked()
        async with stage(ScriptedEngine(), control=control) as it:
            assert words not in shown_labels(open_settings(it.window, "notifications"))

    play(scenario)


def test_what_closing_means_is_a_choice_that_follows_the_answer(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control) as it:
            with_tray(it)
            page = open_settings(it.window, "notifications")
            choice = control_of(page, "When the window is closed", Choice)
            assert choice.currentText() == "Ask me"
            it.window.close()
            (await asked(it, KeepRunning)).accept()
            await until(lambda: choice.currentText() == "Keep running in the tray")
            it.window.come_to_front()
            pick(it, page, "When the window is closed", "Quit")
            await until(lambda: control.settings.desktop.close_to_tray == "no")

    play(scenario)


def test_whoever_wants_no_icon_gets_none() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), stored={"tray": "no"}) as it:
            it.window.desktop.begin(HeardPort(), SomeTray)
            assert it.window.desktop.tray is None

    play(scenario)
