"""Forwarding: to whom, and as what it arrives."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QWidget

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import ConversationId
from engine.events import MessageView
from engine.text_spans import SpanKind, TextSpan
from tests.ui.driving import Key, Stage, group_stage, heard, move_mouse, play, until
from tests.ui.on_messages import ask_by_menu, last_row, notice_button
from tests.ui.scripted_engine import member
from tests.ui.seeing import seen_words, sheet_of, words_of
from ui.dialogs.forward import Forward

pytestmark = pytest.mark.usefixtures("qapp")


def next_by_tab(widget: QWidget) -> QWidget | None:
    after = widget.nextInFocusChain()
    while after is not None and not after.focusPolicy() & Qt.FocusPolicy.TabFocus:
        after = after.nextInFocusChain()
    return after


def test_a_message_goes_on_to_other_conversations_only_and_a_press_anywhere_chooses_one() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, group):
            books, kitchen = engine.add_group("Book Circle"), engine.add_group("Kitchen")
            row = engine.receive(group, "Maya", "Low water is 10:52")
            await ask_by_menu(it, row, "Forward…")
            sheet = await sheet_of(it.window, Forward)
            choices = {box.accessibleName(): box for box in sheet.findChildren(QCheckBox)}
            assert set(choices) == {"Book Circle", "Kitchen"}
            assert not sheet.confirm.isEnabled()
            first = choices["Book Circle"]
            assert next_by_tab(sheet.search) in choices.values()
            QTest.mouseClick(first, Qt.MouseButton.LeftButton, pos=first.rect().center())
            choices["Kitchen"].setFocus()
            it.press(Key.Key_Space, on=choices["Kitchen"])
            assert set(sheet.chosen) == {books, kitchen}
            it.press(Key.Key_Space, on=choices["Kitchen"])
            assert sheet.chosen == (books,)
            it.press(Key.Key_Return, on=first)
            await until(lambda: bool(engine.rows[books]))
            assert engine.rows[kitchen] == {}
            sent = last_row(engine, books)
            assert (sent.text, sent.forwarded, sent.is_own) == ("Low water is 10:52", True, True)

    play(scenario)


def test_the_down_key_leads_from_the_search_to_the_first_that_is_found() -> None:
    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, group):
            engine.add_group("Book Circle")
            kitchen = engine.add_group("Kitché")
            bold = tuple(
                TextSpan(kind=SpanKind.HIDDEN, start=at, length=2, target="") for at in (0, 11)
            )
            row = engine.row(group, member("Maya"), "**Low water** is 10:52")
            engine.arrive(row := replace(row, spans=bold))
            await ask_by_menu(it, row, "Forward…")
            it.window.pane.writing.reply(row)
            assert seen_words(it.window.pane.composer_bar)[1] == "Low water is 10:52"
            sheet = await sheet_of(it.window, Forward)
            assert "says it is forwarded: Low water is 10:52" in words_of(sheet)
            it.write("kitche", on=sheet.search)
            it.press(Key.Key_Down, on=sheet.search)
            found = sheet.focusWidget()
            assert isinstance(found, QCheckBox)
            assert found.accessibleName() == "Kitché"
            it.press(Key.Key_Space, on=found)
            assert sheet.chosen == (kitchen,)

    play(scenario)


def announced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a screen reader is told about forwarding."""
    said = list[str]()
    monkeypatch.setattr("ui.window.notices.announce", lambda _window, words: said.append(words))
    return said


async def forward_to(it: Stage, row: MessageView, *chosen: ConversationId) -> None:
    await ask_by_menu(it, row, "Forward…")
    sheet = await sheet_of(it.window, Forward)
    for conversation_id in chosen:
        sheet.choose(conversation_id)
    sheet.confirm.click()
    await until(lambda: it.window.flows.sheet is None)


def said_in_notices(it: Stage) -> list[str]:
    return [row.words.text() for row in it.window.notices.rows]


def test_it_is_said_where_a_message_went_and_a_button_leads_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = announced(monkeypatch)

    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, group):
            books = engine.add_group("Book Circle")
            row = engine.receive(group, "Maya", "Low water is 10:52")
            await forward_to(it, row, books)
            await until(lambda: said_in_notices(it) == ["Forwarded to Book Circle."])
            assert told == ["Forwarded to Book Circle."]
            notice_button(it, "Open").click()
            assert it.window.pane.is_open(books)
            assert said_in_notices(it) == []

    play(scenario)


def test_of_several_it_says_all_or_how_many_and_of_those_that_failed_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = announced(monkeypatch)

    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, group):
            names = ["Book Circle", "Kitchen", "Rowing", "Walks"]
            others = [engine.add_group(name) for name in names]
            row = engine.receive(group, "Maya", "Low water is 10:52")
            await forward_to(it, row, *others[:2])
            await until(lambda: len(told) == 1)
            assert [b.text() for b in it.window.notices.rows[0].acts] == [
                "Open Book Circle",
                "Open Kitchen",
            ]
            notice_button(it, "Open Kitchen").click()
            assert it.window.pane.is_open(others[1])
            assert said_in_notices(it) == []
            it.window.open_conversation(group)
            await forward_to(it, row, *others)
            await until(lambda: len(told) == 2)
            engine.fail("send_text", StorageError("full", StorageFault.DISK_FULL))
            await forward_to(it, row, others[0])
            await until(lambda: any("forward the message" in w for w in said_in_notices(it)))
            assert told[:2] == [
                "Forwarded to Book Circle and Kitchen.",
                "Forwarded to Book Circle, Kitchen and 2 others.",
            ]
            assert told[1] in said_in_notices(it)
            assert not any("Forwarded" in words for words in told[2:])

    play(scenario)


def test_it_goes_by_itself_unless_it_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.window.message_flows.SAID_MS", 1)

    async def scenario() -> None:
        async with group_stage("Tide Gauge") as (it, engine, group):
            books = engine.add_group("Book Circle")
            row = engine.receive(group, "Maya", "Low water is 10:52")
            opened = list[str]()

            def take_focus() -> None:
                for shown in it.window.notices.rows:
                    shown.acts[0].setFocus()
                    opened.append(shown.words.text())

            it.window.notices.changed.connect(take_focus)
            await move_mouse(it.window.pane.composer.box, QPoint(5, 5))
            await forward_to(it, row, books)
            await until(lambda: bool(opened))
            later = QTimer(it.window, singleShot=True, interval=3)
            over = heard(later.timeout)
            later.start()
            await over
            assert said_in_notices(it) == opened == ["Forwarded to Book Circle."]
            it.window.pane.composer.box.setFocus()
            await until(lambda: said_in_notices(it) == [])

    play(scenario)


def test_where_there_is_nobody_else_forwarding_says_so() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Low water is 10:52")
            await ask_by_menu(it, row, "Forward…")
            sheet = await sheet_of(it.window, Forward)
            assert "There is no other conversation that it could go to." in seen_words(sheet)
            assert not sheet.confirm.isEnabled()
            it.press(Key.Key_Escape, on=sheet)
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)
