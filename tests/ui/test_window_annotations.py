"""Answers, reactions, edits, deletions, mentions and forwarding, by keyboard and mouse."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QMenu, QWidget

from engine.api import Mention
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import ConversationId, DeliveryState, MessageId
from engine.events import (
    AnnotationKind,
    AnnotationView,
    ConversationChanged,
    ConversationView,
    DeliveryView,
    MessageAdded,
    MessageView,
    QuoteView,
    ReactionReceived,
    ReactionView,
)
from tests.ui.driving import NOW, Key, Stage, group_stage, pair_stage, play, stage, turn, until
from tests.ui.scripted_annotations import quote_of
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.seeing import seen_words, sheet_of, spoken_rows, words_of
from ui.conversation_words import annotation_words
from ui.dialogs.confirm import Confirm, DeleteChoice
from ui.dialogs.forward import Forward
from ui.dialogs.message_info import MessageInfoSheet, Reactors, Versions
from ui.emoji.picker import EmojiPicker
from ui.icons import app_icon
from ui.list.preview import preview_of, row_sentence
from ui.notifications import Notifications
from ui.timeline.boxes import BubbleBox
from ui.timeline.rows import message_key

pytestmark = pytest.mark.usefixtures("qapp")
SHIFT = Qt.KeyboardModifier.ShiftModifier


def bubble(it: Stage, message: MessageView) -> tuple[BubbleBox, float]:
    """A message's box and where its row begins in the viewport."""
    scene = it.window.pane.timeline.scene
    for placed in scene.placed:
        box = scene.box(placed.row)
        if isinstance(box, BubbleBox) and placed.row.message.message_id == message.message_id:  # type: ignore[union-attr]
            return box, placed.y
    raise AssertionError(f"{message.text} is not in view")


def click(it: Stage, point: QPointF, y: float) -> None:
    viewport = it.window.pane.timeline.viewport()
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=(point + QPointF(0, y)).toPoint())


def shown(engine: ScriptedEngine, group: ConversationId, message: MessageView) -> MessageView:
    return engine.rows[group][message.message_id]


async def focus(it: Stage, message: MessageView) -> None:
    """Walk to a message by the keyboard."""
    timeline = it.window.pane.timeline
    await until(lambda: timeline.scene.row(message_key(message.message_id)) is not None)
    timeline.setFocus()
    it.press(Key.Key_Escape, on=timeline)
    for _step in timeline.scene.loaded.rows:
        if timeline.scene.focus_key != message_key(message.message_id):
            it.press(Key.Key_Up, on=timeline)
    assert timeline.scene.focus_key == message_key(message.message_id)


def own_held(engine: ScriptedEngine, group: ConversationId, text: str) -> MessageView:
    """A message of ours that one other member holds."""
    row = engine.row(group, member("Ines", is_self=True), text)
    others = tuple(m.participant_id for m in engine.views[group].members if not m.is_self)
    delivery = DeliveryView(state=DeliveryState.HELD, held_by=others, of=len(others))
    row = replace(row, delivery=delivery)
    engine.arrive(row, notify=False)
    return row


def notice_button(it: Stage, words: str) -> QAbstractButton:
    buttons = [button for row in it.window.notices.rows for button in row.acts]
    return next(button for button in buttons if button.text() == words)


def test_r_answers_the_focused_message_with_a_quote() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            asked = engine.receive(group, "Maya", "Who brings the ladder?")
            await focus(it, asked)
            it.press(Key.Key_R)
            bar = it.window.pane.composer_bar
            assert bar.isVisible()
            assert seen_words(bar) == ["Reply to Maya", "Who brings the ladder?"]
            assert it.window.pane.composer.box.hasFocus()
            await it.send("I do")
            assert not bar.isVisible()
            row = list(engine.rows[group].values())[-1]
            assert row.quote == quote_of(asked)
            await until(lambda: "answers Maya: Who brings the ladder?" in spoken_rows_of(it)[-1])

    play(scenario)


def spoken_rows_of(it: Stage) -> list[str]:
    return [row for row in spoken_rows(it.window.pane.timeline) if ", " in row]


def test_escape_ends_answering_and_keeps_the_text() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            asked = engine.receive(group, "Maya", "Who brings the ladder?")
            await focus(it, asked)
            it.press(Key.Key_R)
            it.write("wait")
            it.press(Key.Key_Escape)
            assert not it.window.pane.composer_bar.isVisible()
            assert it.window.pane.composer.text() == "wait"
            await it.send("")
            assert list(engine.rows[group].values())[-1].quote is None

    play(scenario)


def test_a_click_on_a_quote_goes_there_and_marks_it() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        first = engine.receive(group, "Maya", "the very first")
        for number in range(60):
            engine.receive(group, "Maya", f"number {number}", minute=number)
        answer = engine.row(group, member("Maya"), "as I said", 70)
        answer = replace(answer, quote=quote_of(first))
        engine.arrive(answer)
        engine.change(group, unread=0, first_unread=None)
        async with stage(engine, opening=group) as it:
            await until(lambda: in_view(it, answer))
            assert not in_view(it, first)
            box, y = bubble(it, answer)
            assert box.above.quote is not None
            click(it, box.above.quote.rect.center(), y)
            await until(lambda: in_view(it, first))

    play(scenario)


def in_view(it: Stage, message: MessageView) -> bool:
    return it.window.pane.timeline.scene.rect(message_key(message.message_id)) is not None


def test_what_is_quoted_and_not_here_is_asked_for() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.row(group, member("Maya"), "as I said")
            row = replace(row, quote=QuoteView(message_id=MessageId("gone")))
            engine.arrive(row)
            await until(lambda: in_view(it, row))
            box, y = bubble(it, row)
            assert box.above.quote is not None
            assert box.above.quote.name == "A message that is not here yet"
            click(it, box.above.quote.rect.center(), y)
            await until(lambda: engine.called("fetch_quoted") == [row.message_id])
            found = engine.receive(group, "Luc", "here it is")
            engine.alter(replace(row, quote=quote_of(found)))
            await until(lambda: bubble(it, row)[0].above.quote.name == "Luc")  # type: ignore[union-attr]

    play(scenario)


def test_a_reaction_is_given_and_taken_back_by_its_chip() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            engine.alter(
                replace(row, reactions=(ReactionView(emoji="🎉", count=1, names=("Luc",)),))
            )
            await until(lambda: in_view(it, row) and bool(bubble(it, row)[0].chips))
            box, y = bubble(it, row)
            click(it, box.chips[0].rect.center(), y)
            await until(lambda: bool(engine.called("react")))
            assert engine.called("react") == [(row.message_id, "🎉", True)]
            assert "🎉 from you and Luc, not sent yet" in spoken_rows_of(it)[-1]
            await until(lambda: bubble(it, row)[0].chips[0].mine)
            click(it, bubble(it, row)[0].chips[0].rect.center(), y)
            await until(lambda: len(engine.called("react")) > 1)
            assert engine.called("react")[-1] == (row.message_id, "🎉", False)

    play(scenario)


def menu_of(it: Stage) -> QMenu:
    menu = it.window.pane.timeline.interaction.menu
    assert menu is not None
    return menu


def choose(menu: QMenu, words: str) -> None:
    action = next(a for a in menu.actions() if a.text() == words)
    menu.close()
    action.trigger()


def test_the_menu_reacts_and_says_who_did() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            await focus(it, row)
            it.press(Key.Key_Menu)
            react = next(a.menu() for a in menu_of(it).actions() if a.text() == "React")
            assert isinstance(react, QMenu)
            assert [a.text() for a in react.actions()][:6] == ["👍", "❤️", "😂", "😮", "😢", "🙏"]
            next(a for a in react.actions() if a.text() == "😂").trigger()
            menu_of(it).close()
            await until(lambda: engine.called("react") == [(row.message_id, "😂", True)])
            await until(lambda: bool(bubble(it, row)[0].chips))
            await until(lambda: it.window.pane.timeline.interaction.menu is None)
            it.press(Key.Key_Menu, on=it.window.pane.timeline)
            choose(menu_of(it), "Who reacted…")
            sheet = await sheet_of(it.window, Reactors)
            assert "You" in words_of(sheet)
            assert "not sent yet" in words_of(sheet)
            sheet.reject()

    play(scenario)


def test_up_in_an_empty_box_edits_the_last_own_message_and_the_draft_comes_back() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "Low water is 10:52")
            engine.receive(group, "Maya", "Thanks")
            await until(lambda: in_view(it, mine))
            box = it.window.pane.composer.box
            it.press(Key.Key_Up, on=box)
            assert it.window.pane.composer.text() == "Low water is 10:52"
            assert seen_words(it.window.pane.composer_bar)[0] == "Edit message"
            it.write(" sharp", on=box)
            it.press(Key.Key_Return, on=box)
            await until(lambda: bool(engine.called("edit")))
            assert engine.called("edit") == [(mine.message_id, "Low water is 10:52 sharp", ())]
            assert engine.called("send_text") == []
            assert it.window.pane.composer.text() == ""
            assert not it.window.pane.composer_bar.isVisible()
            await until(lambda: "edited" in " ".join(spoken_rows_of(it)))

    play(scenario)


def test_what_was_written_waits_while_an_old_message_is_edited() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "first")
            await until(lambda: in_view(it, mine))
            it.write("half a thought", on=it.window.pane.composer.box)
            await focus(it, mine)
            it.press(Key.Key_E)
            assert it.window.pane.composer.text() == "first"
            it.press(Key.Key_Escape)
            assert it.window.pane.composer.text() == "half a thought"
            await until(lambda: engine.called("save_draft")[-1:] == ["half a thought"])
            assert engine.called("edit") == []

    play(scenario)


def test_an_edit_that_fails_can_be_tried_again() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "first")
            await until(lambda: in_view(it, mine))
            engine.fail("edit", StorageError("full", StorageFault.DISK_FULL))
            it.press(Key.Key_Up, on=it.window.pane.composer.box)
            it.write("!", on=it.window.pane.composer.box)
            it.press(Key.Key_Return, on=it.window.pane.composer.box)
            await until(lambda: any("edit the message" in w for w in seen_words(it.window.notices)))
            button = notice_button(it, "Try again")
            button.click()
            await until(lambda: shown(engine, group, mine).text == "first!")

    play(scenario)


def test_deleting_for_everybody_can_be_undone_and_is_carried_out_when_one_leaves() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "oops")
            for undo in (True, False):
                await focus(it, mine)
                it.press(Key.Key_Delete)
                sheet = await sheet_of(it.window, DeleteChoice)
                assert "Whoever has it now, or kept a copy, can keep it" in words_of(sheet)
                sheet.everybody.click()
                await until(
                    lambda: any("deleted for everybody" in w for w in seen_words(it.window.notices))
                )
                if undo:
                    button = notice_button(it, "Undo")
                    button.click()
                    await turn()
                    assert not any("everybody" in w for w in seen_words(it.window.notices))
            assert engine.called("retract") == []
        assert engine.called("retract") == [mine.message_id]

    play(scenario)


def test_deleting_here_leaves_it_with_the_others() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "oops")
            theirs = engine.receive(group, "Maya", "hello")
            await focus(it, mine)
            it.press(Key.Key_Delete)
            sheet = await sheet_of(it.window, DeleteChoice)
            sheet.here.click()
            await until(lambda: engine.called("delete_locally") == [mine.message_id])
            await until(lambda: it.window.flows.sheet is None)
            await focus(it, theirs)
            it.press(Key.Key_Delete)
            confirm = await sheet_of(it.window, Confirm)
            assert "The others keep it" in words_of(confirm)
            confirm.reject()

    play(scenario)


def test_a_deleted_message_says_so_and_nothing_can_be_said_about_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "secret")
            await focus(it, row)
            it.press(Key.Key_R)
            gone = replace(row, text="", spans=(), retracted=True)
            engine.alter(gone)
            await until(lambda: not it.window.pane.composer_bar.isVisible())
            assert "Maya deleted this message" in spoken_rows_of(it)[-1]
            await focus(it, row)
            it.press(Key.Key_Menu, on=it.window.pane.timeline)
            words = [a.text() for a in menu_of(it).actions()]
            assert not {"Reply", "React", "Edit", "Forward…"} & set(words)
            menu_of(it).close()

    play(scenario)


@pytest.mark.parametrize("letters", ["@may", "@Maya"])
def test_at_mentions_a_member_by_id(letters: str) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            box = it.window.pane.composer.box
            box.setFocus()
            it.write("hey ")
            it.write(letters)
            assert [c.words for c in it.window.pane.composer.completions.candidates] == ["Maya"]
            it.press(Key.Key_Tab)
            assert it.window.pane.composer.text() == "hey @Maya "
            await it.send("come")
            maya = member("Maya").participant_id
            assert engine.called("mentions") == [(Mention(participant_id=maya, start=4, length=5),)]
            row = list(engine.rows[group].values())[-1]
            assert row.spans[0].target == maya

    play(scenario)


def test_a_name_that_was_only_typed_stays_a_word() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            box = it.window.pane.composer.box
            box.setFocus()
            it.write("hey @Maya")
            it.press(Key.Key_Escape)
            await it.send(" come")
            assert engine.called("mentions") == [()]

    play(scenario)


def test_forwarding_sends_it_as_a_message_of_ours_that_says_so() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            other = engine.add_group("Book Circle")
            row = engine.receive(group, "Maya", "Low water is 10:52")
            await focus(it, row)
            it.press(Key.Key_Menu)
            choose(menu_of(it), "Forward…")
            sheet = await sheet_of(it.window, Forward)
            assert not sheet.confirm.isEnabled()
            sheet.choose(other)
            sheet.confirm.click()
            await until(lambda: bool(engine.rows[other]))
            sent = next(iter(engine.rows[other].values()))
            assert (sent.text, sent.forwarded, sent.is_own) == ("Low water is 10:52", True, True)

    play(scenario)


@pytest.mark.parametrize("who", ["Maya", "Ines"])
def test_message_info_is_there_for_every_message(who: str) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            is_own = who == "Ines"
            row = own_held(engine, group, "x") if is_own else engine.receive(group, who, "x")
            await focus(it, row)
            it.press(Key.Key_I)
            sheet = await sheet_of(it.window, MessageInfoSheet)
            words = words_of(sheet)
            assert "234 bytes" in words
            assert ("Written on this device" if is_own else "From a Store") in words
            sheet.reject()

    play(scenario)


def test_earlier_versions_are_shown_to_whoever_asks() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "the last words")
            engine.alter(replace(row, edited_ms=row.sent_ms))
            await focus(it, row)
            it.press(Key.Key_Menu)
            choose(menu_of(it), "Earlier versions…")
            sheet = await sheet_of(it.window, Versions)
            assert "the first words" in words_of(sheet)
            assert "the last words" in words_of(sheet)
            sheet.reject()

    play(scenario)


def hovers(viewport: QWidget, point: QPoint, bar: QWidget) -> bool:
    QTest.mouseMove(viewport, point)
    QTest.mouseMove(viewport, point + QPoint(1, 0))
    return bar.isVisible()


def test_the_bar_beside_the_message_under_the_mouse_answers_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Who brings the ladder?")
            await until(lambda: in_view(it, row))
            timeline = it.window.pane.timeline
            bar = timeline.interaction.hover_bar
            assert not bar.isVisible()
            rect = timeline.scene.rect(message_key(row.message_id))
            assert rect is not None
            middle = rect.center().toPoint()
            await until(lambda: hovers(timeline.viewport(), middle, bar))
            assert bar.geometry().left() > rect.right()
            bar.reply_pressed.emit()
            assert seen_words(it.window.pane.composer_bar)[0] == "Reply to Maya"

    play(scenario)


def test_the_bar_goes_with_its_message_when_the_rows_move() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Who brings the ladder?")
            await until(lambda: in_view(it, row))
            timeline = it.window.pane.timeline
            bar = timeline.interaction.hover_bar

            def rect() -> QRectF:
                found = timeline.scene.rect(message_key(row.message_id))
                assert found is not None
                return found

            QTest.mouseMove(timeline.viewport(), QPoint(1, 1))
            QTest.mouseMove(timeline.viewport(), rect().center().toPoint())
            await until(bar.isVisible)
            before = rect()
            bar.reply_pressed.emit()
            await until(lambda: rect() != before)
            assert not bar.isVisible() or abs(bar.y() - rect().top()) <= 1

    play(scenario)


def test_by_mouse_the_row_that_the_keys_had_is_left() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "Who brings the ladder?")
            await focus(it, row)
            timeline = it.window.pane.timeline
            it.window.pane.composer.box.setFocus()
            timeline.setFocus(Qt.FocusReason.MouseFocusReason)
            assert timeline.scene.focus_key is None

    play(scenario)


def test_in_a_pair_one_can_answer_react_and_edit_too() -> None:
    async def scenario() -> None:
        async with pair_stage("Maya") as (it, engine, pair):
            row = engine.receive(pair, "Maya", "hello")
            await focus(it, row)
            it.press(Key.Key_R)
            await it.send("hi")
            assert list(engine.rows[pair].values())[-1].quote == quote_of(row)

    play(scenario)


def test_any_emoji_is_picked_for_a_reaction() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            row = engine.receive(group, "Maya", "It talks!")
            await focus(it, row)
            it.press(Key.Key_Plus)
            picker = it.window.findChild(EmojiPicker)
            assert picker is not None
            assert picker.isVisible()
            it.write("wave")
            it.press(Key.Key_Return)
            await until(lambda: bool(engine.called("react")))
            assert engine.called("react")[0][2] is True  # type: ignore[index]
            await until(lambda: bool(bubble(it, row)[0].chips))

    play(scenario)


def annotation(row: MessageView) -> AnnotationView:
    """Maya's reaction to a message."""
    return AnnotationView(
        kind=AnnotationKind.REACTION,
        message_id=MessageId("reaction"),
        target_id=row.message_id,
        target_is_own=row.is_own,
        target_text=row.text,
        sender_id=member("Maya").participant_id,
        sender_name="Maya",
        is_own=False,
        sent_ms=row.sent_ms,
        emoji="🎉",
    )


def test_the_list_speaks_of_reactions_and_of_mentions() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            mine = own_held(engine, group, "Low water is 10:52")
            view = replace(
                engine.views[group],
                last_annotation=annotation(mine),
                mentions=2,
                unread=3,
            )
            engine.tell(ConversationChanged(conversation=view))
            assert preview_of(it.listed(group)).text == "Maya reacted 🎉 to: Low water is 10:52"
            said = row_sentence(it.listed(group), NOW)
            assert "3 unread, 2 messages mention you, Maya reacted 🎉" in said

    play(scenario)


@pytest.mark.parametrize(
    ("kind", "is_own", "words"),
    [
        (AnnotationKind.REACTION, True, "You reacted 🎉 to: hello"),
        (AnnotationKind.EDIT, False, "Maya edited: hello"),
        (AnnotationKind.RETRACTION, False, "Maya deleted a message"),
    ],
)
def test_what_was_said_about_a_message_in_words(
    kind: AnnotationKind, is_own: bool, words: str
) -> None:
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge")
    row = engine.row(group, member("Maya"), "hello")
    said = replace(annotation(row), kind=kind, is_own=is_own)
    assert annotation_words(said) == words
    unseen = replace(said, kind=AnnotationKind.REACTION, target_text="")
    assert annotation_words(unseen).endswith("reacted 🎉 to")


class Heard(Notifications):
    """Writes down what would be shown; there is no tray on a test's screen."""

    def __init__(self) -> None:
        super().__init__(app_icon())
        self.told: list[str] = []

    def show_words(self, conversation: ConversationView, words: tuple[str, str]) -> None:
        super().show_words(conversation, words)
        self.told.append(words[1])


def test_a_mention_is_told_although_muted_and_a_reaction_is_told_unless_muted() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine, opening=other) as it:
            heard = Heard()
            it.window.router.use_notifications(heard)
            row = engine.receive(group, "Maya", "hello")
            reaction = ReactionReceived(conversation_id=group, annotation=annotation(row))
            engine.tell(reaction)
            engine.change(group, muted=True)
            engine.tell(reaction)
            mention = replace(engine.row(group, member("Maya"), "@Ines come", 1), mentions_me=True)
            engine.tell(MessageAdded(message=mention, notify=True))
            engine.tell(MessageAdded(message=replace(mention, mentions_me=False), notify=True))
            assert heard.told == ["Maya: hello", "Maya reacted 🎉 to: hello", "Maya: @Ines come"]

    play(scenario)
