"""One's own profile: a name and a picture that is made small, or refused in words.

The sheet is the real one and so is the picture; only the dialog of the desktop that chooses a
file is replaced, because it cannot be driven without a screen.
"""

from pathlib import Path

from msgspec.structs import replace
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from engine.core.contacts import MAX_PICTURE_BYTES
from engine.core.errors import InputError, InputFlaw
from tests.ui.driving import Key, play, stage, until
from tests.ui.scripted_engine import FINGERPRINT, ScriptedEngine
from tests.ui.scripted_people import picture_bytes
from tests.ui.seeing import seen_words, sheet_of, words_of
from ui.dialogs.profile import Profile


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
            assert not sheet.remove_button.isVisible()
            sheet.choose_button.click()
            await until(lambda: bool(sheet.picture))
            assert sheet.remove_button.isVisible()
            sheet.name.setText("Inès")
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
                sheet.choose_button.click()
                await until(sheet.choose_button.isEnabled)
                assert sheet.problem.text() == problem
                assert sheet.picture == picture_bytes()
            sheet.remove_button.click()
            engine.fail("set_profile", InputError(InputFlaw.NAME_EMPTY))
            sheet.confirm.click()
            await until(sheet.problem.isVisible)
            assert sheet.problem.text() == "This name cannot be used: nothing is left of the name."
            sheet.confirm.click()
            await until(lambda: engine.called("set_profile") == [("Ines", b"")])

    play(scenario)
