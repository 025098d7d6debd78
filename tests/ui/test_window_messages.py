"""Writing, sending, drafts, reading and what the list says about all of it."""

import asyncio

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QLineEdit,
    QPlainTextEdit,
)

from chat_app.settings_control import SettingsControl
from engine.api import MAX_TEXT_BYTES
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import DeliveryState, UnixMs
from engine.core.problems import FailureReason
from engine.events import (
    ClockView,
    DeliveryView,
    HeldView,
    MessageKind,
    MessagesAdded,
    TypingChanged,
)
from tests.ui.driving import Key, group_stage, heard, play, stage, turn, until
from tests.ui.on_settings import turn_switch
from tests.ui.scripted_engine import START_MS, ScriptedEngine, member
from tests.ui.seeing import seen_words, spoken_rows
from ui.controls import ElidedText
from ui.list.preview import preview_of
from ui.window.composer import MAX_PASTE_CHARACTERS

pytestmark = pytest.mark.usefixtures("qapp")
SHIFT = Qt.KeyboardModifier.ShiftModifier


def test_what_is_typed_is_sent_with_enter_and_the_box_is_empty_again() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            await it.send("Low water is 10:52")
            assert engine.called("send_text") == ["Low water is 10:52"]
            assert it.window.pane.composer.text() == ""
            last = it.listed(group)
            assert last.last_message is not None
            preview = preview_of(last)
            assert (preview.prefix, preview.text) == ("You: ", "Low water is 10:52")
            assert preview.glyph == "saved"

    play(scenario)


def test_shift_enter_breaks_the_line_and_blank_text_is_not_sent() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            box = it.window.pane.composer.box
            it.press(Key.Key_Return, SHIFT, on=box)
            it.press(Key.Key_Return, on=box)
            await turn()
            assert engine.called("send_text") == []
            assert not it.window.pane.composer.send.isEnabled()
            one_line = box.height()
            it.write("one", on=box)
            it.press(Key.Key_Return, SHIFT, on=box)
            await it.send("two")
            assert engine.called("send_text") == ["one\ntwo"], "no empty lines first"
            assert box.height() < one_line or box.height() == 38

    play(scenario)


def test_two_quick_messages_keep_their_order() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            engine.gate.clear()
            box = it.window.pane.composer.box
            for text in ("first", "second"):
                it.write(text, on=box)
                it.press(Key.Key_Return, on=box)
            await turn()
            assert engine.called("send_text") == []
            engine.gate.set()
            await until(lambda: engine.called("send_text") == ["first", "second"])

    play(scenario)


def test_a_text_that_cannot_be_stored_comes_back_before_what_was_typed_since() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            engine.fail("send_text", StorageError("full", StorageFault.DISK_FULL))
            engine.gate.clear()
            box = it.window.pane.composer.box
            it.write("important", on=box)
            it.press(Key.Key_Return, on=box)
            it.write("and more", on=box)
            engine.gate.set()
            await until(lambda: it.window.pane.composer.text() == "important\nand more")
            notices = it.window.notices.notices()
            words = "Could not send the message: The disk is full; nothing was saved."
            assert [n.text for n in notices] == [words]
            await it.send("!")
            assert engine.called("send_text") == ["important\nand more!"]
            await until(lambda: it.window.notices.notices() == ())

    play(scenario)


def test_a_text_that_cannot_be_stored_after_leaving_becomes_that_groups_draft() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, opening=group) as it:
            engine.fail("send_text", StorageError("full", StorageFault.DISK_FULL))
            engine.gate.clear()
            box = it.window.pane.composer.box
            it.write("important", on=box)
            it.press(Key.Key_Return, on=box)
            it.window.open_conversation(other)
            engine.gate.set()
            await until(lambda: engine.views[group].draft == "important")
            assert it.window.pane.composer.text() == ""
            it.window.open_conversation(group)
            assert it.window.pane.composer.text() == "important"

    play(scenario)


def test_a_draft_waits_in_its_conversation_and_in_the_list() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, opening=group) as it:
            it.write("I can bring", on=it.window.pane.composer.box)
            it.window.open_conversation(other)
            assert it.window.pane.composer.text() == ""
            await until(lambda: engine.views[group].draft == "I can bring")
            assert preview_of(it.listed(group)).prefix == "Draft: "
            # An event that was made before the draft was stored must not bring back the old one.
            engine.views[group] = replace(engine.views[group], draft="")
            engine.change(group, unread=0)
            it.window.open_conversation(group)
            assert it.window.pane.composer.text() == "I can bring"

    play(scenario)


def test_a_pause_in_typing_saves_the_draft_and_sending_clears_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            saved = heard(it.window.pane.composer.draft_changed)
            it.write("half a thought", on=it.window.pane.composer.box)
            assert await saved == "half a thought"
            await until(lambda: engine.views[group].draft == "half a thought")
            it.press(Key.Key_Return, on=it.window.pane.composer.box)
            await until(lambda: engine.views[group].draft == "")

    play(scenario)


def test_closing_the_window_keeps_what_was_typed_a_moment_ago() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            it.write("almost lost", on=it.window.pane.composer.box)
            it.window.close()
            await it.window.shutdown()
            assert engine.views[group].draft == "almost lost"
            assert engine.listeners == []

    play(scenario)


def test_what_is_typed_or_pasted_beside_the_messages_goes_into_the_box() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _, _):
            pane = it.window.pane
            QApplication.clipboard().setText("Low water is 10:52")
            pane.timeline.setFocus()
            it.press(Key.Key_V, Qt.KeyboardModifier.ControlModifier)
            assert pane.composer.text() == "Low water is 10:52"
            assert pane.composer.box.hasFocus()
            pane.timeline.setFocus()
            it.press(Key.Key_Exclam)
            assert pane.composer.text() == "Low water is 10:52!"

    play(scenario)


def test_a_huge_paste_stays_whole_says_so_and_is_not_sent() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            composer = it.window.pane.composer
            text = "ä" * (50 * 1024)
            clipboard = QMimeData()
            clipboard.setText(text)
            composer.box.insertFromMimeData(clipboard)
            assert composer.text() == text
            it.press(Key.Key_Return, on=composer.box)
            await turn()
            assert engine.called("send_text") == []
            assert composer.text() == text
            assert any(words.startswith("36.0 kB too long") for words in seen_words(composer))
            assert composer.box.height() <= it.window.pane.height() * 0.4
            composer.set_text("ä" * (MAX_TEXT_BYTES // 2))
            assert not any("too long" in words for words in seen_words(composer))
            assert composer.send.isEnabled()

    play(scenario)


def test_a_paste_beyond_all_measure_is_refused_as_a_whole() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _, _):
            composer = it.window.pane.composer
            composer.set_text("kept")
            clipboard = QMimeData()
            clipboard.setText("x" * (MAX_PASTE_CHARACTERS + 1))
            composer.box.insertFromMimeData(clipboard)
            assert composer.text() == "kept"
            assert any("Nothing was pasted" in words for words in seen_words(composer))

    play(scenario)


def test_without_a_conversation_the_composer_says_why_it_is_closed() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            box = it.window.pane.composer.box
            assert not box.isEnabled()
            assert box.placeholderText() == "Choose a conversation first"
            assert not it.window.pane.composer.send.isEnabled()

    play(scenario)


def test_a_long_name_ends_with_an_ellipsis_where_it_does_not_fit() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("People who look after the tide gauge in winter, too")
        async with stage(engine) as it:
            it.window.open_conversation(group)
            box = it.window.pane.composer.box
            for width, percent, whole in ((1000, 100, True), (480, 100, False), (640, 200, False)):
                it.window.looks.step_text_size(0)
                for _ in range((percent - 100) // 10):
                    it.window.looks.step_text_size(1)
                it.window.resize(width, 600)
                await turn()
                words = box.placeholderText()
                assert box.fontMetrics().horizontalAdvance(words) <= box.viewport().width()
                assert words.endswith("too" if whole else "…"), (width, percent, words)

    play(scenario)


def test_unread_counts_until_the_rows_were_on_screen() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, opening=other) as it:
            message = engine.receive(group, "Maya", "hello")
            assert it.listed(group).unread == 1
            assert "1 unread" in str(
                it.window.model.index_of(group).data(Qt.ItemDataRole.AccessibleTextRole)
            )
            it.window.open_conversation(group)
            await until(lambda: engine.called("mark_read") == [message.position])
            await until(lambda: engine.views[group].unread == 0)

    play(scenario)


def test_typing_is_told_to_nobody_once_that_is_switched_off(control: SettingsControl) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group, control=control) as it:
            assert not await turn_switch(it.window, "privacy", "Tell others when I am typing")
            await it.send("abc")
            assert engine.called("set_typing") == []
            assert await turn_switch(it.window, "privacy", "Tell others when I am typing")
            it.write("abc", on=it.window.pane.composer.box)
            await until(lambda: engine.called("set_typing") == [True])

    play(scenario)


def test_what_is_sent_comes_before_the_word_that_one_stopped_typing() -> None:
    """The text says it, too: the engine then sends no envelope of its own, ahead of the text."""

    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            await it.send("Lovely")
            await until(lambda: engine.called("set_typing") == [True, False])
            told = [call for call, _ in engine.calls if call in {"send_text", "set_typing"}]
            assert told == ["set_typing", "send_text", "set_typing"]
            it.write("Lov", on=it.window.pane.composer.box)
            it.window.pane.composer.box.clear()
            await until(lambda: engine.called("set_typing") == [True, False, True, False])

    play(scenario)


def test_typing_is_told_both_ways() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            it.write("abc", on=it.window.pane.composer.box)
            await until(lambda: engine.called("set_typing") == [True])
            it.press(Key.Key_Return, on=it.window.pane.composer.box)
            await until(lambda: engine.called("set_typing") == [True, False])
            header = it.window.pane.header
            engine.tell(TypingChanged(conversation_id=group, names=("Maya", "Jo")))
            await until(lambda: "Maya and Jo are typing…" in seen_words(header))
            engine.tell(TypingChanged(conversation_id=group, names=()))
            await until(lambda: "2 members: Maya, you" in seen_words(header))

    play(scenario)


def test_a_failed_message_is_loud_in_list_header_and_strip_until_it_was_resent() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.connect()
            await it.send("plate-v3")
            message_id = next(iter(engine.rows[group]))
            delivery = DeliveryView(
                state=DeliveryState.FAILED, of=1, attempts=5, failure=FailureReason.NOBODY_TOOK_IT
            )
            engine.deliver(group, message_id, delivery)
            preview = preview_of(it.listed(group))
            assert (preview.prefix, preview.text) == ("Not sent: ", "plate-v3")
            assert it.window.pane.header.beads.accessibleName() == "Messages: 1 not sent"
            it.window.pane.timeline.resendRequested.emit(message_id)
            await until(lambda: engine.called("resend") == [message_id])
            assert it.window.pane.header.beads.accessibleName() == "Messages: You lack nothing"

    play(scenario)


def test_missing_messages_can_be_fetched_and_a_failure_offers_to_try_again() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.set_gap(group, 3)
            assert it.window.pane.header.beads.accessibleName() == "Messages: You lack 3"
            engine.fail("fetch_missing", StorageError("full", StorageFault.DISK_FULL))
            it.window.pane.timeline.fetchRequested.emit()
            await until(lambda: len(it.window.notices.rows) == 1)
            row = it.window.notices.rows[0]
            row.acts[0].click()
            await until(lambda: engine.called("fetch_missing") == [group])
            await until(lambda: it.window.notices.notices() == ())

    play(scenario)


def test_what_is_held_aside_is_shown_and_leaves_also_when_opened_later() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Book Circle")
        one = replace(engine.row(group, member("Maya"), "from the future"), held=True)
        section = HeldView(
            conversation_id=group,
            messages=(one,),
            total=1,
            next_due_ms=UnixMs(START_MS),
            clocks=(
                ClockView(
                    participant_id=one.sender_id, name="Maya", is_self=False, ahead_ms=10_800_000
                ),
            ),
        )
        async with stage(engine) as it:

            def shown() -> list[str]:
                return spoken_rows(it.window.pane.timeline)

            it.window.open_conversation(other)
            engine.set_held(group, section)
            assert not any("Held" in words for words in shown())
            it.window.open_conversation(group)
            await until(lambda: any("Held: Maya's clock is 3 h ahead" in w for w in shown()))
            assert any(words.startswith("Maya, from the future, says") for words in shown())
            engine.set_held(group, None)
            assert not any("Held" in words for words in shown())

    play(scenario)


def test_a_bug_in_a_command_is_reported_to_the_loop_and_not_shown_as_the_users_fault() -> None:
    reported: list[object] = []

    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            asyncio.get_running_loop().set_exception_handler(
                lambda _loop, context: reported.append(context["exception"])
            )
            it.window.open_conversation(group)
            engine.fail("fetch_missing", KeyError("bug"))
            it.window.pane.timeline.fetchRequested.emit()
            await until(lambda: len(reported) == 1)
            assert it.window.notices.notices() == ()

    play(scenario)
    assert [type(error) for error in reported] == [KeyError]


def test_names_and_texts_of_strangers_are_never_markup() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("<b>Tide</b> & \u202eco", others=("<img src=x>",))
        async with stage(engine, opening=group) as it:
            await turn()
            name, line = it.window.pane.header.findChildren(ElidedText)
            assert name.whole_text() == "<b>Tide</b> & co"
            assert name.textFormat() is Qt.TextFormat.PlainText
            it.window.resize(720, 500)
            line.resize(20, 20)
            assert "img" in line.toolTip()
            assert "<img" not in line.toolTip()

    play(scenario)


def test_other_kinds_of_rows_say_what_happened() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine) as it:
            row = replace(engine.row(group, member("Maya"), ""), kind=MessageKind.JOINED)
            engine.arrive(row)
            assert preview_of(it.listed(group)).text == "Maya joined"

    play(scenario)


def test_every_control_has_a_name_for_the_screen_reader() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _, _):
            nameless = [
                widget
                for kind in (QAbstractButton, QLineEdit, QPlainTextEdit, QAbstractItemView)
                for widget in it.window.findChildren(kind)
                if not QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)
            ]
            assert nameless == []
            assert QApplication.focusWidget() is it.window.pane.composer.box

    play(scenario)


def test_rows_that_come_together_are_each_shown_once_in_their_place() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            elsewhere = engine.add_group("Elsewhere")
            rows = [
                engine.row(group, member("Maya"), f"number {number}", number)
                for number in range(30)
            ]
            engine.receive(group, "Luc", "the newest", minute=50, notify=False)
            foreign = engine.row(elsewhere, member("Maya"), "said elsewhere", 3)
            engine.tell(MessagesAdded(conversation_id=group, messages=(*rows, rows[7])))
            engine.tell(MessagesAdded(conversation_id=elsewhere, messages=(foreign,)))
            loaded = it.window.pane.timeline.scene.loaded
            await until(lambda: len(loaded) > len(rows))
            assert [view.text for view in loaded.messages] == [
                *(row.text for row in rows),
                "the newest",
            ]

    play(scenario)
