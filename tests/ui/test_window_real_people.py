"""Two people with real windows on real engines: from a link to a delivered message, and back."""

from pathlib import Path

from PySide6.QtCore import Qt

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId
from engine.events import ContactView
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import until
from tests.ui.scripted_people import picture_bytes
from tests.ui.seeing import add_person, seen_words, sheet_of
from ui.dialogs.confirm import Confirm
from ui.dialogs.contact import SafetyNumber
from ui.dialogs.profile import Profile
from ui.people import Answer, digit_groups
from ui.pictures import FACES


def contact(desk: Desk, pair: ConversationId) -> ContactView:
    view = desk.window.model.conversation(pair)
    assert view is not None
    assert view.contact is not None
    return view.contact


def in_state(desk: Desk, state: ContactState) -> bool:
    views = desk.window.model.conversations()
    return any(view.contact is not None and view.contact.state is state for view in views)


async def ask(asker: Desk, link: str) -> ConversationId:
    """Through the sheet, as people do."""
    sheet = await add_person(asker.window)
    sheet.theirs.field.setPlainText(link)
    assert sheet.confirm.isEnabled(), sheet.theirs.problem.text()
    sheet.confirm.click()
    await until(lambda: asker.window.pane.conversation is not None)
    assert asker.window.pane.conversation is not None
    return asker.window.pane.conversation.conversation_id


async def befriend(alice: Desk, bob: Desk) -> ConversationId:
    pair = await ask(alice, await bob.engine.people.make_contact_link())
    await until(lambda: in_state(bob, ContactState.ASKING))
    bob.window.open_conversation(pair)
    bob.window.pane.contact_bar.buttons[Answer.ACCEPT].click()
    await until(bob.window.pane.composer.box.isEnabled)
    await until(alice.window.pane.composer.box.isEnabled)
    return pair


async def safety_number(desk: Desk) -> tuple[str, ...]:
    desk.window.pane.header.safety_number_requested.emit()
    sheet = await sheet_of(desk.window, SafetyNumber)
    sheet.reject()
    return sheet.groups


def test_from_a_pasted_link_to_a_delivered_message(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        pair = await ask(alice, await bob.engine.people.make_contact_link())
        bar = alice.window.pane.contact_bar
        assert bar.title.text() == "Waiting for Bob to accept"
        await until(lambda: in_state(bob, ContactState.ASKING))
        index = bob.window.model.index_of(pair)
        said = str(index.data(Qt.ItemDataRole.AccessibleTextRole))
        assert said.startswith("Alice, new request")
        bob.window.open_conversation(pair)
        assert bob.window.pane.contact_bar.title.text() == "Alice wants to talk to you"
        bob.window.pane.contact_bar.buttons[Answer.ACCEPT].click()
        await until(alice.window.pane.composer.box.isEnabled)
        assert not bar.isVisible()
        alice.type_and_enter("Does it talk?")
        await until(lambda: bob.has_row("Alice", "Does it talk?"))
        await until(lambda: alice.has_row("Does it talk?", "Delivered"))
        bob.type_and_enter("It talks!")
        await until(lambda: bob.has_row("It talks!", "Delivered"))
        assert alice.has_row("You asked to talk")
        assert alice.has_row("Bob accepted")
        await until(lambda: contact(alice, pair).is_online)
        await until(lambda: "Online" in seen_words(alice.window.pane.header))

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_a_declined_request_can_be_asked_again(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        pair = await ask(alice, await bob.engine.people.make_contact_link())
        await until(lambda: in_state(bob, ContactState.ASKING))
        bob.window.open_conversation(pair)
        bob.window.pane.contact_bar.buttons[Answer.DECLINE].click()
        theirs, ours = alice.window.pane.contact_bar, bob.window.pane.contact_bar
        await until(lambda: theirs.title.text() == "Bob declined")
        assert ours.title.text() == "You declined Alice"
        ours.buttons[Answer.ASK_AGAIN].click()
        await until(lambda: theirs.title.text() == "Bob wants to talk to you")
        theirs.buttons[Answer.ACCEPT].click()
        await until(alice.window.pane.composer.box.isEnabled)
        await until(bob.window.pane.composer.box.isEnabled)

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_a_withdrawn_request_leaves_the_other_window(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        pair = await ask(alice, await bob.engine.people.make_contact_link())
        await until(lambda: in_state(bob, ContactState.ASKING))
        bob.window.open_conversation(pair)
        theirs, ours = bob.window.pane.contact_bar, alice.window.pane.contact_bar
        assert theirs.buttons[Answer.ACCEPT].isVisible()
        ours.buttons[Answer.WITHDRAW].click()
        await until(lambda: theirs.title.text() == "Alice asks no longer")
        assert not theirs.buttons[Answer.ACCEPT].isVisible()
        assert ours.title.text() == "You withdrew your request to Bob"

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_blocking_and_unblocking_in_the_window(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        await befriend(alice, bob)
        bob.window.pane.header.block_requested.emit()
        sheet = await sheet_of(bob.window, Confirm)
        sheet.confirm.click()
        bar = bob.window.pane.contact_bar
        await until(lambda: bar.title.text() == "You blocked Alice")
        assert bob.window.pane.composer.box.placeholderText() == "You blocked Alice"
        bar.buttons[Answer.UNBLOCK].click()
        await until(bob.window.pane.composer.box.isEnabled)
        alice.type_and_enter("Still there?")
        await until(lambda: bob.has_row("Alice", "Still there?"))

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_both_see_the_same_safety_number_and_each_others_picture(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        pair = await befriend(alice, bob)
        numbers = [await safety_number(desk) for desk in (alice, bob)]
        assert numbers[0] == numbers[1] == digit_groups(contact(bob, pair).safety_number)
        assert len(numbers[0]) == 12
        await until(lambda: bob.window.flows.sheet is None)
        bob.window.people.profile()
        profile = await sheet_of(bob.window, Profile)
        bob.chosen_file = tmp_path / "bob.png"
        bob.chosen_file.write_bytes(picture_bytes("#1f6ca6"))
        profile.fields.choose_button.click()
        await until(lambda: bool(profile.fields.picture))
        picture = profile.fields.picture
        profile.fields.name.setText("Robert")
        profile.confirm.click()
        await until(lambda: contact(alice, pair).picture == picture)
        await until(lambda: contact(alice, pair).name == "Robert")
        alice.window.grab()
        await until(lambda: FACES.face(picture) is not None)

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_a_person_who_was_removed_is_gone_from_the_window(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        await befriend(alice, bob)
        alice.window.pane.header.remove_requested.emit()
        sheet = await sheet_of(alice.window, Confirm)
        sheet.confirm.click()
        await until(lambda: alice.window.model.rowCount() == 0)
        assert alice.window.pane.conversation is None
        assert alice.window.empty.isVisible()

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_links_that_cannot_be_used_are_explained_by_the_engine(tmp_path: Path) -> None:
    async def scenario(alice: Desk) -> None:
        own = await alice.engine.people.make_contact_link()
        sheet = await add_person(alice.window)
        assert sheet.mine.code is not None
        assert not sheet.mine.code.sizeHint().isEmpty()
        for link in (own, own[:-5], own[:-5] + "AAAAA", "hello", "causerie:contact/"):
            sheet.theirs.field.setPlainText(link)
            assert sheet.theirs.problem.text().startswith("This ")
            assert not sheet.confirm.isEnabled()
        sheet.theirs.field.setPlainText(own)
        assert "your own contact link" in sheet.theirs.problem.text()
        sheet.reject()

    at_desks(tmp_path, ("Alice",), scenario)
