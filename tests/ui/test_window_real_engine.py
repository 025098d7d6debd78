"""The real window on the real engine: sealed messages, encrypted disk, a network in memory."""

import asyncio
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from chat_app.settings_control import SettingsControl
from engine.core.ids import DeliveryState
from engine.network.memory import MemoryNetwork
from engine.text_spans import SpanKind
from tests.runtime.conftest import Person
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import play, until
from tests.ui.on_settings import open_settings
from tests.ui.seeing import seen_words
from ui.list.preview import preview_of


def test_a_typed_message_becomes_held_by_1_of_1_when_the_other_side_answered(
    tmp_path: Path,
) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        group = await alice.engine.groups.create("Tide Gauge")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        for desk in (alice, bob):
            desk.window.open_conversation(group)
        await until(lambda: alice.has_row("Bob joined"))
        alice.type_and_enter("Does it talk?")
        await until(lambda: bob.has_row("Alice", "Does it talk?"))
        bob.type_and_enter("It talks!")
        await until(lambda: alice.has_row("Bob", "It talks!"))
        await until(lambda: alice.has_row("Does it talk?", "Held by 1 of 1"))
        await until(lambda: bob.has_row("It talks!", "Held by 1 of 1"))
        delivery = await delivery_of(alice, "Does it talk?")
        assert delivery is DeliveryState.HELD

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_markup_is_stored_with_the_message_and_shown_to_the_other_side(tmp_path: Path) -> None:
    async def scenario(alice: Desk, bob: Desk) -> None:
        group = await alice.engine.groups.create("Tide Gauge")
        await bob.engine.groups.join(await alice.engine.groups.make_invite_link(group))
        for desk in (alice, bob):
            desk.window.open_conversation(group)
        await until(lambda: alice.has_row("Bob joined"))
        box = alice.window.pane.composer.box
        QTest.keyClick(box, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
        QTest.keyClicks(box, "low")
        QTest.keyClick(box, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
        alice.type_and_enter(" water, see www.tide.example")
        await until(lambda: bob.has_row("Alice", "low water, see www.tide.example"))
        for desk in (alice, bob):
            [message] = [
                m for m in (await desk.engine.timeline.latest_page(group)).messages if m.spans
            ]
            assert message.text == "**low** water, see www.tide.example"
            kinds = [span.kind for span in message.spans]
            assert kinds == [SpanKind.BOLD, SpanKind.HIDDEN, SpanKind.HIDDEN, SpanKind.LINK]
            assert message.spans[-1].target == "https://www.tide.example"
            (listed,) = await desk.engine.conversations()
            assert preview_of(listed).text == "low water, see www.tide.example"

    at_desks(tmp_path, ("Alice", "Bob"), scenario)


def test_a_hundred_kilobytes_pasted_are_refused_in_words_and_stay_in_the_box(
    tmp_path: Path,
) -> None:
    async def scenario(alice: Desk) -> None:
        group = await alice.engine.groups.create("Alone")
        alice.window.open_conversation(group)
        box = alice.window.pane.composer.box
        box.setPlainText("x" * 100_000)
        QTest.keyClick(box, Qt.Key.Key_Return)
        await asyncio.sleep(0)
        assert len(box.toPlainText()) == 100_000
        page = await alice.engine.timeline.latest_page(group)
        assert [m.kind for m in page.messages] == ["created"]

    at_desks(tmp_path, ("Alice",), scenario)


def test_first_start_asks_for_a_name_and_leads_to_a_group(
    tmp_path: Path, control: SettingsControl
) -> None:
    async def whole() -> None:
        person = Person("Nobody", tmp_path, MemoryNetwork())
        await person.engine.start()
        desk = Desk(person, control)
        await desk.open()
        page = open_settings(desk.window)
        for section in page.sections:
            page.show_section(section.name)
        desk.window.settings.close()
        name = desk.window.first_page.page.name_step.name
        assert name.isVisible()
        QTest.keyClicks(name, "Ines")
        QTest.keyClick(name, Qt.Key.Key_Return)
        await until(lambda: person.engine.identity() is not None)
        identity = person.engine.identity()
        assert identity is not None
        assert identity.name == "Ines"
        await until(desk.window.first_page.page.stores_step.isVisible)
        assert identity.fingerprint in seen_words(open_settings(desk.window, "profile"))
        await desk.close()
        await person.engine.stop()

    play(whole)


async def delivery_of(desk: Desk, text: str) -> DeliveryState:
    (view,) = await desk.engine.conversations()
    page = await desk.engine.timeline.latest_page(view.conversation_id)
    found = [m for m in page.messages if m.text == text]
    assert found[0].delivery is not None
    return found[0].delivery.state
