"""A group whose key was lost: its conversation says so, and leads back into it."""

import pytest

from tests.ui.driving import play, stage, turn, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import sheet_of
from tests.ui.test_nothing_is_cut import cut, is_beyond, language
from ui.dialogs.confirm import Confirm
from ui.dialogs.export import ExportChat

pytestmark = pytest.mark.usefixtures("qapp")
__all__ = ["language"]


@pytest.mark.parametrize("percent", ["100", "200"])
def test_it_is_said_where_one_would_write_with_what_helps(language: str, percent: str) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        engine.receive(group, "Maya", "still to be read", notify=False)
        stored = {"text_percent": percent}
        async with stage(engine, opening=group, stored=stored, size=(400, 720)) as it:
            pane = it.window.pane
            await until(lambda: pane.is_open(group))
            assert not pane.open_bar.isVisible()
            engine.change(group, key_is_lost=True)
            await until(pane.open_bar.isVisible)
            assert not pane.composer.box.isEnabled()
            if language == "en":
                assert "nothing comes or goes" in pane.open_bar.words.text()
            await turn()
            await turn()
            assert cut(it.window) == []
            for button in (pane.open_bar.export, pane.open_bar.leave):
                assert not is_beyond(button)
            pane.open_bar.export.click()
            (await sheet_of(it.window, ExportChat)).reject()
            await until(lambda: it.window.flows.sheet is None)
            pane.open_bar.leave.click()
            (await sheet_of(it.window, Confirm)).accept()
            await until(lambda: bool(engine.called("leave_group")))

    play(scenario)
