"""Words that begin with a sign are completed in the real composer, by keyboard and by mouse."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest

from tests.ui.driving import Key, Stage, group_stage, play, until
from ui.completion import Candidate, Completion, CompletionPopup, best_matches, folded, match_rank
from ui.window.composer import MessageBox

NAMES = ("Maya", "Mayumi", "Jonas Mayer", "Priya", "José")
PEOPLE = [(folded(name), Candidate(text=f"#{name} ", words=name, key=name)) for name in NAMES]


def find(query: str) -> Sequence[Candidate]:
    return best_matches(query, PEOPLE)


@asynccontextmanager
async def desk() -> AsyncIterator[tuple[Stage, MessageBox, CompletionPopup]]:
    """The window with an open group, the caret in the composer, which completes names."""
    async with group_stage() as (it, _engine, _group):
        composer = it.window.pane.composer
        composer.completions.add(
            Completion(trigger="#", name="People", query=re.compile(r"[\w ]{0,20}"), find=find)
        )
        composer.box.setFocus()
        await until(composer.box.hasFocus)
        yield it, composer.box, composer.completions


def offered(popup: CompletionPopup) -> list[str]:
    assert popup.isVisible() == bool(popup.candidates)
    return [candidate.words for candidate in popup.candidates]


@pytest.mark.parametrize(
    ("query", "words", "rank"),
    [
        ("maya", "maya", 0),
        ("ma", "maya", 1),
        ("ma", "jonas mayer", 2),
        ("aye", "jonas mayer", 3),
        ("jmr", "jonas mayer", 4),
        ("rm", "jonas mayer", None),
        ("", "maya", 1),
    ],
)
def test_a_name_matches_the_better_the_earlier(query: str, words: str, rank: int | None) -> None:
    assert match_rank(query, words) == rank


def test_matching_knows_no_case_and_no_accents() -> None:
    assert [each.words for each in find("JOSE")] == ["José", "Jonas Mayer"]
    assert [each.words for each in find("ma")] == ["Maya", "Mayumi", "Jonas Mayer"]


def test_the_sign_offers_and_letters_narrow_it_down() -> None:
    async def scenario() -> None:
        async with desk() as (it, _box, popup):
            it.write("hello #")
            assert offered(popup) == list(NAMES)
            it.write("may")
            assert offered(popup) == ["Maya", "Mayumi", "Jonas Mayer"]
            it.write("q")
            assert offered(popup) == []
            it.press(Key.Key_Backspace)
            assert offered(popup) == ["Maya", "Mayumi", "Jonas Mayer"]

    play(scenario)


@pytest.mark.parametrize("key", [Key.Key_Return, Key.Key_Enter, Key.Key_Tab])
def test_keys_choose_and_one_undo_takes_it_back(key: Qt.Key) -> None:
    async def scenario() -> None:
        async with desk() as (it, box, popup):
            box.insertPlainText("😀 ")  # no key of a keyboard
            it.write("hello #may")
            it.press(Key.Key_Down)
            it.press(key)
            assert box.toPlainText() == "😀 hello #Mayumi "
            assert offered(popup) == []
            assert it.engine.called("send_text") == []
            box.undo()
            assert box.toPlainText() == "😀 hello #may"

    play(scenario)


def test_arrows_go_round_and_do_not_move_the_caret() -> None:
    async def scenario() -> None:
        async with desk() as (it, box, popup):
            it.write("#may")
            it.press(Key.Key_Up)
            assert popup.rows.currentIndex().row() == 2
            it.press(Key.Key_Down)
            assert popup.rows.currentIndex().row() == 0
            assert box.textCursor().position() == 4
            it.press(Key.Key_Return)
            it.write("there")
            assert box.toPlainText() == "#Maya there"

    play(scenario)


def test_escape_leaves_this_word_alone_and_not_the_next() -> None:
    async def scenario() -> None:
        async with desk() as (it, box, popup):
            it.write("#ma")
            it.press(Key.Key_Escape)
            assert offered(popup) == []
            it.write("y")
            assert offered(popup) == []
            it.write("!! #pr")
            assert offered(popup) == ["Priya"]
            it.press(Key.Key_Return)
            assert box.toPlainText() == "#may!! #Priya "

    play(scenario)


def test_enter_sends_when_nothing_is_offered() -> None:
    async def scenario() -> None:
        async with desk() as (it, _box, popup):
            it.write("mail me#maya")
            assert offered(popup) == []
            it.press(Key.Key_Return)
            await until(lambda: bool(it.engine.called("send_text")))

    play(scenario)


def test_a_click_chooses_and_the_composer_keeps_the_focus() -> None:
    async def scenario() -> None:
        async with desk() as (it, box, popup):
            it.write("#may")
            index = popup.rows.model().index(1, 0)
            place = popup.rows.visualRect(index).center()
            QTest.mouseClick(popup.rows.viewport(), Qt.MouseButton.LeftButton, pos=place)
            assert box.toPlainText() == "#Mayumi "
            assert box.hasFocus()

    play(scenario)


LEAVINGS: dict[str, Callable[[Stage, MessageBox], None]] = {
    "the caret leaves": lambda it, _box: it.press(Key.Key_Home),
    "the focus leaves": lambda it, _box: it.window.panel.search.setFocus(),
    "another text is set": lambda it, _box: it.window.pane.composer.set_text("#may"),
    "a space begins the line anew": lambda _it, box: box.setPlainText(""),
}


@pytest.mark.parametrize("way", LEAVINGS)
def test_it_goes_when(way: str) -> None:
    async def scenario() -> None:
        async with desk() as (it, box, popup):
            it.write("#may")
            assert popup.isVisible()
            LEAVINGS[way](it, box)
            assert offered(popup) == []

    play(scenario)


def test_it_stands_above_the_composer_within_a_small_window() -> None:
    async def scenario() -> None:
        async with desk() as (it, box, popup):
            it.window.resize(360, 420)
            it.write("x" * 20 + " #")
            top = box.mapTo(it.window, QPoint(0, 0)).y()
            assert popup.geometry().bottom() <= top
            assert it.window.rect().contains(popup.geometry())

    play(scenario)


def test_a_screen_reader_reads_the_rows() -> None:
    async def scenario() -> None:
        async with desk() as (it, _box, popup):
            it.write("#may")
            rows = QAccessible.queryAccessibleInterface(popup.rows)
            assert rows.text(QAccessible.Text.Name) == "People"
            names = [rows.child(i).text(QAccessible.Text.Name) for i in range(rows.childCount())]
            assert names == ["Maya", "Mayumi", "Jonas Mayer"]
            assert rows.child(0).state().selected

    play(scenario)
