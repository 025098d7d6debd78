"""Every sentence about clocks."""

import pytest
from msgspec.structs import replace

from engine.events import OwnClockView
from ui.clock_words import (
    BANNER_MS,
    banner_words,
    going_words,
    how_to_set,
    needs_banner,
    quiet_words,
    who_sentence,
)
from ui.times import off_words

MIN, HOUR, DAY = 60_000, 3_600_000, 86_400_000
MANY = OwnClockView(
    behind_ms=62 * MIN, by=("Bob", "Carol", "Dave", "Eve", "Frank"), heard=5, known_long=True
)


@pytest.mark.parametrize(
    ("off_ms", "words"),
    [
        (15_999, "15 s"),
        (-119_999, "119 s"),
        (2 * MIN, "2 min"),
        (59 * MIN, "59 min"),
        (HOUR, "1 h"),
        (-62 * MIN, "1 h 2 min"),
        (2 * DAY - MIN, "47 h 59 min"),
        (2 * DAY, "2 days"),
        (365 * DAY, "365 days"),
        (730 * DAY, "2 years"),
    ],
)
def test_how_far_off(off_ms: int, words: str) -> None:
    assert off_words(off_ms) == words


def test_the_banner_says_by_how_much_who_says_so_and_what_comes_of_it() -> None:
    assert banner_words(MANY) == (
        "This device's clock is 1 h 2 min behind the others'. Bob, Carol and 3 more say so. "
        "Your messages may be refused, and theirs held back."
    )
    assert banner_words(replace(MANY, behind_ms=-62 * MIN)).startswith(
        "This device's clock is 1 h 2 min ahead of the others'."
    )
    assert banner_words(replace(MANY, offset_ms=HOUR)).startswith(
        "The time that you go by is 1 h 2 min behind the others'."
    )


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (
            OwnClockView(behind_ms=HOUR, by=("Bob",), heard=3),
            "Only Bob says so, whom you have known for less than a day.",
        ),
        (
            OwnClockView(behind_ms=HOUR, by=("Bob",), heard=1, known_long=True),
            "Only Bob was heard, and says so.",
        ),
        (replace(MANY, by=("Bob", "Carol"), heard=2), "Bob and Carol say so."),
        (
            replace(MANY, heard=8),
            "Bob, Carol and 3 more say so, 5 of 8 who were heard.",
        ),
        (
            OwnClockView(behind_ms=HOUR, by=("B\n\u202eob" + "x" * 99,), heard=1),
            "Only B ob" + "x" * 35 + "… says so, whom you have known for less than a day.",
        ),
        (OwnClockView(offset_ms=HOUR), ""),
    ],
)
def test_who_says_so(clock: OwnClockView, words: str) -> None:
    assert who_sentence(clock) == words


def test_a_little_is_said_quietly_and_more_in_a_banner() -> None:
    little = replace(MANY, behind_ms=-20_000)
    assert quiet_words(little) == "Clock 20 s ahead"
    assert not needs_banner(little)
    assert not needs_banner(replace(MANY, behind_ms=BANNER_MS - 1))
    assert needs_banner(replace(MANY, behind_ms=-BANNER_MS))
    assert quiet_words(None) == ""
    assert quiet_words(OwnClockView(offset_ms=HOUR)) == "By the others' clock"


def test_that_one_goes_by_the_others_is_said() -> None:
    assert going_words(OwnClockView(offset_ms=-62 * MIN)) == (
        "You go by the others' clock, 1 h 2 min behind this device's, until that is set."
    )


def test_each_system_is_told_in_one_sentence_where_its_clock_is_set() -> None:
    sentences = {how_to_set(platform) for platform in ("linux", "darwin", "win32")}
    assert len(sentences) == 3
    assert all(sentence.endswith(".") and "\n" not in sentence for sentence in sentences)
