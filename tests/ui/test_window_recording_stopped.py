"""The notice about a recording that stopped: what it says, and where its button leads."""

import pytest

from chat_app.settings_control import SettingsControl
from engine.events import NoticeCleared, NoticeLevel, NoticeRaised, RecordingStopped
from tests.ui.driving import play, stage, until
from tests.ui.scripted_engine import ScriptedEngine

pytestmark = pytest.mark.usefixtures("qapp")


def test_it_names_the_directory_leads_to_the_settings_and_goes(control: SettingsControl) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        tide = engine.add_group("Tide Gauge")
        async with stage(engine, opening=tide, control=control) as it:
            content = RecordingStopped(directory="/media/full/delivery")
            engine.tell(NoticeRaised(key="recording", level=NoticeLevel.WARNING, content=content))
            (row,) = it.window.notices.rows
            assert "/media/full/delivery" in row.words.text().replace("\u200b", "")
            assert it.window.pane.is_open(tide), "the chat stands as before"
            (button,) = row.acts
            button.click()
            await until(lambda: it.window.settings.is_shown)
            page = it.window.settings.page
            assert page is not None
            assert page.section("recording").isVisible()
            engine.tell(NoticeCleared(key="recording"))
            assert it.window.notices.rows == []

    play(scenario)
