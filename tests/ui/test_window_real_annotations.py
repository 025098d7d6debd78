"""Two real windows on real engines: what one says about a message, the other one sees."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QSizeF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from engine.core.ids import ConversationId
from engine.events import MessageView
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import until
from tests.ui.seeing import sheet_of
from ui.dialogs.confirm import DeleteChoice
from ui.list.preview import preview_of
from ui.timeline.bubble_parts import quoted_picture
from ui.timeline.rows import message_in, message_key


async def in_a_group(alice: Desk, bob: Desk) -> ConversationId:
    group = await alice.engine.groups.create("Tide Gauge")
    await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
    return group


async def in_a_pair(alice: Desk, bob: Desk) -> ConversationId:
    pair = await bob.engine.people.add(await alice.engine.people.make_contact_link())
    await until(lambda: alice.window.model.conversation(pair) is not None)
    await alice.engine.people.accept(pair)
    await until(lambda: bob.has_row("accepted") or bob.window.pane.conversation is None)
    return pair


def knows(desk: Desk, conversation: ConversationId) -> bool:
    return desk.window.model.conversation(conversation) is not None


def row_of(desk: Desk, text: str) -> MessageView | None:
    rows = (message_in(row) for row in desk.window.pane.timeline.scene.loaded.rows)
    return next((row for row in rows if row is not None and row.text == text), None)


async def focus(desk: Desk, text: str) -> None:
    timeline = desk.window.pane.timeline
    await until(lambda: row_of(desk, text) is not None)
    row = row_of(desk, text)
    assert row is not None
    timeline.setFocus()
    QTest.keyClick(timeline, Qt.Key.Key_Escape)
    QTest.keyClick(timeline, Qt.Key.Key_End)
    await until(lambda: timeline.scene.rect(message_key(row.message_id)) is not None)
    for _step in timeline.scene.loaded.rows:
        if timeline.scene.focus_key != message_key(row.message_id):
            QTest.keyClick(timeline, Qt.Key.Key_Up)
    assert timeline.scene.focus_key == message_key(row.message_id)


def press(desk: Desk, key: Qt.Key) -> None:
    QTest.keyClick(desk.window.pane.timeline, key)


Meet = Callable[[Desk, Desk], Awaitable[ConversationId]]


@pytest.mark.parametrize("meet", [in_a_group, in_a_pair])
def test_both_see_the_same_of_what_is_said_about_a_message(tmp_path: Path, meet: Meet) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        conversation = await meet(alice, bob)
        for desk in (alice, bob):
            await until(partial(knows, desk, conversation))
            desk.window.open_conversation(conversation)
        await until(alice.window.pane.composer.box.isEnabled)
        await until(bob.window.pane.composer.box.isEnabled)
        alice.type_and_enter("Who brings the ladder?")
        await focus(bob, "Who brings the ladder?")
        press(bob, Qt.Key.Key_R)
        bob.type_and_enter("I do")
        await until(lambda: alice.has_row("Bob", "answers you: Who brings the ladder?", "I do"))

        reacted = row_of(bob, "Who brings the ladder?")
        assert reacted is not None
        bob.window.pane.about.react(reacted, "👍")
        await until(lambda: alice.has_row("Who brings the ladder?", "👍 from Bob"))
        await until(lambda: "Bob reacted 👍" in listed(alice, conversation))

        QTest.keyClick(alice.window.pane.composer.box, Qt.Key.Key_Up)
        QTest.keyClicks(alice.window.pane.composer.box, " And the rope?")
        QTest.keyClick(alice.window.pane.composer.box, Qt.Key.Key_Return)
        await until(lambda: bob.has_row("Who brings the ladder? And the rope?", "edited"))
        await until(lambda: bob.has_row("answers Alice: Who brings the ladder? And the rope?"))

        await focus(bob, "I do")
        press(bob, Qt.Key.Key_Delete)
        choice = await sheet_of(bob.window, DeleteChoice)
        choice.everybody.click()
        await until(lambda: bob.window.flows.sheet is None)
        bob.window.about.deletions.finish()
        await until(lambda: alice.has_row("Bob deleted this message"))
        await until(lambda: bob.has_row("You deleted this message"))

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def listed(desk: Desk, conversation: ConversationId) -> str:
    view = desk.window.model.conversation(conversation)
    return "" if view is None else preview_of(view).text


def test_a_mention_by_its_completed_name_reaches_the_one_who_is_meant(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        group = await in_a_group(alice, bob)
        other = await bob.engine.groups.create("Elsewhere")
        await until(lambda: bob.window.model.conversation(other) is not None)
        bob.window.open_conversation(other)
        alice.window.open_conversation(group)
        await until(lambda: alice.has_row("Bob joined"))
        box = alice.window.pane.composer.box
        alice.window.activateWindow()
        box.setFocus()
        await until(box.hasFocus)
        QTest.keyClicks(box, "@bo")
        QTest.keyClick(box, Qt.Key.Key_Tab)
        QTest.keyClicks(box, "are you there?")
        QTest.keyClick(box, Qt.Key.Key_Return)

        def mentions() -> int:
            view = bob.window.model.conversation(group)
            return 0 if view is None else view.mentions

        await until(lambda: mentions() == 1)
        bob.window.activateWindow()
        bob.window.open_conversation(group)
        await until(lambda: bob.has_row("Alice", "@Bob are you there?", "mentions you"))
        await until(lambda: mentions() == 0)

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def shows_picture_it_quotes(desk: Desk, text: str) -> bool:
    answer = row_of(desk, text)
    picture = None if answer is None else quoted_picture(answer)
    quoted = desk.window.pane.timeline.scene.shown_pictures.quoted
    room = QSizeF(36, 36)
    return picture is not None and quoted.pixmap(picture, room, 1.0, cover=True) is not None


@pytest.mark.parametrize("meet", [in_a_group, in_a_pair])
def test_a_picture_arrives_as_a_text_does(tmp_path: Path, meet: Meet) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        conversation = await meet(alice, bob)
        for desk in (alice, bob):
            await until(partial(knows, desk, conversation))
            desk.window.open_conversation(conversation)
        await until(alice.window.pane.composer.box.isEnabled)
        await until(bob.window.pane.composer.box.isEnabled)
        picture = QImage(1200, 800, QImage.Format.Format_RGB32)
        picture.fill(Qt.GlobalColor.darkCyan)
        alice.window.pane.attaching.take_image(picture)
        await until(alice.window.pane.attachment_bar.isVisible)
        alice.type_and_enter("the pier")
        await until(lambda: bob.has_row("Alice", "Photo: the pier"))
        row = row_of(bob, "the pier")
        assert row is not None
        pictures = bob.window.pane.timeline.scene.pictures
        await until(lambda: pictures.pixmap(row, QSizeF(340, 260), 1.0) is not None)
        shown = pictures.pixmap(row, QSizeF(340, 260), 1.0)
        assert shown is not None
        assert abs(shown.width() / shown.height() - 1.5) < 0.01
        assert "Photo: the pier" in listed(bob, conversation)
        await focus(bob, "the pier")
        press(bob, Qt.Key.Key_R)
        bob.type_and_enter("lovely")
        await until(lambda: alice.has_row("Bob", "answers you: Photo: the pier", "lovely"))
        await until(lambda: shows_picture_it_quotes(alice, "lovely"))

    at_desks(tmp_path, ("Alice", "Bob"), scenario)
