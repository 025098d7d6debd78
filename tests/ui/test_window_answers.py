"""Answers with a quote, by keyboard and mouse, and all that is said about a message in a pair."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QWidget

from engine.api import MAX_FILE_BYTES
from engine.core.errors import CommandError, CommandRefusal
from engine.core.ids import MessageId
from engine.events import MessageView, QuoteView
from engine.file_views import FileState
from tests.ui.driving import Key, Stage, group_stage, pair_stage, play, stage, turn, until
from tests.ui.on_messages import (
    bubble,
    click,
    focus,
    in_view,
    last_row,
    rewrite,
    shown,
    spoken_rows_of,
)
from tests.ui.scripted_annotations import quote_of
from tests.ui.scripted_engine import ScriptedEngine, member
from tests.ui.scripted_people import picture_bytes
from tests.ui.seeing import seen_words
from tests.ui.test_window_files import picture_view, with_file
from ui.timeline.bubble_parts import QuoteBox
from ui.timeline.rows import RowKey, message_key

pytestmark = pytest.mark.usefixtures("qapp")


def test_r_answers_the_focused_message_with_a_quote() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            asked = engine.receive(group, "Maya", "Who brings the ladder?")
            await focus(it, asked)
            it.press(Key.Key_R)
            bar = it.window.pane.composer_bar
            assert bar.isVisible()
            assert seen_words(bar) == ["Reply to Maya", "Who brings the ladder?"]
            below = bar.height() - bar.words.geometry().bottom() - 1
            assert below >= bar.title.geometry().top(), "as much room below as above"
            assert it.window.pane.composer.box.hasFocus()
            await it.send("I do")
            assert not bar.isVisible()
            row = last_row(engine, group)
            assert row.quote == quote_of(asked)
            await until(lambda: "answers Maya: Who brings the ladder?" in spoken_rows_of(it)[-1])

    play(scenario)


def is_whole(it: Stage, key: RowKey) -> bool:
    """Whether all of the row is in view."""
    scene = it.window.pane.timeline.scene
    place = scene.rect(key)
    return place is not None and place.bottom() <= scene.height


def test_after_an_answer_the_keys_are_about_the_newest() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            asked = engine.receive(group, "Maya", "Who brings the ladder?")
            await focus(it, asked)
            it.press(Key.Key_R)
            await it.send("I do")
            timeline = it.window.pane.timeline
            key = message_key(last_row(engine, group).message_id)
            await until(lambda: is_whole(it, key))
            timeline.setFocus(Qt.FocusReason.BacktabFocusReason)
            it.press(Key.Key_R, on=timeline)
            assert seen_words(it.window.pane.composer_bar) == ["Reply to yourself", "I do"]

    play(scenario)


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
            assert last_row(engine, group).quote is None

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
            asked = ("A message that is not here yet", "Asked for, and fetched by and by")
            await until(lambda: shown_lines(it, row) == asked)
            found = engine.receive(group, "Luc", "here it is")
            engine.alter(replace(row, quote=quote_of(found)))
            await until(lambda: bubble(it, row)[0].above.quote.name == "Luc")  # type: ignore[union-attr]

    play(scenario)


def test_an_answer_to_a_picture_shows_it_small_beside_its_words() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            data = picture_bytes("#a03a84", side=200)
            photo = with_file(engine, group, data, picture_view(data, 200))
            await focus(it, photo)
            it.press(Key.Key_R)
            bar = it.window.pane.composer_bar
            assert seen_words(bar) == ["Reply to Maya", "Photo"]
            await until(lambda: middle_of(bar.picture) == "#a03a84")
            await it.send("where is that?")
            answer, pane = last_row(engine, group), it.window.pane
            await until(lambda: "answers Maya: Photo, where is that?" in spoken_rows_of(it)[-1])
            await until(lambda: in_view(it, answer))
            await until(lambda: colour_of_quoted(it, answer) == "#a03a84")
            engine.file_bytes[photo.message_id] = b"no picture"
            pane.timeline.scene.shown_pictures.quoted.clear()
            pane.timeline.canvas.repaint()
            await until(lambda: shown_quote(it, answer).picture is None)
            caption = replace(quote_of(photo), text="low water")
            engine.alter(replace(answer, quote=caption))
            await until(lambda: shown_quote(it, answer).lines == ("Photo: low water",))

    play(scenario)


def test_of_a_large_picture_that_is_quoted_its_thumbnail_is_enough() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            thumbnail = picture_bytes("#a03a84", side=60)
            file = replace(
                picture_view(thumbnail, 900),
                size=2 * MAX_FILE_BYTES,
                thumbnail=thumbnail,
                state=FileState.COMPLETE,
            )
            photo = with_file(engine, group, picture_bytes("#1f6ca6"), file)
            answer = engine.row(group, member("Luc"), "as blue as that")
            engine.arrive(replace(answer, quote=quote_of(photo)))
            await until(lambda: in_view(it, answer))
            await until(lambda: colour_of_quoted(it, answer) == "#a03a84")

    play(scenario)


def middle_of(widget: QWidget) -> str:
    return widget.grab().toImage().pixelColor(widget.rect().center()).name()


def shown_quote(it: Stage, message: MessageView) -> QuoteBox:
    quote = bubble(it, message)[0].above.quote
    assert quote is not None
    return quote


def colour_of_quoted(it: Stage, message: MessageView) -> str:
    """Of the middle of the picture in a quote."""
    viewport, (box, y) = it.window.pane.timeline.viewport(), bubble(it, message)
    quote = box.above.quote
    if quote is None or quote.picture is None:
        return ""
    place = quote.picture_rect.center() + QPointF(0, y)
    return viewport.grab().toImage().pixelColor(place.toPoint()).name()


def shown_lines(it: Stage, message: MessageView) -> tuple[str, ...]:
    quote = shown_quote(it, message)
    return quote.name, *quote.lines


def test_by_keys_one_hears_that_what_is_quoted_is_asked_for_or_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            timeline, said = it.window.pane.timeline, list[str]()
            monkeypatch.setattr(timeline.announcer, "arrived", said.append)
            row = engine.row(group, member("Maya"), "as I said")
            row = replace(row, quote=QuoteView(message_id=MessageId("gone")))
            engine.arrive(row)
            await focus(it, row)
            words = "Maya, answers a message that is not here yet, Q asks for it, as I said, "
            assert spoken_rows_of(it)[-1].startswith(words)
            it.press(Key.Key_Q, on=timeline)
            assert said == ["Asked for the message that is not here yet"]
            await until(lambda: engine.called("fetch_quoted") == [row.message_id])
            before = QuoteView(message_id=MessageId("gone"), from_before=True)
            engine.alter(replace(row, quote=before))
            name, why = "A message from before you came", "You were not given its key"
            await until(lambda: shown_lines(it, row) == (name, why))
            words = "answers a message from before you came, you were not given its key, as I said"
            assert words in spoken_rows_of(it)[-1]
            engine.fail("fetch_quoted", CommandError(CommandRefusal.NOT_FOR_US))
            it.press(Key.Key_Q, on=timeline)
            assert said[1:] == [why]
            await until(lambda: not engine.failures["fetch_quoted"])
            await turn()
            assert not it.window.notices.notices(), "it stands in the quote already"
            hidden = replace(quote_of(engine.receive(group, "Luc", "hello")), text="", hidden=True)
            engine.alter(replace(row, quote=hidden))
            words = "Maya, answers Luc: Not shown on this device, as I said, "
            await until(lambda: any(each.startswith(words) for each in spoken_rows_of(it)))
            await until(lambda: shown_lines(it, row) == ("Luc", "Not shown on this device"))
            it.press(Key.Key_Q, on=timeline)
            assert said[-1] == "Not shown on this device"
            assert timeline.scene.focus_key == message_key(row.message_id)

    play(scenario)


def test_in_a_pair_one_can_answer_react_and_edit_too() -> None:
    async def scenario() -> None:
        async with pair_stage("Maya") as (it, engine, pair):
            row = engine.receive(pair, "Maya", "hello")
            await focus(it, row)
            it.press(Key.Key_R)
            await it.send("hi")
            answer = last_row(engine, pair)
            assert answer.quote == quote_of(row)
            await focus(it, row)
            it.press(Key.Key_Plus)
            it.write("wave")
            it.press(Key.Key_Return)
            await until(lambda: shown(engine, pair, row).reactions != ())
            await until(lambda: bool(bubble(it, row)[0].chips))
            await rewrite(it, " there")
            await until(lambda: shown(engine, pair, answer).text == "hi there")
            assert engine.called("edit") == [(answer.message_id, "hi there", ())]
            await until(lambda: "edited" in spoken_rows_of(it)[-1])

    play(scenario)
