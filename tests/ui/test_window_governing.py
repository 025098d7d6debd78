"""Groups with roles in the window: made, invited to, governed, and left.

By keyboard and mouse, on the scripted engine.
"""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from engine.core.admin_log.acts import Role
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import ConversationId, ParticipantId
from engine.events import MessageKind, MessageView
from engine.governance_views import (
    DeedKind,
    DeedView,
    EarlierMessages,
    GovernanceView,
)
from tests.ui.driving import Key, Stage, play, stage, turn, until
from tests.ui.on_messages import focus, menu_of
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.scripted_governing import STRONG_LINK
from tests.ui.scripted_people import person_id, picture_bytes
from tests.ui.seeing import entries, sheet_of, spoken_rows, words_of
from ui.controls import Text
from ui.dialogs.confirm import Confirm, DeleteAsAdmin
from ui.dialogs.contact import SafetyNumber
from ui.dialogs.group import CreateGroup, GroupKind, InviteLink
from ui.dialogs.group_details import GroupDetails
from ui.dialogs.invite import Invite
from ui.dialogs.join import Join
from ui.governing_acts import MemberAct
from ui.governing_words import nobody_more_words
from ui.side.governed import GovernedSection
from ui.side.group import GroupPanel
from ui.side.person import PersonPanel

OLGA, LUC = person_id("Olga"), person_id("Luc")


def a_governed_group(own: Role = Role.OWNER) -> tuple[ScriptedEngine, ConversationId]:
    """With Olga as an admin, and Luc."""
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge", others=("Olga", "Luc"))
    engine.governing.govern(group, own, Olga=Role.ADMIN)
    return engine, group


def spoken(widget: QWidget) -> str:
    return QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)


def group_panel(it: Stage) -> GroupPanel:
    panel = it.window.side.panel
    assert isinstance(panel, GroupPanel)
    return panel


def notices(it: Stage) -> str:
    return "\n".join(notice.text for notice in it.window.notices.notices())


# --- making one, and inviting to it -------------------------------------------------------------


def test_a_new_group_lets_people_in_unless_one_chooses_the_link_for_everybody() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            it.press(Key.Key_N, Qt.KeyboardModifier.ControlModifier)
            sheet = await sheet_of(it.window, CreateGroup)
            assert sheet.kind is GroupKind.GOVERNED
            assert "once they have heard of it" in words_of(sheet)
            it.write("Tide Gauge")
            it.press(Key.Key_Return)
            await until(lambda: engine.called("create_governed") == ["Tide Gauge"])
            await until(lambda: it.window.flows.sheet is None)
            it.press(Key.Key_N, Qt.KeyboardModifier.ControlModifier)
            sheet = await sheet_of(it.window, CreateGroup)
            it.write("Open to all")
            it.press(Key.Key_Tab)
            assert spoken(sheet.kinds) == "Who can come in"
            it.press(Key.Key_Right)
            assert "nobody has a role" in words_of(sheet)
            sheet.confirm.click()
            await until(lambda: engine.called("create_group") == ["Open to all"])
            await until(lambda: it.window.flows.sheet is None)
            await turn()
            it.window.side.show_open()
            assert "Anyone with the link can come in" in words_of(group_panel(it))
            assert not group_panel(it).governed.details.isVisible()
            it.window.pane.header.invite_requested.emit()
            await sheet_of(it.window, InviteLink)

    play(scenario)


def test_an_invitation_is_made_as_one_says_handed_over_and_revoked() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            it.window.pane.header.invite_requested.emit()
            sheet = await sheet_of(it.window, Invite)
            assert "has to be online once" in words_of(sheet)
            sheet.form.uses.setFocus()
            it.press(Key.Key_Down)
            it.press(Key.Key_Down)
            it.press(Key.Key_Tab)
            it.press(Key.Key_Up)
            it.press(Key.Key_Tab)
            it.press(Key.Key_End)
            it.press(Key.Key_Tab)
            it.press(Key.Key_Space)
            engine.fail("invite", StorageError("full", StorageFault.DISK_FULL))
            sheet.confirm.click()
            await until(sheet.problem.isVisible)
            it.press(Key.Key_Return)  # It has the focus again.
            await until(lambda: bool(sheet.link))
            assert engine.called("invite") == [(5, 3, True, EarlierMessages.ALL)]
            assert sheet.confirm.hasFocus()
            assert sheet.confirm.accessibleName() == "Copy link"
            it.press(Key.Key_Return)
            assert QGuiApplication.clipboard().text() == sheet.link == f"{STRONG_LINK}/1"
            QTest.mouseClick(sheet.another, Qt.MouseButton.LeftButton)
            (row,) = sheet.rows.values()
            assert spoken(row).startswith("For 5 people, until")
            assert "You decide about each" in spoken(row)
            QTest.mouseClick(row.revoke_button, Qt.MouseButton.LeftButton)
            await until(lambda: any("revoked" in spoken(r) for r in sheet.rows.values()))
            (row,) = sheet.rows.values()
            assert not row.revoke_button.isVisible()
            assert not row.show_button.isVisible()

    play(scenario)


@pytest.mark.parametrize("is_shown_again", [False, True])
def test_the_sheet_with_a_link_says_what_the_invitation_allows(*, is_shown_again: bool) -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            it.window.pane.header.invite_requested.emit()
            sheet = await sheet_of(it.window, Invite)
            sheet.form.uses.setCurrentIndex(2)
            sheet.form.earlier.setCurrentIndex(1)
            sheet.form.approval.setChecked(True)
            sheet.confirm.click()
            await until(lambda: bool(sheet.link))
            if is_shown_again:
                sheet.another.click()
                (row,) = sheet.rows.values()
                row.show_button.click()
            said = words_of(sheet)
            assert "For 5 people, until" in said
            assert "You decide about each person." in said
            assert "They can read from 30 days ago on." in said
            view = engine.governing.known[group]
            at_once = replace(view.invitations[0], needs_approval=False)
            engine.governing.put(replace(view, invitations=(at_once,)))
            await until(lambda: "Whoever has the link comes in at once." in words_of(sheet))

    play(scenario)


def test_a_link_that_somebody_else_revokes_is_not_shown_any_longer() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            it.window.pane.header.invite_requested.emit()
            sheet = await sheet_of(it.window, Invite)
            sheet.confirm.click()
            await until(lambda: bool(sheet.link))
            view = engine.governing.known[group]
            await engine.governing.revoke(group, view.invitations[0].invitation_id)
            assert sheet.link == ""
            assert sheet.form.isVisible()

    play(scenario)


def test_who_may_not_invite_is_told_whom_to_ask() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group(Role.MEMBER)
        async with stage(engine, opening=group) as it:
            it.window.pane.header.invite_requested.emit()
            sheet = await sheet_of(it.window, Confirm)
            assert "Ask one of the admins" in words_of(sheet)
            sheet.confirm.click()
            await until(lambda: it.window.flows.sheet is None)
            it.window.side.show_open()
            panel = group_panel(it)
            assert not panel.invite.isVisible()
            assert not panel.governed.inviters.isVisible()
            row = panel.rows[LUC]
            QTest.mouseClick(row.more, Qt.MouseButton.LeftButton)
            assert entries(row.menu) == ["Write to them…"]

    play(scenario)


# --- who may what -------------------------------------------------------------------------------


def test_roles_stand_behind_names_and_what_can_be_done_is_asked_before() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            it.window.side.show_open()
            panel = group_panel(it)
            assert spoken(panel.rows[OLGA]).startswith("Olga, admin")
            own = next(row for row in panel.rows.values() if "you" in spoken(row))
            assert "owner" in spoken(own)
            row = panel.rows[LUC]
            QTest.mouseClick(row.more, Qt.MouseButton.LeftButton)
            await until(lambda: row.menu is not None and row.menu.isVisible())
            assert row.menu is not None
            assert [each.text() for each in row.menu.actions()] == [
                "Write to them…",
                "Make admin…",
                "Remove from the group…",
            ]
            it.press(Key.Key_Down, on=row.menu)
            it.press(Key.Key_Down, on=row.menu)
            it.press(Key.Key_Return, on=row.menu)
            sheet = await sheet_of(it.window, Confirm)
            assert "Only who ranks higher can take that back" in words_of(sheet)
            assert sheet.cancel.hasFocus()
            sheet.confirm.click()
            await until(lambda: engine.called("promote") == [LUC])
            await until(lambda: spoken(panel.rows[LUC]).startswith("Luc, admin"))

    play(scenario)


def test_a_member_is_removed_from_the_panel_about_them() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            it.window.side.show_person(OLGA)
            panel = it.window.side.panel
            assert isinstance(panel, PersonPanel)
            shown = {act for act, button in panel.acts.items() if button.isVisible()}
            assert shown == {MemberAct.DEMOTE, MemberAct.REMOVE}
            panel.acts[MemberAct.REMOVE].setFocus()
            it.press(Key.Key_Return)
            sheet = await sheet_of(it.window, Confirm)
            assert sheet.title.text() == "Remove Olga from Tide Gauge?"
            assert "once people have heard of it" in words_of(sheet)
            assert "cannot be taken back" in words_of(sheet)
            it.press(Key.Key_Escape)
            await until(lambda: it.window.flows.sheet is None)
            await turn()
            assert engine.called("remove_member") == []
            panel.acts[MemberAct.REMOVE].click()
            (await sheet_of(it.window, Confirm)).confirm.click()
            await until(lambda: engine.called("remove_member") == [OLGA])

    play(scenario)


@pytest.mark.parametrize("act", [MemberAct.PROMOTE, MemberAct.REMOVE])
def test_of_two_who_bear_one_name_it_is_said_which_one_is_meant(act: MemberAct) -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        members = engine.views[group].members
        luc = next(one for one in members if one.participant_id == LUC)
        for name, is_said in (("Olga", False), ("luc ", True)):
            others = (replace(one, name=name) if one.name == "Olga" else one for one in members)
            engine.views[group] = replace(engine.views[group], members=(*others,))
            async with stage(engine, opening=group) as it:
                it.window.governing.act(group, LUC, act)
                sheet = await sheet_of(it.window, Confirm)
                assert (luc.fingerprint in words_of(sheet)) is is_said
                sheet.reject()
                await until(lambda: it.window.flows.sheet is None)

    play(scenario)


def test_who_is_removed_while_they_look_elsewhere_comes_back_to_what_says_so() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group(Role.MEMBER)
        async with stage(engine, opening=group) as it:
            it.window.pane.composer.box.setFocus()
            other = QWidget()
            other.show()
            other.activateWindow()
            await until(lambda: not it.window.isActiveWindow())
            view = engine.governing.known[group]
            engine.governing.put(
                replace(view, own_role=Role.NOBODY, removed_by_name="Olga", roles={})
            )
            await until(it.window.pane.governance.out.isVisible)
            assert it.window.focusWidget() is it.window.pane.governance.out
            other.close()

    play(scenario)


@pytest.mark.parametrize("act", [MemberAct.PROMOTE, MemberAct.REMOVE])
def test_after_an_act_the_focus_stays_in_the_panel_about_the_person(act: MemberAct) -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            it.window.side.show_person(LUC)
            panel = it.window.side.panel
            assert isinstance(panel, PersonPanel)
            button = panel.acts[act]
            button.setFocus()
            button.click()
            (await sheet_of(it.window, Confirm)).confirm.click()
            await until(lambda: not button.isVisible())
            focused = it.window.focusWidget()
            assert focused is not None
            assert panel.isAncestorOf(focused), spoken(focused)
            assert focused is not panel.close_button

    play(scenario)


def test_name_topic_picture_and_who_may_invite_are_changed_each_by_itself() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            it.window.side.show_open()
            panel = group_panel(it)
            panel.governed.details.click()
            sheet = await sheet_of(it.window, GroupDetails)
            assert not sheet.confirm.isEnabled()
            it.write("Every two hours", on=sheet.topic)
            sheet.confirm.click()
            await until(lambda: engine.called("set_topic") == ["Every two hours"])
            assert engine.called("rename_group") == engine.called("set_picture") == []
            await until(lambda: panel.head.line.text() == "Every two hours")
            picture = picture_bytes()
            view = engine.governing.known[group]
            engine.governing.put(replace(view, picture=picture))
            assert it.window.model.picture(it.listed(group)) == picture
            segment = panel.governed.inviters.buttons[1]
            QTest.mouseClick(segment, Qt.MouseButton.LeftButton)
            await until(lambda: engine.called("set_inviters") == [Role.MEMBER])

    play(scenario)


def test_the_last_in_charge_is_warned_before_leaving() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            it.window.pane.header.leave_requested.emit()
            sheet = await sheet_of(it.window, Confirm)
            assert "after you nobody can" not in words_of(sheet)
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            await turn()
            await engine.governing.demote(group, OLGA)
            it.window.pane.header.leave_requested.emit()
            sheet = await sheet_of(it.window, Confirm)
            assert "after you nobody can" in words_of(sheet)

    play(scenario)


# --- what one sees in the conversation ----------------------------------------------------------


def test_who_was_removed_reads_on_and_is_offered_the_way_back_instead_of_a_composer() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group(Role.MEMBER)
        engine.receive(group, "Luc", "still here")
        async with stage(engine, opening=group) as it:
            pane = it.window.pane
            pane.composer.box.setFocus()
            view = engine.governing.known[group]
            engine.governing.put(
                replace(view, own_role=Role.NOBODY, removed_by_name="Olga", roles={})
            )
            bar = pane.governance.out
            assert bar.isVisible()
            assert not pane.composer.isVisible()
            assert spoken(bar).startswith("Olga removed you from this group")
            await until(lambda: any("still here" in row for row in spoken_rows(pane.timeline)))
            assert bar.hasFocus()
            assert entries(pane.header.more.menu())[-1] == "Remove…"
            it.write("hello?")
            assert pane.composer.text() == ""
            it.press(Key.Key_Tab)
            it.press(Key.Key_Tab)
            it.press(Key.Key_Tab)
            it.press(Key.Key_Return)
            (await sheet_of(it.window, Join)).reject()
            await until(lambda: it.window.flows.sheet is None)
            await turn()
            QTest.mouseClick(bar.buttons[1], Qt.MouseButton.LeftButton)
            sheet = await sheet_of(it.window, Confirm)
            assert "You are not in it any more" in words_of(sheet)
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            engine.governing.govern(group, Role.MEMBER)
            assert pane.composer.isVisible()
            assert not bar.isVisible()

    play(scenario)


def test_what_was_done_to_the_group_is_told_in_rows_and_deleting_names_who_did_it() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            row = engine.row(group, member("Olga"), "")
            deed = DeedView(kind=DeedKind.ADDED, about=LUC, about_name="Luc")
            engine.arrive(replace(row, kind=MessageKind.DEED, deed=deed))
            said = engine.receive(group, "Luc", "buy cheap")
            timeline = it.window.pane.timeline
            await until(lambda: any("Olga let Luc in" in row for row in spoken_rows(timeline)))
            it.window.about.delete(said, can_write=True)
            choice = await sheet_of(it.window, DeleteAsAdmin)
            assert "Everybody sees that you deleted it" in words_of(choice)
            choice.everybody.click()
            await until(lambda: engine.called("delete_message") == [said.message_id])
            engine.alter(replace(said, retracted=True, text="", spans=(), retracted_by="Olga"))
            await until(
                lambda: any("Olga deleted this message" in row for row in spoken_rows(timeline))
            )

    play(scenario)


def test_the_menu_says_whether_more_can_be_done_than_delete_it_here() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            said = engine.receive(group, "Luc", "buy cheap")
            hers = engine.receive(group, "Olga", "no")

            async def delete_words(message: MessageView) -> str:
                await focus(it, message)
                it.press(Key.Key_Menu, on=it.window.pane.timeline)
                listed = entries(menu_of(it))
                menu_of(it).close()
                return next(words for words in listed if words.startswith("Delete"))

            assert await delete_words(said) == "Delete…"
            engine.governing.govern(group, Role.ADMIN, Olga=Role.ADMIN)
            assert await delete_words(said) == "Delete…"
            assert await delete_words(hers) == "Delete here…", "they are of the same rank"
            engine.governing.govern(group, Role.MEMBER, Olga=Role.ADMIN)
            assert await delete_words(said) == "Delete here…"
            engine.governing.govern(group, Role.OWNER)
            anyone = engine.add_group("Anyone", others=("Luc",))
            it.window.open_conversation(anyone)
            loose = engine.receive(anyone, "Luc", "buy here")
            assert await delete_words(loose) == "Delete here…", "nobody rules here"

    play(scenario)


LONG_TERM_KEYS = (
    "For Luc, Olga the group's new keys are sealed to a long-term key: no fresh one of theirs is"
    " here."
)


def with_void_messages(view: GovernanceView) -> GovernanceView:
    return replace(view, voids={LUC: 3, OLGA: 1})


def with_members_whose_prekeys_are_not_here(view: GovernanceView) -> GovernanceView:
    return replace(view, without_prekey=frozenset({LUC, OLGA}))


@pytest.mark.parametrize(
    ("part", "now", "said"),
    [
        (
            lambda section: section.voids,
            with_void_messages,
            [
                "3 messages that Luc wrote after the removal are not shown.",
                "1 message that Olga wrote after the removal is not shown.",
            ],
        ),
        (
            lambda section: section.full,
            lambda view: replace(view, is_full=True),
            [nobody_more_words()],
        ),
        (
            lambda section: section.long_term,
            with_members_whose_prekeys_are_not_here,
            [LONG_TERM_KEYS],
        ),
    ],
)
def test_the_panel_says_what_one_has_to_know_of_members_while_it_is_so(
    part: Callable[[GovernedSection], Text],
    now: Callable[[GovernanceView], GovernanceView],
    said: list[str],
) -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        async with stage(engine, opening=group) as it:
            it.window.side.show_open()
            words = part(group_panel(it).governed)
            assert not words.isVisible()
            view = engine.governing.view(group)
            assert view is not None
            engine.governing.put(now(view))
            await until(words.isVisible)
            assert words.text().splitlines() == said
            engine.governing.put(view)
            await until(lambda: not words.isVisible())

    play(scenario)


def test_a_member_with_a_verified_persons_name_and_another_key_stops_what_one_writes() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group()
        members = engine.views[group].members
        lookalike = replace(members[2], name="M\u0430ya")  # A Cyrillic letter.
        engine.views[group] = replace(engine.views[group], members=(*members[:2], lookalike))
        engine.add_person("Maya")
        await engine.set_verified(person_id("Maya"), verified=True)
        kept: dict[str, str] = {}
        async with stage(engine, opening=group, stored=kept) as it:
            pane, bar = it.window.pane, it.window.pane.governance.namesake
            assert spoken(bar).startswith("This M\u0430ya is not the M\u0430ya whose key")
            assert bar.hasFocus()
            it.write("our secret")
            it.press(Key.Key_Return, on=pane.composer.box)
            await turn()
            assert engine.called("send_text") == []
            QTest.mouseClick(bar.buttons[0], Qt.MouseButton.LeftButton)
            sheet = await sheet_of(it.window, SafetyNumber)
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            await turn()
            assert bar.isVisible()
            QTest.mouseClick(bar.buttons[1], Qt.MouseButton.LeftButton)
            assert not bar.isVisible()
            await it.send("hello")
        async with stage(engine, opening=group, stored=kept) as it:
            assert not it.window.pane.governance.namesake.isVisible()
            await engine.set_verified(ParticipantId(lookalike.participant_id), verified=True)

    play(scenario)
