"""Searching by keys alone: within a conversation, over everything, and from the list's field."""

import re
import sys

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible, QColor, QImage

from engine.answers import FOUND_SIZE, FoundView
from engine.core.ids import ParticipantId
from engine.events import MemberView, SearchIndexed
from tests.ui.driving import Key, Stage, group_stage, play, stage, until
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import choose, seen_words, sheet_of
from ui.dialogs.group import CreateGroup
from ui.dialogs.search import Acquaintance, Command, SearchSheet
from ui.fuzzy import fit
from ui.marked_text import utf16_slice
from ui.side.person import PersonPanel
from ui.theme import current_theme
from ui.timeline.rows import MessageRow

pytestmark = pytest.mark.usefixtures("qapp")

CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


async def opened(it: Stage, words: str = "") -> SearchSheet:
    it.press(Key.Key_K, CTRL)
    sheet = await sheet_of(it.window, SearchSheet)
    await until(sheet.line.hasFocus)
    if words:
        it.write(words, on=sheet.line)
    return sheet


def spoken(sheet: SearchSheet) -> list[str]:
    """What a screen reader reads of the list."""
    listed = QAccessible.queryAccessibleInterface(sheet.list)
    return [
        listed.child(number).text(QAccessible.Text.Name) for number in range(listed.childCount())
    ]


def marked(it: Stage) -> set[str]:
    return {
        placed.row.message.message_id
        for placed in it.window.pane.timeline.scene.placed
        if hasattr(placed.row, "message")
    }


def test_within_a_conversation_the_arrows_go_from_hit_to_hit() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            said = [engine.receive(group, "Maya", f"needle {n}") for n in range(3)]
            engine.receive(group, "Maya", "hay")
            bar = it.window.pane.finding
            chosen: list[str] = []
            bar.chosen.connect(lambda position: chosen.append(position.message_id))
            it.press(Key.Key_F, CTRL)
            assert bar.isVisible()
            assert bar.line.hasFocus()
            it.write("need")
            await until(lambda: bar.count.text() == "1 of 3")
            it.press(Key.Key_Return)
            assert bar.count.text() == "2 of 3"
            it.press(Key.Key_Up)
            it.press(Key.Key_Up)
            assert bar.count.text() == "3 of 3"
            it.press(Key.Key_Return, SHIFT)
            assert chosen == [said[n].message_id for n in (2, 1, 0, 0, 1)]
            it.write("zzz")
            await until(lambda: bar.count.text() == "Nothing found")
            it.press(Key.Key_Escape)
            assert not bar.isVisible()
            assert it.window.pane.composer.box.hasFocus()

    play(scenario)


def test_the_header_leads_to_the_search_and_its_view_back_to_the_chat() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            header, bar = it.window.pane.header, it.window.pane.finding
            header.search.click()
            assert bar.line.hasFocus()
            it.press(Key.Key_Escape)
            header.switch_view()
            await until(lambda: not it.window.pane.chat.isVisible())
            choose(header.more.menu(), "Search this conversation")
            await until(lambda: bar.isVisible() and bar.line.hasFocus())
            assert header.views.chosen_number == 0

    play(scenario)


def test_a_hit_stays_marked_until_it_is_left() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            said = [engine.receive(group, "Maya", f"needle {n}") for n in range(2)]
            bar, timeline = it.window.pane.finding, it.window.pane.timeline

            def marked() -> list[str]:
                """Whose rows have the band's colour at the left edge."""
                image = timeline.viewport().grab().toImage()
                band = QColor(current_theme().band)
                return [
                    row.message.message_id
                    for placed in timeline.scene.placed
                    if isinstance(row := placed.row, MessageRow)
                    and image.pixelColor(1, round(placed.y + placed.height / 2)) == band
                ]

            it.press(Key.Key_F, CTRL)
            it.write("need")
            await until(lambda: bar.count.text() == "1 of 2")
            timeline.go_to(said[0].position)  # Marks for a moment; the hit is marked for longer.
            await until(lambda: marked() == [said[1].message_id])
            it.press(Key.Key_Return)
            await until(lambda: marked() == [said[0].message_id])
            it.write("zzz")
            await until(lambda: not marked())
            it.press(Key.Key_Escape)
            assert not marked()

    play(scenario)


def test_enter_twice_at_the_last_hit_asks_for_more_once() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            for number in range(FOUND_SIZE + 5):
                engine.receive(group, "Maya", f"needle {number}")
            bar = it.window.pane.finding
            it.press(Key.Key_F, CTRL)
            it.write("need")
            await until(lambda: bar.count.text() == f"1 of {FOUND_SIZE} or more")
            for _ in range(FOUND_SIZE + 1):
                it.press(Key.Key_Return)
            await until(lambda: "or more" not in bar.count.text())
            it.press(Key.Key_Return)
            assert bar.count.text() == f"{FOUND_SIZE + 2} of {FOUND_SIZE + 5}"
            assert len(engine.search.asked) == 2

    play(scenario)


@pytest.mark.parametrize("text", ["the needle", "```\nneedle\n```"])
@pytest.mark.parametrize("appearance", ["light", "dark", "high_contrast"])
def test_what_is_searched_for_is_marked_until_escape(text: str, appearance: str) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        for said in (text, "hay"):
            engine.receive(group, "Maya", said)
        async with stage(engine, opening=group, stored={"appearance": appearance}) as it:
            await until(lambda: len(marked(it)) == 2)
            assert not painted(it, current_theme().accentSoft)
            it.press(Key.Key_F, CTRL)
            it.write("need")
            await until(lambda: painted(it, current_theme().accentSoft))
            assert found_words(it) == ["need"]
            it.write("x")
            assert not painted(it, current_theme().accentSoft), "that is another search"
            it.press(Key.Key_Backspace)
            await until(lambda: painted(it, current_theme().accentSoft))
            it.press(Key.Key_Escape)
            assert not painted(it, current_theme().accentSoft)
            assert found_words(it) == []

    play(scenario)


def painted(it: Stage, colour: QColor) -> bool:
    image = it.window.pane.timeline.viewport().grab().toImage()
    pixels = image.convertToFormat(QImage.Format.Format_RGB32).constBits()
    wanted = re.escape(colour.rgb().to_bytes(4, sys.byteorder))
    return any(found.start() % 4 == 0 for found in re.finditer(wanted, bytes(pixels)))


def found_words(it: Stage) -> list[str]:
    scene = it.window.pane.timeline.scene
    return [
        utf16_slice(message.text, begin, end)
        for message in scene.loaded.messages
        for begin, end in scene.found.within(message)
    ]


def test_marks_are_counted_as_qt_counts() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            for said in ("\U0001f9ed needle, N\u00c9EDLE", "\u6f6e\u6c34\u4f4d", "hay"):
                engine.receive(group, "Maya", said)
            await until(lambda: len(it.window.pane.timeline.scene.loaded.messages) == 3)
            scene = it.window.pane.timeline.scene
            scene.found.ask("need")
            assert found_words(it) == ["need", "N\u00c9ED"]
            scene.found.ask("\u6c34")
            assert found_words(it) == ["\u6c34"]
            scene.found.ask("  ")
            assert found_words(it) == []

    play(scenario)


def test_the_parts_of_the_bar_have_names() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.press(Key.Key_F, CTRL)
            bar = it.window.pane.finding
            names = [
                widget.accessibleName()
                for widget in (bar.line, bar.older, bar.newer, bar.close_button)
            ]
            assert names == [
                "Search this conversation", "Earlier message that was found",
                "Later message that was found", "Close the search",
            ]  # fmt: skip

    play(scenario)


def test_a_message_that_was_found_is_shown_in_its_place() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        tide, other = engine.add_group("Tide Gauge"), engine.add_group("Other")
        wanted = engine.receive(tide, "Maya", "the needle")
        for number in range(300):
            engine.receive(tide, "Maya", f"hay {number}")
        async with stage(engine, opening=other) as it:
            sheet = await opened(it, "needle")
            await until(lambda: sheet.list.count() == 1)
            (words,) = spoken(sheet)
            assert words.startswith("Message in Tide Gauge from Maya, ")
            assert words.endswith(": the needle")
            it.press(Key.Key_Return, on=sheet.line)
            await until(lambda: it.window.pane.is_open(tide))
            await until(lambda: wanted.message_id in marked(it))

    play(scenario)


def test_conversations_people_and_commands_are_there_at_once() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        groups = [engine.add_group(name) for name in ("Tide Gauge", "Harbour Walk")]
        async with stage(engine, opening=groups[0]) as it:
            sheet = await opened(it, "hw")
            assert spoken(sheet)[0] == "Group: Harbour Walk"
            it.press(Key.Key_Return, on=sheet.line)
            await until(lambda: it.window.pane.is_open(groups[1]))
            sheet = await opened(it, "new group")
            assert spoken(sheet)[0].startswith("Command: New group")
            it.press(Key.Key_Return, on=sheet.line)
            await sheet_of(it.window, CreateGroup)

    play(scenario)


def test_a_long_name_among_the_people_makes_the_sheet_no_wider_than_it_is() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group(
            "Tide Gauge", ("Maya", "Maximiliane von und zu Hohenwestedt-Auenland")
        )
        async with stage(engine, opening=group) as it:
            sheet = await opened(it)
            for part in (sheet.person, sheet.when, sheet.with_file, sheet.with_link, sheet.list):
                place = QRect(part.mapTo(sheet, QPoint(0, 0)), part.size())
                assert sheet.rect().contains(place), part.accessibleName()
                assert (
                    not sheet.person.geometry().intersects(part.geometry()) or part is sheet.person
                )
            assert sheet.with_link.width() >= sheet.with_link.sizeHint().width()
            it.press(Key.Key_Escape, on=sheet.line)

    play(scenario)


def test_filters_alone_and_the_words_for_what_was_found() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        for number in range(60):
            engine.receive(group, "Maya", f"word {number}")
        async with stage(engine, opening=group) as it:
            sheet = await opened(it, "word")
            await until(lambda: sheet.status.text() == "The newest 50 messages")
            it.press(Key.Key_PageDown, on=sheet.line)
            while sheet.list.currentRow() < sheet.list.count() - 1:
                it.press(Key.Key_PageDown, on=sheet.line)
            await until(lambda: sheet.status.text() == "60 messages")
            sheet.with_file.click()
            await until(lambda: sheet.status.text() == "No message was found.")
            assert engine.search.asked[-1][0] == "word"
            sheet.when.setCurrentIndex(5)
            assert sheet.since.isVisible()
            sheet.line.clear()
            await until(lambda: engine.search.asked[-1][0] == "")
            filters = sheet.filters()
            assert filters.since_ms is not None
            assert filters.until_ms is not None
            assert filters.until_ms - filters.since_ms in range(23 * 3_600_000, 25 * 3_600_001)

    play(scenario)


def test_very_long_words_are_answered() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group) as it:
            sheet = await opened(it)
            sheet.line.setText('NEAR("' + "many words " * 1_000 + "\0*")
            for number in range(40):
                sheet.line.setText(f"{sheet.line.text()[:1_000]} w{number}")
            sheet.line.setText(" ".join(f"w{number}" for number in range(100)))
            await until(
                lambda: (
                    sheet.status.text()
                    == "That is very much: only its first words were searched for."
                )
            )

    play(scenario)


def test_an_old_profile_says_how_far_its_messages_are_and_can_wait() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        engine.search.indexed_now = SearchIndexed(left=300, total=1_000, is_paused=False)
        async with stage(engine, opening=group) as it:
            sheet = await opened(it)
            words = "Older messages are still being indexed: 70 % can be found."
            assert words in seen_words(sheet)
            sheet.pause.click()
            assert engine.search.indexed().is_paused
            engine.tell(SearchIndexed(left=0, total=0, is_paused=False))
            await until(lambda: not sheet.pause.isVisible())
            assert sheet.status.text() == "All messages can be found."

    play(scenario)


def test_from_the_list_one_goes_on_to_the_messages() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.receive(group, "Maya", "the needle")
            it.press(Key.Key_F, CTRL | SHIFT)
            it.write("needle")
            assert it.window.panel.find_messages.accessibleName() == "Search messages for “needle”"
            it.press(Key.Key_Return)
            sheet = await sheet_of(it.window, SearchSheet)
            assert sheet.line.text() == "needle"
            await until(lambda: sheet.list.count() == 1)
            assert it.window.panel.search.text() == ""

    play(scenario)


def test_letters_fit_a_name_the_better_the_earlier_they_come() -> None:
    names = ["Tide Gauge", "Our tide", "A stride", "The idea", "Other"]
    fits = {name: fit("tide", name) for name in names}
    known = {name: how for name, how in fits.items() if how is not None}
    assert sorted(known, key=known.__getitem__) == [
        "Tide Gauge", "Our tide", "A stride", "The idea",
    ]  # fmt: skip
    assert fit("", "anything") == fit("ÉTÉ", "ete") == 0


def test_a_name_that_is_searched_for_brings_no_command_that_has_its_letters_somewhere() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.receive(group, "Maya", "Ben is late")
            it.window.search.open("ben")
            sheet = await sheet_of(it.window, SearchSheet)
            await until(lambda: sheet.list.count() > 0)
            assert [type(entry) for entry in sheet.entries()] == [FoundView]
            sheet.line.setText("invit")
            assert Command in {type(entry) for entry in sheet.entries()}

    play(scenario)


def test_members_of_my_groups_are_found_and_their_panel_opens() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.add_group("Tide Gauge", others=("Maya", "Bob"))
        harbour = engine.add_group("Harbour", others=("Maya",))
        bob = engine.add_person("Bob")
        gone = replace(member("Mallory"), has_left=True)
        view = engine.views[harbour]
        engine.views[harbour] = replace(view, members=(*view.members, gone))
        async with stage(engine, opening=bob) as it:
            sheet = await opened(it, "ma")
            (found,) = (one for one in sheet.entries() if isinstance(one, Acquaintance))
            assert (found.name, found.more_groups) == ("Maya", 1)
            assert spoken(sheet)[0].startswith("Person: Maya, in ")
            assert spoken(sheet)[0].endswith(" and 1 more")
            it.press(Key.Key_Return, on=sheet.line)
            await until(lambda: it.window.side.panel is not None)
            panel = it.window.side.panel
            assert isinstance(panel, PersonPanel)
            assert panel.somebody is not None
            assert panel.somebody.name == "Maya"
            assert it.window.pane.conversation == engine.views[found.group.conversation_id]

    play(scenario)


def test_who_is_a_contact_is_found_once_and_nobody_before_one_types() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.add_group("Tide Gauge", others=("Maya", "Bob"))
        bob = ParticipantId(next(m.participant_id for m in member_of(engine, "Bob")))
        pair = engine.add_person("Bob")
        contact = engine.views[pair].contact
        assert contact is not None
        engine.views[pair] = replace(
            engine.views[pair], contact=replace(contact, participant_id=bob)
        )
        async with stage(engine, opening=pair) as it:
            sheet = await opened(it)
            assert not any(isinstance(one, Acquaintance) for one in sheet.entries())
            it.write("bob", on=sheet.line)
            await until(lambda: len(sheet.entries()) == 1)
            assert sheet.entries() == [engine.views[pair]]
            it.press(Key.Key_Escape, on=sheet.line)

    play(scenario)


def member_of(engine: ScriptedEngine, name: str) -> list[MemberView]:
    return [one for view in engine.views.values() for one in view.members if one.name == name]
