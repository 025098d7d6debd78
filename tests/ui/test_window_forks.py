"""Two stories of one author in the window: told once, shown side by side, and the proof copied."""

import pytest
from PySide6.QtWidgets import QApplication

from engine.core.ids import ConversationId, MessageId
from engine.events import ForkView
from tests.ui.driving import Key, Stage, group_stage, play, stage, turn, until
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import sheet_of, words_of
from ui.dialogs.fork import ForkSheet

pytestmark = pytest.mark.usefixtures("qapp")


def fork_in(engine: ScriptedEngine, group: ConversationId, *, own: bool = False) -> ForkView:
    first = engine.receive(group, "Maya", "meet at the quay")
    second = engine.receive(group, "Maya", "meet at the station")
    sender = member("Ines", is_self=True) if own else member("Maya")
    return ForkView(
        conversation_id=group,
        sender_id=sender.participant_id,
        sender_name=sender.name,
        is_self=own,
        sequence=4,
        first_id=first.message_id,
        second_id=second.message_id,
    )


def told(it: Stage) -> list[str]:
    return [notice.text for notice in it.window.notices.notices()]


def test_it_is_told_and_shown_side_by_side_and_the_proof_can_be_copied_by_keyboard() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            fork = fork_in(engine, group)
            engine.find_forks(fork)
            assert told(it) == ["Tide Gauge: Maya told different people different things."]
            (row,) = it.window.notices.rows
            it.press(Key.Key_Return, on=row.acts[0])
            sheet = await sheet_of(it.window, ForkSheet)
            words = words_of(sheet)
            assert "meet at the quay" in words
            assert "meet at the station" in words
            assert "Place in the order" in words
            assert [story.accessibleName().split(".")[0] for story in sheet.stories] == [
                "meet at the quay",
                "meet at the station",
            ]
            it.press(Key.Key_Return, on=sheet.copy)
            assert QApplication.clipboard().text() == '{"proves": "it"}'
            assert sheet.copy.accessibleName() == "Copied"

    play(scenario)


def test_it_is_told_once_in_a_window_and_again_in_the_next() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        fork = fork_in(engine, group)
        engine.fork_views[group] = (fork,)
        for _ in range(2):
            async with stage(engine, opening=group) as it:
                await until(lambda: bool(told(it)))
                it.window.notices.rows[0].close_button.click()
                engine.find_forks(fork)
                it.window.open_conversation(group)
                await turn()
                assert told(it) == []

    play(scenario)


def test_of_ourselves_it_is_said_what_that_means() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.find_forks(fork_in(engine, group, own=True))
            assert told(it) == ["Tide Gauge: This profile was used in two places at once."]

    play(scenario)


def test_a_message_that_is_not_shown_here_leaves_the_other_readable() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            fork = fork_in(engine, group)
            del engine.rows[group][MessageId(fork.second_id)]
            engine.find_forks(fork)
            it.window.notices.rows[0].acts[0].click()
            sheet = await sheet_of(it.window, ForkSheet)
            assert "meet at the quay" in words_of(sheet)
            assert "Not shown here" in words_of(sheet)

    play(scenario)
