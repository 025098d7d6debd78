"""A group that anyone with the link is in, and the end of its link, in the window."""

from msgspec.structs import replace

from engine.core.admin_log.acts import Role
from engine.core.ids import UnixMs
from engine.governance_views import JoinState, JoinView
from tests.ui.driving import play, stage, until
from tests.ui.scripted_engine import GOOD_LINK, ScriptedEngine
from tests.ui.seeing import entries, sheet_of, words_of
from tests.ui.test_window_governing import LUC, a_governed_group, group_panel, spoken
from ui.dialogs.confirm import Confirm
from ui.dialogs.group import InviteLink
from ui.dialogs.invite import Invite
from ui.dialogs.join import Join
from ui.side.person import PersonPanel


def test_removing_somebody_from_a_group_with_a_link_ends_the_link() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", others=("Olga", "Luc"))
        async with stage(engine, opening=group) as it:
            it.window.pane.header.invite_requested.emit()
            sheet = await sheet_of(it.window, InviteLink)
            assert "once whoever made the group has removed somebody" in words_of(sheet)
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            it.window.side.show_open()
            panel = group_panel(it)
            assert "that ends the link for good" in words_of(panel)
            row = panel.rows[LUC]
            mine = next(one.participant_id for one in engine.views[group].members if one.is_self)
            assert not panel.rows[mine].more.isVisible()
            row.more.click()
            assert row.menu is not None
            assert entries(row.menu) == ["Write to them…", "Remove from the group…"]
            row.menu.actions()[-1].trigger()
            confirm = await sheet_of(it.window, Confirm)
            assert confirm.title.text() == "Remove Luc and end the link?"
            assert "people come in by invitations" in words_of(confirm)
            assert "can go on reading what was written before" in words_of(confirm)
            assert confirm.cancel.hasFocus()
            confirm.confirm.click()
            await until(lambda: engine.called("remove_member") == [LUC])
            await until(lambda: "that ends the link" not in words_of(panel))
            assert panel.governed.details.isVisible()
            await until(lambda: it.window.flows.sheet is None)
            it.window.pane.header.invite_requested.emit()
            await sheet_of(it.window, Invite)

    play(scenario)


def test_in_somebody_elses_group_with_a_link_nobody_is_removed() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge", others=("Olga", "Luc"))
        view = engine.views[group]
        others = tuple(replace(one, is_admin=one.name == "Olga") for one in view.members)
        engine.views[group] = replace(view, members=others)
        async with stage(engine, opening=group) as it:
            it.window.side.show_person(LUC)
            panel = it.window.side.panel
            assert isinstance(panel, PersonPanel)
            assert not any(button.isVisible() for button in panel.acts.values())

    play(scenario)


def test_who_follows_a_link_that_ended_is_told_so() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group(Role.MEMBER)
        async with stage(engine, opening=group) as it:
            view = engine.governing.known[group]
            engine.governing.put(replace(view, own_role=Role.NOBODY, is_link_over=True, roles={}))
            bar = it.window.pane.governance.out
            assert bar.isVisible()
            said = spoken(bar)
            assert said.startswith("The link of this group ended when somebody was removed")
            assert "Ask somebody in the group for an invitation" in said
            assert not it.window.pane.composer.isVisible()
            assert entries(it.window.pane.header.more.menu())[-1] == "Remove…"

    play(scenario)


def test_a_link_that_ended_is_known_to_let_nobody_in_before_one_follows_it() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group(Role.MEMBER)
        async with stage(engine, opening=group) as it:
            view = engine.governing.known[group]
            engine.governing.put(replace(view, own_role=Role.NOBODY, removed_by_name="Olga"))
            engine.link_over = group
            it.window.flows.show_invitation(GOOD_LINK)
            sheet = await sheet_of(it.window, Join)
            assert "Its link ended when somebody was removed" in words_of(sheet)
            assert sheet.confirm.text() == "Open Tide Gauge"
            sheet.confirm.click()
            await until(lambda: it.window.flows.sheet is None)
            assert engine.called("join_group") == []
            assert it.window.pane.is_open(group)

    play(scenario)


def test_who_asks_to_come_back_sees_in_the_conversation_how_that_stands() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group(Role.MEMBER)
        async with stage(engine, opening=group) as it:
            view = engine.governing.known[group]
            out = replace(view, own_role=Role.NOBODY, removed_by_name="Olga")
            engine.governing.put(out)
            bar = it.window.pane.governance.out
            assert spoken(bar).startswith("Olga removed you from this group")
            join = JoinView(
                conversation_id=group,
                group_name="Tide Gauge",
                inviter_name="Olga",
                asked_ms=UnixMs(1_795_000_000_000),
                state=JoinState.ASKED,
            )
            engine.governing.wait(join)
            assert spoken(bar).startswith("Waiting to be let into Tide Gauge")
            engine.governing.wait(replace(join, state=JoinState.WAITS))
            assert spoken(bar).startswith("Olga has to decide")
            engine.governing.put(replace(out, voids={}))
            assert spoken(bar).startswith("Olga has to decide")
            engine.governing.wait(replace(join, state=JoinState.SPENT))
            assert spoken(bar).startswith("Olga removed you from this group")

    play(scenario)


def test_who_is_out_is_offered_no_invitation_link_in_the_menu() -> None:
    async def scenario() -> None:
        engine, group = a_governed_group(Role.MEMBER)
        async with stage(engine, opening=group) as it:
            menu = it.window.pane.header.more.menu()
            assert "Invitation link…" in entries(menu)
            view = engine.governing.known[group]
            engine.governing.put(replace(view, own_role=Role.NOBODY, removed_by_name="Olga"))
            assert not any("nvit" in words for words in entries(menu))
            engine.governing.put(view)
            assert "Invitation link…" in entries(menu)

    play(scenario)
