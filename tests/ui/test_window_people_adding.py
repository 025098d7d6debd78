"""Adding a person by a link: it is explained before anybody is asked, and one's own is shown.

Links are typed and pasted as text here; pictures and messages that carry them are read in
test_window_codes.  What the engine makes of a link is scripted (scripted_people).
"""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from engine.core.contacts import CONTACT_PREFIX, ContactState
from engine.core.errors import InviteError, LinkFlaw, LinkKind, StorageError, StorageFault
from tests.ui.driving import Key, play, stage, turn, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.scripted_people import MY_LINK, PERSON_FINGERPRINT, pair_id
from tests.ui.seeing import add_person, entries, join, sheet_of, words_of
from ui.dialogs.person import MINE, AddPerson

CTRL = Qt.KeyboardModifier.ControlModifier


def test_a_pasted_link_is_explained_before_anybody_is_asked() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            it.press(Key.Key_P, CTRL)
            sheet = await sheet_of(it.window, AddPerson)
            form = sheet.theirs
            assert form.field.hasFocus()
            assert not sheet.confirm.isEnabled()
            for link, problem in (
                ("hello", "This is not a Causerie contact link"),
                (f"{CONTACT_PREFIX}go-", "This link is cut off"),
                (f"{CONTACT_PREFIX}old", "This contact link expired on 3 May 2026."),
                (MY_LINK, "This is your own contact link."),
                ("causerie:join/good", "This is an invitation to a group."),
                ("x" * 20_000, "This is far too long"),
            ):
                form.field.setPlainText(link)
                assert form.problem.text().startswith(problem)
                assert not sheet.confirm.isEnabled()
                assert not form.card.isVisible()
            form.field.setPlainText(f" {CONTACT_PREFIX[:9]}\n{CONTACT_PREFIX[9:]}Bob\n")
            assert not form.problem.isVisible()
            for piece in ("Bob", PERSON_FINGERPRINT, "contacts 1 address"):
                assert piece in words_of(form.card)
            assert engine.called("add_contact") == []
            assert sheet.confirm.accessibleName() == "Ask Bob"
            it.press(Key.Key_Return, on=form.field)
            await until(lambda: it.window.pane.is_open(pair_id("Bob")))
            assert engine.called("add_contact") == [f"{CONTACT_PREFIX}Bob"]
            assert it.window.pane.contact_bar.title.text() == "Waiting for Bob to accept"

    play(scenario)


def test_whoever_asked_already_is_accepted_by_their_link() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", ContactState.ASKING)
        async with stage(engine) as it:
            sheet = await add_person(it.window)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            assert sheet.confirm.accessibleName() == "Accept Bob"
            sheet.confirm.click()
            await until(lambda: it.window.pane.is_open(bob))
            assert it.window.pane.composer.box.isEnabled()

    play(scenario)


@pytest.mark.parametrize("state", [ContactState.ACCEPTED, ContactState.ASKED, ContactState.BLOCKED])
def test_somebody_who_is_there_is_opened_and_not_asked_again(state: ContactState) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        bob = engine.add_person("Bob", state)
        async with stage(engine) as it:
            sheet = await add_person(it.window)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            assert sheet.confirm.accessibleName() == "Open Bob"
            sheet.confirm.click()
            await until(lambda: it.window.pane.is_open(bob))
            assert engine.called("add_contact") == []

    play(scenario)


def test_a_refusal_by_the_engine_stands_in_place() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await add_person(it.window)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            engine.fail("add_contact", InviteError(LinkFlaw.BLOCKED, LinkKind.CONTACT, name="Bob"))
            sheet.confirm.click()
            await until(sheet.theirs.problem.isVisible)
            assert sheet.theirs.problem.text() == "You blocked Bob. Unblock them first."
            assert sheet.confirm.isEnabled()

    play(scenario)


def test_the_own_link_is_shown_as_a_code_copied_and_dated() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            sheet = await add_person(it.window)
            it.press(Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier, on=sheet.theirs.field)
            assert sheet.ways.buttons[0].hasFocus()
            it.press(Key.Key_Right)
            assert sheet.ways.buttons[MINE].isChecked()
            assert not sheet.theirs.isVisible()
            assert not sheet.confirm.isVisible()
            assert sheet.mine.code is not None
            assert not sheet.mine.code.sizeHint().isEmpty()
            assert sheet.mine.text.toPlainText() == MY_LINK
            assert "It expires on 16 February 2027." in words_of(sheet.mine)
            sheet.mine.copy_button.click()
            assert QGuiApplication.clipboard().text() == MY_LINK
            assert sheet.mine.copy_button.accessibleName() == "Copied"

    play(scenario)


def test_without_an_own_link_others_can_still_be_added() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.fail("make_contact_link", StorageError("full", StorageFault.DISK_FULL))
        async with stage(engine) as it:
            sheet = await add_person(it.window)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            assert sheet.confirm.isEnabled()
            sheet.ways.choose(MINE)
            assert "Your link could not be made: The disk is full" in words_of(sheet.mine)
            assert not sheet.mine.copy_button.isVisible()

    play(scenario)


def test_a_contact_link_in_the_wrong_place_is_told_where_it_belongs() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            sheet = await join(it.window)
            sheet.form.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            assert "Choose “Add a person”" in sheet.form.problem.text()

    play(scenario)


def test_adding_a_person_is_reached_from_the_start_menu_and_the_empty_page() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine()) as it:
            assert it.window.empty.add_person.hasFocus()
            it.press(Key.Key_Return)
            (await sheet_of(it.window, AddPerson)).reject()
            await until(lambda: it.window.flows.sheet is None)
            menu = it.window.panel.start.menu()
            assert [words.partition("\t")[0] for words in entries(menu)] == [
                "Add a person",
                "New group",
                "Join with an invitation",
                "Open channel",
                "Channel with a shared key",
            ]
            assert menu is not None
            menu.actions()[0].trigger()
            await sheet_of(it.window, AddPerson)

    play(scenario)


def test_the_first_start_offers_a_person_too() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        async with stage(engine) as it:
            it.press(Key.Key_P, CTRL)
            await turn()
            assert it.window.flows.sheet is None, "nobody is there yet who could ask"
            it.write("Ines")
            it.press(Key.Key_Return)
            page = it.window.first_page.page
            await until(page.stores_step.isVisible)
            it.press(Key.Key_Return)
            await until(page.conversation_step.isVisible)
            page.conversation_step.add_person.click()
            sheet = await sheet_of(it.window, AddPerson)
            sheet.theirs.field.setPlainText(f"{CONTACT_PREFIX}Bob")
            sheet.confirm.click()
            await until(lambda: it.window.pane.is_open(pair_id("Bob")))
            assert it.window.pages.currentWidget() is it.window.body

    play(scenario)
