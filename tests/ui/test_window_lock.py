"""A locked window: what nobody reads meanwhile, what waits, and that it goes on as it was."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from shiboken6 import isValid

from chat_app.passphrase_control import PassphraseControl
from chat_app.settings import Settings
from chat_app.settings_control import SettingsControl
from chat_app.watch import page_of as page_of_figures
from chat_app.window import LOCKED, tell_figures
from engine.core.backup import Cost
from engine.core.ids import ConversationId
from engine.core.key_header import Way
from engine.crypto.key_header import passphrase_way
from engine.inspection_views import Figures
from engine.persistence import key_changes
from engine.persistence.key import obtain_database_key
from engine.persistence.key_changes import set_passphrase
from engine.persistence.profile_directory import ProfileDirectory, open_profile_directory
from tests.persistence.backup_examples import CHEAP, WORDS
from tests.ui.driving import Stage, play, stage, turn, until
from tests.ui.heard_notifications import listen_to
from tests.ui.on_settings import control_of, open_settings, row_of
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import sheet_of, words_of
from tests.ui.test_watching import FIGURES
from ui.choice import Choice
from ui.desktop.port import DesktopNotification, MarkedRead, Opened, Replied
from ui.dialogs.group import CreateGroup
from ui.dialogs.passphrase import RemovePassphrase, SetPassphrase
from ui.window.idle import IdleWatch
from ui.window.locking import LockPage
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")
Key = Qt.Key
CONTROL = Qt.KeyboardModifier.ControlModifier
WELL = "the well is dry"
GROUP = "Tide Gauge"


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProfileDirectory:
    monkeypatch.setenv("CAUSERIE_KEY_FILE", "1")
    monkeypatch.setattr(key_changes, "passphrase_way", _cheap)
    return open_profile_directory(tmp_path / "profile")


def _cheap(passphrase: str, key: bytes, cost: Cost | None = None) -> Way:
    return passphrase_way(passphrase, key, cost or CHEAP)


def port_of(
    profile: ProfileDirectory, *, words: str = WORDS, alone: bool = False
) -> PassphraseControl:
    key = obtain_database_key(profile)
    if words:
        set_passphrase(profile, key.key, words, alone=alone, cost=CHEAP)
    return PassphraseControl(profile, key, force_key_file=True)


@asynccontextmanager
async def at_a_group(
    port: PassphraseControl,
    *,
    stored: dict[str, str] | None = None,
    control: SettingsControl | None = None,
    restore_beside: Callable[[], None] | None = None,
) -> AsyncIterator[tuple[Stage, ScriptedEngine, ConversationId]]:
    engine = ScriptedEngine()
    group = engine.add_group(GROUP)
    engine.receive(group, "Maya", WELL, notify=False)
    around = WindowContext(passphrase=port, restore_beside=restore_beside)
    async with stage(engine, opening=group, around=around, stored=stored, control=control) as it:
        yield it, engine, group


def page_of(window: MainWindow) -> LockPage:
    page = window.lock.page
    assert page is not None
    assert window.centralWidget() is page
    return page


async def unlock(window: MainWindow, words: str = WORDS) -> None:
    form = page_of(window).form
    QTest.keyClicks(form.passphrase, words)
    QTest.keyClick(form.passphrase, Key.Key_Return)
    await until(lambda: not window.lock.is_locked)


def heard_of(interface: QAccessibleInterface) -> Iterator[str]:
    """All that a screen reader can be told of something and what is in it."""
    if not interface.isValid():
        return
    for kind in (QAccessible.Text.Name, QAccessible.Text.Description, QAccessible.Text.Value):
        yield interface.text(kind)
    for number in range(interface.childCount()):
        child = interface.child(number)
        if child is not None:
            yield from heard_of(child)


def heard_everywhere() -> str:
    said = []
    for window in QApplication.topLevelWidgets():
        if window.isVisible():
            said += list(heard_of(QAccessible.queryAccessibleInterface(window)))
    return "\n".join(said)


def test_nothing_of_it_is_read_while_it_is_locked_and_all_of_it_after(
    profile: ProfileDirectory,
) -> None:
    async def scenario() -> None:
        async with at_a_group(port_of(profile)) as (it, _engine, _group):
            window = it.window
            await until(lambda: WELL in heard_everywhere())
            assert GROUP in window.windowTitle()
            it.write("half a senten", on=window.pane.composer.box)
            window.lock.lock()
            said = heard_everywhere()
            assert "Causerie is locked" in said
            for hidden in (WELL, GROUP, "Maya", "half a senten"):
                assert hidden not in said
            assert window.windowTitle() == "Causerie"
            assert QApplication.focusWidget() is page_of(window).form.passphrase
            await unlock(window)
            assert WELL in heard_everywhere()
            assert GROUP in window.windowTitle()
            assert window.pane.composer.box.toPlainText() == "half a senten"
            assert QApplication.focusWidget() is window.pane.composer.box
            it.press(Key.Key_K, CONTROL)
            await until(lambda: window.flows.sheet is not None)

    play(scenario)


def test_no_key_leads_past_the_page(profile: ProfileDirectory) -> None:
    async def scenario() -> None:
        async with at_a_group(port_of(profile)) as (it, engine, _group):
            window = it.window
            await until(lambda: WELL in heard_everywhere())
            window.lock.lock()
            page = page_of(window)
            sent = len(engine.called("send_text"))
            for action in window.actions():
                assert not action.isEnabled() or not action.shortcuts()
            for key, modifiers in (
                (Key.Key_K, CONTROL), (Key.Key_F, CONTROL), (Key.Key_N, CONTROL),
                (Key.Key_Comma, CONTROL), (Key.Key_F6, Qt.KeyboardModifier.NoModifier),
                (Key.Key_F1, Qt.KeyboardModifier.NoModifier),
                (Key.Key_L, CONTROL), (Key.Key_Escape, Qt.KeyboardModifier.NoModifier),
                (Key.Key_Return, Qt.KeyboardModifier.AltModifier),
            ):  # fmt: skip
                it.press(key, modifiers)
                await turn()
                assert window.flows.sheet is None
                assert window.centralWidget() is page
            seen = set()
            for _ in range(12):
                QTest.keyClick(QApplication.focusWidget() or window, Key.Key_Tab)
                focused = QApplication.focusWidget()
                assert focused is not None
                assert page.isAncestorOf(focused)
                seen.add(focused)
            assert page.quit in seen
            assert WELL not in heard_everywhere()
            assert len(engine.called("send_text")) == sent

    play(scenario)


def test_a_sheet_a_menu_and_what_was_written_in_them(profile: ProfileDirectory) -> None:
    async def scenario() -> None:
        async with at_a_group(port_of(profile)) as (it, _engine, _group):
            window = it.window
            window.flows.new_group()
            sheet = await sheet_of(window, CreateGroup)
            sheet.name.setText("a secret club")
            menu = QMenu("a secret menu", window)
            menu.addAction("a secret entry")
            menu.popup(window.pos())
            await until(menu.isVisible)
            window.lock.lock()
            assert not menu.isVisible()
            assert not sheet.isVisible()
            assert "secret" not in heard_everywhere()
            window.resize(900, 700)
            await unlock(window)
            await until(sheet.isVisible)
            assert sheet.name.text() == "a secret club"
            focused = QApplication.focusWidget()
            assert focused is not None
            assert sheet.isAncestorOf(focused)
            sheet.reject()
            await until(lambda: window.flows.sheet is None)

    play(scenario)


def test_what_comes_meanwhile_is_received_told_without_content_and_unread(
    profile: ProfileDirectory,
) -> None:
    async def scenario() -> None:
        async with at_a_group(port_of(profile)) as (it, engine, group):
            window, desk = it.window, listen_to(it.window)
            other = engine.add_group("Other group")
            await until(lambda: window.model.conversation(other) is not None)
            engine.receive(other, "Maya", "shown before")
            await until(lambda: "shown before" in str(desk.bodies()))
            window.lock.lock()
            assert all(not _tells(each) for each in desk.on_screen.values())
            engine.receive(group, "Maya", "while it was locked")
            await until(lambda: group in desk.on_screen)
            told = desk.on_screen[group]
            assert (told.title, told.body) == ("Causerie", "1 new message")
            assert not told.can_reply
            assert not told.can_mark_read
            assert window.pane.conversation is not None
            assert not engine.called("mark_read") or it.listed(group).unread
            await unlock(window)
            await until(lambda: "while it was locked" in heard_everywhere())
            await until(lambda: group not in desk.on_screen)

    play(scenario)


def _tells(notification: DesktopNotification) -> bool:
    text = f"{notification.title} {notification.body}"
    return any(word in text for word in ("Maya", "shown before", "Other group", "locked"))


def test_a_notification_leads_to_the_page_and_then_where_it_pointed(
    profile: ProfileDirectory,
) -> None:
    async def scenario() -> None:
        async with at_a_group(port_of(profile)) as (it, engine, group):
            window, desk = it.window, listen_to(it.window)
            other = engine.add_group("Other group")
            await until(lambda: window.model.conversation(other) is not None)
            window.lock.lock()
            engine.receive(other, "Maya", "come")
            await until(lambda: other in desk.on_screen)
            sent, read = len(engine.called("send_text")), len(engine.called("mark_read"))
            desk.do(MarkedRead(other))
            desk.do(Replied(other, "typed into an old notification"))
            desk.do(Opened(other))
            await turn()
            assert window.centralWidget() is page_of(window)
            assert window.pane.is_open(group)
            assert len(engine.called("send_text")) == sent, "no reply from a locked window"
            assert len(engine.called("mark_read")) == read
            await unlock(window)
            await until(lambda: window.pane.is_open(other))
            box = window.pane.composer.box
            await until(lambda: box.toPlainText() == "typed into an old notification")

    play(scenario)


def test_it_stays_locked_over_a_restart_and_without_a_passphrase_never_is(
    profile: ProfileDirectory,
) -> None:
    kept: dict[str, str] = {}
    port = port_of(profile)

    async def scenario() -> None:
        async with at_a_group(port, stored=kept) as (it, _engine, _group):
            it.window.lock.lock()
        async with at_a_group(port, stored=kept) as (it, _engine, _group):
            assert it.window.lock.is_locked
            assert WELL not in heard_everywhere()
            assert it.window.windowTitle() == "Causerie"
            await unlock(it.window)
            await until(lambda: WELL in heard_everywhere())
            assert GROUP in it.window.windowTitle()
        async with at_a_group(port, stored=kept) as (it, _engine, _group):
            assert not it.window.lock.is_locked
            it.window.lock.lock()
        await port.remove_passphrase()
        async with at_a_group(port, stored=kept) as (it, _engine, _group):
            assert not it.window.lock.is_locked
            it.window.lock.lock()
            assert not it.window.lock.is_locked

    play(scenario)


def test_what_was_taken_out_ends_with_the_window(profile: ProfileDirectory) -> None:
    """Else it would go on following the theme with menus that are gone."""

    async def scenario() -> None:
        async with at_a_group(port_of(profile)) as (it, _engine, _group):
            window, pane, header = it.window, it.window.pane, it.window.pane.header
            window.lock.lock()
            await unlock(window)
            window.lock.lock()
        await until(lambda: not isValid(window))
        assert not isValid(pane)
        assert not isValid(header)

    play(scenario)


def test_whoever_forgot_it_is_led_to_a_backup(profile: ProfileDirectory) -> None:
    """The keyring opens the profile at a start, so no other page would offer it."""

    async def scenario() -> None:
        asked, closed = list[bool](), list[bool]()
        port = port_of(profile)
        async with at_a_group(port, restore_beside=lambda: asked.append(True)) as (it, _e, _group):
            window = it.window
            window.closed.connect(lambda: closed.append(True))
            window.lock.lock()
            page_of(window).restore.click()
            assert (asked, closed) == ([True], [True])
        async with at_a_group(port) as (it, _e, _group):
            it.window.lock.lock()
            assert not page_of(it.window).restore.isVisible()

    play(scenario)


def test_wrong_ones_do_not_open_it_and_it_can_be_closed(profile: ProfileDirectory) -> None:
    async def scenario() -> None:
        async with at_a_group(port_of(profile)) as (it, _engine, _group):
            window = it.window
            window.lock.lock()
            form = page_of(window).form
            QTest.keyClicks(form.passphrase, "not this one")
            QTest.keyClick(form.passphrase, Key.Key_Return)
            await until(form.problem.isVisible)
            assert form.problem.text() == "This is not the passphrase."
            assert window.lock.is_locked
            closed = list[bool]()
            window.closed.connect(lambda: closed.append(True))
            QTest.keyClick(form.passphrase, Key.Key_Q, CONTROL)
            assert closed == [True]

    play(scenario)


# --- by itself ----------------------------------------------------------------------------------


def test_it_locks_after_the_time_without_input_and_each_input_begins_anew() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            now = [0]
            watch = IdleWatch(it.window, now_ms=lambda: now[0])
            idle = list[int]()
            watch.idle.connect(lambda: idle.append(now[0]))
            watch.begin(300_000)
            handle = it.window.windowHandle()
            now[0] = 299_999
            watch.look()
            QTest.keyClick(handle, Key.Key_A)
            now[0] = 599_998
            watch.look()
            assert idle == []
            where = QPointF(5, 5)
            moved = QMouseEvent(
                QEvent.Type.MouseMove, where, where, Qt.MouseButton.NoButton,
                Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
            )  # fmt: skip
            QApplication.sendEvent(handle, moved)
            now[0] = 899_998
            watch.look()
            assert idle == [899_998]
            watch.begin(300_000)
            now[0] += 8 * 3_600_000
            eaten = QEvent(QEvent.Type.KeyPress)
            assert watch.eventFilter(handle, eaten), "the key that wakes the machine goes nowhere"
            assert len(idle) == 2
            watch.begin(0)
            now[0] += 10**9
            watch.look()
            assert len(idle) == 2

    play(scenario)


def test_it_looks_again_by_itself_after_the_machine_slept() -> None:
    """What stood there is not shown to whoever opens the lid, until a timer of an hour ends."""

    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            now = [0]
            watch = IdleWatch(it.window, now_ms=lambda: now[0], look_ms=1)
            idle = list[bool]()
            watch.idle.connect(lambda: idle.append(True))
            watch.begin(3_600_000)
            now[0] += 8 * 3_600_000
            await until(lambda: bool(idle))
            watch.begin(0)

    play(scenario)


def test_a_key_that_wakes_an_open_conversation_locks_and_is_typed_nowhere(
    profile: ProfileDirectory,
) -> None:
    async def scenario() -> None:
        async with at_a_group(port_of(profile)) as (it, _engine, _group):
            window, box, now = it.window, it.window.pane.composer.box, [0]
            await until(lambda: WELL in heard_everywhere())
            watch = IdleWatch(window, now_ms=lambda: now[0])
            watch.idle.connect(window.lock.lock)
            watch.begin(300_000)
            now[0] += 8 * 3_600_000

            def wake() -> None:
                watch.idle.connect(lambda: watch.begin(0))
                QTest.keyClick(window.windowHandle(), Key.Key_A)

            # Not from a task: the key lets the loop turn, which no task may begin within another.
            asyncio.get_running_loop().call_soon(wake)
            await until(lambda: window.lock.is_locked)
            await turn()
            assert not page_of(window).form.passphrase.text()
            await unlock(window)
            assert not box.toPlainText()

    play(scenario)


def test_the_screen_locks_it_unless_the_settings_say_no(profile: ProfileDirectory) -> None:
    async def scenario() -> None:
        for said, locks in (("no", False), ("yes", True)):
            stored = {"lock_with_screen": said}
            async with at_a_group(port_of(profile), stored=stored) as (it, _engine, _group):
                it.window.lock.screen_locked()
                assert it.window.lock.is_locked is locks

    play(scenario)


# --- the passphrase in the window ---------------------------------------------------------------


def settings_in(place: Path) -> SettingsControl:
    return SettingsControl(place / "settings.toml", Settings())


def test_it_is_set_by_the_command_to_lock_and_then_locks(profile: ProfileDirectory) -> None:
    async def scenario() -> None:
        async with at_a_group(port_of(profile, words="")) as (it, _engine, _group):
            window = it.window
            it.press(Key.Key_L, CONTROL)
            sheet = await sheet_of(window, SetPassphrase)
            assert sheet.alone.isChecked()
            it.write(WORDS, on=sheet.passphrase)
            assert not sheet.confirm.isEnabled()
            it.write(WORDS, on=sheet.again)
            sheet.confirm.click()
            await until(lambda: window.lock.is_locked)
            await unlock(window)
            assert not profile.place_secret.exists()
            assert window.lock.key_storage() == "passphrase"

    play(scenario)


def test_it_is_changed_and_removed_on_the_settings_page(
    profile: ProfileDirectory, tmp_path: Path
) -> None:
    async def scenario() -> None:
        port = port_of(profile, alone=True)
        async with at_a_group(port, control=settings_in(tmp_path)) as (it, _engine, _group):
            window = it.window
            page = open_settings(window, "privacy")
            kept = row_of(page, "Where the key lies")
            assert kept.hint.text() == "The key to your messages opens with your passphrase."
            row = row_of(page, "Passphrase")
            assert row.hint.text() == "Asked at every start, and when the window is locked."
            window.lock_flows.set_passphrase()
            change = await sheet_of(window, SetPassphrase)
            it.write("not this one", on=change.current)
            it.write("quite another one", on=change.passphrase)
            it.write("quite another one", on=change.again)
            change.confirm.click()
            await until(change.problem.isVisible)
            assert change.problem.text() == "This is not the passphrase."
            change.current.clear()
            it.write(WORDS, on=change.current)
            change.alone.click()
            change.confirm.click()
            await until(lambda: window.flows.sheet is None)
            assert "the key file opens the profile at a start" in row.hint.text()
            window.lock_flows.remove_passphrase()
            remove = await sheet_of(window, RemovePassphrase)
            it.write("quite another one", on=remove.current)
            remove.confirm.click()
            await until(lambda: window.flows.sheet is None)
            assert not window.lock.can_lock
            assert "in a file beside" in row_of(page, "Where the key lies").hint.text()
            assert "if this device is lost" in row.hint.text()
            await until(lambda: "lies in a file beside them" in words_of(window.notices))

    play(scenario)


def test_the_time_is_a_setting_in_force_at_once(profile: ProfileDirectory, tmp_path: Path) -> None:
    async def scenario() -> None:
        control = settings_in(tmp_path)
        async with at_a_group(port_of(profile), control=control) as (it, _engine, _group):
            page = open_settings(it.window, "privacy")
            choice = control_of(page, "Lock when unused", Choice)
            choice.setCurrentIndex(2)
            choice.activated.emit(2)
            await until(lambda: control.settings.privacy.lock_after == "15")
            assert it.window.lock.idle_limit_ms == 15 * 60_000

    play(scenario)


def test_a_terminal_is_told_nothing_of_a_locked_window(profile: ProfileDirectory) -> None:
    async def scenario() -> None:
        async with at_a_group(port_of(profile)) as (it, engine, _group):
            window, told = it.window, list[bytes]()
            released = asyncio.Event()

            async def figures() -> Figures:
                await released.wait()
                return FIGURES

            engine.inspected.figures_of = figures
            tell_figures(window, engine, told.append)
            window.lock.lock()
            released.set()
            await until(lambda: bool(told))
            tell_figures(window, engine, told.append)
            assert told == [LOCKED, LOCKED], "neither asked before nor while it is locked"
            (line,) = page_of_figures(json.loads(LOCKED))
            assert line == "Causerie is locked: its window asks for the passphrase."
            await unlock(window)
            tell_figures(window, engine, told.append)
            await until(lambda: len(told) == 3)
            assert json.loads(told[2])["conversations"][0]["name"] == GROUP

    play(scenario)
