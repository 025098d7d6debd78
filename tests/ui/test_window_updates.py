"""A newer version in the window: said in the bar and in the settings, and never downloaded."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from chat_app.settings_control import SettingsControl
from chat_app.settings_reading import load_settings
from engine.core.ids import UnixMs
from engine.core.releases import Release, ReleaseError, ReleaseFlaw
from tests.ui.driving import play, stage
from tests.ui.on_settings import open_settings, row_of, rows_of, turn_switch
from tests.ui.scripted_engine import START_MS, ScriptedEngine
from tests.ui.scripted_updates import ScriptedUpdates
from ui.update_port import Updates, UpdateState
from ui.update_words import release_problem_words
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")
ROW = "Ask whether there is a newer version"
RELEASE = Release(
    serial=7, version="0.3.0", day="2026-12-20", news=("Faster.", "Quieter.", "Bluer.", "Greener.")
)
NEWER = Updates(state=UpdateState.NEWER, release=RELEASE, asked_ms=UnixMs(START_MS))


def control_in(tmp_path: Path) -> SettingsControl:
    path = tmp_path / "settings.toml"
    return SettingsControl(path, load_settings(path))


def test_a_newer_version_is_said_in_the_bar_with_a_page_to_look_at() -> None:
    port = ScriptedUpdates()

    async def scenario() -> None:
        around = WindowContext(updates=port)
        async with stage(ScriptedEngine(), around=around) as it:
            notices = it.window.notices
            assert notices.rows == []
            port.become(NEWER)
            (row,) = notices.rows
            said = row.words.text()
            assert said.startswith("Causerie 0.3.0 was released on 20 December 2026.")
            assert "You have 0.1.0. Faster. Quieter. Bluer." in said
            assert "Greener" not in said
            page, other = row.acts
            page.click()
            assert it.opened_urls == ["https://releases.example/"]
            other.click()
            await it.window.tasks.settle()
            assert notices.rows == []
            port.become(NEWER)
            assert len(notices.rows) == 1
            port.become(Updates(state=UpdateState.OFF))
            assert notices.rows == []

    play(scenario)
    assert port.listeners == []


def test_one_that_was_announced_before_the_window_opened_is_said_at_once() -> None:
    port = ScriptedUpdates()
    port.now = NEWER

    async def scenario() -> None:
        around = WindowContext(updates=port)
        async with stage(ScriptedEngine(), around=around) as it:
            assert len(it.window.notices.rows) == 1

    play(scenario)


def test_the_switch_is_off_says_what_it_does_and_what_came_of_it(tmp_path: Path) -> None:
    port, control = ScriptedUpdates(), control_in(tmp_path)

    async def scenario() -> None:
        around = WindowContext(updates=port)
        async with stage(ScriptedEngine(), around=around, control=control) as it:
            page = open_settings(it.window, "privacy")
            row = row_of(page, ROW)
            assert "learns your network address. Nothing is downloaded." in row.hint.text()
            assert control.value(("privacy", "ask_for_updates")) is False
            assert await turn_switch(it.window, "privacy", ROW)
            assert control.value(("privacy", "ask_for_updates")) is True
            page = open_settings(it.window, "privacy")
            port.become(replace(NEWER, state=UpdateState.NOT_YET, asked_ms=None))
            assert row.hint.text().endswith("Not asked yet.")
            port.become(NEWER)
            assert row.hint.text().endswith("Causerie 0.3.0 was released on 20 December 2026.")
            port.become(replace(NEWER, state=UpdateState.CURRENT))
            assert row.hint.text().endswith("This is the newest version.")
            problem = ReleaseError(ReleaseFlaw.NOT_SIGNED)
            port.become(replace(NEWER, problem=problem))
            assert row.problem.text() == release_problem_words(problem)
            port.become(NEWER)
            assert row.problem.text() == ""

    play(scenario)


def test_a_program_that_does_not_know_where_to_look_offers_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(), control=control_in(tmp_path)) as it:
            page = open_settings(it.window, "privacy")
            assert ROW not in [row.label.text() for row in rows_of(page)]

    play(scenario)


@pytest.mark.parametrize("flaw", ReleaseFlaw)
def test_every_reason_has_words(flaw: ReleaseFlaw) -> None:
    said = release_problem_words(ReleaseError(flaw, "why\u202e"))
    assert said.endswith(".")
    assert "{" not in said
    assert "\u202e" not in said
