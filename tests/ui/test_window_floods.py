"""A member who sends too much, and muting one, in the window and with real engines behind it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.core.ids import ConversationId, ParticipantId
from engine.core.sds.config import FloodLimits
from engine.events import FloodView
from tests.runtime.conftest import Person
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import Key, Stage, group_stage, play, stage, until
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import spoken_rows
from ui.conversation_words import flood_words, muted_words
from ui.side.group import GroupPanel
from ui.side.person import PersonPanel
from ui.window.main_window import MainWindow

pytestmark = pytest.mark.usefixtures("qapp")

MAYA = member("Maya").participant_id
WORDS = (
    "Tide Gauge: Maya is sending unusually much. "
    "Messages beyond a day's limit are kept aside and not shown."
)


def flood_of(group: ConversationId, name: str = "Maya") -> FloodView:
    return FloodView(
        conversation_id=group,
        participant_id=member(name).participant_id,
        name=name,
        waiting=312,
        size=1_000_000,
        dropped=9,
    )


def told(it: Stage) -> list[str]:
    return [notice.text for notice in it.window.notices.notices()]


def has_row(it: Stage, text: str) -> bool:
    return any(text in row for row in spoken_rows(it.window.pane.timeline))


def person_panel(window: MainWindow, who: ParticipantId) -> PersonPanel:
    """Beside the group's messages, by the row of this member."""
    group_panel(window).rows[who].click()
    panel = window.side.panel
    assert isinstance(panel, PersonPanel)
    return panel


def group_panel(window: MainWindow) -> GroupPanel:
    panel = window.side.panel
    assert isinstance(panel, GroupPanel)
    return panel


@pytest.mark.parametrize(("button", "method"), [(0, "set_member_muted"), (1, "show_flood")])
def test_a_flood_is_told_once_and_can_be_muted_or_shown(button: int, method: str) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.flood(group, flood_of(group))
            engine.flood(group, flood_of(group))
            assert told(it) == [WORDS]
            (row,) = it.window.notices.rows
            assert [act.text() for act in row.acts] == ["Mute", "Show"]
            it.press(Key.Key_Return, on=row.acts[button])
            await until(lambda: bool(engine.called(method)) and not told(it))
            engine.flood(group, *engine.flood_views[group])
            assert told(it) == []

    play(scenario)


def test_a_flood_of_before_is_told_when_its_conversation_is_opened_until_it_is_over() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        engine.flood_views[group] = (flood_of(group),)
        async with stage(engine, opening=group) as it:
            await until(lambda: told(it) == [WORDS])
            engine.flood(group)
            assert told(it) == []

    play(scenario)


def test_whoever_is_muted_among_the_members_is_not_told_of() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.flood(group, flood_of(group))
            assert told(it) == [WORDS]
            members = engine.views[group].members
            muted = replace(member("Maya"), is_muted=True)
            engine.change(group, members=(members[0], muted))
            assert told(it) == []
            engine.change(group, members=members)
            assert told(it) == [WORDS]

    play(scenario)


def test_a_muted_member_leaves_the_timeline_and_a_quiet_line_brings_them_back() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.receive(group, "Maya", "buy now")
            engine.receive(group, "Ines", "who is this?", minute=1)
            await until(lambda: has_row(it, "buy now"))
            bar = it.window.pane.muted_bar
            assert not bar.isVisible()
            it.window.side.toggle()
            panel = person_panel(it.window, engine.views[group].members[0].participant_id)
            assert not panel.mute_member.isVisible(), "nobody mutes themselves"
            panel.back_button.click()
            panel = person_panel(it.window, MAYA)
            it.press(Key.Key_Return, on=panel.mute_member)
            await until(lambda: panel.mute_member.text().strip() == "Show their messages")
            it.window.side.close()
            await until(lambda: bar.isVisible() and not has_row(it, "buy now"))
            assert has_row(it, "who is this?")
            assert bar.words.text() == "You muted Maya."
            it.press(Key.Key_Return, on=bar.button)
            await until(lambda: has_row(it, "buy now") and not bar.isVisible())
            assert engine.called("set_member_muted") == [(MAYA, True), (MAYA, False)]

    play(scenario)


def test_of_several_muted_members_one_chooses_among_all() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            others = replace(member("Maya"), is_muted=True), replace(member("Jonas"), is_muted=True)
            members = (*engine.views[group].members[:1], *others)
            engine.change(group, members=members)
            bar = it.window.pane.muted_bar
            await until(bar.isVisible)
            assert bar.button.text() == "Members"
            it.press(Key.Key_Return, on=bar.button)
            said = [row.accessibleName() for row in group_panel(it.window).rows.values()]
            assert [words.split(",")[:2] for words in said[1:]] == [
                ["Maya", " muted"],
                ["Jonas", " muted"],
            ]

    play(scenario)


def test_words_of_strangers_stay_on_their_line() -> None:
    flood = replace(flood_of(ConversationId("g")), name="M\n\u202eaya" * 99)
    words = flood_words(flood, "Tide\nGauge")
    assert "\n" not in words
    assert "\u202e" not in words
    assert words.startswith("Tide Gauge: M aya")
    assert flood_words(flood_of(ConversationId("g")), "").startswith("Maya is sending")
    assert muted_words(["Maya"]) == "You muted Maya."
    assert muted_words(["Maya", "Jo\nnas"]) == "You muted Maya and Jo nas."
    assert muted_words(["Maya", "Jonas", "Ines"]) == "You muted Maya and 2 others."


def test_a_real_flood_is_told_and_shown_and_its_author_muted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        group = await alice.engine.groups.create("Tide Gauge")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        alice.window.open_conversation(group)
        await until(lambda: alice.has_row("Bob joined"))
        for number in range(20):
            await bob.engine.timeline.send_text(group, f"buy {number}!")
        notices = alice.window.notices
        await until(lambda: any("Bob is sending unusually" in n.text for n in notices.notices()))
        (row,) = notices.rows
        assert not alice.has_row("buy 19!")
        row.acts[1].click()
        await until(lambda: alice.has_row("buy 19!"))
        await until(lambda: not notices.notices())
        alice.window.side.toggle()
        view = alice.window.model.conversation(group)
        assert view is not None
        who = next(m.participant_id for m in view.members if m.name == "Bob")
        person_panel(alice.window, who).mute_member.click()
        alice.window.side.close()
        bar = alice.window.pane.muted_bar
        await until(lambda: bar.isVisible() and not alice.has_row("buy"))
        await bob.engine.timeline.send_text(group, "are you there?")
        alice.type_and_enter("quiet here")
        await until(lambda: alice.has_row("quiet here", "Held by 1 of 1"))
        view = alice.window.model.conversation(group)
        assert view is not None
        assert (view.unread, alice.has_row("are you there?")) == (0, False)
        bar.button.click()
        await until(lambda: alice.has_row("are you there?") and alice.has_row("buy 19!"))

    monkeypatch.setattr(Person, "flood", FloodLimits(messages_per_day=10))
    at_desks(tmp_path, ("Alice", "Bob"), scenario)
