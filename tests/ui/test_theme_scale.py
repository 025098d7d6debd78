"""Type, metrics, avatars and the switch from one theme to another."""

import pytest
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication

from ui.controls import Text
from ui.theme import (
    Metrics,
    ThemeMode,
    avatar_index,
    current_theme,
    initials,
    set_theme,
    theme_changed,
)
from ui.theme.avatars import fnv_1a_32


@pytest.mark.parametrize(
    ("text", "value"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)]
)
def test_fnv_1a_gives_the_published_values(text: str, value: int) -> None:
    assert fnv_1a_32(text.encode()) == value


def test_the_avatar_colour_follows_the_id() -> None:
    assert avatar_index("a") == 0xE40C292C % 10


@pytest.mark.parametrize(
    ("name", "is_group", "letters"),
    [
        ("mara", False, "M"),
        ("Harbour Wind Club", True, "HW"),
        ("Harbour", True, "H"),
        ("  ", False, "?"),
        ("👩‍🚀 crew", False, "👩‍🚀"),
        ("e\u0301lan", False, "E\u0301"),
    ],
)
def test_initials_take_whole_graphemes(name: str, is_group: bool, letters: str) -> None:
    assert initials(name, is_group=is_group) == letters


def test_text_grows_at_once_and_spacing_later_and_slower() -> None:
    assert [Metrics(p).scaled(60) for p in (85, 100, 200)] == [51, 60, 120]
    assert [Metrics(p).gap(12) for p in (85, 100, 130, 200)] == [12, 12, 12, 16]


def test_switching_changes_the_palette_and_tells_once(qapp: QApplication) -> None:
    app = qapp
    set_theme(app, ThemeMode.LIGHT)
    told: list[ThemeMode] = []

    def listen() -> None:
        told.append(current_theme().mode)

    theme_changed.connect(listen)
    try:
        for mode in (ThemeMode.DARK, ThemeMode.DARK, ThemeMode.HIGH_CONTRAST, ThemeMode.LIGHT):
            theme = set_theme(app, mode)
            assert app.palette().color(QPalette.ColorRole.Base) == theme.surface
    finally:
        theme_changed.disconnect(listen)
    assert told == [ThemeMode.DARK, ThemeMode.HIGH_CONTRAST, ThemeMode.LIGHT]


@pytest.mark.parametrize(("asked", "given"), [(10, 85), (150, 150), (900, 200)])
def test_text_size_is_kept_within_its_bounds(qapp: QApplication, asked: int, given: int) -> None:
    app = qapp
    try:
        theme = set_theme(app, ThemeMode.LIGHT, text_percent=asked)
        assert theme.metrics.text_percent == given
        assert theme.type.body.font.pixelSize() == int(14 * given / 100 + 0.5)
        assert app.font().pixelSize() == theme.type.body.font.pixelSize()
    finally:
        set_theme(app, ThemeMode.LIGHT)


def test_words_that_were_never_shown_follow_a_switch_too(qapp: QApplication) -> None:
    """As those of a panel that is filled while another theme is in force."""
    set_theme(qapp, ThemeMode.HIGH_CONTRAST)
    words = Text("Maya", strong=True)
    try:
        set_theme(qapp, ThemeMode.LIGHT)
        words.show()
        assert words.palette().color(QPalette.ColorRole.WindowText) == current_theme().ink
    finally:
        words.close()
        words.deleteLater()
