"""Emoji in the real window: the picker by keyboard and mouse, and names between colons."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from tests.ui.driving import Key, Stage, group_stage, play, stage, turn, until
from tests.ui.on_messages import focus, in_view, own_held
from tests.ui.scripted_engine import ScriptedEngine
from ui.emoji import fonts, grid, picker
from ui.emoji.picker import EmojiPicker
from ui.settings import UiSettings
from ui.timeline.rows import message_key
from ui.window.composer import Composer

pytestmark = pytest.mark.usefixtures("qapp")
CTRL = Qt.KeyboardModifier.ControlModifier


def picker_on(it: Stage) -> EmojiPicker:
    found = it.window.findChild(EmojiPicker)
    assert isinstance(found, EmojiPicker)
    return found


def click(widget: QWidget, at: QPoint | None = None) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at or widget.rect().center())


@asynccontextmanager
async def opened(
    stored: dict[str, str] | None = None, size: tuple[int, int] = (1280, 820)
) -> AsyncIterator[tuple[Stage, EmojiPicker, Composer]]:
    """A text begun in the composer, and the picker open over it."""
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge")
    async with stage(engine, opening=group, stored=stored, size=size) as it:
        composer = it.window.pane.composer
        composer.box.setFocus()
        await until(composer.box.hasFocus)
        it.write("see you ")
        click(composer.emoji)
        found = picker_on(it)
        await until(found.search.hasFocus)
        yield it, found, composer


def shown(found: EmojiPicker) -> list[str]:
    return [cell.text for cell in found.grid.cells]


def test_a_search_and_enter_put_an_emoji_at_the_caret() -> None:
    async def scenario() -> None:
        async with opened() as (it, found, composer):
            it.write("tada")
            assert shown(found)[0] == "🎉"
            it.press(Key.Key_Return)
            assert not found.isVisible()
            assert composer.box.hasFocus()
            it.write(" there")
            assert composer.text() == "see you 🎉 there"
            assert it.engine.called("send_text") == []
            assert it.stored["recent_emoji"] == "🎉"

    play(scenario)


def test_the_cells_are_walked_with_arrows_and_letters_go_back_to_the_search() -> None:
    async def scenario() -> None:
        async with opened() as (it, found, composer):
            it.press(Key.Key_Down)
            assert found.grid.hasFocus()
            columns = found.grid.columns()
            first_row = [found.grid.visualRect(found.grid.model().index(n, 0)) for n in range(60)]
            assert sum(box.y() == first_row[0].y() for box in first_row) == columns
            it.press(Key.Key_Right)
            it.press(Key.Key_Down)
            assert found.grid.currentIndex().row() == columns + 1
            it.press(Key.Key_Up)
            it.press(Key.Key_Left)
            it.press(Key.Key_Left)
            assert found.grid.currentIndex().row() == 0
            it.press(Key.Key_Up)
            assert found.search.hasFocus()
            it.press(Key.Key_Down)
            it.write("piz")
            assert found.search.hasFocus()
            assert found.search.text() == "piz"
            it.press(Key.Key_Down)
            it.press(Key.Key_Space)
            assert composer.text() == "see you 🍕"

    play(scenario)


def test_down_from_the_last_row_leads_to_the_next_category() -> None:
    async def scenario() -> None:
        async with opened() as (it, found, _composer):
            it.press(Key.Key_Down)
            found.grid.go_to(-1)
            it.press(Key.Key_Down)
            assert found.tabs["people-body"].isChecked()
            assert shown(found)[found.grid.currentIndex().row()] == "👋"

    play(scenario)


def test_tab_goes_round_inside_and_arrows_change_the_category() -> None:
    async def scenario() -> None:
        async with opened() as (it, found, _composer):
            stops = []
            for _ in range(4):
                it.press(Key.Key_Tab)
                stops.append(QApplication.focusWidget())
            tab = found.tabs["smileys-emotion"]
            assert stops == [found.tone, tab, found.grid, found.search]
            it.press(Key.Key_Backtab)
            it.press(Key.Key_Backtab)
            assert tab.hasFocus()
            it.press(Key.Key_Right)
            it.press(Key.Key_Right)
            assert found.tabs["animals-nature"].hasFocus()
            assert shown(found)[0] == "🐵"
            it.press(Key.Key_PageUp, CTRL)
            assert found.tabs["people-body"].isChecked()
            it.press(Key.Key_Down)
            assert found.grid.hasFocus()

    play(scenario)


def test_a_skin_tone_holds_from_now_on_and_is_remembered() -> None:
    async def scenario() -> None:
        stored: dict[str, str] = {}
        async with opened(stored) as (it, found, composer):
            found.tone.setFocus()
            found.tone.menu().actions()[4].trigger()
            assert found.tone.accessibleName() == "Skin tone: Medium-dark skin tone"
            assert found.search.hasFocus()
            it.write("wave")
            it.press(Key.Key_Return)
            assert composer.text() == "see you 👋🏾"
            it.write(":+1:")
            assert composer.text() == "see you 👋🏾👍🏾"
            assert stored["skin_tone"] == "4"
        async with opened(stored) as (_it, found, _composer):
            assert shown(found)[0] == "👋🏾"
            click(found.tabs["people-body"])
            assert "👍🏾" in shown(found)

    play(scenario)


def test_what_was_used_last_stands_in_rows_of_its_own_above_the_faces() -> None:
    async def scenario() -> None:
        async with opened({"recent_emoji": "🎂 🍕"}) as (it, found, composer):
            columns = found.grid.columns()
            assert found.tabs["recent"].isChecked()
            assert shown(found)[:2] == ["🎂", "🍕"]
            assert set(shown(found)[2:columns]) == {""}
            assert shown(found)[columns] == "😀", "the page is full from the first use on"
            it.press(Key.Key_Down)
            it.press(Key.Key_Right)
            it.press(Key.Key_Right)
            assert found.grid.currentIndex().row() == columns, "no key leads to a free place"
            it.press(Key.Key_Left)
            assert shown(found)[found.grid.currentIndex().row()] == "🍕"
            found.grid.go_to(columns + 5)
            it.press(Key.Key_Up)
            assert shown(found)[found.grid.currentIndex().row()] == "🍕"
            free = found.grid.visualRect(found.grid.model().index(4, 0)).center()
            click(found.grid.viewport(), free)
            assert found.isVisible()
            found.grid.setFocus()
            found.grid.go_to(-1)
            it.press(Key.Key_Down)
            assert found.tabs["people-body"].isChecked(), "the faces were seen"
            click(found.tabs["recent"])
            place = found.grid.visualRect(found.grid.model().index(columns, 0)).center()
            click(found.grid.viewport(), place)
            assert composer.text() == "see you 😀"

    play(scenario)


def test_the_page_of_what_was_used_last_is_never_empty() -> None:
    async def scenario() -> None:
        async with opened() as (_it, found, _composer):
            click(found.tabs["recent"])
            assert shown(found)[0] == "😀"
            many = "🎂 🍕 👋 🐵 🍇 🎉 👍 🍉 🔥 🙏"
        async with opened({"recent_emoji": many}) as (_it, found, _composer):
            columns = found.grid.columns()
            assert shown(found)[:10] == many.split()
            assert shown(found)[2 * columns] == "😀"

    play(scenario)


def test_clicks_choose_a_category_and_an_emoji() -> None:
    async def scenario() -> None:
        async with opened() as (_it, found, composer):
            click(found.tabs["food-drink"])
            assert shown(found)[0] == "🍇"
            assert found.search.hasFocus()
            place = found.grid.visualRect(found.grid.model().index(2, 0)).center()
            click(found.grid.viewport(), place)
            assert composer.text() == "see you 🍉"
            assert composer.box.hasFocus()

    play(scenario)


@pytest.mark.parametrize("way", ["escape", "button", "elsewhere", "key"])
def test_it_closes_without_an_emoji(way: str) -> None:
    async def scenario() -> None:
        async with opened() as (it, found, composer):
            if way == "escape":
                it.write("x")
                it.press(Key.Key_Escape)
                assert found.search.text() == ""
                assert found.isVisible()
                it.press(Key.Key_Escape)
            elif way == "button":
                click(composer.emoji)
            elif way == "key":
                it.press(Key.Key_E, CTRL)
            else:
                click(it.window.strip)
            assert not found.isVisible()
            assert composer.box.hasFocus()
            assert composer.text() == "see you "
            it.press(Key.Key_E, CTRL)
            assert found.isVisible()

    play(scenario)


def test_it_stays_within_a_small_window_and_goes_when_that_is_resized() -> None:
    async def scenario() -> None:
        async with opened(size=(360, 420)) as (it, found, _composer):
            assert it.window.rect().contains(found.geometry())
            assert found.grid.height() >= 3 * found.grid.gridSize().height()
            it.window.resize(700, 500)
            await until(lambda: not found.isVisible())

    play(scenario)


@pytest.mark.parametrize("size", [(1280, 820), (900, 560), (480, 700), (360, 620)])
@pytest.mark.parametrize("rtl", [False, True])
def test_it_leaves_the_message_that_one_reacts_to_in_view(
    size: tuple[int, int], rtl: bool, qapp: QApplication
) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group, size=size) as it:
            rows = [engine.receive(group, "Maya", f"Low water is {n}") for n in range(8)]
            rows += [own_held(engine, group, f"High water is {n}") for n in range(8)]
            await until(lambda: in_view(it, rows[-1]))
            timeline = it.window.pane.timeline
            for row in reversed(rows):
                await focus(it, row)
                it.press(Key.Key_Plus, on=timeline)
                found = picker_on(it)
                assert found.isVisible()
                seen = timeline.scene.rect(message_key(row.message_id))
                assert seen is not None
                corner = timeline.viewport().mapTo(it.window, seen.topLeft().toPoint())
                assert not found.geometry().intersects(QRect(corner, seen.size().toSize()))
                assert it.window.rect().contains(found.geometry())
                assert found.grid.height() >= 3 * found.grid.gridSize().height()
                it.press(Key.Key_Escape)

    before = qapp.layoutDirection()
    qapp.setLayoutDirection(
        Qt.LayoutDirection.RightToLeft if rtl else Qt.LayoutDirection.LeftToRight
    )
    try:
        play(scenario)
    finally:
        qapp.setLayoutDirection(before)


def test_a_press_on_the_message_that_one_reacts_to_closes_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Low water is 10:52")
            await focus(it, row)
            timeline = it.window.pane.timeline
            it.press(Key.Key_Plus, on=timeline)
            seen = timeline.scene.rect(message_key(row.message_id))
            assert seen is not None
            click(timeline.viewport(), seen.center().toPoint())
            assert not picker_on(it).isVisible()

    play(scenario)


def test_a_message_that_fills_the_window_has_it_beside_or_over_its_edge() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group, size=(1280, 620)) as it:
            row = engine.receive(group, "Maya", "\n".join(f"Low water is {n}" for n in range(20)))
            await focus(it, row)
            timeline = it.window.pane.timeline
            it.press(Key.Key_Plus, on=timeline)
            seen = timeline.scene.rect(message_key(row.message_id))
            assert seen is not None
            corner = timeline.viewport().mapTo(it.window, seen.topLeft().toPoint())
            found = picker_on(it)
            assert found.x() > corner.x() + seen.width()
            whole = found.height()
            it.press(Key.Key_Escape)
            it.window.resize(360, 620)
            await until(lambda: timeline.viewport().width() <= 360)
            it.press(Key.Key_Plus, on=timeline)
            assert it.window.rect().contains(found.geometry())
            assert 0 < found.height() < whole
            assert found.grid.height() >= found.grid.gridSize().height()

    play(scenario)


@pytest.mark.parametrize("density", ["comfortable", "compact"])
def test_it_is_as_high_as_what_a_search_found(density: str) -> None:
    async def scenario() -> None:
        async with opened({"density": density}) as (it, found, _composer):
            whole, bar = found.geometry(), found.grid.verticalScrollBar()
            await until(bar.isVisible)
            it.write("anchor")
            await until(lambda: not bar.isVisible())
            assert len(found.grid.cells) < found.grid.columns()
            assert found.height() < whole.height() - 4 * found.grid.gridSize().height()
            assert found.geometry().topLeft() == whole.topLeft(), "the search stays where it was"
            cell = found.grid.visualRect(found.grid.model().index(0, 0))
            assert found.grid.viewport().rect().contains(cell)
            for _letter in "anchor":
                it.press(Key.Key_Backspace)
            assert found.geometry() == whole
            it.write("qqqq")
            assert found.grid.height() == 0 or not bar.isVisible()

    play(scenario)


def test_every_cell_and_control_has_a_name() -> None:
    async def scenario() -> None:
        async with opened() as (it, found, _composer):
            it.write("heart")
            grid = QAccessible.queryAccessibleInterface(found.grid)
            assert grid.childCount() == len(found.grid.cells)
            assert grid.child(0).text(QAccessible.Text.Name) == "red heart"
            assert grid.child(0).state().selected
            names = [tab.accessibleName() for tab in found.tabs.values()]
            assert names[0] == "Used last"
            assert len(set(names)) == len(names) == 10

    play(scenario)


def test_it_says_when_nothing_is_called_so() -> None:
    async def scenario() -> None:
        async with opened() as (it, found, composer):
            it.write("qqqq")
            assert shown(found) == []
            it.press(Key.Key_Return)
            it.press(Key.Key_Down)
            assert found.isVisible()
            assert found.search.hasFocus()
            assert composer.text() == "see you "

    play(scenario)


def test_without_a_font_for_emoji_they_are_shown_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (fonts, picker):
        monkeypatch.setattr(module, "has_emoji_font", lambda: False)
    monkeypatch.setattr("ui.emoji.grid.has_emoji_font", lambda: False)

    async def scenario() -> None:
        async with opened() as (it, found, composer):
            assert found.grid.columns() == 2
            assert not found.grab().toImage().isNull()
            it.write("tada")
            it.press(Key.Key_Return)
            assert composer.text() == "see you 🎉"

    play(scenario)


def test_names_between_colons_become_emoji() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            composer = it.window.pane.composer
            composer.box.setFocus()
            await until(composer.box.hasFocus)
            it.write("10:30 :) std::tada :tad")
            offered = [candidate.words for candidate in composer.completions.candidates]
            assert offered[0] == ":tada:"
            it.press(Key.Key_Tab)
            it.write(" :joy: :nothing:")
            assert composer.text() == "10:30 :) std::tada 🎉 😂 :nothing:"
            it.press(Key.Key_Return)
            await until(lambda: bool(engine.called("send_text")))

    play(scenario)


def test_nothing_can_be_picked_where_nothing_can_be_written() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            composer = it.window.pane.composer
            composer.block("Not now")
            assert not composer.emoji.isEnabled()
            it.press(Key.Key_E, CTRL, on=it.window)
            await turn()
            assert it.window.findChild(EmojiPicker) is None

    play(scenario)


class Ticking:
    """A clock by which each look at it takes a millisecond, as drawing a glyph does."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def perf_counter(self) -> float:
        self.now_s += 0.001
        return self.now_s


def test_a_frame_of_the_grid_draws_what_there_is_time_for_and_the_next_ones_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1 900 cells, flung through from end to end, each glyph drawn for the first time."""

    async def scenario() -> None:
        async with opened() as (_it, found, _composer):
            fonts.pictures.clear()
            drawn: list[int] = []
            for tab in found.tabs.values():
                click(tab)
                bar = found.grid.verticalScrollBar()
                while True:
                    before = {*fonts.pictures}
                    found.grid.viewport().repaint()
                    drawn.append(len({*fonts.pictures} - before))
                    if bar.value() == bar.maximum():
                        break
                    bar.setValue(bar.value() + found.grid.viewport().height())
            assert len(drawn) > 30
            assert max(drawn) == 6, "six milliseconds"
            seen = len(fonts.pictures)
            await until(lambda: len(fonts.pictures) > seen)

    monkeypatch.setattr(grid, "time", Ticking())
    play(scenario)


def test_what_the_budget_left_blank_is_drawn_afterwards() -> None:
    async def scenario() -> None:
        async with opened() as (_it, found, _composer):
            click(found.tabs["objects"])
            side, scale = 28, found.grid.devicePixelRatioF()
            visible = [
                cell.text
                for number, cell in enumerate(found.grid.cells)
                if found.grid.visualRect(found.grid.model().index(number, 0)).intersects(
                    found.grid.viewport().rect()
                )
            ]
            assert len(visible) > 40
            await until(lambda: all(fonts.is_drawn(text, side, scale) for text in visible))

    fonts.pictures.clear()
    play(scenario)


def test_another_asker_gets_the_emoji_and_the_focus_goes_back() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            got: list[str] = []
            it.window.pane.timeline.setFocus()
            await until(it.window.pane.timeline.hasFocus)
            it.window.emoji.ask(it.window.pane.header, got.append)
            it.write("joy")
            it.press(Key.Key_Return)
            assert got == ["😂"]
            assert it.window.pane.timeline.hasFocus()
            assert it.window.pane.composer.text() == ""

    play(scenario)


def test_the_picker_alone_says_what_was_picked() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            alone = EmojiPicker(UiSettings(), it.window)
            got: list[str] = []
            alone.picked.connect(got.append)
            alone.open_at(it.window.pane.header.rect())
            it.write("joy")
            it.press(Key.Key_Return)
            assert got == ["😂"]
            assert not alone.isVisible()

    play(scenario)
