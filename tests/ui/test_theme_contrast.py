"""Every pair of colours that is put on top of each other can be read, in all three themes."""

import pytest
from PySide6.QtGui import QColor

from ui.theme.colours import AVATAR_FILLS, COLOURS, Colours, ThemeMode
from ui.timeline.code_block import code_colour
from ui.timeline.code_colours import CodeRole

TEXT = """
ink/canvas ink/panel ink/surface ink/selected ink/band ink/dangerBg
ink2/canvas ink2/panel ink2/surface ink2/surface2 ink2/selected ink2/warnBg
ink3/canvas ink3/panel ink3/surface ink3/surface2 ink3/code ink3/band
onAccent/accent onAccent/accentHover onMute/badgeMute
accentInk/accentSoft accentInk/panel accentInk/surface accentInk/canvas accentInk/selected
ownInk/own ownMeta/own ownMeta/dangerBg accentInk/own ink/code
warn/warnBg warn/surface warn/panel warn/selected
danger/dangerBg danger/canvas danger/surface danger/panel danger/selected
late/lateBg late/surface ok/panel ok/surface
"""
GRAPHICS = """
accent/canvas accent/surface accent/panel accent/own
warnDot/canvas warnDot/panel warnDot/warnBg danger/canvas late/canvas late/surface
ok/panel line2/surface focus/canvas focus/surface
"""
PUBLISHED = {
    "ink/canvas": (14.68, 15.66, 21.00),
    "ink2/selected": (6.38, 6.60, 13.50),
    "ink3/canvas": (4.91, 6.86, 14.45),
    "ink3/band": (4.64, 5.74, 11.91),
    "onAccent/accent": (6.35, 7.93, 15.26),
    "accentInk/accentSoft": (7.51, 8.13, 10.72),
    "ownMeta/own": (5.90, 6.27, 11.57),
    "warn/warnBg": (6.81, 8.99, 14.57),
    "danger/dangerBg": (6.36, 6.22, 10.85),
    "late/lateBg": (6.81, 8.11, 13.17),
    "onMute/badgeMute": (5.28, 7.04, 14.45),
    "warnDot/canvas": (3.32, 8.52, 14.57),
    "line2/surface": (3.21, 3.42, 21.00),
    "focus/canvas": (5.57, 8.66, 19.56),
}


def luminance(colour: QColor) -> float:
    def linear(channel: int) -> float:
        value = channel / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, (colour.red(), colour.green(), colour.blue()))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: QColor, other: QColor) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def pair(colours: Colours, names: str) -> float:
    front, back = names.split("/")
    return contrast(getattr(colours, front), getattr(colours, back))


@pytest.mark.parametrize("mode", ThemeMode)
def test_every_text_pair_reaches_its_contrast(mode: ThemeMode) -> None:
    needed = 7.0 if mode is ThemeMode.HIGH_CONTRAST else 4.5
    colours = COLOURS[mode]
    assert {
        names: pair(colours, names) for names in TEXT.split() if pair(colours, names) < needed
    } == {}


@pytest.mark.parametrize("mode", ThemeMode)
def test_every_graphic_pair_reaches_three_to_one(mode: ThemeMode) -> None:
    colours = COLOURS[mode]
    assert {
        names: pair(colours, names) for names in GRAPHICS.split() if pair(colours, names) < 3
    } == {}


@pytest.mark.parametrize("names", PUBLISHED)
def test_the_published_ratios_are_what_the_colours_give(names: str) -> None:
    found = tuple(round(pair(COLOURS[mode], names), 2) for mode in ThemeMode)
    assert found == PUBLISHED[names]


@pytest.mark.parametrize("mode", ThemeMode)
def test_sender_names_read_on_the_bubble(mode: ThemeMode) -> None:
    colours = COLOURS[mode]
    assert len(colours.names) == len(AVATAR_FILLS) == 10
    assert min(contrast(name, colours.surface) for name in colours.names) >= 4.5


@pytest.mark.parametrize("mode", ThemeMode)
def test_coloured_code_reads_in_its_box(mode: ThemeMode) -> None:
    needed = 7.0 if mode is ThemeMode.HIGH_CONTRAST else 4.5
    colours = COLOURS[mode]
    assert min(contrast(code_colour(role, colours), colours.code) for role in CodeRole) >= needed


def test_white_initials_read_on_every_avatar() -> None:
    assert min(contrast(QColor("#FFFFFF"), fill) for fill in AVATAR_FILLS) >= 4.5
