"""What the window says of times goes by the clock that it was given, in its list and its pane."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt

from engine.core.ids import UnixMs
from engine.events import GapPlace, GapUpdated, GapView
from tests.ui.driving import NOW, play, stage, until
from tests.ui.scripted_engine import START_MS, ScriptedEngine
from tests.ui.seeing import spoken_rows
from ui.times import spoken_time

pytestmark = pytest.mark.usefixtures("qapp")
NOW_MS = int(NOW.timestamp() * 1_000)


def test_days_and_the_next_try_of_a_gap_go_by_the_windows_clock() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        row = engine.row(group, engine.views[group].members[1], "heard")
        engine.rows[group][row.message_id] = row
        place = GapPlace(
            before=row.position,
            missing=1,
            waiting=0,
            requests=1,
            since_ms=UnixMs(START_MS),
            next_request_ms=UnixMs(NOW_MS + 300_000),
        )
        gap = GapView(conversation_id=group, missing=1, waiting=0, places=(place,))
        async with stage(engine, opening=group) as it:
            timeline = it.window.pane.timeline
            await until(lambda: bool(timeline.scene.placed))
            engine.tell(GapUpdated(conversation_id=group, gap=gap))
            said = spoken_rows(timeline)
            assert "Today" in said
            assert any("next try in 5 min" in words for words in said), said

    play(scenario)


def test_when_somebody_was_seen_is_said_by_the_windows_clock() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        luc = engine.add_person("Luc")
        contact = engine.views[luc].contact
        assert contact is not None
        seen = replace(contact, is_online=False, last_seen_ms=UnixMs(NOW_MS - 60_000))
        engine.views[luc] = replace(engine.views[luc], contact=seen)
        async with stage(engine) as it:
            model = it.window.model
            await until(lambda: model.rowCount() == 1)
            tip = model.data(model.index(0), Qt.ItemDataRole.ToolTipRole)
            assert tip == f"Luc: last seen {spoken_time(NOW_MS - 60_000, NOW)}"

    play(scenario)
