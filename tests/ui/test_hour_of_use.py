"""What an hour of use found: a notice that stays, names that are cut, words that say too much."""

import pytest
from PySide6.QtWidgets import QApplication, QLineEdit

from engine.api import MAX_NAME_CHARACTERS
from engine.core.errors import StorageError, StorageFault
from tests.ui.driving import Key, group_stage, pair_stage, play, stage, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import join, seen_words, sheet_of
from ui.dialogs.contact import RenamePerson
from ui.dialogs.group import CreateGroup
from ui.dialogs.profile import Profile
from ui.dialogs.sheet import Sheet

pytestmark = pytest.mark.usefixtures("qapp")
LONG = "n" * (MAX_NAME_CHARACTERS + 7)


def test_that_a_draft_could_not_be_saved_goes_with_the_draft() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.fail("save_draft", StorageError("full", StorageFault.DISK_FULL))
            it.write("half a thought", on=it.window.pane.composer.box)

            def complaints() -> list[str]:
                return [words for words in seen_words(it.window.notices) if "draft" in words]

            await until(lambda: len(complaints()) == 1)
            await it.send("")
            await until(lambda: engine.views[group].draft == "")
            assert complaints() == []

    play(scenario)


async def says_that_it_is_cut(sheet: Sheet, field: QLineEdit) -> None:
    field.clear()
    QApplication.clipboard().setText(LONG)
    field.paste()
    assert field.text() == LONG[:MAX_NAME_CHARACTERS]
    await until(lambda: any("the rest was left out" in words for words in seen_words(sheet)))
    sheet.reject()


def test_a_name_that_is_too_long_says_that_it_is_cut() -> None:
    async def scenario() -> None:
        async with pair_stage("Maya") as (it, engine, pair):
            it.window.flows.new_group()
            group = await sheet_of(it.window, CreateGroup)
            await says_that_it_is_cut(group, group.name)
            await until(lambda: it.window.flows.sheet is None)
            it.window.people.rename(engine.views[pair])
            rename = await sheet_of(it.window, RenamePerson)
            await says_that_it_is_cut(rename, rename.name)
            await until(lambda: it.window.flows.sheet is None)
            it.window.people.profile()
            profile = await sheet_of(it.window, Profile)
            await says_that_it_is_cut(profile, profile.fields.name)

    play(scenario)


def test_a_name_that_is_too_long_at_the_first_start_says_so_too() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(name=None)) as it:
            field = it.window.first_page.page.name_step.name
            field.setFocus()
            it.write(LONG)
            assert field.text() == LONG[:MAX_NAME_CHARACTERS]
            await until(
                lambda: any("left out" in words for words in seen_words(it.window.first_page.page))
            )
            it.press(Key.Key_Backspace)
            assert not any("left out" in words for words in seen_words(it.window.first_page.page))

    play(scenario)


def test_an_invitation_speaks_of_its_own_addresses_while_others_are_connected() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            engine.connect(peers=1)
            sheet = await join(it.window)
            assert "No address in it is contacted before you agree." in seen_words(sheet)
            sheet.reject()

    play(scenario)
