"""Density: how much room rows and messages take, changed at once."""

import pytest
from PySide6.QtWidgets import QStyleOptionViewItem

from chat_app.settings_control import SettingsControl
from tests.ui.driving import Stage, play, stage, until
from tests.ui.on_messages import bubble
from tests.ui.scripted_engine import ScriptedEngine
from ui.settings_page.rows import ChoiceRow
from ui.theme import current_theme

pytestmark = pytest.mark.usefixtures("qapp")


def row_height(it: Stage) -> int:
    rows = it.window.panel.rows
    return rows.itemDelegate().sizeHint(QStyleOptionViewItem(), rows.model().index(0, 0)).height()


def sizes(it: Stage) -> tuple[int, int, int]:
    """Of a row of the list, the header and the strip."""
    return row_height(it), it.window.pane.header.height(), it.window.strip.height()


def test_compact_takes_less_room_at_once_and_is_written(control: SettingsControl) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        said = [engine.receive(group, "Maya", f"reading {number}") for number in range(3)]
        async with stage(engine, opening=group, control=control) as it:
            await until(lambda: bool(it.window.pane.timeline.scene.placed))
            before, (wide, _y) = sizes(it), bubble(it, said[1])
            it.window.settings.open("appearance")
            page = it.window.settings.page
            assert page is not None
            (row,) = (
                each
                for each in page.section("appearance").rows
                if isinstance(each, ChoiceRow) and each.name == ("appearance", "density")
            )
            row.choice.activated.emit(1)
            await until(lambda: current_theme().metrics.is_compact)
            await until(lambda: sizes(it) < before)
            assert control.value(("appearance", "density")) == "compact"
            assert not control.waiting()
            it.window.settings.close()
            await until(lambda: bubble(it, said[1])[0].bubble.height() < wide.bubble.height())
            assert bubble(it, said[1])[0].height < wide.height
            row.choice.activated.emit(0)
            await until(lambda: sizes(it) == before)

    play(scenario)


@pytest.mark.parametrize("percent", [85, 100, 140, 150, 200])
def test_a_compact_row_is_as_high_as_its_words(control: SettingsControl, percent: int) -> None:
    async def scenario() -> None:
        control.write(("appearance", "density"), "compact")
        control.write(("appearance", "text_size"), percent)
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group, control=control) as it:
            type_ = current_theme().type
            lines = type_.body.line_height
            if percent >= 150:  # the time has a line of its own then, and the words, too
                lines += type_.label.line_height + type_.micro.line_height
            assert row_height(it) > lines
            header = type_.heading.line_height + type_.small.line_height
            assert it.window.pane.header.height() > header
            assert it.window.strip.height() >= type_.caption.line_height + 2

    play(scenario)
