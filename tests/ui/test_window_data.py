"""What the settings' data section leads to: erasing this profile."""

from pathlib import Path

import pytest

from chat_app.settings_control import SettingsControl
from chat_app.settings_reading import load_settings
from tests.ui.driving import Key, play, stage, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import sheet_of, words_of
from ui.dialogs.erase import EraseProfile
from ui.settings_page.rows import ActionRow
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")


def test_a_profile_is_erased_only_once_its_name_was_typed(tmp_path: Path) -> None:
    agreed: list[bool] = []
    path = tmp_path / "settings.toml"

    async def scenario() -> None:
        around = WindowContext(profile_name="default", erase=lambda: agreed.append(True))
        control = SettingsControl(path, load_settings(path))
        async with stage(ScriptedEngine(), around=around, control=control) as it:
            it.window.settings.open("data")
            assert it.window.settings.page is not None
            rows = it.window.settings.page.section("data").rows
            row = next(row for row in rows if row.label.text() == "Erase this profile")
            assert isinstance(row, ActionRow)
            row.button.click()
            sheet = await sheet_of(it.window, EraseProfile)
            assert "others keep what you wrote to them" in words_of(sheet)
            for text, usable in (("Default", False), ("defaul", False), ("default", True)):
                sheet.field.setText(text)
                assert sheet.confirm.isEnabled() is usable
            sheet.field.setText("defaul")
            it.press(Key.Key_Return, on=sheet.field)
            it.press(Key.Key_Escape, on=sheet.field)
            await until(lambda: it.window.flows.sheet is None)
            assert agreed == []
            assert it.window.isVisible()
            row.button.click()
            again = await sheet_of(it.window, EraseProfile)
            again.field.setText("default")
            again.confirm.click()
            await until(lambda: not it.window.isVisible())

    play(scenario)
    assert agreed == [True]
