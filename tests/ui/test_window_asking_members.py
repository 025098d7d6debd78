"""Writing to somebody of a group: from the panel, the menus and a message; who cannot be asked."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId
from engine.events import MemberView, MessageView
from tests.ui.driving import Key, Stage, group_stage, play, stage, until
from tests.ui.on_messages import bubble, choose, menu_of
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import entries, sheet_of, words_of
from ui.dialogs.confirm import Confirm
from ui.dialogs.person import AddPerson
from ui.side.group import GroupPanel, MemberRow
from ui.side.person import PersonPanel

pytestmark = pytest.mark.usefixtures("qapp")
ASKING = "They have to agree before either of you can write."


def row_of(it: Stage, who: str) -> MemberRow:
    it.window.side.show_open()
    panel = it.window.side.panel
    assert isinstance(panel, GroupPanel)
    return panel.rows[member(who).participant_id]


def panel_of(it: Stage, who: str) -> PersonPanel:
    it.window.side.show_person(member(who).participant_id)
    panel = it.window.side.panel
    assert isinstance(panel, PersonPanel)
    return panel


def right_click(widget: QWidget, at: QPoint) -> None:
    reason = QContextMenuEvent.Reason.Mouse
    QApplication.sendEvent(widget, QContextMenuEvent(reason, at, widget.mapToGlobal(at)))


def right_click_on_avatar(it: Stage, message: MessageView) -> None:
    view = it.window.pane.timeline
    g = view.scene.geometry
    box, y = bubble(it, message)
    at = QPointF(g.thread_x, box.bubble.top() + g.avatar / 2 + y).toPoint()
    right_click(view.viewport(), at)


def set_member(engine: ScriptedEngine, group: ConversationId, changed: MemberView) -> None:
    members = engine.views[group].members
    same = changed.participant_id
    now = tuple(changed if one.participant_id == same else one for one in members)
    engine.change(group, members=now)


async def confirmed(it: Stage, engine: ScriptedEngine, group: ConversationId, who: str) -> None:
    """The sheet says what it means, and whoever agrees waits in the conversation with them."""
    sheet = await sheet_of(it.window, Confirm)
    assert f"Ask {who} to talk?" in words_of(sheet)
    assert ASKING in words_of(sheet)
    assert member(who).fingerprint in words_of(sheet)
    await until(sheet.cancel.hasFocus)  # Enter must not ask by accident.
    QTest.mouseClick(sheet.confirm, Qt.MouseButton.LeftButton)
    await until(lambda: it.window.flows.sheet is None)
    assert engine.called("ask_member") == [(group, member(who).participant_id)]
    conversation = it.window.pane.conversation
    assert conversation is not None
    assert conversation.name == who
    assert it.window.pane.contact_bar.title.text() == f"Waiting for {who} to accept"


@pytest.mark.parametrize("by_mouse", [False, True])
def test_the_panel_of_a_member_asks_them_first(by_mouse: bool) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            panel = panel_of(it, "Maya")
            assert panel.write.isVisible()
            if by_mouse:
                QTest.mouseClick(panel.write, Qt.MouseButton.LeftButton)
            else:
                panel.write.setFocus()
                it.press(Key.Key_Return, on=panel.write)
            await confirmed(it, engine, group, "Maya")

    play(scenario)


def test_who_thinks_better_of_it_asks_nobody() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            panel_of(it, "Maya").write.click()
            sheet = await sheet_of(it.window, Confirm)
            it.press(Key.Key_Return, on=sheet.cancel)
            await until(lambda: it.window.flows.sheet is None)
            assert engine.called("ask_member") == []
            assert it.window.pane.is_open(group)

    play(scenario)


@pytest.mark.parametrize("by_mouse", [False, True])
def test_the_menu_of_a_member_leads_there(by_mouse: bool) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = row_of(it, "Maya")
            await until(row.more.isVisible)
            if by_mouse:
                QTest.mouseClick(row.more, Qt.MouseButton.LeftButton)
            else:
                reason, middle = QContextMenuEvent.Reason.Keyboard, row.rect().center()
                event = QContextMenuEvent(reason, middle, row.mapToGlobal(middle))
                QApplication.sendEvent(row, event)
            assert row.menu is not None
            await until(row.menu.isActiveWindow)
            assert entries(row.menu) == ["Write to them…", "Remove from the group…"]
            assert row.menu.accessibleName() == row.accessibleName()
            it.press(Key.Key_Down, on=row.menu)
            it.press(Key.Key_Return, on=row.menu)
            await confirmed(it, engine, group, "Maya")

    play(scenario)


def test_the_right_button_on_a_sender_s_picture_leads_there_too() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            message = engine.receive(group, "Maya", "Low water is 10:52")
            view = it.window.pane.timeline
            await until(lambda: bool(view.scene.placed) and view.scene.loaded.total == 1)
            right_click_on_avatar(it, message)
            await until(menu_of(it).isActiveWindow)
            assert "Write to Maya" in entries(menu_of(it))
            choose(menu_of(it), "Write to Maya")
            await confirmed(it, engine, group, "Maya")

    play(scenario)


@pytest.mark.parametrize("state", [*ContactState])
def test_the_conversation_that_is_there_opens_at_once(state: ContactState) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", ("Maya", "Jonas"))
        pair = engine.add_person("Maya", state)
        message = engine.receive(group, "Maya", "Low water is 10:52")
        async with stage(engine, opening=group) as it:
            view = it.window.pane.timeline
            await until(lambda: bool(view.scene.placed))
            panel = panel_of(it, "Maya")
            assert panel.write.accessibleName() == "Write to them"
            QTest.mouseClick(panel.write, Qt.MouseButton.LeftButton)
            assert it.window.pane.is_open(pair)
            it.window.open_conversation(group)
            row = row_of(it, "Maya")
            QTest.mouseClick(row.more, Qt.MouseButton.LeftButton)
            assert row.menu is not None
            choose(row.menu, "Write to them")
            assert it.window.pane.is_open(pair)
            it.window.open_conversation(group)
            await until(lambda: bool(view.scene.placed))
            right_click_on_avatar(it, message)
            choose(menu_of(it), "Write to Maya")
            assert it.window.pane.is_open(pair)
            assert engine.called("ask_member") == []
            assert it.window.flows.sheet is None

    play(scenario)


def test_in_a_conversation_of_two_nobody_is_written_to_twice() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        pair = engine.add_person("Maya")
        message = engine.receive(pair, "Maya", "Hello")
        async with stage(engine, opening=pair) as it:
            view = it.window.pane.timeline
            await until(lambda: view.scene.loaded.total == 1)
            view.interaction.open_menu(message, QPoint(0, 0), link=None)
            assert "About Maya" in entries(menu_of(it))
            assert "Write to Maya" not in entries(menu_of(it))
            menu_of(it).close()
            it.window.side.show_open()
            panel = it.window.side.panel
            assert isinstance(panel, PersonPanel)
            assert not panel.write.isVisible()

    play(scenario)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (replace(member("Maya"), has_left=True), "They are not in this group any more."),
        (replace(member("Maya"), has_keys=False), "so their keys are not known"),
        (
            replace(member("Ines", is_self=True), has_left=True),
            "You are not in this group any more.",
        ),
    ],
)
def test_who_cannot_be_asked_has_the_reason_and_the_other_way(
    changed: MemberView, reason: str
) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            set_member(engine, group, member("Ines", is_self=True))  # Somebody else made it.
            set_member(engine, group, changed)
            row = row_of(it, "Maya")
            assert row.more.isHidden()
            right_click(row, row.rect().center())
            assert row.menu is None
            panel = panel_of(it, "Maya")
            assert not panel.write.isVisible()
            assert reason in panel.how.text()
            assert "needs the other's contact link" in panel.how.text()
            QTest.mouseClick(panel.link, Qt.MouseButton.LeftButton)
            (await sheet_of(it.window, AddPerson)).reject()

    play(scenario)


def test_the_panel_offers_it_once_their_keys_have_come() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            set_member(engine, group, replace(member("Maya"), has_keys=False))
            panel = panel_of(it, "Maya")
            assert panel.how.isVisible()
            set_member(engine, group, member("Maya"))
            await until(panel.write.isVisible)
            assert not panel.how.isVisible()
            assert not panel.link.isVisible()

    play(scenario)


def test_a_message_of_whom_the_keys_are_not_known_says_why() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            message = engine.receive(group, "Maya", "Low water is 10:52")
            set_member(engine, group, replace(member("Maya"), has_keys=False))
            view = it.window.pane.timeline
            await until(lambda: bool(view.scene.placed) and view.scene.loaded.total == 1)
            right_click_on_avatar(it, message)
            choose(menu_of(it), "Write to Maya")
            sheet = await sheet_of(it.window, Confirm)
            assert "Maya cannot be asked from here" in words_of(sheet)
            assert "their keys are not known" in words_of(sheet)
            assert not sheet.cancel.isVisible()
            it.press(Key.Key_Return, on=sheet.confirm)
            await until(lambda: it.window.flows.sheet is None)
            assert engine.called("ask_member") == []

    play(scenario)
