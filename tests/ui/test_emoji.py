"""The table of emoji, what was used last, and that nothing of it is loaded before it is needed."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_app.settings import Settings
from chat_app.settings_control import SettingsControl
from chat_app.window_memory import WindowMemory
from chat_app.window_settings import WindowSettings
from engine.core.emoji import MAX_ELEMENTS, is_emoji
from ui.emoji.table import MAX_FOUND, SKIN_TONES, EmojiTable, emoji_groups
from ui.emoji.used import MAX_RECENT, UsedEmoji
from ui.settings import UiSettings

ALL = EmojiTable(emoji_groups())


def found(words: str) -> list[str]:
    return [emoji.text for emoji in ALL.search(words)]


def coded(query: str) -> list[str]:
    return [emoji.text for _, emoji in ALL.coded(query)]


def test_everything_in_the_table_may_be_sent_as_a_reaction_in_every_skin_tone() -> None:
    texts = [emoji.toned(tone) for emoji in ALL for tone in range(len(SKIN_TONES))]
    assert len(texts) > 6 * 1900
    assert [text for text in texts if not is_emoji(text)] == []
    # A pictograph, a skin tone or selector, and a joiner, each at most four bytes.
    assert max(len(text.encode()) for text in texts) <= 4 * 3 * MAX_ELEMENTS


def test_every_emoji_has_one_place_a_name_and_a_code_of_its_own() -> None:
    everything = list(ALL)
    assert len({emoji.text for emoji in everything}) == len(everything)
    assert all(emoji.name and emoji.codes for emoji in everything)
    first = [emoji.codes[0] for emoji in everything]
    assert len(set(first)) == len(first)
    assert [group.key for group in ALL.groups][:2] == ["smileys-emotion", "people-body"]


def test_skin_tones_are_put_on_whom_has_them() -> None:
    wave, grin = ALL.find("👋"), ALL.find("😀")
    assert wave is not None
    assert grin is not None
    assert [wave.toned(tone) for tone in range(6)] == ["👋", "👋🏻", "👋🏼", "👋🏽", "👋🏾", "👋🏿"]
    assert {grin.toned(tone) for tone in range(6)} == {"😀"}
    cook = ALL.find("🧑‍🍳")
    assert cook is not None
    assert cook.toned(3) == "🧑🏽‍🍳"


def test_an_emoji_is_found_in_any_spelling() -> None:
    heart, thumb = ALL.find("❤"), ALL.find("👍🏿")
    assert heart is not None
    assert heart.text == "❤️"
    assert thumb is not None
    assert thumb.text == "👍"
    assert ALL.find("x") is None


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("red heart", "❤️"),
        ("heart", "❤️"),
        ("HEART red", "❤️"),
        ("tada", "🎉"),
        (":tada:", "🎉"),
        ("thumbs_up", "👍"),
        ("birthday", "🎂"),
        ("france", "🇫🇷"),
        ("pizza", "🍕"),
    ],
)
def test_the_best_match_comes_first(words: str, first: str) -> None:
    assert found(words)[0] == first


def test_all_words_have_to_fit_and_nonsense_finds_nothing() -> None:
    assert "💙" in found("blue heart")
    assert "❤️" not in found("blue heart")
    assert found("heart qqq") == found("") == found("  ") == found(": :") == []


@pytest.mark.parametrize(
    ("query", "first"),
    [("+1", "👍"), ("-1", "👎"), ("joy", "😂"), ("smile", "😄"), ("TAD", "🎉"), ("hug", "🤗")],
)
def test_a_code_is_completed(query: str, first: str) -> None:
    assert coded(query)[0] == first


def test_a_closed_code_is_one_emoji_or_none() -> None:
    assert coded("joy:") == ["😂"]
    assert coded("jo:") == []
    assert coded("joy cat:") == []


@given(st.text(max_size=40))
def test_any_search_is_answered_within_the_bound(words: str) -> None:
    assert len(ALL.search(words)) <= MAX_FOUND
    assert len(ALL.coded(words)) <= MAX_FOUND


def test_what_a_font_is_too_old_for_is_left_out() -> None:
    old = EmojiTable(emoji_groups(), newest=15)
    assert old.find("😀") is not None
    assert old.find("\U0001fae9") is None  # of version 16
    dancers = old.find("👯")
    assert dancers is not None
    assert dancers.toned(3) == "👯"


def used(**stored: str) -> tuple[UsedEmoji, dict[str, str]]:
    return UsedEmoji(UiSettings(load=stored.get, save=stored.__setitem__)), stored


def test_the_last_used_comes_first_once_and_no_more_than_some_are_kept() -> None:
    mine, stored = used()
    for text in ("👍", "❤️", "👍", "❤"):
        mine.use(text)
    assert mine.recent == ("❤", "👍")
    for emoji in list(ALL)[:50]:
        mine.use(emoji.text)
    assert len(mine.recent) == MAX_RECENT
    again, _ = used(**stored)
    assert again.recent == mine.recent


@pytest.mark.parametrize("damage", ["", "abc", "👍 abc", "👍👍 👍", "\x00", " " * 1000])
def test_damaged_memory_of_emoji_is_passed_over(damage: str) -> None:
    mine, _ = used(recent_emoji=damage)
    assert set(mine.recent) <= {"👍"}


@pytest.mark.parametrize(("stored", "tone"), [("3", 3), ("6", 0), ("-1", 0), ("x", 0), ("٣", 0)])
def test_a_tone_that_is_none_counts_as_not_chosen(stored: str, tone: int) -> None:
    mine, _ = used(skin_tone=stored)
    assert mine.tone == tone


def test_both_outlast_the_window_on_disk(tmp_path: Path) -> None:
    def memory() -> UsedEmoji:
        kept = WindowMemory(
            WindowSettings(SettingsControl(tmp_path / "settings.toml", Settings())),
            tmp_path / "window.json",
        )
        return UsedEmoji(UiSettings(load=kept.load, save=kept.save))

    mine = memory()
    mine.use("👍🏾")
    mine.tone = 4
    assert memory().recent == ("👍🏾",)
    assert memory().tone == 4


def test_the_window_starts_without_emoji() -> None:
    program = "import sys, ui.app; sys.exit(any(m.startswith('ui.emoji.t') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
