"""Answers with a quote, by keyboard and mouse, and all that is said about a message in a pair."""

import pytest
from msgspec.structs import replace

from engine.core.ids import MessageId
from engine.events import MessageView, QuoteView
from tests.ui.driving import Key, Stage, group_stage, pair_stage, play, stage, until
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
from tests.ui.seeing import seen_words
from ui.timeline.rows import message_key

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
            found = engine.receive(group, "Luc", "here it is")
            engine.alter(replace(row, quote=quote_of(found)))
            await until(lambda: bubble(it, row)[0].above.quote.name == "Luc")  # type: ignore[union-attr]

    play(scenario)


def shown_lines(it: Stage, message: MessageView) -> tuple[str, ...]:
    quote = bubble(it, message)[0].above.quote
    return () if quote is None else (quote.name, *quote.lines)


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
