"""Own messages edited and deleted, and the versions there were."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage

from engine.core.errors import StorageError, StorageFault
from engine.events import MessageView
from tests.ui.driving import NOW, Key, Stage, group_stage, play, turn, until
from tests.ui.on_messages import (
    ask_by_menu,
    bubble,
    focus,
    in_view,
    last_row,
    menu_of,
    notice_button,
    own_held,
    rewrite,
    shown,
    spoken_rows_of,
)
from tests.ui.seeing import seen_words, sheet_of, words_of
from ui.dialogs.confirm import Confirm, DeleteChoice
from ui.dialogs.message_info import Versions

pytestmark = pytest.mark.usefixtures("qapp")


def place_of(it: Stage, row: MessageView) -> QRectF:
    box, y = bubble(it, row)
    return box.bubble.translated(0, y)


def look_of(it: Stage, row: MessageView) -> QImage:
    """Its bubble as it is painted, without the ring around it."""
    inside = place_of(it, row).adjusted(4, 4, -4, -4)
    return it.window.pane.timeline.viewport().grab(inside.toRect()).toImage()


def darkest_of(it: Stage, row: MessageView) -> int:
    """In light colours that is the ink of its text, its time or its ticks."""
    look = look_of(it, row)
    return min(
        look.pixelColor(x, y).lightness() for x in range(look.width()) for y in range(look.height())
    )


def test_up_in_an_empty_box_edits_the_last_own_message_and_the_draft_comes_back() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "Low water is 10:52")
            engine.receive(group, "Maya", "Thanks")
            await until(lambda: in_view(it, mine))
            box = it.window.pane.composer.box
            it.press(Key.Key_Up, on=box)
            assert it.window.pane.composer.text() == "Low water is 10:52"
            assert seen_words(it.window.pane.composer_bar)[0] == "Edit message"
            it.write(" sharp", on=box)
            it.press(Key.Key_Return, on=box)
            await until(lambda: bool(engine.called("edit")))
            assert engine.called("edit") == [(mine.message_id, "Low water is 10:52 sharp", ())]
            assert engine.called("send_text") == []
            assert it.window.pane.composer.text() == ""
            assert not it.window.pane.composer_bar.isVisible()
            await until(lambda: "edited" in " ".join(spoken_rows_of(it)))

    play(scenario)


def test_up_means_no_earlier_message_while_the_last_one_is_on_its_way() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine, composer = own_held(engine, group, "first"), it.window.pane.composer
            await until(lambda: in_view(it, mine))
            it.write("second", on=composer.box)
            it.press(Key.Key_Return, on=composer.box)
            it.press(Key.Key_Up, on=composer.box)
            assert composer.text() == ""
            assert not it.window.pane.composer_bar.isVisible()
            await it.window.tasks.settle()
            await until(lambda: in_view(it, last_row(engine, group)))
            it.press(Key.Key_Up, on=composer.box)
            assert composer.text() == "second"

    play(scenario)


def test_what_was_written_waits_while_an_old_message_is_edited() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "first")
            await until(lambda: in_view(it, mine))
            it.write("half a thought", on=it.window.pane.composer.box)
            await focus(it, mine)
            it.press(Key.Key_E)
            assert it.window.pane.composer.text() == "first"
            it.press(Key.Key_Escape)
            assert it.window.pane.composer.text() == "half a thought"
            await until(lambda: engine.called("save_draft")[-1:] == ["half a thought"])
            assert engine.called("edit") == []

    play(scenario)


def test_an_edit_that_was_begun_waits_while_one_looks_into_another_conversation() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            elsewhere = engine.add_group("Walks")
            mine, composer = own_held(engine, group, "first"), it.window.pane.composer
            await until(lambda: in_view(it, mine))
            it.write("half a thought", on=composer.box)
            await focus(it, mine)
            it.press(Key.Key_E)
            it.write(" and last", on=composer.box)
            it.window.open_conversation(elsewhere)
            assert composer.text() == ""
            assert not it.window.pane.composer_bar.isVisible()
            it.window.open_conversation(group)
            assert composer.text() == "first and last"
            assert seen_words(it.window.pane.composer_bar)[0] == "Edit message"
            it.press(Key.Key_Return, on=composer.box)
            await until(lambda: bool(engine.called("edit")))
            assert engine.called("edit") == [(mine.message_id, "first and last", ())]
            assert composer.text() == "half a thought"

    play(scenario)


def test_an_edit_of_what_is_deleted_meanwhile_does_not_wait() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            elsewhere = engine.add_group("Walks")
            mine, composer = own_held(engine, group, "first"), it.window.pane.composer
            await until(lambda: in_view(it, mine))
            it.press(Key.Key_Up, on=composer.box)
            it.write("!", on=composer.box)
            it.window.open_conversation(elsewhere)
            engine.alter(replace(mine, retracted=True))
            await it.window.tasks.settle()
            it.window.open_conversation(group)
            assert composer.text() == ""
            assert not it.window.pane.composer_bar.isVisible()

    play(scenario)


def test_an_edit_that_fails_can_be_tried_again() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "first")
            await until(lambda: in_view(it, mine))
            engine.fail("edit", StorageError("full", StorageFault.DISK_FULL))
            await rewrite(it, "!")
            await until(lambda: any("edit the message" in w for w in seen_words(it.window.notices)))
            notice_button(it, "Try again").click()
            await until(lambda: shown(engine, group, mine).text == "first!")

    play(scenario)


def test_earlier_versions_are_shown_to_whoever_asks() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "the last words")
            engine.alter(replace(row, edited_ms=row.sent_ms))
            await ask_by_menu(it, row, "Earlier versions…")
            sheet = await sheet_of(it.window, Versions)
            assert "the first words" in words_of(sheet)
            assert "the last words" in words_of(sheet)
            sheet.reject()

    play(scenario)


def test_a_long_version_says_that_it_goes_on() -> None:
    async def scenario() -> None:
        async with group_stage() as (_it, engine, group):
            row = engine.receive(group, "Maya", "word " * 1000)
            engine.alter(replace(row, edited_ms=row.sent_ms))
            versions = await engine.timeline.versions(group, row.message_id)
            said = words_of(Versions(versions, NOW))
            assert "word word…" in said
            assert "the first words…" not in said

    play(scenario)


def test_deleting_for_everybody_can_be_undone_and_is_carried_out_when_one_leaves() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine, bar = own_held(engine, group, "oops"), it.window.undo_bar
            for undo in (True, False):
                await focus(it, mine)
                it.press(Key.Key_Delete)
                sheet = await sheet_of(it.window, DeleteChoice)
                assert "Whoever has it now, or kept a copy, can keep it" in words_of(sheet)
                sheet.everybody.click()
                await until(lambda: bar.isVisible() and "for everybody" in bar.words())
                if undo:
                    bar.button.click()
                    await turn()
                    assert not bar.isVisible()
            assert engine.called("retract") == []
        assert engine.called("retract") == [mine.message_id]

    play(scenario)


def test_what_waits_to_be_deleted_says_so_in_its_row_and_nothing_else_moves() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            earlier = [own_held(engine, group, f"said {n}") for n in range(2)]
            mine = own_held(engine, group, "oops")
            await until(lambda: in_view(it, mine))
            timeline = it.window.pane.timeline
            places = [place_of(it, row) for row in (*earlier, mine)]
            size = timeline.size()
            look, ink = look_of(it, mine), darkest_of(it, mine)
            await focus(it, mine)
            it.press(Key.Key_Delete)
            (await sheet_of(it.window, DeleteChoice)).everybody.click()
            await until(it.window.undo_bar.isVisible)
            await until(lambda: it.window.flows.sheet is None)
            assert timeline.size() == size
            assert [place_of(it, row) for row in (*earlier, mine)] == places
            assert spoken_rows_of(it)[-1].endswith("being deleted for everybody")
            assert look_of(it, mine) != look
            assert darkest_of(it, mine) > ink + 50, "its words, too, are faded"
            box, _y = bubble(it, mine)
            assert box.reason == "Being deleted for everybody…"
            it.press(Key.Key_R, on=timeline)
            assert not it.window.pane.composer_bar.isVisible()
            it.press(Key.Key_Return, on=timeline)  # Undo is what the row wants most.
            await until(lambda: not it.window.undo_bar.isVisible())
            assert not spoken_rows_of(it)[-1].endswith("everybody")
            assert engine.called("retract") == []

    play(scenario)


def test_several_that_wait_are_counted_and_undone_one_by_one_from_any_conversation() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            other = engine.add_group("Elsewhere")
            first, second = (own_held(engine, group, f"said {n}") for n in range(2))
            deletions, bar = it.window.about.deletions, it.window.undo_bar
            deletions.begin(first)
            deletions.begin(second)
            assert bar.words() == "2 messages will be deleted for everybody"
            it.window.open_conversation(other)
            assert bar.isVisible()
            bar.button.click()
            assert bar.words() == "1 message will be deleted for everybody"
            assert deletions.waiting == (first.message_id,)
            it.window.open_conversation(group)
            await until(lambda: in_view(it, first))
            assert spoken_rows_of(it)[-2].endswith("deleted for everybody")
            deletions.finish()
            await until(lambda: engine.called("retract") == [first.message_id])
            await until(lambda: not deletions.leaving)
            assert not bar.isVisible()

    play(scenario)


def test_deleting_here_leaves_it_with_the_others() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "oops")
            theirs = engine.receive(group, "Maya", "hello")
            await focus(it, mine)
            it.press(Key.Key_Delete)
            sheet = await sheet_of(it.window, DeleteChoice)
            sheet.here.click()
            await until(lambda: engine.called("delete_locally") == [mine.message_id])
            await until(lambda: it.window.flows.sheet is None)
            await focus(it, theirs)
            it.press(Key.Key_Delete)
            confirm = await sheet_of(it.window, Confirm)
            assert "The others keep it" in words_of(confirm)
            confirm.reject()

    play(scenario)


def test_a_deleted_message_says_so_and_nothing_can_be_said_about_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "secret")
            await focus(it, row)
            it.press(Key.Key_R)
            gone = replace(row, text="", spans=(), retracted=True)
            engine.alter(gone)
            await until(lambda: not it.window.pane.composer_bar.isVisible())
            assert "Maya deleted this message" in spoken_rows_of(it)[-1]
            await focus(it, row)
            it.press(Key.Key_Menu, on=it.window.pane.timeline)
            words = [a.text() for a in menu_of(it).actions()]
            assert not {"Reply", "React", "Edit", "Forward…"} & set(words)
            menu_of(it).close()

    play(scenario)
