"""Somebody of a group is written to, in real windows on real engines: what both sides see."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import until
from tests.ui.seeing import sheet_of
from tests.ui.test_window_real_governing import act, ask, create, invite, is_member, member
from tests.ui.test_window_real_people import in_state
from ui.dialogs.confirm import Confirm
from ui.governing_acts import MemberAct
from ui.people import Answer
from ui.side.person import PersonPanel


async def write_to(desk: Desk, name: str) -> ConversationId:
    """By real clicks, from the open group."""
    desk.window.side.show_person(member(desk, name).participant_id)
    panel = desk.window.side.panel
    assert isinstance(panel, PersonPanel)
    await until(panel.write.isVisible)
    QTest.mouseClick(panel.write, Qt.MouseButton.LeftButton)
    sheet = await sheet_of(desk.window, Confirm)
    QTest.mouseClick(sheet.confirm, Qt.MouseButton.LeftButton)
    pane = desk.window.pane
    await until(lambda: pane.conversation is not None and pane.conversation.contact is not None)
    assert pane.conversation is not None
    return pane.conversation.conversation_id


def request_words(desk: Desk, pair: ConversationId) -> str:
    desk.window.open_conversation(pair)
    return desk.window.pane.contact_bar.words.text()


def test_who_is_asked_sees_through_which_group_they_know_each_other(tmp_path: Path) -> None:
    async def scenario(olga: Desk, anna: Desk) -> None:
        group = await create(olga, "Tide Gauge")
        await ask(anna, await invite(olga))
        await until(lambda: anna.window.pane.is_open(group))
        await until(is_member(anna, "Olga"))
        pair = await write_to(anna, "Olga")
        assert anna.window.pane.contact_bar.title.text() == "Waiting for Olga to accept"
        await until(lambda: in_state(olga, ContactState.ASKING))
        assert "They are in Tide Gauge, as you are." in request_words(olga, pair)
        accept = olga.window.pane.contact_bar.buttons[Answer.ACCEPT]
        QTest.mouseClick(accept, Qt.MouseButton.LeftButton)
        await until(anna.window.pane.composer.box.isEnabled)
        anna.type_and_enter("About the gauge")
        await until(lambda: olga.has_row("Anna", "About the gauge"))

    at_desks(tmp_path, ("Olga", "Anna"), scenario)


def test_nobody_comes_from_a_group_by_saying_so_or_after_a_removal(tmp_path: Path) -> None:
    async def scenario(olga: Desk, tom: Desk, mallory: Desk) -> None:
        group = await create(olga, "Tide Gauge")
        await ask(tom, await invite(olga))
        await until(lambda: tom.window.pane.is_open(group))
        await until(is_member(olga, "Tom"))
        link = await olga.engine.people.make_contact_link()
        by_mallory = await mallory.engine.people.add(link)
        await until(lambda: olga.window.model.conversation(by_mallory) is not None)
        assert "You share no group with them." in request_words(olga, by_mallory)

        by_tom = await write_to(tom, "Olga")
        await until(lambda: olga.window.model.conversation(by_tom) is not None)
        assert "They are in Tide Gauge, as you are." in request_words(olga, by_tom)
        olga.window.open_conversation(group)
        await act(olga, group, "Tom", MemberAct.REMOVE)
        await until(lambda: not is_member(olga, "Tom")())
        assert "You share no group with them." in request_words(olga, by_tom)

    at_desks(tmp_path, ("Olga", "Tom", "Anna, of Tide Gauge"), scenario)
