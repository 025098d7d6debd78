"""A governed group from its making to a removal and back, in three windows on real engines."""

from collections.abc import Callable
from pathlib import Path

from engine.core.ids import ConversationId
from engine.events import MemberView
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import until
from tests.ui.seeing import seen_words, sheet_of, words_of
from ui.dialogs.confirm import Confirm
from ui.dialogs.group import CreateGroup
from ui.dialogs.invite import Invite
from ui.dialogs.join import Join
from ui.governing_acts import MemberAct
from ui.side.group import GroupPanel


async def create(desk: Desk, name: str) -> ConversationId:
    desk.window.flows.new_group()
    sheet = await sheet_of(desk.window, CreateGroup)
    sheet.name.setText(name)
    sheet.confirm.click()
    await until(lambda: desk.window.pane.conversation is not None)
    conversation = desk.window.pane.conversation
    assert conversation is not None
    return conversation.conversation_id


async def invite(desk: Desk, *, approval: bool = False) -> str:
    desk.window.pane.header.invite_requested.emit()
    sheet = await sheet_of(desk.window, Invite)
    sheet.form.approval.setChecked(approval)
    sheet.confirm.click()
    await until(lambda: bool(sheet.link))
    link = sheet.link
    sheet.reject()
    await until(lambda: desk.window.flows.sheet is None)
    return link


async def ask(desk: Desk, link: str) -> None:
    desk.window.flows.show_invitation(link)
    sheet = await sheet_of(desk.window, Join)
    assert sheet.confirm.accessibleName() == "Ask to join Tide Gauge"
    sheet.confirm.click()
    await until(lambda: desk.window.flows.sheet is None)


def waiting_words(desk: Desk) -> str:
    return words_of(desk.window.panel.waiting)


def member(desk: Desk, name: str) -> MemberView:
    conversation = desk.window.pane.conversation
    assert conversation is not None
    return next(each for each in conversation.members if each.name == name)


def is_member(desk: Desk, name: str) -> Callable[[], bool]:
    def holds() -> bool:
        conversation = desk.window.pane.conversation
        members = () if conversation is None else conversation.members
        return any(each.name == name and not each.has_left for each in members)

    return holds


async def act(desk: Desk, group: ConversationId, name: str, wanted: MemberAct) -> None:
    desk.window.governing.act(group, member(desk, name).participant_id, wanted)
    sheet = await sheet_of(desk.window, Confirm)
    sheet.confirm.click()
    await until(lambda: desk.window.flows.sheet is None)


def test_invited_once_approved_promoted_removed_and_let_in_again(tmp_path: Path) -> None:
    async def scenario(olga: Desk, anna: Desk, tom: Desk) -> None:
        group = await create(olga, "Tide Gauge")
        link = await invite(olga)
        await ask(anna, link)
        await until(lambda: anna.window.pane.is_open(group))
        await until(lambda: anna.has_row("Olga let you in"))
        await until(is_member(olga, "Anna"))
        await until(lambda: olga.has_row("You let Anna in"))

        await ask(tom, link)
        await until(lambda: "The invitation is used up" in waiting_words(tom))
        assert tom.window.pane.conversation is None

        await ask(tom, await invite(olga, approval=True))
        await until(lambda: "Olga has to decide" in waiting_words(tom))
        bar = olga.window.pane.governance.asking
        await until(bar.isVisible)
        assert "Tom asks to be let in" in words_of(bar)
        bar.buttons[1].click()
        await until(lambda: tom.window.pane.is_open(group))
        assert {member(tom, each).name for each in ("Olga", "Anna")} == {"Olga", "Anna"}
        await until(is_member(anna, "Tom"))
        await until(is_member(olga, "Tom"))
        assert member(tom, "Olga").safety_number == member(olga, "Tom").safety_number != ""
        assert member(tom, "Anna").safety_number != member(tom, "Olga").safety_number
        assert not tom.window.panel.waiting.isVisible()

        await act(olga, group, "Anna", MemberAct.PROMOTE)
        await until(lambda: anna.has_row("Olga made you an admin"))
        anna.window.side.show_open()
        panel = anna.window.side.panel
        assert isinstance(panel, GroupPanel)
        await until(lambda: {"owner", "admin"} <= set(seen_words(panel)))

        await act(anna, group, "Tom", MemberAct.REMOVE)
        out = tom.window.pane.governance.out
        await until(out.isVisible)
        assert "Anna removed you from this group" in words_of(out)
        assert not tom.window.pane.composer.isVisible()
        olga.type_and_enter("only for the two of us")
        await until(lambda: anna.has_row("only for the two of us"))
        assert not tom.has_row("only for the two of us")

        await ask(tom, await invite(anna))
        await until(lambda: not out.isVisible())
        await until(is_member(olga, "Tom"))
        tom.type_and_enter("back again")
        await until(lambda: olga.has_row("back again"))
        assert not tom.has_row("only for the two of us")

    at_desks(tmp_path, ("Olga", "Anna", "Tom"), scenario)
