"""One's own profile: a name and a picture that is made small, or refused in words.

The sheet is the real one and so is the picture; only the dialog of the desktop that chooses a
file is replaced, because it cannot be driven without a screen.
"""

from pathlib import Path

from msgspec.structs import replace
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from chat_app.settings_control import SettingsControl
from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.errors import InputError, InputFlaw
from tests.ui.driving import Key, play, stage, until
from tests.ui.scripted_engine import FINGERPRINT, ScriptedEngine
from tests.ui.scripted_people import picture_bytes
from tests.ui.seeing import seen_words, sheet_of, words_of
from ui.dialogs.profile import Profile
from ui.settings_page.looks_sections import ProfileCard


def test_a_profile_gets_a_name_and_a_picture_that_was_made_small(tmp_path: Path) -> None:
    file = tmp_path / "me.png"
    file.write_bytes(picture_bytes("#b5385b", side=900))

    async def choose_file(_parent: QWidget) -> Path | None:
        return file

    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine, choose_picture=choose_file) as it:
            it.window.panel.avatar.setFocus()
            it.press(Key.Key_Return)
            sheet = await sheet_of(it.window, Profile)
            assert FINGERPRINT in words_of(sheet)
            assert not sheet.fields.remove_button.isVisible()
            sheet.fields.choose_button.click()
            await until(lambda: bool(sheet.fields.picture))
            assert sheet.fields.remove_button.isVisible()
            sheet.fields.name.setText("Inès")
            sheet.confirm.click()
            await until(lambda: it.window.flows.sheet is None)
            assert engine.own is not None
            assert engine.called("set_profile") == [("Inès", engine.own.picture)]
            assert len(engine.own.picture) <= MAX_PICTURE_BYTES
            assert QImage.fromData(engine.own.picture).width() == 256
            assert it.window.panel.avatar.accessibleName().startswith("You: Inès")
            assert "Inès" in seen_words(it.window.panel)

    play(scenario)


def test_a_file_that_is_no_picture_is_refused_in_words_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "me.txt"
    file.write_text("hello", "utf-8")
    answers: list[Path | None] = [None, file]

    async def choose_file(_parent: QWidget) -> Path | None:
        return answers.pop(0)

    async def scenario() -> None:
        engine = ScriptedEngine()
        assert engine.own is not None
        engine.own = replace(engine.own, picture=picture_bytes())
        async with stage(engine, choose_picture=choose_file) as it:
            it.window.people.profile()
            sheet = await sheet_of(it.window, Profile)
            for problem in ("", "This is neither a PNG nor a JPEG picture."):
                sheet.fields.choose_button.click()
                await until(sheet.fields.choose_button.isEnabled)
                assert sheet.fields.problem.text() == problem
                assert sheet.fields.picture == picture_bytes()
            sheet.fields.remove_button.click()
            engine.fail("set_profile", InputError(InputFlaw.NAME_EMPTY))
            sheet.confirm.click()
            await until(sheet.fields.problem.isVisible)
            assert (
                sheet.fields.problem.text()
                == "This name cannot be used: nothing is left of the name."
            )
            sheet.confirm.click()
            await until(lambda: engine.called("set_profile") == [("Ines", b"")])

    play(scenario)


def test_on_the_settings_page_a_change_is_saved_or_given_up_in_place(
    control: SettingsControl, tmp_path: Path
) -> None:
    path = tmp_path / "me.png"
    path.write_bytes(picture_bytes("#b5385b", side=900))

    async def choose(_parent: QWidget) -> Path | None:
        return path

    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine, control=control, choose_picture=choose) as it:
            it.window.commands.profile()
            page = it.window.settings.page
            assert page is not None
            assert it.window.flows.sheet is None
            (card,) = page.findChildren(ProfileCard)
            fields = card.fields
            assert not card.save.isVisible()
            fields.name.setFocus()
            fields.name.selectAll()
            it.write("Ines B.")
            assert card.save.isVisible()
            card.give_up.click()
            assert fields.name.text() == "Ines"
            assert fields.name.hasFocus()
            fields.name.selectAll()
            it.press(Key.Key_Delete)
            assert not card.save.isEnabled()
            it.write("Ines B.")
            fields.choose_button.click()
            await until(lambda: bool(fields.picture))
            engine.fail("set_profile", InputError(InputFlaw.NAME_EMPTY))
            card.save.click()
            await until(fields.problem.isVisible)
            card.save.click()
            await until(lambda: engine.called("set_profile") == [("Ines B.", fields.picture)])
            await until(lambda: not card.save.isVisible())
            assert fields.name.hasFocus()

    play(scenario)
