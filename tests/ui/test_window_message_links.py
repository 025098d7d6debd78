"""Links to a message, as another program brings them: it is opened, or it is said why not."""

import pytest
from msgspec.structs import replace

from engine.core.ids import MessageId
from engine.core.message_link import MESSAGE_PREFIX, message_link
from engine.inspection_views import Whereabouts
from tests.ui.driving import Stage, heard, play, stage, turn, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_inspection import inspection
from tests.ui.seeing import sheet_of, words_of
from ui.dialogs.message_link import LeadsNowhere
from ui.window.outside_links import MAX_WAITING

pytestmark = pytest.mark.usefixtures("qapp")
DAY_MINUTES = 24 * 60


async def dismissed(it: Stage, sheet: LeadsNowhere) -> None:
    sheet.reject()
    await until(lambda: it.window.flows.sheet is not sheet)


def test_a_message_is_opened_where_it_stands_with_the_inspector_beside_it() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        ebb, tide = engine.add_group("Ebb"), engine.add_group("Tide Gauge")
        for day in range(30):
            engine.receive(ebb, "Maya", f"line {day}", minute=day * DAY_MINUTES)
        first = next(iter(engine.rows[ebb]))
        async with stage(engine, opening=tide) as it:
            timeline = it.window.pane.timeline
            shown = heard(it.window.inspector.shown)
            it.window.come_to_front(message_link(first))
            await shown
            assert it.window.pane.is_open(ebb)
            panel = it.window.inspector.panel
            assert panel is not None
            assert panel.found is not None
            assert panel.found.message_id == first
            await until(lambda: timeline.scene.loaded.total == 30)
            days = [timeline.day_in_view()]
            timeline.go_to_newest()
            await turn()
            days.append(timeline.day_in_view())
            assert days[0] < days[1], "it stood at the message, not at the end"
            assert it.window.flows.sheet is None

    play(scenario)


def test_one_that_is_only_named_opens_the_inspector_where_it_is_missing() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        tide = engine.add_group("Tide Gauge")
        row = engine.receive(tide, "Maya", "names another")
        missing = replace(
            inspection(row),
            message_id=MessageId("lacking"),
            message=None,
            whereabouts=Whereabouts.MISSING,
        )
        engine.inspection.unshown[missing.message_id] = missing
        async with stage(engine) as it:
            shown = heard(it.window.inspector.shown)
            it.window.outside_links.open(message_link("lacking"))
            await shown
            assert it.window.pane.is_open(tide)
            panel = it.window.inspector.panel
            assert panel is not None
            assert panel.found == missing

    play(scenario)


def test_where_the_message_is_comes_before_where_somebody_names_it() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        tide, ebb = engine.add_group("Tide Gauge"), engine.add_group("Ebb")
        here = engine.receive(tide, "Maya", "the one")
        named = replace(
            inspection(engine.receive(ebb, "Luc", "names it")),
            message_id=here.message_id,
            message=None,
            whereabouts=Whereabouts.MISSING,
        )
        engine.inspection.unshown[here.message_id] = named
        async with stage(engine, opening=ebb) as it:
            shown = heard(it.window.inspector.shown)
            it.window.outside_links.open(message_link(here.message_id))
            await shown
            assert it.window.pane.is_open(tide)

    play(scenario)


def test_one_that_nobody_here_knows_is_said_to_be_elsewhere() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        tide = engine.add_group("Tide Gauge")
        async with stage(engine, opening=tide, size=(360, 640)) as it:
            it.window.outside_links.open(message_link("ab" * 32))
            sheet = await sheet_of(it.window, LeadsNowhere)
            await until(lambda: sheet.width() <= 360)
            assert sheet.minimumSizeHint().width() <= 360, "the id breaks in a narrow window"
            assert "in a profile that is" in words_of(sheet)
            await dismissed(it, sheet)
            assert it.window.pane.is_open(tide)
            assert it.window.inspector.panel is None

    play(scenario)


def test_hostile_links_are_refused_unasked_and_only_a_few_wait() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        hostile = ["", "../../x", "%3Cb%3E", "<b>x</b>", "a" * 5_000, "\u202egnp.exe", "x\0y"]
        async with stage(engine, opening=engine.add_group("Tide Gauge")) as it:
            for behind in hostile:
                it.window.outside_links.open(MESSAGE_PREFIX + behind)
            for _ in range(MAX_WAITING):
                sheet = await sheet_of(it.window, LeadsNowhere)
                assert "was changed or cut off" in words_of(sheet)
                await dismissed(it, sheet)
            assert engine.inspection.asked == []

    play(scenario)
