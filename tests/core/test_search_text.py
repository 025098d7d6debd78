"""What is found in a text, and where: compared with a plain reading of the rules."""

import sys
import unicodedata
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.search_text import (
    MAX_QUERY_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
    MAX_WORDS,
    excerpt,
    folded,
    is_plain,
    is_shortened,
    marked,
    terms,
    wanted,
)
from tests.persistence.memory_search import is_found, plain

LETTERS = (
    "aAzZ09éÉüßñÅ",
    "ΣσςΆαЙйЁё",
    "שָׁאבمَرّ",
    "हिन्दी한국어각",
    "東京都道がカー゙々\U00020000",
    "ไม่รัİıﬁＡ①",
    " .,-_!\n\0\u00a0",
    "a\u0301\u0323\U0001f600\u200d\ue000\u1100\u1161\u11a8",
)
TEXTS = st.text(st.sampled_from("".join(LETTERS)), max_size=40)


@given(text=TEXTS, query=TEXTS)
def test_it_finds_what_the_rules_say(text: str, query: str) -> None:
    assert wanted(query).finds(text) == is_found(query, text)


@given(text=TEXTS, begin=st.integers(0, 40), length=st.integers(1, 10))
def test_what_is_found_has_the_terms_that_are_asked_for(text: str, begin: int, length: int) -> None:
    asked = wanted(text[begin : begin + length])
    if asked.finds(text):
        words, pairs = terms(text)
        assert all(any(there.startswith(word) for there in words) for word in asked.words)
        assert all(any(there.startswith(pair) for there in pairs) for pair in asked.pairs())


def test_each_two_neighbours_are_a_term_and_the_last_one_alone() -> None:
    assert terms("go 東京都。 カ") == ({"go"}, {"東京", "京都", "都", "カ"})
    assert wanted("東京都 京").pairs() == ("東京", "京都", "都", "京")


@cache
def plain_characters() -> list[str]:
    """All there are; to look for them takes half a second."""
    return [one for one in map(chr, range(sys.maxunicode + 1)) if is_plain(one)]


@given(text=st.text(st.deferred(lambda: st.sampled_from(plain_characters())), max_size=40))
def test_plain_characters_are_folded_each_for_itself(text: str) -> None:
    """So a run is in a text of these if it is there before folding."""
    assert folded(text) == plain(text) == "".join(map(folded, text))


def test_no_plain_character_becomes_another_one_of_a_run_or_nothing() -> None:
    for one in plain_characters():
        assert folded(one)
        assert folded(one) == one or not terms(one).pairs
    assert not any(map(is_plain, ("か\u3099", "東\u0301", "\uf900", "㍿", "ｶ", "ไ", "\0")))


@given(text=TEXTS, query=TEXTS)
def test_each_mark_is_something_that_was_asked_for(text: str, query: str) -> None:
    asked = wanted(query)
    marks = marked(text, asked)
    assert list(marks) == sorted(marks)
    assert all(0 <= begin < end <= len(text) for begin, end in marks)
    if asked and asked.finds(text):
        assert marks
    assert bool(asked) or not marks


@given(text=TEXTS, query=TEXTS)
def test_an_excerpt_marks_what_it_shows(text: str, query: str) -> None:
    shown = excerpt(text, wanted(query))
    assert "\n" not in shown.text
    assert all(0 <= begin < end <= len(shown.text) for begin, end in shown.marks)


@pytest.mark.parametrize(
    ("text", "query", "there"),
    [
        ("Déjà vu", "deja v", ["Déjà", "v"]),
        ("Straße", "strass", ["Straß"]),
        ("e\u0301a", "e", ["e\u0301"]),
        ("東京タワー", "京タ", ["京タ"]),
        ("(hello) well-known", "known hel", ["hel", "known"]),
        ("x" * 60, "x" * 50, ["x" * 40]),
    ],
)
def test_marks_cover_the_letters(text: str, query: str, there: list[str]) -> None:
    assert [text[begin:end] for begin, end in marked(text, wanted(query))] == there


def test_a_long_text_is_cut_around_what_was_found() -> None:
    shown = excerpt("word " * 100 + "a needle " + "word " * 100, wanted("needle"))
    ((begin, end),) = shown.marks
    assert shown.text[begin:end] == "needle"
    assert shown.text[0] == shown.text[-1] == "…"
    assert len(shown.text) <= MAX_SHOWN_CHARACTERS + 2


def test_of_a_long_question_the_beginning_counts() -> None:
    asked = wanted(" ".join(f"w{n}" for n in range(1_000)))
    assert asked.words == tuple(f"w{n}" for n in range(MAX_WORDS))
    assert len(wanted("".join(chr(0x4E00 + n) for n in range(1_000))).pairs()) == MAX_WORDS
    assert is_shortened("x " * MAX_QUERY_CHARACTERS)
    assert is_shortened(" ".join(f"w{n}" for n in range(MAX_WORDS + 1)))
    assert not is_shortened("a few words")


def test_folding_is_what_unicode_says() -> None:
    for number in range(sys.maxunicode + 1):
        one = chr(number)
        if unicodedata.category(one) not in ("Cn", "Cs"):
            assert folded(one) == plain(one), hex(number)


MARKS = ("\u0301\u0323", "\u3099\u094d", "\u0f73", "\uff9e\u0323", "\u0344\u0323")


@pytest.mark.parametrize("marks", MARKS)
def test_very_many_marks_on_a_letter_are_not_sorted(marks: str) -> None:
    """Sorting takes the square of their number, and a message may have tens of thousands."""
    few, many = f"a{marks * 8} word", f"a{marks * 10_000} word"
    assert wanted("a word").finds(few)
    assert wanted("a word").finds(many)
    assert len(terms(many).words) == len(terms(few).words) == 2
    assert len(folded(many)) < 100


def test_what_is_made_of_marks_counts_as_marks() -> None:
    """Whatever else Unicode takes apart begins with a letter, which ends a row of marks."""
    for number in range(sys.maxunicode + 1):
        one = chr(number)
        apart = unicodedata.normalize("NFKD", one)
        is_mark = unicodedata.combining(one) != 0
        if not is_mark and unicodedata.category(one) != "Cs" and unicodedata.combining(apart[0]):
            assert len(folded("a" + one * 10_000)) < 100, hex(number)


def test_of_a_long_text_marks_are_looked_for_as_far_as_it_is_shown() -> None:
    text = "é-word " * 100
    shown, asked = excerpt(text, wanted("word")), wanted("word")
    line = shown.text.removesuffix("…")
    assert shown.marks == marked(line, asked)
    assert text.startswith(line)
