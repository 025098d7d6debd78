"""What is shown, read aloud and copied of a text with markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import MessageView
from tests.ui.timeline.timeline_stage import message
from ui.conversation_words import kind_words
from ui.marked_text import copied_text, shown_text, spoken_text, utf16


def said(text: str) -> MessageView:
    return message(1, text=text)


def copied(text: str, part: str) -> str:
    """What a copy of ``part`` holds, which stands once in ``text``."""
    start = len(utf16(text[: text.index(part)])) // 2
    return copied_text(text, said(text).spans, start, start + len(utf16(part)) // 2)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("plain 2*3*4", "plain 2*3*4"),
        ("**b** *i* ~~s~~ `c` ***x***", "b i s c x"),
        ("😀 **b😀** c", "😀 b😀 c"),
        ("- a\n  * b\n1. c", "• a\n• b\n1. c"),
        ("> a\n>> *b*", "a\nb"),
        ("x\n```py\na\n```\ny", "x\na\ny"),
    ],
)
def test_shown_without_marks(typed: str, shown: str) -> None:
    assert shown_text(said(typed)) == shown
    assert kind_words(said(typed)) == " ".join(shown.split())


@pytest.mark.parametrize(
    ("typed", "spoken"),
    [
        ("**b**", "b"),
        ("x\n```py\na\nb\n```\ny", "x\ncode: a\nb, end of code\ny"),
        ("```a```", "code: a, end of code"),
        ("> *a*\n> b\nc", "quote: a\nb, end of quote\nc"),
        ("- a", "• a"),
    ],
)
def test_code_and_quotes_are_said_to_be_so(typed: str, spoken: str) -> None:
    assert spoken_text(said(typed)) == spoken


@pytest.mark.parametrize(
    ("typed", "part", "copy"),
    [
        ("see **bold words** here", "bold", "bold"),
        ("see **bold words** here", "bold words", "bold words"),
        ("see **bold words** here", "e **bold words** h", "e **bold words** h"),
        ("see **bold words** here", " **bold words", " **bold words**"),
        ("see **bold words** here", "see **bold", "see bold"),
        ("**bold**", "bold", "**bold**"),
        ("**bold**", "ol", "ol"),
        ("a **b *c* d** e", "c* d", "*c* d"),
        ("a **b *c* d** e", "*c* d** e", "*c* d e"),
        ("> a\n> b", "a\n> b", "> a\n> b"),
        ("x\n> a\n> b", "a\n> b", "a\n> b"),
        ("x\n```py\na\nb\n```", "a\nb", "a\nb"),
        ("x\n```py\na\nb\n```", "x\n```py\na\nb", "x\n```py\na\nb\n```"),
        ("- a\n- b", "a\n- b", "a\n- b"),
        ("😀 **b** *c*", "b** *c", "**b** *c*"),
    ],
)
def test_a_copy_keeps_the_marks_of_what_is_whole(typed: str, part: str, copy: str) -> None:
    assert copied(typed, part) == copy


pieces = st.lists(
    st.sampled_from(["*", "**", "_", "`", "``", "\n", "> ", "- ", "a", " ", "😀"]), max_size=12
).map("".join)


@given(pieces, st.integers(0, 24), st.integers(0, 24))
def test_a_copy_holds_what_is_shown_between_two_places(text: str, one: int, other: int) -> None:
    units = len(utf16(text)) // 2
    start, end = sorted((min(one, units), min(other, units)))
    spans = said(text).spans
    inside = utf16(text)[2 * start : 2 * end].decode("utf-16-le", "replace")
    copy = copied_text(text, spans, start, end)
    assert copy.count("a") == inside.count("a")
    assert copied_text(text, spans, 0, units) == text
