"""Marks around what is selected: by keys in the composer, and what that makes of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtTest import QTest

from engine.core.markup import BOLD, ITALIC, STRIKE, find_spans
from tests.ui.driving import Key, group_stage, play, until
from tests.ui.seeing import spoken_rows
from ui.desktop.notification_words import message_line
from ui.list.preview import preview_of
from ui.marked_text import in_units
from ui.window.marking import marked

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


def after(text: str, mark: str) -> str:
    """``text`` with the selection between bars, as it is after the keys."""
    start, _, rest = text.partition("|")
    chosen, has_end, end = rest.partition("|")
    begin = len(start)
    done = marked(start + chosen + end, begin, begin + len(chosen) * bool(has_end), mark)
    result = start + chosen + (end if has_end else "")
    for edit in reversed(done.edits):
        result = result[: edit.at] + edit.put + result[edit.at + edit.removed :]
    return f"{result[: done.start]}|{result[done.start : done.end]}|{result[done.end :]}"


@pytest.mark.parametrize(
    ("before", "mark", "expected"),
    [
        ("a |word| b", "**", "a **|word|** b"),
        ("a **|word|** b", "**", "a |word| b"),
        ("a |**word**| b", "**", "a |word| b"),
        ("a **|word|** b", "_", "a **_|word|_** b"),
        ("__|word|__", "_", "___|word|___"),
        ("a| word |b", "~~", "a ~~|word|~~ b"),
        ("a w|or|d b", "**", "a **|word|** b"),
        ("これは|重要|です", "**", "これは**|重要|**です"),
        ("|one\ntwo|", "**", "**|one**\n**two|**"),
        ("**|one**\n**two|**", "**", "|one\ntwo|"),
        ("|**one**\ntwo|", "**", "**|one**\n**two|**"),
        ("|> one\n\n- two|", "_", "> _|one_\n\n- _two|_"),
        ("a |  | b", "**", "a |  | b"),
        ("a ||", "**", "a **||**"),
        ("a **||**", "**", "a ||"),
        ("a **word||** b", "**", "a **word**|| b"),
        ("||", "_", "_||_"),
    ],
)
def test_marks_come_and_go(before: str, mark: str, expected: str) -> None:
    assert after(before, mark) == expected


@given(
    st.text(st.sampled_from("ab \n>-*_~1.é重😀"), max_size=20),
    st.integers(0, 20),
    st.integers(0, 20),
    st.sampled_from(["**", "_", "~~"]),
)
def test_edits_ascend_and_only_marks_are_added_or_removed(
    text: str, one: int, other: int, mark: str
) -> None:
    units = in_units(text)
    start, end = sorted((min(one, len(units)), min(other, len(units))))
    done = marked(units, start, end, mark)
    at = 0
    for edit in done.edits:
        assert at <= edit.at
        at = edit.at + edit.removed
        assert set(edit.put) <= set(mark)
        assert set(units[edit.at : at]) <= set(mark)
    length = len(units) + sum(len(edit.put) - edit.removed for edit in done.edits)
    assert 0 <= done.start <= done.end <= length


def test_keys_mark_what_is_selected_and_what_is_written_next() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _, _):
            box = it.window.pane.composer.box
            box.insertPlainText("one 😀 two three")  # No key types an emoji.
            box.moveCursor(QTextCursor.MoveOperation.StartOfLine)
            box.moveCursor(QTextCursor.MoveOperation.NextWord, QTextCursor.MoveMode.KeepAnchor)
            it.press(Key.Key_B, CTRL, on=box)
            assert box.toPlainText() == "**one** 😀 two three"
            it.press(Key.Key_I, CTRL, on=box)
            assert box.toPlainText() == "**_one_** 😀 two three"
            box.undo()
            box.undo()
            assert box.toPlainText() == "one 😀 two three"
            box.moveCursor(QTextCursor.MoveOperation.End)
            box.moveCursor(QTextCursor.MoveOperation.PreviousWord, QTextCursor.MoveMode.KeepAnchor)
            it.press(Key.Key_X, CTRL | SHIFT, on=box)
            assert box.toPlainText() == "one 😀 two ~~three~~"
            it.press(Key.Key_X, CTRL | SHIFT, on=box)
            assert box.toPlainText() == "one 😀 two three"
            box.moveCursor(QTextCursor.MoveOperation.End)
            it.write(" ", on=box)
            it.press(Key.Key_B, CTRL, on=box)
            it.write("four", on=box)
            it.press(Key.Key_B, CTRL, on=box)
            it.write(" five", on=box)
            assert box.toPlainText() == "one 😀 two three **four** five"

    play(scenario)


@pytest.mark.parametrize(("mark", "kind"), [("**", BOLD), ("_", ITALIC), ("~~", STRIKE)])
def test_what_the_keys_write_is_markup(mark: str, kind: str) -> None:
    for text in ("|word|", "w|or|d, and", "(|word|)", "> |word| x", "これは|重要|です"):
        written = after(text, mark).replace("|", "")
        assert kind in {span.kind for span in find_spans(written)}, written


def test_what_is_marked_is_shown_without_marks_wherever_it_is_read() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            box = it.window.pane.composer.box
            it.press(Key.Key_B, CTRL, on=box)
            it.write("low water", on=box)
            it.press(Key.Key_B, CTRL, on=box)
            await it.send(" at ten")
            assert engine.called("send_text") == ["**low water** at ten"]
            timeline = it.window.pane.timeline
            await until(
                lambda: any("You, low water at ten, " in row for row in spoken_rows(timeline))
            )
            last = it.listed(group)
            assert preview_of(last).text == "low water at ten"
            assert last.last_message is not None
            line = message_line(last, last.last_message, show_text=True)
            assert line.endswith("low water at ten")
            QTest.keyClick(timeline, Key.Key_Up)
            QTest.keyClick(timeline, Key.Key_C, CTRL)
            assert QGuiApplication.clipboard().text() == "**low water** at ten"

    play(scenario)
