"""What counts as an emoji is a rule that every version shares, and costs a text's length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.emoji import MAX_ELEMENTS, emoji_only, is_emoji, without_selectors

LONGEST_BYTES = 4 * 3 * MAX_ELEMENTS
"""Each element is at most a pictograph, a skin tone or selector, and a joiner."""

EMOJI = (
    "\U0001f600",  # a face
    "\u2764\ufe0f",  # a heart, in colour
    "\u2764",  # the same without its selector
    "\u263a",
    "\U0001f44d\U0001f3fd",  # with a skin tone
    "\u261d\U0001f3ff",
    "1\ufe0f\u20e3",  # a keycap
    "#\u20e3",
    "\U0001f1eb\U0001f1f7",  # a country
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # a region
    "\U0001f3f4\u200d\u2620\ufe0f",  # a pirate's flag
    "\U0001f3f3\ufe0f\u200d\u26a7\ufe0f",
    "\U0001f469\U0001f3fb\u200d\u2764\ufe0f\u200d\U0001f48b\u200d\U0001f468\U0001f3ff",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\U0001f9d1\U0001f3fd\u200d\U0001f9bd\u200d\u27a1\ufe0f",
    "\U0001fae9",  # of Unicode 16
    "\U0001faaf",
    "\U0001faff",  # not assigned in Unicode 17
)
NO_EMOJI = (
    "",
    " ",
    "a",
    "1",
    "#",
    "1\ufe0f",  # half a keycap
    "\u20e3",
    "\ufe0f",
    "\u200d",
    "\U0001f3fd",  # a skin tone of nobody
    "\U0001f1eb",  # half a flag
    "\U0001f1eb\U0001f1f7\U0001f1e9",
    "\U0001f600\U0001f600",
    "\U0001f600 ",
    " \U0001f600",
    "\U0001f600\n",
    "\U0001f600\u200d",
    "\u200d\U0001f600",
    "\U0001f600\u200da",
    "\u2764\ufe0e",  # its monochrome form was asked for
    "\U0001f600\ufe0f\ufe0f",
    "\U0001f44d\U0001f3fd\U0001f3fd",
    "\U0001f3f4\U000e0067\U000e0062",  # a region without end
    "\U0001f3f4" + 7 * "\U000e0061" + "\U000e007f",
    "\U0001f600\U000e0067\U000e0062\U000e0073\U000e007f",  # text hidden behind a face
    "\u2605",  # a star, a king, a playing card: characters, not emoji
    "\u2654",
    "\U0001f0a1",
    "\U0001f600\u0301",
    "\u202e\U0001f600",
    "\ud83d",
    ":-)",
    "\u200d".join(["\U0001f469"] * (MAX_ELEMENTS + 1)),
)
SPACES = st.text(alphabet=" \n\t\u00a0\u3000", max_size=3)


@pytest.mark.parametrize("text", EMOJI)
def test_every_kind_of_sequence_is_an_emoji(text: str) -> None:
    assert is_emoji(text)
    assert emoji_only(text) == 1
    assert is_emoji(without_selectors(text))


@pytest.mark.parametrize("text", NO_EMOJI)
def test_what_is_no_single_emoji_is_none(text: str) -> None:
    assert not is_emoji(text)


def test_the_longest_emoji_is_within_the_bound() -> None:
    longest = "\u200d".join(["\U0001f469\U0001f3fb"] * MAX_ELEMENTS)
    assert is_emoji(longest)
    assert len(longest.encode()) <= LONGEST_BYTES


@given(st.text())
def test_any_text_is_judged_and_what_passes_is_short(text: str) -> None:
    if is_emoji(text):
        assert len(text.encode()) <= LONGEST_BYTES
        assert emoji_only(text) == 1


@given(st.lists(st.tuples(st.sampled_from(EMOJI), SPACES), max_size=20), SPACES)
def test_emoji_are_counted_whatever_space_is_between(
    pieces: list[tuple[str, str]], before: str
) -> None:
    text = before + "".join(emoji + space for emoji, space in pieces)
    assert emoji_only(text) == len(pieces)


@given(st.lists(st.sampled_from(EMOJI), max_size=5), st.text(alphabet="ab1.\u200d\ufe0f\u2605"))
def test_one_other_character_makes_it_a_text(emoji: list[str], other: str) -> None:
    text = "".join(emoji) + "".join(f" {character}" for character in other)
    assert emoji_only(text) == (0 if other else len(emoji))


@given(st.text(alphabet="\U0001f469\u2764\ufe0f\u200d\U0001f3fd\U0001f1eb\U000e0067\U000e007f1 "))
def test_parts_of_sequences_in_any_order_are_read_once(text: str) -> None:
    """Counting agrees with judging: a text counted as n emoji holds n that pass alone."""
    found = emoji_only(text)
    assert found <= len(text)
    if found == 1:
        assert is_emoji(text.strip())


def test_two_spellings_of_one_emoji_compare_alike() -> None:
    assert without_selectors("\u2764\ufe0f") == without_selectors("\u2764") == "\u2764"
    assert without_selectors("1\ufe0f\u20e3") == "1\u20e3"
