"""The list of conversations in hand: pinned, muted from its row, and only what one wants to see."""

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QAccessible

from engine.core.ids import ConversationId
from tests.ui.driving import Key, Stage, group_stage, play, stage, until
from tests.ui.scripted_engine import START_MS, ScriptedEngine
from tests.ui.seeing import choose, entries, words_of
from ui.list.model import Listed
from ui.times import clock_time, moment

pytestmark = pytest.mark.usefixtures("qapp")


def names(it: Stage) -> list[str]:
    model = it.window.model
    return [str(model.index(row).data()) for row in range(model.rowCount())]


def menu_of(it: Stage, conversation_id: ConversationId) -> None:
    rows = it.window.panel.rows
    rows.customContextMenuRequested.emit(
        rows.visualRect(it.window.model.index_of(conversation_id)).center()
    )


def fill(engine: ScriptedEngine) -> list[ConversationId]:
    return [engine.add_group(name) for name in ("Rowing", "Books", "Kitchen")]


def test_a_pinned_conversation_stays_at_the_top_and_is_remembered() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, group):
            rowing, _books, _kitchen = fill(engine)
            engine.receive(group, "Maya", "Low water is 10:52", minute=5)
            await until(lambda: names(it)[0] == "Tide Gauge" and len(names(it)) == 4)
            menu_of(it, rowing)
            it.window.panel.row_menu.pin.trigger()
            assert names(it)[0] == "Rowing"
            engine.receive(group, "Maya", "and 23:15", minute=6)
            await until(lambda: names(it)[:2] == ["Rowing", "Tide Gauge"])
            row = QAccessible.queryAccessibleInterface(it.window.panel.rows).child(0)
            assert row.text(QAccessible.Text.Name).endswith(", pinned")
            menu_of(it, rowing)
            it.window.panel.row_menu.pin.trigger()
            assert names(it)[0] == "Tide Gauge"

    play(scenario)


def test_a_conversation_is_muted_from_its_row_without_being_opened() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, group):
            rowing, *_ = fill(engine)
            await until(lambda: len(names(it)) == 4)
            menu_of(it, rowing)
            mute = it.window.panel.row_menu.mute
            assert not mute.unmute.isVisible()
            assert entries(mute.durations) == ["For 1 hour", "For 8 hours", "Until switched on"]
            choose(mute.durations, "Until switched on")
            await until(lambda: engine.views[rowing].muted)
            assert it.window.pane.is_open(group)
            menu_of(it, rowing)
            mute = it.window.panel.row_menu.mute
            assert not mute.durations.menuAction().isVisible()
            assert mute.unmute.text() == "Unmute"
            mute.unmute.trigger()
            await until(lambda: not engine.views[rowing].muted)

    play(scenario)


def test_a_conversation_is_muted_for_a_while_and_says_until_when() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, group):
            rowing, *_ = fill(engine)
            await until(lambda: len(names(it)) == 4)
            menu_of(it, rowing)
            choose(it.window.panel.row_menu.mute.durations, "For 8 hours")
            await until(lambda: engine.views[rowing].muted)
            assert engine.called("set_muted") == [(True, 8 * 3_600_000)]
            ends = clock_time(moment(START_MS + 8 * 3_600_000))
            menu_of(it, rowing)
            assert ends in it.window.panel.row_menu.mute.unmute.text()
            row = QAccessible.queryAccessibleInterface(it.window.panel.rows)
            spoken = [
                row.child(index).text(QAccessible.Text.Name) for index in range(row.childCount())
            ]
            assert any(words.startswith("Rowing") and ends in words for words in spoken)
            header = it.window.pane.header
            choose(header.mutes[0].durations, "For 1 hour")
            await until(lambda: engine.views[group].muted)
            assert f"muted until {clock_time(moment(START_MS + 3_600_000))}" in words_of(header)
            engine.change(group, muted=False, muted_until_ms=None)  # As the engine does at the end.
            assert "muted" not in words_of(header)

    play(scenario)


def test_only_what_is_unread_and_the_one_being_read() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, _group):
            rowing, books, _kitchen = fill(engine)
            engine.receive(books, "Maya", "Chapter 3")
            await until(lambda: len(names(it)) == 4 and engine.views[books].unread == 1)
            it.window.panel.listed.choose(Listed.UNREAD)
            assert names(it) == ["Books", "Tide Gauge"]
            engine.receive(rowing, "Jo", "Saturday?")
            await until(lambda: names(it)[0] == "Rowing")
            it.window.open_conversation(books)
            await until(lambda: "Tide Gauge" not in names(it))
            it.window.panel.listed.choose(Listed.PEOPLE)
            assert names(it) == ["Books"]
            it.window.panel.listed.choose(Listed.ALL)
            assert len(names(it)) == 4

    play(scenario)


def test_a_few_conversations_need_no_choice_of_which_to_show() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, _group):
            assert not it.window.panel.listed.isVisible()
            fill(engine)
            await until(it.window.panel.listed.isVisible)

    play(scenario)


def test_a_choice_of_which_to_show_can_always_be_undone() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, _group):
            *_, kitchen = fill(engine)
            panel = it.window.panel
            await until(panel.listed.isVisible)
            panel.listed.choose(Listed.PEOPLE)
            await engine.groups.leave(kitchen)
            await until(lambda: len(it.window.model.conversations()) == 3)
            assert panel.listed.isVisible()
            panel.set_rail(True)
            assert len(names(it)) == 3, "nothing in the rail says that some are left out"
            panel.set_rail(False)
            assert names(it) == ["Tide Gauge"]
            panel.listed.choose(Listed.ALL)
            assert not panel.listed.isVisible()

    play(scenario)


def test_an_archived_conversation_comes_back_when_something_is_said_in_it() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, _group):
            rowing, books, _kitchen = fill(engine)
            engine.receive(books, "Maya", "Chapter 3")
            await until(lambda: len(names(it)) == 4 and it.listed(books).unread == 1)
            panel = it.window.panel
            for each in (rowing, books):
                menu_of(it, each)
                panel.row_menu.archive.trigger()
            assert names(it) == ["Kitchen", "Tide Gauge"]
            assert panel.archive.text().strip() == "Archived: 2, 1 unread"
            panel.archive.setFocus()
            it.press(Key.Key_Return)
            assert set(names(it)) == {"Rowing", "Books"}
            it.press(Key.Key_Escape)
            assert names(it) == ["Kitchen", "Tide Gauge"]
            panel.search.setText("Row")
            assert names(it) == ["Rowing"]
            panel.search.clear()
            await engine.set_muted(rowing, muted=True)
            engine.receive(rowing, "Jo", "Saturday?")
            await until(lambda: it.listed(rowing).unread == 1)
            assert "Rowing" not in names(it)
            engine.receive(books, "Maya", "Chapter 4", minute=1)
            await until(lambda: names(it)[0] == "Books")
            assert panel.archive.text().strip() == "Archived: 1"
            await engine.leave(rowing)
            await until(lambda: not panel.archive.isVisible())

    play(scenario)


def test_the_archive_is_remembered_and_left_by_what_came_while_the_window_was_closed() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        rowing, books, kitchen = fill(engine)
        engine.receive(books, "Maya", "Chapter 3")
        stored: dict[str, str] = {}
        async with stage(engine, stored=stored) as it:
            for each in (rowing, books):
                menu_of(it, each)
                it.window.panel.row_menu.archive.trigger()
            menu_of(it, kitchen)
            it.window.panel.row_menu.unread.trigger()
        engine.receive(rowing, "Jo", "Saturday?")
        async with stage(engine, stored=stored) as it:
            assert names(it) == ["Rowing", "Kitchen"]
            row = QAccessible.queryAccessibleInterface(it.window.panel.rows).child(1)
            assert ", marked as unread, " in row.text(QAccessible.Text.Name)

    play(scenario)


def test_an_archived_conversation_comes_back_for_what_is_new_though_no_more_is_unread() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        rowing, books, _kitchen = fill(engine)
        first = engine.receive(books, "Maya", "Chapter 3")
        stored: dict[str, str] = {}
        async with stage(engine, stored=stored) as it:
            for each in (rowing, books):
                menu_of(it, each)
                it.window.panel.row_menu.archive.trigger()
            assert names(it) == ["Kitchen"]
        engine.rows[books].pop(first.message_id)
        engine.change(books, unread=0, first_unread=None)
        engine.receive(books, "Maya", "Chapter 4", minute=1)
        async with stage(engine, stored=stored) as it:
            assert set(names(it)) == {"Books", "Kitchen"}, "one unread then and one now"
            assert it.window.panel.archive.text().strip() == "Archived: 1"

    play(scenario)


def test_what_an_earlier_version_archived_is_still_archived() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        rowing, books, kitchen = fill(engine)
        engine.receive(books, "Maya", "Chapter 3")
        stored = {"archived": f"{books}:1 {rowing}:0 {kitchen}:x {'9' * 40}:{'9' * 40} a:1:2:3:4"}
        async with stage(engine, stored=stored) as it:
            assert names(it) == ["Kitchen"]
            engine.receive(rowing, "Jo", "Saturday?")
            await until(lambda: set(names(it)) == {"Kitchen", "Rowing"})

    play(scenario)


def test_a_badge_for_what_is_archived_leads_to_it() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, _group):
            rowing, books, _kitchen = fill(engine)
            engine.receive(books, "Maya", "Chapter 3")
            await until(lambda: len(names(it)) == 4 and it.listed(books).unread == 1)
            panel = it.window.panel
            await engine.set_muted(rowing, muted=True)
            for each in (rowing, books):
                menu_of(it, each)
                panel.row_menu.archive.trigger()
            assert panel.archive.text().strip() == "Archived: 2, 1 unread"
            row = engine.receive(rowing, "Jo", "@Ines, Saturday?")
            assert panel.archive.text().strip() == "Archived: 2, 1 unread", "it is muted"
            engine.change(rowing, mentions=1, first_mention=row.position)
            await until(lambda: "Rowing" in names(it))
            assert panel.archive.text().strip() == "Archived: 1, 1 unread"

    play(scenario)


def test_the_rail_marks_what_mentions_the_user_also_of_a_muted_conversation() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, _group):
            rowing, *_ = fill(engine)
            await engine.set_muted(rowing, muted=True)
            row = engine.receive(rowing, "Jo", "@Ines, Saturday?")
            await until(lambda: it.listed(rowing).unread == 1)
            panel = it.window.panel
            panel.set_rail(True)
            seen = panel.rows.visualRect(it.window.model.index_of(rowing))
            upper = QRect(seen.x(), seen.y(), seen.width(), seen.height() // 2)
            without = panel.rows.grab(upper).toImage()
            engine.change(rowing, mentions=1, first_mention=row.position)
            await until(lambda: it.listed(rowing).mentions == 1)
            assert panel.rows.grab(upper).toImage() != without

    play(scenario)


def test_what_is_marked_as_unread_stays_so_until_it_is_opened() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, _group):
            rowing, books, _kitchen = fill(engine)
            engine.receive(books, "Maya", "Chapter 3")
            await until(lambda: len(names(it)) == 4 and it.listed(books).unread == 1)
            model, panel = it.window.model, it.window.panel
            menu_of(it, rowing)
            assert panel.row_menu.unread.text() == "Mark as unread"
            panel.row_menu.unread.trigger()
            assert model.is_marked_unread(rowing)
            panel.listed.choose(Listed.UNREAD)
            assert set(names(it)) == {"Rowing", "Books", "Tide Gauge"}
            menu_of(it, books)
            assert panel.row_menu.unread.text() == "Mark as read"
            panel.row_menu.unread.trigger()
            await until(lambda: it.listed(books).unread == 0)
            it.window.open_conversation(rowing)
            assert not model.is_marked_unread(rowing)
            assert it.window.pane.is_open(rowing)
            assert names(it) == ["Rowing"]

    play(scenario)
